//! Results and error codes of 2026-07-28.

use rehearse_protocol::names::TASKS_EXTENSION;
use serde_json::Value;

use super::Judge;
use super::common::{results, shown};
use super::query::{Calls, Query};
use crate::{Call, Evidence, Judgement, Message};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("result.type.present", |e, j| each(e, j, |_, it| it.is_string())),
    ("result.type.known", |e, j| each(e, j, |_, it| it.as_str().is_none_or(|it| known(e, it)))),
    ("result.type.complete-default", |e, j| each(e, j, |method, it| !is_plain(method) || it == "complete")),
    ("result.code.reserved-range", |e, j| codes(e, j, |code| !(-32099..=-32023).contains(&code))),
    ("result.code.defined-meaning", |e, j| {
        // A tool may need a capability that the prober does not declare.
        let is_needed = |call: &Call<'_>| {
            call.error_code() == Some(-32021)
                && matches!(call.method(), "tools/call" | "prompts/get" | "resources/read")
        };
        let is_other = |call: &Call<'_>| call.error_code().is_none_or(|code| !(-32022..=-32020).contains(&code));
        e.calls().plain().filter(Call::has_error).must_get(j, |call| is_other(call) || is_needed(call));
    }),
    ("result.code.no-32002", |e, j| codes(e, j, |code| code != -32002)),
    ("result.code.no-32042", |e, j| codes(e, j, |code| code != -32042)),
    ("result.code.legacy-range", |e, j| codes(e, j, |code| !(-32019..=-32000).contains(&code))),
    ("result.code.outside-reserved", |e, j| {
        codes(e, j, |code| !(-32768..-32099).contains(&code) || matches!(code, -32700 | -32603..=-32600))
    }),
];

fn is_plain(method: &str) -> bool {
    method.ends_with("/list") || matches!(method, "server/discover" | "completion/complete")
}

fn known(evidence: &Evidence<'_>, kind: &str) -> bool {
    matches!(kind, "complete" | "input_required") || (kind == "task" && evidence.facts.has_extension(TASKS_EXTENSION))
}

fn each(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&str, &Value) -> bool) {
    for (call, result) in results(e) {
        let kind = &result["resultType"];
        let found = || format!("`resultType: {}`", shown(kind));
        j.check_at(holds(call.method(), kind), Some(call.method()), call.places(), found);
    }
}

fn codes(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(i64) -> bool) {
    let errors = e.responses().filter(|it| it.error_code().is_some());
    let code = |it: &Message<'_>| it.error_code().unwrap_or_default();
    errors.must(j, |it| holds(code(it)), |it| format!("the code {}", code(it)));
}
