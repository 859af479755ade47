//! Tools that become tasks: they are called, followed to their end, and cancelled.

use std::time::Duration;

use rehearse_conformance::{Case, CaseGroup, Material};
use rehearse_protocol::{
    Trace, Version,
    names::{META_CLIENT_CAPABILITIES, META_RELATED_TASK, TASKS_EXTENSION},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    connection::{Answer, ProbeConnection},
    lists,
    prober::Prober,
    replies::Replies,
};

const GET: &str = "tasks/get";
/// How many tools are called to see whether they become tasks, and for how long.
const CALLED_TOOLS: usize = 40;
const LONGEST: Duration = Duration::from_millis(1500);
/// How many tools are called as tasks in 2025-11-25.
const FOLLOWED_TOOLS: usize = 3;
/// Between two polls of a server that says nothing else: the default, and the least.
const POLL: Duration = Duration::from_millis(200);
const FASTEST_POLL: Duration = Duration::from_millis(10);

/// Whether a tool that may be called can become a task.
pub(super) fn has_tasks(prober: &Prober<'_>) -> bool {
    let material = &prober.material;
    let is_declared = match material.is_modern() {
        true => material.has_extension(TASKS_EXTENSION),
        false => prober.version == Version::V2025_11_25 && material.declares("tasks/requests/tools/call"),
    };
    is_declared && lists::allowed(&material.tools, prober.options).next().is_some()
}

/// What a client declares that can have tasks.
pub(super) fn capabilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "extensions": { TASKS_EXTENSION: {} } })
}

/// Calls tools of a server with tasks, on a connection of its own.
pub(super) async fn tasks(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.starts_processes() || !has_tasks(prober) {
        return Vec::new();
    }
    let Some(mut connection) = prober.open_session_as(capabilities()).await else { return Vec::new() };
    connection.open_stream().await;
    follow_tasks(prober, &mut connection).await;
    vec![connection.close().await]
}

/// Calls tools of a server with tasks.
pub(super) async fn follow_tasks(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    connection.set_capabilities(capabilities());
    connection.reply_with(Replies::Decline);
    match prober.material.is_modern() {
        true => extension(prober, connection).await,
        false => augmented(prober, connection).await,
    }
}

/// 2026-07-28: the server decides which calls become tasks.
async fn extension(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    let tools: Vec<_> = lists::allowed(&prober.material.tools, prober.options).take(CALLED_TOOLS).collect();
    let undeclared = json!({ "elicitation": { "form": {}, "url": {} } });
    let (begun, end) = (Instant::now(), Instant::now() + prober.options.request_timeout);
    let (mut as_task, mut plain) = (Vec::new(), Vec::new());
    for (name, arguments) in &tools {
        if connection.is_over() || begun.elapsed() > LONGEST {
            break;
        }
        let call = Case::request("", CaseGroup::Calls, "tools/call", Material::call_params(name, arguments));
        let answer = connection.complete(&call).await;
        let Some(id) = task_id(&answer, "/result") else {
            plain.push((name, arguments));
            continue;
        };
        follow(connection, &id, as_task.is_empty(), end).await;
        as_task.push((name, arguments));
    }
    for (name, arguments) in as_task.iter().take(3) {
        let params = Material::call_params(name, arguments);
        let case = Case::request("tasks/undeclared-call", CaseGroup::Calls, "tools/call", params);
        connection.send(&case.meta(META_CLIENT_CAPABILITIES, Some(undeclared.clone()))).await;
    }
    if let Some((name, arguments)) = plain.first().or(as_task.first()) {
        let mut params = Material::call_params(name, arguments);
        params["task"] = json!({ "ttl": 60_000 });
        let case = Case::request("tasks/legacy-param", CaseGroup::Calls, "tools/call", params);
        connection.send(&case.meta(META_CLIENT_CAPABILITIES, Some(undeclared))).await;
    }
    if let Some((name, arguments)) = as_task.first() {
        let answer = connection.request("tools/call", Material::call_params(name, arguments)).await;
        if let Some(id) = task_id(&answer, "/result") {
            connection.request("tasks/cancel", json!({ "taskId": id })).await;
        }
    }
}

/// Polls a task to its end, and declines what it asks for. One that does not end in time is cancelled.
async fn follow(connection: &mut ProbeConnection, id: &str, is_first: bool, end: Instant) {
    let params = json!({ "taskId": id });
    let mut answer = connection.request(GET, params.clone()).await;
    if is_first {
        let case = Case::request("tasks/undeclared/known", CaseGroup::Calls, GET, params.clone());
        connection.send(&case.meta(META_CLIENT_CAPABILITIES, Some(json!({})))).await;
    }
    let mut is_listening = false;
    loop {
        let Some(task) = answer.result().cloned() else { return };
        let status = task["status"].as_str().unwrap_or_default();
        if matches!(status, "completed" | "failed" | "cancelled") {
            connection.request(GET, params).await;
            return;
        }
        if status == "input_required" {
            let mut update = params.clone();
            update["inputResponses"] = json!({ "rehearse-none": { "action": "decline" } });
            if !is_listening {
                is_listening = true;
                let listen = json!({ "notifications": { "taskIds": [id] } });
                let case = Case::request("tasks/listen", CaseGroup::Calls, "subscriptions/listen", listen);
                connection.send(&case.unanswered()).await;
                connection
                    .send(&Case::request("tasks/unknown-key", CaseGroup::Calls, "tasks/update", update.clone()))
                    .await;
            }
            update["inputResponses"] = Replies::Decline.input_responses(&task);
            connection.request("tasks/update", update).await;
        }
        if !wait(connection, &task["pollIntervalMs"], end).await || connection.is_over() {
            connection.request("tasks/cancel", params).await;
            return;
        }
        answer = connection.request(GET, params.clone()).await;
    }
}

/// 2025-11-25: the client decides which calls become tasks.
async fn augmented(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    let material = &prober.material;
    let support = |name: &str| {
        let tool = material.tools.iter().find(|tool| tool["name"] == name);
        tool.and_then(|tool| tool["execution"]["taskSupport"].as_str()).unwrap_or("forbidden").to_owned()
    };
    let allowed: Vec<_> = lists::allowed(&material.tools, prober.options)
        .map(|(name, arguments)| (support(&name), Material::call_params(&name, &arguments)))
        .collect();
    let end = Instant::now() + prober.options.request_timeout;
    let mut cancelled = None;
    let supporting = allowed.iter().filter(|(support, _)| support == "optional" || support == "required");
    for (number, (_, params)) in supporting.take(FOLLOWED_TOOLS).enumerate() {
        if connection.is_over() {
            break;
        }
        let mut params = params.clone();
        params["task"] = json!({ "ttl": 60_000 });
        let second = params.clone();
        params["_meta"] = json!({ "progressToken": format!("rehearse-task-{number}") });
        let Some(id) = task_id(&connection.request("tools/call", params).await, "/result/task") else { continue };
        if number == 0
            && let Some(other) = task_id(&connection.request("tools/call", second).await, "/result/task")
        {
            compare(connection, material, &id, &other).await;
            cancelled = Some(other);
        }
        finish(connection, material, &id, end).await;
    }
    if let Some(id) = cancelled {
        // It could have ended since.
        connection.request(GET, json!({ "taskId": id })).await;
    }
    let first = |wanted: &str| allowed.iter().find(|(support, _)| support == wanted).map(|(_, params)| params.clone());
    if let Some(mut params) = first("forbidden") {
        params["task"] = json!({ "ttl": 60_000 });
        connection.send(&Case::request("tasks/forbidden-call", CaseGroup::Calls, "tools/call", params)).await;
    }
    if let Some(params) = first("required") {
        connection.send(&Case::request("tasks/plain-call", CaseGroup::Calls, "tools/call", params)).await;
    }
    if let Some(params) = first("optional").filter(|_| material.has_extension(TASKS_EXTENSION)) {
        connection.send(&Case::request("tasks/without-task", CaseGroup::Calls, "tools/call", params)).await;
    }
}

/// Gets and lists a task while there is another one, which is then cancelled.
async fn compare(connection: &mut ProbeConnection, material: &Material, id: &str, other: &str) {
    let params = json!({ "taskId": id });
    connection.request(GET, params.clone()).await;
    let mut with_meta = params;
    with_meta["_meta"] = json!({ (META_RELATED_TASK): { "taskId": other } });
    connection.send(&Case::request("tasks/other-meta", CaseGroup::Calls, GET, with_meta)).await;
    if material.declares("tasks/list") {
        lists::pages(connection, "tasks/list", "tasks", json!({})).await;
    }
    if material.declares("tasks/cancel") {
        connection.request("tasks/cancel", json!({ "taskId": other })).await;
        connection.request(GET, json!({ "taskId": other })).await;
    }
}

/// Waits for the result of a task. One that does not end in time is cancelled.
async fn finish(connection: &mut ProbeConnection, material: &Material, id: &str, end: Instant) {
    let params = json!({ "taskId": id });
    connection.request(GET, params.clone()).await;
    let result = connection.request("tasks/result", params.clone()).await;
    let mut is_ended = false;
    while !is_ended && !connection.is_over() {
        let task = connection.request(GET, params.clone()).await;
        let Some(now) = task.result() else { return };
        is_ended = matches!(now["status"].as_str(), Some("completed" | "failed" | "cancelled"));
        if !is_ended && !wait(connection, &now["pollInterval"], end).await {
            break;
        }
    }
    if is_ended {
        if result.message.is_none() {
            connection.request("tasks/result", params.clone()).await;
        }
        connection.request(GET, params.clone()).await;
    }
    if material.declares("tasks/cancel") {
        let name = if is_ended { "tasks/cancel-ended" } else { "" };
        connection.send(&Case::request(name, CaseGroup::Calls, "tasks/cancel", params)).await;
    }
}

/// Waits until the next poll; false if the time is over before.
async fn wait(connection: &ProbeConnection, interval: &Value, end: Instant) -> bool {
    let next = Instant::now() + interval.as_u64().map_or(POLL, Duration::from_millis).max(FASTEST_POLL);
    if next > end {
        return false;
    }
    connection.wait(next.saturating_duration_since(Instant::now())).await;
    true
}

/// The id of a created task.
fn task_id(answer: &Answer, at: &str) -> Option<String> {
    answer.message.as_ref()?.pointer(at)?.get("taskId")?.as_str().map(ToOwned::to_owned)
}
