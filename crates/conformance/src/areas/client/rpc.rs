//! JSON-RPC as a client speaks it.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use rehearse_protocol::{
    Era, Transport,
    names::{
        APPS_EXTENSION, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_RELATED_TASK,
        META_SERVER_INFO, META_SUBSCRIPTION_ID, META_VERSION, SKILLS_EXTENSION, TASKS_EXTENSION,
    },
};
use serde_json::Value;

use super::super::Judge;
use super::super::common::shown;
use super::super::meta::{is_name, is_prefix, is_reserved, keys, trace_context};
use super::super::rpc::{errors, has_right_params, result_xor_error, single_object, utf8, version_field};
use super::asked::{ELICIT, ROOTS, SAMPLE, is_passed_over};
use super::life::identified_sessions;
use super::{common::is_same, completes, completes_at, ends, if_sent};
use crate::areas::query::Query;
use crate::{Call, Connection, Evidence, Judgement, Kind, Level, Message, Role, method::method, shapes};

/// Within this time every client answers a ping.
const PROMPT: Duration = Duration::from_millis(800);

/// The keys below `io.modelcontextprotocol/` that the specification and its extensions define.
const DEFINED: [&str; 11] = [
    META_VERSION,
    META_CLIENT_INFO,
    META_CLIENT_CAPABILITIES,
    META_LOG_LEVEL,
    META_SERVER_INFO,
    META_SUBSCRIPTION_ID,
    META_RELATED_TASK,
    TASKS_EXTENSION,
    SKILLS_EXTENSION,
    "io.modelcontextprotocol/model-immediate-response",
    APPS_EXTENSION,
];

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-rpc.envelope.version-field", version_field),
    ("client-rpc.envelope.single-object", single_object),
    ("client-rpc.envelope.utf8", utf8),
    ("client-rpc.id.present-nonnull", |e, j| {
        for message in e.sent().filter(|message| message.kind == Kind::Request) {
            let id = message.id().unwrap_or(&Value::Null);
            let is_integer = id.as_f64().is_some_and(|id| id.fract() == 0.0);
            j.check(id.is_string() || is_integer, message, || format!("`id: {}`", shown(id)));
        }
        for message in e.sent().filter(|message| message.kind == Kind::Notification) {
            let name = message.method().unwrap_or_default();
            if method(Role::Client, Kind::Request, name).is_some() {
                j.check(false, message, || format!("{name} without an `id`"));
            }
        }
    }),
    ("client-rpc.id.unique-session", |e, j| {
        // A session is a connection in which the server has accepted `initialize` once.
        for connection in identified_sessions(e) {
            let mut seen = HashMap::new();
            // A request that was refused for its token is sent again.
            let is_refused = |call: &crate::Call<'_>| matches!(call.status(), Some(401 | 403));
            for call in connection.calls().filter(|call| call.request.kind == Kind::Request && !is_refused(call)) {
                let Some(id) = call.request.usable_id() else { continue };
                if call.method() == "initialize" {
                    seen.clear();
                }
                let earlier = seen.insert(id.to_string(), call.request.place);
                let places = earlier.into_iter().chain([call.request.place]).collect();
                j.check_at(earlier.is_none(), None, places, || format!("the id {id} twice"));
            }
        }
    }),
    ("client-rpc.id.unique-in-flight", |e, j| {
        for connection in &e.connections {
            let mut by_id: HashMap<String, Vec<crate::Call<'_>>> = HashMap::new();
            for call in connection.calls().filter(|call| call.request.kind == Kind::Request) {
                let Some(id) = call.request.usable_id() else { continue };
                let is_open = |earlier: &&crate::Call<'_>| {
                    let is_answered = earlier.response.is_some_and(|response| response.place < call.request.place);
                    // The end of a stream is not always recorded, nor is that of its connection.
                    let is_over = earlier.http.is_some_and(|http| {
                        http.ended.is_some_and(|end| end < call.request.place)
                            || (earlier.response.is_none() && http.response.is_some_and(|it| it < call.request.place))
                    });
                    !is_answered && !is_over
                };
                let same = by_id.entry(id.to_string()).or_default();
                let earlier = same.iter().rev().find(is_open);
                let places = earlier.map(|it| it.request.place).into_iter().chain([call.request.place]).collect();
                j.check_at(earlier.is_none(), None, places, || format!("the id {id}, for which a request waits"));
                same.push(call);
            }
        }
        shared_ids(e, j);
    }),
    ("client-rpc.notify.no-id", |e, j| {
        let messages = e.sent().filter(|it| it.method().is_some_and(|method| method.starts_with("notifications/")));
        messages.must(j, |message| message.kind == Kind::Notification, |_| "an `id`");
    }),
    ("client-rpc.params.object", |e, j| {
        let found = |it: &Message<'_>| format!("`params: {}`", shown(it.params()));
        e.sent().filter(|it| it.method().is_some()).must(j, has_right_params, found);
    }),
    ("client-rpc.schema.request-valid", |e, j| shapes::judge(e, j, "client-rpc.schema.request-valid")),
    ("client-rpc.schema.result-valid", |e, j| shapes::judge(e, j, "client-rpc.schema.result-valid")),
    ("client-rpc.schema.notification-valid", |e, j| shapes::judge(e, j, "client-rpc.schema.notification-valid")),
    ("client-rpc.method.known", |e, j| {
        for message in e.sent() {
            let Some(name) = message.method() else { continue };
            let mut known =
                [Kind::Request, Kind::Notification].iter().filter_map(|kind| method(Role::Client, *kind, name));
            // A method that no version has may be one of an extension.
            let is_known = known.next().is_none_or(|it| it.is_in(e.version));
            if name != "server/discover" || e.version.era() == Era::Modern {
                j.check_subject(is_known, name, message, || format!("{name}, which {} does not have", e.version));
            }
        }
    }),
    ("client-rpc.response.echo-id", |e, j| {
        for message in strays(e) {
            let other = crate::connection::as_other_type(message.id().unwrap_or(&Value::Null));
            let mut asked = e.server_requests().filter_map(Message::id).map(Value::to_string);
            let is_lost = message.id().is_none_or(Value::is_null) && is_awaited(e) && !is_unreadable(message);
            let is_invented = message.usable_id().is_some();
            if is_lost || is_invented || asked.any(|id| id == other) {
                j.check(false, message, || format!("`id: {}`", shown(message.id().unwrap_or(&Value::Null))));
            }
        }
        for ask in e.asks().filter(|ask| !ask.responses.is_empty()) {
            j.check_at(true, None, ask.places(), String::new);
        }
    }),
    ("client-rpc.response.once", |e, j| {
        let answered = e.asks().filter(|ask| !ask.responses.is_empty());
        answered.must(j, |ask| ask.responses.len() == 1, |ask| format!("{} responses", ask.responses.len()));
    }),
    ("client-rpc.response.result-xor-error", |e, j| {
        result_xor_error(e.sent().filter(|it| it.kind == Kind::Response), j)
    }),
    ("client-rpc.response.answered", |e, j| {
        // Pings, and what the user or a model answers, have checks of their own.
        for ask in e.asks().filter(|ask| !["ping", ELICIT, SAMPLE, ROOTS].contains(&ask.method())) {
            let is_answered = !ask.responses.is_empty();
            if is_answered || is_passed_over(e, &ask) {
                let found = || "no answer, and answers to what came later";
                j.check_subject(is_answered, ask.method(), ask.request, found);
            }
        }
    }),
    ("client-rpc.response.unknown-method-32601", |e, j| {
        for ask in e.asks_of("rehearse/unknown") {
            let Some(response) = ask.responses.first() else {
                j.untested("the client did not answer");
                continue;
            };
            let code = response.error_code();
            j.check_at(code == Some(-32601), None, ask.places(), || match code {
                Some(code) => format!("the error {code}"),
                None => "no error code".to_owned(),
            });
        }
    }),
    ("client-rpc.response.error-shape", |e, j| {
        errors(e, j, "code", |code| code.as_f64().is_some_and(|it| it.fract() == 0.0));
        errors(e, j, "message", Value::is_string);
    }),
    ("client-rpc.response.none-modern", |e, j| {
        e.sent().must(j, |message| message.kind != Kind::Response, |_| "a response")
    }),
    ("client-rpc.response.not-to-notification", |e, j| {
        // With the id of no request, it can only answer a notification.
        let messages = strays(e).filter(|message| message.id().is_none_or(Value::is_null) && !is_awaited(e));
        messages.must(j, is_unreadable, |_| "a response to no request");
        for message in e.received().filter(|message| message.kind == Kind::Notification) {
            j.check(true, message, String::new);
        }
    }),
    ("client-rpc.tolerate.unknown-capability", |e, j| completes(e, j, "capability")),
    ("client-rpc.tolerate.duplicate-response", |e, j| completes(e, j, "duplicates")),
    ("client-rpc.tolerate.malformed-line", |e, j| completes(e, j, "noise")),
    ("client-rpc.tolerate.unknown-notification", |e, j| completes_at(e, j, "odd-notifications", "tools/list")),
    ("client-rpc.tolerate.unknown-response-id", |e, j| completes_at(e, j, "strays", "tools/list")),
    ("client-rpc.tolerate.id-less-error", |e, j| completes_at(e, j, "strays", "tools/call")),
    ("client-rpc.tolerate.extra-members", |e, j| completes(e, j, "members")),
    ("client-rpc.tolerate.error-data", |e, j| if_sent(e, j, "tools/call", ends, "error-data")),
    ("client-rpc.tolerate.out-of-order", |e, j| {
        // Only a client that does not wait for each answer sees another order.
        let calls: Vec<_> = e
            .connections
            .iter()
            .flat_map(Connection::calls)
            .filter_map(|call| Some((call.request.place, call.response?.place)))
            .collect();
        let is_odd = calls
            .iter()
            .zip(calls.iter().skip(1))
            .any(|(one, next)| one.0 < next.0 && next.1 < one.1 && next.0 < one.1);
        if is_odd {
            completes(e, j, "reorder");
        } else {
            j.untested("no answers came in another order");
        }
    }),
    ("client-rpc.batch.receives", |e, j| {
        for connection in &e.connections {
            for ask in connection.asks().filter(|ask| ask.request.is_in_batch && ask.method() == "ping") {
                let is_answered = !ask.responses.is_empty();
                let goes_on = connection
                    .messages
                    .iter()
                    .any(|it| !it.is_from_server() && it.time.saturating_sub(ask.request.time) > PROMPT);
                if is_answered || goes_on {
                    j.check_at(is_answered, None, ask.places(), || "no answer to a `ping` in a batch");
                }
            }
        }
    }),
    ("client-rpc.id.not-reused-on-retry", |e, j| {
        let calls: Vec<_> = e.calls().filter(|call| call.request.kind == Kind::Request).collect();
        // A request that was refused had no stream.
        let is_cut = |call: &Call<'_>| call.response.is_none() && call.status().is_none_or(|status| status < 400);
        for (number, cut) in calls.iter().enumerate().filter(|(_, call)| is_cut(call)) {
            let later = calls.get(number + 1..).unwrap_or_default();
            let Some(retry) = later.iter().find(|it| is_same(it.request, cut.request)) else { continue };
            let (one, other) = (cut.request.place.connection, retry.request.place.connection);
            // A client that begins again has ids of its own.
            let begins = |connection: &Connection<'_>| connection.calls().any(|it| it.method() == "server/discover");
            let is_new = one != other && e.connections.get(other).is_some_and(begins);
            let is_reused = !is_new && retry.request.id() == cut.request.id();
            let places = vec![cut.request.place, retry.request.place];
            j.check_at(!is_reused, Some(cut.method()), places, || "the same id again");
        }
    }),
    ("client-rpc.meta.key-syntax", |e, j| {
        keys(e, j, |prefix, name| {
            let is_formed = prefix.is_none_or(is_prefix) && is_name(name);
            Some(is_formed && (!is_reserved(e.version, prefix) || DEFINED.contains(&name)))
        });
    }),
    ("client-rpc.meta.trace-format", trace_context),
];

/// Whether a response says that the client could not read a message: then it does not know the id.
fn is_unreadable(response: &Message<'_>) -> bool {
    matches!(response.error_code(), Some(-32700 | -32600))
}

/// Whether a request of the server has no response: one without an id may be meant for it.
fn is_awaited(evidence: &Evidence<'_>) -> bool {
    evidence.asks().any(|ask| ask.responses.is_empty())
}

/// Responses of the client without a request of the server.
fn strays<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = &'e Message<'e>> {
    let asked: HashSet<_> = evidence.server_requests().filter_map(Message::id).map(Value::to_string).collect();
    let responses = evidence.sent().filter(|message| message.kind == Kind::Response);
    responses.filter(move |message| !message.id().is_some_and(|id| asked.contains(&id.to_string())))
}

/// Over HTTP, nothing says whether requests of 2026-07-28 with one id that wait at the same time are of one client or of
/// two. They are shown, and no failure.
fn shared_ids(e: &Evidence<'_>, j: &mut Judgement) {
    let mut waits: Vec<_> = e.calls().filter_map(|call| Some((call.request, call.response?.time))).collect();
    waits.retain(|(request, _)| e.transport == Transport::Http && request.usable_id().is_some());
    waits.sort_by_key(|(request, _)| request.time);
    for (at, (request, _)) in waits.iter().enumerate() {
        let is_open = |(earlier, end): &&(&Message<'_>, Duration)| {
            earlier.usable_id() == request.usable_id()
                && *end > request.time
                && earlier.place.connection != request.place.connection
        };
        if let Some((earlier, _)) = waits[..at].iter().find(is_open) {
            let id = request.id().map(shown).unwrap_or_default();
            let found = || format!("two requests with the id {id} wait; they may be of two clients");
            j.check_at(false, None, vec![earlier.place, request.place], found);
            j.at_level(Level::Info);
        }
    }
}

#[cfg(test)]
mod tests {
    use rehearse_protocol::{Direction, EventKind, Frame, Trace, Version};

    use super::*;
    use crate::Facts;

    /// The levels of what is found in connections that each have one request with the id 1, at the times of it and of its
    /// response.
    fn found(times: &[(u64, u64)]) -> Vec<Option<Level>> {
        let trace = |(sent, answered): &(u64, u64)| {
            let mut trace = Trace::default();
            let messages = [
                (*sent, Direction::ClientToServer, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
                (*answered, Direction::ServerToClient, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            ];
            for (at, direction, text) in messages {
                let at = Duration::from_secs(at);
                trace.push(at, EventKind::Frame(Frame::new(direction, at, text.into())));
            }
            trace
        };
        let traces: Vec<_> = times.iter().map(trace).collect();
        let traces: Vec<_> = traces.iter().collect();
        let evidence = Evidence::new(&traces, Version::V2026_07_28, Transport::Http, Facts::default());
        let mut judgement = Judgement::default();
        shared_ids(&evidence, &mut judgement);
        judgement.violations.iter().map(|it| it.level).collect()
    }

    #[test]
    fn one_id_on_two_connections_at_once_is_shown_and_no_failure() {
        assert_eq!(found(&[(1, 3), (2, 4)]), [Some(Level::Info)]);
        assert_eq!(found(&[(1, 2), (3, 4)]), []);
        assert_eq!(found(&[(3, 4), (1, 2), (3, 5)]), [Some(Level::Info)]);
    }
}
