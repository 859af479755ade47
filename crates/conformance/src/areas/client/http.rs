//! Streamable HTTP, as a client uses it.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use rehearse_protocol::{
    Version,
    names::{SESSION_HEADER, VERSION_HEADER},
};
use serde_json::Value;

use super::super::Judge;
use super::super::rpc::single_object;
use super::common::{
    all_modern, credentials, header, header_text, headers, is_of_older_version, is_same, modern, sent_in,
};
use super::completes;
use super::life::{handshake, handshakes, identified_sessions};
use crate::areas::query::Query;
use crate::connection::without_mark;
use crate::evidence::VERSION_POINTER;
use crate::{Connection, Evidence, Flow, HttpExchange, Judgement, Kind, Level, Message};

/// By how much a request may follow an answer that the client has not seen yet, if that came sooner than this.
const IN_FLIGHT: Duration = Duration::from_millis(50);
/// How much earlier than `Retry-After` says a client may try again.
const SLACK: Duration = Duration::from_millis(50);
/// An answer after this time is not one that a cancellation has only just missed.
const LONG: Duration = Duration::from_millis(500);
const MOST_GETS: usize = 2;
/// How many sessions may be opened in an act that loses each.
const MOST_SESSIONS: usize = 10;
const MOST_ATTEMPTS: usize = 5;
const NO_SESSION: &str = "the server gave no session id";

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-http.post.method", |e, j| {
        for (connection, http) in e.exchanges() {
            if let Some(message) = sent_in(connection, http) {
                j.check(http.method == "POST", message, || format!("a message in a {}", http.method));
            } else if matches!(http.method, "PUT" | "PATCH") {
                j.check_at(false, None, http.places(), || format!("a {}", http.method));
            }
        }
    }),
    ("client-http.post.one-message", |e, j| {
        single_object(e, j);
        for message in e.sent().filter(|it| it.value.is_null() && it.exchange.is_some()) {
            // RFC 8259, 8.1: no byte order mark is added to JSON that is sent.
            let has_mark = without_mark(message.bytes).len() < message.bytes.len();
            j.check(false, message, || if has_mark { "a byte order mark" } else { "bytes that are no JSON" });
        }
    }),
    ("client-http.accept.both", |e, j| {
        posts(e).must(
            j,
            |http| accepts(http, "application/json") && accepts(http, "text/event-stream"),
            |http| header_text("Accept", header(http, "accept").as_deref()),
        )
    }),
    ("client-http.accept.get-sse", |e, j| {
        for connection in e.connections.iter().filter(|it| handshake(it).is_some()) {
            connection.exchanges.values().filter(|http| http.method == "GET").must(
                j,
                |http| accepts(http, "text/event-stream"),
                |http| header_text("Accept", header(http, "accept").as_deref()),
            );
        }
    }),
    ("client-http.content-type.json", |e, j| {
        headers(posts(e), j, ("content-type", "Content-Type"), |value| {
            let essence = value.and_then(|it| it.split(';').next()).unwrap_or_default().trim();
            essence.eq_ignore_ascii_case("application/json")
        });
    }),
    ("client-http.version.header-sent", |e, j| {
        // A client that has refused the answer to `initialize` can name no version; it only ends the session.
        let goes_on = |it: &&Connection<'_>| later(it).any(|(_, http)| http.method != "DELETE");
        for (_, http) in e.connections.iter().filter(goes_on).flat_map(later) {
            let value = header(http, VERSION_HEADER);
            j.check_at(value.is_some(), Some(http.method), http.places(), || header_text("MCP-Protocol-Version", None));
        }
    }),
    ("client-http.version.header-negotiated", |e, j| {
        // A client may end the session in a version that it does not know.
        for (_, http) in e.connections.iter().filter(|it| is_agreed(it)).flat_map(later) {
            let Some(value) = header(http, VERSION_HEADER) else { continue };
            let holds = value == e.version.as_str();
            j.check_at(holds, None, http.places(), || header_text("MCP-Protocol-Version", Some(&value)));
            // RFC 9110, section 5.3: a header that is no list has one line.
            j.at_level_if(value.contains(','), Level::MustNot);
        }
    }),
    ("client-http.version.header-not-on-initialize", |e, j| {
        not_on_initialize(e, j, (VERSION_HEADER, "MCP-Protocol-Version"))
    }),
    ("client-http.session.sent", |e, j| {
        for connection in e.connections.iter().filter(|it| session(it).is_some()) {
            for (_, http) in later(connection) {
                let is_sent = header(http, SESSION_HEADER).is_some();
                j.check_at(is_sent, Some(http.method), http.places(), || header_text("Mcp-Session-Id", None));
            }
        }
        let is_usual = e.connections.iter().filter(|it| handshake(it).is_some()).all(|it| session(it).is_some());
        // Without it, the mock does not know the session.
        if j.exercised > 0 && is_usual {
            for http in strays(e).chain(bare(e)).filter(|http| header(http, SESSION_HEADER).is_none()) {
                j.check_at(false, Some(http.method), http.places(), || header_text("Mcp-Session-Id", None));
            }
        }
        j.untested(NO_SESSION);
    }),
    ("client-http.session.exact", |e, j| {
        let ids: Vec<_> = e.connections.iter().filter_map(session).collect();
        for connection in &e.connections {
            let Some(id) = session(connection) else { continue };
            for (_, http) in later(connection) {
                let Some(value) = header(http, SESSION_HEADER) else { continue };
                j.check_at(value == id, None, http.places(), || header_text("Mcp-Session-Id", Some(&value)));
            }
        }
        for http in strays(e) {
            let Some(value) = header(http, SESSION_HEADER) else { continue };
            let alters = |id: &&str| *id != value && (value.eq_ignore_ascii_case(id) || value.trim_matches('"') == *id);
            if ids.iter().any(alters) {
                j.check_at(false, None, http.places(), || header_text("Mcp-Session-Id", Some(&value)));
            }
        }
        j.untested(NO_SESSION);
    }),
    ("client-http.session.none-when-none", |e, j| {
        let is_without = |it: &&Connection<'_>| handshake(it).is_some() && session(it).is_none();
        let requests = e.connections.iter().filter(is_without).flat_map(later);
        headers(requests, j, (SESSION_HEADER, "Mcp-Session-Id"), |value| value.is_none());
    }),
    ("client-http.session.not-on-initialize", |e, j| not_on_initialize(e, j, (SESSION_HEADER, "Mcp-Session-Id"))),
    ("client-http.session.404-restarts", restarts),
    ("client-http.session.delete", |e, j| {
        // A client that was stopped, or that lost the session, has nothing to end.
        let is_lost = |it: &HttpExchange<'_>| it.method != "DELETE" && it.status.is_some_and(|status| status >= 400);
        for connection in e.connections.iter().filter(|_| e.facts.exit_code == Some(0)) {
            let (Some((call, _)), Some(_)) = (handshake(connection), session(connection)) else { continue };
            if !connection.exchanges.values().any(|http| is_lost(http) && http.method == "POST") {
                // One whose token has expired is on the connection of all refused requests.
                let is_own = |http: &HttpExchange<'_>| {
                    header(http, SESSION_HEADER).is_none_or(|id| Some(&*id) == session(connection))
                };
                let is_ended = e.exchanges().any(|(_, http)| http.method == "DELETE" && is_own(http));
                j.check_at(is_ended, None, call.places(), || "no DELETE until the end");
            }
        }
    }),
    ("client-http.get.405-ok", |e, j| {
        for connection in e.connections.iter().filter(|it| handshake(it).is_some()) {
            let refused = connection.exchanges.values().filter(|it| it.method == "GET" && it.status == Some(405));
            let places: Vec<_> = refused.map(|http| http.request).collect();
            let count = places.len();
            if count > 0 {
                let most = MOST_GETS * handshakes(connection).max(1);
                j.check_at(count <= most, None, places, || format!("a GET {count} times"));
            }
        }
        if j.exercised > 0 {
            completes(e, j, "stateless");
        }
    }),
    ("client-http.get.none-modern", |e, j| {
        for connection in &e.connections {
            let Some(first) = modern(connection).find(|call| call.has_result()) else { continue };
            let target = first.http.map(|http| http.target);
            let is_removed = |http: &&HttpExchange<'_>| {
                matches!(http.method, "GET" | "DELETE")
                    && Some(http.target) == target
                    && http.request > first.request.place
                    // That has a check of its own.
                    && !http.is_resumed()
                    && header(http, SESSION_HEADER).is_none()
                    && !is_of_older_version(http)
            };
            let found = connection.exchanges.values().find(is_removed);
            let places = found.map_or_else(|| first.places(), HttpExchange::places);
            j.check_at(found.is_none(), None, places, || format!("a {}", found.map_or("", |http| http.method)));
        }
    }),
    ("client-http.error.5xx-backoff", backs_off),
    ("client-http.secrets.not-in-url", secrets),
    ("client-http.response.json-supported", |e, j| completes(e, j, "json")),
    ("client-http.response.charset-tolerated", |e, j| completes(e, j, "media-type")),
    ("client-http.response.202-for-notification", accepted),
    ("client-http.session.404-no-loop", |e, j| {
        let is_lost = |http: &HttpExchange<'_>| http.status == Some(404) && header(http, SESSION_HEADER).is_some();
        let lost = e.exchanges().filter(|(_, http)| http.method == "POST" && is_lost(http));
        let lost: BTreeSet<_> = lost.filter_map(|(_, http)| header(http, SESSION_HEADER)).collect();
        let opened: Vec<_> = e.calls_of("initialize").map(|call| call.request.place).collect();
        if !lost.is_empty() {
            let count = opened.len();
            // Another client may have sessions of its own.
            let is_loop = count > MOST_SESSIONS && lost.len() > MOST_SESSIONS / 2;
            j.check_at(!is_loop, None, opened, || format!("`initialize` {count} times"));
        }
    }),
    ("client-http.session.delete-405-ok", |e, j| {
        let refused = e.exchanges().find(|(_, http)| http.method == "DELETE" && http.status == Some(405));
        let usual = e.facts.flow.as_ref();
        if let (Some((_, http)), Some(usual)) = (refused, usual.filter(|_| e.facts.is_in("odd-session")))
            && usual.methods.is_subset(&Flow::new(e).methods)
        {
            let missing = usual.missing_in(&Flow::new(e));
            j.check_at(missing.is_none(), None, http.places(), || missing.unwrap_or_default());
        }
    }),
    ("client-http.host.correct", hosts),
    ("client-http.cancel.close-stream", |e, j| {
        let mut calls = HashMap::new();
        for call in all_modern(e) {
            calls.entry(call.request.id().map(Value::to_string)).or_insert(call);
        }
        for cancelled in e.sent().filter(|it| it.method() == Some("notifications/cancelled")) {
            let id = cancelled.at("/params/requestId").to_string();
            let Some(call) = calls.get(&Some(id)) else { continue };
            let is_read = call.response.is_some_and(|it| it.time.saturating_sub(call.request.time) > LONG);
            let places = call.places_with([cancelled.place]);
            let found = || "`notifications/cancelled`, and the stream stays open until the response";
            j.check_at(!is_read, Some(call.method()), places, found);
        }
    }),
    ("client-http.response.sse-supported", |e, j| completes(e, j, "streams")),
];

/// Checks that `initialize` is sent without a header.
fn not_on_initialize(e: &Evidence<'_>, j: &mut Judgement, (name, shown): (&str, &str)) {
    for call in e.calls_of("initialize") {
        let Some(http) = call.http else { continue };
        let value = header(http, name);
        j.check(value.is_none(), call.request, || header_text(shown, value.as_deref()));
    }
}

/// Whether the server has not answered `initialize` with a version that does not exist.
fn is_agreed(connection: &Connection<'_>) -> bool {
    let version = handshake(connection).and_then(|(call, _)| call.result()?["protocolVersion"].as_str());
    version.is_none_or(|it| it.parse::<Version>().is_ok())
}

/// The POSTs with a message.
fn posts<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (&'e Connection<'e>, &'e HttpExchange<'e>)> {
    let exchanges = evidence.connections.iter().flat_map(|it| it.exchanges.values().map(move |http| (it, http)));
    exchanges.filter(|(connection, http)| http.method == "POST" && sent_in(connection, http).is_some())
}

/// Whether the client lists a media type as one that it accepts.
fn accepts(http: &HttpExchange<'_>, media_type: &str) -> bool {
    let values = http.request_headers.into_iter().flat_map(|headers| headers.get_all("accept"));
    let lists: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase()).collect();
    let mut types = lists.iter().flat_map(|list| list.split(','));
    types.any(|it| it.split(';').next().unwrap_or_default().trim() == media_type)
}

/// The requests of a session after its handshake.
fn later<'c>(connection: &'c Connection<'_>) -> impl Iterator<Item = (&'c Connection<'c>, &'c HttpExchange<'c>)> {
    let opened = handshake(connection).map(|(_, response)| response.place);
    let all = connection.exchanges.values().filter(|http| !http.method.is_empty() && http.method != "OPTIONS");
    let all = all.filter(move |http| opened.is_some_and(|opened| http.request > opened));
    all.map(move |http| (connection, http))
}

/// The id of the session that a connection is.
fn session<'c>(connection: &'c Connection<'_>) -> Option<&'c str> {
    handshake(connection)?.0.http?.header(SESSION_HEADER)
}

/// The requests outside of any session that belong into one.
fn strays<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = &'e HttpExchange<'e>> {
    let outside = evidence.connections.iter().filter(|it| it.calls().all(|call| call.method() != "initialize"));
    let all = outside.flat_map(|it| it.exchanges.values().map(move |http| (it, http)));
    // Those of 2026-07-28 have no session.
    let belongs = |it: &Message<'_>| !it.at(VERSION_POINTER).is_string();
    let all =
        all.filter(move |(connection, http)| http.method == "POST" && sent_in(connection, http).is_some_and(belongs));
    all.map(|(_, http)| http)
}

/// The GETs and DELETEs at the endpoint outside of any session, after the last one was opened. Before that, a client may
/// look for an older transport, or begin a session that the mock does not know.
fn bare<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = &'e HttpExchange<'e>> {
    let opens = |it: &Connection<'_>| it.calls().any(|call| call.method() == "initialize");
    let last = evidence.connections.iter().rposition(opens);
    let opened = last.and_then(|at| Some((at, handshake(evidence.connections.get(at)?)?.0.http?.target)));
    opened.into_iter().flat_map(move |(last, target)| {
        let later = evidence.connections.iter().skip(last + 1).flat_map(|it| it.exchanges.values());
        // What is refused for its token may be the search for an authorization server.
        later.filter(move |http| {
            // A GET without a version may be that of a client of HTTP+SSE, or be sent before the session was opened.
            let is_stream = || accepts(http, "text/event-stream") && header(http, VERSION_HEADER).is_some();
            let is_of_mcp = http.method == "DELETE" || (http.method == "GET" && is_stream());
            is_of_mcp && http.target == target && http.status != Some(401)
        })
    })
}

/// A request that was on its way when the session was lost does not count: it is sent before the answer that says so, if
/// that takes its time.
fn restarts(e: &Evidence<'_>, j: &mut Judgement) {
    let opens = |it: &&Connection<'_>| it.calls().any(|call| call.method() == "initialize");
    for (number, connection) in e.connections.iter().enumerate().filter(|(_, it)| session(it).is_some()) {
        let requests = |http: &&HttpExchange<'_>| {
            let message = sent_in(connection, http).filter(|it| it.kind == Kind::Request);
            http.method == "POST" && header(http, SESSION_HEADER).as_deref() == session(connection) && message.is_some()
        };
        let mut all = connection.exchanges.values().filter(requests);
        let Some(lost) = all.find(|http| http.status == Some(404)) else { continue };
        let (Some(place), Some(time)) = (lost.response, lost.response_time) else { continue };
        let next = all.find(|http| {
            let is_again = match (sent_in(connection, lost), sent_in(connection, http)) {
                (Some(one), Some(other)) => is_same(one, other),
                _ => false,
            };
            let is_seen = time.saturating_sub(lost.time) > IN_FLIGHT || http.time.saturating_sub(time) > IN_FLIGHT;
            http.request > place && (is_again || is_seen)
        });
        if next.is_none() && !e.connections.iter().skip(number + 1).any(|it| opens(&it)) {
            j.untested("the client ended when its session was lost");
            continue;
        }
        let places = lost.places_with(next.map(|http| http.request));
        j.check_at(next.is_none(), None, places, || "another request in the session");
    }
    j.untested("no session was lost");
}

/// A client that takes HTTP 202 for an error sends the notification again, or gives up.
fn accepted(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in identified_sessions(e) {
        // A client ends if it does not know the version.
        let handshakes = connection.calls().filter(|call| call.method() == "initialize");
        let is_known = |it: &Message<'_>| {
            it.at("/result/protocolVersion").as_str().is_some_and(|it| it.parse::<Version>().is_ok())
        };
        if !handshakes.filter_map(|call| call.response).all(is_known) {
            continue;
        }
        let all = || connection.exchanges.values().filter_map(|it| Some((it, sent_in(connection, it)?)));
        let is_initialized = |it: &Message<'_>| it.method() == Some("notifications/initialized");
        let Some((http, message)) = all().find(|(http, it)| http.status == Some(202) && is_initialized(it)) else {
            continue;
        };
        let next = all().find(|(_, it)| it.place > message.place && it.kind == Kind::Request);
        let again = all().find(|(_, it)| it.place > message.place && is_initialized(it));
        // What is refused for its token is on another connection.
        let is_refused = |(_, it): (&Connection<'_>, &HttpExchange<'_>)| {
            it.status == Some(401)
                && session(connection).is_some_and(|id| header(it, SESSION_HEADER).as_deref() == Some(id))
        };
        let goes_on = next.is_some() || e.exchanges().any(is_refused);
        let fails = !goes_on && e.facts.exit_code.is_some_and(|code| code != 0);
        let places = http.places_with(again.map(|(http, _)| http.request));
        j.check_at(again.is_none() && !fails, None, places, || match again {
            Some(_) => "the same notification again".to_owned(),
            None => "nothing after it".to_owned(),
        });
    }
}

/// The client may use another name of the host than its URL has.
fn hosts(e: &Evidence<'_>, j: &mut Judgement) {
    let Some(endpoint) = e.facts.endpoint.as_deref().and_then(|url| url::Url::parse(url).ok()) else { return };
    for (_, http) in e.exchanges() {
        // HTTP/2 has another place for it.
        let Some(host) = header(http, "host") else { continue };
        let named = url::Url::parse(&format!("{}://{host}", endpoint.scheme())).ok();
        let is_right = named.is_some_and(|it| it.port_or_known_default() == endpoint.port_or_known_default());
        j.check_at(is_right, None, http.places(), || header_text("Host", Some(&host)));
    }
}

fn backs_off(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in &e.connections {
        let all: Vec<_> = connection.exchanges.values().filter_map(|it| Some((it, sent_in(connection, it)?))).collect();
        let is_busy = |http: &HttpExchange<'_>| matches!(http.status, Some(429 | 503));
        for (busy, message) in all.iter().filter(|(http, _)| is_busy(http)) {
            let again = all.iter().filter(|(http, it)| http.request > busy.request && is_same(it, message));
            let again: Vec<_> = again.map(|(http, _)| *http).collect();
            let asked = busy.header("retry-after").and_then(|it| it.trim().parse().ok()).map(Duration::from_secs);
            let waited = again.first().zip(busy.response_time).map(|(next, time)| next.time.saturating_sub(time));
            let is_early = asked.zip(waited).is_some_and(|(asked, waited)| waited + SLACK < asked);
            let is_endless = again.iter().filter(|http| is_busy(http)).count() >= MOST_ATTEMPTS;
            let places = busy.places_with(again.first().map(|http| http.request));
            j.check_at(!is_early && !is_endless, message.method(), places, || match is_early {
                true => format!("another attempt after {:.1?}", waited.unwrap_or_default()),
                false => format!("{} more attempts", again.len()),
            });
        }
    }
    j.untested("no request was refused with HTTP 429 or 503");
}

fn secrets(e: &Evidence<'_>, j: &mut Judgement) {
    for (_, http) in e.exchanges() {
        let shown = credentials(http);
        let token = shown.as_ref().map(|(_, token)| token.trim());
        let query = http.target.split_once('?').map(|(_, query)| query).unwrap_or_default();
        let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
        let is_token = |key: &str, value: &str| key == "access_token" || token.is_some_and(|token| token == value);
        let found = pairs.iter().find(|(key, value)| is_token(key, value));
        if token.is_some() || found.is_some() {
            let key = found.map(|(key, _)| key.as_ref()).unwrap_or_default();
            j.check_at(found.is_none(), None, http.places(), || format!("a token in `{key}` of the query"));
        }
    }
    j.untested("no request was authorized");
}
