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
use crate::{Call, Connection, Evidence, Judgement, Kind, Message};

const GET: &str = "tasks/get";
const METHODS: [&str; 3] = [GET, "tasks/update", "tasks/cancel"];
const NO_TASK: &str = "no request became a task";

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-tasks.legacy.poll-interval", |e, j| paced(e, j, "pollInterval")),
    ("client-tasks.legacy.no-related-meta", |e, j| {
        for call in [GET, "tasks/result", "tasks/cancel"].iter().flat_map(|method| e.calls_of(method)) {
            let related = call.request.params()["_meta"].get(META_RELATED_TASK);
            j.check_subject(related.is_none(), call.method(), call.request, || "`related-task` in `_meta`".to_owned());
        }
        j.untested(NO_TASK);
    }),
    ("client-tasks.legacy.related-in-answers", |e, j| {
        for ask in e.asks() {
            let Some(task) = ask.request.params()["_meta"].get(META_RELATED_TASK) else { continue };
            let Some(result) = ask.responses.first().and_then(|it| it.result()) else { continue };
            let found = &result["_meta"][META_RELATED_TASK];
            let is_right = found.get("taskId").is_some() && found.get("taskId") == task.get("taskId");
            j.check_at(is_right, Some(ask.method().to_owned()), ask.places(), || match found.is_null() {
                true => "no `related-task` in `_meta`".to_owned(),
                false => format!("`related-task: {}`", shown(found)),
            });
        }
        j.untested("no task of the server asked for anything");
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
                j.check_at(is_task, Some(ask.method().to_owned()), ask.places(), || shown(result));
            }
        }
        j.untested("the server asked for no task that the client declares");
    }),
    ("client-tasks.ext.invalid-on-other", |e, j| {
        for (call, result) in e.calls().filter_map(|call| Some((call, call.result()?))) {
            let Some(id) = result.get("taskId").filter(|_| result["resultType"] == "task") else { continue };
            if call.method() != "tools/call" {
                let poll = e.calls_of(GET).find(|poll| poll.request.at("/params/taskId") == id);
                let places = call.places().into_iter().chain(poll.map(|it| it.request.place)).collect();
                j.check_at(poll.is_none(), Some(call.method().to_owned()), places, || "a poll of it".to_owned());
            }
        }
        j.untested("only calls of tools became tasks");
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
            j.check(unknown.is_none(), call.request, || {
                format!("a response for {:?}, which was not asked for", unknown.unwrap_or_default())
            });
        }
        j.untested("no task asked for input");
    }),
    ("client-tasks.ext.dedupe-keys", |e, j| {
        let mut seen = HashSet::new();
        for call in e.calls_of("tasks/update") {
            let id = call.request.at("/params/taskId").as_str().unwrap_or_default();
            let keys: Vec<_> = keys(call.request.at("/params/inputResponses")).collect();
            let twice = keys.iter().find(|key| seen.contains(&(id, **key)));
            j.check(twice.is_none(), call.request, || format!("{:?} twice", twice.copied().unwrap_or_default()));
            // What failed may be sent again.
            if call.result().is_some() {
                seen.extend(keys.into_iter().map(|key| (id, key)));
            }
        }
        j.untested("no task asked for input");
    }),
    ("client-tasks.ext.cancel-method", |e, j| {
        for connection in &e.connections {
            for call in connection.calls().filter(|call| call.result().is_some_and(|it| it["resultType"] == "task")) {
                let late = late_cancellation(connection, &call);
                let places = call.places().into_iter().chain(late.map(|it| it.place)).collect();
                j.check_at(late.is_none(), None, places, || "`notifications/cancelled` for it".to_owned());
            }
        }
        j.untested(NO_TASK);
    }),
    ("client-tasks.ext.declares-every-request", |e, j| {
        for call in METHODS.iter().flat_map(|method| e.calls_of(method)) {
            let declared = call.request.at(CAPABILITIES)["extensions"].get(TASKS_EXTENSION);
            j.check_subject(declared.is_some(), call.method(), call.request, || {
                format!("no extension `{TASKS_EXTENSION}`")
            });
        }
        j.untested(NO_TASK);
    }),
    ("client-tasks.legacy.polls", |e, j| followed(e, j, legacy_task, &[GET, "tasks/result"])),
    ("client-tasks.legacy.not-relying-on-notify", |e, j| {
        if e.notifications("notifications/tasks/status").next().is_none() {
            followed(e, j, legacy_task, &[GET, "tasks/result"]);
        }
        j.untested(NO_TASK);
    }),
    ("client-tasks.legacy.input-required-result", |e, j| {
        for (poll, _) in e.results_of(GET).filter(|(_, task)| task["status"] == "input_required") {
            let id = poll.request.at("/params/taskId");
            let mut results = e.calls_of("tasks/result");
            let is_asked = results.any(|call| call.request.at("/params/taskId") == id);
            if !is_asked && !e.is_over() {
                continue;
            }
            j.check_at(is_asked, id.as_str().map(ToOwned::to_owned), poll.places(), || "no `tasks/result`".to_owned());
        }
        j.untested("no task asked for input");
    }),
    ("client-tasks.legacy.cancel-method", |e, j| {
        for connection in &e.connections {
            for (call, id) in connection.calls().filter_map(|call| Some((call, legacy_task(&call)?))) {
                let late = late_cancellation(connection, &call);
                let places = call.places().into_iter().chain(late.map(|it| it.place)).collect();
                let subject = Some(id.to_owned());
                j.check_at(late.is_none(), subject, places, || "`notifications/cancelled` for it".to_owned());
            }
        }
        j.untested(NO_TASK);
    }),
    ("client-tasks.ext.handles-task-result", |e, j| followed(e, j, modern_task, &[GET, "tasks/cancel"])),
    ("client-tasks.ext.until-terminal", |e, j| {
        let mut last: BTreeMap<&str, (Call<'_>, &Value)> = BTreeMap::new();
        for (poll, task) in e.results_of(GET) {
            let id = poll.request.at("/params/taskId").as_str().unwrap_or_default();
            let over = last.get(id).filter(|(_, task)| is_terminal(task)).map(|(over, _)| over.request.place);
            let places = over.into_iter().chain([poll.request.place]).collect();
            j.check_at(over.is_none(), Some(id.to_owned()), places, || "a poll after the end".to_owned());
            last.insert(id, (poll, task));
        }
        for (id, (poll, task)) in last {
            let mut cancels = e.calls_of("tasks/cancel");
            let is_over = is_terminal(task) || cancels.any(|it| it.request.at("/params/taskId") == id);
            let has_ended = e.facts.exit_code.is_some();
            j.check_at(is_over || !has_ended, Some(id.to_owned()), poll.places(), || {
                format!("no poll after `status: {}`", task["status"])
            });
        }
        j.untested(NO_TASK);
    }),
    ("client-tasks.ext.headers", |e, j| METHODS.iter().for_each(|method| name(e, j, method, "/params/taskId"))),
    ("client-tasks.ext.no-legacy-param", |e, j| {
        for call in e.calls_of("tools/call") {
            let is_absent = call.request.params().get("task").is_none();
            j.check(is_absent, call.request, || "`task`".to_owned());
        }
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
fn followed(
    evidence: &Evidence<'_>,
    j: &mut Judgement,
    task: for<'e> fn(&Call<'e>) -> Option<&'e str>,
    methods: &[&str],
) {
    for (call, id) in evidence.calls().filter_map(|call| Some((call, task(&call)?))) {
        let mut asks = methods.iter().flat_map(|method| evidence.calls_of(method));
        let is_asked = asks.any(|it| it.request.at("/params/taskId") == id);
        if !is_asked && !evidence.is_over() {
            continue;
        }
        j.check_at(is_asked, Some(id.to_owned()), call.places(), || "no request about the task".to_owned());
    }
    j.untested(NO_TASK);
}

fn keys(value: &Value) -> impl Iterator<Item = &str> {
    value.as_object().into_iter().flatten().map(|(key, _)| key.as_str())
}

/// Checks that polls of a task that works are not more frequent than its server wants.
fn paced(evidence: &Evidence<'_>, j: &mut Judgement, member: &str) {
    let mut last: BTreeMap<(usize, &str), (Call<'_>, Duration)> = BTreeMap::new();
    for call in evidence.calls().filter(|call| call.request.kind == Kind::Request && call.method() == GET) {
        let id = call.request.at("/params/taskId").as_str().unwrap_or_default();
        let key = (call.request.place.connection, id);
        if let Some((before, interval)) = last.remove(&key) {
            let gap = call.request.time.saturating_sub(before.request.time);
            let places = vec![before.request.place, call.request.place];
            j.check_at(gap >= interval.mul_f64(0.8), Some(id.to_owned()), places, || {
                format!("a poll after {} of {} ms", gap.as_millis(), interval.as_millis())
            });
        }
        let interval = call.result().filter(|task| task["status"] == "working").and_then(|task| task[member].as_u64());
        if let Some(interval) = interval {
            last.insert(key, (call, Duration::from_millis(interval)));
        }
    }
    j.untested("no task was polled twice, or none has an interval");
}
