//! Subscriptions to resources, before 2026-07-28.

use rehearse_conformance::{Case, Lane as CaseLane, Material};
use rehearse_protocol::Trace;
use serde_json::{Value, json};

use crate::prober::Prober;

/// How many resources are subscribed to.
const SUBSCRIBED: usize = 3;
const UPDATED: &str = "notifications/resources/updated";

/// Subscribes to resources, calls tools, which may update them, and ends the subscriptions.
pub(super) async fn subscriptions(prober: &Prober<'_>) -> Vec<Trace> {
    let material = &prober.material;
    if material.is_modern() || !material.declares("resources/subscribe") {
        return Vec::new();
    }
    let uris: Vec<_> = material.resources.iter().filter_map(|it| it["uri"].as_str()).collect();
    let Some(mut lane) = prober.open_session().await else { return Vec::new() };
    let request = |case: &str, method: &str, uri: &str| {
        Case::request(case, CaseLane::Calls, &format!("resources/{method}"), json!({ "uri": uri }))
    };
    let unknown = format!("rehearse://no/such/{}", material.suffix);
    lane.send(&request("subscribe/unknown", "subscribe", &unknown)).await;
    if let Some(uri) = uris.first() {
        lane.send(&request("subscribe/not-subscribed", "unsubscribe", uri)).await;
    }
    let subscribed: Vec<_> = uris.iter().rev().take(SUBSCRIBED).collect();
    for uri in &subscribed {
        lane.send(&request("subscribe/listed", "subscribe", uri)).await;
    }
    let calls = |case: &str| -> Vec<Case> {
        let params = material.callable.iter().map(|(name, arguments)| Material::call_params(name, arguments));
        params.map(|params| Case::request(case, CaseLane::Calls, "tools/call", params)).collect()
    };
    for case in calls("subscribe/call") {
        lane.send(&case).await;
    }
    let updated: Vec<_> =
        lane.wire().recorder().since(0).iter().filter_map(|frame| updated_uri(&frame.bytes)).collect();
    if let Some(uri) = updated.first() {
        lane.send(&request("subscribe/updated", "read", uri)).await;
    }
    for uri in &subscribed {
        lane.send(&request("subscribe/end", "unsubscribe", uri)).await;
    }
    if !updated.is_empty() {
        lane.be_silent().await;
        for case in calls("subscribe/call-after") {
            lane.send(&case).await;
        }
        lane.be_silent().await;
    }
    vec![lane.close().await]
}

/// The URI of an update.
fn updated_uri(frame: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(frame).ok().filter(|it: &Value| it["method"] == UPDATED)?;
    message["params"]["uri"].as_str().map(ToOwned::to_owned)
}
