//! Streams that are broken off, as a client resumes them.

use std::time::Duration;

use rehearse_protocol::{
    Version,
    names::{LAST_EVENT_HEADER, SESSION_HEADER, VERSION_HEADER},
    sse,
};

use super::super::Judge;
use super::common::{header, header_text, is_of_older_version, is_same, sent_in};
use super::life::handshake;
use super::{completes, ignores_list};
use crate::{Connection, HttpExchange, Kind, Message};

const SLACK: Duration = Duration::from_millis(50);
/// How often a stream may be resumed in vain within [`IN_TIME`].
const MOST_ATTEMPTS: usize = 10;
const IN_TIME: Duration = Duration::from_secs(10);

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-sse.resume.last-event-id", |e, j| {
        for connection in &e.connections {
            let streams = streams(connection);
            for http in resumptions(connection) {
                let value = header(http, LAST_EVENT_HEADER).unwrap_or_default();
                let mut earlier = streams.iter().filter(|it| it.http.request < http.request).peekable();
                if earlier.any(|it| it.last_id().is_some()) {
                    let holds = streams.iter().any(|it| it.last_id() == Some(&*value));
                    j.check_at(holds, None, http.places(), || header_text("Last-Event-ID", Some(&value)));
                }
            }
            let is_resumed = resumptions(connection).next().is_some();
            let Some(broken) = streams.iter().find(|it| it.is_broken_off()).filter(|_| !is_resumed) else { continue };
            // The first GET may be for what the server sends of its own.
            let mut gets = connection.exchanges.values().filter(|http| http.method == "GET");
            let has_stream = gets.next().is_some_and(|http| http.request < broken.http.request);
            match gets.find(|http| has_stream && http.request > broken.http.request) {
                Some(http) => j.check_at(false, None, http.places(), || header_text("Last-Event-ID", None)),
                None => j.untested("the client did not resume the stream"),
            }
        }
    }),
    ("client-sse.resume.retry-respected", |e, j| {
        // The stream did not end before its last event.
        for connection in &e.connections {
            let streams = streams(connection);
            for http in resumptions(connection) {
                let value = header(http, LAST_EVENT_HEADER).unwrap_or_default();
                let Some(from) = streams.iter().find(|it| it.ids().any(|id| id == value)) else { continue };
                let retry = from.events.iter().filter_map(|event| event.retry).next_back().map(Duration::from_millis);
                let (Some(retry), Some(last)) = (retry, from.http.last) else { continue };
                let waited = http.time.saturating_sub(last);
                let places = from.http.places_with([http.request]);
                let holds = waited + retry / 10 + SLACK >= retry;
                j.check_at(holds, None, places, || format!("a GET after {waited:.1?}, not after {retry:?}"));
            }
        }
    }),
    ("client-sse.resume.get-not-post", |e, j| {
        // A call that is sent again may be done twice.
        for connection in &e.connections {
            for stream in streams(connection).iter().filter(|it| it.is_broken_off()) {
                let Some(request) = stream.request else { continue };
                let is_answer = |it: &&Message<'_>| it.is_from_server() && it.kind == Kind::Response;
                let mut answers = connection.messages.iter().filter(is_answer).filter(|it| it.id() == request.id());
                let answered = answers.next().map(|it| it.place);
                let again = connection.messages.iter().find(|it| {
                    let is_open = answered.is_none_or(|answered| it.place < answered);
                    let is_open = is_open && stream.http.last.is_none_or(|last| it.time >= last);
                    !it.is_from_server() && it.place > request.place && is_open && is_same(it, request)
                });
                let places = [request].into_iter().chain(again).map(|it| it.place).collect();
                j.check_at(again.is_none(), request.method(), places, || "the same request again");
            }
        }
    }),
    ("client-sse.resume.headers", |e, j| {
        for connection in e.connections.iter().filter(|it| handshake(it).is_some()) {
            let id = handshake(connection).and_then(|(call, _)| call.http?.header(SESSION_HEADER));
            for http in resumptions(connection) {
                let session = header(http, SESSION_HEADER);
                let is_named = e.version < Version::V2025_06_18 || header(http, VERSION_HEADER).is_some();
                let found = || header_text("Mcp-Session-Id", session.as_deref());
                j.check_at(id.is_none() || session.as_deref() == id, None, http.places(), found);
                j.check_at(is_named, None, http.places(), || header_text("MCP-Protocol-Version", None));
            }
        }
    }),
    ("client-sse.resume.not-modern", |e, j| {
        for connection in &e.connections {
            let first = streams(connection).into_iter().find(|it| it.last_id().is_some()).map(|it| it.http);
            // An older version may be in use as well.
            let is_modern =
                |http: &&HttpExchange<'_>| header(http, SESSION_HEADER).is_none() && !is_of_older_version(http);
            let resumed = connection.exchanges.values().filter(is_modern).find(|http| http.is_resumed());
            let Some(shown) = first.or(resumed) else { continue };
            j.check_at(resumed.is_none(), None, shown.places_with(resumed.map(|http| http.request)), || {
                header_text("Last-Event-ID", resumed.and_then(|http| header(http, LAST_EVENT_HEADER)).as_deref())
            });
        }
    }),
    ("client-sse.parse.empty-data", |e, j| completes(e, j, "streams")),
    ("client-sse.parse.comments", |e, j| completes(e, j, "comments")),
    ("client-sse.parse.crlf-cr-lf", |e, j| completes(e, j, "line-ends")),
    ("client-sse.parse.multi-line-data", |e, j| completes(e, j, "data-lines")),
    ("client-sse.parse.no-space", |e, j| completes(e, j, "no-space")),
    ("client-sse.parse.unknown-fields", |e, j| completes(e, j, "fields")),
    ("client-sse.parse.unknown-event-type", |e, j| completes(e, j, "event-types")),
    ("client-sse.parse.bom", |e, j| completes(e, j, "bom")),
    ("client-sse.truncated.event-discarded", |e, j| {
        if !e.exchanges().any(|(_, http)| http.is_resumed()) {
            ignores_list(e, j, "unfinished");
        }
    }),
    ("client-sse.stream.notifications-before-response", |e, j| {
        let has_notice = |connection: &Connection<'_>| {
            connection.calls().any(|call| call.response.is_some() && connection.on_the_way(&call).next().is_some())
        };
        if e.connections.iter().any(has_notice) {
            completes(e, j, "notices");
        }
    }),
    ("client-sse.stream.stays-usable-after-close", |e, j| {
        for connection in &e.connections {
            for stream in streams(connection).iter().filter(|it| it.http.method == "POST" && it.has_response) {
                let Some(id) = stream.last_id() else { continue };
                let again = resumptions(connection).find(|http| {
                    http.request > stream.http.request && header(http, LAST_EVENT_HEADER).as_deref() == Some(id)
                });
                let places = stream.http.places_with(again.map(|http| http.request));
                j.check_at(again.is_none(), None, places, || header_text("Last-Event-ID", Some(id)));
            }
        }
    }),
    ("client-sse.resume.reconnects", |e, j| {
        // A client may give up a stream that was not closed in order.
        let is_in_order = e.facts.acts.is_empty() || e.facts.acts.iter().any(|act| act.starts_with("resume"));
        for connection in e.connections.iter().filter(|_| is_in_order) {
            // What is cut off may have been closed by the client itself.
            let is_closed = |it: &&Stream<'_>| it.is_broken_off() && it.http.is_whole != Some(false);
            for stream in streams(connection).iter().filter(is_closed) {
                let is_resumed = resumptions(connection).any(|http| http.request > stream.http.request);
                j.check_at(is_resumed, None, stream.http.places(), || "no GET with `Last-Event-ID`");
            }
        }
    }),
    ("client-sse.resume.uses-result", |e, j| {
        let has_response = |connection: &Connection<'_>| {
            let mut messages = resumptions(connection).flat_map(|http| connection.messages_of(http));
            messages.any(|it| it.kind == Kind::Response)
        };
        if e.connections.iter().any(has_response) {
            completes(e, j, "resume");
        }
    }),
    ("client-sse.resume.bounded", |e, j| {
        for connection in &e.connections {
            let refused = resumptions(connection).filter(|http| http.status.is_some_and(|status| status >= 400));
            let refused: Vec<_> = refused.collect();
            let Some(first) = refused.first() else { continue };
            let is_hot = |all: &&[&HttpExchange<'_>]| match all {
                [first, .., last] => last.time.saturating_sub(first.time) < IN_TIME,
                _ => false,
            };
            let hot = refused.windows(MOST_ATTEMPTS + 1).find(is_hot);
            let places = hot.map_or_else(|| first.places(), |all| all.iter().map(|http| http.request).collect());
            j.check_at(hot.is_none(), None, places, || format!("more than {MOST_ATTEMPTS} attempts in {IN_TIME:?}"));
        }
    }),
    ("client-sse.parse.split-chunks", |e, j| completes(e, j, "pieces")),
    ("client-sse.parse.large-event", |e, j| completes(e, j, "large")),
];

/// An event stream of the server.
struct Stream<'c> {
    http: &'c HttpExchange<'c>,
    events: Vec<sse::Event>,
    /// The request that it answers.
    request: Option<&'c Message<'c>>,
    /// Whether it has the response.
    has_response: bool,
    /// Whether the client has cancelled the request.
    is_cancelled: bool,
    /// Whether more may come.
    is_open: bool,
}

impl Stream<'_> {
    fn ids(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.events.iter().filter_map(|event| event.id.as_deref()).filter(|id| !id.is_empty())
    }

    fn last_id(&self) -> Option<&str> {
        self.ids().next_back()
    }

    /// Whether it is the answer to a request, can be resumed, and lacks a response that the client waits for.
    fn is_broken_off(&self) -> bool {
        let is_whole = self.has_response || self.is_cancelled || self.is_open;
        self.http.method == "POST" && !is_whole && self.request.is_some() && self.last_id().is_some()
    }
}

fn streams<'c>(connection: &'c Connection<'_>) -> Vec<Stream<'c>> {
    let all = connection.exchanges.values().filter(|http| http.is_stream());
    let all = all.map(|http| {
        let mut events = Vec::new();
        let _ = sse::Decoder::default().push(&http.body, &mut events);
        let request = sent_in(connection, http).filter(|it| it.kind == Kind::Request);
        let has_response = connection.messages_of(http).any(|it| it.kind == Kind::Response);
        let is_cancelled = request.is_some_and(|request| connection.cancellations(request).next().is_some());
        let is_open = http.ended.is_none() && connection.closed.is_none();
        Stream { http, events, request, has_response, is_cancelled, is_open }
    });
    all.collect()
}

/// The GETs that resume a stream.
fn resumptions<'c>(connection: &'c Connection<'_>) -> impl Iterator<Item = &'c HttpExchange<'c>> {
    connection.exchanges.values().filter(|http| http.method == "GET" && http.is_resumed())
}
