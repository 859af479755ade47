//! A handshake that pauses before its last message.

use rehearse_conformance::{Case, CaseGroup};
use rehearse_protocol::{Era, Trace, Version};
use serde_json::{Value, json};

use crate::{connection::client_info, prober::Prober};

/// Holds `initialized` back, as a client that can be asked, so that a server that is in a hurry asks too early.
pub(super) async fn handshake(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.version.era() == Era::Modern {
        return Vec::new();
    }
    let Some(mut connection) = prober.open().await else { return Vec::new() };
    let mut capabilities = json!({ "roots": { "listChanged": true }, "sampling": {} });
    if prober.version >= Version::V2025_06_18 {
        capabilities["elicitation"] = json!({});
    }
    let params = json!({
        "protocolVersion": prober.version.as_str(),
        "capabilities": capabilities,
        "clientInfo": client_info(),
    });
    let answer =
        connection.send(&Case::request("quiet-window/initialize", CaseGroup::Fresh, "initialize", params)).await;
    if answer.message.is_none() && !connection.wire().is_http() {
        return vec![connection.close().await];
    }
    connection.send(&Case::request("quiet-window/ping", CaseGroup::Fresh, "ping", Value::Null)).await;
    connection.be_silent().await;
    let name = "quiet-window/initialized";
    connection.send(&Case::notification(name, CaseGroup::Fresh, "notifications/initialized", Value::Null)).await;
    vec![connection.close().await]
}
