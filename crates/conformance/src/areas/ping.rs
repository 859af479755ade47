//! Ping.

use std::time::Duration;

use serde_json::{Value, json};

use super::Judge;
use super::common::{error_code, is_empty, shown};
use super::query::{Calls, Query};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Material, Message};

/// What takes longer is not prompt.
const PROMPT: Duration = Duration::from_secs(5);
/// How many pings show that all are late.
const SEVERAL: usize = 5;
const WITHOUT_PARAMS: &str = "lists/ping-without-params";
const WITH_PARAMS: &str = "lists/ping-with-params";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("ping.result.empty", |e, j| {
        e.results_of("ping").must(j, is_empty, shown);
        // The main connection sends it in normal work, so that only a server without `ping` refuses it.
        let refused = e.calls_of("ping").filter(|call| call.request.case == Some(WITH_PARAMS) && call.has_error());
        refused.filter(|call| !call.is_refused_elsewhere()).must_get(j, |_| false);
    }),
    ("ping.result.prompt", prompt),
    ("ping.params.omitted-ok", |e, j| {
        let is_refused = e.case(WITH_PARAMS).any(|call| call.has_error());
        let is_usual = |call: &Call<'_>| call.request.case.is_none_or(|case| case == WITHOUT_PARAMS);
        let bare = e.calls_of("ping").filter(|call| call.request.params().is_null() && is_usual(call));
        for call in bare.reached() {
            match is_refused {
                true => j.untested("the server refuses `ping` with params as well"),
                false => j.check_call(call.has_result(), &call),
            }
        }
    }),
    ("ping.server.shape", |e, j| {
        let pings = e.server_requests().filter(|request| request.method() == Some("ping"));
        let is_bare = |ping: &Message<'_>| !ping.params().is_object() || is_empty(ping.params());
        pings.must(j, is_bare, |ping| shown(ping.params()));
    }),
    ("ping.modern.removed", |e, j| error_code(e, j, "bad-method/ping", &[-32601])),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    match material.is_modern() {
        true => vec![Case::request("bad-method/ping", CaseGroup::Negative, "ping", json!({}))],
        false => vec![
            Case::request(WITHOUT_PARAMS, CaseGroup::Main, "ping", Value::Null),
            Case::request(WITH_PARAMS, CaseGroup::Main, "ping", json!({})),
        ],
    }
}

/// The machine may be busy: late is a ping only if all of several are, and other answers are not.
fn prompt(e: &Evidence<'_>, j: &mut Judgement) {
    let (mut pings, mut others) = (Vec::new(), Vec::new());
    for connection in &e.connections {
        // What a process needs to start is no part of it.
        let up = connection.first_word().map(|first| first.time).unwrap_or_default();
        for call in connection.calls() {
            let Some(response) = call.response else { continue };
            let took = response.time.saturating_sub(call.request.time.max(up));
            match call.method() {
                "ping" => pings.push((took, call)),
                "tools/call" | "tasks/result" => {}
                _ => others.push(took),
            }
        }
    }
    others.sort_unstable();
    let limit = PROMPT.max(others.get(others.len() / 2).copied().unwrap_or_default() * 3);
    let Some((took, fastest)) = pings.iter().min_by_key(|(took, _)| *took) else { return };
    match *took > limit && pings.len() < SEVERAL {
        true => j.untested("the few answers came late, and the machine may have been busy"),
        false => j.check_answer(*took <= limit, fastest, || format!("no answer before {took:.1?}")),
    }
}
