//! Messages over HTTP: the headers of a request, and which bytes of a response are a message.
//!
//! Every recorder goes by [`is_message`], so that the traces of a client and of a server are equal where the bytes are.

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Era, Message, Transport, Version,
    names::{METHOD_HEADER, NAME_HEADER, SESSION_HEADER, VERSION_HEADER},
};

/// The media type of one message.
pub const JSON: &str = "application/json";
/// The media type of a stream of messages.
pub const EVENT_STREAM: &str = "text/event-stream";

/// The headers of an HTTP request that come from the protocol; `method` is that of the message in it, and empty without
/// one. What mirrors the body of a modern request is in [`mirrored_headers`].
///
/// ```
/// use http::Method;
/// use rehearse_protocol::{Version, http::request_headers};
///
/// let headers = request_headers(&Method::POST, Version::V2025_11_25, "tools/list", None);
/// assert_eq!(headers["accept"], "application/json, text/event-stream");
/// assert_eq!(headers["mcp-protocol-version"], "2025-11-25");
/// ```
pub fn request_headers(
    http_method: &Method,
    version: Version,
    method: &str,
    session: Option<&HeaderValue>,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if http_method == Method::POST {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    } else if http_method == Method::GET {
        headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
    }
    let is_initialize = method == "initialize";
    // Before the handshake no version is agreed on (2025-06-18, Streamable HTTP: Protocol Version Header). A server of
    // 2025-03-26, which does not know the header, ignores it; 2024-11-05 has no session over HTTP that it could name.
    if version.era() == Era::Modern || (version > Version::V2024_11_05 && !is_initialize) {
        headers.insert(VERSION_HEADER, HeaderValue::from_static(version.as_str()));
    }
    if let Some(session) = session.filter(|_| !is_initialize) {
        headers.insert(SESSION_HEADER, session.clone());
    }
    headers
}

/// The `Mcp-Method` and `Mcp-Name` of a request or notification (2026-07-28, Streamable HTTP: Request Metadata; SEP-2663,
/// Routing Headers); nothing for other bytes.
pub fn mirrored_headers(bytes: &[u8]) -> HeaderMap {
    #[derive(Deserialize)]
    struct Named {
        name: Option<String>,
        uri: Option<String>,
        #[serde(rename = "taskId")]
        task: Option<String>,
    }
    let mut headers = HeaderMap::new();
    let (method, params) = match Message::parse(bytes) {
        Ok(Message::Request(request)) => (request.method, request.params),
        Ok(Message::Notification(notification)) => (notification.method, notification.params),
        _ => return headers,
    };
    if let Ok(value) = HeaderValue::from_str(&method) {
        headers.insert(METHOD_HEADER, value);
    }
    let named = params.and_then(|params| serde_json::from_str::<Named>(params.get()).ok());
    let name = match (&*method, named) {
        ("tools/call" | "prompts/get", Some(named)) => named.name,
        ("resources/read", Some(named)) => named.uri,
        ("tasks/get" | "tasks/update" | "tasks/cancel", Some(named)) => named.task,
        _ => None,
    };
    if let Some(value) = name.and_then(|name| HeaderValue::from_str(&encode(&name)).ok()) {
        headers.insert(NAME_HEADER, value);
    }
    headers
}

/// A header value, in Base64 if the string cannot be a header value (2026-07-28, Streamable HTTP: Value Encoding).
pub fn encode(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let is_wrapped = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_plain && !is_wrapped && text.trim_matches([' ', '\t']) == text {
        text.into()
    } else {
        format!("=?base64?{}?=", BASE64_STANDARD.encode(text)).into()
    }
}

/// The media type of a body, in lower case and without parameters; empty if there is none (RFC 9110, 8.3.1).
pub fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether the body of a response is a stream of events, each of which may be a message.
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    media_type(headers) == EVENT_STREAM
}

/// What the response to an HTTP request can bring, apart from a stream of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// The message that a POST asks for.
    Message,
    /// A status, to a notification or a response (2025-11-25, Streamable HTTP: Sending Messages to the Server), and to any
    /// POST over HTTP+SSE, whose messages come on the stream (2024-11-05, HTTP with SSE). A refusal may be a message.
    Status,
    /// No message, to another method than POST.
    #[default]
    Nothing,
}

/// What an HTTP request with this body asks for.
pub fn asked(transport: Transport, http_method: &Method, body: &[u8]) -> Asked {
    match Message::parse(body) {
        _ if http_method != Method::POST => Asked::Nothing,
        Ok(Message::Notification(_) | Message::Response(_)) => Asked::Status,
        _ if transport != Transport::Http => Asked::Status,
        _ => Asked::Message,
    }
}

/// Whether the whole body of a response is a message. It is one if it is the JSON that was asked for: with a status of
/// success and the media type of JSON, however broken it is. The body of another response to a POST is one only if it is
/// JSON-RPC: a server answers with JSON of its own where it refuses a request (2025-11-25, Streamable HTTP: Sending
/// Messages to the Server, "the response body MAY comprise a JSON-RPC error response").
pub fn is_message(asked: Asked, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> bool {
    let is_answer = asked == Asked::Message && status.is_success() && media_type(headers) == JSON;
    !body.is_empty() && asked != Asked::Nothing && (is_answer || is_json_rpc(body))
}

/// Whether this is JSON-RPC, however wrong: an object with the member `jsonrpc`, or an array with one.
pub fn is_json_rpc(body: &[u8]) -> bool {
    let has_version = |it: &Value| it.get("jsonrpc").is_some();
    match serde_json::from_str(&String::from_utf8_lossy(body)) {
        Ok(Value::Array(parts)) => parts.iter().any(has_version),
        Ok(value) => has_version(&value),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_version_from_2025_03_26_on_and_not_before_it_is_agreed_on() {
        let session = HeaderValue::from_static("s");
        let names = |http_method: Method, version, method| {
            let headers = request_headers(&http_method, version, method, Some(&session));
            let value = |name| headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok()).map(ToOwned::to_owned);
            (value(VERSION_HEADER), value(SESSION_HEADER), headers.len())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(names(Method::POST, Version::V2025_11_25, "ping"), (some("2025-11-25"), some("s"), 4));
        assert_eq!(names(Method::GET, Version::V2025_03_26, ""), (some("2025-03-26"), some("s"), 3));
        assert_eq!(names(Method::DELETE, Version::V2025_11_25, ""), (some("2025-11-25"), some("s"), 2));
        assert_eq!(names(Method::POST, Version::V2025_11_25, "initialize"), (None, None, 2));
        assert_eq!(names(Method::POST, Version::V2024_11_05, "ping"), (None, some("s"), 3));
        assert_eq!(names(Method::POST, Version::LATEST, "server/discover").0, some("2026-07-28"));
    }

    #[test]
    fn a_body_is_a_message_if_it_was_asked_for_or_is_json_rpc() {
        let head = |kind| HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        let is_one = |asked, status: u16, kind, body: &str| {
            is_message(asked, StatusCode::from_u16(status).expect("a status"), &head(kind), body.as_bytes())
        };
        let (answer, other) = (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, r#"{"error":"no such session"}"#);
        for (asked, status, kind, body, expected) in [
            (Asked::Message, 200, "application/json", answer, true),
            (Asked::Message, 200, "Application/JSON; charset=utf-8", "{ broken", true),
            (Asked::Message, 200, "application/json", "", false),
            (Asked::Message, 200, "text/plain", answer, true),
            (Asked::Message, 200, "text/html", "{ no JSON", false),
            (Asked::Message, 404, "application/json", other, false),
            (Asked::Message, 404, "text/plain", answer, true),
            (Asked::Message, 400, "application/json", r#"[1, {"jsonrpc":"1.0"}]"#, true),
            (Asked::Status, 200, "application/json", other, false),
            (Asked::Status, 200, "application/json", answer, true),
            (Asked::Nothing, 200, "application/json", answer, false),
        ] {
            assert_eq!(is_one(asked, status, kind, body), expected, "{asked:?} {status} {kind} {body}");
        }
    }

    #[test]
    fn only_what_has_an_answer_asks_for_a_message() {
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Asked::Message),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Asked::Message),
            ("{", Asked::Message),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Asked::Status),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Asked::Status),
        ] {
            assert_eq!(asked(Transport::Http, &Method::POST, body.as_bytes()), expected, "{body}");
            assert_eq!(asked(Transport::Sse, &Method::POST, body.as_bytes()), Asked::Status);
            assert_eq!(asked(Transport::Http, &Method::GET, body.as_bytes()), Asked::Nothing);
        }
    }

    #[test]
    fn values_are_encoded_as_in_the_table_of_the_specification() {
        assert_eq!(encode("us-west1"), "us-west1");
        assert_eq!(encode("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
        assert_eq!(encode(" padded "), "=?base64?IHBhZGRlZCA=?=");
        assert_eq!(encode("line1\nline2"), "=?base64?bGluZTEKbGluZTI=?=");
        assert_eq!(encode("=?base64?literal?="), "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
    }

    #[test]
    fn method_and_name_are_mirrored_only_from_what_can_be_read() {
        let mirror = |text: &str| {
            let headers = mirrored_headers(text.as_bytes());
            let value = |name| headers.get(name).map(|value| value.to_str().expect("ASCII").to_owned());
            (value(METHOD_HEADER), value(NAME_HEADER))
        };
        let request = |rest: &str| format!(r#"{{"jsonrpc":"2.0","id":1,{rest}}}"#);
        let some = |text: &str| Some(text.to_owned());
        let call = request(r#""method":"tools/call","params":{"name":"echo"}"#);
        assert_eq!(mirror(&call), (some("tools/call"), some("echo")));
        let read = request(r#""method":"resources/read","params":{"uri":"a://b"}"#);
        assert_eq!(mirror(&read), (some("resources/read"), some("a://b")));
        let poll = request(r#""method":"tasks/get","params":{"taskId":"t-1"}"#);
        assert_eq!(mirror(&poll), (some("tasks/get"), some("t-1")));
        let list = request(r#""method":"tools/list","params":{"name":"x"}"#);
        assert_eq!(mirror(&list), (some("tools/list"), None));
        let odd = request(r#""method":"tools/call","params":{"name":5}"#);
        assert_eq!(mirror(&odd), (some("tools/call"), None));
        assert_eq!(mirror("garbage"), (None, None));
    }
}
