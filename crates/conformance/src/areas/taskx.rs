//! The tasks extension of 2026-07-28 (`io.modelcontextprotocol/tasks`, SEP-2663).

use rehearse_protocol::names::{META_CLIENT_CAPABILITIES, META_RELATED_TASK, NAME_HEADER, TASKS_EXTENSION};
use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::Judge;
use super::common::{capabilities, connection, error_code, shown};
use super::query::{Calls, Parts, Query};
use super::task::{NO_TASK, Seen, each, is_ended, is_final, is_status, is_time, members, secret_ids};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Level, Material};

const CALL: &str = "tools/call";
const GET: &str = "tasks/get";
const MISSING: i64 = -32021;
/// Each method that a task may ask for, with the capability that it needs.
const ASKED: [(&str, &str); 3] =
    [("elicitation/create", "elicitation"), ("sampling/createMessage", "sampling"), ("roots/list", "roots")];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("taskx.caps.declared-object", |e, j| {
        capabilities(e).at("extensions").at(TASKS_EXTENSION).must(j, Value::is_object, shown)
    }),
    ("taskx.create.only-if-declared", |e, j| {
        undeclared_calls(e, j, |call, _| call.result().is_some_and(is_created).then_some(false).or(Some(true)))
    }),
    ("taskx.create.required-32021", |e, j| {
        undeclared_calls(e, j, |call, is_completed| match call.error_code() {
            // It may lack another capability.
            Some(MISSING) if names_others(call) => None,
            Some(MISSING) => Some(names_extension(call)),
            // Any other error may be that of the tool, unless its task had none.
            Some(_) => is_completed.then_some(false),
            None => call.result().map(|_| true),
        });
    }),
    ("taskx.create.result-type", |e, j| {
        let results = e.results_of(CALL).filter(|(_, result)| is_created(result));
        results.must(j, |result| result["resultType"] == "task", |result| members(result, &["resultType"]));
    }),
    ("taskx.create.flat-fields", |e, j| each(all(e), j, is_flat, shown)),
    ("taskx.create.only-tools-call", |e, j| {
        let others = e.calls().filter(|call| !matches!(call.method(), CALL | GET) && is_declared(call));
        let results = others.filter_map(|call| Some((call, call.result()?))).by_method();
        results.must(j, |result| result["resultType"] != "task", |_| "a task");
    }),
    ("taskx.create.durable", |e, j| {
        let mut gets = HashMap::new();
        for call in gets_of_tasks(e) {
            gets.entry(task_id(&call)).or_insert(call);
        }
        for (call, result) in created(e) {
            let Some(get) = result["taskId"].as_str().and_then(|id| gets.get(id)) else { continue };
            if get.response.is_some() && !get.is_refused_elsewhere() {
                j.check_at(get.result().is_some(), None, [call.places(), get.places()].concat(), || get.answer_text());
            }
        }
    }),
    ("taskx.create.legacy-param-ignored", |e, j| {
        let plain = e.results_of(CALL).filter(|(call, _)| call.request.params().get("task").is_none());
        let working: HashSet<_> = plain.filter_map(|(call, _)| call.request.params()["name"].as_str()).collect();
        for call in e.case("tasks/legacy-param").reached() {
            let is_plain = call.result().is_some_and(|it| !is_created(it) && it.get("task").is_none());
            // A tool that always fails says nothing.
            let fails = call.request.params()["name"].as_str().is_none_or(|name| !working.contains(name));
            if is_plain || call.has_result() || !fails {
                let found = || call.result().map_or_else(|| call.answer_text(), shown);
                j.check_answer(is_plain || call.error_code() == Some(MISSING), &call, found);
            }
        }
    }),
    ("taskx.create.id-entropy", |e, j| secret_ids(e, j, created_tasks(e).collect())),
    ("taskx.create.poll-positive", |e, j| {
        for it in all(e) {
            let Some(interval) = it.task.get("pollIntervalMs") else { continue };
            let is_number = interval.is_i64() || interval.is_u64();
            let found = || members(it.task, &["pollIntervalMs"]);
            j.check_subject(is_number && interval.as_i64() != Some(0), it.id(), it.message, found);
            j.at_level_if(interval.as_i64() == Some(0), Level::Should);
        }
    }),
    ("taskx.create.mrtr-first", |e, j| {
        let is_clean = |it: &Value| it.get("inputRequests").is_none() && it.get("requestState").is_none();
        each(created_tasks(e), j, is_clean, |it| members(it, &["inputRequests", "requestState"]));
    }),
    ("taskx.get.result-complete", |e, j| {
        each(got(e), j, |it| it["resultType"] == "complete", |it| members(it, &["resultType"]))
    }),
    ("taskx.get.working", |e, j| {
        with_status(e, j, "working", |it, _| {
            ["result", "error", "inputRequests"].iter().all(|key| it.get(*key).is_none())
        })
    }),
    ("taskx.get.input-required", |e, j| with_status(e, j, "input_required", can_be_answered)),
    ("taskx.get.completed", |e, j| {
        with_status(e, j, "completed", |it, _| it["result"].is_object() && it["result"]["content"].is_array())
    }),
    ("taskx.get.failed", |e, j| {
        with_status(e, j, "failed", |it, _| it["error"]["code"].is_i64() && it["error"]["message"].is_string())
    }),
    ("taskx.get.failed-message", |e, j| {
        with_status(e, j, "failed", |it, _| it["statusMessage"].as_str().is_some_and(|it| !it.is_empty()))
    }),
    ("taskx.get.iserror-completed", |e, j| {
        let errs = |it: &Seen<'_>| it.task["result"]["isError"] == true || it.status() == "failed";
        let is_right = |it: &Value| it["status"] == "completed" || it.get("result").is_none();
        each(details(e).filter(errs), j, is_right, |it| members(it, &["status", "result"]));
    }),
    ("taskx.get.unknown-32602", |e, j| error_code(e, j, "unknown-names/task/get", &[-32602])),
    ("taskx.get.no-declaration-32021", |e, j| {
        for call in e.case("tasks/undeclared").reached() {
            refuses(j, &call, call.error_code() == Some(-32602) && call.request.case != Some("tasks/undeclared/known"));
        }
    }),
    ("taskx.get.terminal-final", |e, j| is_final(got(e), j)),
    ("taskx.get.timestamps", |e, j| {
        let holds = |it: &Value| {
            let is_ttl = it["ttlMs"].is_number() || it.get("ttlMs") == Some(&Value::Null);
            is_time(&it["createdAt"]) && is_time(&it["lastUpdatedAt"]) && is_ttl
        };
        each(all(e), j, holds, |it| members(it, &["createdAt", "lastUpdatedAt", "ttlMs"]));
    }),
    ("taskx.get.ttl-not-early", |e, j| {
        let cancelled: HashSet<_> = e.calls_of("tasks/cancel").map(|call| task_id(&call)).collect();
        let begun: HashMap<_, _> = created_tasks(e).map(|it| (it.id(), it)).collect();
        let mut ended: HashMap<&str, u64> = HashMap::new();
        for call in gets_of_tasks(e).filter(|call| !cancelled.contains(task_id(call))) {
            let (id, Some(response)) = (task_id(&call), call.response) else { continue };
            let age = begun.get(id).map(|it| response.time.saturating_sub(it.message.time).as_millis());
            if let (Some(ttl), Some(age)) = (ended.get(id), age)
                && age < u128::from(*ttl)
            {
                j.check_at(call.error_code() != Some(-32602), Some(id), call.places(), || call.answer_text());
            }
            let Some(task) = call.result().filter(|it| it["status"].as_str().is_some_and(is_ended)) else { continue };
            ended.insert(id, task["ttlMs"].as_u64().unwrap_or(if task["ttlMs"].is_null() { u64::MAX } else { 0 }));
        }
        j.untested("no task was read again after its end");
    }),
    ("taskx.get.keys-unique-lifetime", |e, j| {
        let mut requests: HashMap<(&str, &str), &Value> = HashMap::new();
        for it in details(e) {
            for (key, request) in it.task["inputRequests"].as_object().into_iter().flatten() {
                let first = *requests.entry((it.id(), key)).or_insert(request);
                j.check_subject(first == request, key, it.message, || format!("another request: {}", shown(request)));
            }
        }
    }),
    ("taskx.get.no-request-state", |e, j| {
        each(got(e), j, |it| it.get("requestState").is_none(), |it| members(it, &["requestState"]))
    }),
    ("taskx.get.no-related-task-meta", |e, j| {
        let is_related = |it: &Value| it["_meta"].get(META_RELATED_TASK).is_some();
        each(got(e), j, |it| !is_related(it) && !is_related(&it["result"]), |_| "`related-task` in `_meta`".to_owned());
    }),
    ("taskx.update.ack-empty", |e, j| acknowledged(e, j, "tasks/update")),
    ("taskx.update.unknown-keys-ignored", |e, j| e.case("tasks/unknown-key").reached().must_get(j, Call::has_result)),
    ("taskx.update.unknown-id", |e, j| error_code(e, j, "unknown-names/task/update", &[-32602])),
    ("taskx.cancel.ack-empty", |e, j| acknowledged(e, j, "tasks/cancel")),
    ("taskx.cancel.unknown-id", |e, j| error_code(e, j, "unknown-names/task/cancel", &[-32602])),
    ("taskx.removed.result-list", |e, j| {
        error_code(e, j, "tasks/removed/result", &[-32601]);
        for call in e.case("tasks/removed/list").reached() {
            j.check_code(&[-32601], &call);
            j.at_level_if(call.error_code() != Some(-32601), Level::Derived);
        }
    }),
    ("taskx.notify.needs-declaration", |e, j| {
        for call in e.case("tasks/undeclared-listen").filter(|call| !call.is_refused_elsewhere()) {
            let is_acknowledged = connection(e, call.request.place).is_some_and(|connection| {
                connection.on_the_way(&call).any(|it| it.method() == Some("notifications/subscriptions/acknowledged"))
            });
            if call.response.is_some() || is_acknowledged {
                refuses(j, &call, call.error_code().is_none());
            }
        }
    }),
    ("taskx.notify.full-task", |e, j| {
        let is_full = |it: &Value| {
            let payload = match it["status"].as_str() {
                Some("completed") => it["result"].is_object(),
                Some("failed") => it["error"].is_object(),
                Some("input_required") => it["inputRequests"].is_object(),
                _ => true,
            };
            is_flat(it) && payload
        };
        each(notified(e), j, is_full, shown);
        j.untested = j.untested.take().map(|_| "the server sent no `notifications/tasks`".to_owned());
    }),
    ("taskx.notify.no-progress-log", |e, j| {
        for call in e.calls_of("subscriptions/listen") {
            let Some(connection) = connection(e, call.request.place).filter(|_| has_task_ids(&call)) else { continue };
            let is_foreign = |it: &str| matches!(it, "notifications/progress" | "notifications/message");
            let mut found = call.http.into_iter().flat_map(|http| connection.messages_of(http));
            let foreign = found.find(|it| it.method().is_some_and(is_foreign));
            j.check(foreign.is_none(), foreign.unwrap_or(call.request), || "progress or a log message");
        }
    }),
    ("taskx.header.name-mismatch", |e, j| {
        e.case("tasks/other-name")
            .reached()
            .must_get(j, |call| call.status() == Some(400) && call.error_code() == Some(-32020))
    }),
    ("taskx.header.match-accepted", |e, j| {
        gets_of_tasks(e).responded().must_get(j, |call| call.error_code() != Some(-32020))
    }),
    ("taskx.era.not-under-legacy", |e, j| {
        for connection in &e.connections {
            let mut calls = connection.calls();
            let declared = format!("/params/capabilities/extensions/{}", TASKS_EXTENSION.replace('/', "~1"));
            if !calls.any(|call| call.method() == "initialize" && !call.request.at(&declared).is_null()) {
                continue;
            }
            for call in calls.filter(|call| call.method() == CALL && call.request.params().get("task").is_none()) {
                let Some(result) = call.result() else { continue };
                let is_task = is_created(result) || result.get("task").is_some();
                j.check_at(!is_task, None, call.places(), || "a task");
            }
        }
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.is_modern() || !material.has_extension(TASKS_EXTENSION) {
        return Vec::new();
    }
    let unknown = material.unknown_name();
    let declared = json!({ "extensions": { TASKS_EXTENSION: {} } });
    let case = |name: &str, method: &str| {
        let mut params = json!({ "taskId": unknown });
        if method == "tasks/update" {
            params["inputResponses"] = json!({});
        }
        Case::request(name, CaseGroup::Negative, method, params)
    };
    let mut cases = Vec::new();
    for kind in ["get", "update", "cancel"] {
        let method = format!("tasks/{kind}");
        let named = case(&format!("unknown-names/task/{kind}"), &method);
        cases.push(named.meta(META_CLIENT_CAPABILITIES, Some(declared.clone())));
        cases.push(case(&format!("tasks/undeclared/{kind}"), &method));
    }
    for kind in ["result", "list"] {
        let removed = case(&format!("tasks/removed/{kind}"), &format!("tasks/{kind}"));
        cases.push(removed.meta(META_CLIENT_CAPABILITIES, Some(declared.clone())));
    }
    if material.is_http() {
        let other = case("tasks/other-name", GET).header(NAME_HEADER, "rehearse-other");
        cases.push(other.meta(META_CLIENT_CAPABILITIES, Some(declared)));
    }
    let listen = json!({ "notifications": { "taskIds": [unknown] } });
    cases.push(
        Case::request("tasks/undeclared-listen", CaseGroup::Negative, "subscriptions/listen", listen).unanswered(),
    );
    cases
}

fn is_declared(call: &Call<'_>) -> bool {
    call.request.params()["_meta"][META_CLIENT_CAPABILITIES]["extensions"].get(TASKS_EXTENSION).is_some()
}

/// Whether the result of a call is a created task, rightly marked or not.
fn is_created(result: &Value) -> bool {
    result["resultType"] == "task" || (result["taskId"].is_string() && result["status"].is_string())
}

/// The created tasks, each with the call that created it.
fn created<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    evidence.results_of(CALL).filter(|(_, result)| is_created(result))
}

fn created_tasks<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Seen<'e>> {
    created(evidence).filter_map(|(call, task)| Some(Seen { task, message: call.response? }))
}

fn gets_of_tasks<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Call<'e>> {
    evidence.calls_of(GET).plain()
}

fn task_id<'e>(call: &Call<'e>) -> &'e str {
    call.request.params()["taskId"].as_str().unwrap_or_default()
}

fn got<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Seen<'e>> {
    gets_of_tasks(evidence).filter_map(|call| Some(Seen { task: call.result()?, message: call.response? }))
}

fn notified<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Seen<'e>> {
    evidence.notifications("notifications/tasks").map(|message| Seen { task: message.params(), message })
}

fn details<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Seen<'e>> {
    got(evidence).chain(notified(evidence))
}

fn all<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Seen<'e>> {
    created_tasks(evidence).chain(details(evidence))
}

fn is_flat(task: &Value) -> bool {
    task["taskId"].as_str().is_some_and(|id| !id.is_empty())
        && task["status"].as_str().is_some_and(is_status)
        && task.get("ttlMs").is_some()
        && ["task", "ttl", "pollInterval"].iter().all(|name| task.get(*name).is_none())
}

/// Checks every task with a status; `holds` gets the task and the capabilities of the client that got it.
fn with_status(e: &Evidence<'_>, j: &mut Judgement, status: &str, holds: impl Fn(&Value, &Value) -> bool) {
    for call in gets_of_tasks(e) {
        let Some(task) = call.result().filter(|task| task["status"] == status) else { continue };
        let capabilities = &call.request.params()["_meta"][META_CLIENT_CAPABILITIES];
        let id = task["taskId"].as_str();
        if j.violations.last().is_none_or(|it| it.subject.as_deref() != id) {
            let found = || members(task, &["result", "error", "statusMessage", "inputRequests"]);
            j.check_at(holds(task, capabilities), id, call.places(), found);
        }
    }
    j.untested(format!("no task with the status `{status}` was seen"));
}

fn can_be_answered(task: &Value, capabilities: &Value) -> bool {
    task["inputRequests"].as_object().is_some_and(|requests| {
        requests.values().all(|request| {
            let needed = ASKED.iter().find(|(method, _)| request["method"] == *method);
            needed.is_some_and(|(_, capability)| capabilities.get(*capability).is_some())
        })
    })
}

fn names_others(call: &Call<'_>) -> bool {
    let required = call.response.map(|it| it.at("/error/data/requiredCapabilities"));
    required.and_then(Value::as_object).is_some_and(|it| !it.is_empty() && !it.contains_key("extensions"))
}

fn names_extension(call: &Call<'_>) -> bool {
    let data = call.response.map_or(&Value::Null, |it| it.at("/error/data/requiredCapabilities/extensions"));
    data.get(TASKS_EXTENSION).is_some()
}

/// Checks that a client without the extension is refused.
fn refuses(j: &mut Judgement, call: &Call<'_>, is_excused: bool) {
    let is_missing = call.error_code() == Some(MISSING);
    j.check_answer(is_missing && names_extension(call), call, || match is_missing {
        true => "-32021 without `data.requiredCapabilities.extensions`".to_owned(),
        false => call.answer_text(),
    });
    if is_missing && !names_extension(call) {
        j.at_level(Level::Derived);
    } else if is_excused {
        j.at_level(Level::Should);
    }
}

/// Checks the calls without the extension of tools that became tasks with it. `holds` also gets whether a task of the
/// tool was completed; `None` says nothing.
fn undeclared_calls(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Call<'_>, bool) -> Option<bool>) {
    let tool = |call: &Call<'_>| call.request.params()["name"].as_str().unwrap_or_default().to_owned();
    let completed: HashSet<_> = got(e)
        .filter(|it| it.status() == "completed" && it.task["result"]["isError"] != true)
        .map(|it| it.id())
        .collect();
    let mut tools: HashMap<String, bool> = HashMap::new();
    for (call, task) in created(e).filter(|(call, _)| is_declared(call)) {
        let is_completed = task["taskId"].as_str().is_some_and(|id| completed.contains(id));
        *tools.entry(tool(&call)).or_default() |= is_completed;
    }
    // What other probes send may be refused for other reasons.
    let is_plain = |call: &Call<'_>| call.request.case.is_none_or(|case| case.starts_with("tasks/"));
    let calls = e.calls_of(CALL).filter(|call| is_plain(call) && !is_declared(call));
    for call in calls.filter(|call| !call.is_refused_elsewhere()) {
        let name = tool(&call);
        let Some(holds) = tools.get(&name).and_then(|is_completed| holds(&call, *is_completed)) else { continue };
        j.check_at(holds, Some(&name), call.places(), || call.answer_text());
    }
    j.untested(NO_TASK);
}

fn acknowledged(e: &Evidence<'_>, j: &mut Judgement, method: &str) {
    for (call, result) in e.results_of(method) {
        let is_empty =
            result.as_object().is_some_and(|it| it.keys().all(|key| matches!(&**key, "resultType" | "_meta")));
        j.check_at(is_empty && result["resultType"] == "complete", None, call.places(), || shown(result));
    }
    j.untested(NO_TASK);
}

fn has_task_ids(call: &Call<'_>) -> bool {
    call.request.params()["notifications"]["taskIds"].is_array()
}
