//! HTTP with SSE, the transport of 2024-11-05.

use std::collections::BTreeMap;

use rehearse_protocol::{ClosedHow, sse};
use serde_json::Value;

use super::query::Query;
use super::{Judge, common::isolated};
use crate::{Call, Connection, EventRef, Evidence, HttpExchange};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("lsse.endpoint.event-sent", |e, j| {
        for stream in streams(e).filter(|it| it.connection.closed.is_some()) {
            let is_sent = stream.endpoint().is_some();
            j.check_at(is_sent, None, stream.places(), || "a stream without an `endpoint` event");
        }
    }),
    ("lsse.endpoint.first", |e, j| {
        for stream in streams(e) {
            let Some(event) = stream.events.iter().find(|it| it.event.is_some() || it.data.is_some()) else { continue };
            let name = event.event.as_deref().unwrap_or("message");
            j.check_at(is_endpoint(event), None, stream.places(), || format!("a first event of type {name:?}"));
        }
    }),
    ("lsse.endpoint.uri-valid", |e, j| {
        for stream in streams(e) {
            let Some(endpoint) = stream.endpoint() else { continue };
            j.check_at(is_uri(endpoint.trim()), None, stream.places(), || format!("the endpoint {endpoint:?}"));
        }
    }),
    ("lsse.endpoint.same-origin", |e, j| {
        for stream in streams(e) {
            let Some(endpoint) = stream.endpoint() else { continue };
            // Then the prober does not use it.
            let is_other =
                stream.connection.closed.is_some_and(|(.., closed)| closed.how == ClosedHow::ForeignEndpoint);
            j.check_at(!is_other, None, stream.places(), || format!("the endpoint {endpoint:?}"));
        }
    }),
    ("lsse.endpoint.unique-per-connection", |e, j| {
        let mut seen: BTreeMap<String, Vec<EventRef>> = BTreeMap::new();
        // With a cookie the server may tell them apart.
        for stream in streams(e).filter(|it| it.http.header("set-cookie").is_none()) {
            let Some(endpoint) = stream.endpoint() else { continue };
            seen.entry(endpoint).or_default().extend(stream.http.response);
        }
        if seen.values().map(Vec::len).sum::<usize>() < 2 {
            return j.untested("there was one connection only");
        }
        for (endpoint, places) in seen {
            let connections = places.len();
            let found = || format!("the endpoint {endpoint:?} on {connections} connections");
            j.check_at(connections == 1, None, places, found);
        }
    }),
    ("lsse.post.accepted", |e, j| {
        for (connection, http) in e.exchanges().filter(|(_, http)| http.method == "POST" && http.case.is_none()) {
            let Some(status) = http.status.filter(|it| !matches!(it, 401 | 403 | 429 | 500..)) else { continue };
            let mut sent = http.messages.iter().filter_map(|index| connection.messages.get(*index));
            let Some(message) = sent.find(|it| !it.is_from_server() && it.case.is_none()) else { continue };
            let places = [Some(message.place), http.response].into_iter().flatten().collect();
            j.check_at((200..300).contains(&status), message.method(), places, || format!("HTTP {status}"));
        }
    }),
    ("lsse.post.response-on-sse", |e, j| {
        for stream in streams(e) {
            for event in stream.events.iter().filter(|it| !is_endpoint(it)) {
                let name = event.event.as_deref().unwrap_or_default();
                let data = event.data.as_deref().unwrap_or_default();
                if serde_json::from_slice::<Value>(data).is_ok_and(|it| it.get("jsonrpc").is_some()) {
                    let is_message = matches!(name, "" | "message");
                    j.check_at(is_message, None, stream.places(), || format!("a message in an event of type {name:?}"));
                }
            }
        }
    }),
    ("lsse.post.unknown-session", |e, j| {
        for (_, http) in e.http_case("sse-unknown") {
            let Some(status) = http.status.filter(|it| *it != 429) else { continue };
            j.check_at((400..500).contains(&status), None, http.places(), || format!("HTTP {status}"));
        }
    }),
    ("lsse.post.malformed", |e, j| {
        let is_error = |call: &Call<'_>| call.response.is_some_and(|it| it.error().is_some());
        e.case("malformed/truncated").must_get(j, |call| call.status() >= Some(400) || is_error(call));
    }),
    ("lsse.origin.validated", |e, j| {
        if !e.facts.is_local {
            return j.untested("the server is not local, and may accept any origin");
        }
        for (_, http) in e.http_case("sse-origin") {
            let Some(status) = http.status.filter(|it| !matches!(it, 401 | 429)) else { continue };
            j.check_at(!(200..300).contains(&status), http.case, http.places(), || format!("HTTP {status}"));
        }
    }),
    ("lsse.close.cleanup", |e, j| {
        let is_sent = e.http_case("sse-closed/post").next().is_some();
        let calls = e.case("sse-closed/ping").filter(|_| is_sent);
        calls.must(j, |call| call.is_served(), |_| "no answer on a new connection");
    }),
    ("lsse.isolation.responses", isolated),
];

/// The event stream of a connection, as far as it was recorded.
pub(super) struct Stream<'e> {
    pub(super) connection: &'e Connection<'e>,
    pub(super) http: &'e HttpExchange<'e>,
    events: Vec<sse::Event>,
}

impl Stream<'_> {
    pub(super) fn endpoint(&self) -> Option<String> {
        let event = self.events.iter().find(|it| is_endpoint(it))?;
        Some(String::from_utf8_lossy(event.data.as_deref().unwrap_or_default()).into_owned())
    }

    fn places(&self) -> Vec<EventRef> {
        self.http.places()
    }
}

fn is_endpoint(event: &sse::Event) -> bool {
    event.event.as_deref() == Some("endpoint")
}

/// The event stream of each connection.
pub(super) fn streams<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Stream<'e>> {
    evidence.connections.iter().filter_map(|connection| {
        let is_stream = |it: &&HttpExchange<'_>| {
            it.method == "GET" && it.case.is_none() && it.status == Some(200) && it.is_stream()
        };
        let http = connection.exchanges.values().find(is_stream)?;
        // Not every recorder keeps what is not a message.
        if http.body.is_empty() && !connection.messages.is_empty() {
            return None;
        }
        let mut events = Vec::new();
        let _ = sse::Decoder::default().push(&http.body, &mut events);
        Some(Stream { connection, http, events })
    })
}

/// Whether a text has only characters of a URI, RFC 3986.
fn is_uri(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&it))
}
