//! Log levels and progress.

use std::collections::HashMap;

use super::{
    super::{Judge, common::shown, log::LEVELS},
    completes, completes_at, only_declared, sends,
};
use crate::{EventRef, Evidence, Judgement, Kind, Message};

const SET_LEVEL: &str = "logging/setLevel";
const PROGRESS: &str = "notifications/progress";
const TOKEN: &str = "/params/_meta/progressToken";

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-log.level.only-if-declared", |e, j| only_declared(e, j, &[SET_LEVEL], "logging")),
    ("client-log.level.valid", |e, j| {
        for call in e.calls_of(SET_LEVEL) {
            let level = call.request.at("/params/level");
            let is_level = level.as_str().is_some_and(|it| LEVELS.contains(&it));
            j.check(is_level, call.request, || format!("`level: {}`", shown(level)));
        }
    }),
    ("client-log.level.none-modern", |e, j| {
        for message in e.sent().filter(|it| it.kind == Kind::Request) {
            j.check(message.method() != Some(SET_LEVEL), message, || format!("`{SET_LEVEL}`"));
        }
    }),
    ("client-log.progress.token-type", |e, j| {
        for message in e.sent().filter(|it| it.kind == Kind::Request && it.value.pointer(TOKEN).is_some()) {
            let token = message.at(TOKEN);
            let is_integer = token.as_f64().is_some_and(|it| it.fract() == 0.0);
            j.check(token.is_string() || is_integer, message, || format!("`progressToken: {}`", shown(token)));
        }
    }),
    ("client-log.progress.token-unique", unique_tokens),
    ("client-log.progress.sent-increasing", increasing),
    ("client-log.msg.tolerated", |e, j| completes_at(e, j, "odd-notifications", "tools/call")),
    ("client-log.progress.unknown-token", |e, j| completes_at(e, j, "odd-progress", "tools/list")),
    ("client-log.progress.tolerates", |e, j| completes_at(e, j, "odd-progress", "tools/call")),
    ("client-log.progress.flood", |e, j| {
        if sends(e, j, "tools/call") {
            completes(e, j, "flood");
        }
    }),
];

fn unique_tokens(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
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
            j.check_at(earlier.is_none(), None, places, || {
                format!("the token {} of a request that waits", shown(token))
            });
            same.push(call);
        }
    }
}

fn increasing(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
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
            if let Some(before) = last.insert(token.to_string(), value) {
                j.check(value > before, message, || format!("{value} after {before}"));
            }
        }
    }
}
