//! HTTP with SSE, the transport of 2024-11-05.

use std::collections::BTreeMap;

use rehearse_protocol::{ClosedHow, sse};
use serde_json::Value;

use super::{Judge, common::isolated};
use crate::{Case, Connection, EventRef, Evidence, HttpExchange, Judgement, Material};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("lsse.endpoint.event-sent", sent),
    ("lsse.endpoint.first", first),
    ("lsse.endpoint.uri-valid", uri),
    ("lsse.endpoint.same-origin", same_origin),
    ("lsse.endpoint.unique-per-connection", unique),
    ("lsse.post.accepted", accepted),
    ("lsse.post.response-on-sse", messages),
    ("lsse.post.unknown-session", unknown),
    ("lsse.post.malformed", malformed),
    ("lsse.origin.validated", origin),
    ("lsse.close.cleanup", cleanup),
    ("lsse.isolation.responses", isolated),
];

pub(super) fn cases(_: &Material) -> Vec<Case> {
    Vec::new()
}

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
        places(self.http)
    }
}

fn is_endpoint(event: &sse::Event) -> bool {
    event.event.as_deref() == Some("endpoint")
}

fn places(http: &HttpExchange<'_>) -> Vec<EventRef> {
    [Some(http.request), http.response].into_iter().flatten().collect()
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

fn sent(evidence: &Evidence<'_>, j: &mut Judgement) {
    for stream in streams(evidence).filter(|it| it.connection.closed.is_some()) {
        let is_sent = stream.endpoint().is_some();
        j.check_at(is_sent, None, stream.places(), || "a stream without an `endpoint` event".to_owned());
    }
}

fn first(evidence: &Evidence<'_>, j: &mut Judgement) {
    for stream in streams(evidence) {
        let Some(event) = stream.events.iter().find(|it| it.event.is_some() || it.data.is_some()) else { continue };
        let name = event.event.as_deref().unwrap_or("message");
        j.check_at(is_endpoint(event), None, stream.places(), || format!("a first event of type {name:?}"));
    }
}

/// Whether a text has only characters of a URI, RFC 3986.
fn is_uri(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&it))
}

fn uri(evidence: &Evidence<'_>, j: &mut Judgement) {
    for stream in streams(evidence) {
        let Some(endpoint) = stream.endpoint() else { continue };
        j.check_at(is_uri(endpoint.trim()), None, stream.places(), || format!("the endpoint {endpoint:?}"));
    }
}

fn same_origin(evidence: &Evidence<'_>, j: &mut Judgement) {
    for stream in streams(evidence) {
        let Some(endpoint) = stream.endpoint() else { continue };
        // Then the prober does not use it.
        let is_other = stream.connection.closed.is_some_and(|(.., closed)| closed.how == ClosedHow::ForeignEndpoint);
        j.check_at(!is_other, None, stream.places(), || format!("the endpoint {endpoint:?}"));
    }
}

fn unique(evidence: &Evidence<'_>, j: &mut Judgement) {
    let mut seen: BTreeMap<String, Vec<EventRef>> = BTreeMap::new();
    // With a cookie the server may tell them apart.
    for stream in streams(evidence).filter(|it| it.http.header("set-cookie").is_none()) {
        if let Some(endpoint) = stream.endpoint() {
            seen.entry(endpoint).or_default().extend(stream.http.response);
        }
    }
    if seen.values().map(Vec::len).sum::<usize>() < 2 {
        return j.untested("there was one connection only");
    }
    for (endpoint, places) in seen {
        let connections = places.len();
        j.check_at(connections == 1, None, places, || {
            format!("the endpoint {endpoint:?} on {connections} connections")
        });
    }
}

fn accepted(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (connection, http) in evidence.exchanges().filter(|(_, http)| http.method == "POST" && http.case.is_none()) {
        let Some(status) = http.status.filter(|it| !matches!(it, 401 | 403 | 429 | 500..)) else { continue };
        let mut sent = http.messages.iter().filter_map(|index| connection.messages.get(*index));
        let Some(message) = sent.find(|it| !it.is_from_server() && it.case.is_none()) else { continue };
        let places = [Some(message.place), http.response].into_iter().flatten().collect();
        let method = message.method().map(ToOwned::to_owned);
        j.check_at((200..300).contains(&status), method, places, || format!("HTTP {status}"));
    }
}

fn messages(evidence: &Evidence<'_>, j: &mut Judgement) {
    for stream in streams(evidence) {
        for event in stream.events.iter().filter(|it| !is_endpoint(it)) {
            let name = event.event.as_deref().unwrap_or_default();
            let data = event.data.as_deref().unwrap_or_default();
            if serde_json::from_slice::<Value>(data).is_ok_and(|it| it.get("jsonrpc").is_some()) {
                let is_message = matches!(name, "" | "message");
                j.check_at(is_message, None, stream.places(), || format!("a message in an event of type {name:?}"));
            }
        }
    }
}

fn unknown(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (_, http) in evidence.http_case("sse-unknown") {
        let Some(status) = http.status.filter(|it| *it != 429) else { continue };
        j.check_at((400..500).contains(&status), None, places(http), || format!("HTTP {status}"));
    }
    j.untested("the endpoint names no session");
}

fn malformed(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("malformed/truncated") {
        let is_refused = call.status().is_some_and(|status| status >= 400);
        j.check_call(is_refused || call.response.is_some_and(|it| it.error().is_some()), &call);
    }
}

fn origin(evidence: &Evidence<'_>, j: &mut Judgement) {
    if !evidence.facts.is_local {
        return j.untested("the server is not local, and may accept any origin");
    }
    for (_, http) in evidence.http_case("sse-origin") {
        let Some(status) = http.status.filter(|it| !matches!(it, 401 | 429)) else { continue };
        let subject = http.case.map(ToOwned::to_owned);
        j.check_at(!(200..300).contains(&status), subject, places(http), || format!("HTTP {status}"));
    }
}

fn cleanup(evidence: &Evidence<'_>, j: &mut Judgement) {
    let is_sent = evidence.http_case("sse-closed/post").next().is_some();
    for call in evidence.case("sse-closed/ping").filter(|_| is_sent) {
        j.check_answer(call.is_served(), &call, || "no answer on a new connection".to_owned());
    }
}
