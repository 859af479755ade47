//! The headers that mirror a request's body (2026-07-28, Streamable HTTP: Request Metadata; SEP-2663, Routing Headers).

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::header::{HeaderMap, HeaderValue};
use serde::Deserialize;

use rehearse_protocol::Message;

/// A header to set (`Some`) or to leave out (`None`) in one raw POST.
pub type HeaderChange = (String, Option<String>);

/// The `Mcp-Method` and `Mcp-Name` of a request or notification; nothing for other bytes.
pub fn mirrored(bytes: &[u8]) -> HeaderMap {
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
        headers.insert("mcp-method", value);
    }
    let named = params.and_then(|params| serde_json::from_str::<Named>(params.get()).ok());
    let name = match (&*method, named) {
        ("tools/call" | "prompts/get", Some(named)) => named.name,
        ("resources/read", Some(named)) => named.uri,
        ("tasks/get" | "tasks/update" | "tasks/cancel", Some(named)) => named.task,
        _ => None,
    };
    if let Some(value) = name.and_then(|name| HeaderValue::from_str(&encode(&name)).ok()) {
        headers.insert("mcp-name", value);
    }
    headers
}

/// A header value, in Base64 if the string cannot be a header value (2026-07-28, Streamable HTTP: Value Encoding).
fn encode(text: &str) -> String {
    let plain = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let sentinel = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && !sentinel && text.trim_matches([' ', '\t']) == text {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", BASE64_STANDARD.encode(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let headers = mirrored(text.as_bytes());
            let value = |name| headers.get(name).map(|value| value.to_str().expect("ASCII").to_owned());
            (value("mcp-method"), value("mcp-name"))
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
