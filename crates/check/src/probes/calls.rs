//! Requests that overlap: calls at once, and calls that are cancelled.

use std::time::Duration;

use rehearse_conformance::{Case, Lane as CaseLane, Material};
use serde_json::{Value, json};

use crate::{lane::Lane, prober::Prober, survey::SlowTool};

/// How many calls are sent at once.
const AT_ONCE: usize = 4;
/// When a slow tool is cancelled.
const MIDWAY: Duration = Duration::from_millis(50);
/// The longest time to wait for a call that was cancelled.
const LONGEST: Duration = Duration::from_secs(3);

/// Calls tools at once, cancels requests, and uses the connection afterwards.
pub(super) async fn calls(prober: &Prober<'_>, lane: &mut Lane) {
    let Prober { material, slow, .. } = prober;
    call_at_once(lane, material).await;
    if material.is_modern() && material.is_http() {
        if let Some(slow) = slow {
            drop_call(lane, material, slow).await;
        }
    } else {
        cancel_list(lane, material).await;
        if let Some(slow) = slow {
            cancel_call(lane, material, slow).await;
        }
    }
}

/// Calls the tools that may be called at once.
async fn call_at_once(lane: &mut Lane, material: &Material) {
    let mut begun = Vec::new();
    for (name, arguments) in material.callable.iter().cycle().take(AT_ONCE) {
        begun.extend(lane.begin(&call(&format!("calls/parallel/{name}"), name, arguments, None)).await);
    }
    let limit = lane.limit();
    for begun in &begun {
        lane.finish(begun, limit).await;
    }
}

fn call(case: &str, name: &str, arguments: &Value, token: Option<&str>) -> Case {
    let mut params = Material::call_params(name, arguments);
    if let Some(token) = token {
        params["_meta"] = json!({ "progressToken": token });
    }
    Case::request(case, CaseLane::Calls, "tools/call", params)
}

fn cancellation(id: &Value) -> Case {
    let params = json!({ "requestId": id, "reason": "rehearse" });
    Case::notification("cancel-inflight/cancel", CaseLane::Calls, "notifications/cancelled", params)
}

fn control(material: &Material, name: &str) -> Case {
    let method = if material.is_modern() { "server/discover" } else { "ping" };
    Case::request(name, CaseLane::Calls, method, json!({}))
}

/// Cancels a list right after the request for it.
async fn cancel_list(lane: &mut Lane, material: &Material) {
    let Some(method) = material.list_methods().first().copied() else { return };
    let list = Case::request("cancel-inflight/list", CaseLane::Calls, method, json!({}));
    if let Some(begun) = lane.begin(&list).await {
        lane.send(&cancellation(&begun.id)).await;
    }
    lane.send(&control(material, "cancel-inflight/after-list")).await;
}

/// Cancels a call midway, and waits until it would have ended.
async fn cancel_call(lane: &mut Lane, material: &Material, slow: &SlowTool) {
    let case = call("cancel-inflight/call", &slow.name, &slow.arguments, Some("rehearse-cancelled"));
    let Some(begun) = lane.begin(&case).await else { return };
    tokio::time::sleep(MIDWAY).await;
    lane.send(&cancellation(&begun.id)).await;
    lane.finish(&begun, (2 * slow.took).min(LONGEST)).await;
    lane.send(&control(material, "cancel-inflight/after-call")).await;
}

/// Closes the stream of a call midway, with another stream open.
async fn drop_call(lane: &mut Lane, material: &Material, slow: &SlowTool) {
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let other = Case::request("cancel-inflight/other-stream", CaseLane::Calls, "subscriptions/listen", params);
    lane.begin(&other).await;
    let case = call("cancel-inflight/dropped", &slow.name, &slow.arguments, Some("rehearse-dropped"));
    let Some(begun) = lane.begin(&case).await else { return };
    tokio::time::sleep(MIDWAY).await;
    lane.abandon(&begun);
    tokio::time::sleep((2 * slow.took).min(LONGEST)).await;
    lane.send(&control(material, "cancel-inflight/after-drop")).await;
}
