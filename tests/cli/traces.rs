//! The traces of client and mock of the same session are equal.

use std::time::Duration;

use http::Method;
use mcp_rehearsal::{
    client::{
        CallOptions, ClientRecorder, ConnectOptions, Endpoint, Failure, ServerParams, Session, Target, Wire,
        WireRequest, pipe,
    },
    mock::{MockServer, MockServerBuilder, Tool},
    protocol::{
        Direction, EventKind, Protocol, Trace, Transport, Version,
        http::{mirrored_headers, request_headers},
        meta,
    },
};
use serde_json::{Map, Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

const DIRECTIONS: [Direction; 2] = [Direction::ClientToServer, Direction::ServerToClient];

fn builder() -> MockServerBuilder {
    MockServer::builder()
        .record_traces()
        .tool(Tool::new("echo").reply("{{ args.text }}"))
        .tool(Tool::new("slow").steps([json!({ "progress": { "progress": 1 } }), json!({ "reply": "done" })]))
}

/// The target of the client. A pipe is served in the background.
fn target(server: &MockServer, transport: Transport) -> Target {
    let Some(url) = server.url(transport) else {
        let (address, mut listener) = pipe::listen();
        let pipes = server.pipes();
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(listener.accept().await.expect("a client"));
            pipes.serve(transport, reader, writer, CancellationToken::new(), Duration::ZERO).await
        });
        return Target::Memory(address);
    };
    let endpoint = Endpoint { url, headers: Vec::new() };
    match transport {
        Transport::Http => Target::Http(endpoint),
        Transport::Sse => Target::Sse(endpoint),
        _ => Target::Ws(endpoint),
    }
}

async fn call(session: &Session, tool: &str) -> Result<(), Failure> {
    let arguments = Map::from_iter([("text".to_owned(), Json::from("hé\n"))]);
    let options = CallOptions { timeout: Some(Duration::from_secs(2)), ..CallOptions::default() };
    session.call_tool(tool, Some(arguments), options).await.map(|_| ())
}

/// The traces of a client that calls each tool, and of the mock when all of them are closed.
async fn traces(builder: MockServerBuilder, transport: Transport, version: Version) -> (Trace, Vec<Trace>) {
    let server = builder.start().await.expect("valid");
    let options = ConnectOptions { recorder: ClientRecorder::new().with_details(), ..ConnectOptions::default() };
    let params = ServerParams::new("s", target(&server, transport));
    let session = Session::connect_with(&params, Protocol::Exact(version), options).await;
    let session = session.unwrap_or_else(|error| panic!("{error}"));
    for tool in ["echo", "slow", "none"] {
        // A faulty answer is a failure here.
        let _ = call(&session, tool).await;
    }
    let recorder = session.recorder().clone();
    session.close().await;
    for _ in 0..500 {
        let traces = server.traces();
        if traces.iter().all(|trace| closing_reason(trace).is_some()) {
            return (recorder.trace(), traces);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("still open: {:#?}", server.traces());
}

fn closing_reason(trace: &Trace) -> Option<&str> {
    match &trace.events().next_back()?.kind {
        EventKind::Closed(closed) => Some(&closed.text),
        _ => None,
    }
}

fn frames<'a>(traces: impl IntoIterator<Item = &'a Trace>, direction: Direction) -> Vec<String> {
    let frames = traces.into_iter().flat_map(Trace::frames).filter(|frame| frame.direction == direction);
    frames.map(|frame| String::from_utf8_lossy(&frame.bytes).into_owned()).collect()
}

/// The HTTP heads: methods with targets, and statuses.
fn heads<'a>(traces: impl IntoIterator<Item = &'a Trace>) -> Vec<String> {
    let head = |kind: &EventKind| match kind {
        EventKind::HttpRequest { method, target, .. } => Some(format!("{method} {target}")),
        EventKind::HttpResponse { status, .. } => Some(status.as_u16().to_string()),
        _ => None,
    };
    let mut heads: Vec<_> = traces.into_iter().flat_map(Trace::events).filter_map(|event| head(&event.kind)).collect();
    // Concurrent requests have no order.
    heads.sort();
    heads
}

async fn check(transport: Transport, version: Version, closing: &str) {
    let (client, mock) = traces(builder(), transport, version).await;
    let cell = format!("{transport} {version}");
    for direction in DIRECTIONS {
        let expected = frames([&client], direction);
        assert!(expected.len() >= 4, "{cell}: {expected:?}");
        assert_eq!(frames(&mock, direction), expected, "{cell}");
    }
    assert_eq!(heads(&mock), heads([&client]), "{cell}");
    assert_eq!(heads(&mock).is_empty(), transport == Transport::Memory, "{cell}");
    for trace in &mock {
        let first = trace.events().next().map(|event| &event.kind);
        assert!(matches!(first, Some(EventKind::Opened(opened)) if *opened == transport), "{cell}: {first:?}");
        assert!(trace.events().map(|event| event.at).is_sorted(), "{cell}");
    }
    assert!(mock.iter().any(|trace| closing_reason(trace) == Some(closing)), "{cell}: {mock:#?}");
}

#[tokio::test]
async fn a_pipe_has_the_same_frames_on_both_sides() {
    for version in [Version::LATEST, Version::LATEST_LEGACY] {
        check(Transport::Memory, version, "the pipe was closed").await;
    }
}

#[tokio::test]
async fn a_websocket_has_the_same_frames_and_heads_on_both_sides() {
    for version in [Version::LATEST, Version::LATEST_LEGACY] {
        check(Transport::Ws, version, "the client closed the connection").await;
    }
}

#[tokio::test]
async fn a_session_of_http_and_sse_has_the_same_frames_and_heads_on_both_sides() {
    check(Transport::Sse, Version::V2024_11_05, "the connection was closed").await;
}

#[tokio::test]
async fn streamable_http_has_the_same_frames_and_heads_on_both_sides() {
    check(Transport::Http, Version::LATEST, "the connection was closed").await;
    check(Transport::Http, Version::LATEST_LEGACY, "the client ended the session").await;
}

#[tokio::test]
async fn a_legacy_session_over_http_is_one_trace_whatever_its_connections() {
    let (_, mock) = traces(builder(), Transport::Http, Version::LATEST_LEGACY).await;
    let is_session = |trace: &&Trace| closing_reason(trace) == Some("the client ended the session");
    let sessions: Vec<_> = mock.iter().filter(is_session).collect();
    assert_eq!(sessions.len(), 1);
    let headers = sessions[0].events().filter_map(|event| match &event.kind {
        EventKind::HttpRequest { headers, .. } => Some(headers.contains_key("mcp-session-id")),
        _ => None,
    });
    let headers: Vec<_> = headers.collect();
    assert!(!headers[0] && headers[1..].iter().all(|has_session| *has_session), "{headers:?}");
    assert_eq!(mock.iter().map(|trace| trace.frames().count()).sum::<usize>(), sessions[0].frames().count());
}

/// Waits for a sent frame of this length, and returns all sent frames.
async fn sent_with(server: &MockServer, length: usize) -> Vec<String> {
    for _ in 0..500 {
        let sent = frames(&server.traces(), Direction::ServerToClient);
        if sent.iter().any(|frame| frame.len() == length) {
            return sent;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no frame of {length} bytes: {:#?}", server.traces());
}

#[tokio::test]
async fn a_truncated_response_is_recorded_as_sent() {
    let faults = [
        json!({ "truncate": { "after": 20 } }),
        json!({ "close": { "after": 20 } }),
        json!([{ "drip": { "bytes": 7, "every": "1ms" } }, { "reset": { "after": 20 } }]),
    ];
    let cells = [
        (Transport::Memory, Version::LATEST),
        (Transport::Ws, Version::LATEST),
        (Transport::Sse, Version::V2024_11_05),
        (Transport::Http, Version::LATEST),
        (Transport::Http, Version::LATEST_LEGACY),
    ];
    for (fault, (transport, version)) in faults.iter().flat_map(|fault| cells.map(|cell| (fault, cell))) {
        for tool in ["echo", "slow"] {
            let cell = format!("{transport} {version} {tool} {fault}");
            let faults = json!([{ "on": { "tool": tool }, "do": fault }]);
            let server = builder().set("faults", faults).start().await.expect("valid");
            let params = ServerParams::new("s", target(&server, transport));
            let session = Session::connect(&params, Protocol::Exact(version)).await;
            let session = session.unwrap_or_else(|error| panic!("{error}"));
            // A legacy HTTP client resumes the stream and gets the response.
            let _ = call(&session, tool).await;
            let sent = sent_with(&server, 20).await;
            let cut: Vec<_> = sent.iter().filter(|frame| frame.len() == 20).collect();
            assert!(matches!(&cut[..], [cut] if cut.starts_with(r#"{"jsonrpc":"2.0","#)), "{cell}: {sent:?}");
        }
    }
}

#[tokio::test]
async fn garbage_has_the_same_bytes_on_both_sides() {
    let (garbage, noise) = (json!({ "garbage": {} }), json!({ "noise": { "text": "Debug: ", "glued": true } }));
    for (transport, version, fault) in [
        (Transport::Memory, Version::LATEST_LEGACY, &garbage),
        // A client does not get a message that is not UTF-8.
        (Transport::Ws, Version::LATEST, &noise),
        (Transport::Http, Version::LATEST, &garbage),
        (Transport::Http, Version::LATEST_LEGACY, &garbage),
    ] {
        let faults = json!([{ "on": { "tool": "echo" }, "do": fault }]);
        let (client, mock) = traces(builder().set("faults", faults), transport, version).await;
        let sent = frames(&mock, Direction::ServerToClient);
        assert!(sent.iter().any(|frame| serde_json::from_str::<Json>(frame).is_err()), "{sent:?}");
        assert_eq!(sent, frames([&client], Direction::ServerToClient), "{transport} {version}");
    }
}

#[tokio::test]
async fn a_body_is_a_message_on_both_sides_or_on_none() {
    let garbage = json!({ "garbage": {} });
    for (fault, is_message) in [
        (json!({ "status": { "code": 404, "json": { "error": "no such session" } } }), false),
        (json!({ "status": { "code": 200, "json": { "error": "no such session" } } }), true),
        (json!({ "status": { "code": 500, "text": "{ no JSON" } }), false),
        (json!({ "status": { "code": 429, "rpcError": { "code": -31000, "message": "Slow down" } } }), true),
        (json!({ "content_type": "text/html" }), true),
        (json!([garbage, { "content_type": "text/html" }]), false),
        (garbage, true),
    ] {
        let faults = json!([{ "on": { "tool": "echo" }, "do": fault }]);
        let server = builder().set("faults", faults).start().await.expect("valid");
        let params = ServerParams::new("s", target(&server, Transport::Http));
        let wire = Wire::open(&params, None, ClientRecorder::new()).await.expect("connects");
        let meta = meta::of_request(Version::LATEST, json!({ "name": "c", "version": "1" }), json!({}));
        let params = json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": meta });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let mut headers = request_headers(&Method::POST, Version::LATEST, "tools/call", None);
        headers.extend(mirrored_headers(call.as_bytes()));
        let request = WireRequest { method: Method::POST, headers, body: Some(call.into()), ..WireRequest::default() };
        let ended = wire.exchange(request).expect("HTTP").ended(Duration::from_secs(60)).await;
        assert!(ended, "{fault}");
        let sent = frames(&server.traces(), Direction::ServerToClient);
        assert_eq!(sent.len(), usize::from(is_message), "{fault}: {sent:?}");
        assert_eq!(frames([&wire.recorder().trace()], Direction::ServerToClient), sent, "{fault}");
        wire.close().await;
    }
}

#[tokio::test]
async fn malformed_frames_are_recorded_and_deleted_by_a_reset() {
    let mut server = builder().start().await.expect("valid");
    server.verify_on_drop(false);
    let mut client = server.connect();
    client.write_all(b"{\"no\nmore\n").await.expect("writes");
    while frames(&server.traces(), Direction::ServerToClient).len() < 2 {
        client.read_u8().await.expect("reads");
    }
    assert_eq!(frames(&server.traces(), Direction::ClientToServer), ["{\"no", "more"]);
    server.reset();
    assert_eq!(server.traces().iter().map(|trace| trace.events().count()).collect::<Vec<_>>(), [1], "still open");
    client.write_all(b"again\n").await.expect("writes");
    while frames(&server.traces(), Direction::ServerToClient).is_empty() {
        client.read_u8().await.expect("reads");
    }
    assert_eq!(frames(&server.traces(), Direction::ClientToServer), ["again"]);
}

#[tokio::test]
async fn nothing_is_recorded_by_default() {
    let server = MockServer::builder().tool(Tool::new("echo").reply("x")).start().await.expect("valid");
    let params = ServerParams::new("s", target(&server, Transport::Http));
    let session = Session::connect(&params, Protocol::Exact(Version::LATEST)).await.expect("connects");
    call(&session, "echo").await.expect("an answer");
    assert!(server.traces().is_empty());
}

#[tokio::test]
async fn only_the_latest_traces_are_kept() {
    let mut server = builder().start().await.expect("valid");
    server.verify_on_drop(false);
    for number in 0..260 {
        let mut client = server.connect();
        client.write_all(format!("{number}\n").as_bytes()).await.expect("writes");
        client.read_u8().await.expect("reads");
    }
    let traces = server.traces();
    assert_eq!((traces.len(), &frames(&traces, Direction::ClientToServer)[0][..]), (256, "4"));
}
