//! What a client must know of a server to connect to it.

use rehearse_net::reachable;
use rehearse_protocol::Transport;
use serde_json::{Map, Value as Json, json};

use super::MockServer;

impl MockServer {
    /// The URL of each network transport for clients on this machine; `None` if no version of the script supports the
    /// transport.
    pub fn urls(&self) -> Vec<(Transport, Option<String>)> {
        let (address, versions) = (self.address(), self.engine().versions());
        let url = |transport: Transport| {
            let url = self.url(transport)?.replacen(&address.to_string(), &reachable(address).to_string(), 1);
            Some((transport, versions.iter().any(|version| transport.carries(*version)).then_some(url)))
        };
        Transport::ALL.into_iter().filter_map(url).collect()
    }

    /// A token that the script accepts, if it requires one.
    pub fn token(&self) -> Option<String> {
        self.engine().auth(|auth| auth.first_token().map(str::to_owned)).flatten()
    }

    /// The entry of the server in a client's configuration.
    pub fn client_entry(&self) -> Option<Map<String, Json>> {
        let (transport, url) = self.urls().into_iter().find_map(|(transport, url)| Some((transport, url?)))?;
        let mut entry = Map::from_iter([("type".into(), json!(transport)), ("url".into(), json!(url))]);
        if let Some(token) = self.token() {
            entry.insert("headers".into(), json!({ "Authorization": format!("Bearer {token}") }));
        }
        Some(entry)
    }
}
