//! Common parts of the HTTP transports: refusals, bodies, the `Accept` header, and responses.

use std::{fmt::Display, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

use super::{
    http_exchange::{HttpExchange, session_of_query},
    server_state::ServerState,
};
use crate::journal::{Answer, AnswerKind, Handling, Received, Refusal};
use rehearse_net::{Body, BodyError, Request, Response, read_live_body};
use rehearse_protocol::{Id, MAX_FRAME, RpcError, Transport, message, names::SESSION_HEADER};

/// How long a body may pause.
const STALLED: Duration = Duration::from_secs(30);

/// The head of an HTTP request, for the journal.
#[derive(Clone, Debug)]
pub(super) struct RequestHead {
    pub(super) transport: Transport,
    method: Method,
    uri: Uri,
    session: Option<HeaderValue>,
}

impl RequestHead {
    pub(super) fn new(transport: Transport, request: &Request) -> RequestHead {
        let session = request.headers().get(SESSION_HEADER).cloned();
        RequestHead { transport, method: request.method().clone(), uri: request.uri().clone(), session }
    }

    /// The id of the session that the client names.
    pub(super) fn session(&self) -> Option<&str> {
        let in_header = self.session.as_ref().and_then(|id| id.to_str().ok());
        in_header.or_else(|| session_of_query(self.uri.query()?).filter(|_| self.transport == Transport::Sse))
    }
}

/// Why a request is refused for a reason of the transport.
#[derive(Debug)]
pub(super) struct HttpRefusal {
    pub(super) status: StatusCode,
    pub(super) refusal: Refusal,
    pub(super) why: String,
}

impl HttpRefusal {
    pub(super) fn new(status: StatusCode, refusal: Refusal, why: impl Into<String>) -> HttpRefusal {
        HttpRefusal { status, refusal, why: why.into() }
    }
}

impl ServerState {
    /// Journals an HTTP request without a message that is answered.
    pub(super) fn note(&self, head: &RequestHead, session: Option<&str>) {
        self.journal(head, session, &[], Handling::Protocol, AnswerKind::Result);
    }

    fn journal(
        &self,
        head: &RequestHead,
        session: Option<&str>,
        request: &[u8],
        handling: Handling,
        outcome: AnswerKind,
    ) {
        let (at, transport) = (self.lifetime.started.elapsed(), head.transport);
        let http = request.is_empty().then(|| (&head.method, head.uri.path()));
        let received = Received { at, transport, session, request, http, faults: &[] };
        self.engine.journal().add(received, handling, None, Some(Answer::of(outcome)));
    }

    /// Refuses a request before its body is read, with an error response that has no id.
    pub(super) fn refuse(
        &self,
        head: &RequestHead,
        status: StatusCode,
        refusal: Refusal,
        why: impl Into<String>,
    ) -> Response {
        self.refuse_message(head, &Bytes::new(), None, HttpRefusal::new(status, refusal, why))
    }

    /// Refuses a message for a reason of the transport.
    pub(super) fn refuse_message(
        &self,
        head: &RequestHead,
        bytes: &Bytes,
        id: Option<&Id>,
        refused: HttpRefusal,
    ) -> Response {
        let HttpRefusal { status, refusal, why } = refused;
        let handling = Handling::refused(refusal, format!("{}: {why}", status.as_u16()));
        self.journal(head, head.session(), bytes, handling, AnswerKind::Error);
        json(status, message::error(id, &RpcError::new(message::INVALID_REQUEST, why)))
    }

    /// Refuses an HTTP method; `refusal` says whether correct clients try it.
    pub(super) fn not_allowed(&self, head: &RequestHead, refusal: Refusal, allowed: &'static str) -> Response {
        let why = format!("the method is not allowed here; allowed are {allowed}");
        let mut response = self.refuse(head, StatusCode::METHOD_NOT_ALLOWED, refusal, why);
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
        response
    }

    /// The body of a POST that must be JSON.
    ///
    /// # Errors
    /// The response that refuses it.
    pub(super) async fn read_json(&self, head: &RequestHead, request: Request) -> Result<(HeaderMap, Bytes), Response> {
        let (parts, body) = request.into_parts();
        if !self.lenient && !is_json(&parts.headers) {
            let why = "the Content-Type must be application/json";
            return Err(self.refuse(head, StatusCode::UNSUPPORTED_MEDIA_TYPE, Refusal::Header, why));
        }
        match read(body).await {
            Ok(bytes) => {
                if self.recorder.is_some()
                    && let Some(exchange) = parts.extensions.get::<HttpExchange>()
                {
                    exchange.record_body(&bytes);
                }
                Ok((parts.headers, bytes))
            }
            Err((status, why)) => {
                let mut response = self.refuse(head, status, Refusal::Malformed, why);
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                Err(response)
            }
        }
    }
}

impl ServerState {
    /// Records what a client sent without a valid token.
    pub(super) async fn record_refused(&self, request: Request) {
        if self.recorder.is_none() || request.method() != Method::POST {
            return;
        }
        let (parts, body) = request.into_parts();
        if let (Some(exchange), Ok(bytes)) = (parts.extensions.get::<HttpExchange>(), read(body).await)
            && !bytes.is_empty()
        {
            // A client may look for an authorization server where there is none.
            match ["/mcp", "/sse", "/messages"].contains(&parts.uri.path()) {
                true => exchange.record_body(&bytes),
                false => exchange.record_other_body(&bytes),
            }
        }
    }
}

/// The whole body, or a status and the reason why it cannot be read.
pub(super) async fn read<B>(body: B) -> Result<Bytes, (StatusCode, String)>
where
    B: hyper::body::Body<Data = Bytes, Error: Display>,
{
    read_live_body(body, MAX_FRAME, STALLED).await.map_err(|error| match error {
        BodyError::TooLong(limit) => (StatusCode::PAYLOAD_TOO_LARGE, format!("a message of more than {limit} bytes")),
        BodyError::Broken(error) => (StatusCode::BAD_REQUEST, format!("cannot read the body: {error}")),
        BodyError::Stalled(time) => {
            (StatusCode::REQUEST_TIMEOUT, format!("no data of the request body received for {} s", time.as_secs()))
        }
    })
}

/// Whether the content has exactly one media type, `application/json`, with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(Ok(value)), None) = (values.next().map(HeaderValue::to_str), values.next()) else { return false };
    let kind = value.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") && !value.contains(',')
}

/// Whether `Accept` lists the media type or a range that covers it. The most specific range decides, and one of quality
/// 0 covers nothing (RFC 9110, 12.5.1).
pub(super) fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    // The usual value needs no parsing.
    const USUAL: &str = "application/json, text/event-stream";
    let mut values = headers.get_all(header::ACCEPT).iter();
    if values.next().is_some_and(|value| value == USUAL) && values.next().is_none() {
        return USUAL.contains(wanted);
    }
    let kind = wanted.split('/').next().unwrap_or_default();
    let precision = |range: &str| match range.split_once('/')? {
        _ if range.eq_ignore_ascii_case(wanted) => Some(2),
        (prefix, "*") if prefix.eq_ignore_ascii_case(kind) => Some(1),
        ("*", "*") => Some(0),
        _ => None,
    };
    let is_refusal = |parameter: &str| {
        let (name, value) = parameter.split_once('=').unwrap_or_default();
        name.trim().eq_ignore_ascii_case("q") && value.trim().parse() == Ok(0.0)
    };
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(',')).filter_map(|range| {
        let mut parts = range.split(';');
        Some((precision(parts.next()?.trim())?, !parts.any(is_refusal)))
    });
    ranges.max().is_some_and(|(_, accepted)| accepted)
}

pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::Whole(None));
    *response.status_mut() = status;
    response
}

pub(super) fn json(status: StatusCode, frame: Bytes) -> Response {
    let mut response = Response::new(Body::whole(frame));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A stream of events; proxies are asked not to buffer it (2026-07-28, Streamable HTTP: Receiving Messages).
pub(super) fn event_stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::ready};

    use futures_util::{StreamExt, stream};
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        time::{Instant, timeout},
    };

    use super::*;
    use crate::{
        engine::Engine,
        journal::Journal,
        script::Script,
        serve::{ListenOptions, MockServer},
    };
    use rehearse_document::Source;

    async fn server() -> MockServer {
        let script = Script::parse(&Source::new("s", "server: { name: t }")).expect("a script");
        MockServer::start(Engine::new(script, 1, Journal::default()), ListenOptions::default()).await.expect("binds")
    }

    /// The response to the bytes of a request, until the server closes the connection.
    async fn exchange(server: &MockServer, request: &str) -> String {
        let mut stream = TcpStream::connect(server.address()).await.expect("connects");
        stream.write_all(request.as_bytes()).await.expect("writes");
        let mut response = String::new();
        timeout(Duration::from_secs(60), stream.read_to_string(&mut response)).await.expect("in time").expect("reads");
        response
    }

    fn status(response: &str) -> &str {
        response.split(' ').nth(1).expect("a status")
    }

    #[tokio::test]
    async fn a_post_is_of_one_media_type_and_accepts_what_it_does_not_refuse() {
        const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
        let server = server().await;
        let post = async |kind: &str, accept: &str| {
            let head = format!("Host: localhost\r\nContent-Length: {}\r\nConnection: close", PING.len());
            let request = format!("POST /mcp HTTP/1.1\r\n{head}\r\n{kind}\r\nAccept: {accept}\r\n\r\n{PING}");
            status(&exchange(&server, &request).await).to_owned()
        };
        let both = "application/json, text/event-stream";
        for kind in ["application/json", "Application/JSON; charset=utf-8", "application/json ;x=y"] {
            assert_eq!(post(&format!("Content-Type: {kind}"), both).await, "200", "{kind}");
        }
        for kind in ["application/json, text/plain", "text/plain, application/json", "*/*", "application/*", "", "json"]
        {
            assert_eq!(post(&format!("Content-Type: {kind}"), both).await, "415", "{kind}");
        }
        let twice = "Content-Type: application/json\r\nContent-Type: application/json";
        assert_eq!(post(twice, both).await, "415");
        for accept in ["*/*", "application/*, text/*;q=0.5", "application/json;q=0.001, text/event-stream, */*;q=0"] {
            assert_eq!(post("Content-Type: application/json", accept).await, "200", "{accept}");
        }
        for accept in ["application/json, text/event-stream;q=0", "*/*, application/json; Q=0.000", "*/*;q=0"] {
            assert_eq!(post("Content-Type: application/json", accept).await, "406", "{accept}");
        }
    }

    #[tokio::test]
    async fn a_request_without_one_host_is_malformed_and_one_of_another_host_forbidden() {
        let server = server().await;
        for (hosts, expected) in [
            ("", "400"),
            ("Host: localhost\r\nHost: localhost\r\n", "400"),
            ("Host: evil.example.com\r\n", "403"),
            ("Host: localhost\r\n", "404"),
        ] {
            let response = exchange(&server, &format!("GET / HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n")).await;
            assert_eq!(status(&response), expected, "{hosts}");
        }
    }

    #[tokio::test]
    async fn an_upgrade_to_another_version_of_websocket_is_answered_with_the_right_one() {
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8";
        let request = format!("GET /ws HTTP/1.1\r\nHost: localhost\r\n{upgrade}\r\nConnection: close\r\n\r\n");
        let response = exchange(&server().await, &request).await;
        assert!(status(&response) == "426" && response.contains("sec-websocket-version: 13\r\n"), "{response}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_be_slow_but_not_stall() {
        let frame = |byte: &'static [u8]| Ok::<_, Infallible>(Frame::data(Bytes::from_static(byte)));
        let slow = stream::iter([b"a", b"b", b"c"]).then(move |byte| async move {
            tokio::time::sleep(STALLED - Duration::from_secs(1)).await;
            frame(byte)
        });
        assert_eq!(read(StreamBody::new(slow)).await, Ok(Bytes::from_static(b"abc")));
        let start = Instant::now();
        let stalled = stream::once(ready(frame(b"a"))).chain(stream::pending());
        let (status, why) = read(StreamBody::new(stalled)).await.expect_err("a stalled body");
        assert_eq!((status, start.elapsed()), (StatusCode::REQUEST_TIMEOUT, STALLED), "{why}");
        let large = Full::new(Bytes::from(vec![b'x'; MAX_FRAME + 1]));
        assert_eq!(read(large).await.map_err(|(status, _)| status), Err(StatusCode::PAYLOAD_TOO_LARGE));
    }

    #[tokio::test]
    async fn a_request_without_a_token_is_challenged_on_every_transport() {
        let script = "auth: { tokens: [{ token: good, scopes: [a] }, { token: best, scopes: [a, b] }], scopes: [a] }\n\
            protocol: 2026-07-28\ntools: [{ name: t, scopes: [a, b], reply: x }]";
        let script = Script::parse(&Source::new("s", script)).unwrap_or_else(|error| panic!("{error}"));
        let engine = Engine::new(script, 1, Journal::default());
        let server = MockServer::start(engine, ListenOptions::default()).await.expect("binds");
        let close = "Host: localhost\r\nConnection: close";
        for (line, resource) in [
            ("POST /mcp", "/mcp"),
            ("GET /mcp", "/mcp"),
            ("DELETE /mcp", "/mcp"),
            ("GET /sse", "/sse"),
            ("POST /messages", "/sse"),
            ("GET /ws", "/ws"),
            ("GET /nowhere", "/mcp"),
        ] {
            let response = exchange(&server, &format!("{line} HTTP/1.1\r\n{close}\r\n\r\n")).await;
            assert_eq!(status(&response), "401", "{line}");
            let path = format!("/.well-known/oauth-protected-resource{resource}");
            let challenge = format!("Bearer scope=\"a\", resource_metadata=\"http://localhost{path}\"\r\n");
            assert!(response.contains(&format!("www-authenticate: {challenge}")), "{response}");
            let response = exchange(&server, &format!("GET {path} HTTP/1.1\r\n{close}\r\n\r\n")).await;
            assert!(response.contains(&format!("\"resource\":\"http://localhost{resource}\"")), "{response}");
        }
        let path = "/.well-known/oauth-protected-resource/mcp";
        let response = exchange(&server, &format!("GET {path} HTTP/1.1\r\n{close}\r\n\r\n")).await;
        assert!(response.contains(r#""authorization_servers":["http://localhost"]"#), "{response}");
        for path in ["oauth-protected-resource@evil.example/mcp", "oauth-authorization-server"] {
            let response = exchange(&server, &format!("GET /.well-known/{path} HTTP/1.1\r\n{close}\r\n\r\n")).await;
            assert!(status(&response) == "404" && response.contains("issues no tokens"), "{response}");
        }
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{meta}}}}}"#);
        let head = format!(
            "POST /mcp HTTP/1.1\r\n{close}\r\nContent-Type: application/json\r\nAccept: */*\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: t\r\nContent-Length: {}",
            body.len()
        );
        let call = async |token: &str| {
            exchange(&server, &format!("{head}\r\nAuthorization: Bearer {token}\r\n\r\n{body}")).await
        };
        assert_eq!(status(&call("best").await), "200");
        let response = call("good").await;
        assert_eq!(status(&response), "403");
        let challenge = "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"a b\", resource_metadata";
        assert!(response.contains(challenge) && response.contains(r#""id":1"#), "{response}");
    }
}
