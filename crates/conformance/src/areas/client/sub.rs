//! Subscriptions of 2026-07-28.

use std::time::Duration;

use serde_json::Value;

use super::super::Judge;
use super::super::common::shown;
use super::super::sub::{LISTEN, TYPES, is_wanted};
use super::completes;
use crate::areas::query::{Calls, Messages, Query};

/// So many new subscriptions within [`SPAN`] after the end of one are too many.
const MOST: usize = 3;
/// So many after one that broke off are too many: not even the first attempts wait.
const MOST_AT_ONCE: usize = 10;
const SPAN: Duration = Duration::from_secs(5);

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-sub.listen.filter-present", |e, j| {
        let found = |it: &Value| match it {
            Value::Null => "no `notifications`".to_owned(),
            _ => format!("`notifications: {}`", shown(it)),
        };
        e.calls_of(LISTEN).requests().pointer("/params/notifications").must(j, Value::is_object, found);
    }),
    ("client-sub.listen.only-declared", |e, j| {
        let is_known = !e.facts.capabilities.is_null();
        for call in e.calls_of(LISTEN).filter(|_| is_known) {
            for (key, capability, _) in TYPES {
                if is_wanted(&call.request.params()["notifications"][key]) {
                    let is_declared = e.facts.declares(capability);
                    j.check_subject(is_declared, key, call.request, || format!("no capability `{capability}`"));
                }
            }
        }
    }),
    ("client-sub.end.abrupt-relisten", |e, j| {
        let all: Vec<_> = e.calls_of(LISTEN).collect();
        for cut in all.iter().filter(|call| !call.has_result() && call.http.is_some()) {
            let is_soon = |call: &&crate::Call<'_>| {
                call.request.place > cut.request.place && call.request.time.saturating_sub(cut.request.time) < SPAN
            };
            let count = all.iter().filter(is_soon).count();
            let found = || format!("{count} new subscriptions within {} s", SPAN.as_secs());
            j.check_at(count <= MOST_AT_ONCE, None, cut.places(), found);
        }
        j.violations.truncate(1);
    }),
    ("client-sub.untagged.tolerated", |e, j| completes(e, j, "untagged")),
    ("client-sub.end.graceful", |e, j| {
        for connection in &e.connections {
            let all: Vec<_> = connection.calls().filter(|call| call.method() == LISTEN).collect();
            for ended in all.iter().filter(|call| call.has_result()) {
                let Some(end) = ended.response else { continue };
                let is_soon = |call: &&crate::Call<'_>| {
                    call.request.place > end.place && call.request.time.saturating_sub(end.time) < SPAN
                };
                let count = all.iter().filter(is_soon).count();
                j.check_call(true, ended);
                if count > MOST {
                    j.check(false, end, || format!("{count} new subscriptions within {} s", SPAN.as_secs()));
                }
            }
        }
    }),
];
