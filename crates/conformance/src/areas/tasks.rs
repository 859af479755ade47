//! The tasks of 2025-11-25.

use rehearse_protocol::names::{META_RELATED_TASK, SESSION_HEADER};
use std::collections::{HashMap, HashSet};

use rehearse_document::json_schema::accepts;
use serde_json::{Value, json};

use super::Judge;
use super::common::{error_code, items, on_one_stream, readings, shown};
use super::query::{Calls, Messages, Parts, Query, elements};
use super::task::{NO_TASK, Seen, each, is_ended, is_final, is_status, is_time, members, secret_ids};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Kind, Material};

const CALL: &str = "tools/call";
const GET: &str = "tasks/get";
const RESULT: &str = "tasks/result";
const LIST: &str = "tasks/list";
const CANCEL: &str = "tasks/cancel";
const STATUS: &str = "notifications/tasks/status";
/// How much longer than the slowest list the creation of a task may take.
const SLOW: std::time::Duration = std::time::Duration::from_secs(2);

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("tasks.caps.shape", |e, j| {
        let parts = ["", "/list", "/cancel", "/requests", "/requests/tools", "/requests/tools/call"];
        let is_right = |tasks: &Value| parts.iter().filter_map(|part| tasks.pointer(part)).all(Value::is_object);
        e.results_of("initialize").plain().at("capabilities").at("tasks").must(j, is_right, shown);
    }),
    ("tasks.create.result", |e, j| {
        augmented(e)
            .filter(|call| call.has_result())
            .must_get(j, |call| call.result().is_some_and(|it| it["task"].is_object()))
    }),
    ("tasks.create.prompt", |e, j| {
        let slowest = e.calls_of("tools/list").filter_map(|call| call.took()).max().unwrap_or_default();
        for (call, _) in created(e) {
            let took = call.took().unwrap_or_default();
            j.check_answer(took < slowest + SLOW, &call, || format!("{} ms", took.as_millis()));
        }
    }),
    ("tasks.create.id-string", |e, j| {
        let is_id = |it: &Value| it["taskId"].as_str().is_some_and(|id| !id.is_empty());
        each(created_tasks(e), j, is_id, |it| members(it, &["taskId"]));
    }),
    ("tasks.create.id-unique", |e, j| {
        let mut ids = HashSet::new();
        for it in created_tasks(e).filter(|it| !it.id().is_empty()) {
            j.check_subject(ids.insert(it.id()), it.id(), it.message, || "it twice");
        }
    }),
    ("tasks.create.id-entropy", |e, j| secret_ids(e, j, created_tasks(e).collect())),
    ("tasks.create.begins-working", |e, j| {
        each(created_tasks(e), j, |it| it["status"] == "working", |it| members(it, &["status"]))
    }),
    ("tasks.create.timestamps", |e, j| {
        let holds = |it: &Value| is_time(&it["createdAt"]) && is_time(&it["lastUpdatedAt"]);
        each(all(e), j, holds, |it| members(it, &["createdAt", "lastUpdatedAt"]));
    }),
    ("tasks.create.ttl", |e, j| {
        let holds = |it: &Value| it.get("ttl").is_some_and(|ttl| ttl.is_number() || ttl.is_null());
        each(got(e), j, holds, |it| members(it, &["ttl"]));
    }),
    ("tasks.create.related-task", related),
    ("tasks.neg.forbidden-32601", |e, j| {
        for call in e.case("tasks/forbidden-call").reached() {
            j.check_code(&[-32601], &call);
        }
    }),
    ("tasks.neg.required-32601", |e, j| {
        let required: HashSet<_> = items(e, "tools/list")
            .filter(|(tool, ..)| tool["execution"]["taskSupport"] == "required")
            .map(|(_, name, _)| name)
            .collect();
        let plain = e.calls_of(CALL).filter(|it| it.request.params().get("task").is_none() && it.response.is_some());
        plain
            .filter(|call| !call.is_refused_elsewhere())
            .filter(|call| call.request.params()["name"].as_str().is_some_and(|name| required.contains(name)))
            .must_get(j, |call| matches!(call.error_code(), Some(-32601 | -32600)));
    }),
    ("tasks.get.works", |e, j| {
        let cancelled: HashSet<_> = normal(e, CANCEL).map(|call| task_id(&call)).collect();
        let expiry = expiry(e);
        for call in normal(e, GET).reached() {
            let id = task_id(&call);
            let Some(end) = expiry.get(id).filter(|_| !cancelled.contains(id)) else { continue };
            let is_expired = end.is_some_and(|end| call.response.is_some_and(|it| it.time >= end));
            if !is_expired || call.has_result() {
                let is_own = call.result().is_some_and(|it| it["taskId"] == id);
                let found = || call.result().map_or_else(|| call.answer_text(), |it| members(it, &["taskId"]));
                j.check_at(is_own, Some(id), call.places(), found);
            }
        }
    }),
    ("tasks.get.unknown-32602", |e, j| error_code(e, j, "unknown-names/task", &[-32602])),
    ("tasks.get.no-related-meta", |e, j| {
        let found = |it: &Value| shown(&it[META_RELATED_TASK]);
        for method in [GET, LIST, CANCEL] {
            let metas = e.results_of(method).by_method().at("_meta");
            metas.must(j, |it| it.get(META_RELATED_TASK).is_none(), found);
        }
    }),
    ("tasks.get.param-wins", |e, j| {
        let known: HashSet<_> = got(e).map(|it| it.id()).collect();
        for call in e.case("tasks/other-meta").reached() {
            let id = task_id(&call);
            if known.contains(id) {
                let found = || call.result().map_or_else(|| call.answer_text(), |it| members(it, &["taskId"]));
                j.check_answer(call.result().is_some_and(|it| it["taskId"] == id), &call, found);
            }
        }
    }),
    ("tasks.status.transitions", |e, j| is_final(answered(e), j)),
    ("tasks.status.enum", |e, j| {
        each(all(e), j, |it| it["status"].as_str().is_some_and(is_status), |it| members(it, &["status"]))
    }),
    ("tasks.status.failed-has-message", |e, j| {
        let holds = |it: &Value| it["statusMessage"].as_str().is_some_and(|it| !it.is_empty());
        each(got(e).filter(|it| it.status() == "failed"), j, holds, |it| members(it, &["statusMessage"]));
    }),
    ("tasks.status.iserror-is-failed", |e, j| {
        let status = ends(e);
        for (call, _) in e.results_of(RESULT).filter(|(_, result)| result["isError"] == true) {
            let Some(status) = status.get(task_id(&call)).filter(|status| **status != "cancelled") else { continue };
            j.check_at(*status == "failed", Some(task_id(&call)), call.places(), || format!("{status:?}"));
        }
    }),
    ("tasks.result.blocks", blocks),
    ("tasks.result.same-shape", same_shape),
    ("tasks.result.error-passthrough", |e, j| {
        let status = ends(e);
        let failed = normal(e, RESULT).reached().filter(|call| status.get(task_id(call)) == Some(&"failed"));
        let is_error = |it: &Value| it["isError"] == true;
        let failed = failed.by(|call| Some(task_id(call)));
        failed.must_get(j, |call| call.has_error() || call.result().is_some_and(is_error));
    }),
    ("tasks.result.related-task", |e, j| {
        for (call, result) in e.results_of(RESULT) {
            let related = &result["_meta"][META_RELATED_TASK]["taskId"];
            j.check_at(related == task_id(&call), Some(task_id(&call)), call.places(), || shown(related));
        }
    }),
    ("tasks.list.includes", includes),
    ("tasks.list.cursor-32602", |e, j| error_code(e, j, "tasks/bad-cursor", &[-32602])),
    ("tasks.list.undeclared-32601", |e, j| error_code(e, j, "tasks/undeclared-list", &[-32601])),
    ("tasks.list.no-auth-no-list", |e, j| {
        for (call, _) in e.results_of("initialize").plain() {
            let Some(http) = call.http.filter(|_| j.violations.is_empty()) else { continue };
            let is_known = http.request_header("authorization").or(http.header(SESSION_HEADER)).is_some();
            j.check_at(is_known, None, call.places(), || "neither a session nor authorization");
        }
    }),
    ("tasks.cancel.works", cancels),
    ("tasks.cancel.terminal-32602", |e, j| error_code(e, j, "tasks/cancel-ended", &[-32602])),
    ("tasks.notify.status-params", |e, j| {
        let is_whole = |it: &Value| {
            ["taskId", "status", "createdAt", "lastUpdatedAt"].iter().all(|key| it[*key].is_string())
                && it.get("ttl").is_some_and(|ttl| ttl.is_number() || ttl.is_null())
        };
        e.notifications(STATUS).pointer("/params").must(j, is_whole, shown);
    }),
    ("tasks.progress.token-lives", |e, j| {
        let mut ended: HashMap<&str, Seen<'_>> = HashMap::new();
        for it in answered(e).filter(|it| is_ended(it.status())) {
            ended.entry(it.id()).or_insert(it);
        }
        let token = |connection: usize, token: &Value| format!("{connection} {token}");
        let tasks: HashMap<_, _> = created(e)
            .filter_map(|(call, task)| {
                let own = call.request.params()["_meta"].get("progressToken")?;
                Some((token(call.request.place.connection, own), (task["taskId"].as_str()?, call.response?.place)))
            })
            .collect();
        for progress in e.notifications("notifications/progress") {
            let key = token(progress.place.connection, &progress.params()["progressToken"]);
            let Some((id, _)) = tasks.get(&key).filter(|(_, created)| *created < progress.place) else { continue };
            let end = ended.get(id).filter(|end| on_one_stream(end.message, progress));
            let found = || format!("progress of the task {id} after its end");
            j.check(end.is_none_or(|end| end.message.place >= progress.place), progress, found);
        }
        j.untested("no task reported progress");
    }),
    ("tasks.get.no-sse", |e, j| {
        for call in normal(e, GET).responded() {
            let Some(http) = call.http.filter(|_| j.violations.is_empty()) else { continue };
            j.check_at(!http.is_stream(), None, call.places(), || "an event stream");
        }
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if material.is_modern() || !material.declares("tasks") {
        return Vec::new();
    }
    let case = |name: &str, method: &str, params: Value| Case::request(name, CaseGroup::Negative, method, params);
    let unknown = json!({ "taskId": material.unknown_name() });
    let mut cases = Vec::new();
    if material.declares("tasks/requests/tools/call") {
        cases.push(case("unknown-names/task/get", GET, unknown.clone()));
        cases.push(case("unknown-names/task/result", RESULT, unknown.clone()));
        if material.declares("tasks/cancel") {
            cases.push(case("unknown-names/task/cancel", CANCEL, unknown));
        }
    }
    let bad = json!({ "cursor": "rehearse-invalid-cursor" });
    cases.push(match material.declares("tasks/list") {
        true => case("tasks/bad-cursor", LIST, bad),
        false => case("tasks/undeclared-list", LIST, json!({})),
    });
    cases
}

/// The calls that ask for a task.
fn augmented<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Call<'e>> {
    normal(evidence, CALL).filter(|call| call.request.params()["task"].is_object())
}

/// The created tasks, each with the call that created it.
fn created<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    augmented(evidence).filter_map(|call| Some((call, call.result()?.get("task").filter(|it| it.is_object())?)))
}

fn created_tasks<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Seen<'e>> {
    created(evidence).filter_map(|(call, task)| Some(Seen { task, message: call.response? }))
}

/// The requests of a method that are normal work.
fn normal<'e>(evidence: &'e Evidence<'_>, method: &'e str) -> impl Iterator<Item = Call<'e>> {
    evidence.calls_of(method).plain()
}

fn task_id<'e>(call: &Call<'e>) -> &'e str {
    call.request.params()["taskId"].as_str().unwrap_or_default()
}

fn results<'e>(evidence: &'e Evidence<'_>, method: &'e str) -> impl Iterator<Item = Seen<'e>> {
    normal(evidence, method).filter_map(|call| Some(Seen { task: call.result()?, message: call.response? }))
}

fn got<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Seen<'e>> {
    results(evidence, GET)
}

fn notified<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Seen<'e>> {
    evidence.notifications(STATUS).map(|message| Seen { task: message.params(), message })
}

/// The tasks in answers, whose order is known.
fn answered<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Seen<'e>> {
    created_tasks(evidence).chain(got(evidence)).chain(results(evidence, CANCEL))
}

fn all<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Seen<'e>> {
    let listed =
        results(evidence, LIST).flat_map(|it| elements(&it.task["tasks"]).map(move |task| Seen { task, ..it }));
    answered(evidence).chain(listed).chain(notified(evidence))
}

/// The last status of each task.
fn ends<'e>(evidence: &'e Evidence<'_>) -> HashMap<&'e str, &'e str> {
    got(evidence).map(|it| (it.id(), it.status())).collect()
}

/// When each created task may go; `None` never.
fn expiry<'e>(evidence: &'e Evidence<'_>) -> HashMap<&'e str, Option<std::time::Duration>> {
    let ttl = |it: &Seen<'_>| match &it.task["ttl"] {
        Value::Null => None,
        ttl => Some(it.message.time + std::time::Duration::from_millis(ttl.as_u64().unwrap_or_default().min(1 << 40))),
    };
    created_tasks(evidence).map(|it| (it.id(), ttl(&it))).collect()
}

/// What the server asks while `tasks/result` is under way and no call without a task is; and progress after the creation.
fn related(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in &e.connections {
        let tasks: HashMap<String, (&str, crate::EventRef)> = connection
            .calls()
            .filter_map(|call| {
                let token = call.request.params()["_meta"].get("progressToken")?;
                let id = call.result()?.get("task")?["taskId"].as_str()?;
                Some((token.to_string(), (id, call.response?.place)))
            })
            .collect();
        // The requests that have no response yet: the method, or none for a call of another kind.
        let mut open: HashMap<String, Option<&str>> = HashMap::new();
        for message in &connection.messages {
            let id = message.id().map(Value::to_string).unwrap_or_default();
            let related = message.params()["_meta"][META_RELATED_TASK]["taskId"].as_str();
            match (message.is_from_server(), message.kind, message.method()) {
                (false, Kind::Request, Some(RESULT)) => {
                    open.insert(id, message.params()["taskId"].as_str());
                }
                (false, Kind::Request, Some(CALL)) if message.params().get("task").is_none() => {
                    open.insert(id, None);
                }
                (true, Kind::Response, _) => drop(open.remove(&id)),
                (true, Kind::Request, Some("elicitation/create" | "sampling/createMessage"))
                    if !open.is_empty() && open.values().all(Option::is_some) =>
                {
                    let is_known = related.is_some_and(|id| open.values().any(|it| *it == Some(id)));
                    j.check(is_known || (open.len() > 1 && related.is_some()), message, || format!("{related:?}"));
                }
                (true, Kind::Notification, Some("notifications/progress")) => {
                    let token = message.params()["progressToken"].to_string();
                    if let Some((id, _)) = tasks.get(&token).filter(|(_, created)| *created < message.place) {
                        j.check(related == Some(*id), message, || format!("{related:?}"));
                    }
                }
                _ => {}
            }
        }
    }
    j.untested("no task asked for anything or reported progress");
}

/// An answer of `tasks/result` must not be followed by a task that still works.
fn blocks(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in &e.connections {
        let mut status: HashMap<&str, &str> = HashMap::new();
        let mut early: HashMap<&str, Call<'_>> = HashMap::new();
        for call in connection.calls().plain() {
            let id = task_id(&call);
            match (call.method(), call.result()) {
                (CALL, Some(result)) => {
                    if let Some(id) = result["task"]["taskId"].as_str() {
                        status.insert(id, result["task"]["status"].as_str().unwrap_or_default());
                    }
                }
                (GET, Some(result)) => {
                    let now = result["status"].as_str().unwrap_or_default();
                    status.insert(id, now);
                    let answer = early.get(id).and_then(|call| call.response).map(|it| it.place);
                    if answer.is_some_and(|answer| answer < call.request.place)
                        && let Some(early) = early.remove(id)
                    {
                        let found = || format!("{}, and then the status {now:?}", early.answer_text());
                        j.check_at(is_ended(now), Some(id), [early.places(), call.places()].concat(), found);
                    }
                }
                (RESULT, _)
                    if call.response.is_some()
                        && !call.is_refused_elsewhere()
                        && status.get(id).is_some_and(|it| !is_ended(it)) =>
                {
                    early.insert(id, call);
                }
                _ => {}
            }
        }
    }
    j.untested("`tasks/result` was not answered in time, or no task worked long enough");
}

fn same_shape(e: &Evidence<'_>, j: &mut Judgement) {
    let schemas: HashMap<_, _> =
        items(e, "tools/list").filter_map(|(tool, name, _)| Some((name, tool.get("outputSchema")?))).collect();
    let tools: HashMap<_, _> = created(e)
        .filter_map(|(call, task)| Some((task["taskId"].as_str()?, call.request.params()["name"].as_str()?)))
        .collect();
    let status = ends(e);
    for call in normal(e, RESULT).reached() {
        let id = task_id(&call);
        if status.get(id) != Some(&"completed") || call.error_code() == Some(-32602) {
            continue;
        }
        let schema = tools.get(id).and_then(|tool| schemas.get(tool));
        let fits = |result: &Value| match schema.filter(|_| result["isError"] != true) {
            Some(schema) => accepts(schema, &result["structuredContent"]) != Some(false),
            None => true,
        };
        let holds = call.result().is_some_and(|it| it["content"].is_array() && fits(it));
        j.check_at(holds, Some(id), call.places(), || call.result().map_or_else(|| call.answer_text(), shown));
    }
    j.untested("no task was completed in time");
}

/// The first whole reading of the list after a task was got.
fn includes(e: &Evidence<'_>, j: &mut Judgement) {
    let cancelled: HashSet<_> = normal(e, CANCEL).map(|call| task_id(&call)).collect();
    let expiry = expiry(e);
    let begins: Vec<_> = got(e).map(|it| (it.message.place, it.id())).collect();
    let readings = readings(e, LIST);
    let is_after = |call: &Call<'_>| {
        begins
            .first()
            .is_some_and(|(place, _)| *place < call.request.place && place.connection == call.request.place.connection)
    };
    let whole = readings.iter().find(|reading| {
        reading.pages.first().is_some_and(|(call, _)| is_after(call))
            && reading.pages.last().is_some_and(|(_, result)| !result["nextCursor"].is_string())
    });
    let Some((reading, (first, _))) = whole.and_then(|it| Some((it, it.pages.first()?))) else {
        j.untested(NO_TASK);
        return;
    };
    let tasks = reading.pages.iter().flat_map(|(_, result)| elements(&result["tasks"]));
    let listed: HashSet<_> = tasks.filter_map(|task| task["taskId"].as_str()).collect();
    for (place, id) in begins.iter().filter(|(place, _)| place.connection == first.request.place.connection) {
        let Some(end) = expiry.get(id).filter(|_| *place < first.request.place) else { continue };
        let is_expired = end.is_some_and(|end| first.response.is_some_and(|it| it.time >= end));
        let was_cancelled = cancelled.contains(id) && !listed.contains(id);
        if !is_expired && !was_cancelled {
            j.check_at(listed.contains(id), Some(id), first.places(), || "no such task");
        }
    }
}

fn cancels(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in &e.connections {
        let mut status: HashMap<&str, &str> = HashMap::new();
        let mut refused: HashMap<&str, Call<'_>> = HashMap::new();
        for call in connection.calls().plain() {
            let id = task_id(&call);
            match (call.method(), call.result()) {
                (CALL, Some(result)) => {
                    if let Some(id) = result["task"]["taskId"].as_str() {
                        status.insert(id, result["task"]["status"].as_str().unwrap_or_default());
                    }
                }
                (GET, Some(result)) => {
                    let now = result["status"].as_str().unwrap_or_default();
                    status.insert(id, now);
                    match refused.remove(id) {
                        Some(_) if is_ended(now) => j.untested("the task ended before it could be cancelled"),
                        Some(refused) => {
                            let found = || format!("{}, and then the status {now:?}", refused.answer_text());
                            j.check_at(false, Some(id), [refused.places(), call.places()].concat(), found);
                        }
                        None => {}
                    }
                }
                (CANCEL, result) if status.get(id).is_some_and(|it| !is_ended(it)) && !call.is_refused_elsewhere() => {
                    match result {
                        Some(result) => {
                            status.insert(id, "cancelled");
                            let found = || members(result, &["status"]);
                            j.check_at(result["status"] == "cancelled", Some(id), call.places(), found);
                        }
                        // The code of a task that has ended.
                        None if call.error_code() == Some(-32602) => drop(refused.insert(id, call)),
                        None if call.response.is_some() => {
                            j.check_at(false, Some(id), call.places(), || call.answer_text())
                        }
                        None => {}
                    }
                }
                _ => {}
            }
        }
    }
    j.untested("no task worked long enough");
}
