//! A program whose place the client takes.

use std::time::Duration;

use serde_json::{Map, Value as Json};

use rehearse_client::{ClientInfo, ServerParams};
use rehearse_protocol::{Protocol, Transport};

/// A program whose place the client takes: how it introduces itself, and what it can do.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Its name and version.
    pub client_info: ClientInfo,
    /// The capabilities that it declares.
    pub capabilities: Map<String, Json>,
    /// The version that it asks for; if it is not known, that of the cell.
    pub protocol: Option<Protocol>,
    /// The transports that it has; if they are not known, all.
    pub transports: Option<Vec<Transport>>,
    /// How long it waits for the result of a call.
    pub call_time: Option<Duration>,
    /// How long it waits for the start of a server.
    pub start_time: Option<Duration>,
}

impl Host {
    /// The connection with a server as this program makes it.
    pub(crate) fn apply(&self, mut params: ServerParams) -> ServerParams {
        params.client_info = self.client_info.clone();
        params.capabilities = Some(self.capabilities.clone());
        let shorter =
            |limit: &mut Duration, of_host: Option<Duration>| *limit = of_host.map_or(*limit, |it| it.min(*limit));
        shorter(&mut params.timeouts.call, self.call_time);
        shorter(&mut params.timeouts.connect, self.start_time);
        params
    }
}
