//! `server/discover`, and the stateless requests of 2026-07-28.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use super::{
    Judge,
    common::{LISTS, error_code, is_refused_elsewhere, readings, results, shown},
};
use crate::{Case, Evidence, Judgement, Lane, Level, Material};

const DISCOVER: &str = "server/discover";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const INFO: &str = "io.modelcontextprotocol/clientInfo";
const REMOVED: [&str; 4] = ["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("discover.method.implemented", |e, j| {
        for call in e.calls_of(DISCOVER).filter(|call| call.request.case.is_none() && call.response.is_some()) {
            j.check_call(call.error_code() != Some(-32601), &call);
        }
    }),
    ("discover.result.versions", |e, j| {
        each(e, j, "supportedVersions", |versions| {
            let mut all = versions.and_then(Value::as_array).into_iter().flatten();
            Some(all.any(|it| it == e.version.as_str()) && versions?.as_array()?.iter().all(Value::is_string))
        });
    }),
    ("discover.result.server-info", |e, j| {
        for (call, result) in results(e) {
            let info = result.pointer("/_meta/io.modelcontextprotocol~1serverInfo");
            let method = Some(call.method().to_owned());
            if !j.violations.iter().any(|it| it.subject == method) {
                j.check_at(info.is_some(), method, call.places(), || "none".to_owned());
            }
        }
    }),
    ("discover.result.capabilities-object", |e, j| {
        each(e, j, "capabilities", |it| Some(it.is_some_and(Value::is_object)))
    }),
    ("discover.caps.tools", |e, j| declared(e, j, "tools", "tools/list")),
    ("discover.caps.prompts", |e, j| declared(e, j, "prompts", "prompts/list")),
    ("discover.caps.resources", |e, j| declared(e, j, "resources", "resources/list")),
    ("discover.caps.logging", |e, j| {
        for message in e.notifications("notifications/message") {
            j.check(e.facts.declares("logging"), message, || "a log message".to_owned());
        }
    }),
    ("discover.caps.stable", stable),
    ("discover.caps.extension-names", |e, j| {
        extensions(e, j, |name, _| {
            name.split_once('/').is_some_and(|(prefix, name)| prefix.contains('.') && !name.is_empty())
        });
    }),
    ("discover.caps.extension-objects", |e, j| extensions(e, j, |_, settings| settings.is_object())),
    ("discover.caps.legacy-tasks-absent", |e, j| {
        each(e, j, "capabilities", |it| Some(it.is_none_or(|it| it.get("tasks").is_none())));
    }),
    ("discover.instructions.string", |e, j| each(e, j, "instructions", |it| it.map(Value::is_string))),
    ("discover.meta.missing-version-32602", missing_version),
    ("discover.meta.missing-capabilities-32602", |e, j| error_code(e, j, "meta-negative/no-capabilities", &[-32602])),
    ("discover.meta.wrong-types-32602", |e, j| error_code(e, j, "meta-negative/wrong-capabilities", &[-32602])),
    ("discover.meta.http-400", |e, j| {
        for case in ["meta-negative/no-capabilities", "meta-negative/wrong-capabilities"] {
            for call in e.case(case).filter(|call| call.status().is_some() && call.error_code().is_some()) {
                j.check_call(call.status() == Some(400), &call);
            }
        }
    }),
    ("discover.meta.clientinfo-optional", |e, j| works(e, j, "meta-negative/no-client-info")),
    ("discover.meta.unknown-capability-ok", |e, j| works(e, j, "meta-negative/unknown-capability")),
    ("discover.version.unsupported-32022", |e, j| {
        for call in e.case("meta-negative/version").filter(|call| call.response.is_some()) {
            let data = call.response.map_or(&Value::Null, |it| it.at("/error/data"));
            let is_complete =
                data["supported"].as_array().is_some_and(|it| !it.is_empty() && it.iter().all(Value::is_string))
                    && data["requested"].as_str().is_none_or(|it| it == "2999-01-01");
            j.check_answer(call.error_code() == Some(-32022) && is_complete, &call, || match call.error_code() {
                Some(-32022) => format!("`data: {}`", shown(data)),
                _ => call.answer_text(),
            });
        }
    }),
    ("discover.version.unsupported-http-400", |e, j| {
        for call in e.case("meta-negative/version").filter(|call| call.status().is_some()) {
            j.check_call(call.status() == Some(400), &call);
        }
    }),
    ("discover.version.supported-list-consistent", same_versions),
    ("discover.state.no-memory-of-meta", |e, j| error_code(e, j, "meta-negative/no-capabilities", &[-32602])),
    ("discover.state.no-session-id", |e, j| {
        for (_, http) in e.exchanges() {
            let Some(place) = http.response else { continue };
            let id = http.header("mcp-session-id");
            j.check_at(id.is_none(), None, vec![place], || format!("`Mcp-Session-Id: {}`", id.unwrap_or_default()));
        }
    }),
    ("discover.state.set-invariant-tools", |e, j| invariant(e, j, "tools/list")),
    ("discover.state.set-invariant-resources", |e, j| invariant(e, j, "resources/list")),
    ("discover.state.set-invariant-prompts", |e, j| invariant(e, j, "prompts/list")),
    ("discover.requests.none-from-server", |e, j| {
        let mut is_clean = true;
        for request in e.server_requests() {
            is_clean = false;
            j.check_subject(false, request.method().unwrap_or_default(), request, || "a request".to_owned());
        }
        if let (true, Some((call, _))) = (is_clean, results(e).next()) {
            j.check_call(true, &call);
        }
    }),
    ("discover.unknown.method-404", |e, j| {
        for call in e.case("bad-method/unknown").filter(|call| call.status().is_some()) {
            j.check_call(call.status() == Some(404) && call.error_code() == Some(-32601), &call);
        }
    }),
    ("discover.unknown.method-32601", |e, j| error_code(e, j, "bad-method/unknown", &[-32601])),
    ("discover.removed.methods-404", |e, j| {
        for call in e.case("bad-method/removed").filter(|call| call.response.is_some()) {
            let is_status = call.status().is_none_or(|status| status == 404);
            j.check_call(call.error_code() == Some(-32601) && is_status, &call);
        }
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.is_modern() {
        return Vec::new();
    }
    let method = material.list_methods().first().copied().unwrap_or(DISCOVER);
    let mut cases = Vec::new();
    for method in BTreeSet::from([method, DISCOVER]) {
        let case =
            |name: &str| Case::request(format!("meta-negative/{name}/{method}"), Lane::Negative, method, json!({}));
        let unknown = json!({ "x": {}, "extensions": { "com.example/x": {} } });
        cases.extend([
            case("no-client-info").meta(INFO, None),
            case("unknown-capability").meta(CAPABILITIES, Some(unknown)),
            case("no-version").meta(VERSION, None),
            case("no-capabilities").meta(CAPABILITIES, None),
            case("wrong-capabilities").meta(CAPABILITIES, Some(json!("x"))),
            case("version").meta(VERSION, Some(json!("2999-01-01"))).header("mcp-protocol-version", "2999-01-01"),
        ]);
    }
    for method in REMOVED {
        cases.push(Case::request(format!("bad-method/removed/{method}"), Lane::Negative, method, json!({})));
    }
    let lists = [("tools", "tools/list"), ("resources", "resources/list"), ("prompts", "prompts/list")];
    for (_, method) in lists.into_iter().filter(|(capability, _)| !material.declares(capability)) {
        cases.push(Case::request(format!("bad-params/undeclared/{method}"), Lane::Negative, method, json!({})));
    }
    cases
}

fn each(evidence: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(Option<&Value>) -> Option<bool>) {
    for (call, result) in evidence.results_of(DISCOVER) {
        let value = result.get(key);
        if let Some(holds) = holds(value).or(value.is_none().then_some(false).filter(|_| key == "supportedVersions")) {
            j.check_at(holds, None, call.places(), || value.map_or_else(|| format!("no `{key}`"), shown));
        }
    }
}

fn works(evidence: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for call in evidence.case(case).filter(|call| call.response.is_some() && !is_refused_elsewhere(call)) {
        j.check_call(call.result().is_some(), &call);
    }
}

fn declared(evidence: &Evidence<'_>, j: &mut Judgement, capability: &str, method: &str) {
    if evidence.facts.declares(capability) {
        let calls = evidence.calls_of(method).filter(|call| call.request.case.is_none() && call.response.is_some());
        for call in calls.filter(|call| call.request.params().get("cursor").is_none() && !is_refused_elsewhere(call)) {
            j.check_call(call.result().is_some(), &call);
        }
        return;
    }
    for call in evidence.case(&format!("bad-params/undeclared/{method}")).filter(|call| call.response.is_some()) {
        j.check_call(call.error_code() == Some(-32601), &call);
        let is_empty = call.result().is_some_and(|it| it[capability].as_array().is_some_and(Vec::is_empty));
        if is_empty || (call.result().is_none() && call.error_code() != Some(-32601)) {
            j.at_level(Level::Derived);
        }
    }
}

fn stable(evidence: &Evidence<'_>, j: &mut Judgement) {
    let mut first: Option<&Value> = None;
    for (call, result) in evidence.results_of(DISCOVER).filter(|(call, _)| call.request.case.is_none()) {
        let capabilities = &result["capabilities"];
        match first {
            None => first = Some(capabilities),
            Some(first) => j.check_at(first == capabilities, None, call.places(), || "other capabilities".to_owned()),
        }
    }
}

fn extensions(evidence: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&str, &Value) -> bool) {
    for (call, result) in evidence.results_of(DISCOVER) {
        for (name, settings) in result["capabilities"]["extensions"].as_object().into_iter().flatten() {
            j.check_at(holds(name, settings), Some(name.clone()), call.places(), || shown(settings));
        }
    }
}

/// A server that also speaks a legacy version may take the request for one of that version.
fn missing_version(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("meta-negative/no-version").filter(|call| call.response.is_some()) {
        j.check_call(call.error_code().is_some(), &call);
    }
}

fn same_versions(evidence: &Evidence<'_>, j: &mut Judgement) {
    let names = |value: &Value| -> BTreeSet<String> {
        value.as_array().into_iter().flatten().filter_map(|it| Some(it.as_str()?.to_owned())).collect()
    };
    let discovered = evidence.results_of(DISCOVER).map(|(_, result)| names(&result["supportedVersions"])).next();
    for call in evidence.case("meta-negative/version").filter(|call| call.error_code() == Some(-32022)) {
        let supported = call.response.map(|it| names(it.at("/error/data/supported"))).unwrap_or_default();
        if let Some(discovered) = &discovered {
            j.check_answer(supported == *discovered, &call, || format!("{supported:?}"));
        }
    }
}

/// Each reading of a list has the same names, unless the server says that it has changed.
fn invariant(evidence: &Evidence<'_>, j: &mut Judgement, method: &str) {
    let (key, name) = LISTS.iter().find(|(it, ..)| *it == method).map_or(("", ""), |(_, key, name)| (*key, *name));
    let has_changed = evidence.received().any(|it| it.method().is_some_and(|it| it.ends_with("/list_changed")));
    let mut first: Option<HashSet<&str>> = None;
    for reading in readings(evidence, method) {
        let complete = reading.pages.last().is_some_and(|(_, result)| !result["nextCursor"].is_string());
        let items = reading.pages.iter().flat_map(|(_, result)| result[key].as_array().into_iter().flatten());
        let names: HashSet<_> = items.filter_map(|item| item[name].as_str()).collect();
        match (&first, reading.pages.first()) {
            (None, _) if complete => first = Some(names),
            (Some(first), Some((call, _))) if complete && !has_changed => {
                let other = first.symmetric_difference(&names).next().copied();
                j.check_at(other.is_none(), other.map(ToOwned::to_owned), call.places(), || {
                    "it in one list only".to_owned()
                });
            }
            _ => {}
        }
    }
}
