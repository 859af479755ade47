//! The legacy lifecycle: `initialize`, capabilities, order.

use rehearse_protocol::{Transport, Version};
use serde_json::{Value, json};

use super::{
    Judge,
    common::{
        NEVER_ANSWERED, NOT_DUE, connection, each_works, error_code, excuse, is_due, is_refused_elsewhere,
        is_usually_answered, refused, shown, survives,
    },
};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Kind, Level, Material, formats::is_at_or_below};

/// The notifications about changes, each with the capability that it needs.
const CHANGES: [(&str, &str); 3] = [
    ("notifications/tools/list_changed", "tools/listChanged"),
    ("notifications/resources/list_changed", "resources/listChanged"),
    ("notifications/prompts/list_changed", "prompts/listChanged"),
];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("life.init.responds", responds),
    ("life.init.version-known-date", known_version),
    ("life.init.same-version", |e, j| {
        for (call, result) in e.results_of("initialize") {
            let (asked, version) = (call.request.at("/params/protocolVersion"), &result["protocolVersion"]);
            if asked == e.version.as_str() && is_published(version) {
                j.check_at(version == asked, None, call.places(), || format!("the version {}", shown(version)));
            }
        }
    }),
    ("life.init.unknown-version-latest", |e, j| {
        for (call, version) in
            e.case("negotiate/1999").filter_map(|call| Some((call, call.result()?["protocolVersion"].as_str()?)))
        {
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
        for call in e.case("negotiate/unknown-capability").filter(|call| call.response.is_some()) {
            j.check_call(call.result().is_some(), &call);
        }
    }),
    ("life.init.instructions-string", |e, j| {
        member(e, j, "instructions", |it| it.is_none_or(Value::is_string));
    }),
    ("life.init.capabilities-object", |e, j| member(e, j, "capabilities", |it| it.is_some_and(Value::is_object))),
    ("life.order.initialized-accepted", accepted),
    ("life.order.no-requests-before-initialized", quiet_handshake),
    ("life.order.ping-before-initialized", |e, j| {
        for call in e.case("quiet-window/ping").filter(|call| !is_refused_elsewhere(call)) {
            let connection = connection(e, call.request.place);
            if !call.is_answered() && !connection.is_some_and(|it| is_due(e, it, &call)) {
                j.untested(NOT_DUE);
            } else if call.is_answered() || is_usually_answered(e, &call) {
                j.check_call(call.result().is_some(), &call);
            } else {
                j.untested(NEVER_ANSWERED);
            }
        }
    }),
    ("life.order.request-before-initialize", |e, j| {
        for call in e.case("quiet-window/request-first").filter(Call::is_answered) {
            j.check_call(call.result().is_none(), &call);
        }
    }),
    ("life.caps.tools-declared", |e, j| undeclared(e, j, "tools/list", "tools")),
    ("life.caps.resources-declared", |e, j| undeclared(e, j, "resources/list", "resources")),
    ("life.caps.prompts-declared", |e, j| undeclared(e, j, "prompts/list", "prompts")),
    ("life.caps.logging-declared", logging),
    ("life.caps.logging-setlevel-undeclared", |e, j| error_code(e, j, "bad-params/undeclared-logging", &[-32601])),
    ("life.caps.completions-declared", |e, j| {
        for call in e.case("bad-params/undeclared-completion").filter(|call| call.response.is_some()) {
            let values = call.result().and_then(|result| result["completion"]["values"].as_array()).map_or(0, Vec::len);
            j.check_code(&[-32601], &call);
            if values == 0 {
                j.at_level(if call.result().is_some() { Level::Info } else { Level::Derived });
            }
        }
    }),
    ("life.caps.no-newer-capability", |e, j| {
        const NEWER: [(&str, Version); 2] = [("tasks", Version::V2025_11_25), ("extensions", Version::V2026_07_28)];
        for (call, result) in e.results_of("initialize").filter(|(call, _)| call.request.case.is_none()) {
            let is_newer =
                |(name, since): &&(&str, Version)| *since > e.version && result["capabilities"].get(name).is_some();
            let newer = NEWER.iter().find(is_newer);
            j.check_at(newer.is_none(), None, call.places(), || {
                newer.map(|(name, since)| format!("`{name}` of {since}")).unwrap_or_default()
            });
        }
    }),
    ("life.caps.tools-works", |e, j| works(e, j, "tools/list")),
    ("life.caps.resources-works", |e, j| works(e, j, "resources/list")),
    ("life.caps.prompts-works", |e, j| works(e, j, "prompts/list")),
    ("life.caps.templates-works", |e, j| works(e, j, "resources/templates/list")),
    ("life.caps.subscribe-works", |e, j| {
        // Not every resource must be one to subscribe to.
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let plain = e.calls_of(method).filter(|call| call.request.case.is_none() && call.response.is_some());
            let plain: Vec<_> = plain.collect();
            let accepted = plain.iter().find(|call| call.result().is_some());
            each_works(e, j, accepted.or(plain.first()).copied().into_iter(), |_| Some(method.to_owned()));
        }
        j.untested("no resource is listed");
    }),
    ("life.caps.subscribe-undeclared", |e, j| {
        for call in e.case("bad-params/undeclared-subscribe").filter(|call| call.response.is_some()) {
            j.check_call(call.error_code().is_some(), &call);
        }
    }),
    ("life.caps.listchanged-only-if-declared", list_changed),
    ("life.caps.updated-only-if-subscribed", updated),
    ("life.caps.client-features-only-if-declared", asks_nothing),
    ("life.caps.experimental-object", |e, j| {
        for (call, result) in e.results_of("initialize") {
            if let Some(experimental) = result["capabilities"].get("experimental") {
                let holds = experimental.as_object().is_some_and(|it| it.values().all(Value::is_object));
                j.check_at(holds, None, call.places(), || shown(experimental));
            }
        }
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

/// Between the result of `initialize` and `initialized`, a server may only ping and log.
fn quiet_handshake(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
        let calls: Vec<_> = connection.calls().collect();
        let place = |case: &str| calls.iter().find(|call| call.request.case == Some(case));
        let (Some(begin), Some(end)) = (place("quiet-window/initialize"), place("quiet-window/initialized")) else {
            continue;
        };
        let asked = connection.messages.iter().filter(|it| it.is_from_server() && it.kind == Kind::Request);
        let asked = asked.filter(|it| it.place < end.request.place && it.method() != Some("ping"));
        let mut is_quiet = begin.result().is_some();
        for request in asked {
            is_quiet = false;
            j.check_subject(false, request.method().unwrap_or_default(), request, || "a request".to_owned());
        }
        if is_quiet {
            j.check_call(true, begin);
        }
    }
}

fn responds(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (call, result) in evidence.results_of("initialize") {
        let missing: Vec<_> = [
            ("protocolVersion", result["protocolVersion"].is_string()),
            ("capabilities", result["capabilities"].is_object()),
            ("serverInfo", result["serverInfo"].is_object()),
        ]
        .into_iter()
        .filter(|(_, is_there)| !is_there)
        .map(|(key, _)| key)
        .collect();
        j.check_at(missing.is_empty(), None, call.places(), || format!("no `{}`", missing.join("` and no `")));
    }
}

fn is_published(version: &Value) -> bool {
    version.as_str().is_some_and(|version| version.parse::<Version>().is_ok())
}

fn known_version(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (call, result) in evidence.results_of("initialize") {
        let version = &result["protocolVersion"];
        j.check_at(is_published(version), None, call.places(), || shown(version));
    }
}

/// Whether it is the code that an example has for a version that is not supported, or that of 2026-07-28.
fn is_version_error(code: i64) -> bool {
    matches!(code, -32602 | -32022)
}

fn other_version(evidence: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for call in evidence.case(case) {
        let asked = call.request.at("/params/protocolVersion");
        if is_published(asked) {
            continue;
        }
        match (call.result(), call.error_code()) {
            (Some(result), _) => {
                let version = &result["protocolVersion"];
                j.check_answer(version != asked && is_published(version), &call, || {
                    format!("the version {}", shown(version))
                });
            }
            (None, Some(code)) => j.check_call(is_version_error(code), &call),
            (None, None) if call.is_answered() => {}
            (None, None) => j.untested("the server did not answer"),
        }
    }
}

fn member(evidence: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(Option<&Value>) -> bool) {
    for (call, result) in evidence.results_of("initialize") {
        let value = result.get(key);
        j.check_at(holds(value), None, call.places(), || value.map_or_else(|| format!("no `{key}`"), shown));
    }
}

fn accepted(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.calls().filter(|call| call.method() == "notifications/initialized") {
        let is_refused = call.status().is_some_and(|status| status >= 300) || call.response.is_some();
        j.check_call(!is_refused, &call);
    }
}

fn undeclared(evidence: &Evidence<'_>, j: &mut Judgement, method: &str, key: &str) {
    for call in evidence.case(&format!("bad-params/undeclared/{method}")).filter(|call| call.response.is_some()) {
        let items = call.result().and_then(|result| result[key].as_array()).map_or(0, Vec::len);
        let is_result = call.result().is_some();
        j.check_answer(!is_result, &call, || format!("a list of {items}"));
        // An empty list is no support.
        if is_result && items == 0 {
            j.at_level(Level::Info);
        }
    }
}

fn logging(evidence: &Evidence<'_>, j: &mut Judgement) {
    let is_declared = evidence.facts.declares("logging");
    for message in evidence.notifications("notifications/message") {
        j.check(is_declared, message, || "a log message".to_owned());
    }
}

fn works(evidence: &Evidence<'_>, j: &mut Judgement, method: &str) {
    for call in evidence.calls_of(method).filter(|call| call.request.case.is_none() && call.response.is_some()) {
        if is_refused_elsewhere(&call) || call.request.params().get("cursor").is_some() {
            continue;
        }
        match excuse(&call) {
            Some(excuse) => j.untested(excuse),
            None => j.check_call(call.result().is_some(), &call),
        }
    }
}

fn list_changed(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (method, capability) in CHANGES {
        for message in evidence.notifications(method) {
            j.check_subject(evidence.facts.declares(capability), method, message, || {
                "it without `listChanged`".to_owned()
            });
        }
    }
}

fn updated(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
        let subscribed: Vec<_> = connection.calls().filter(|call| call.method() == "resources/subscribe").collect();
        let updates = connection.messages.iter().filter(|it| it.is_from_server());
        for message in updates.filter(|it| it.method() == Some("notifications/resources/updated")) {
            let Some(uri) = message.at("/params/uri").as_str() else { continue };
            let is_subscribed = subscribed.iter().any(|call| {
                let base = call.request.at("/params/uri").as_str().unwrap_or_default();
                !base.is_empty() && is_at_or_below(uri, base)
            });
            j.check_subject(is_subscribed, uri, message, || "an update without a subscription".to_owned());
        }
    }
}

/// The prober declares no capability.
fn asks_nothing(evidence: &Evidence<'_>, j: &mut Judgement) {
    const FEATURES: [&str; 3] = ["roots/list", "sampling/createMessage", "elicitation/create"];
    for connection in &evidence.connections {
        let initialize = connection.calls().find(|call| call.method() == "initialize");
        let Some(initialize) = initialize.filter(|call| call.result().is_some()) else { continue };
        let declared = initialize.request.at("/params/capabilities").clone();
        let asked = connection.messages.iter().filter(|it| it.is_from_server());
        let asked = asked.filter(|it| it.method().is_some_and(|method| FEATURES.contains(&method)));
        let mut is_asked = false;
        for request in asked {
            let method = request.method().unwrap_or_default();
            let feature = method.split('/').next().unwrap_or_default();
            is_asked = true;
            j.check_subject(declared.get(feature).is_some(), method, request, || "a request for it".to_owned());
        }
        if !is_asked {
            j.check_call(true, &initialize);
        }
    }
}
