//! The request headers of 2026-07-28, as a client sends them.

use super::super::Judge;
use super::super::tool_schema::{HEADER, is_token};
use super::common::{all_modern, bounded, header, header_text, is_same, modern};
use super::completes;
use super::header_value::{decoded, is_encoded, is_plain};
use super::params::{Param, declared, faulty, param, params, unannotated};
use crate::{Evidence, Judgement, evidence::VERSION_POINTER};
use rehearse_protocol::names::{METHOD_HEADER, NAME_HEADER, VERSION_HEADER};

pub(super) const MISMATCH: i64 = -32020;
const TASKS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];
/// The methods with `Mcp-Name`, each with its value.
const NAMED: [(&str, &str); 3] =
    [("tools/call", "/params/name"), ("resources/read", "/params/uri"), ("prompts/get", "/params/name")];

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-hdr.version.present", |e, j| {
        for call in all_modern(e) {
            let value = call.http.and_then(|http| header(http, VERSION_HEADER));
            j.check_subject(value.is_some(), call.method(), call.request, || header_text("MCP-Protocol-Version", None));
        }
    }),
    ("client-hdr.version.matches-meta", |e, j| {
        for call in all_modern(e) {
            let value = call.http.and_then(|http| header(http, VERSION_HEADER));
            let (Some(value), Some(meta)) = (value, call.request.at(VERSION_POINTER).as_str()) else { continue };
            let text = || header_text("MCP-Protocol-Version", Some(&value));
            j.check_subject(value == meta, call.method(), call.request, text);
        }
    }),
    ("client-hdr.method.present", |e, j| {
        for call in all_modern(e) {
            let value = call.http.and_then(|http| header(http, METHOD_HEADER));
            let holds = value.as_deref() == Some(call.method());
            j.check_subject(holds, call.method(), call.request, || header_text("Mcp-Method", value.as_deref()));
        }
    }),
    ("client-hdr.name.tools-call", |e, j| name(e, j, "tools/call", "/params/name")),
    ("client-hdr.name.resources-read", |e, j| name(e, j, "resources/read", "/params/uri")),
    ("client-hdr.name.prompts-get", |e, j| name(e, j, "prompts/get", "/params/name")),
    ("client-hdr.name.tasks", |e, j| TASKS.iter().for_each(|method| name(e, j, method, "/params/taskId"))),
    ("client-hdr.name.encoded", |e, j| {
        names(e, j, |name, value| {
            (!is_plain(name)).then(|| value != name && is_encoded(value) && decoded(value) == name)
        })
    }),
    ("client-hdr.name.plain-when-safe", |e, j| names(e, j, |name, value| is_plain(name).then_some(!is_encoded(value)))),
    ("client-hdr.param.mirrored", |e, j| param(e, j, |it| it.text().is_some_and(|it| !it.is_empty()), is_mirrored)),
    ("client-hdr.param.string-plain", |e, j| {
        param(e, j, |it| has_value(it) && it.string().is_some_and(is_plain), |it| it.header.as_deref() == it.string())
    }),
    ("client-hdr.param.integer", |e, j| {
        param(e, j, |it| has_value(it) && (it.value.is_i64() || it.value.is_u64()), is_text)
    }),
    ("client-hdr.param.boolean", |e, j| param(e, j, |it| has_value(it) && it.value.is_boolean(), is_text)),
    ("client-hdr.param.non-ascii", |e, j| encodes(e, j, |text| !text.is_ascii())),
    ("client-hdr.param.control-chars", |e, j| {
        encodes(e, j, |text| text.chars().any(|it| it.is_ascii_control() && it != '\t'))
    }),
    ("client-hdr.param.edge-whitespace", |e, j| encodes(e, j, |text| text.trim_matches([' ', '\t']) != text)),
    ("client-hdr.param.sentinel-escaped", |e, j| encodes(e, j, is_encoded)),
    ("client-hdr.param.sentinel-case", |e, j| {
        let is_marked = |it: &Param<'_>| {
            let header = it.header.as_deref().unwrap_or_default();
            Some(header) != it.string() && is_encoded(&header.to_ascii_lowercase())
        };
        param(e, j, is_marked, |it| it.header.as_deref().is_some_and(is_encoded));
    }),
    ("client-hdr.param.null-omitted", |e, j| {
        param(e, j, |it| it.is_given && it.value.is_null(), |it| it.header.is_none())
    }),
    ("client-hdr.param.absent-omitted", |e, j| {
        param(e, j, |it| !it.is_given && !it.is_required, |it| it.header.is_none())
    }),
    ("client-hdr.param.empty-string", |e, j| {
        param(e, j, |it| it.string() == Some(""), |it| it.header.as_deref().is_some_and(|it| decoded(it).is_empty()))
    }),
    ("client-hdr.param.nested-path", |e, j| {
        let is_nested = |it: &Param<'_>| it.pointer.matches('/').count() > 1 && it.text().is_some();
        param(e, j, is_nested, is_mirrored);
    }),
    ("client-hdr.param.body-kept", |e, j| param(e, j, |it| has_value(it) && it.is_required, |it| it.is_given)),
    ("client-hdr.param.unannotated-none", unannotated),
    ("client-hdr.reject.empty", |e, j| faulty(e, j, |it| it.iter().any(|it| it.json[HEADER] == ""))),
    ("client-hdr.reject.bad-token", |e, j| {
        faulty(e, j, |it| it.iter().any(|it| it.json[HEADER].as_str().is_none_or(|name| !is_token(name))))
    }),
    ("client-hdr.reject.duplicate", |e, j| {
        faulty(e, j, |headers| {
            let names = headers.iter().filter_map(|it| it.json[HEADER].as_str()).map(str::to_ascii_lowercase);
            names.clone().collect::<std::collections::BTreeSet<_>>().len() < names.count()
        });
    }),
    ("client-hdr.reject.type", |e, j| {
        const OTHERS: [&str; 4] = ["number", "object", "array", "null"];
        faulty(e, j, |it| it.iter().any(|it| OTHERS.iter().any(|kind| it.json["type"] == **kind)));
    }),
    ("client-hdr.reject.unreachable", |e, j| faulty(e, j, |it| it.iter().any(|it| !it.is_reachable))),
    ("client-hdr.reject.others-kept", |e, j| {
        if e.facts.flow.as_ref().is_some_and(|flow| flow.methods.contains("tools/call")) {
            completes(e, j, "headers");
        }
    }),
    ("client-hdr.mismatch.relist-and-retry", |e, j| {
        let tools = declared(e);
        for connection in &e.connections {
            let calls: Vec<_> = modern(connection).collect();
            for call in calls.iter().filter(|it| it.error_code() == Some(MISMATCH) && it.method() == "tools/call") {
                let Some(response) = call.response else { continue };
                let tool = call.text("/params/name").unwrap_or_default();
                let has_params = tools.get(tool).is_some_and(|schema| schema.is_some_and(|it| !params(it).is_empty()));
                let is_again =
                    |it: &&crate::Call<'_>| it.request.place > response.place && is_same(it.request, call.request);
                let Some(again) = calls.iter().find(is_again).filter(|_| has_params) else {
                    j.untested("the client did not try again");
                    continue;
                };
                let is_between =
                    |it: &crate::Call<'_>| (response.place..again.request.place).contains(&it.request.place);
                let is_listed = calls.iter().any(|it| it.method() == "tools/list" && is_between(it));
                let places = vec![response.place, again.request.place];
                j.check_at(is_listed, Some(tool), places, || "another attempt without `tools/list`");
            }
        }
    }),
    ("client-hdr.mismatch.no-loop", |e, j| bounded(e, j, MISMATCH)),
];

pub(super) fn name(e: &Evidence<'_>, j: &mut Judgement, method: &str, pointer: &str) {
    for call in all_modern(e).filter(|call| call.method() == method) {
        let Some(name) = call.text(pointer) else { continue };
        let value = call.http.and_then(|http| header(http, NAME_HEADER));
        // At its ends, HTTP has no whitespace. How such a name is sent, has a check of its own.
        let is_named = |value: &str| value == name || decoded(value).trim() == name.trim();
        let holds = value.as_deref().is_some_and(is_named);
        j.check_subject(holds, name, call.request, || header_text("Mcp-Name", value.as_deref()));
    }
}

/// Checks the names that are sent at all.
fn names(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&str, &str) -> Option<bool>) {
    for (method, pointer) in NAMED {
        for call in all_modern(e).filter(|call| call.method() == method) {
            let value = call.http.and_then(|http| header(http, NAME_HEADER));
            let (Some(name), Some(value)) = (call.text(pointer), value) else { continue };
            let Some(holds) = holds(name, &value) else { continue };
            j.check_subject(holds, name, call.request, || header_text("Mcp-Name", Some(&value)));
        }
    }
}

/// Whether a value and its header are both there.
fn has_value(param: &Param<'_>) -> bool {
    param.header.is_some()
}

fn is_mirrored(param: &Param<'_>) -> bool {
    let Some(value) = param.header.as_deref() else { return false };
    // How numbers are written, and what is encoded, have checks of their own.
    param.string().is_none_or(|text| value == text || decoded(value).trim() == text.trim())
}

fn is_text(param: &Param<'_>) -> bool {
    param.header.as_deref().map(decoded) == param.text()
}

fn encodes(e: &Evidence<'_>, j: &mut Judgement, applies: impl Fn(&str) -> bool) {
    let is_such = |it: &Param<'_>| has_value(it) && it.string().is_some_and(&applies);
    param(e, j, is_such, |it| {
        it.header.as_deref().is_some_and(|value| {
            Some(value) != it.string() && is_encoded(value) && Some(&*decoded(value)) == it.string()
        })
    });
}
