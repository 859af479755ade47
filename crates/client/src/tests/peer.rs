//! HTTP peers whose answers are a status, headers and a whole body.

use serde_json::Value;
use wiremock::{Mock, MockServer, Request, ResponseTemplate, matchers::any};

use rehearse_testing::{DISCOVERED, INITIALIZED, result};

/// A server on a port of its own that answers every request with `respond`.
pub(crate) async fn start(respond: impl Fn(&Request) -> ResponseTemplate + Send + Sync + 'static) -> MockServer {
    let server = MockServer::builder().start().await;
    Mock::given(any()).respond_with(respond).mount(&server).await;
    server
}

/// The URL of the MCP endpoint of a server.
pub(crate) fn url(server: &MockServer) -> String {
    format!("{}/mcp", server.uri())
}

/// The requests so far, in order.
pub(crate) async fn requests(server: &MockServer) -> Vec<Request> {
    server.received_requests().await.expect("requests are recorded")
}

pub(crate) fn message(request: &Request) -> Value {
    request.body_json().unwrap_or_default()
}

pub(crate) fn header<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    request.headers.get(name).and_then(|value| value.to_str().ok())
}

pub(crate) fn reply(status: u16, media_type: &str, body: impl Into<Vec<u8>>) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_raw(body.into(), media_type)
}

pub(crate) fn json(body: impl ToString) -> ResponseTemplate {
    reply(200, "application/json", body.to_string())
}

/// What a legacy server with sessions, or a modern one, answers to everything but a call.
pub(crate) fn greet(request: &Request) -> Option<ResponseTemplate> {
    let message = message(request);
    Some(match (request.method.as_str(), message["method"].as_str()) {
        ("POST", Some("initialize")) => json(result(&message, INITIALIZED)).insert_header("mcp-session-id", "s-1"),
        ("POST", Some("server/discover")) => json(result(&message, DISCOVERED)),
        ("POST", Some(method)) if method.starts_with("notifications/") => ResponseTemplate::new(202),
        ("POST", _) => return None,
        ("DELETE", _) => ResponseTemplate::new(204),
        _ => ResponseTemplate::new(405),
    })
}
