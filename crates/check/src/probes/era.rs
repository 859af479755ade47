//! Clients of both eras at once, and a client that asks for the newer era first.

use rehearse_client::ServerParams;
use rehearse_conformance::{Case, CaseGroup};
use rehearse_protocol::{Era, Trace, Transport, Version, meta, names::SESSION_HEADER};
use serde_json::{Value, json};

use crate::{
    connection::{ProbeConnection, client_info},
    prober::Prober,
};

/// Asks in the other era.
pub(super) async fn era(prober: &Prober<'_>) -> Vec<Trace> {
    match (prober.version.era(), prober.transport()) {
        (Era::Modern, Transport::Http) => Box::pin(mixed(prober)).await,
        (Era::Modern, _) | (Era::Legacy, Transport::Http) => Vec::new(),
        // Each needs a process of its own on stdio, so once is enough.
        (Era::Legacy, _) if prober.has_modern || prober.version != Version::LATEST_LEGACY => Vec::new(),
        (Era::Legacy, _) => discover_first(prober).await,
    }
}

/// Sends requests of both eras in turn, and a modern one with the session of the legacy one.
async fn mixed(prober: &Prober<'_>) -> Vec<Trace> {
    let open = |version| open(prober.params, version, prober);
    let (Some(mut legacy), Some(mut modern)) = (open(Version::LATEST_LEGACY).await, open(prober.version).await) else {
        return Vec::new();
    };
    let request = |name: &str, method: &str, params: Value| Case::request(name, CaseGroup::Fresh, method, params);
    let answer = legacy.send(&request("era/mixed/initialize", "initialize", initialize(Version::LATEST_LEGACY))).await;
    if answer.result().is_some() {
        let initialized = "notifications/initialized";
        let initialized = Case::notification("era/mixed/initialized", CaseGroup::Fresh, initialized, Value::Null);
        legacy.send(&initialized).await;
        let method = prober.material.cheap_method();
        let is_shared = method != "server/discover";
        for number in 0..2 {
            let legacy_method = if is_shared { method } else { "ping" };
            legacy.send(&request(&format!("era/mixed/legacy/{number}"), legacy_method, json!({}))).await;
            modern.send(&request(&format!("era/mixed/modern/{number}"), method, json!({}))).await;
        }
        if let Some(session) = legacy.session() {
            modern.send(&request("era/by-meta", method, json!({})).header(SESSION_HEADER, &session)).await;
        }
    }
    // Its messages are judged in their own version.
    legacy.close().await;
    vec![modern.close().await]
}

/// Sends `server/discover`, as a client of both eras does, and then `initialize`.
async fn discover_first(prober: &Prober<'_>) -> Vec<Trace> {
    let Some(mut connection) = prober.open().await else { return Vec::new() };
    let meta = meta::of_request(Version::LATEST, json!(client_info()), json!({}));
    let discover = Case::request("era/discover-first", CaseGroup::Fresh, "server/discover", json!({ "_meta": meta }));
    connection.send(&discover.unanswered()).await;
    let initialize = initialize(prober.version);
    connection.send(&Case::request("era/then-initialize", CaseGroup::Fresh, "initialize", initialize)).await;
    vec![connection.close().await]
}

async fn open(params: &ServerParams, version: Version, prober: &Prober<'_>) -> Option<ProbeConnection> {
    ProbeConnection::open(params, version, prober.options, &prober.budget).await.ok()
}

fn initialize(version: Version) -> Value {
    json!({ "protocolVersion": version.as_str(), "capabilities": {}, "clientInfo": client_info() })
}
