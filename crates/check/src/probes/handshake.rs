//! A handshake that pauses before its last message.

use rehearse_conformance::{Case, Lane as CaseLane};
use rehearse_protocol::{Era, Trace, Version};
use serde_json::{Value, json};

use crate::{lane::client_info, prober::Prober};

/// Holds `initialized` back, as a client that can be asked, so that a server that is in a hurry asks too early.
pub(super) async fn handshake(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.version.era() == Era::Modern {
        return Vec::new();
    }
    let Some(mut lane) = prober.open().await else { return Vec::new() };
    let mut capabilities = json!({ "roots": { "listChanged": true }, "sampling": {} });
    if prober.version >= Version::V2025_06_18 {
        capabilities["elicitation"] = json!({});
    }
    let params = json!({
        "protocolVersion": prober.version.as_str(),
        "capabilities": capabilities,
        "clientInfo": client_info(),
    });
    let hello = lane.send(&Case::request("quiet-window/initialize", CaseLane::Fresh, "initialize", params)).await;
    if hello.message.is_none() && !lane.wire().is_http() {
        return vec![lane.close().await];
    }
    lane.send(&Case::request("quiet-window/ping", CaseLane::Fresh, "ping", Value::Null)).await;
    lane.be_silent().await;
    let name = "quiet-window/initialized";
    lane.send(&Case::notification(name, CaseLane::Fresh, "notifications/initialized", Value::Null)).await;
    vec![lane.close().await]
}
