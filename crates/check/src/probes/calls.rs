//! Requests that overlap: calls at once, and calls that are cancelled.

use std::time::{Duration, Instant};

use rehearse_conformance::{Case, Lane as CaseLane, Material};
use rehearse_protocol::Trace;
use serde_json::{Value, json};

use crate::{lane::Lane, prober::Prober};

/// How many calls are sent at once.
const AT_ONCE: usize = 4;
/// A tool that takes longer can be cancelled.
const SLOW: Duration = Duration::from_millis(250);
/// When a slow tool is cancelled.
const MIDWAY: Duration = Duration::from_millis(50);
/// The longest time to wait for a call that was cancelled.
const LONGEST: Duration = Duration::from_secs(3);

/// A tool with its arguments, and how long a call took.
struct Timed<'a> {
    name: &'a str,
    arguments: &'a Value,
    took: Duration,
}

/// Calls tools at once, cancels requests, and uses the connection afterwards.
pub(super) async fn calls(prober: &Prober<'_>) -> Vec<Trace> {
    let Some(mut lane) = prober.open_session().await else { return Vec::new() };
    let slow = call_at_once(&mut lane, &prober.material).await.filter(|tool| tool.took >= SLOW);
    let material = &prober.material;
    if material.is_modern() && material.is_http() {
        if let Some(slow) = slow {
            drop_call(&mut lane, material, &slow).await;
        }
    } else {
        cancel_list(&mut lane, material).await;
        if let Some(slow) = slow {
            cancel_call(&mut lane, material, &slow).await;
        }
    }
    vec![lane.close().await]
}

/// Calls the tools that may be called at once. Returns the slowest.
async fn call_at_once<'a>(lane: &mut Lane, material: &'a Material) -> Option<Timed<'a>> {
    let (mut begun, mut slowest) = (Vec::new(), None::<Timed<'a>>);
    for (name, arguments) in material.callable.iter().cycle().take(AT_ONCE) {
        let case = call(&format!("calls/parallel/{name}"), name, arguments, None);
        begun.push((name, arguments, lane.begin(&case).await?, Instant::now()));
    }
    let limit = lane.limit();
    for (name, arguments, begun, since) in &begun {
        lane.finish(begun, limit).await;
        let took = since.elapsed();
        if slowest.as_ref().is_none_or(|slowest| took > slowest.took) {
            slowest = Some(Timed { name, arguments, took });
        }
    }
    slowest
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
async fn cancel_call(lane: &mut Lane, material: &Material, slow: &Timed<'_>) {
    let case = call("cancel-inflight/call", slow.name, slow.arguments, Some("rehearse-cancelled"));
    let Some(begun) = lane.begin(&case).await else { return };
    tokio::time::sleep(MIDWAY).await;
    lane.send(&cancellation(&begun.id)).await;
    lane.finish(&begun, (2 * slow.took).min(LONGEST)).await;
    lane.send(&control(material, "cancel-inflight/after-call")).await;
}

/// Closes the stream of a call midway, with another stream open.
async fn drop_call(lane: &mut Lane, material: &Material, slow: &Timed<'_>) {
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let other = Case::request("cancel-inflight/other-stream", CaseLane::Calls, "subscriptions/listen", params);
    lane.begin(&other).await;
    let case = call("cancel-inflight/dropped", slow.name, slow.arguments, Some("rehearse-dropped"));
    let Some(begun) = lane.begin(&case).await else { return };
    tokio::time::sleep(MIDWAY).await;
    lane.abandon(&begun);
    tokio::time::sleep((2 * slow.took).min(LONGEST)).await;
    lane.send(&control(material, "cancel-inflight/after-drop")).await;
}
