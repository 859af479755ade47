//! What only HTTP+SSE and WebSocket have: endpoints, upgrades, and connections that do not know each other.

use futures_util::future::join;
use rehearse_conformance::{Case, CaseGroup};
use rehearse_protocol::{Trace, Transport, Version};
use serde_json::{Value, json};

use crate::{
    connection::{ProbeConnection, other_id},
    prober::Prober,
};

const EVIL: &str = "http://evil.example";
/// The key of an upgrade: 16 bytes.
const KEY: &str = "cmVoZWFyc2UtY2hlY2stLQ==";

/// POSTs to the endpoints of other streams, and opens a stream as a foreign page.
pub(super) async fn sse(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.transport() != Transport::Sse || prober.version != Version::V2024_11_05 {
        return Vec::new();
    }
    let Some((mut one, other)) = Box::pin(isolation(prober)).await else { return Vec::new() };
    one.send_http(&Case::http("sse-origin/get", CaseGroup::Fresh, "GET").header("origin", EVIL)).await;
    let ping = |name: &str| {
        let message = json!({ "jsonrpc": "2.0", "id": name, "method": "ping", "params": {} });
        Case::bytes(name, CaseGroup::Fresh, message.to_string())
    };
    if let Some(own) = one.posted_to() {
        one.send_http(&ping("sse-origin/post").path(&own).header("origin", EVIL)).await;
        if let Some(unknown) = other_endpoint(&own) {
            one.send_http(&ping("sse-unknown/post").path(unknown)).await;
        }
    }
    let ended = other.posted_to();
    let mut traces = vec![other.close().await];
    if let Some(ended) = ended {
        one.send_http(&ping("sse-closed/post").path(ended)).await;
    }
    traces.push(one.close().await);
    traces.extend(reconnect(prober, "sse-closed/ping").await);
    traces
}

/// The same endpoint with another session, if the server names one in it.
fn other_endpoint(own: &str) -> Option<String> {
    let at = own.rfind(['=', '/'])? + 1;
    let (before, session) = own.split_at_checked(at)?;
    let has_digit = session.bytes().any(|it| it.is_ascii_digit());
    (session.len() >= 8 && has_digit).then(|| format!("{before}{}", other_id(session)))
}

/// Upgrades as a foreign page and with other subprotocols, sends what is not JSON, and connects again.
pub(super) async fn ws(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.transport() != Transport::Ws {
        return Vec::new();
    }
    let Some((mut one, other)) = Box::pin(isolation(prober)).await else { return Vec::new() };
    let upgrade = |name: &str| {
        let case = Case::http(name, CaseGroup::Fresh, "GET").without_header("accept");
        case.header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", KEY)
    };
    let offer = |case: Case, protocol: &str| case.header("sec-websocket-protocol", protocol);
    for case in [
        offer(upgrade("ws-origin/upgrade"), "mcp").header("origin", EVIL),
        upgrade("ws-protocol/none"),
        offer(upgrade("ws-protocol/unknown"), "rehearse"),
        offer(upgrade("ws-protocol/several"), "rehearse, mcp"),
    ] {
        one.send_http(&case).await;
    }
    one.send(&Case::bytes("ws-malformed/text", CaseGroup::Fresh, "{\"jsonrpc\"").unanswered()).await;
    let mut traces = vec![one.close().await, other.close().await];
    traces.extend(reconnect(prober, "ws-malformed/after").await);
    traces
}

/// Two sessions that send requests at the same time.
async fn isolation(prober: &Prober<'_>) -> Option<(ProbeConnection, ProbeConnection)> {
    let (Some(mut one), Some(mut other)) = Box::pin(join(prober.open_session(), prober.open_session())).await else {
        return None;
    };
    let list = |name: &str| Case::request(name, CaseGroup::Fresh, prober.material.cheap_method(), json!({}));
    // One more, so that the ids of the two differ.
    one.send(&list("isolation/first")).await;
    let (case, other_case) = (list("isolation/one"), list("isolation/other"));
    join(one.send(&case), other.send(&other_case)).await;
    Some((one, other))
}

/// Opens a session after what may have broken the server.
async fn reconnect(prober: &Prober<'_>, name: &str) -> Option<Trace> {
    let mut connection = prober.open().await?;
    connection.handshake().await;
    connection
        .send(&Case::request(name, CaseGroup::Fresh, prober.material.cheap_method(), Value::Object(Default::default())))
        .await;
    Some(connection.close().await)
}
