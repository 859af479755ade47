//! Streamable HTTP.

use rehearse_protocol::names::{SESSION_HEADER, VERSION_HEADER};
use serde_json::json;

use super::Judge;
use super::common::{answers_batch, shown};
use crate::areas::query::{Calls, Exchanges, Query};
use crate::{Call, Case, CaseGroup, EventRef, HttpExchange, Judgement, Kind, Material};

mod origin;
mod session;
mod shape;
mod stream;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("http.endpoint.post", |e, j| {
        let is_hello = |call: &Call<'_>| matches!(call.method(), "initialize" | "server/discover");
        for call in e.calls().plain().filter(is_hello) {
            // A server without `server/discover` has that fault.
            let is_unknown = call.error_code() == Some(-32601);
            if let Some(status) = call.status().filter(|it| !is_unknown && !matches!(it, 401 | 403 | 429 | 503)) {
                j.check_call((200..300).contains(&status), &call);
            }
        }
    }),
    ("http.post.content-type-json-or-sse", |e, j| {
        let is_malformed = |call: &Call<'_>| call.request.case.is_some_and(|case| case.starts_with("malformed/"));
        let has_id = |call: &Call<'_>| call.request.id().is_some_and(|it| !it.is_null());
        let requests = e.calls().filter(|call| call.request.kind == Kind::Request && has_id(call));
        for call in requests.filter(|call| !is_malformed(call)) {
            let Some(http) = success(&call) else { continue };
            let media_type = http.media_type();
            let holds = media_type == "application/json" || media_type == "text/event-stream";
            j.check_answer(holds, &call, || match http.status {
                Some(202) => "HTTP 202 in place of an answer".to_owned(),
                _ => format!("{media_type:?}"),
            });
        }
    }),
    ("http.post.json-single-object", |e, j| {
        let is_json = |http: &HttpExchange<'_>| {
            let is_success = http.status.is_some_and(|status| (200..300).contains(&status));
            http.method == "POST" && is_success && http.media_type() == "application/json"
        };
        for (connection, http) in e.exchanges().filter(|(_, http)| is_json(http)) {
            let sent = http.messages.iter().filter_map(|index| connection.messages.get(*index));
            let sent: Vec<_> = sent.filter(|it| !it.is_from_server()).collect();
            // A body in answer to a notification has a check of its own.
            let Some(request) = sent.iter().find(|it| it.kind == Kind::Request) else { continue };
            for message in connection.messages_of(http).filter(|it| !it.is_in_batch && !answers_batch(e, it)) {
                let places = vec![request.place, message.place];
                j.check_at(message.value.is_object(), request.method(), places, || "no single object");
            }
        }
    }),
    ("http.post.notification-202", |e, j| {
        for connection in &e.connections {
            let notifications = connection.calls().filter(|call| call.request.kind == Kind::Notification);
            // What is not a valid notification has a check of its own.
            for call in notifications.filter(|call| !call.request.is_in_batch && call.request.method().is_some()) {
                let Some(http) = success(&call) else { continue };
                let has_body = !http.body.is_empty() || connection.messages_of(http).next().is_some();
                check_accepted(j, &call, http, has_body);
            }
        }
    }),
    ("http.error.no-5xx-on-bad-input", |e, j| {
        // A server may be overloaded, or not know an HTTP method.
        let is_usual = |http: &HttpExchange<'_>| !matches!(http.status, None | Some(401 | 429 | 501 | 503 | 505));
        let all = e.exchanges().map(|(_, http)| http).filter(|http| http.case.is_some() && is_usual(http));
        let exchanges = all.by_case();
        exchanges.must(j, |http| http.status < Some(500), |http| format!("HTTP {}", http.status.unwrap_or_default()));
    }),
    ("http.error.body-json", |e, j| {
        let refused = e.exchanges().filter(|(_, http)| http.method == "POST" && http.status == Some(400));
        let messages = refused.flat_map(|(connection, http)| connection.messages_of(http));
        messages.must(j, |message| message.error().is_some(), |message| shown(&message.value));
    }),
    ("http.version.negotiated-ok", |e, j| {
        // Other requests may be refused with status 400 for what they ask for.
        let is_usual = |call: &Call<'_>| call.method().ends_with("/list") || call.method() == "ping";
        for call in e.calls().plain().filter(is_usual) {
            // Nor is a message that is not a request refused for its version.
            let http = call.http.filter(|_| call.error_code() != Some(-32600));
            if http.is_some_and(|it| it.request_header(VERSION_HEADER).is_some() && it.status.is_some()) {
                j.check_call(call.status() != Some(400), &call);
            }
        }
    }),
    ("http.session.id-visible-ascii", |e, j| {
        for (_, http) in e.exchanges() {
            let id = http.headers.and_then(|headers| headers.get(SESSION_HEADER));
            let (Some(id), Some(place)) = (id, http.response) else { continue };
            let holds = id.as_bytes().iter().all(|it| (0x21..=0x7e).contains(it));
            j.check_at(holds, None, vec![place], || format!("{:?}", String::from_utf8_lossy(id.as_bytes())));
        }
    }),
];

pub(super) const TABLES: &[&[(&str, Judge)]] =
    &[JUDGES, origin::JUDGES, session::JUDGES, shape::JUDGES, stream::JUDGES];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.is_http() || material.version.is_none() {
        return Vec::new();
    }
    [origin::cases, session::cases, shape::cases].iter().flat_map(|cases| cases(material)).collect()
}

/// A list, or another request that costs nothing, among those that a server must refuse.
fn list(material: &Material, name: &str) -> Case {
    Case::request(name, CaseGroup::Negative, material.cheap_method(), json!({}))
}

/// The first request of a client, on a connection of its own.
fn hello(material: &Material, name: &str) -> Case {
    match material.version.filter(|_| !material.is_modern()) {
        None => Case::request(name, CaseGroup::Fresh, "server/discover", json!({})),
        Some(version) => {
            let params = json!({
                "protocolVersion": version.as_str(),
                "capabilities": {},
                "clientInfo": { "name": "rehearse-check", "version": "1" },
            });
            Case::request(name, CaseGroup::Fresh, "initialize", params)
        }
    }
}

/// The status of an exchange and its heads, unless the server wants another client, or fewer requests.
fn answered(http: &HttpExchange<'_>) -> Option<(u16, Vec<EventRef>)> {
    Some((http.status.filter(|status| !matches!(status, 401 | 429))?, http.places()))
}

fn is_client_error(status: u16) -> bool {
    (400..500).contains(&status)
}

/// An HTTP 202 that says more than that a message was accepted.
fn check_accepted(j: &mut Judgement, call: &Call<'_>, http: &HttpExchange<'_>, has_body: bool) {
    j.check_answer(http.status == Some(202) && !has_body, call, || {
        let body = if has_body { " with a body" } else { "" };
        format!("HTTP {}{body}", http.status.unwrap_or_default())
    });
}

/// The HTTP exchange of a call that succeeded.
fn success<'e>(call: &Call<'e>) -> Option<&'e HttpExchange<'e>> {
    call.http.filter(|http| http.status.is_some_and(|status| (200..300).contains(&status)))
}
