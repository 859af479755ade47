//! Cancellation.

use std::time::Duration;

use serde_json::{Value, json};

use super::Judge;
use super::common::{connection, is_due, shown, silence, survives};
use crate::{Call, Case, CaseGroup, Connection, Evidence, Judgement, Kind, Level, Material, Message};

const CANCELLED: &str = "notifications/cancelled";
/// How late an answer may come that was on its way when its request was cancelled.
const ON_ITS_WAY: Duration = Duration::from_millis(200);
/// A tool that never takes less can be cancelled midway.
const SLOW: Duration = Duration::from_millis(250);
/// The request whose answer shows that the server has read the cancellation before it.
const READ: &str = "cancel-inflight/read";
const NO_SLOW_TOOL: &str = "no tool that may be called takes long enough to be cancelled";
const WAS_SENT: &str = "the answer may have been sent before the server had read the cancellation";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("cancel.unknown.ignored", |e, j| silence(e, j, "cancel-cheap/unknown")),
    ("cancel.completed.ignored", |e, j| silence(e, j, "cancel-cheap/completed")),
    ("cancel.malformed.ignored", |e, j| silence(e, j, "cancel-cheap/malformed")),
    ("cancel.server.only-listen", |e, j| {
        for (message, id) in cancelled(e) {
            let Some(connection) = connection(e, message.place) else { continue };
            let is_open =
                connection.calls().any(|call| call.method() == "subscriptions/listen" && call.request.id() == Some(id));
            j.check(is_open, message, || format!("the id {}", shown(id)));
        }
    }),
    ("cancel.server.own-requests", |e, j| {
        for (message, id) in cancelled(e) {
            let Some(connection) = connection(e, message.place) else { continue };
            let own = connection.received().filter(|it| it.kind == Kind::Request);
            let is_own = own.filter(|it| it.place < message.place).any(|it| it.id() == Some(id));
            j.check(is_own, message, || format!("the id {}", shown(id)));
        }
    }),
    ("cancel.unknown.ignored-modern", |e, j| silence(e, j, "cancel-cheap/unknown")),
    ("cancel.inflight.no-response", |e, j| {
        for (call, cancel) in cancelled_calls(e) {
            unanswered(e, j, &call, cancel);
        }
    }),
    ("cancel.inflight.silence-modern", |e, j| {
        // Progress that comes later than a second after the cancellation, or a response. A server may say that a request cannot
        // be cancelled, so that a result is only doubtful; an error says that it was.
        for (call, cancel) in cancelled_calls(e) {
            let Some(connection) = connection(e, cancel.place) else { continue };
            let token = call.request.at("/params/_meta/progressToken");
            let is_about = |it: &&Message<'_>| !token.is_null() && it.at("/params/progressToken") == token;
            let mut progress = connection.received().filter(|it| it.place > cancel.place);
            let progress = progress.find(|it| is_about(it) && it.time > cancel.time + Duration::from_secs(1));
            if let Some(progress) = progress {
                j.check_at(false, tool(&call), vec![cancel.place, progress.place], || "progress");
            } else if unanswered(e, j, &call, cancel) == Some(false) && call.has_result() {
                j.at_level(Level::Should);
            }
        }
        j.untested(NO_SLOW_TOOL);
    }),
    ("cancel.inflight.server-healthy", |e, j| {
        survives(e, j, "cancel-inflight/cancel");
        survives(e, j, "cancel-cheap");
        others_answered(e, j);
    }),
    ("cancel.http.no-leak", no_leak),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    // 2026-07-28 defines no notification of a client over HTTP.
    if material.is_modern() && material.is_http() {
        return Vec::new();
    }
    let cancel = |name: &str, params: Value| Case::notification(name, CaseGroup::Negative, CANCELLED, params);
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
        later.find(|it| it.case == Some("cancel-inflight/after-call")).map(|_| (call, cancel))
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
    // A task or a question comes at once.
    let is_whole =
        |result: &Value| result.get("task").is_none() && result.get("resultType").is_none_or(|kind| kind == "complete");
    let times = evidence.results_of("tools/call").filter(|(it, result)| same(it) && is_whole(result));
    times.filter_map(|(it, _)| it.response?.time.checked_sub(it.request.time)).min()
}

/// The longest time that requests which need no work took on a connection, from when the server was up to the first
/// after the cancellation: what the way takes, and a busy machine.
fn latency(connection: &Connection<'_>, cancel: &Message<'_>) -> Duration {
    let mut later = connection.sent().filter(|it| it.place > cancel.place && it.case != Some(READ));
    let last = later.next().map_or(cancel.place, |it| it.place);
    let up = connection.first_word().map(|first| first.time).unwrap_or_default();
    let cheap = connection.calls().filter(|call| !matches!(call.method(), "tools/call" | "subscriptions/listen"));
    let cheap = cheap.filter(|call| call.request.time >= up && call.request.place <= last);
    // A server that reads nothing while it works answers this one late.
    let cheap = cheap.filter(|call| call.request.case != Some(READ));
    let times = cheap.filter_map(|call| call.response?.time.checked_sub(call.request.time));
    times.max().unwrap_or_default()
}

/// When the server was seen to have read a cancellation: it has accepted it over HTTP, or answers a later request.
fn read_by(connection: &Connection<'_>, cancel: &Message<'_>) -> Option<Duration> {
    let http = cancel.exchange.and_then(|number| connection.exchanges.get(&number));
    let mut later = connection.calls().filter(|call| call.request.place > cancel.place);
    let answered = || later.find_map(|call| Some(call.response.filter(|_| call.http.is_none())?.time));
    http.map_or_else(answered, |http| http.response_time)
}

/// Whether a response is an error that answers the cancellation: it comes after it, and much earlier than any result.
fn answers_cancellation(call: &Call<'_>, cancel: &Message<'_>, shortest: Duration, latency: Duration) -> bool {
    let Some(response) = call.response.filter(|it| it.time > cancel.time + 2 * latency) else { return false };
    let is_result = response.result().is_some_and(|result| result.get("isError") != Some(&Value::Bool(true)));
    !is_result && response.time.saturating_sub(call.request.time) * 2 < shortest
}

/// Checks that there is no response, unless it may have been sent before the cancellation was read. `None` if it may.
fn unanswered(e: &Evidence<'_>, j: &mut Judgement, call: &Call<'_>, cancel: &Message<'_>) -> Option<bool> {
    let connection = connection(e, cancel.place)?;
    let latency = latency(connection, cancel);
    let shortest = shortest(e, call).filter(|time| *time >= SLOW + 2 * latency)?;
    let is_read = |response: &Message<'_>| {
        read_by(connection, cancel).is_some_and(|read| response.time > read)
            && response.time > cancel.time + ON_ITS_WAY + 2 * latency
    };
    match call.response {
        Some(response) if !is_read(response) && !answers_cancellation(call, cancel, shortest, latency) => {
            j.untested(WAS_SENT);
            None
        }
        late => {
            j.check_at(late.is_none(), tool(call), call.places(), || format!("{} after it", call.answer_text()));
            Some(late.is_none())
        }
    }
}

/// Requests that were open when another one was cancelled have their answers, if a later request has one.
fn others_answered(e: &Evidence<'_>, j: &mut Judgement) {
    for call in e.case("cancel-inflight/other") {
        let Some(connection) = connection(e, call.request.place) else { continue };
        let mut later = connection.calls().filter(|it| it.request.place > call.request.place);
        let is_cancelled = connection.cancellations(call.request).next().is_some();
        if call.is_served() {
            j.check_answer(true, &call, String::new);
        } else if !is_cancelled && is_due(e, connection, &call) && later.any(|it| it.response.is_some()) {
            j.check_answer(false, &call, || "no answer to it after the cancellation of another request");
        }
    }
}

/// Messages about a call whose stream was closed, on other streams.
fn no_leak(e: &Evidence<'_>, j: &mut Judgement) {
    for call in e.case("cancel-inflight/dropped") {
        let Some(connection) = connection(e, call.request.place) else { continue };
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
            let found = || "a message on another stream";
            j.check_at(leaked.is_none(), tool(&call), leaked.map_or_else(Vec::new, |it| vec![it.place]), found);
        }
    }
    j.untested(NO_SLOW_TOOL);
}

fn tool<'e>(call: &Call<'e>) -> Option<&'e str> {
    call.text("/params/name")
}

fn cancelled<'e, 't>(evidence: &'e Evidence<'t>) -> impl Iterator<Item = (&'e Message<'t>, &'e Value)> {
    let all = evidence.notifications(CANCELLED).map(|it| (it, it.at("/params/requestId")));
    all.filter(|(_, id)| id.is_string() || id.is_number())
}

#[cfg(test)]
mod tests {
    use rehearse_protocol::{Direction, Event, EventKind, Frame, Trace, Transport, Version};

    use super::*;
    use crate::{Facts, checks};

    /// A slow call, the same call cancelled, when the server answers a request after the cancellation, and what comes in the
    /// exchange `exchange` at this time.
    fn violations_if_read(read: u64, check: &str, version: Version, late: (u64, Option<u32>, Value)) -> usize {
        let mut trace = Trace::default();
        let call = |id: i64| {
            let meta = json!({ "progressToken": format!("token-{id}") });
            let params = json!({ "name": "slow", "arguments": {}, "_meta": meta });
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
        };
        let transport = if late.1.is_some() { Transport::Http } else { Transport::Ws };
        let on = |number: u32| late.1.map(|_| number);
        let mut push = |at: u64, exchange: Option<u32>, case: Option<&str>, message: &Value| {
            let at = Duration::from_millis(at);
            if let Some(case) = case {
                trace.push_event(Event { at, exchange, kind: EventKind::Case(case.into()) });
            }
            let is_sent = message.get("method").is_some() && message["method"] != "notifications/progress";
            let direction = if is_sent { Direction::ClientToServer } else { Direction::ServerToClient };
            let kind = EventKind::Frame(Frame::new(direction, at, message.to_string().into()));
            trace.push_event(Event { at, exchange, kind });
        };
        push(0, on(1), None, &call(1));
        push(1000, on(1), None, &json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
        let name = if late.1.is_some() { "cancel-inflight/dropped" } else { "cancel-inflight/call" };
        push(1100, on(2), Some(name), &call(2));
        if late.1.is_none() {
            let params = json!({ "requestId": 2 });
            push(1150, None, None, &json!({ "jsonrpc": "2.0", "method": CANCELLED, "params": params }));
        }
        let control = |id: i64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        let mut came = vec![(late.0, late.1, late.2)];
        if came[0].1.is_none() {
            push(1150, None, Some(READ), &control(4));
            came.push((read, None, json!({ "jsonrpc": "2.0", "id": 4, "result": {} })));
        }
        came.sort_by_key(|(at, ..)| *at);
        came.iter().for_each(|(at, exchange, message)| push(*at, *exchange, None, message));
        let name =
            if transport == Transport::Http { "cancel-inflight/after-drop" } else { "cancel-inflight/after-call" };
        push(3200, on(3), Some(name), &control(3));
        let facts = Facts { capabilities: json!({ "tools": {} }), ..Facts::default() };
        let evidence = Evidence::new(&[&trace], version, transport, facts);
        checks().iter().find(|it| it.id == check).map_or(0, |check| check.judge(&evidence).judgement.violations.len())
    }

    fn violations(check: &str, version: Version, late: (u64, Option<u32>, Value)) -> usize {
        violations_if_read(1160, check, version, late)
    }

    #[test]
    fn a_late_answer_is_reported_and_one_on_its_way_is_not() {
        let answer = json!({ "jsonrpc": "2.0", "id": 2, "result": {} });
        let progress =
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": "token-2" } });
        let (legacy, modern) = (Version::V2025_11_25, Version::V2026_07_28);
        assert_eq!(violations("cancel.inflight.no-response", legacy, (2100, None, answer.clone())), 1);
        assert_eq!(violations("cancel.inflight.no-response", legacy, (1200, None, answer.clone())), 0);
        assert_eq!(violations("cancel.inflight.no-response", legacy, (1351, None, answer.clone())), 1);
        assert_eq!(violations("cancel.inflight.no-response", legacy, (1350, None, answer.clone())), 0);
        let before_it_is_read =
            |at| violations_if_read(2200, "cancel.inflight.no-response", legacy, (at, None, answer.clone()));
        assert_eq!([before_it_is_read(2100), before_it_is_read(2300)], [0, 1]);
        let error = json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32800, "message": "cancelled" } });
        assert_eq!(violations("cancel.inflight.silence-modern", modern, (1180, None, error.clone())), 1);
        assert_eq!(violations("cancel.inflight.silence-modern", modern, (1140, None, error)), 0);
        assert_eq!(violations("cancel.inflight.silence-modern", modern, (2100, None, answer.clone())), 1);
        assert_eq!(violations("cancel.inflight.silence-modern", modern, (2500, None, progress.clone())), 1);
        assert_eq!(violations("cancel.inflight.silence-modern", modern, (1300, None, progress.clone())), 0);
        assert_eq!(violations("cancel.http.no-leak", modern, (2500, Some(9), progress.clone())), 1);
        assert_eq!(violations("cancel.http.no-leak", modern, (2500, Some(2), progress)), 0);
    }
}
