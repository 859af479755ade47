//! Streams of `subscriptions/listen`, several at once on one connection.

use std::time::Duration;

use rehearse_conformance::{Case, CaseGroup, Material};
use rehearse_protocol::{Direction, Frame};
use serde_json::{Value, json};

use crate::{connection::ProbeConnection, lists, prober::Prober, survey::call_each};

const LISTEN: &str = "subscriptions/listen";
/// The id of the stream that is cancelled.
const CANCELLED: &str = "rehearse-cancelled";
/// How many resources are watched on the stream for everything.
const WATCHED: usize = 12;
/// The least time to wait for acknowledgements.
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// Opens a stream for each kind of filter, cancels one of them, calls tools that may change something, and listens.
pub(super) async fn listen(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    let material = &prober.material;
    let from = connection.wire().recorder().end();
    connection.begin(&request("all", filters(material))).await;
    acknowledged(connection, from, 1).await;
    let mut filters = vec![
        ("tools", json!({ "toolsListChanged": true })),
        ("prompts", json!({ "promptsListChanged": true })),
        ("resources", json!({ "resourcesListChanged": true })),
        ("empty", json!({})),
        ("false", json!({ "toolsListChanged": false, "promptsListChanged": false, "resourcesListChanged": false })),
    ];
    let watched = resources(material, 1);
    if !watched.is_empty() {
        filters.push(("updated", json!({ "resourceSubscriptions": watched })));
    }
    for (name, filter) in &filters {
        connection.begin(&request(name, filter.clone())).await;
    }
    let string_id = connection.with_id(&request("string-id", json!({ "toolsListChanged": true })), "rehearse-listen");
    connection.begin(&string_id).await;
    connection.begin(&Case::request("listen/missing", CaseGroup::Negative, LISTEN, json!({}))).await;
    let cancelled = connection.with_id(&request("cancelled", self::filters(material)), CANCELLED);
    let cancelled = connection.begin(&cancelled).await;
    acknowledged(connection, from, filters.len() + 4).await;
    if let Some(cancelled) = cancelled {
        let params = json!({ "requestId": cancelled.id });
        match material.is_http() {
            true => connection.abandon(&cancelled),
            false => drop(
                connection
                    .begin(&Case::notification("listen/cancel", CaseGroup::Main, "notifications/cancelled", params))
                    .await,
            ),
        }
    }
    let mut again = material.clone();
    lists::read_small(connection, &mut again).await;
    call_each(connection, &prober.tools, "").await;
    lists::read_small(connection, &mut again).await;
    connection.be_silent().await;
    if let Some(method) = material.served_list() {
        connection.send(&Case::request("listen/after", CaseGroup::Main, method, json!({}))).await;
    }
}

fn request(name: &str, filter: Value) -> Case {
    Case::request(format!("listen/{name}"), CaseGroup::Main, LISTEN, json!({ "notifications": filter })).unanswered()
}

/// Everything that can be listened to. A server may refuse URIs that it does not know.
fn filters(material: &Material) -> Value {
    let mut all = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true });
    let watched = resources(material, WATCHED);
    if !watched.is_empty() {
        all["resourceSubscriptions"] = watched.into();
    }
    all
}

/// The first resources that the server lists, to watch them.
fn resources(material: &Material, most: usize) -> Vec<Value> {
    let listed = material.resources.iter().map(|resource| &resource["uri"]).filter(|uri| uri.is_string());
    listed.take(most).cloned().collect()
}

/// Waits until this many streams are acknowledged or refused.
async fn acknowledged(connection: &ProbeConnection, from: usize, mut left: usize) {
    let limit = (connection.grace() * 4).max(LEAST_WAIT);
    let is_last = |frame: &Frame| {
        let message: Value = serde_json::from_slice(&frame.bytes).unwrap_or_default();
        let is_answer =
            message["method"] == "notifications/subscriptions/acknowledged" || message.get("error").is_some();
        if frame.direction == Direction::ServerToClient && is_answer {
            left = left.saturating_sub(1);
        }
        left == 0
    };
    connection.wire().wait_for(from, limit, is_last).await;
}
