//! Ping.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Judge,
    common::{error_code, shown},
};
use crate::{Case, Evidence, Judgement, Lane, Material};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("ping.result.empty", empty),
    ("ping.result.prompt", prompt),
    ("ping.params.omitted-ok", omitted),
    ("ping.server.shape", server_ping),
    ("ping.modern.removed", |e, j| error_code(e, j, "bad-method/ping", &[-32601])),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    match material.is_modern() {
        true => vec![Case::request("bad-method/ping", Lane::Negative, "ping", json!({}))],
        false => vec![Case::request("lists/ping-without-params", Lane::Main, "ping", Value::Null)],
    }
}

fn empty(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (call, result) in evidence.results_of("ping") {
        let more = result.as_object().is_none_or(|members| members.keys().any(|key| key != "_meta"));
        j.check_at(!more, None, call.places(), || shown(result));
    }
}

fn prompt(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.calls_of("ping") {
        let Some(response) = call.response else { continue };
        let took = response.time.saturating_sub(call.request.time);
        j.check_answer(took <= Duration::from_secs(1), &call, || format!("an answer after {took:.1?}"));
    }
}

fn omitted(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.calls_of("ping").filter(|call| call.request.params().is_null() && call.response.is_some()) {
        j.check_call(call.result().is_some(), &call);
    }
}

fn server_ping(evidence: &Evidence<'_>, j: &mut Judgement) {
    for ping in evidence.server_requests().filter(|request| request.method() == Some("ping")) {
        let more = ping.params().as_object().is_some_and(|params| params.keys().any(|key| key != "_meta"));
        j.check(!more, ping, || shown(ping.params()));
    }
}
