//! Streams of `subscriptions/listen`, several at once on one connection.

use std::time::Duration;

use rehearse_conformance::{Case, Lane as CaseLane, Material};
use rehearse_protocol::{Direction, Frame};
use serde_json::{Value, json};

use crate::{lane::Lane, lists, prober::Prober, survey::call_each};

const LISTEN: &str = "subscriptions/listen";
/// The id of the stream that is cancelled.
const CANCELLED: &str = "rehearse-cancelled";
/// How many resources are watched on the stream for everything.
const WATCHED: usize = 12;
/// The least time to wait for acknowledgements.
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// Opens a stream for each kind of filter, cancels one of them, calls tools that may change something, and listens.
pub(super) async fn listen(prober: &Prober<'_>, lane: &mut Lane) {
    let material = &prober.material;
    let from = lane.wire().recorder().end();
    lane.begin(&request("all", filters(material))).await;
    acknowledged(lane, from, 1).await;
    let filters = [
        ("tools", json!({ "toolsListChanged": true })),
        ("prompts", json!({ "promptsListChanged": true })),
        ("resources", json!({ "resourcesListChanged": true })),
        ("updated", json!({ "resourceSubscriptions": resources(material, 1) })),
        ("empty", json!({})),
        ("false", json!({ "toolsListChanged": false, "promptsListChanged": false, "resourcesListChanged": false })),
    ];
    for (name, filter) in &filters {
        lane.begin(&request(name, filter.clone())).await;
    }
    let string_id = lane.with_id(&request("string-id", json!({ "toolsListChanged": true })), "rehearse-listen");
    lane.begin(&string_id).await;
    lane.begin(&Case::request("listen/missing", CaseLane::Negative, LISTEN, json!({}))).await;
    let cancelled = lane.with_id(&request("cancelled", self::filters(material)), CANCELLED);
    let cancelled = lane.begin(&cancelled).await;
    acknowledged(lane, from, filters.len() + 4).await;
    if let Some(cancelled) = cancelled {
        let params = json!({ "requestId": cancelled.id });
        match material.is_http() {
            true => lane.abandon(&cancelled),
            false => drop(
                lane.begin(&Case::notification("listen/cancel", CaseLane::Main, "notifications/cancelled", params))
                    .await,
            ),
        }
    }
    let mut again = material.clone();
    lists::read(lane, &mut again).await;
    call_each(lane, &prober.tools, "").await;
    lists::read(lane, &mut again).await;
    lane.be_silent().await;
    if let Some(method) = material.list_methods().first() {
        lane.send(&Case::request("listen/after", CaseLane::Main, method, json!({}))).await;
    }
}

fn request(name: &str, filter: Value) -> Case {
    Case::request(format!("listen/{name}"), CaseLane::Main, LISTEN, json!({ "notifications": filter })).unanswered()
}

/// Everything that can be listened to.
fn filters(material: &Material) -> Value {
    json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": resources(material, WATCHED),
    })
}

/// The first resources, to watch them.
fn resources(material: &Material, most: usize) -> Vec<Value> {
    let listed = material.resources.iter().map(|resource| &resource["uri"]).filter(|uri| uri.is_string());
    let listed: Vec<_> = listed.take(most).cloned().collect();
    match listed.is_empty() {
        true => vec![json!(format!("rehearse://{}", material.unknown_name()))],
        false => listed,
    }
}

/// Waits until this many streams are acknowledged or refused.
async fn acknowledged(lane: &Lane, from: usize, mut left: usize) {
    let limit = (lane.grace() * 4).max(LEAST_WAIT);
    let is_last = |frame: &Frame| {
        let message: Value = serde_json::from_slice(&frame.bytes).unwrap_or_default();
        let is_answer =
            message["method"] == "notifications/subscriptions/acknowledged" || message.get("error").is_some();
        if frame.direction == Direction::ServerToClient && is_answer {
            left = left.saturating_sub(1);
        }
        left == 0
    };
    lane.wire().wait_for(from, limit, is_last).await;
}
