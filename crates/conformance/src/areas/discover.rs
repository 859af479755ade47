//! `server/discover`, and the stateless requests of 2026-07-28.

use rehearse_protocol::{
    Transport,
    names::{META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_VERSION, METHOD_HEADER, SESSION_HEADER, VERSION_HEADER},
};
use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use super::common::{error_code, excuse, is_one_of, results, shown, survives};
use super::query::{Calls, Parts, Query, elements};
use super::{Judge, stateless};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Level, Material, evidence::VERSION_POINTER};

const DISCOVER: &str = "server/discover";
const META_EXTENSIONS: &str = "/params/_meta/io.modelcontextprotocol~1clientCapabilities/extensions";
/// Not `initialize`: with which error a server refuses it is its own choice, and one that also speaks a legacy version may
/// accept it.
const REMOVED: [&str; 5] =
    ["logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list", "tasks/result"];
/// The case of an `initialize` without a modern `_meta`.
const LEGACY: &str = "discover/legacy";
const IS_DUAL: &str = "the server also speaks older versions, and may take the request for one of them";
/// The first version without a handshake.
const FIRST: &str = "2026-07-28";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("discover.method.implemented", |e, j| {
        e.calls_of(DISCOVER).plain().responded().must_get(j, |call| call.error_code() != Some(-32601))
    }),
    ("discover.result.versions", |e, j| {
        each(e, j, "supportedVersions", |versions| {
            let mut all = versions.and_then(Value::as_array).into_iter().flatten();
            Some(all.any(|it| it == e.version.as_str()) && versions?.as_array()?.iter().all(Value::is_string))
        });
    }),
    ("discover.result.server-info", |e, j| {
        let has_info = |it: &Value| it.pointer("/_meta/io.modelcontextprotocol~1serverInfo").is_some();
        results(e).by_method().must_once(j, has_info, |_| "none");
    }),
    ("discover.result.capabilities-object", |e, j| {
        each(e, j, "capabilities", |it| Some(it.is_some_and(Value::is_object)))
    }),
    ("discover.caps.tools", |e, j| declared(e, j, "tools", "tools/list")),
    ("discover.caps.prompts", |e, j| declared(e, j, "prompts", "prompts/list")),
    ("discover.caps.resources", |e, j| declared(e, j, "resources", "resources/list")),
    ("discover.caps.logging", |e, j| {
        e.notifications("notifications/message").must(j, |_| e.facts.declares("logging"), |_| "a log message")
    }),
    ("discover.caps.stable", |e, j| {
        let mut all = e.results_of(DISCOVER).plain().at("capabilities");
        let Some((_, first)) = all.next() else { return };
        all.must(j, |it| it == first, |_| "other capabilities");
    }),
    ("discover.caps.extension-names", |e, j| {
        extensions(e, j, |name, _| {
            name.split_once('/').is_some_and(|(prefix, name)| prefix.contains('.') && !name.is_empty())
        })
    }),
    ("discover.caps.extension-objects", |e, j| extensions(e, j, |_, settings| settings.is_object())),
    ("discover.caps.legacy-tasks-absent", |e, j| {
        each(e, j, "capabilities", |it| Some(it.is_none_or(|it| it.get("tasks").is_none())))
    }),
    ("discover.instructions.string", |e, j| each(e, j, "instructions", |it| it.map(Value::is_string))),
    ("discover.meta.missing-version-32602", |e, j| {
        // A server that also speaks a legacy version may answer with an error of that version, and where no header names
        // the version it may take the request for one of it.
        let is_dual = is_dual(e);
        let is_known = |code: i64| is_dual || code == -32602 || code == -32020;
        for call in e.case("meta-negative/no-version").responded() {
            j.check_call(call.error_code().is_some_and(is_known), &call);
            j.at_level_if(call.has_result() && is_dual && call.http.is_none(), Level::Derived);
        }
    }),
    ("discover.meta.missing-capabilities-32602", |e, j| error_code(e, j, "meta-negative/no-capabilities", &[-32602])),
    ("discover.meta.wrong-types-32602", |e, j| error_code(e, j, "meta-negative/wrong-capabilities", &[-32602])),
    ("discover.meta.http-400", |e, j| {
        for case in ["meta-negative/no-capabilities", "meta-negative/wrong-capabilities"] {
            for call in e.case(case).filter(|call| call.status().is_some() && call.has_error()) {
                let holds = call.status() == Some(400);
                j.check_call(holds, &call);
                // The text speaks of a field that is missing.
                j.at_level_if(!holds && case.ends_with("wrong-capabilities"), Level::Derived);
            }
        }
    }),
    ("discover.meta.clientinfo-optional", |e, j| works(e, j, "meta-negative/no-client-info")),
    ("discover.meta.unknown-capability-ok", |e, j| works(e, j, "meta-negative/unknown-capability")),
    ("discover.version.unsupported-32022", |e, j| {
        for call in e.case("meta-negative/version").responded() {
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
        let calls = e.case("meta-negative/version").filter(|call| call.status().is_some());
        calls.must_get(j, |call| call.status() == Some(400));
    }),
    ("discover.version.supported-list-consistent", |e, j| {
        let names = |value: &Value| -> BTreeSet<String> {
            elements(value).filter_map(|it| Some(it.as_str()?.to_owned())).collect()
        };
        let calls = e.case("meta-negative/version").filter(|call| call.error_code() == Some(-32022));
        let Some((_, listed)) = e.results_of(DISCOVER).at("supportedVersions").next() else { return };
        let supported =
            |call: &Call<'_>| call.response.map(|it| names(it.at("/error/data/supported"))).unwrap_or_default();
        calls.must(j, |call| supported(call) == names(listed), |call| format!("{:?}", supported(call)));
    }),
    ("discover.state.no-memory-of-meta", |e, j| error_code(e, j, "meta-negative/no-capabilities", &[-32602])),
    ("discover.state.no-session-id", |e, j| {
        // A server of both eras answers requests of the older one with a session.
        let is_dual = is_dual(e);
        let is_legacy = |case: &str| {
            case.starts_with(LEGACY) || case == "era/initialize" || (is_dual && case.starts_with("earlier/"))
        };
        for (_, http) in e.exchanges().filter(|(_, http)| !http.case.is_some_and(is_legacy)) {
            let Some(place) = http.response else { continue };
            let id = http.header(SESSION_HEADER);
            j.check_at(id.is_none(), None, vec![place], || format!("`Mcp-Session-Id: {}`", id.unwrap_or_default()));
        }
    }),
    ("discover.state.set-invariant-tools", |e, j| stateless::invariant(e, j, "tools/list")),
    ("discover.state.set-invariant-resources", |e, j| stateless::invariant(e, j, "resources/list")),
    ("discover.state.set-invariant-prompts", |e, j| stateless::invariant(e, j, "prompts/list")),
    ("discover.requests.none-from-server", |e, j| {
        let mut is_clean = true;
        for request in e.server_requests() {
            is_clean = false;
            j.check_subject(false, request.method().unwrap_or_default(), request, || "a request");
        }
        if let (true, Some((call, _))) = (is_clean, results(e).next()) {
            j.check_call(true, &call);
        }
    }),
    ("discover.unknown.method-404", |e, j| {
        let calls = e.case("bad-method/unknown").filter(|call| call.status().is_some());
        calls.must_get(j, |call| call.status() == Some(404) && call.error_code() == Some(-32601));
    }),
    ("discover.unknown.method-32601", |e, j| error_code(e, j, "bad-method/unknown", &[-32601])),
    ("discover.removed.methods-404", |e, j| {
        let is_absent =
            |call: &Call<'_>| call.error_code() == Some(-32601) && matches!(call.status(), None | Some(404));
        e.case("bad-method/removed").responded().must_get(j, is_absent);
    }),
    ("discover.result.versions-honest", |e, j| {
        let listed = listed_versions(e);
        let is_listed = |call: &Call<'_>| {
            let version = call.text(VERSION_POINTER).unwrap_or_default();
            let header = call.http.and_then(|http| http.request_header(VERSION_HEADER));
            version >= FIRST && header.is_none_or(|it| it == version) && listed.contains(version)
        };
        let calls = e.calls().responded().filter(is_listed);
        calls.by(|call| call.text(VERSION_POINTER)).must_get(j, |call| call.error_code() != Some(-32022));
    }),
    ("discover.result.versions-legacy-honest", |e, j| {
        let listed = listed_versions(e);
        for call in legacy_calls(e).reached() {
            let version = call.text("/params/protocolVersion").unwrap_or_default();
            if listed.contains(version) {
                let spoken = call.result().map(|result| &result["protocolVersion"]);
                let found = || spoken.map_or_else(|| call.answer_text(), |it| format!("the version {}", shown(it)));
                j.check_at(spoken.is_some_and(|it| it == version), Some(version), call.places(), found);
            }
        }
    }),
    ("discover.caps.completions", |e, j| declared(e, j, "completions", "completion/complete")),
    ("discover.meta.missing-all-32602", |e, j| {
        // A server that also speaks a legacy version may take the request for one of that version.
        for call in e.case("meta-negative/no-meta").responded() {
            // Over HTTP the header has a version that the body does not have.
            let codes: &[i64] = if call.status().is_some() { &[-32602, -32020] } else { &[-32602] };
            match is_dual(e) {
                true => j.untested(IS_DUAL),
                false => j.check_call(call.error_code().is_some_and(|code| codes.contains(&code)), &call),
            }
        }
    }),
    ("discover.version.malformed", |e, j| {
        let is_known = |code: i64| [-32022, -32602, -32020].contains(&code) || is_dual(e);
        let calls = e.case("meta-negative/malformed-version").responded();
        calls.must_get(j, |call| call.error_code().is_some_and(is_known));
        survives(e, j, "meta-negative/malformed-version");
    }),
    ("discover.version.legacy-in-meta", |e, j| {
        for call in e.case("meta-negative/legacy-version").responded() {
            match is_dual(e) {
                true => j.untested(IS_DUAL),
                false => j.check_code(&[-32022], &call),
            }
        }
    }),
    ("discover.state.capabilities-per-request", stateless::capabilities_per_request),
    ("discover.state.interleaved-clients", |e, j| works(e, j, "lists/clients")),
    ("discover.state.no-connection-affinity", stateless::no_affinity),
    ("discover.state.clientinfo-not-used", stateless::client_info_not_used),
    ("discover.capability.missing-32021", stateless::missing_capability),
    ("discover.capability.missing-http-400", |e, j| {
        let calls = e.case("calls/asks-none").filter(|call| call.error_code() == Some(-32021));
        calls.must_get(j, |call| call.status() == Some(400));
    }),
    ("discover.capability.extension-fallback", |e, j| {
        let extensions = e.facts.capabilities.get("extensions").and_then(Value::as_object);
        if extensions.is_none_or(serde_json::Map::is_empty) {
            return j.untested("the server declares no extension");
        }
        let is_core = |kind: &Value| !kind.is_string() || is_one_of(kind, &["complete", "input_required"]);
        let results = results(e).filter(|(call, _)| call.request.at(META_EXTENSIONS).is_null()).by_method();
        results.at("resultType").must(j, is_core, |kind| format!("`resultType: {}`", shown(kind)));
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.is_modern() {
        return Vec::new();
    }
    let method = material.served_list().unwrap_or(DISCOVER);
    let mut cases = Vec::new();
    let discover = (!material.supported.is_empty()).then_some(DISCOVER);
    for method in BTreeSet::from_iter([method].into_iter().chain(discover)) {
        let case = |name: &str| {
            Case::request(format!("meta-negative/{name}/{method}"), CaseGroup::Negative, method, json!({}))
        };
        let unknown = json!({ "x": {}, "extensions": { "com.example/x": {} } });
        cases.extend([
            case("no-client-info").meta(META_CLIENT_INFO, None),
            case("unknown-capability").meta(META_CLIENT_CAPABILITIES, Some(unknown)),
            case("no-version").meta(META_VERSION, None),
            case("no-capabilities").meta(META_CLIENT_CAPABILITIES, None),
            case("wrong-capabilities").meta(META_CLIENT_CAPABILITIES, Some(json!("x"))),
            case("version").meta(META_VERSION, Some(json!("2999-01-01"))).header(VERSION_HEADER, "2999-01-01"),
            case("no-meta").meta(META_VERSION, None).meta(META_CLIENT_CAPABILITIES, None).meta(META_CLIENT_INFO, None),
            case("malformed-version/empty").meta(META_VERSION, Some(json!(""))).header(VERSION_HEADER, ""),
            case("malformed-version/text")
                .meta(META_VERSION, Some(json!("v999.0.0")))
                .header(VERSION_HEADER, "v999.0.0"),
            case("legacy-version").meta(META_VERSION, Some(json!("2025-11-25"))).header(VERSION_HEADER, "2025-11-25"),
        ]);
        // One client after the other, twice.
        let clients = ["a", "b", "a", "b"].map(|client| {
            let name = format!("lists/clients/{client}/{method}");
            let case = Case::request(name, CaseGroup::Negative, method, json!({}));
            case.meta(META_CLIENT_INFO, Some(json!({ "name": format!("client-{client}"), "version": "1" })))
        });
        cases.extend(clients);
    }
    cases.extend(legacy_cases(material));
    cases.extend(stateless::cases(material));
    let speaks_tasks = material.declares("extensions/io.modelcontextprotocol~1tasks");
    for method in REMOVED.into_iter().filter(|method| !(speaks_tasks && method.starts_with("tasks/"))) {
        cases.push(Case::request(format!("bad-method/removed/{method}"), CaseGroup::Negative, method, json!({})));
    }
    let lists = [("tools", "tools/list"), ("resources", "resources/list"), ("prompts", "prompts/list")];
    for (_, method) in lists.into_iter().filter(|(capability, _)| !material.declares(capability)) {
        cases.push(Case::request(format!("bad-params/undeclared/{method}"), CaseGroup::Negative, method, json!({})));
    }
    if let (false, Some(prompt)) = (material.declares("completions"), material.prompts.first()) {
        let argument = prompt["arguments"].get(0).map_or(json!("rehearse"), |it| it["name"].clone());
        let reference = json!({ "type": "ref/prompt", "name": prompt["name"] });
        let params = json!({ "ref": reference, "argument": { "name": argument, "value": "" } });
        let name = "bad-params/undeclared/completion/complete";
        cases.push(Case::request(name, CaseGroup::Negative, "completion/complete", params));
    }
    cases
}

/// `initialize` with the newest legacy version, and with the oldest one that the server names. Over a pipe each
/// would cost a process; there is the one of `era/initialize`.
fn legacy_cases(material: &Material) -> impl Iterator<Item = Case> {
    let oldest = material.supported.iter().map(String::as_str).filter(|it| *it < FIRST).min();
    let versions = BTreeSet::from(["2025-11-25", oldest.unwrap_or("2025-11-25")]);
    let client = json!({ "name": "rehearse-check", "version": "1" });
    let is_http = material.is_http();
    versions.into_iter().filter(move |_| is_http).map(move |version| {
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let case = Case::request(format!("{LEGACY}/{version}"), CaseGroup::Fresh, "initialize", params);
        let case = case.meta(META_VERSION, None).meta(META_CLIENT_CAPABILITIES, None).meta(META_CLIENT_INFO, None);
        case.without_header(VERSION_HEADER).without_header(METHOD_HEADER)
    })
}

/// What was sent as a legacy client.
fn legacy_calls<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Call<'e>> {
    evidence.case(if evidence.transport == Transport::Http { LEGACY } else { "era/initialize" })
}

fn listed_versions<'e>(evidence: &'e Evidence<'_>) -> HashSet<&'e str> {
    let results = evidence.results_of(DISCOVER).plain();
    let versions = results.flat_map(|(_, result)| elements(&result["supportedVersions"]));
    versions.filter_map(Value::as_str).collect()
}

/// Whether the server also answers `initialize`, or names an older version.
pub(super) fn is_dual(evidence: &Evidence<'_>) -> bool {
    legacy_calls(evidence).any(|call| call.has_result()) || listed_versions(evidence).iter().any(|it| *it < FIRST)
}

fn each(e: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(Option<&Value>) -> Option<bool>) {
    for (call, result) in e.results_of(DISCOVER) {
        let value = result.get(key);
        if let Some(holds) = holds(value).or(value.is_none().then_some(false).filter(|_| key == "supportedVersions")) {
            j.check_at(holds, None, call.places(), || value.map_or_else(|| format!("no `{key}`"), shown));
        }
    }
}

fn works(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    e.case(case).reached().must_get(j, Call::has_result);
}

fn declared(e: &Evidence<'_>, j: &mut Judgement, capability: &str, method: &str) {
    if e.facts.declares(capability) {
        let calls = e.calls_of(method).plain().reached();
        for call in calls.filter(|call| call.request.params().get("cursor").is_none()) {
            // A completion may be refused for other reasons.
            let is_refused = capability == "completions" && call.error_code() != Some(-32601);
            match excuse(&call) {
                Some(excuse) => j.untested(excuse),
                None => j.check_call(call.has_result() || is_refused, &call),
            }
        }
        return;
    }
    for call in e.case(&format!("bad-params/undeclared/{method}")).responded() {
        j.check_code(&[-32601], &call);
        let items = |it: &Value| it.get(capability).or_else(|| it.pointer("/completion/values")).cloned();
        let is_empty = call.result().and_then(items).is_some_and(|it| it.as_array().is_some_and(Vec::is_empty));
        // An empty list is no support.
        if is_empty {
            j.at_level(Level::Info);
        } else if !call.has_result() && call.error_code() != Some(-32601) {
            j.at_level(Level::Derived);
        }
    }
}

fn extensions(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&str, &Value) -> bool) {
    for (call, extensions) in e.results_of(DISCOVER).at("capabilities").at("extensions") {
        for (name, settings) in extensions.as_object().into_iter().flatten() {
            j.check_at(holds(name, settings), Some(name), call.places(), || shown(settings));
        }
    }
}
