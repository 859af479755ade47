//! Results and error codes of 2026-07-28.

use rehearse_protocol::names::TASKS_EXTENSION;
use serde_json::Value;

use super::{
    Judge,
    common::{results, shown},
};
use crate::{Case, Evidence, Judgement, Material};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("result.type.present", |e, j| each(e, j, |_, it| it.is_string())),
    ("result.type.known", |e, j| each(e, j, |_, it| it.as_str().is_none_or(|it| known(e, it)))),
    ("result.type.complete-default", |e, j| each(e, j, |method, it| !is_plain(method) || it == "complete")),
    ("result.code.reserved-range", |e, j| codes(e, j, |code| !(-32099..=-32023).contains(&code))),
    ("result.code.defined-meaning", defined),
    ("result.code.no-32002", |e, j| codes(e, j, |code| code != -32002)),
    ("result.code.no-32042", |e, j| codes(e, j, |code| code != -32042)),
    ("result.code.legacy-range", |e, j| codes(e, j, |code| !(-32019..=-32000).contains(&code))),
    ("result.code.outside-reserved", |e, j| {
        codes(e, j, |code| !(-32768..-32099).contains(&code) || matches!(code, -32700 | -32603..=-32600));
    }),
];

pub(super) fn cases(_: &Material) -> Vec<Case> {
    Vec::new()
}

fn is_plain(method: &str) -> bool {
    method.ends_with("/list") || matches!(method, "server/discover" | "completion/complete")
}

fn known(evidence: &Evidence<'_>, kind: &str) -> bool {
    matches!(kind, "complete" | "input_required") || (kind == "task" && evidence.facts.has_extension(TASKS_EXTENSION))
}

fn each(evidence: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&str, &Value) -> bool) {
    for (call, result) in results(evidence) {
        let kind = &result["resultType"];
        j.check_at(holds(call.method(), kind), Some(call.method().to_owned()), call.places(), || {
            format!("`resultType: {}`", shown(kind))
        });
    }
}

fn codes(evidence: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(i64) -> bool) {
    for response in evidence.responses() {
        if let Some(code) = response.error_code() {
            j.check(holds(code), response, || format!("the code {code}"));
        }
    }
}

fn defined(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.calls().filter(|call| call.request.case.is_none()) {
        let Some(code) = call.error_code() else { continue };
        // A tool may need a capability that the prober does not declare.
        let is_needed = code == -32021 && matches!(call.method(), "tools/call" | "prompts/get" | "resources/read");
        j.check_call(!(-32022..=-32020).contains(&code) || is_needed, &call);
    }
}
