//! Two eras: a client of one and a server of the other, or of both.

use rehearse_protocol::{
    Era, Version,
    names::{METHOD_HEADER, VERSION_HEADER},
};
use serde_json::{Value, json};

use super::{Judge, common::cheap_request};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Material, Message};

const DISCOVER: &str = "server/discover";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("era.legacy.initialize-served", initialize_served),
    ("era.modern.initialize-error", initialize_error),
    ("era.modern.initialize-names-versions", names_versions),
    ("era.mixed.concurrent", concurrent),
    ("era.selector.by-meta", |e, j| {
        j.untested(NOT_BOTH);
        for call in e.case("era/by-meta") {
            j.check_call(call.result().is_some_and(is_modern_result), &call);
        }
    }),
    ("era.probe.legacy-server-robust", survives_discover),
    ("era.probe.legacy-http", refuses_modern),
];

const NOT_BOTH: &str = "the server speaks one era";

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if material.is_modern() {
        let params = initialize();
        let request = json!({ "jsonrpc": "2.0", "id": "era-1", "method": "initialize", "params": params });
        let case = Case::bytes("era/initialize", CaseGroup::Fresh, request.to_string());
        return vec![case.without_header(VERSION_HEADER).without_header(METHOD_HEADER)];
    }
    if material.version == Some(Version::LATEST_LEGACY) && material.is_http() {
        let modern = Material { version: Some(Version::LATEST), ..material.clone() };
        let (_, params) = cheap_request(&modern);
        let case = Case::request("era/modern-post", CaseGroup::Fresh, DISCOVER, params);
        let version = Version::LATEST.as_str();
        return vec![case.header(VERSION_HEADER, version).header(METHOD_HEADER, DISCOVER)];
    }
    Vec::new()
}

fn initialize() -> Value {
    let info = json!({ "name": "rehearse-check", "version": "1" });
    json!({ "protocolVersion": Version::LATEST_LEGACY.as_str(), "capabilities": {}, "clientInfo": info })
}

fn legacy(version: &Value) -> bool {
    version.as_str().and_then(|text| text.parse::<Version>().ok()).is_some_and(|it| it.era() == Era::Legacy)
}

/// The versions that `server/discover` names.
fn supported<'e>(evidence: &'e Evidence<'_>) -> Vec<&'e Value> {
    let results = evidence.results_of(DISCOVER).filter(|(call, _)| call.request.case.is_none());
    results.filter_map(|(_, result)| result["supportedVersions"].as_array()).flatten().collect()
}

fn is_legacy_hello(call: &Call<'_>) -> bool {
    call.result().is_some_and(|result| legacy(&result["protocolVersion"]))
}

fn initialize_served(evidence: &Evidence<'_>, j: &mut Judgement) {
    if !supported(evidence).into_iter().any(legacy) {
        return j.untested("`server/discover` names no older version");
    }
    for call in evidence.case("era/initialize").filter(Call::is_answered) {
        j.check_call(is_legacy_hello(&call), &call);
    }
}

/// The answers of a server without older versions to `initialize`.
fn refusals<'e>(evidence: &'e Evidence<'_>, j: &mut Judgement) -> Vec<Call<'e>> {
    j.untested("the server speaks older versions as well");
    let is_modern_only = |call: &Call<'_>| !is_legacy_hello(call) && !supported(evidence).into_iter().any(legacy);
    evidence.case("era/initialize").filter(is_modern_only).collect()
}

fn initialize_error(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in refusals(evidence, j) {
        if !call.is_answered() {
            j.untested = Some("the server did not answer".to_owned());
            continue;
        }
        let is_error = call.error_code().is_some() || call.status().is_some_and(|status| status >= 400);
        j.check_call(is_error, &call);
    }
}

fn names_versions(evidence: &Evidence<'_>, j: &mut Judgement) {
    let supported = supported(evidence).into_iter().filter_map(Value::as_str);
    // It may have no `server/discover`.
    let supported: Vec<_> = supported.chain([evidence.version.as_str()]).collect();
    for call in refusals(evidence, j).into_iter().filter(|call| call.is_answered() && call.result().is_none()) {
        let error = call.response.and_then(Message::error).map(Value::to_string);
        let body = call.http.map(|http| String::from_utf8_lossy(&http.body).into_owned());
        let texts: Vec<_> = error.into_iter().chain(body).collect();
        let is_named = texts.iter().any(|text| supported.iter().any(|version| text.contains(version)));
        j.check_answer(is_named, &call, || format!("{} without the versions that it supports", call.answer_text()));
    }
}

fn is_modern_result(result: &Value) -> bool {
    result.get("resultType").is_some()
}

fn concurrent(evidence: &Evidence<'_>, j: &mut Judgement) {
    j.untested(NOT_BOTH);
    for call in evidence.case("era/mixed/modern") {
        j.check_answer(call.result().is_some_and(is_modern_result), &call, || match call.result() {
            Some(_) => "a result without a `resultType`".to_owned(),
            None => call.answer_text(),
        });
    }
}

fn survives_discover(evidence: &Evidence<'_>, j: &mut Judgement) {
    if evidence.case("era/discover-first").any(|call| call.result().is_some()) {
        return j.untested("the server speaks 2026-07-28 as well");
    }
    for connection in &evidence.connections {
        for call in connection.calls().filter(|call| call.request.case == Some("era/then-initialize")) {
            match evidence.is_starting(connection) {
                true => j.untested("the process did not start in time"),
                false => j.check_call(call.result().is_some(), &call),
            }
        }
    }
}

fn refuses_modern(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("era/modern-post") {
        if call.result().is_some() {
            j.untested("the server speaks 2026-07-28 as well");
            continue;
        }
        let is_refused = call.status().is_some_and(|status| status < 500);
        j.check_call(is_refused, &call);
    }
}
