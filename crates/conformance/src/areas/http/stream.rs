//! Event streams: what is on them, how they end, and how they are resumed.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use rehearse_protocol::{
    Version,
    names::{LAST_EVENT_HEADER, METHOD_HEADER, VERSION_HEADER},
    sse,
};
use serde_json::Value;

use super::{super::common::answers_batch, answered, is_client_error};
use crate::areas::Judge;
use crate::areas::query::Query;
use crate::{Connection, EventRef, Evidence, HttpExchange, Judgement, Kind, Level, Message, connection::as_other_type};

/// The time within which the same message on two streams is taken for one.
const AT_ONCE: Duration = Duration::from_secs(1);
/// The time after the response within which a stream may still be open.
const TIME_TO_CLOSE: Duration = Duration::from_millis(300);
const NO_STREAM: &str = "no request was answered with an event stream";
const NOT_RESUMED: &str = "no stream had an event id to resume from";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("http.endpoint.get", |e, j| {
        for (_, http) in e.http_case("get-stream/get") {
            if let Some((status, places)) = answered(http).filter(|(status, _)| *status != 503) {
                let holds = status == 405 || (status == 200 && http.is_stream()) || matches!(status, 401..=403 | 409);
                j.check_at(holds, None, places, || format!("HTTP {status} {}", http.media_type()));
            }
        }
    }),
    ("http.stream.response-included", |e, j| {
        streams(e, j, |j, stream| {
            // One with event ids may go on after a reconnection.
            if stream.http.is_whole == Some(true) && (stream.response().is_some() || !has_ids(&decoded(stream.http))) {
                j.check_at(stream.response().is_some(), None, stream.places(), || "the end of the stream");
            }
        });
    }),
    ("http.stream.no-early-close", |e, j| {
        streams(e, j, |j, stream| {
            if stream.http.is_whole == Some(true) {
                j.check_at(!stream.is_closed_early(), None, stream.places(), || "the end of the stream");
            }
        });
    }),
    ("http.stream.closed-after-response", |e, j| {
        // A server that is slow to answer is slow to close.
        let slowest = e.connections.iter().map(Connection::slowest_answer).max().unwrap_or_default();
        let limit = TIME_TO_CLOSE.max(slowest * 2);
        streams(e, j, |j, stream| {
            // The prober itself drops these.
            let is_dropped = stream
                .http
                .case
                .is_some_and(|case| ["resume/", "listen/", "cancel"].iter().any(|probe| case.starts_with(probe)));
            let is_due =
                |response: &&Message<'_>| stream.http.is_whole.is_some() || stream.connection.waited(response) >= limit;
            if let Some(response) = stream.response().filter(|_| !is_dropped).filter(is_due) {
                j.check(stream.http.is_whole.is_some(), response, || "a stream that stays open");
            }
        });
    }),
    ("http.stream.priming-event", |e, j| {
        // Without any event ids, the server does not want to be reconnected to.
        streams(e, j, |j, stream| {
            let events = decoded(stream.http);
            let is_judged = has_ids(&events) && stream.is_of_client_of(e.version);
            if let Some(first) = events.first().filter(|_| is_judged) {
                let is_empty = first.data.as_ref().is_none_or(|data| data.is_empty());
                let holds = first.id.is_some() && is_empty;
                j.check_at(holds, None, stream.places(), || "a first event without an id, or with data");
            }
        });
    }),
    ("http.stream.retry-before-close", |e, j| {
        streams(e, j, |j, stream| {
            let events = decoded(stream.http);
            if stream.is_closed_early() && has_ids(&events) {
                let has_retry = events.iter().any(|event| event.retry.is_some());
                j.check_at(has_retry, None, stream.places(), || "the end of the connection without it");
            }
        });
    }),
    ("http.stream.ids-unique", |e, j| {
        for connection in &e.connections {
            let mut seen = HashSet::new();
            let streams = connection.exchanges.values().filter(|http| http.is_stream());
            for http in streams.filter(|http| !http.is_resumed()) {
                for id in decoded(http).into_iter().filter_map(|event| event.id).filter(|id| !id.is_empty()) {
                    j.check_at(seen.insert(id.clone()), None, vec![http.request], || format!("the id {id:?} again"));
                }
            }
        }
    }),
    ("http.stream.resume-works", |e, j| {
        // Only an event that primes the client promises that the stream can be resumed, until all of it has been sent.
        resumed(e, |resumed, _| {
            let Some(id) = resumed.request_id() else { return };
            let is_continued = resumed.responses(resumed.http).any(|it| it == id);
            let primes =
                |event: &sse::Event| event.id.is_some() && event.data.as_ref().is_none_or(|data| data.is_empty());
            let is_promised = decoded(resumed.from).first().is_some_and(primes);
            let is_complete = resumed.responses(resumed.from).any(|it| it == id);
            let is_refused = resumed.http.status.is_some_and(|status| status >= 400);
            if is_continued || (is_promised && !is_complete && is_refused) {
                let found = || format!("HTTP {}", resumed.http.status.unwrap_or_default());
                j.check_at(is_continued, None, resumed.places(), found);
            }
        });
        j.untested(NOT_RESUMED);
    }),
    ("http.stream.resume-no-foreign", |e, j| {
        resumed(e, |resumed, owners| {
            if !resumed.http.is_stream() || resumed.http.body.is_empty() {
                return;
            }
            // An id of the other type has a check of its own.
            let own = resumed.request_id().map(|id| [id.to_string(), as_other_type(id)]).unwrap_or_default();
            let foreign = resumed.responses(resumed.http).find(|id| !id.is_null() && !own.contains(&id.to_string()));
            let origin = |id: &String| owners.get(id).is_some_and(|owner| Some(owner) != owners.get(resumed.last_id));
            let replayed = decoded(resumed.http).into_iter().filter_map(|event| event.id).find(origin);
            j.check_at(foreign.is_none() && replayed.is_none(), None, resumed.places(), || match (foreign, replayed) {
                (Some(id), _) => format!("the response to the request {id}"),
                (None, id) => format!("the event {:?} of another stream", id.unwrap_or_default()),
            });
        });
        j.untested(NOT_RESUMED);
    }),
    ("http.stream.resume-no-duplicates", |e, j| {
        resumed(e, |resumed, _| {
            let events = decoded(resumed.http);
            if has_ids(&events) {
                let again = events.iter().any(|event| event.id.as_deref() == Some(resumed.last_id));
                j.check_at(!again, None, resumed.places(), || format!("the event {:?} again", resumed.last_id));
            }
        });
    }),
    ("http.stream.resume-unknown-id", |e, j| unusual_get(e, j, "get-stream/unknown-id")),
    ("http.stream.get-second", |e, j| unusual_get(e, j, "get-stream/second")),
    ("http.stream.no-broadcast", |e, j| {
        // No message must be on two streams. Each call of a tool may send the same notifications on its own stream: what counts
        // is a message that is on the stream of a GET as well.
        for connection in &e.connections {
            let mut seen = HashMap::new();
            for message in connection.received().filter(|it| !it.is_in_batch && is_distinct(it)) {
                let Some(http) = message.exchange.and_then(|number| connection.exchanges.get(&number)) else {
                    continue;
                };
                if http.is_resumed() {
                    continue;
                }
                let before = seen.insert(message.bytes, (message, http.method));
                let twice = before.filter(|(first, method)| {
                    let is_close = message.time.saturating_sub(first.time) < AT_ONCE;
                    first.exchange != message.exchange && is_close && (http.method == "GET" || *method == "GET")
                });
                let places = twice.map(|(first, _)| first.place).into_iter().chain([message.place]).collect();
                let method = message.method().unwrap_or_default();
                j.check_at(twice.is_none(), Some(method), places, || "it on two streams");
                j.at_level_if(twice.is_some() && message.kind == Kind::Notification, Level::Derived);
            }
        }
    }),
    ("http.stream.no-response-on-get", |e, j| {
        for (connection, http) in e.exchanges().filter(|(_, http)| http.method == "GET" && http.is_stream()) {
            if !http.is_resumed() {
                let response = connection.messages_of(http).find(|it| it.kind == Kind::Response);
                let place = response.map_or(http.request, |it| it.place);
                j.check_at(response.is_none(), None, vec![place], || "a response");
            }
        }
    }),
    ("http.stream.sse-syntax", |e, j| {
        events(e, j, |j, places, event| {
            let data = event.data.as_deref().unwrap_or_default();
            if is_message(event) && !data.is_empty() {
                let is_json = serde_json::from_slice::<Value>(data).is_ok();
                j.check_at(is_json, None, places, || format!("{:?}", String::from_utf8_lossy(data)));
            }
        });
    }),
    ("http.stream.event-type", |e, j| {
        // Events of another type that are not messages, such as signs of life, do no harm.
        events(e, j, |j, places, event| {
            let data = event.data.as_deref().unwrap_or_default();
            let is_rpc = || serde_json::from_slice::<Value>(data).is_ok_and(|value| value.get("jsonrpc").is_some());
            if is_message(event) || is_rpc() {
                let found = || format!("a message of the type {:?}", event.event.clone().unwrap_or_default());
                j.check_at(is_message(event), None, places, found);
            }
        });
    }),
    ("http.stream.one-message-per-event", |e, j| {
        for (connection, http) in e.exchanges().filter(|(_, http)| http.is_stream()) {
            let messages = connection.messages_of(http).filter(|it| !it.is_in_batch && !it.value.is_null());
            messages.filter(|it| !answers_batch(e, it)).must(
                j,
                |message| message.value.is_object() || e.version == Version::V2025_03_26,
                |_| "no single message",
            );
        }
    }),
    ("http.stream.no-buffering-header", |e, j| header(e, j, "x-accel-buffering", |value| value == "no")),
    ("http.stream.cache-control", |e, j| {
        header(e, j, "cache-control", |value| value.contains("no-cache") || value.contains("no-store"))
    }),
    ("http.stream.related-only", |e, j| {
        streams(e, j, |j, stream| {
            for message in stream.connection.messages_of(stream.http).filter(|it| it.kind == Kind::Notification) {
                let method = message.method().unwrap_or_default();
                let holds = !method.ends_with("/list_changed") && method != "notifications/resources/updated";
                j.check_subject(holds, method, message, || "it on the stream of a request");
            }
        });
    }),
];

fn is_listen(http: &HttpExchange<'_>) -> bool {
    http.request_header(METHOD_HEADER) == Some("subscriptions/listen")
}

/// The event streams of POSTs with a request that was not cancelled.
fn streams(e: &Evidence<'_>, j: &mut Judgement, mut judge: impl FnMut(&mut Judgement, Stream<'_, '_>)) {
    for connection in &e.connections {
        let cancelled: HashSet<_> = connection
            .sent()
            .filter(|it| it.method() == Some("notifications/cancelled"))
            .map(|it| it.at("/params/requestId").to_string())
            .collect();
        let streams = connection.exchanges.values().filter(|http| http.method == "POST" && http.is_stream());
        for http in streams.filter(|http| !is_listen(http)) {
            let mut sent = http.messages.iter().filter_map(|index| connection.messages.get(*index));
            let Some(request) = sent.find(|it| !it.is_from_server()) else { continue };
            // What is not a valid request needs no answer.
            let is_valid = request.case.is_none_or(|case| !case.starts_with("malformed/"));
            if is_valid && request.id().is_none_or(|id| !cancelled.contains(&id.to_string())) {
                judge(j, Stream { connection, http, request });
            }
        }
    }
    j.untested(NO_STREAM);
}

struct Stream<'c, 't> {
    connection: &'c Connection<'t>,
    http: &'c HttpExchange<'t>,
    request: &'c Message<'t>,
}

impl Stream<'_, '_> {
    fn response(&self) -> Option<&Message<'_>> {
        self.connection.messages_of(self.http).find(|it| it.kind == Kind::Response)
    }

    /// Whether the server ended it without a response.
    fn is_closed_early(&self) -> bool {
        self.http.is_whole == Some(true) && self.response().is_none()
    }

    fn places(&self) -> Vec<EventRef> {
        [Some(self.request.place), self.http.response].into_iter().flatten().collect()
    }

    /// Whether the client says that it speaks this version. Without the header it is of an older one.
    fn is_of_client_of(&self, version: Version) -> bool {
        let named = match self.request.method() {
            Some("initialize") => self.request.at("/params/protocolVersion").as_str(),
            _ => self.http.request_header(VERSION_HEADER),
        };
        named == Some(version.as_str())
    }
}

fn decoded(http: &HttpExchange<'_>) -> Vec<sse::Event> {
    let mut events = Vec::new();
    let _ = sse::Decoder::default().push(&http.body, &mut events);
    events
}

fn has_ids(events: &[sse::Event]) -> bool {
    events.iter().any(|event| event.id.as_ref().is_some_and(|id| !id.is_empty()))
}

/// Records what else a server does with a GET: a stream, or a refusal.
fn unusual_get(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for (_, http) in e.http_case(case) {
        if let Some((status, places)) = answered(http) {
            let holds = (status == 200 && http.is_stream()) || is_client_error(status);
            j.check_at(holds, None, places, || format!("HTTP {status} {}", http.media_type()));
        }
    }
}

/// Calls `judge` with every event of every stream.
fn events(e: &Evidence<'_>, j: &mut Judgement, mut judge: impl FnMut(&mut Judgement, Vec<EventRef>, &sse::Event)) {
    for (_, http) in e.exchanges().filter(|(_, http)| http.is_stream()) {
        let places: Vec<_> = http.places();
        for event in decoded(http) {
            judge(j, places.clone(), &event);
        }
    }
}

fn is_message(event: &sse::Event) -> bool {
    matches!(event.event.as_deref(), None | Some("" | "message"))
}

/// Checks a header of every event stream.
fn header(e: &Evidence<'_>, j: &mut Judgement, name: &str, holds: impl Fn(&str) -> bool) {
    for (_, http) in e.exchanges().filter(|(_, http)| http.is_stream()) {
        let value = http.header(name).unwrap_or_default();
        j.check_at(holds(value), None, http.response.into_iter().collect(), || match value {
            "" => "no such header".to_owned(),
            value => format!("`{name}: {value}`"),
        });
    }
    j.untested(NO_STREAM);
}

/// Whether two messages of the same text are one message. Two changes of the same list look alike.
fn is_distinct(message: &Message<'_>) -> bool {
    let method = message.method().unwrap_or_default();
    let is_change = method.ends_with("/list_changed") || method == "notifications/resources/updated";
    message.kind == Kind::Request || (message.kind == Kind::Notification && !is_change && !message.params().is_null())
}

/// A stream that was resumed, with the stream that it continues.
struct Resumed<'c, 't> {
    connection: &'c Connection<'t>,
    http: &'c HttpExchange<'t>,
    last_id: &'c str,
    from: &'c HttpExchange<'t>,
}

fn resumed(evidence: &Evidence<'_>, mut judge: impl FnMut(&Resumed<'_, '_>, &HashMap<String, u32>)) {
    for connection in &evidence.connections {
        let mut owners = HashMap::new();
        for (number, http) in connection.exchanges.iter().filter(|(_, http)| http.is_stream()) {
            if !http.is_resumed() {
                owners.extend(decoded(http).into_iter().filter_map(|event| Some((event.id?, *number))));
            }
        }
        for http in connection.exchanges.values().filter(|http| http.method == "GET") {
            let Some(last_id) = http.request_header(LAST_EVENT_HEADER) else { continue };
            let Some(from) = owners.get(last_id).and_then(|number| connection.exchanges.get(number)) else { continue };
            judge(&Resumed { connection, http, last_id, from }, &owners);
        }
    }
}

impl Resumed<'_, '_> {
    fn places(&self) -> Vec<EventRef> {
        [Some(self.from.request), Some(self.http.request), self.http.response].into_iter().flatten().collect()
    }

    /// The id of the request whose stream it was.
    fn request_id(&self) -> Option<&Value> {
        let mut messages = self.from.messages.iter().filter_map(|index| self.connection.messages.get(*index));
        messages.find(|it| !it.is_from_server())?.id()
    }

    /// The ids of the responses of a stream.
    fn responses<'a>(&'a self, http: &'a HttpExchange<'_>) -> impl Iterator<Item = &'a Value> {
        self.connection.messages_of(http).filter(|it| it.kind == Kind::Response).filter_map(|it| it.id())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, Method, StatusCode};
    use rehearse_protocol::{Direction, Event, EventKind, Frame, Trace, Transport};

    use super::*;
    use crate::{Facts, checks};

    #[test]
    fn a_stream_may_stay_open_for_twice_as_long_as_the_slowest_answer() {
        let is_violated = |answered: u64, ended: u64| {
            let mut trace = Trace::default();
            let mut push =
                |at, kind| trace.push_event(Event { at: Duration::from_millis(at), exchange: Some(1), kind });
            let frame =
                |direction, text: &'static str| EventKind::Frame(Frame::new(direction, Duration::ZERO, text.into()));
            let mut headers = HeaderMap::new();
            headers.insert("content-type", "text/event-stream".parse().expect("a value"));
            push(0, EventKind::Opened(Transport::Http));
            let request =
                EventKind::HttpRequest { method: Method::POST, target: "/mcp".into(), headers: HeaderMap::new() };
            push(0, request);
            push(0, frame(Direction::ClientToServer, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#));
            push(answered, EventKind::HttpResponse { status: StatusCode::OK, headers });
            push(answered, frame(Direction::ServerToClient, r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#));
            push(ended, EventKind::Closed(rehearse_protocol::Closed::by_client("done")));
            let evidence = Evidence::new(&[&trace], Version::V2025_11_25, Transport::Http, Facts::default());
            let check = checks().iter().find(|it| it.id == "http.stream.closed-after-response").expect("the check");
            !check.judge(&evidence).judgement.violations.is_empty()
        };
        assert!(is_violated(10, 500) && !is_violated(2000, 5000) && is_violated(2000, 7000));
    }

    /// A request whose stream has an event id, and a GET that resumes it and gets a response with this id.
    fn resumed(id: &str) -> usize {
        let mut trace = Trace::default();
        let headers = |name: &str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name.parse::<http::HeaderName>().expect("a name"), value.parse().expect("a value"));
            headers
        };
        let frame = |direction, text: String| EventKind::Frame(Frame::new(direction, Duration::ZERO, text.into()));
        let request =
            |method: Method, headers: HeaderMap| EventKind::HttpRequest { method, target: "/mcp".to_owned(), headers };
        let body = |text: &'static str| EventKind::HttpBody {
            direction: Direction::ServerToClient,
            bytes: Bytes::from_static(text.as_bytes()),
        };
        let stream = || EventKind::HttpResponse {
            status: StatusCode::OK,
            headers: headers("content-type", "text/event-stream"),
        };
        let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
        let events = [
            (1, request(Method::POST, HeaderMap::new())),
            (1, frame(Direction::ClientToServer, list.to_owned())),
            (1, stream()),
            (1, body("id: 1-0\ndata:\n\n")),
            (2, request(Method::GET, headers(LAST_EVENT_HEADER, "1-0"))),
            (2, stream()),
            (2, body("id: 1-1\ndata: {}\n\n")),
            (2, frame(Direction::ServerToClient, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#))),
        ];
        for (exchange, kind) in events {
            trace.push_event(Event { at: Duration::ZERO, exchange: Some(exchange), kind });
        }
        let evidence = Evidence::new(&[&trace], Version::V2025_11_25, Transport::Http, Facts::default());
        let check = checks().iter().find(|it| it.id == "http.stream.resume-no-foreign");
        let judgement = check.map(|check| check.judge(&evidence).judgement).expect("the check");
        assert_eq!(judgement.exercised, 1);
        judgement.violations.len()
    }

    #[test]
    fn a_resumed_response_is_foreign_by_its_id_and_not_by_the_type_of_it() {
        assert_eq!(resumed("7"), 0);
        assert_eq!(resumed("\"7\""), 0);
        assert_eq!(resumed("8"), 1);
    }
}
