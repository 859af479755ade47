//! Tools that become tasks: they are called, followed to their end, and cancelled.

use std::time::{Duration, Instant};

use rehearse_conformance::{Case, Lane as CaseLane, Material};
use rehearse_protocol::Trace;
use serde_json::{Value, json};

use crate::{
    lane::{Answer, Lane},
    lists,
    prober::Prober,
    replies::Replies,
};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const GET: &str = "tasks/get";
/// How many tools are called to see whether they become tasks.
const CALLED_TOOLS: usize = 8;
/// Between two polls of a server that says nothing else: the default, and the least.
const POLL: Duration = Duration::from_millis(200);
const FASTEST_POLL: Duration = Duration::from_millis(10);

/// Calls tools of a server with tasks.
pub(super) async fn tasks(prober: &Prober<'_>) -> Vec<Trace> {
    let material = &prober.material;
    if material.is_modern() && material.has_extension(EXTENSION) {
        return extension(prober).await.into_iter().collect();
    }
    Vec::new()
}

/// 2026-07-28: the server decides which calls become tasks.
async fn extension(prober: &Prober<'_>) -> Option<Trace> {
    let tools: Vec<_> = lists::allowed(&prober.material.tools, prober.options).take(CALLED_TOOLS).collect();
    tools.first()?;
    let mut client = json!({ "elicitation": { "form": {}, "url": {} } });
    let undeclared = client.clone();
    client["extensions"] = json!({ EXTENSION: {} });
    let mut lane = prober.open_session_as(client).await?;
    lane.reply_with(Replies::Decline);
    let end = Instant::now() + prober.options.request_timeout;
    let (mut as_task, mut plain) = (Vec::new(), Vec::new());
    for (name, arguments) in &tools {
        if lane.is_over() {
            break;
        }
        let call = Case::request("", CaseLane::Calls, "tools/call", Material::call_params(name, arguments));
        let answer = lane.complete(&call).await;
        let Some(id) = task_id(&answer, "/result") else {
            plain.push((name, arguments));
            continue;
        };
        follow(&mut lane, &id, as_task.is_empty(), end).await;
        as_task.push((name, arguments));
    }
    for (name, arguments) in as_task.iter().take(3) {
        let params = Material::call_params(name, arguments);
        let case = Case::request("tasks/undeclared-call", CaseLane::Calls, "tools/call", params);
        lane.send(&case.meta(CAPABILITIES, Some(undeclared.clone()))).await;
    }
    if let Some((name, arguments)) = plain.first().or(as_task.first()) {
        let mut params = Material::call_params(name, arguments);
        params["task"] = json!({ "ttl": 60_000 });
        let case = Case::request("tasks/legacy-param", CaseLane::Calls, "tools/call", params);
        lane.send(&case.meta(CAPABILITIES, Some(undeclared))).await;
    }
    if let Some((name, arguments)) = as_task.first() {
        let answer = lane.request("tools/call", Material::call_params(name, arguments)).await;
        if let Some(id) = task_id(&answer, "/result") {
            lane.request("tasks/cancel", json!({ "taskId": id })).await;
        }
    }
    Some(lane.close().await)
}

/// Polls a task to its end, and declines what it asks for. One that does not end in time is cancelled.
async fn follow(lane: &mut Lane, id: &str, is_first: bool, end: Instant) {
    let params = json!({ "taskId": id });
    let mut answer = lane.request(GET, params.clone()).await;
    if is_first {
        let case = Case::request("tasks/undeclared/known", CaseLane::Calls, GET, params.clone());
        lane.send(&case.meta(CAPABILITIES, Some(json!({})))).await;
    }
    let mut is_listening = false;
    loop {
        let Some(task) = answer.result().cloned() else { return };
        let status = task["status"].as_str().unwrap_or_default();
        if matches!(status, "completed" | "failed" | "cancelled") {
            lane.request(GET, params).await;
            return;
        }
        if status == "input_required" {
            let mut update = params.clone();
            update["inputResponses"] = json!({ "rehearse-none": { "action": "decline" } });
            if !is_listening {
                is_listening = true;
                let listen = json!({ "notifications": { "taskIds": [id] } });
                let case = Case::request("tasks/listen", CaseLane::Calls, "subscriptions/listen", listen);
                lane.send(&case.unanswered()).await;
                lane.send(&Case::request("tasks/unknown-key", CaseLane::Calls, "tasks/update", update.clone())).await;
            }
            update["inputResponses"] = Replies::Decline.input_responses(&task);
            lane.request("tasks/update", update).await;
        }
        if !wait(&task["pollIntervalMs"], end).await || lane.is_over() {
            lane.request("tasks/cancel", params).await;
            return;
        }
        answer = lane.request(GET, params.clone()).await;
    }
}

/// Waits until the next poll; false if the time is over before.
async fn wait(interval: &Value, end: Instant) -> bool {
    let next = Instant::now() + interval.as_u64().map_or(POLL, Duration::from_millis).max(FASTEST_POLL);
    if next > end {
        return false;
    }
    tokio::time::sleep_until(next.into()).await;
    true
}

/// The id of a created task.
fn task_id(answer: &Answer, at: &str) -> Option<String> {
    answer.message.as_ref()?.pointer(at)?.get("taskId")?.as_str().map(ToOwned::to_owned)
}
