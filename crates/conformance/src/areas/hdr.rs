//! The request headers of 2026-07-28.

use base64::Engine;
use serde_json::{Value, json};

use super::Judge;
use crate::{Call, Case, Evidence, Judgement, Lane, Material};

const MISMATCH: i64 = -32020;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    // A server that speaks older versions may take the request for one of 2025-03-26.
    ("hdr.version.missing-400", |e, j| judge(e, j, "headers/no-version", |call| call.error_code().is_some())),
    ("hdr.version.mismatch-400", |e, j| judge(e, j, "headers/other-version", |call| call.status() == Some(400))),
    ("hdr.version.mismatch-32020", |e, j| {
        judge(e, j, "headers/other-version", |call| call.error_code() == Some(MISMATCH))
    }),
    ("hdr.method.missing-400", |e, j| judge(e, j, "headers/no-method", is_refused)),
    ("hdr.method.mismatch-400", |e, j| judge(e, j, "headers/other-method", is_refused)),
    ("hdr.method.value-case", |e, j| judge(e, j, "headers/method-case", is_refused)),
    ("hdr.name.missing-400", |e, j| judge(e, j, "headers/no-name", is_refused)),
    ("hdr.name.mismatch-400", |e, j| judge(e, j, "headers/other-name", is_refused)),
    ("hdr.name.base64-accepted", |e, j| {
        judge(e, j, "headers/encoded-name", |call| call.error_code() != Some(MISMATCH))
    }),
    ("hdr.name.base64-mismatch", |e, j| judge(e, j, "headers/encoded-other-name", is_refused)),
    ("hdr.name.base64-invalid", |e, j| judge(e, j, "headers/broken-name", is_refused)),
    ("hdr.param.unknown-ignored", |e, j| judge(e, j, "headers/unknown-param", |call| call.result().is_some())),
    ("hdr.error.http-400-and-body", |e, j| {
        for call in e.calls().filter(|call| call.error_code() == Some(MISMATCH)) {
            j.check_call(call.status() == Some(400), &call);
        }
    }),
    ("hdr.error.echo-id", |e, j| {
        for call in e.calls().filter(|call| call.error_code() == Some(MISMATCH)) {
            let id = call.response.and_then(|it| it.id());
            j.check_answer(id == call.request.id(), &call, || format!("`id: {}`", id.unwrap_or(&Value::Null)));
        }
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.is_modern() || !material.is_http() {
        return Vec::new();
    }
    let Some(method) = material.list_methods().first().copied() else { return Vec::new() };
    let list = |name: &str| Case::request(format!("headers/{name}"), Lane::Negative, method, json!({}));
    let other = if method == "prompts/list" { "tools/list" } else { "prompts/list" };
    let mut cases = vec![
        list("unknown-param").header("mcp-param-rehearse", "x"),
        list("no-version").without_header("mcp-protocol-version"),
        list("other-version").meta("io.modelcontextprotocol/protocolVersion", Some(json!("2999-01-01"))),
        list("no-method").without_header("mcp-method"),
        list("other-method").header("mcp-method", other),
        list("method-case").header("mcp-method", &method.to_uppercase()),
    ];
    let resource = material.resources.first().and_then(|it| it["uri"].as_str());
    let prompt = material.prompts.first().and_then(|it| it["name"].as_str());
    let encoded = |text: &str| format!("=?base64?{}?=", base64::prelude::BASE64_STANDARD.encode(text));
    let named = [("resources/read", "uri", resource), ("prompts/get", "name", prompt)];
    for (method, key, name) in named {
        let Some(name) = name else { continue };
        let case = |variant: &str| {
            Case::request(format!("headers/{variant}/{method}"), Lane::Negative, method, json!({ key: name }))
        };
        cases.extend([
            case("encoded-name").header("mcp-name", &encoded(name)),
            case("no-name").without_header("mcp-name"),
            case("other-name").header("mcp-name", "rehearse-other"),
            case("encoded-other-name").header("mcp-name", &encoded("rehearse-other")),
            case("broken-name").header("mcp-name", "=?base64?%%%?="),
        ]);
    }
    cases
}

fn is_refused(call: &Call<'_>) -> bool {
    call.status() == Some(400) && call.error_code() == Some(MISMATCH)
}

fn judge(evidence: &Evidence<'_>, j: &mut Judgement, case: &str, holds: impl Fn(&Call<'_>) -> bool) {
    for call in evidence.case(case) {
        match call.is_answered() {
            true if matches!(call.status(), Some(401 | 403)) => {}
            true => j.check_call(holds(&call), &call),
            false => j.untested("the server did not answer"),
        }
    }
}
