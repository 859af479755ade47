//! Streamable HTTP.

use std::collections::HashSet;

use rehearse_protocol::{Version, sse};
use serde_json::{Value, json};

use super::{Judge, common::shown};
use crate::{Case, Connection, Evidence, HttpExchange, Judgement, Kind, Lane, Material};

const EVIL: &str = "http://evil.example";
const SESSION: &str = "mcp-session-id";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("http.endpoint.post", |e, j| {
        for call in e
            .calls()
            .filter(|call| matches!(call.method(), "initialize" | "server/discover") && call.request.case.is_none())
        {
            if let Some(status) = call.status().filter(|status| !matches!(status, 401 | 403)) {
                j.check_call((200..300).contains(&status), &call);
            }
        }
    }),
    ("http.endpoint.get", |e, j| {
        for (_, http) in e.http_case("get-stream/get") {
            if let (Some(status), Some(place)) = (http.status, http.response) {
                let holds =
                    status == 405 || (status == 200 && http.is_stream()) || matches!(status, 400..=403 | 406 | 409);
                j.check_at(holds, None, vec![http.request, place], || format!("HTTP {status} {}", http.media_type()));
            }
        }
    }),
    ("http.post.content-type-json-or-sse", content_type),
    ("http.post.json-single-object", single_object),
    ("http.post.notification-202", notification),
    ("http.error.no-5xx-on-bad-input", |e, j| {
        for (_, http) in e.exchanges().filter(|(_, http)| http.case.is_some()) {
            if let (Some(status), Some(place)) = (http.status, http.response) {
                let subject = http.case.map(ToOwned::to_owned);
                j.check_at(status < 500, subject, vec![http.request, place], || format!("HTTP {status}"));
            }
        }
    }),
    ("http.error.body-json", |e, j| {
        for (connection, http) in
            e.exchanges().filter(|(_, http)| http.status.is_some_and(|it| (400..500).contains(&it)))
        {
            for message in connection.messages_of(http) {
                j.check(message.error().is_some(), message, || shown(&message.value));
            }
        }
    }),
    ("http.origin.invalid-403", |e, j| origin(e, j, |status| status == 403)),
    ("http.origin.validated", |e, j| origin(e, j, |status| (400..500).contains(&status))),
    ("http.version.header-invalid-400", |e, j| {
        for call in e.case("version-header").filter(|call| call.status().is_some()) {
            j.check_call(call.status() == Some(400), &call);
        }
    }),
    ("http.version.negotiated-ok", |e, j| {
        for call in e.calls().filter(|call| call.request.case.is_none() && call.request.kind == Kind::Request) {
            let is_sent = call.http.is_some_and(|http| http.request_header("mcp-protocol-version").is_some());
            if is_sent && call.status().is_some() {
                j.check_call(call.status() != Some(400), &call);
            }
        }
    }),
    ("http.session.id-visible-ascii", |e, j| {
        for (_, http) in e.exchanges() {
            let id = http.headers.and_then(|headers| headers.get(SESSION));
            if let (Some(id), Some(place)) = (id, http.response) {
                let holds = id.as_bytes().iter().all(|it| (0x21..=0x7e).contains(it));
                j.check_at(holds, None, vec![place], || format!("{:?}", String::from_utf8_lossy(id.as_bytes())));
            }
        }
    }),
    ("http.session.stable-id", |e, j| ids_of_sessions(e, j)),
    ("http.session.terminated-404", |e, j| {
        let is_ended =
            e.http_case("session/delete").any(|(_, http)| http.status.is_some_and(|it| (200..300).contains(&it)));
        for call in e.case("session/after-delete").filter(|call| is_ended && call.status().is_some()) {
            j.check_call(call.status() == Some(404), &call);
        }
    }),
    ("http.stream.response-included", |e, j| {
        streams(e, |connection, http| {
            let has_response = connection.messages_of(http).any(|it| it.kind == Kind::Response);
            if let (Some(_), Some(place), false) = (http.is_whole, http.response, has_ids(http) && !has_response) {
                j.check_at(has_response, None, vec![http.request, place], || "the end of the stream".to_owned());
            }
        });
    }),
    ("http.stream.closed-after-response", |e, j| {
        streams(e, |connection, http| {
            if let Some(response) = connection.messages_of(http).find(|it| it.kind == Kind::Response) {
                j.check(http.is_whole.is_some(), response, || "a stream that stays open".to_owned());
            }
        });
    }),
    ("http.stream.ids-unique", unique_ids),
    ("http.stream.no-response-on-get", |e, j| {
        for (connection, http) in e.exchanges().filter(|(_, http)| http.method == "GET" && http.is_stream()) {
            if http.request_header("last-event-id").is_some() {
                continue;
            }
            let response = connection.messages_of(http).find(|it| it.kind == Kind::Response);
            let place = response.map_or(http.request, |it| it.place);
            j.check_at(response.is_none(), None, vec![place], || "a response".to_owned());
        }
    }),
    ("http.stream.sse-syntax", |e, j| {
        events(e, |http, event| {
            let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
            let data = event.data.as_deref().unwrap_or_default();
            if is_message && !data.is_empty() {
                let is_json = serde_json::from_slice::<Value>(data).is_ok();
                j.check_at(is_json, None, vec![http.request], || format!("{:?}", String::from_utf8_lossy(data)));
            }
        });
    }),
    ("http.stream.event-type", |e, j| {
        events(e, |http, event| {
            let holds = matches!(event.event.as_deref(), None | Some("" | "message"));
            j.check_at(holds, None, vec![http.request], || {
                format!("the type {:?}", event.event.clone().unwrap_or_default())
            });
        });
    }),
    ("http.stream.one-message-per-event", |e, j| {
        for (connection, http) in e.exchanges().filter(|(_, http)| http.is_stream()) {
            for message in connection.messages_of(http).filter(|it| !it.is_in_batch && !it.value.is_null()) {
                let holds = message.value.is_object() || e.version == Version::V2025_03_26;
                j.check(holds, message, || "no single message".to_owned());
            }
        }
    }),
    ("http.stream.no-buffering-header", |e, j| {
        for (_, http) in e.exchanges().filter(|(_, http)| http.is_stream()) {
            let holds = http.header("x-accel-buffering") == Some("no");
            j.check_at(holds, None, http.response.into_iter().collect(), || "no such header".to_owned());
        }
    }),
    ("http.stream.related-only", |e, j| {
        streams(e, |connection, http| {
            let is_listen = http.request_header("mcp-method") == Some("subscriptions/listen");
            for message in connection.messages_of(http).filter(|it| !is_listen && it.kind == Kind::Notification) {
                let method = message.method().unwrap_or_default();
                let holds = !method.ends_with("/list_changed") && method != "notifications/resources/updated";
                j.check_subject(holds, method, message, || "it on the stream of a request".to_owned());
            }
        });
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.is_http() {
        return Vec::new();
    }
    let Some(version) = material.version else { return Vec::new() };
    let method = material.list_methods().first().copied();
    let mut cases = Vec::new();
    match material.is_modern() {
        true => {
            let discover = Case::request("origin/discover", Lane::Fresh, "server/discover", json!({}));
            cases.push(discover.header("origin", EVIL));
        }
        false => {
            let params = json!({
                "protocolVersion": version.as_str(),
                "capabilities": {},
                "clientInfo": { "name": "rehearse-check", "version": "1" },
            });
            cases.push(Case::request("origin/initialize", Lane::Fresh, "initialize", params).header("origin", EVIL));
            cases.push(Case::http("get-stream/get", Lane::Negative, "GET").unanswered());
        }
    }
    let Some(method) = method else { return cases };
    let list = |name: &str| Case::request(name, Lane::Negative, method, json!({}));
    cases.push(list("origin/list").header("origin", EVIL));
    if matches!(version, Version::V2025_06_18 | Version::V2025_11_25) {
        cases.push(list("version-header/old").header("mcp-protocol-version", "1999-01-01"));
        cases.push(list("version-header/nonsense").header("mcp-protocol-version", "abc"));
    }
    cases
}

fn content_type(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence
        .calls()
        .filter(|call| call.request.kind == Kind::Request && call.request.id().is_some_and(|it| !it.is_null()))
    {
        let Some(http) = call.http.filter(|http| http.status.is_some_and(|it| (200..300).contains(&it))) else {
            continue;
        };
        let media_type = http.media_type();
        let holds = media_type == "application/json" || media_type == "text/event-stream";
        j.check_answer(holds, &call, || match http.status {
            Some(202) => "HTTP 202 in place of an answer".to_owned(),
            _ => format!("{media_type:?}"),
        });
    }
}

fn single_object(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (connection, http) in evidence.exchanges().filter(|(_, http)| http.media_type() == "application/json") {
        let is_batch = connection.calls().any(|call| {
            call.request.exchange == connection.messages_of(http).next().and_then(|it| it.exchange)
                && call.request.kind == Kind::Batch
        });
        for message in connection.messages_of(http).filter(|it| !it.is_in_batch) {
            let may_be_array = is_batch && evidence.version == Version::V2025_03_26;
            j.check(message.value.is_object() || may_be_array, message, || "no single object".to_owned());
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
            let has_body = !http.body.is_empty() || connection.messages_of(http).next().is_some();
            j.check_answer(http.status == Some(202) && !has_body, &call, || {
                let body = if has_body { " with a body" } else { "" };
                format!("HTTP {}{body}", http.status.unwrap_or_default())
            });
        }
    }
}

fn origin(evidence: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(u16) -> bool) {
    if !evidence.facts.is_local {
        return j.untested("the server is not local, and may accept any origin");
    }
    for (_, http) in evidence.http_case("origin") {
        if let (Some(status), Some(place)) = (http.status.filter(|it| *it != 401), http.response) {
            let holds = holds(status) || (http.method == "GET" && status == 405);
            j.check_at(holds, http.case.map(ToOwned::to_owned), vec![http.request, place], || format!("HTTP {status}"));
        }
    }
}

/// No other id must follow that of `initialize`.
fn ids_of_sessions(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
        let initialize = connection.calls().find(|call| call.method() == "initialize").and_then(|call| call.http);
        let id = initialize.and_then(|http| http.header(SESSION));
        for http in connection.exchanges.values() {
            let (Some(found), Some(place)) = (http.header(SESSION), http.response) else { continue };
            j.check_at(id.is_none_or(|id| id == found), None, vec![place], || format!("`Mcp-Session-Id: {found}`"));
        }
    }
}

/// The event streams of POSTs with a request.
fn streams(evidence: &Evidence<'_>, mut judge: impl FnMut(&Connection<'_>, &HttpExchange<'_>)) {
    for (connection, http) in evidence.exchanges() {
        if http.method == "POST"
            && http.is_stream()
            && http.request_header("mcp-method") != Some("subscriptions/listen")
        {
            judge(connection, http);
        }
    }
}

fn decoded(http: &HttpExchange<'_>) -> Vec<sse::Event> {
    let mut events = Vec::new();
    let _ = sse::Decoder::default().push(&http.body, &mut events);
    events
}

fn events(evidence: &Evidence<'_>, mut judge: impl FnMut(&HttpExchange<'_>, &sse::Event)) {
    for (_, http) in evidence.exchanges().filter(|(_, http)| http.is_stream()) {
        for event in decoded(http) {
            judge(http, &event);
        }
    }
}

fn has_ids(http: &HttpExchange<'_>) -> bool {
    decoded(http).iter().any(|event| event.id.is_some())
}

fn unique_ids(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
        let mut seen = HashSet::new();
        for http in connection.exchanges.values().filter(|http| http.is_stream()) {
            if http.request_header("last-event-id").is_some() {
                continue;
            }
            for id in decoded(http).into_iter().filter_map(|event| event.id).filter(|id| !id.is_empty()) {
                let is_new = seen.insert(id.clone());
                j.check_at(is_new, None, vec![http.request], || format!("the id {id:?} again"));
            }
        }
    }
}
