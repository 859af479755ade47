//! Cancellation.

use std::{collections::HashMap, time::Duration};

use rehearse_protocol::Transport;
use serde_json::Value;

use super::super::Judge;
use super::super::common::shown;
use super::reading::Readings;
use super::{completes, completes_at};
use crate::{Call, Connection, Evidence, HttpExchange, Judgement, Kind, Message, connection::as_other_type};

const CANCELLED: &str = "notifications/cancelled";
/// A client that ends sooner may have failed.
const GIVEN_UP: Duration = Duration::from_millis(500);
/// A stream that ends so long after the last that came on it was closed by the client.
const SILENCE: Duration = Duration::from_secs(1);
/// A client that does something so long after the end of a stream has sent before what belongs to that.
const GOES_ON: Duration = Duration::from_millis(300);

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-cancel.notify.own-in-flight", own_in_flight),
    ("client-cancel.notify.shape", |e, j| {
        for (connection, message) in cancellations(e, false) {
            let id = message.at("/params/requestId");
            let is_id = id.is_string() || id.is_number();
            let is_other = is_id && request(connection, message).is_none() && is_of_other_type(connection, id);
            j.check(is_id && !is_other, message, || match message.params().get("requestId") {
                Some(id) => format!("`requestId: {}`", shown(id)),
                None => "no `requestId`".to_owned(),
            });
        }
    }),
    ("client-cancel.notify.not-initialize", |e, j| {
        for (connection, message) in cancellations(e, false) {
            let Some(call) = request(connection, message) else { continue };
            let is_other = call.method() != "initialize";
            j.check_at(is_other, None, vec![call.request.place, message.place], || "a cancellation of `initialize`");
        }
    }),
    ("client-cancel.notify.not-task", |e, j| {
        for (connection, message) in cancellations(e, false) {
            let Some(call) = request(connection, message) else { continue };
            let is_task = call.result().is_some_and(|result| result["task"].is_object())
                && call.response.is_some_and(|response| response.place < message.place);
            let found = || "the cancellation of a request that has become a task";
            j.check_at(!is_task, None, vec![call.request.place, message.place], found);
        }
    }),
    ("client-cancel.notify.reason-string", |e, j| {
        for (_, message) in cancellations(e, false) {
            let reason = message.params().get("reason");
            let found = || format!("`reason: {}`", reason.map(shown).unwrap_or_default());
            j.check(reason.is_none_or(Value::is_string), message, found);
        }
    }),
    ("client-cancel.server.honoured", |e, j| {
        for (connection, message) in cancellations(e, true) {
            let id = Some(message.at("/params/requestId"));
            let Some(ask) = connection.asks().find(|ask| ask.request.id() == id && ask.request.place < message.place)
            else {
                continue;
            };
            let read = Readings::new(connection).after(message.place);
            let after = ask.responses.iter().find(|it| it.place > message.place);
            let is_late = after.is_some_and(|it| read.is_some_and(|read| read.place < it.place));
            if after.is_some() && !is_late {
                j.untested("the client may not have read the cancellation before it answered");
                continue;
            }
            j.check_at(!is_late, Some(ask.method()), ask.places_with([message.place]), || "an answer after it");
        }
    }),
    ("client-cancel.server.unknown-ignored", |e, j| completes_at(e, j, "odd-cancellations", "tools/list")),
    ("client-cancel.server.malformed-ignored", |e, j| completes_at(e, j, "odd-cancellations", "tools/call")),
    ("client-cancel.late.response-ignored", |e, j| {
        let is_late = |(connection, message): (&Connection<'_>, &Message<'_>)| {
            let response = request(connection, message).and_then(|call| call.response);
            response.is_some_and(|it| it.place > message.place)
        };
        match cancellations(e, false).any(is_late) {
            true => completes(e, j, "late-answers"),
            false => j.untested("no answer came after the client had cancelled"),
        }
    }),
    ("client-cancel.timeout.cancel-sent", |e, j| {
        gives_up(e, j, "tools/list", "silent-list");
        gives_up(e, j, "resources/read", "silent-read");
        gives_up(e, j, "prompts/get", "silent-read");
        // `initialize` must not be cancelled (2025-11-25, Cancellation: Behavior Requirements).
        closes(e, j, |method| !matches!(method, "tools/call" | "initialize"));
    }),
];

/// Checks that a request without an answer is cancelled by a client that no longer waits for it. Closing the response does
/// that in 2026-07-28 over HTTP.
pub(super) fn gives_up(e: &Evidence<'_>, j: &mut Judgement, method: &str, act: &str) {
    let is_silent = e.facts.is_in(act);
    // The end of a client may cut off the cancellation. Without the list or the call there is little that it could do.
    let is_last = act != "silent-read";
    let is_closed = e.is_modern() && e.transport == Transport::Http;
    for connection in e.connections.iter().filter(|_| !is_closed && is_silent) {
        for call in connection.calls().filter(|call| call.request.kind == Kind::Request && call.method() == method) {
            let is_cancelled = connection.cancellations(call.request).next().is_some();
            let waited = connection.waited(call.request);
            let has_ended = e.facts.exit_code.is_some() && waited > GIVEN_UP && (is_last || goes_on(connection, &call));
            if call.response.is_none() && (is_cancelled || has_ended) {
                j.check_call(is_cancelled, &call);
            }
        }
    }
    j.untested("the client has not given up such a request by itself");
}

/// Whether a client sends another request some time after this one, or ends the session.
fn goes_on(connection: &Connection<'_>, call: &Call<'_>) -> bool {
    let given_up = call.request.time + GIVEN_UP;
    let is_later = |it: &Message<'_>| it.kind == Kind::Request && it.time >= given_up;
    let ends = |http: &HttpExchange<'_>| http.method == "DELETE" && http.time >= given_up;
    connection.sent().any(is_later) || connection.exchanges.values().any(ends)
}

/// Checks that a request whose event stream the client closes after a silence is cancelled by a client that goes on: in the
/// versions with sessions, the end of a stream cancels nothing. A server that breaks off does so at once.
pub(super) fn closes(e: &Evidence<'_>, j: &mut Judgement, is_about: fn(&str) -> bool) {
    for connection in e.connections.iter().filter(|_| !e.is_modern() && e.transport == Transport::Http) {
        for call in connection.calls().filter(|call| call.request.kind == Kind::Request && is_about(call.method())) {
            let Some(http) = call.http.filter(|it| it.is_whole == Some(false) && call.response.is_none()) else {
                continue;
            };
            let (Some(ended), Some(begun)) = (http.ended_at, http.last.max(http.response_time)) else { continue };
            let is_cancelled = connection.cancellations(call.request).next().is_some();
            let goes_on = connection.exchanges.values().any(|it| it.time.saturating_sub(ended) > GOES_ON);
            let is_resumed = connection.exchanges.values().any(|it| it.is_resumed() && it.request > http.request);
            let is_found = j.violations.iter().any(|it| it.places.contains(&call.request.place));
            if ended.saturating_sub(begun) > SILENCE && goes_on && !is_resumed && !is_found {
                let found = || "the end of its stream, and no `notifications/cancelled`";
                j.check_at(is_cancelled, Some(call.method()), call.places(), found);
            }
        }
    }
}

/// The cancellations of the client, or those of the server.
fn cancellations<'e, 't>(
    evidence: &'e Evidence<'t>,
    of_server: bool,
) -> impl Iterator<Item = (&'e Connection<'t>, &'e Message<'t>)> {
    let all = evidence.connections.iter().flat_map(|it| it.messages.iter().map(move |message| (it, message)));
    all.filter(move |(_, it)| {
        it.is_from_server() == of_server && it.kind == Kind::Notification && it.method() == Some(CANCELLED)
    })
}

/// The request that is cancelled: the last one with the id.
fn request<'e>(connection: &'e Connection<'_>, message: &Message<'_>) -> Option<Call<'e>> {
    connection.last_request(message.at("/params/requestId"), message)
}

fn is_of_other_type(connection: &Connection<'_>, id: &Value) -> bool {
    let other = as_other_type(id);
    connection.calls().any(|call| call.request.usable_id().is_some_and(|it| *it == other))
}

fn own_in_flight(e: &Evidence<'_>, j: &mut Judgement) {
    // Requests without a session may be on other connections.
    if e.is_modern() && e.transport == Transport::Http {
        return;
    }
    let mut readings = HashMap::new();
    for (connection, message) in cancellations(e, false) {
        let id = message.at("/params/requestId");
        let Some(call) = request(connection, message) else {
            let is_id = (id.is_string() || id.is_number()) && !is_of_other_type(connection, id);
            if is_id {
                j.check(false, message, || format!("the id {} of no request", shown(id)));
            }
            continue;
        };
        let is_task = call.result().is_some_and(|it| it.get("task").is_some() || it["resultType"] == "task");
        let readings = readings.entry(message.place.connection).or_insert_with(|| Readings::new(connection));
        let read = call.response.and_then(|it| readings.after(it.place));
        let is_late = read.is_some_and(|read| read.place < message.place) && !is_task;
        let found = || "the cancellation of a request that was answered before";
        j.check_at(!is_late, None, call.places().into_iter().chain([message.place]).collect(), found);
    }
}
