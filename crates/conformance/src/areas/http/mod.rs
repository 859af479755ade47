//! Streamable HTTP.

use rehearse_protocol::names::{SESSION_HEADER, VERSION_HEADER};
use serde_json::json;

use super::{
    Judge,
    common::{answers_batch, shown},
};
use crate::{Case, CaseGroup, EventRef, Evidence, HttpExchange, Judgement, Kind, Material};

mod origin;
mod session;
mod shape;
mod stream;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("http.endpoint.post", |e, j| {
        for call in e
            .calls()
            .filter(|call| matches!(call.method(), "initialize" | "server/discover") && call.request.case.is_none())
        {
            // A server without `server/discover` has that fault.
            let is_unknown = call.error_code() == Some(-32601);
            if let Some(status) = call.status().filter(|status| !is_unknown && !matches!(status, 401 | 403)) {
                j.check_call((200..300).contains(&status), &call);
            }
        }
    }),
    ("http.endpoint.get", stream::get),
    ("http.endpoint.get-modern-405", |e, j| shape::earlier(e, j, "earlier/get")),
    ("http.endpoint.delete-modern-405", |e, j| shape::earlier(e, j, "earlier/delete")),
    ("http.endpoint.other-methods", shape::other_methods),
    ("http.post.content-type-json-or-sse", content_type),
    ("http.post.json-single-object", single_object),
    ("http.post.notification-202", notification),
    ("http.post.response-202", shape::response_accepted),
    ("http.post.notification-refused-4xx", shape::refused_notification),
    ("http.post.malformed-json-4xx", |e, j| {
        shape::status(e, j, "malformed/truncated", |status| (400..500).contains(&status));
    }),
    ("http.post.wrong-content-type", |e, j| {
        shape::status(e, j, "shape/text-plain", |status| (400..500).contains(&status));
    }),
    ("http.post.charset-param", |e, j| shape::served(e, j, "shape/charset")),
    ("http.post.accept-json-only", shape::accept_json),
    ("http.post.accept-wildcard", shape::accept),
    ("http.post.accept-missing", |e, j| shape::status(e, j, "shape/accept-missing", |status| status < 500)),
    ("http.post.concurrent-streams", shape::concurrent),
    ("http.post.chunked-body", |e, j| shape::served(e, j, "shape/chunked")),
    ("http.post.header-case", |e, j| shape::served(e, j, "shape/title-case")),
    ("http.post.trailing-slash", |e, j| {
        shape::status(e, j, "shape/slash", |status| status < 500 && !matches!(status, 301..=303));
    }),
    ("http.post.no-redirect", shape::redirects),
    ("http.error.no-5xx-on-bad-input", |e, j| {
        for (_, http) in e.exchanges().filter(|(_, http)| http.case.is_some()) {
            // A server may be overloaded, or not know an HTTP method.
            if let Some((status, places)) = answered(http).filter(|(status, _)| !matches!(status, 501 | 503 | 505)) {
                let subject = http.case.map(ToOwned::to_owned);
                j.check_at(status < 500, subject, places, || format!("HTTP {status}"));
            }
        }
    }),
    ("http.error.body-json", |e, j| {
        for (connection, http) in e.exchanges().filter(|(_, http)| http.method == "POST" && http.status == Some(400)) {
            for message in connection.messages_of(http) {
                j.check(message.error().is_some(), message, || shown(&message.value));
            }
        }
    }),
    ("http.origin.invalid-403", origin::forbidden),
    ("http.origin.validated", origin::validated),
    ("http.origin.null", origin::null),
    ("http.origin.absent-ok", origin::absent),
    ("http.origin.same-ok", origin::own),
    ("http.origin.suffix-trick", origin::suffix),
    ("http.origin.port-mismatch", origin::port),
    ("http.host.rebinding", origin::host),
    ("http.cors.no-wildcard-credentials", origin::cors),
    ("http.version.header-invalid-400", session::version_refused),
    ("http.version.header-missing-ok", session::version_missing),
    ("http.version.header-other-supported", session::version_other),
    ("http.version.negotiated-ok", |e, j| {
        // Other requests may be refused with status 400 for what they ask for.
        for call in e.calls().filter(|call| call.method().ends_with("/list") || call.method() == "ping") {
            let Some(http) = call.http.filter(|_| call.request.case.is_none()) else { continue };
            // Nor is a message that is not a request refused for its version.
            let is_request = call.error_code() != Some(-32600);
            if is_request && http.request_header(VERSION_HEADER).is_some() && http.status.is_some() {
                j.check_call(http.status != Some(400), &call);
            }
        }
    }),
    ("http.session.id-visible-ascii", |e, j| {
        for (_, http) in e.exchanges() {
            let id = http.headers.and_then(|headers| headers.get(SESSION_HEADER));
            if let (Some(id), Some(place)) = (id, http.response) {
                let holds = id.as_bytes().iter().all(|it| (0x21..=0x7e).contains(it));
                j.check_at(holds, None, vec![place], || format!("{:?}", String::from_utf8_lossy(id.as_bytes())));
            }
        }
    }),
    ("http.session.id-entropy", session::unguessable),
    ("http.session.header-on-initialize", session::on_initialize),
    ("http.session.stable-id", session::stable),
    ("http.session.missing-id-400", session::missing_id),
    ("http.session.unknown-id-404", session::unknown_id),
    ("http.session.terminated-404", |e, j| session::terminated(e, j, "session/after-delete")),
    ("http.session.delete-2xx-or-405", session::deleted),
    ("http.session.delete-unknown", session::delete_unknown),
    ("http.session.delete-twice", |e, j| session::terminated(e, j, "session/delete-again")),
    ("http.session.isolation", session::isolated),
    ("http.session.ignored-modern", shape::session_ignored),
    ("http.stream.response-included", stream::includes_response),
    ("http.stream.no-early-close", stream::not_closed_early),
    ("http.stream.closed-after-response", stream::closed_after_response),
    ("http.stream.priming-event", stream::primed),
    ("http.stream.retry-before-close", stream::retry_named),
    ("http.stream.ids-unique", stream::unique_ids),
    ("http.stream.resume-works", stream::resume_works),
    ("http.stream.resume-no-foreign", stream::resume_own),
    ("http.stream.resume-no-duplicates", stream::resume_after),
    ("http.stream.resume-unknown-id", |e, j| stream::unusual_get(e, j, "get-stream/unknown-id")),
    ("http.stream.get-second", |e, j| stream::unusual_get(e, j, "get-stream/second")),
    ("http.stream.no-broadcast", stream::not_broadcast),
    ("http.stream.no-resume-modern", |e, j| shape::served(e, j, "earlier/last-event-id")),
    ("http.stream.no-response-on-get", stream::no_response_on_get),
    ("http.stream.sse-syntax", stream::syntax),
    ("http.stream.event-type", stream::event_type),
    ("http.stream.one-message-per-event", stream::single),
    ("http.stream.no-buffering-header", |e, j| stream::header(e, j, "x-accel-buffering", |value| value == "no")),
    ("http.stream.cache-control", |e, j| {
        stream::header(e, j, "cache-control", |value| value.contains("no-cache") || value.contains("no-store"));
    }),
    ("http.stream.related-only", stream::related),
];

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
    let status = http.status.filter(|status| !matches!(status, 401 | 429))?;
    Some((status, [Some(http.request), http.response].into_iter().flatten().collect()))
}

fn content_type(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence
        .calls()
        .filter(|call| call.request.kind == Kind::Request && call.request.id().is_some_and(|it| !it.is_null()))
    {
        let is_malformed = call.request.case.is_some_and(|case| case.starts_with("malformed/"));
        let Some(http) = call.http.filter(|http| http.status.is_some_and(|it| (200..300).contains(&it))) else {
            continue;
        };
        if is_malformed {
            continue;
        }
        let media_type = http.media_type();
        let holds = media_type == "application/json" || media_type == "text/event-stream";
        j.check_answer(holds, &call, || match http.status {
            Some(202) => "HTTP 202 in place of an answer".to_owned(),
            _ => format!("{media_type:?}"),
        });
    }
}

fn single_object(evidence: &Evidence<'_>, j: &mut Judgement) {
    let is_json = |http: &HttpExchange<'_>| {
        let is_success = http.status.is_some_and(|status| (200..300).contains(&status));
        http.method == "POST" && is_success && http.media_type() == "application/json"
    };
    for (connection, http) in evidence.exchanges().filter(|(_, http)| is_json(http)) {
        let sent = http.messages.iter().filter_map(|index| connection.messages.get(*index));
        let sent: Vec<_> = sent.filter(|it| !it.is_from_server()).collect();
        // A body in answer to a notification has a check of its own.
        let Some(request) = sent.iter().find(|it| it.kind == Kind::Request) else { continue };
        for message in connection.messages_of(http).filter(|it| !it.is_in_batch && !answers_batch(evidence, it)) {
            let places = vec![request.place, message.place];
            let method = request.method().map(ToOwned::to_owned);
            j.check_at(message.value.is_object(), method, places, || "no single object".to_owned());
        }
    }
}

fn notification(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
        for call in
            connection.calls().filter(|call| call.request.kind == Kind::Notification && !call.request.is_in_batch)
        {
            let Some(http) = call.http.filter(|http| http.status.is_some_and(|it| (200..300).contains(&it))) else {
                continue;
            };
            // What is not a valid notification has a check of its own.
            if call.request.method().is_none() {
                continue;
            }
            let has_body = !http.body.is_empty() || connection.messages_of(http).next().is_some();
            j.check_answer(http.status == Some(202) && !has_body, &call, || {
                let body = if has_body { " with a body" } else { "" };
                format!("HTTP {}{body}", http.status.unwrap_or_default())
            });
        }
    }
}
