//! Tasks of 2025-11-25, and those of the extension of 2026-07-28.

use rehearse_protocol::names::{META_RELATED_TASK, TASKS_EXTENSION};
use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use serde_json::Value;

use super::{
    super::{Judge, ask::CAPABILITIES, common::shown},
    hdr::name,
};
use crate::areas::query::{Calls, Query};
use crate::{Call, Connection, Evidence, Judgement, Kind, Message};

const GET: &str = "tasks/get";
const METHODS: [&str; 3] = [GET, "tasks/update", "tasks/cancel"];
const NO_TASK: &str = "no request became a task";

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-tasks.legacy.poll-interval", |e, j| paced(e, j, "pollInterval")),
    ("client-tasks.legacy.no-related-meta", |e, j| {
        let calls = [GET, "tasks/result", "tasks/cancel"].iter().flat_map(|method| e.calls_of(method));
        let is_plain = |it: &Message<'_>| it.params()["_meta"].get(META_RELATED_TASK).is_none();
        calls.requests_by_method().must(j, is_plain, |_| "`related-task` in `_meta`");
    }),
    ("client-tasks.legacy.related-in-answers", |e, j| {
        for ask in e.asks() {
            let Some(task) = ask.request.params()["_meta"].get(META_RELATED_TASK) else { continue };
            let Some(result) = ask.responses.first().and_then(|it| it.result()) else { continue };
            let found = &result["_meta"][META_RELATED_TASK];
            let is_right = found.get("taskId").is_some() && found.get("taskId") == task.get("taskId");
            j.check_at(is_right, Some(ask.method()), ask.places(), || match found.is_null() {
                true => "no `related-task` in `_meta`".to_owned(),
                false => format!("`related-task: {}`", shown(found)),
            });
        }
    }),
    ("client-tasks.legacy.client-side-receiver", |e, j| {
        for connection in &e.connections {
            let mut sent = connection.messages.iter().filter(|it| it.method() == Some("initialize"));
            let declared = sent.next().map_or(&Value::Null, |it| it.at("/params/capabilities/tasks/requests"));
            for ask in connection.asks().filter(|ask| ask.request.params().get("task").is_some()) {
                let is_declared = declared.pointer(&format!("/{}", ask.method())).is_some();
                let result = ask.responses.first().and_then(|it| it.result()).filter(|_| is_declared);
                let Some(result) = result else { continue };
                let is_task = result["task"]["taskId"].is_string();
                j.check_at(is_task, Some(ask.method()), ask.places(), || shown(result));
            }
        }
    }),
    ("client-tasks.ext.invalid-on-other", |e, j| {
        for (call, result) in e.calls().filter_map(|call| Some((call, call.result()?))) {
            let Some(id) = result.get("taskId").filter(|_| result["resultType"] == "task") else { continue };
            if call.method() != "tools/call" {
                let poll = e.calls_of(GET).find(|poll| poll.request.at("/params/taskId") == id);
                let places = call.places_with(poll.map(|it| it.request.place));
                j.check_at(poll.is_none(), Some(call.method()), places, || "a poll of it");
            }
        }
    }),
    ("client-tasks.ext.poll-interval", |e, j| paced(e, j, "pollIntervalMs")),
    ("client-tasks.ext.update-on-input", |e, j| {
        for call in e.calls_of("tasks/update") {
            let id = call.request.at("/params/taskId");
            let polled = e.results_of(GET).filter(|(poll, _)| poll.request.at("/params/taskId") == id);
            let notified = e.notifications("notifications/tasks").map(Message::params);
            let tasks = polled.map(|(_, task)| task).chain(notified.filter(|it| it.get("taskId") == Some(id)));
            let asked: HashSet<_> = tasks.flat_map(|task| keys(&task["inputRequests"])).collect();
            let unknown = keys(call.request.at("/params/inputResponses")).find(|key| !asked.contains(key));
            let found = || format!("a response for {:?}, which was not asked for", unknown.unwrap_or_default());
            j.check(unknown.is_none(), call.request, found);
        }
    }),
    ("client-tasks.ext.dedupe-keys", |e, j| {
        let mut seen = HashSet::new();
        for call in e.calls_of("tasks/update") {
            let id = call.text("/params/taskId").unwrap_or_default();
            let keys: Vec<_> = keys(call.request.at("/params/inputResponses")).collect();
            let twice = keys.iter().find(|key| seen.contains(&(id, **key)));
            j.check(twice.is_none(), call.request, || format!("{:?} twice", twice.copied().unwrap_or_default()));
            // What failed may be sent again.
            if call.has_result() {
                seen.extend(keys.into_iter().map(|key| (id, key)));
            }
        }
    }),
    ("client-tasks.ext.cancel-method", |e, j| {
        for connection in &e.connections {
            for call in connection.calls().filter(|call| call.result().is_some_and(|it| it["resultType"] == "task")) {
                let late = late_cancellation(connection, &call);
                let places = call.places_with(late.map(|it| it.place));
                j.check_at(late.is_none(), None, places, || "`notifications/cancelled` for it");
            }
        }
    }),
    ("client-tasks.ext.declares-every-request", |e, j| {
        let declares = |it: &Message<'_>| it.at(CAPABILITIES)["extensions"].get(TASKS_EXTENSION).is_some();
        let requests = METHODS.iter().flat_map(|method| e.calls_of(method)).requests_by_method();
        requests.must(j, declares, |_| format!("no extension `{TASKS_EXTENSION}`"));
    }),
    ("client-tasks.legacy.polls", |e, j| followed(e, j, legacy_task, &[GET, "tasks/result"])),
    ("client-tasks.legacy.not-relying-on-notify", |e, j| {
        if e.notifications("notifications/tasks/status").next().is_none() {
            followed(e, j, legacy_task, &[GET, "tasks/result"]);
        }
    }),
    ("client-tasks.legacy.input-required-result", |e, j| {
        for (poll, _) in e.results_of(GET).filter(|(_, task)| task["status"] == "input_required") {
            let id = poll.request.at("/params/taskId");
            let mut results = e.calls_of("tasks/result");
            let is_asked = results.any(|call| call.request.at("/params/taskId") == id);
            if !is_asked && !e.is_over() {
                continue;
            }
            j.check_at(is_asked, id.as_str(), poll.places(), || "no `tasks/result`");
        }
    }),
    ("client-tasks.legacy.cancel-method", |e, j| {
        for connection in &e.connections {
            for (call, id) in connection.calls().filter_map(|call| Some((call, legacy_task(&call)?))) {
                let late = late_cancellation(connection, &call);
                let places = call.places_with(late.map(|it| it.place));
                j.check_at(late.is_none(), Some(id), places, || "`notifications/cancelled` for it");
            }
        }
    }),
    ("client-tasks.ext.handles-task-result", |e, j| followed(e, j, modern_task, &[GET, "tasks/cancel"])),
    ("client-tasks.ext.until-terminal", |e, j| {
        let mut last: BTreeMap<&str, (Call<'_>, &Value)> = BTreeMap::new();
        for (poll, task) in e.results_of(GET) {
            let id = poll.request.at("/params/taskId").as_str().unwrap_or_default();
            let over = last.get(id).filter(|(_, task)| is_terminal(task)).map(|(over, _)| over.request.place);
            let places = over.into_iter().chain([poll.request.place]).collect();
            j.check_at(over.is_none(), Some(id), places, || "a poll after the end");
            last.insert(id, (poll, task));
        }
        for (id, (poll, task)) in last {
            let mut cancels = e.calls_of("tasks/cancel");
            let is_over = is_terminal(task) || cancels.any(|it| it.request.at("/params/taskId") == id);
            let has_ended = e.facts.exit_code.is_some();
            let found = || format!("no poll after `status: {}`", task["status"]);
            j.check_at(is_over || !has_ended, Some(id), poll.places(), found);
        }
    }),
    ("client-tasks.ext.headers", |e, j| METHODS.iter().for_each(|method| name(e, j, method, "/params/taskId"))),
    ("client-tasks.ext.no-legacy-param", |e, j| {
        e.calls_of("tools/call").requests().must(j, |it| it.params().get("task").is_none(), |_| "`task`")
    }),
];

/// The cancellation of a request after its response: it has become a task.
fn late_cancellation<'c>(connection: &'c Connection<'_>, call: &Call<'c>) -> Option<&'c Message<'c>> {
    let response = call.response?;
    connection.cancellations(call.request).find(|it| it.place > response.place)
}

fn is_terminal(task: &Value) -> bool {
    ["completed", "failed", "cancelled"].iter().any(|status| task["status"] == *status)
}

/// The id of the task that a call has become in 2025-11-25.
fn legacy_task<'e>(call: &Call<'e>) -> Option<&'e str> {
    call.request.params().get("task")?;
    call.result()?["task"]["taskId"].as_str()
}

/// The id of the task that a call has become since 2026-07-28.
fn modern_task<'e>(call: &Call<'e>) -> Option<&'e str> {
    let result = call.result().filter(|it| it["resultType"] == "task" && call.method() == "tools/call")?;
    call.request.at(CAPABILITIES)["extensions"].get(TASKS_EXTENSION)?;
    result["taskId"].as_str()
}

/// Checks that a client asks for each task by one of these methods.
fn followed(e: &Evidence<'_>, j: &mut Judgement, task: for<'e> fn(&Call<'e>) -> Option<&'e str>, methods: &[&str]) {
    for (call, id) in e.calls().filter_map(|call| Some((call, task(&call)?))) {
        let mut asks = methods.iter().flat_map(|method| e.calls_of(method));
        let is_asked = asks.any(|it| it.request.at("/params/taskId") == id);
        if !is_asked && !e.is_over() {
            continue;
        }
        j.check_at(is_asked, Some(id), call.places(), || "no request about the task");
    }
    j.untested(NO_TASK);
}

fn keys(value: &Value) -> impl Iterator<Item = &str> {
    value.as_object().into_iter().flatten().map(|(key, _)| key.as_str())
}

/// Checks that polls of a task that works are not more frequent than its server wants.
fn paced(e: &Evidence<'_>, j: &mut Judgement, member: &str) {
    let mut last: BTreeMap<(usize, &str), (Call<'_>, Duration)> = BTreeMap::new();
    for call in e.calls().filter(|call| call.request.kind == Kind::Request && call.method() == GET) {
        let id = call.text("/params/taskId").unwrap_or_default();
        let key = (call.request.place.connection, id);
        if let Some((before, interval)) = last.remove(&key) {
            let gap = call.request.time.saturating_sub(before.request.time);
            let found = || format!("a poll after {} of {} ms", gap.as_millis(), interval.as_millis());
            j.check_at(gap >= interval.mul_f64(0.8), Some(id), vec![before.request.place, call.request.place], found);
        }
        let interval = call.result().filter(|task| task["status"] == "working").and_then(|task| task[member].as_u64());
        let Some(interval) = interval else { continue };
        last.insert(key, (call, Duration::from_millis(interval)));
    }
    j.untested("no task was polled twice, or none has an interval");
}
