//! Two eras: a client of one and a server of the other, or of both.

use rehearse_protocol::{
    Era, Version,
    names::{METHOD_HEADER, VERSION_HEADER},
};
use serde_json::{Value, json};

use super::query::{Calls, Query};
use super::{Judge, common::cheap_request};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Material, Message};

const DISCOVER: &str = "server/discover";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("era.legacy.initialize-served", |e, j| {
        if !supported(e).into_iter().any(legacy) {
            return j.untested("`server/discover` names no older version");
        }
        e.case("era/initialize").filter(Call::is_answered).must_get(j, is_legacy_hello);
    }),
    ("era.modern.initialize-error", |e, j| {
        for call in refusals(e, j) {
            if !call.is_answered() {
                j.untested = Some("the server did not answer".to_owned());
                continue;
            }
            j.check_call(call.has_error() || call.status().is_some_and(|status| status >= 400), &call);
        }
    }),
    ("era.modern.initialize-names-versions", |e, j| {
        let supported = supported(e).into_iter().filter_map(Value::as_str);
        // It may have no `server/discover`.
        let supported: Vec<_> = supported.chain([e.version.as_str()]).collect();
        for call in refusals(e, j).into_iter().filter(|call| call.is_answered() && !call.has_result()) {
            let error = call.response.and_then(Message::error).map(Value::to_string);
            let body = call.http.map(|http| String::from_utf8_lossy(&http.body).into_owned());
            let texts: Vec<_> = error.into_iter().chain(body).collect();
            let is_named = texts.iter().any(|text| supported.iter().any(|version| text.contains(version)));
            j.check_answer(is_named, &call, || format!("{} without the versions that it supports", call.answer_text()));
        }
    }),
    ("era.mixed.concurrent", |e, j| {
        j.untested(NOT_BOTH);
        e.case("era/mixed/modern").must(
            j,
            |call| call.result().is_some_and(is_modern_result),
            |call| match call.result() {
                Some(_) => "a result without a `resultType`".to_owned(),
                None => call.answer_text(),
            },
        );
    }),
    ("era.selector.by-meta", |e, j| {
        j.untested(NOT_BOTH);
        e.case("era/by-meta").must_get(j, |call| call.result().is_some_and(is_modern_result));
    }),
    ("era.probe.legacy-server-robust", |e, j| {
        if e.case("era/discover-first").any(|call| call.has_result()) {
            return j.untested("the server speaks 2026-07-28 as well");
        }
        for connection in &e.connections {
            for call in connection.calls().filter(|call| call.request.case == Some("era/then-initialize")) {
                match e.is_starting(connection) {
                    true => j.untested("the process did not start in time"),
                    false => j.check_call(call.has_result(), &call),
                }
            }
        }
    }),
    ("era.probe.legacy-http", |e, j| {
        for call in e.case("era/modern-post") {
            match call.has_result() {
                true => j.untested("the server speaks 2026-07-28 as well"),
                false => j.check_call(call.status().is_some_and(|status| status < 500), &call),
            }
        }
    }),
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
    let results = evidence.results_of(DISCOVER).plain();
    results.filter_map(|(_, result)| result["supportedVersions"].as_array()).flatten().collect()
}

fn is_legacy_hello(call: &Call<'_>) -> bool {
    call.result().is_some_and(|result| legacy(&result["protocolVersion"]))
}

/// The answers of a server without older versions to `initialize`.
fn refusals<'e>(e: &'e Evidence<'_>, j: &mut Judgement) -> Vec<Call<'e>> {
    j.untested("the server speaks older versions as well");
    let is_modern_only = |call: &Call<'_>| !is_legacy_hello(call) && !supported(e).into_iter().any(legacy);
    e.case("era/initialize").filter(is_modern_only).collect()
}

fn is_modern_result(result: &Value) -> bool {
    result.get("resultType").is_some()
}
