//! Log levels and progress.

use std::collections::HashMap;

use super::super::common::{is_integer, is_one_of, keyed};
use super::{
    super::{Judge, common::shown, log::LEVELS},
    completes, completes_at, if_sent, only_declared,
};
use crate::areas::query::{Calls, Messages, Query};
use crate::{EventRef, Kind, Message};

const SET_LEVEL: &str = "logging/setLevel";
const PROGRESS: &str = "notifications/progress";
const TOKEN: &str = "/params/_meta/progressToken";

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-log.level.only-if-declared", |e, j| only_declared(e, j, &[SET_LEVEL], "logging")),
    ("client-log.level.valid", |e, j| {
        let levels = e.calls_of(SET_LEVEL).requests().pointer("/params/level");
        levels.must(j, |level| is_one_of(level, &LEVELS), keyed("level"));
    }),
    ("client-log.level.none-modern", |e, j| {
        let messages = e.sent().filter(|it| it.kind == Kind::Request);
        messages.must(j, |message| message.method() != Some(SET_LEVEL), |_| format!("`{SET_LEVEL}`"));
    }),
    ("client-log.progress.token-type", |e, j| {
        let requests = e.sent().filter(|it| it.kind == Kind::Request && it.value.pointer(TOKEN).is_some());
        requests.pointer(TOKEN).must(j, |token| token.is_string() || is_integer(token), keyed("progressToken"));
    }),
    ("client-log.progress.token-unique", |e, j| {
        for connection in &e.connections {
            let mut by_token: HashMap<String, Vec<crate::Call<'_>>> = HashMap::new();
            let calls = connection.calls().filter(|call| call.request.kind == Kind::Request);
            for call in calls.filter(|call| !call.request.at(TOKEN).is_null()) {
                let (token, now) = (call.request.at(TOKEN), call.request.place);
                let is_active = |earlier: &&crate::Call<'_>| {
                    let is_over = earlier.response.is_some_and(|it| it.place < now)
                        || earlier.http.is_some_and(|http| http.ended.is_some_and(|end| end < now));
                    // The same id twice has a check of its own.
                    let is_other = earlier.request.id() != call.request.id();
                    is_other && !is_over && !connection.cancellations(earlier.request).any(|it| it.place < now)
                };
                let same = by_token.entry(token.to_string()).or_default();
                let earlier = same.iter().find(is_active);
                let places = earlier.map(|it| it.request.place).into_iter().chain([now]).collect();
                let found = || format!("the token {} of a request that waits", shown(token));
                j.check_at(earlier.is_none(), None, places, found);
                same.push(call);
            }
        }
    }),
    ("client-log.progress.sent-increasing", |e, j| {
        for connection in &e.connections {
            let mut last: HashMap<String, f64> = HashMap::new();
            let mut asked: HashMap<String, EventRef> = HashMap::new();
            for ask in connection.asks().filter(|ask| !ask.request.at(TOKEN).is_null()) {
                asked.entry(ask.request.at(TOKEN).to_string()).or_insert(ask.request.place);
            }
            let is_progress = |it: &&Message<'_>| !it.is_from_server() && it.method() == Some(PROGRESS);
            for message in connection.messages.iter().filter(is_progress) {
                let token = message.at("/params/progressToken");
                let is_known = asked.get(&token.to_string()).is_some_and(|place| *place < message.place);
                j.check(is_known, message, || format!("the token {}, which no request has", shown(token)));
                let Some(value) = message.at("/params/progress").as_f64().filter(|_| is_known) else { continue };
                let Some(before) = last.insert(token.to_string(), value) else { continue };
                j.check(value > before, message, || format!("{value} after {before}"));
            }
        }
    }),
    ("client-log.msg.tolerated", |e, j| completes_at(e, j, "odd-notifications", "tools/call")),
    ("client-log.progress.unknown-token", |e, j| completes_at(e, j, "odd-progress", "tools/list")),
    ("client-log.progress.tolerates", |e, j| completes_at(e, j, "odd-progress", "tools/call")),
    ("client-log.progress.flood", |e, j| if_sent(e, j, "tools/call", completes, "flood")),
];
