//! Log messages.

use std::{collections::VecDeque, time::Duration};

use serde_json::{Value, json};

use super::{
    Judge,
    common::{connection, error_code, shown},
};
use crate::{Case, Evidence, Judgement, Kind, Lane, Material};

const MESSAGE: &str = "notifications/message";
/// The levels, from the least severe.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const LOG_LEVEL: &str = "/params/_meta/io.modelcontextprotocol~1logLevel";
/// How many notifications a second are too many.
const MOST: usize = 200;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("log.level.set-empty", set_level),
    ("log.level.invalid-32602", |e, j| error_code(e, j, "bad-params/log-level", &[-32602])),
    ("log.level.missing-32602", |e, j| error_code(e, j, "bad-params/no-log-level", &[-32602])),
    ("log.msg.level-enum", |e, j| each(e, j, "level", |level| level.as_str().is_some_and(|it| LEVELS.contains(&it)))),
    ("log.msg.data-present", |e, j| each(e, j, "data", |_| true)),
    ("log.msg.rate", rate),
    ("log.modern.no-optin-no-log", only_with_level),
    ("log.modern.invalid-level-32602", |e, j| error_code(e, j, "bad-params/modern-log-level", &[-32602])),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.declares("logging") {
        return Vec::new();
    }
    if material.is_modern() {
        let Some(method) = material.list_methods().first().copied() else { return Vec::new() };
        let case = Case::request("bad-params/modern-log-level", Lane::Negative, method, json!({}));
        return vec![case.meta("io.modelcontextprotocol/logLevel", Some(json!("loud")))];
    }
    let set = |name: String, params: Value| Case::request(name, Lane::Negative, "logging/setLevel", params);
    let levels = LEVELS.iter().rev().map(|level| set(format!("lists/log-level/{level}"), json!({ "level": level })));
    let bad = [
        set("bad-params/log-level".to_owned(), json!({ "level": "verbose" })),
        set("bad-params/no-log-level".to_owned(), json!({})),
    ];
    levels.chain(bad).collect()
}

fn set_level(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("lists/log-level").filter(|call| call.response.is_some()) {
        let is_empty = call.result().and_then(Value::as_object).is_some_and(|it| it.keys().all(|key| key == "_meta"));
        j.check_answer(is_empty, &call, || call.result().map_or_else(|| call.answer_text(), shown));
    }
}

fn each(evidence: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value) -> bool) {
    for message in evidence.notifications(MESSAGE) {
        let value = message.params().get(key);
        j.check(value.is_some_and(&holds), message, || match value {
            Some(value) => format!("`{key}: {}`", shown(value)),
            None => format!("no `{key}`"),
        });
    }
}

fn rate(evidence: &Evidence<'_>, j: &mut Judgement) {
    let mut last = VecDeque::new();
    for message in evidence.notifications(MESSAGE) {
        last.push_back(message.time);
        while last.front().is_some_and(|first| message.time.saturating_sub(*first) > Duration::from_secs(1)) {
            last.pop_front();
        }
        j.check(last.len() <= MOST, message, || format!("{} messages within a second", last.len()));
    }
    j.violations.truncate(1);
}

/// Over HTTP the stream tells the request; on a pipe any open request may have asked for the message.
fn only_with_level(evidence: &Evidence<'_>, j: &mut Judgement) {
    for message in evidence.notifications(MESSAGE) {
        let Some(connection) = connection(evidence, message.place) else { continue };
        let asked = connection.calls().any(|call| {
            call.request.kind == Kind::Request
                && call.request.place < message.place
                && call.request.exchange == message.exchange
                && !call.request.at(LOG_LEVEL).is_null()
        });
        j.check(asked, message, || "a log message that no request asked for".to_owned());
    }
    if j.exercised == 0 {
        for (call, _) in evidence.results_of("tools/call") {
            j.check_call(true, &call);
        }
    }
}
