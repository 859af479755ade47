//! Calls of tools.

use std::collections::{HashMap, HashSet};

use rehearse_document::json_schema::compile;
use serde_json::{Value, json};

use super::super::Judge;
use super::super::common::{items, shown};
use super::cancel::{closes, gives_up};
use super::{completes, ends, fetched, goes_on, if_sent};
use crate::Message;
use crate::areas::query::{Calls, Query};

const LIST: &str = "tools/list";
const CALL: &str = "tools/call";
const PARAMS: [&str; 6] = ["name", "arguments", "_meta", "task", "inputResponses", "requestState"];

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-tools.call.known-name", |e, j| {
        let names: HashSet<_> = items(e, LIST).map(|(_, name, _)| name).collect();
        // A list that the client has not read to its end may have the tool.
        let is_whole = e.results_of(LIST).any(|(_, page)| !page["nextCursor"].is_string());
        for call in e.calls_of(CALL).filter(|_| is_whole) {
            let Some(name) = call.text("/params/name") else { continue };
            j.check_subject(names.contains(name), name, call.request, || "a tool that no list has");
        }
    }),
    ("client-tools.call.arguments-object", |e, j| {
        let is_right = |it: &Message<'_>| it.params().get("arguments").is_none_or(Value::is_object);
        let found = |it: &Message<'_>| format!("`arguments: {}`", shown(it.at("/params/arguments")));
        e.calls_of(CALL).requests().must(j, is_right, found);
    }),
    ("client-tools.call.arguments-valid", |e, j| {
        // A schema that a tool no longer has, or has got since, may fit.
        let mut schemas: HashMap<&str, Vec<&Value>> = HashMap::new();
        for (tool, name, _) in items(e, LIST) {
            schemas.entry(name).or_default().push(&tool["inputSchema"]);
        }
        for call in e.calls_of(CALL) {
            let name = call.text("/params/name").unwrap_or_default();
            let none = json!({});
            let arguments = call.request.params().get("arguments").unwrap_or(&none);
            let Some(schemas) = schemas.get(name).filter(|_| arguments.is_object()) else { continue };
            let validators: Vec<_> = schemas.iter().filter_map(|schema| compile(schema).ok()).collect();
            let errors = validators.iter().map(|it| it.validate(arguments).err().map(|error| error.to_string()));
            let errors: Vec<_> = errors.collect();
            let Some(first) = errors.first() else { continue };
            let is_valid = errors.iter().any(Option::is_none);
            j.check_subject(is_valid, name, call.request, || first.clone().unwrap_or_default());
        }
    }),
    ("client-tools.call.no-extra-params", |e, j| {
        for call in e.calls_of(CALL) {
            let mut names = call.request.params().as_object().into_iter().flatten().map(|(key, _)| key);
            let more = names.find(|name| !PARAMS.contains(&name.as_str()));
            j.check(more.is_none(), call.request, || format!("`{}`", more.map(String::as_str).unwrap_or_default()));
        }
    }),
    ("client-tools.call.task-only-if-declared", |e, j| {
        let is_declared = e.facts.declares("tasks/requests/tools/call");
        let support: HashMap<_, _> =
            items(e, LIST).map(|(tool, name, _)| (name, tool["execution"]["taskSupport"].as_str())).collect();
        for call in e.calls_of(CALL).filter(|_| !e.facts.capabilities.is_null()) {
            let name = call.text("/params/name").unwrap_or_default();
            let support = support.get(name).copied();
            let is_task = call.request.params().get("task").is_some();
            let wrong = match (is_declared, support, is_task) {
                (false, _, true) => Some("a task, and the server does not declare `tasks.requests.tools.call`"),
                (true, Some(None | Some("forbidden")), true) => Some("a task, and the tool does not support it"),
                (true, Some(Some("required")), false) => Some("no `task`, and the tool requires it"),
                _ => None,
            };
            j.check_subject(wrong.is_none(), name, call.request, || wrong.unwrap_or_default().to_owned());
        }
    }),
    ("client-tools.list.tolerates-no-description", |e, j| completes(e, j, "plain-tools")),
    ("client-tools.list.tolerates-odd-names", |e, j| completes(e, j, "odd-names")),
    ("client-tools.list.duplicate-names", |e, j| completes(e, j, "same-names")),
    ("client-tools.list.bad-schema-isolated", |e, j| completes(e, j, "broken-schema")),
    ("client-tools.list.unknown-dialect", |e, j| completes(e, j, "unknown-dialect")),
    ("client-tools.list.deep-schema", |e, j| completes(e, j, "huge-schema")),
    ("client-tools.list.no-network-ref", |e, j| {
        fetched(e, j, "ref", |it| Some(format!("a request for {}, to which a `$ref` points", it.target)))
    }),
    ("client-tools.result.link-not-auto-fetched", |e, j| {
        fetched(e, j, "link", |it| Some(format!("a request for {}", it.target)))
    }),
    ("client-tools.result.all-content-types", |e, j| if_sent(e, j, CALL, completes, "content")),
    ("client-tools.result.unknown-content-type", |e, j| if_sent(e, j, CALL, ends, "content-unknown")),
    ("client-tools.result.empty-content", |e, j| if_sent(e, j, CALL, goes_on, "content-empty")),
    ("client-tools.result.any-json-structured", |e, j| if_sent(e, j, CALL, completes, "structured")),
    ("client-tools.timeout.cancels", |e, j| {
        gives_up(e, j, CALL, "silent-call");
        gives_up(e, j, CALL, "slow-call");
        closes(e, j, |method| method == CALL);
    }),
];
