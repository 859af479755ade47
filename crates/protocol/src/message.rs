//! JSON-RPC 2.0 messages as MCP uses them, borrowed from the bytes of a frame.
//!
//! Nothing inside `params`, `result` or `error.data` is interpreted here: they stay the text that came.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::Id;

/// JSON-RPC: the text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the JSON is not a request object.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the method does not exist, or its capability was not declared.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the parameters are wrong. MCP uses it for an unknown tool or prompt as well.
pub const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: the server failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// MCP until 2025-11-25: no such resource.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// MCP 2026-07-28: an HTTP header is missing, malformed, or differs from the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// MCP 2026-07-28: the request needs a capability that the client did not declare.
pub const MISSING_CAPABILITY: i64 = -32021;
/// MCP 2026-07-28: the server does not speak the version of the request.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// One message; its kind follows from the members that are present.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    Request(Request<'a>),
    Notification(Notification<'a>),
    Response(Response<'a>),
}

#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub id: Id,
    pub method: Cow<'a, str>,
    pub params: Option<&'a RawValue>,
}

#[derive(Debug, Clone)]
pub struct Notification<'a> {
    pub method: Cow<'a, str>,
    pub params: Option<&'a RawValue>,
}

/// An answer. `id` is absent only in an error about a message whose id could not be read.
#[derive(Debug, Clone)]
pub struct Response<'a> {
    pub id: Option<Id>,
    pub outcome: Result<&'a RawValue, RpcError>,
}

/// What a message is, without its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageHead {
    Request {
        id: Id,
        method: Box<str>,
    },
    Notification {
        method: Box<str>,
    },
    /// Without an id it can only be an error.
    Response {
        id: Option<Id>,
    },
}

/// The `error` member of a response.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
#[error("error {code}: {message}")]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl PartialEq for RpcError {
    fn eq(&self, other: &Self) -> bool {
        let data = |error: &Self| error.data.as_ref().map(|raw| raw.get().to_owned());
        self.code == other.code && self.message == other.message && data(self) == data(other)
    }
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        RpcError { code, message: message.into(), data: None }
    }

    #[must_use]
    pub fn with_data(mut self, data: impl Serialize) -> Self {
        self.data = serde_json::value::to_raw_value(&data).ok();
        self
    }
}

/// Why a frame is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    #[error("not JSON: {0}")]
    NotJson(String),
    #[error("a batch, which only version 2025-03-26 knows")]
    Batch,
    /// `is_response` is true for what can only be a response: its id is then one of the receiver's own.
    #[error("{what}")]
    Invalid { id: Option<Id>, is_response: bool, what: &'static str },
}

impl ParseError {
    /// JSON that says nothing of an id.
    fn invalid(what: &'static str) -> ParseError {
        ParseError::Invalid { id: None, is_response: false, what }
    }

    /// The JSON-RPC code that answers such a frame.
    pub fn code(&self) -> i64 {
        match self {
            ParseError::NotJson(_) => PARSE_ERROR,
            ParseError::Batch | ParseError::Invalid { .. } => INVALID_REQUEST,
        }
    }

    /// The id of the invalid message, if it could be read.
    pub fn id(&self) -> Option<&Id> {
        match self {
            ParseError::Invalid { id, .. } => id.as_ref(),
            _ => None,
        }
    }

    /// The id with which such a frame is answered. A broken response is answered without one, or its sender would take
    /// the id for one of its own requests.
    pub fn request_id(&self) -> Option<&Id> {
        match self {
            ParseError::Invalid { is_response: true, .. } => None,
            error => error.id(),
        }
    }
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// `null` is a present member, unlike what serde makes of an `Option`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Message<'a> {
    /// Reads one message.
    ///
    /// # Errors
    /// [`ParseError`] says whether the bytes are not JSON, a batch, or not a valid JSON-RPC message.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, ParseError> {
        let text = std::str::from_utf8(bytes).map_err(|error| ParseError::NotJson(error.to_string()))?;
        let members: Members<'a> = match serde_json::from_str(text) {
            Ok(members) if text.trim_ascii_start().starts_with('{') => members,
            parsed => return Err(classify(text, parsed.err())),
        };
        let id = members.id.map(|raw| Id::parse(raw).ok_or(raw));
        let is_response = members.method.is_none() && (members.result.is_some() || members.error.is_some());
        let invalid = |what| {
            let id = id.as_ref().and_then(|id| id.as_ref().ok()).cloned();
            Err(ParseError::Invalid { id, is_response, what })
        };
        if members.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
            return invalid("`jsonrpc` must be \"2.0\"");
        }
        if members.params.is_some() && !is_object(members.params) {
            return invalid("`params` must be an object");
        }
        let id = match id {
            Some(Ok(id)) => Some(id),
            Some(Err(raw)) if raw.get() == "null" && members.error.is_some() && members.method.is_none() => None,
            Some(Err(_)) => return invalid("`id` must be a string or an integer of 64 bits"),
            None => None,
        };
        let invalid = |id, what| Err(ParseError::Invalid { id, is_response, what });
        match (members.method, members.result, members.error) {
            (Some(method), None, None) => {
                let Ok(method) = serde_json::from_str::<Borrowable<'a>>(method.get()) else {
                    return invalid(id, "`method` must be a string");
                };
                let (method, params) = (method.0, members.params);
                Ok(match id {
                    Some(id) => Message::Request(Request { id, method, params }),
                    None => Message::Notification(Notification { method, params }),
                })
            }
            (None, Some(result), None) => match id {
                Some(_) => Ok(Message::Response(Response { id, outcome: Ok(result) })),
                None => invalid(id, "a result without an `id`"),
            },
            (None, None, Some(raw)) => match serde_json::from_str(raw.get()) {
                Ok(error) if is_object(Some(raw)) => Ok(Message::Response(Response { id, outcome: Err(error) })),
                _ => invalid(id, "`error` must have an integer `code` and a `message`"),
            },
            (None, None, None) => invalid(id, "neither `method` nor `result` nor `error`"),
            _ => invalid(id, "more than one of `method`, `result` and `error`"),
        }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match self {
            Message::Request(request) => Some(&request.method),
            Message::Notification(notification) => Some(&notification.method),
            Message::Response(_) => None,
        }
    }

    /// Kind, id and method, detached from the bytes.
    pub fn head(&self) -> MessageHead {
        match self {
            Message::Request(request) => {
                MessageHead::Request { id: request.id.clone(), method: request.method.as_ref().into() }
            }
            Message::Notification(notification) => {
                MessageHead::Notification { method: notification.method.as_ref().into() }
            }
            Message::Response(response) => MessageHead::Response { id: response.id.clone() },
        }
    }

    /// The id of a request or response.
    pub fn id(&self) -> Option<&Id> {
        match self {
            Message::Request(request) => Some(&request.id),
            Message::Response(response) => response.id.as_ref(),
            Message::Notification(_) => None,
        }
    }
}

/// Whether the text is a JSON object; serde's derived structs would take an array as well.
pub fn is_object(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get().starts_with('{'))
}

#[derive(Deserialize)]
struct Borrowable<'a>(#[serde(borrow)] Cow<'a, str>);

fn classify(text: &str, error: Option<serde_json::Error>) -> ParseError {
    match serde_json::from_str::<&RawValue>(text) {
        Err(error) => ParseError::NotJson(error.to_string()),
        Ok(raw) if raw.get().starts_with('[') => ParseError::Batch,
        Ok(raw) if raw.get().starts_with('{') && error.is_some() => {
            ParseError::invalid("a member occurs twice, or its name cannot be read")
        }
        Ok(_) => ParseError::invalid("a message must be a JSON object"),
    }
}

/// The longest batch that is taken apart.
const MAX_BATCH: usize = 1000;

/// Splits a batch (2025-03-26, Messages: Batching) into the bytes of its messages.
///
/// # Errors
/// [`ParseError::Invalid`] if the bytes are no JSON array of 1 to 1000 items.
pub fn split_batch(bytes: &Bytes) -> Result<Vec<Bytes>, ParseError> {
    match serde_json::from_slice::<Vec<&RawValue>>(bytes) {
        Ok(items) if items.len() > MAX_BATCH => Err(ParseError::invalid("a batch of too many messages")),
        Ok(items) if !items.is_empty() => {
            Ok(items.into_iter().map(|item| bytes.slice_ref(item.get().as_bytes())).collect())
        }
        _ => Err(ParseError::invalid("an empty batch")),
    }
}

/// A request; `params` is JSON text.
pub fn request(id: &Id, method: &str, params: Option<&str>) -> Bytes {
    let params = params.map(|params| format!(",\"params\":{params}")).unwrap_or_default();
    let method = serde_json::Value::from(method);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":{method}{params}}}", id.to_json()).into()
}

/// A notification without `params`.
pub fn bare_notification(method: &str) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}").into()
}

/// A notification; `params` is JSON text.
pub fn notification(method: &str, params: &str) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}").into()
}

/// A successful response; `result` is JSON text.
pub fn result(id: &Id, result: &str) -> Bytes {
    let mut text = String::with_capacity(result.len() + 56);
    text.push_str("{\"jsonrpc\":\"2.0\",\"id\":");
    match id {
        Id::Number(number) => fmt::Write::write_fmt(&mut text, format_args!("{number}")).unwrap_or_default(),
        Id::String(_) => text.push_str(&id.to_json()),
    }
    text.push_str(",\"result\":");
    text.push_str(result);
    text.push('}');
    text.into()
}

/// An error response. Without an id the member is left out (2025-11-25 and later; JSON-RPC itself would say `null`).
pub fn error(id: Option<&Id>, error: &RpcError) -> Bytes {
    #[derive(Serialize)]
    struct ErrorResponse<'a> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a Id>,
        error: &'a RpcError,
    }
    serde_json::to_vec(&ErrorResponse { jsonrpc: "2.0", id, error }).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn invalid(text: &str) -> (i64, Option<Id>) {
        let error = Message::parse(text.as_bytes()).expect_err(text);
        (error.code(), error.id().cloned())
    }

    #[test]
    fn an_id_may_be_any_integer_of_64_bits() {
        for number in ["9223372036854775808", "18446744073709551615", "-9223372036854775808"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"m"}}"#);
            let message = Message::parse(text.as_bytes()).expect("a request");
            let id = message.id().expect("an id");
            assert_eq!((id.to_json().as_str(), serde_json::json!(id).to_string().as_str()), (number, number));
            assert_eq!(result(id, "{}"), format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{}}}}"#));
        }
        for number in ["18446744073709551616", "-9223372036854775809", "1.0", "1e3"] {
            assert_eq!(invalid(&format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"m"}}"#)), (INVALID_REQUEST, None));
        }
    }

    #[test]
    fn the_three_kinds_are_distinguished_by_their_members() {
        let request = br#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"x":1.0}}"#;
        let Ok(Message::Request(request)) = Message::parse(request) else { panic!("a request") };
        assert_eq!((request.id, request.method.as_ref()), (Id::from("a"), "tools/list"));
        assert_eq!(request.params.map(RawValue::get), Some(r#"{"x":1.0}"#));
        let notification = br#"{"jsonrpc":"2.0","method":"n\u00e9"}"#;
        assert_eq!(Message::parse(notification).ok().as_ref().and_then(Message::method), Some("né"));
        let response = br#"{"jsonrpc":"2.0","id":7,"result":null}"#;
        let Ok(Message::Response(response)) = Message::parse(response) else { panic!("a response") };
        assert_eq!(response.outcome.map(RawValue::get), Ok("null"));
    }

    #[test]
    fn broken_messages_are_classified_and_keep_a_readable_id() {
        assert_eq!(invalid("nope"), (PARSE_ERROR, None));
        assert_eq!(invalid(r#"{"jsonrpc":"2.0","id":1,"method":"#), (PARSE_ERROR, None));
        assert_eq!(invalid(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#), (INVALID_REQUEST, None));
        assert_eq!(invalid(r#"{"id":1,"method":"ping"}"#), (INVALID_REQUEST, Some(1.into())));
        assert_eq!(invalid(r#"{"jsonrpc":"2.0","id":1,"method":5}"#), (INVALID_REQUEST, Some(1.into())));
        assert_eq!(invalid(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), (INVALID_REQUEST, None));
        assert_eq!(invalid(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), (INVALID_REQUEST, None));
        assert_eq!(invalid(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#), (INVALID_REQUEST, None));
        assert_eq!(invalid(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#), (INVALID_REQUEST, Some(1.into())));
        assert_eq!(invalid(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":3}"#), (INVALID_REQUEST, Some(1.into())));
        assert_eq!(
            invalid(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":["a"]}"#),
            (INVALID_REQUEST, Some(1.into()))
        );
        assert_eq!(invalid(r#"{"jsonrpc":"2.0","id":1,"error":[1,"m"]}"#), (INVALID_REQUEST, Some(1.into())));
        let not_utf8 = Message::parse(b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"x\":\"\x80\"}");
        assert_eq!(not_utf8.expect_err("no UTF-8").code(), PARSE_ERROR);
        assert_eq!(invalid("42"), (INVALID_REQUEST, None));
    }

    #[test]
    fn a_broken_response_is_answered_without_the_id_that_it_has() {
        for (text, answered) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, None),
            (r#"{"jsonrpc":"2.0","id":1,"error":[1,"m"]}"#, None),
            (r#"{"id":1,"result":{}}"#, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, Some(Id::Number(1))),
            (r#"{"jsonrpc":"2.0","id":1}"#, Some(Id::Number(1))),
        ] {
            let error = Message::parse(text.as_bytes()).expect_err(text);
            assert_eq!((error.id(), error.request_id()), (Some(&Id::Number(1)), answered.as_ref()), "{text}");
        }
    }

    #[test]
    fn an_error_without_a_readable_id_may_say_null() {
        let text = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#;
        let Ok(Message::Response(response)) = Message::parse(text) else { panic!("a response") };
        assert_eq!(response.id, None);
        assert_eq!(response.outcome.expect_err("an error").code, PARSE_ERROR);
    }

    #[test]
    fn a_batch_is_split_into_slices_of_the_same_bytes() {
        let batch = Bytes::from_static(br#" [ {"a": 1.0} , 2 ] "#);
        let parts = split_batch(&batch).expect("a batch");
        assert_eq!(parts, [&br#"{"a": 1.0}"#[..], b"2"]);
        assert!(split_batch(&Bytes::from_static(b"[]")).is_err());
    }

    const FRAMES: [&str; 6] = [
        r#"{"jsonrpc":"2.0","id":"a\u00e9\"","method":"tools/call","params":{"name":"n","_meta":{"progressToken":1.5e3}}}"#,
        r#"{"jsonrpc":"2.0","id":-7,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"é"}}"#,
        r#"{"jsonrpc":"2.0","id":9007199254740993,"result":{"content":[{"type":"text","text":"[{}]"}]}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m","data":[null,true]}}"#,
        r#" [ {"jsonrpc":"2.0","id":1,"method":"ping"} , {"jsonrpc":"2.0","method":"n","params":[]} ] "#,
    ];

    /// A frame in which pieces of it or of others, or single bytes, stand in place of others.
    fn mutated() -> impl Strategy<Value = Vec<u8>> {
        let frame = || proptest::sample::select(FRAMES.map(str::as_bytes).to_vec());
        let place = any::<proptest::sample::Index>;
        let piece = (frame(), place(), 0..16_usize).prop_map(|(frame, start, length)| {
            let piece = &frame[start.index(frame.len())..];
            piece[..length.min(piece.len())].to_vec()
        });
        let byte = prop_oneof![any::<u8>(), proptest::sample::select(b"{}[],:\"\\0eu-. \n\0\xff".to_vec())];
        let new = prop_oneof![piece, byte.prop_map(|byte| vec![byte]), Just(Vec::new())];
        let mutations = proptest::collection::vec((place(), 0..8_usize, new), 1..5);
        (frame(), mutations).prop_map(|(frame, mutations)| {
            mutations.into_iter().fold(frame.to_vec(), |mut bytes, (start, length, new)| {
                let start = start.index(bytes.len() + 1);
                bytes.splice(start..(start + length).min(bytes.len()), new);
                bytes
            })
        })
    }

    proptest! {
        #[test]
        fn no_damage_to_a_message_makes_the_parser_panic(bytes in mutated()) {
            let bytes = Bytes::from(bytes);
            match Message::parse(&bytes) {
                Ok(_) => prop_assert!(serde_json::from_slice::<&RawValue>(&bytes).is_ok(), "accepted what is not JSON"),
                Err(error) => prop_assert!([PARSE_ERROR, INVALID_REQUEST].contains(&error.code())),
            }
            for part in split_batch(&bytes).unwrap_or_default() {
                let _ = Message::parse(&part);
            }
        }

        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::parse(&bytes);
        }

        #[test]
        fn written_messages_read_back_unchanged(number in any::<i64>(), text in ".*", method in "[a-z/]{1,20}") {
            for id in [Id::from(number), Id::String(text.clone().into())] {
                let params = serde_json::json!({ "t": text }).to_string();
                let bytes = request(&id, &method, Some(&params));
                let Ok(Message::Request(read)) = Message::parse(&bytes) else { panic!("a request") };
                prop_assert_eq!(&read.id, &id);
                prop_assert_eq!(read.params.map(RawValue::get), Some(params.as_str()));
                let bytes = result(&id, &params);
                let Ok(Message::Response(read)) = Message::parse(&bytes) else { panic!("a response") };
                prop_assert_eq!(read.id.as_ref(), Some(&id));
                prop_assert_eq!(read.outcome.map(RawValue::get), Ok(params.as_str()));
            }
        }
    }
}
