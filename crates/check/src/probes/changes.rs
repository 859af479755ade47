//! What changes before 2026-07-28: lists, and resources that the client subscribes to.

use rehearse_conformance::{Case, CaseGroup, Material};
use serde_json::{Value, json};

use crate::{connection::ProbeConnection, lists, prober::Prober, survey::call_each};

/// How many resources are subscribed to.
const SUBSCRIBED: usize = 12;
const UPDATED: &str = "notifications/resources/updated";

/// Whether a server says that it announces changes.
pub(super) fn announces_changes(material: &Material) -> bool {
    let capabilities = ["resources/subscribe", "tools/listChanged", "prompts/listChanged", "resources/listChanged"];
    !material.is_modern() && capabilities.iter().any(|capability| material.declares(capability))
}

/// Subscribes to resources, calls tools, which may change lists and resources, and ends the subscriptions.
pub(super) async fn changes(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    let material = &prober.material;
    connection.open_stream().await;
    if !material.declares("resources/subscribe") {
        change_lists(prober, connection, "").await;
        return;
    }
    let uris: Vec<_> = material.resources.iter().filter_map(|it| it["uri"].as_str()).collect();
    let request = |case: &str, method: &str, uri: &str| {
        Case::request(case, CaseGroup::Calls, &format!("resources/{method}"), json!({ "uri": uri }))
    };
    let subscribed: Vec<_> = uris.iter().rev().take(SUBSCRIBED).collect();
    for uri in &subscribed {
        connection.send(&request("subscribe/listed", "subscribe", uri)).await;
    }
    change_lists(prober, connection, "subscribe/call").await;
    let updated: Vec<_> =
        connection.wire().recorder().since(0).iter().filter_map(|frame| updated_uri(&frame.bytes)).collect();
    if let Some(uri) = updated.first() {
        connection.send(&request("subscribe/updated", "read", uri)).await;
    }
    for uri in &subscribed {
        connection.send(&request("subscribe/end", "unsubscribe", uri)).await;
    }
    if let Some(uri) = uris.first() {
        connection.send(&request("subscribe/not-subscribed", "unsubscribe", uri)).await;
    }
    let unknown = format!("rehearse://no/such/{}", material.suffix);
    connection.send(&request("subscribe/unknown", "subscribe", &unknown)).await;
    if !updated.is_empty() {
        connection.be_silent().await;
        call_each(connection, &prober.tools, "subscribe/call-after").await;
        connection.be_silent().await;
    }
}

/// Calls the tools between two readings of the lists. Waits for notifications if a list has changed.
async fn change_lists(prober: &Prober<'_>, connection: &mut ProbeConnection, case: &str) {
    let (mut before, mut after) = (prober.material.clone(), prober.material.clone());
    lists::read_small(connection, &mut before).await;
    call_each(connection, &prober.tools, case).await;
    lists::read_small(connection, &mut after).await;
    let lists = |it: &Material| [it.tools.len(), it.prompts.len(), it.resources.len(), it.templates.len()];
    if lists(&before) != lists(&after) {
        connection.be_silent().await;
    }
}

/// The URI of an update.
fn updated_uri(frame: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(frame).ok().filter(|it: &Value| it["method"] == UPDATED)?;
    message["params"]["uri"].as_str().map(ToOwned::to_owned)
}
