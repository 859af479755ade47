//! The request headers of 2026-07-28.

use base64::Engine;
use rehearse_document::json_schema::accepts;
use rehearse_protocol::names::{META_VERSION, METHOD_HEADER, NAME_HEADER, VERSION_HEADER};
use serde_json::{Value, json};

use super::query::{Calls, Query, elements};
use super::{Judge, common::is_case_of, rpc::is_id};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Kind, Material, MirroredCall, MirroredParameter};

const MISMATCH: i64 = -32020;
/// The cases whose headers are missing, differ from the body, or cannot be decoded.
const MISMATCHES: [&str; 10] = [
    "headers/no-method",
    "headers/other-method",
    "headers/method-case",
    "headers/no-name",
    "headers/other-name",
    "headers/encoded-other-name",
    "headers/broken-name",
    "param-headers/omitted",
    "param-headers/other",
    "param-headers/broken",
];
const UNSUPPORTED_VERSION: i64 = -32022;
const NOT_CALLED: &str = "no tool with `x-mcp-header` was called; --allow-tool NAME allows one";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("hdr.version.missing-400", |e, j| {
        for call in e.case("headers/no-version").filter(Call::is_answered) {
            let result = call.result();
            if result.is_some_and(|result| result.get("resultType").is_none()) {
                j.untested("the server takes the request for one of 2025-03-26");
            } else if !matches!(call.status(), Some(401 | 403)) {
                j.check_call(result.is_none(), &call);
            }
        }
    }),
    ("hdr.version.mismatch-400", |e, j| {
        judge(e, j, "headers/other-version", |call| call.status() == Some(400));
        judge(e, j, "headers/wrong-version", |call| call.status() == Some(400));
    }),
    ("hdr.version.mismatch-32020", |e, j| {
        for call in e.case("headers/other-version").filter(Call::is_answered) {
            match call.error_code() {
                Some(UNSUPPORTED_VERSION) => j.untested("the server refuses the version in `_meta` first"),
                _ if matches!(call.status(), Some(401 | 403 | 429 | 503)) => {}
                code => j.check_call(code == Some(MISMATCH), &call),
            }
        }
    }),
    ("hdr.method.missing-400", |e, j| judge(e, j, "headers/no-method", is_refused)),
    ("hdr.method.mismatch-400", |e, j| judge(e, j, "headers/other-method", is_refused)),
    ("hdr.method.value-case", |e, j| judge(e, j, "headers/method-case", is_refused)),
    ("hdr.method.name-case-ok", |e, j| judge(e, j, "shape/title-case", is_accepted)),
    ("hdr.method.whitespace-ok", |e, j| judge(e, j, "headers/padded-method", is_accepted)),
    ("hdr.name.missing-400", |e, j| judge(e, j, "headers/no-name", is_refused)),
    ("hdr.name.mismatch-400", |e, j| judge(e, j, "headers/other-name", is_refused)),
    ("hdr.name.base64-accepted", |e, j| judge(e, j, "headers/encoded-name", is_accepted)),
    ("hdr.name.base64-mismatch", |e, j| judge(e, j, "headers/encoded-other-name", is_refused)),
    ("hdr.name.base64-invalid", |e, j| judge(e, j, "headers/broken-name", is_refused)),
    ("hdr.name.prefix-case", |e, j| judge(e, j, "headers/prefix-case", is_refused)),
    ("hdr.name.non-ascii-uri", |e, j| {
        let is_encoded = |call: &Call<'_>| {
            let name = call.http.and_then(|http| http.request_header(NAME_HEADER));
            name.is_some_and(|name| name.starts_with("=?base64?"))
        };
        e.calls().plain().filter(|call| is_encoded(call) && call.is_answered()).must_get(j, is_accepted);
    }),
    ("hdr.param.required-400", |e, j| param(e, j, "param-headers/omitted", is_refused)),
    ("hdr.param.mismatch-400", |e, j| param(e, j, "param-headers/other", is_refused)),
    ("hdr.param.match-ok", |e, j| param(e, j, "param-headers/match", is_accepted)),
    ("hdr.param.base64-ok", |e, j| param(e, j, "param-headers/encoded", is_accepted)),
    ("hdr.param.base64-invalid", |e, j| param(e, j, "param-headers/broken", is_refused)),
    ("hdr.param.literal-base64-text", |e, j| param(e, j, "param-headers/literal", is_accepted)),
    ("hdr.param.null-not-expected", |e, j| param(e, j, "param-headers/absent", is_accepted)),
    ("hdr.param.integer-numeric", |e, j| param(e, j, "param-headers/decimal", is_accepted)),
    ("hdr.param.boolean-lower", |e, j| param(e, j, "param-headers/capital", is_refused)),
    ("hdr.param.unknown-ignored", |e, j| judge(e, j, "headers/unknown-param", |call| call.has_result())),
    ("hdr.error.http-400-and-body", |e, j| {
        // What the text does not call a mismatch may have another code.
        let is_named = |call: &Call<'_>| MISMATCHES.iter().any(|case| is_case_of(call, case)) && is_refused(call);
        let calls = e.calls().filter(|call| !matches!(call.status(), None | Some(401 | 403 | 429 | 503)));
        let refusals = calls.filter(|call| call.error_code() == Some(MISMATCH) || is_named(call));
        refusals.must_get(j, |call| call.status() == Some(400) && call.error_code() == Some(MISMATCH));
    }),
    ("hdr.error.echo-id", |e, j| {
        for call in e.calls().filter(|call| call.error_code() == Some(MISMATCH) && call.request.kind == Kind::Request) {
            let (sent, id) = (call.request.id(), call.response.and_then(|it| it.id()));
            // A fraction is no id (JSON-RPC 2.0, 4; basic#requests: a string or an integer).
            if sent.is_some_and(is_id) {
                j.check_answer(id == sent, &call, || format!("`id: {}`", id.unwrap_or(&Value::Null)));
            }
        }
    }),
    ("hdr.extra.duplicate-header", |e, j| judge(e, j, "headers/duplicate-method", is_refused)),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.is_modern() || !material.is_http() {
        return Vec::new();
    }
    let method = material.cheap_method();
    let list = |name: &str| Case::request(format!("headers/{name}"), CaseGroup::Negative, method, json!({}));
    let other = if method == "prompts/list" { "tools/list" } else { "prompts/list" };
    let mut cases = vec![
        list("unknown-param").header("mcp-param-rehearse", "x"),
        list("no-version").without_header(VERSION_HEADER),
        list("other-version").meta(META_VERSION, Some(json!("2999-01-01"))),
        list("wrong-version").header(VERSION_HEADER, "2999-01-01"),
        list("no-method").without_header(METHOD_HEADER),
        list("other-method").header(METHOD_HEADER, other),
        list("method-case").header(METHOD_HEADER, &method.to_uppercase()),
        list("padded-method").header(METHOD_HEADER, &format!("  {method}  ")),
        list("duplicate-method").header(METHOD_HEADER, method).header(METHOD_HEADER, other),
    ];
    let encoded = |text: &str| format!("=?base64?{}?=", base64::prelude::BASE64_STANDARD.encode(text));
    for (group, method, name, params) in named(material) {
        let case = |variant: &str| Case::request(format!("headers/{variant}/{method}"), group, method, params.clone());
        cases.extend([
            case("encoded-name").header(NAME_HEADER, &encoded(&name)),
            case("no-name").without_header(NAME_HEADER),
            case("other-name").header(NAME_HEADER, "rehearse-other"),
            case("encoded-other-name").header(NAME_HEADER, &encoded("rehearse-other")),
            case("broken-name").header(NAME_HEADER, "=?base64?%%%?="),
            case("prefix-case").header(NAME_HEADER, &encoded(&name).replace("base64", "BASE64")),
        ]);
    }
    cases.extend(material.mirrored.iter().flat_map(mirrored_cases));
    cases
}

/// A valid request of each method with `Mcp-Name`, with its group and the name.
fn named(material: &Material) -> Vec<(CaseGroup, &'static str, String, Value)> {
    let mut named = Vec::new();
    if let Some(uri) = material.resources.iter().find_map(|it| it["uri"].as_str()) {
        named.push((CaseGroup::Negative, "resources/read", uri.to_owned(), json!({ "uri": uri })));
    }
    if let Some((prompt, name)) = material.prompts.iter().find_map(|it| Some((it, it["name"].as_str()?))) {
        let arguments = elements(&prompt["arguments"]).filter(|it| it["required"] == true);
        let arguments = arguments.filter_map(|it| Some((it["name"].as_str()?.to_owned(), json!("rehearse"))));
        let arguments: serde_json::Map<_, _> = arguments.collect();
        let params = json!({ "name": name, "arguments": arguments });
        named.push((CaseGroup::Negative, "prompts/get", name.to_owned(), params));
    }
    if let Some((tool, arguments)) = material.callable.first() {
        named.push((CaseGroup::Calls, "tools/call", tool.clone(), Material::call_params(tool, arguments)));
    }
    named
}

/// The text of a value in a header.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Whether a text can stand in a header as it is.
fn is_plain(text: &str) -> bool {
    text.trim() == text && text.bytes().all(|it| (0x20..0x7f).contains(&it)) && !text.starts_with("=?")
}

/// The calls of one tool, each with one thing changed.
fn mirrored_cases(tool: &MirroredCall) -> Vec<Case> {
    let encoded = |text: &str| format!("=?base64?{}?=", base64::prelude::BASE64_STANDARD.encode(text));
    // A call with the right headers, but for one parameter.
    let call = |variant: String, arguments: &Value, changed: Option<(&MirroredParameter, Option<String>)>| {
        let name = format!("param-headers/{variant}");
        let mut case =
            Case::request(name, CaseGroup::Calls, "tools/call", Material::call_params(&tool.tool, arguments));
        for parameter in &tool.parameters {
            let value = arguments.pointer(&parameter.pointer).and_then(text);
            let value = value.map(|value| if is_plain(&value) { value } else { encoded(&value) });
            let value = match &changed {
                Some((it, value)) if it.header == parameter.header => value.clone(),
                _ => value,
            };
            let Some(value) = value else { continue };
            case = case.header(&parameter.header, &value);
        }
        case
    };
    let mut cases = vec![call(format!("match/{}", tool.tool), &tool.arguments, None)];
    for parameter in &tool.parameters {
        let (arguments, header) = (&tool.arguments, &parameter.header);
        let name = |variant: &str| format!("{variant}/{}/{header}", tool.tool);
        let with = |variant: &str, value: Option<String>| call(name(variant), arguments, Some((parameter, value)));
        let Some(value) = arguments.pointer(&parameter.pointer) else {
            cases.push(call(name("absent"), arguments, None));
            continue;
        };
        let Some(shown) = text(value) else { continue };
        let mut without = arguments.clone();
        if let (Some(members), Some(key)) = (without.as_object_mut(), parameter.pointer.strip_prefix('/')) {
            members.remove(key);
        }
        if without != *arguments && accepts(&tool.schema, &without) == Some(true) {
            cases.push(call(name("absent"), &without, None));
        }
        cases.push(with("omitted", None));
        match value {
            Value::Bool(it) => {
                cases.push(with("other", Some((!it).to_string())));
                cases.push(with("capital", Some(if *it { "True" } else { "False" }.to_owned())));
            }
            Value::Number(_) => {
                cases.push(with("other", Some(format!("{shown}1"))));
                cases.push(with("decimal", Some(format!("{shown}.0"))));
            }
            _ => {
                cases.push(with("other", Some("rehearse-other".to_owned())));
                cases.push(with("encoded", Some(encoded(&shown))));
                cases.push(with("broken", Some("=?base64?%%%?=".to_owned())));
                let mut literal = arguments.clone();
                if let Some(value) = literal.pointer_mut(&parameter.pointer) {
                    *value = json!("SGVsbG8=");
                }
                if accepts(&tool.schema, &literal) == Some(true) {
                    cases.push(call(name("literal"), &literal, None));
                }
            }
        }
    }
    cases
}

/// Whether it is refused at all: how, has a check of its own.
fn is_refused(call: &Call<'_>) -> bool {
    call.has_error() || call.status().is_some_and(|status| status >= 400)
}

/// Whether the headers are in order; what the request asks for may be refused.
fn is_accepted(call: &Call<'_>) -> bool {
    call.response.is_some() && call.error_code() != Some(MISMATCH)
}

fn judge(e: &Evidence<'_>, j: &mut Judgement, case: &str, holds: impl Fn(&Call<'_>) -> bool) {
    for call in e.case(case) {
        match call.is_answered() {
            true if matches!(call.status(), Some(401 | 403 | 429 | 503)) => {
                j.untested("the server refused the request for another reason");
            }
            true => j.check_call(holds(&call), &call),
            false => j.untested("the server did not answer"),
        }
    }
}

fn param(e: &Evidence<'_>, j: &mut Judgement, case: &str, holds: impl Fn(&Call<'_>) -> bool) {
    judge(e, j, case, holds);
    j.untested(if e.case("param-headers").next().is_some() {
        "no tool that may be called has such a parameter"
    } else {
        NOT_CALLED
    });
}
