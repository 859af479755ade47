//! Requests that overlap: calls at once, and calls that are cancelled.

use std::time::Duration;

use rehearse_conformance::{Case, CaseGroup, Material};
use serde_json::{Value, json};

use crate::{connection::ProbeConnection, prober::Prober, survey::SlowTool};

/// How many calls are sent at once.
const AT_ONCE: usize = 4;
/// When a slow tool is cancelled.
const MIDWAY: Duration = Duration::from_millis(50);
/// The longest time to wait for a call that was cancelled.
const LONGEST: Duration = Duration::from_secs(3);

/// How soon a server answers that works on something else at the same time.
const SOON: Duration = Duration::from_millis(500);

/// Calls tools at once, cancels requests, and uses the connection afterwards.
pub(super) async fn calls(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    let Prober { material, slow, .. } = prober;
    call_at_once(connection, material).await;
    if material.is_modern() && material.is_http() {
        if let Some(slow) = slow {
            drop_call(connection, material, slow).await;
        }
    } else {
        cancel_list(connection, material).await;
        if let Some(slow) = slow {
            cancel_call(connection, material, slow).await;
        }
    }
}

/// Calls the tools that may be called at once.
async fn call_at_once(connection: &mut ProbeConnection, material: &Material) {
    let mut begun = Vec::new();
    for (name, arguments) in material.callable.iter().cycle().take(AT_ONCE) {
        begun.extend(connection.begin(&call(&format!("calls/parallel/{name}"), name, arguments, None)).await);
    }
    let limit = connection.limit();
    for begun in &begun {
        connection.finish(begun, limit).await;
    }
}

fn call(case: &str, name: &str, arguments: &Value, token: Option<&str>) -> Case {
    let mut params = Material::call_params(name, arguments);
    if let Some(token) = token {
        params["_meta"] = json!({ "progressToken": token });
    }
    Case::request(case, CaseGroup::Calls, "tools/call", params)
}

fn cancellation(id: &Value) -> Case {
    let params = json!({ "requestId": id, "reason": "rehearse" });
    Case::notification("cancel-inflight/cancel", CaseGroup::Calls, "notifications/cancelled", params)
}

fn control(material: &Material, name: &str) -> Case {
    let method = if material.is_modern() { "server/discover" } else { "ping" };
    Case::request(name, CaseGroup::Calls, method, json!({}))
}

/// Cancels the first of two lists right after the requests for them.
async fn cancel_list(connection: &mut ProbeConnection, material: &Material) {
    let Some(method) = material.served_list() else { return };
    let list = |name: &str| Case::request(name, CaseGroup::Calls, method, json!({}));
    let cancelled = connection.begin(&list("cancel-inflight/list")).await;
    let other = connection.begin(&list("cancel-inflight/other/list")).await;
    if let Some(begun) = cancelled {
        connection.send(&cancellation(&begun.id)).await;
    }
    let limit = connection.limit();
    if let Some(other) = other {
        connection.finish(&other, limit).await;
    }
    connection.send(&control(material, "cancel-inflight/after-list")).await;
}

/// Cancels the first of two calls midway, and waits until both would have ended. If that takes long, other requests are sent
/// meanwhile.
async fn cancel_call(connection: &mut ProbeConnection, material: &Material, slow: &SlowTool) {
    let case = call("cancel-inflight/call", &slow.name, &slow.arguments, Some("rehearse-cancelled"));
    let Some(begun) = connection.begin(&case).await else { return };
    // It would take too long; the lists have shown what becomes of the other request.
    let other = match slow.took <= LONGEST {
        true => connection.begin(&call("cancel-inflight/other/call", &slow.name, &slow.arguments, None)).await,
        false => None,
    };
    connection.wait(MIDWAY).await;
    connection.send(&cancellation(&begun.id)).await;
    // Its answer shows that the server has read the cancellation.
    let read = connection.begin(&control(material, "cancel-inflight/read")).await;
    let (seen, limit) = ((2 * slow.took).min(LONGEST), connection.limit());
    let after = control(material, "cancel-inflight/after-call");
    if let (Some(read), None) = (&read, &other)
        && connection.finish(read, SOON).await.message.is_some()
    {
        // It does not keep the server from other work.
        return connection.watch(begun, seen, slow.took, after);
    }
    connection.finish(&begun, seen).await;
    for begun in read.iter().chain(&other) {
        connection.finish(begun, limit).await;
    }
    connection.send(&after).await;
}

/// Closes the stream of a call midway, with another stream open.
async fn drop_call(connection: &mut ProbeConnection, material: &Material, slow: &SlowTool) {
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let other = Case::request("cancel-inflight/other-stream", CaseGroup::Calls, "subscriptions/listen", params);
    connection.begin(&other).await;
    let case = call("cancel-inflight/dropped", &slow.name, &slow.arguments, Some("rehearse-dropped"));
    let Some(begun) = connection.begin(&case).await else { return };
    connection.wait(MIDWAY).await;
    connection.abandon(&begun);
    connection.wait((2 * slow.took).min(LONGEST)).await;
    connection.send(&control(material, "cancel-inflight/after-drop")).await;
}
