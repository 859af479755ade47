//! Handshakes that pause before their last message, or ask for a version that does not exist.

use rehearse_conformance::{Case, CaseGroup};
use rehearse_protocol::{Trace, Version};
use serde_json::{Value, json};

use crate::{
    connection::{Answer, ProbeConnection, client_info},
    prober::Prober,
};

/// A session, if there is one, and the traces of other connections.
type Opened = (Option<ProbeConnection>, Vec<Trace>);

/// Whether sessions are opened by asking for a version that does not exist: where a session costs a process, and the server
/// offers this version in its place.
pub(super) fn asks_for_unknown(prober: &Prober<'_>) -> bool {
    prober.starts_processes() && prober.version == Version::LATEST_LEGACY
}

/// Opens a session of a client that can be asked, and holds `initialized` back, so that a server that is in a hurry asks too
/// early.
pub(super) async fn hold(prober: &Prober<'_>, capabilities: Value) -> Opened {
    let asked = if asks_for_unknown(prober) { "2099-12-31" } else { prober.version.as_str() };
    let Some((mut connection, answer)) = initialize(prober, "quiet-window/initialize", asked, &capabilities).await
    else {
        return (None, Vec::new());
    };
    if answer.message.is_some() || connection.wire().is_http() {
        connection.send(&Case::request("quiet-window/ping", CaseGroup::Fresh, "ping", Value::Null)).await;
        connection.be_silent().await;
    }
    open(prober, connection, &answer, capabilities).await
}

/// Opens a session by asking for a version that does not exist.
pub(super) async fn ask_for(prober: &Prober<'_>, name: &str, version: &str, capabilities: Value) -> Opened {
    match initialize(prober, name, version, &capabilities).await {
        Some((connection, answer)) => open(prober, connection, &answer, capabilities).await,
        None => (None, Vec::new()),
    }
}

async fn initialize(
    prober: &Prober<'_>,
    name: &str,
    version: &str,
    capabilities: &Value,
) -> Option<(ProbeConnection, Answer)> {
    let mut connection = prober.open().await?;
    let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": client_info() });
    let answer = connection.send(&Case::request(name, CaseGroup::Fresh, "initialize", params)).await;
    connection.open_session();
    Some((connection, answer))
}

/// Ends the handshake; another session takes the place of one that has not agreed to this version.
async fn open(prober: &Prober<'_>, mut connection: ProbeConnection, answer: &Answer, capabilities: Value) -> Opened {
    if answer.message.is_some() || connection.wire().is_http() {
        let (name, method) = ("quiet-window/initialized", "notifications/initialized");
        connection.send(&Case::notification(name, CaseGroup::Fresh, method, Value::Null)).await;
    }
    if answer.result().is_some_and(|result| result["protocolVersion"] == prober.version.as_str()) {
        return (Some(connection), Vec::new());
    }
    let trace = connection.close().await;
    (prober.open_session_as(capabilities).await, vec![trace])
}
