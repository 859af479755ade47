//! The legacy lifecycle: `initialize`, capabilities, order.

use rehearse_protocol::{Transport, Version, names::INPUT_METHODS};
use serde_json::{Value, json};

use super::Judge;
use super::common::{
    NEVER_ANSWERED, NOT_DUE, connection, each_works, error_code, excuse, is_due, is_usually_answered, refused, shown,
    survives,
};
use super::query::{Calls, Parts, Query};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Kind, Level, Material, formats::is_at_or_below};

/// The notifications about changes, each with the capability that it needs.
const CHANGES: [(&str, &str); 3] = [
    ("notifications/tools/list_changed", "tools/listChanged"),
    ("notifications/resources/list_changed", "resources/listChanged"),
    ("notifications/prompts/list_changed", "prompts/listChanged"),
];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("life.init.responds", |e, j| {
        let missing = |result: &Value| {
            let is_there = |key: &&str| match *key {
                "protocolVersion" => result[*key].is_string(),
                _ => result[*key].is_object(),
            };
            let all = ["protocolVersion", "capabilities", "serverInfo"].into_iter();
            let missing: Vec<_> = all.filter(|key| !is_there(key)).collect();
            (!missing.is_empty()).then(|| format!("no `{}`", missing.join("` and no `")))
        };
        e.results_of("initialize").must_not(j, missing);
    }),
    ("life.init.version-known-date", |e, j| {
        e.results_of("initialize").at("protocolVersion").must(j, is_published, shown)
    }),
    ("life.init.same-version", |e, j| {
        for (call, version) in e.results_of("initialize").at("protocolVersion") {
            let asked = call.request.at("/params/protocolVersion");
            if asked == e.version.as_str() && is_published(version) {
                j.check_at(version == asked, None, call.places(), || format!("the version {}", shown(version)));
            }
        }
    }),
    ("life.init.unknown-version-latest", |e, j| {
        for call in e.case("negotiate/1999") {
            let version = call.result().and_then(|it| it["protocolVersion"].as_str()).unwrap_or_default();
            if let Ok(offered) = version.parse::<Version>() {
                j.check_answer(offered >= e.version, &call, || format!("the version {version}"));
            }
        }
    }),
    ("life.init.second-initialize", |e, j| survives(e, j, "malformed/second-initialize")),
    ("life.init.unknown-version-other", |e, j| {
        other_version(e, j, "negotiate/1999");
        for call in e.case("negotiate/1999").filter(|call| call.error_code().is_some_and(is_version_error)) {
            j.check_call(false, &call);
            j.at_level(Level::Derived);
        }
    }),
    ("life.init.future-version", |e, j| {
        other_version(e, j, "negotiate/2099");
        other_version(e, j, "quiet-window/initialize");
    }),
    ("life.init.missing-version-param", |e, j| refused(e, j, "negotiate/no-version")),
    ("life.init.missing-clientinfo", |e, j| refused(e, j, "negotiate/missing")),
    ("life.init.unknown-capability-ignored", |e, j| {
        e.case("negotiate/unknown-capability").responded().must_get(j, Call::has_result)
    }),
    ("life.init.instructions-string", |e, j| {
        let all = e.results_of("initialize");
        all.must(j, |it| it.get("instructions").is_none_or(Value::is_string), |it| shown(&it["instructions"]));
    }),
    ("life.init.capabilities-object", |e, j| {
        let found = |it: &Value| it.get("capabilities").map_or_else(|| "no `capabilities`".to_owned(), shown);
        e.results_of("initialize").must(j, |it| it["capabilities"].is_object(), found);
    }),
    ("life.order.initialized-accepted", |e, j| {
        let is_refused = |call: &Call<'_>| call.response.is_some() || call.status() >= Some(300);
        let calls = e.calls().filter(|call| call.method() == "notifications/initialized");
        calls.must_get(j, |call| !is_refused(call));
    }),
    ("life.order.no-requests-before-initialized", |e, j| {
        // Between the result of `initialize` and `initialized`, a server may only ping and log.
        for connection in &e.connections {
            let calls: Vec<_> = connection.calls().collect();
            let place = |case: &str| calls.iter().find(|call| call.request.case == Some(case));
            let (Some(begin), Some(end)) = (place("quiet-window/initialize"), place("quiet-window/initialized")) else {
                continue;
            };
            let asked = connection.received().filter(|it| it.kind == Kind::Request);
            let asked = asked.filter(|it| it.place < end.request.place && it.method() != Some("ping"));
            let mut is_quiet = begin.result().is_some();
            for request in asked {
                is_quiet = false;
                j.check_subject(false, request.method().unwrap_or_default(), request, || "a request");
            }
            if is_quiet {
                j.check_call(true, begin);
            }
        }
    }),
    ("life.order.ping-before-initialized", |e, j| {
        for call in e.case("quiet-window/ping").filter(|call| !call.is_refused_elsewhere()) {
            let connection = connection(e, call.request.place);
            if !call.is_answered() && !connection.is_some_and(|it| is_due(e, it, &call)) {
                j.untested(NOT_DUE);
            } else if call.is_answered() || is_usually_answered(e, &call) {
                j.check_call(call.has_result(), &call);
            } else {
                j.untested(NEVER_ANSWERED);
            }
        }
    }),
    ("life.order.request-before-initialize", |e, j| {
        e.case("quiet-window/request-first").filter(Call::is_answered).must_get(j, |call| !call.has_result())
    }),
    ("life.caps.tools-declared", |e, j| undeclared(e, j, "tools/list", "tools")),
    ("life.caps.resources-declared", |e, j| undeclared(e, j, "resources/list", "resources")),
    ("life.caps.prompts-declared", |e, j| undeclared(e, j, "prompts/list", "prompts")),
    ("life.caps.logging-declared", |e, j| {
        e.notifications("notifications/message").must(j, |_| e.facts.declares("logging"), |_| "a log message")
    }),
    ("life.caps.logging-setlevel-undeclared", |e, j| error_code(e, j, "bad-params/undeclared-logging", &[-32601])),
    ("life.caps.completions-declared", |e, j| {
        for call in e.case("bad-params/undeclared-completion").responded() {
            let values = call.result().and_then(|result| result["completion"]["values"].as_array()).map_or(0, Vec::len);
            j.check_code(&[-32601], &call);
            if values == 0 {
                j.at_level(if call.has_result() { Level::Info } else { Level::Derived });
            }
        }
    }),
    ("life.caps.no-newer-capability", |e, j| {
        const NEWER: [(&str, Version); 2] = [("tasks", Version::V2025_11_25), ("extensions", Version::V2026_07_28)];
        let newer = |capabilities: &Value| {
            let mut all = NEWER.iter().filter(|(_, since)| *since > e.version);
            let (name, since) = all.find(|(name, _)| capabilities.get(name).is_some())?;
            Some(format!("`{name}` of {since}"))
        };
        e.results_of("initialize").plain().at("capabilities").must_not(j, newer);
    }),
    ("life.caps.tools-works", |e, j| works(e, j, "tools/list")),
    ("life.caps.resources-works", |e, j| works(e, j, "resources/list")),
    ("life.caps.prompts-works", |e, j| works(e, j, "prompts/list")),
    ("life.caps.templates-works", |e, j| works(e, j, "resources/templates/list")),
    ("life.caps.subscribe-works", |e, j| {
        // Not every resource must be one to subscribe to.
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let plain: Vec<_> = e.calls_of(method).plain().responded().collect();
            let accepted = plain.iter().find(|call| call.has_result());
            each_works(e, j, accepted.or(plain.first()).copied().into_iter(), |_| Some(method));
        }
    }),
    ("life.caps.subscribe-undeclared", |e, j| {
        e.case("bad-params/undeclared-subscribe").responded().must_get(j, Call::has_error)
    }),
    ("life.caps.listchanged-only-if-declared", |e, j| {
        for (method, capability) in CHANGES {
            for message in e.notifications(method) {
                j.check_subject(e.facts.declares(capability), method, message, || "it without `listChanged`");
            }
        }
    }),
    ("life.caps.updated-only-if-subscribed", |e, j| {
        for connection in &e.connections {
            let subscribed: Vec<_> = connection.calls().filter(|call| call.method() == "resources/subscribe").collect();
            let updates = connection.received();
            for message in updates.filter(|it| it.method() == Some("notifications/resources/updated")) {
                let Some(uri) = message.at("/params/uri").as_str() else { continue };
                let is_subscribed = subscribed.iter().any(|call| {
                    let base = call.text("/params/uri").unwrap_or_default();
                    !base.is_empty() && is_at_or_below(uri, base)
                });
                j.check_subject(is_subscribed, uri, message, || "an update without a subscription");
            }
        }
    }),
    ("life.caps.client-features-only-if-declared", |e, j| {
        // The prober declares no capability.
        for connection in &e.connections {
            let initialize = connection.calls().find(|call| call.method() == "initialize");
            let Some(initialize) = initialize.filter(|call| call.has_result()) else { continue };
            let declared = initialize.request.at("/params/capabilities").clone();
            let asked = connection.received();
            let asked = asked.filter(|it| it.method().is_some_and(|method| INPUT_METHODS.contains(&method)));
            let mut is_asked = false;
            for request in asked {
                let method = request.method().unwrap_or_default();
                let feature = method.split('/').next().unwrap_or_default();
                is_asked = true;
                j.check_subject(declared.get(feature).is_some(), method, request, || "a request for it");
            }
            if !is_asked {
                j.check_call(true, &initialize);
            }
        }
    }),
    ("life.caps.experimental-object", |e, j| {
        let are_objects = |it: &Value| it.as_object().is_some_and(|it| it.values().all(Value::is_object));
        e.results_of("initialize").at("capabilities").member("experimental").must(j, are_objects, shown);
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    let Some(version) = material.version.filter(|_| !material.is_modern()) else { return Vec::new() };
    let mut cases = Vec::new();
    let info = json!({ "name": "rehearse-check", "version": "1" });
    let full = |version: &str, capabilities: Value| json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info });
    // Each needs a process of its own on stdio, so once is enough.
    if version == Version::LATEST_LEGACY {
        let initialize = |name: &str, params: Value| {
            Case::request(format!("negotiate/{name}"), CaseGroup::Fresh, "initialize", params)
        };
        // What is refused first: then the others can share its process.
        let first = material.served_list().unwrap_or("tools/list");
        cases.push(Case::request("quiet-window/request-first", CaseGroup::Fresh, first, json!({})));
        cases.push(initialize("no-version", json!({ "capabilities": {}, "clientInfo": info })));
        cases.push(initialize(
            "missing/client-info",
            json!({ "protocolVersion": version.as_str(), "capabilities": {} }),
        ));
        cases.push(initialize(
            "missing/capabilities",
            json!({ "protocolVersion": version.as_str(), "clientInfo": info }),
        ));
        let unknown = json!({ "x": {}, "experimental": { "a": {} } });
        cases.push(initialize("unknown-capability", full(version.as_str(), unknown)));
        // Over stdio they open sessions in which more is tried.
        if material.transport != Some(Transport::Stdio) {
            cases.push(initialize("1999", full("1999-01-01", json!({}))));
            cases.push(initialize("2099", full("2099-12-31", json!({}))));
        }
    }
    if !material.is_http() {
        let (name, params) = ("malformed/second-initialize", full(version.as_str(), json!({})));
        cases.push(Case::request(name, CaseGroup::Malformed, "initialize", params).unanswered());
        cases.push(Case::request("malformed/after-initialize", CaseGroup::Malformed, "ping", Value::Null));
    }
    cases.extend(undeclared_completion(material));
    let lists = [("tools", "tools/list"), ("resources", "resources/list"), ("prompts", "prompts/list")];
    for (_, method) in lists.into_iter().filter(|(capability, _)| !material.declares(capability)) {
        cases.push(Case::request(format!("bad-params/undeclared/{method}"), CaseGroup::Negative, method, json!({})));
    }
    if !material.declares("logging") {
        let name = "bad-params/undeclared-logging";
        cases.push(Case::request(name, CaseGroup::Negative, "logging/setLevel", json!({ "level": "error" })));
    }
    if material.declares("resources") && !material.declares("resources/subscribe") {
        let uri = material.resources.first().map_or(json!("rehearse://none"), |resource| resource["uri"].clone());
        let name = "bad-params/undeclared-subscribe";
        cases.push(Case::request(name, CaseGroup::Negative, "resources/subscribe", json!({ "uri": uri })));
    }
    cases
}

/// A completion that a server without the capability refuses. 2024-11-05 has no capability for it.
fn undeclared_completion(material: &Material) -> Option<Case> {
    if material.declares("completions") || material.version == Some(Version::V2024_11_05) {
        return None;
    }
    let prompt = material.prompts.iter().find(|prompt| prompt["arguments"][0]["name"].is_string())?;
    let reference = json!({ "type": "ref/prompt", "name": prompt["name"] });
    let argument = json!({ "name": prompt["arguments"][0]["name"], "value": "" });
    let params = json!({ "ref": reference, "argument": argument });
    Some(Case::request("bad-params/undeclared-completion", CaseGroup::Negative, "completion/complete", params))
}

pub(super) fn is_published(version: &Value) -> bool {
    version.as_str().is_some_and(|version| version.parse::<Version>().is_ok())
}

/// Whether it is the code that an example has for a version that is not supported, or that of 2026-07-28.
fn is_version_error(code: i64) -> bool {
    matches!(code, -32602 | -32022)
}

fn other_version(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for call in e.case(case) {
        let asked = call.request.at("/params/protocolVersion");
        if is_published(asked) {
            continue;
        }
        match (call.result(), call.error_code()) {
            (Some(result), _) => {
                let version = &result["protocolVersion"];
                let found = || format!("the version {}", shown(version));
                j.check_answer(version != asked && is_published(version), &call, found);
            }
            (None, Some(code)) => j.check_call(is_version_error(code), &call),
            (None, None) if call.is_answered() => {}
            (None, None) => j.untested("the server did not answer"),
        }
    }
}

fn undeclared(e: &Evidence<'_>, j: &mut Judgement, method: &str, key: &str) {
    for call in e.case(&format!("bad-params/undeclared/{method}")).responded() {
        let items = call.result().and_then(|result| result[key].as_array()).map_or(0, Vec::len);
        let is_result = call.has_result();
        j.check_answer(!is_result, &call, || format!("a list of {items}"));
        // An empty list is no support.
        j.at_level_if(is_result && items == 0, Level::Info);
    }
}

fn works(e: &Evidence<'_>, j: &mut Judgement, method: &str) {
    let calls = e.calls_of(method).plain().reached();
    for call in calls.filter(|call| call.request.params().get("cursor").is_none()) {
        match excuse(&call) {
            Some(excuse) => j.untested(excuse),
            None => j.check_call(call.has_result(), &call),
        }
    }
}
