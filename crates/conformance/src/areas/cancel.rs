//! Cancellation.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Judge,
    common::{connection, shown, silence, survives},
};
use crate::{Call, Case, Evidence, Judgement, Kind, Lane, Level, Material, Message};

const CANCELLED: &str = "notifications/cancelled";
/// How late an answer may come that was on its way when its request was cancelled.
const ON_ITS_WAY: Duration = Duration::from_millis(200);
/// A tool that never takes less can be cancelled midway.
const SLOW: Duration = Duration::from_millis(250);
const NO_SLOW_TOOL: &str = "no tool that may be called takes long enough to be cancelled";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("cancel.unknown.ignored", |e, j| silence(e, j, "cancel-cheap/unknown")),
    ("cancel.completed.ignored", |e, j| silence(e, j, "cancel-cheap/completed")),
    ("cancel.malformed.ignored", |e, j| silence(e, j, "cancel-cheap/malformed")),
    ("cancel.server.only-listen", only_listen),
    ("cancel.server.own-requests", own_requests),
    ("cancel.unknown.ignored-modern", |e, j| silence(e, j, "cancel-cheap/unknown")),
    ("cancel.inflight.no-response", no_response),
    ("cancel.inflight.silence-modern", silence_after),
    ("cancel.inflight.server-healthy", |e, j| {
        survives(e, j, "cancel-inflight/cancel");
        survives(e, j, "cancel-cheap");
    }),
    ("cancel.http.no-leak", no_leak),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    // 2026-07-28 defines no notification of a client over HTTP.
    if material.is_modern() && material.is_http() {
        return Vec::new();
    }
    let cancel = |name: &str, params: Value| Case::notification(name, Lane::Negative, CANCELLED, params);
    vec![
        cancel("cancel-cheap/unknown", json!({ "requestId": "rehearse-none" })),
        // The first request cannot be cancelled.
        cancel("cancel-cheap/completed", json!({ "requestId": 2 })),
        cancel("cancel-cheap/malformed/no-id", json!({})),
        cancel("cancel-cheap/malformed/object", json!({ "requestId": {} })),
    ]
}

/// A call that was cancelled, with the cancellation, if a later request shows that the prober has waited.
fn cancelled_calls<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Message<'e>)> {
    evidence.case("cancel-inflight/call").filter_map(|call| {
        let messages = &connection(evidence, call.request.place)?.messages;
        let mut later = messages.iter().filter(|it| !it.is_from_server() && it.place > call.request.place);
        let cancel =
            later.find(|it| it.method() == Some(CANCELLED) && Some(it.at("/params/requestId")) == call.request.id())?;
        later.next().map(|_| (call, cancel))
    })
}

/// The shortest time that the same call of the tool took.
fn shortest(evidence: &Evidence<'_>, call: &Call<'_>) -> Option<Duration> {
    let arguments = "/params/arguments";
    let same = |it: &Call<'_>| {
        it.request.place != call.request.place
            && tool(it) == tool(call)
            && it.request.at(arguments) == call.request.at(arguments)
    };
    let times = evidence.results_of("tools/call").filter(|(it, _)| same(it));
    times.filter_map(|(it, _)| it.response?.time.checked_sub(it.request.time)).min()
}

/// Checks that there is no response, unless the call could have ended before its cancellation. `None` if it could.
fn unanswered(evidence: &Evidence<'_>, j: &mut Judgement, call: &Call<'_>, cancel: &Message<'_>) -> Option<bool> {
    let normal = shortest(evidence, call).filter(|time| *time >= SLOW)?;
    let is_late = |it: &Message<'_>| {
        it.time > cancel.time + ON_ITS_WAY && it.time.saturating_sub(call.request.time) * 5 > normal * 4
    };
    match call.response {
        Some(response) if !is_late(response) => None,
        late => {
            j.check_at(late.is_none(), tool(call), call.places(), || format!("{} after it", call.answer_text()));
            Some(late.is_none())
        }
    }
}

fn no_response(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (call, cancel) in cancelled_calls(evidence) {
        unanswered(evidence, j, &call, cancel);
    }
    j.untested(NO_SLOW_TOOL);
}

/// Progress that comes later than a second after the cancellation, or a response. A server may say that a request cannot
/// be cancelled, so that its response is only doubtful.
fn silence_after(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (call, cancel) in cancelled_calls(evidence) {
        let Some(connection) = connection(evidence, cancel.place) else { continue };
        let token = call.request.at("/params/_meta/progressToken");
        let is_about = |it: &&Message<'_>| !token.is_null() && it.at("/params/progressToken") == token;
        let mut progress = connection.messages.iter().filter(|it| it.is_from_server() && it.place > cancel.place);
        let progress = progress.find(|it| is_about(it) && it.time > cancel.time + Duration::from_secs(1));
        if let Some(progress) = progress {
            j.check_at(false, tool(&call), vec![cancel.place, progress.place], || "progress".to_owned());
        } else if unanswered(evidence, j, &call, cancel) == Some(false) {
            j.at_level(Level::Should);
        }
    }
    j.untested(NO_SLOW_TOOL);
}

/// Messages about a call whose stream was closed, on other streams.
fn no_leak(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("cancel-inflight/dropped") {
        let Some(connection) = connection(evidence, call.request.place) else { continue };
        let later = connection.messages.iter().filter(|it| it.place > call.request.place);
        let (mut leaked, mut is_watched) = (None, false);
        for message in later.filter(|it| it.exchange != call.request.exchange) {
            let is_response = message.kind == Kind::Response && message.id() == call.request.id();
            let token = message.at("/params/progressToken");
            let is_progress = !token.is_null() && token == call.request.at("/params/_meta/progressToken");
            is_watched |= message.case == Some("cancel-inflight/after-drop");
            if message.is_from_server() && (is_response || is_progress) {
                leaked = leaked.or(Some(message));
            }
        }
        if is_watched || leaked.is_some() {
            j.check_at(leaked.is_none(), tool(&call), leaked.map_or_else(Vec::new, |it| vec![it.place]), || {
                "a message on another stream".to_owned()
            });
        }
    }
    j.untested(NO_SLOW_TOOL);
}

fn tool(call: &Call<'_>) -> Option<String> {
    call.request.at("/params/name").as_str().map(ToOwned::to_owned)
}

fn cancelled<'e, 't>(evidence: &'e Evidence<'t>) -> impl Iterator<Item = (&'e Message<'t>, &'e Value)> {
    let all = evidence.notifications(CANCELLED).map(|it| (it, it.at("/params/requestId")));
    all.filter(|(_, id)| id.is_string() || id.is_number())
}

fn only_listen(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (message, id) in cancelled(evidence) {
        let Some(connection) = connection(evidence, message.place) else { continue };
        let is_open =
            connection.calls().any(|call| call.method() == "subscriptions/listen" && call.request.id() == Some(id));
        j.check(is_open, message, || format!("the id {}", shown(id)));
    }
}

fn own_requests(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (message, id) in cancelled(evidence) {
        let Some(connection) = connection(evidence, message.place) else { continue };
        let own = connection.messages.iter().filter(|it| it.is_from_server() && it.kind == Kind::Request);
        let is_own = own.filter(|it| it.place < message.place).any(|it| it.id() == Some(id));
        j.check(is_own, message, || format!("the id {}", shown(id)));
    }
}
