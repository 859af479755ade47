use std::time::Duration;

use bytes::Bytes;
use wiremock::{Mock, MockServer, Request, ResponseTemplate, matchers::any};

use super::{LEGACY, MODERN, call, connect, peer, peer::header, peer::message};
use crate::{CallOptions, ConnectError, Endpoint, Failure, RawReply, ServerParams, Session, Target, Timeouts};
use rehearse_protocol::{Direction, Protocol, Version};
use rehearse_testing::{HELLO, HttpServer, INITIALIZED, Seen, error, events, greet_http, json, result};

/// Answers the handshake, and every call with `answer`.
async fn calling(answer: impl Fn(&Request) -> ResponseTemplate + Send + Sync + 'static) -> MockServer {
    peer::start(move |request| peer::greet(request).unwrap_or_else(|| answer(request))).await
}

async fn failing(protocol: Protocol, answer: impl Fn(&Request) -> ResponseTemplate + Send + Sync + 'static) -> Failure {
    let server = calling(answer).await;
    let session = connect(&Target::http(peer::url(&server)), protocol).await;
    let failure = call(&session, "echo", CallOptions::default()).await.expect_err("a failure");
    session.close().await;
    failure
}

fn hello(request: &Request) -> ResponseTemplate {
    peer::json(result(&message(request), HELLO))
}

#[tokio::test]
async fn a_legacy_session_carries_its_id_and_version_and_ends_with_delete() {
    let server = calling(hello).await;
    let endpoint = Endpoint {
        url: peer::url(&server),
        headers: vec![
            ("x-own".into(), "1".into()),
            ("Mcp-Session-Id".into(), "forged".into()),
            ("accept".into(), "x/y".into()),
        ],
    };
    let session = connect(&Target::Http(endpoint), LEGACY).await;
    assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("a result").text(), "hello");
    session.close().await;
    let seen = peer::requests(&server).await;
    let post = seen.iter().find(|request| message(request)["method"] == "tools/call").expect("a call");
    assert_eq!(
        (header(post, "mcp-session-id"), header(post, "mcp-protocol-version")),
        (Some("s-1"), Some("2025-11-25"))
    );
    assert_eq!((header(post, "x-own"), header(post, "mcp-name")), (Some("1"), None));
    assert_eq!(header(post, "accept"), Some("application/json, text/event-stream"));
    let last = seen.last().expect("a request");
    assert_eq!((last.method.as_str(), header(last, "mcp-session-id")), ("DELETE", Some("s-1")));
    assert_eq!((header(last, "accept"), header(last, "x-own")), (Some("*/*"), Some("1")));
}

#[tokio::test]
async fn a_modern_request_mirrors_its_body_and_leaves_nothing_to_delete() {
    let server = calling(hello).await;
    let session = connect(&Target::http(peer::url(&server)), MODERN).await;
    call(&session, "echo", CallOptions::default()).await.expect("a result");
    session.close().await;
    let seen = peer::requests(&server).await;
    let post = seen.last().expect("a call");
    let headers = ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"].map(|name| header(post, name));
    assert_eq!(headers, [Some("2026-07-28"), Some("tools/call"), Some("echo"), None]);
}

#[tokio::test]
async fn arguments_that_a_tool_wants_in_headers_are_put_there() {
    let server = calling(|request| {
        let message = message(request);
        let tool = r#"{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string","x-mcp-header":"Text"}}}}"#;
        match message["method"].as_str() {
            Some("tools/list") => peer::json(result(&message, &format!(r#"{{"resultType":"complete","tools":[{tool}],"ttlMs":0,"cacheScope":"private"}}"#))),
            _ => peer::json(result(&message, HELLO)),
        }
    })
    .await;
    let session = connect(&Target::http(peer::url(&server)), MODERN).await;
    session.list_tools(CallOptions::default()).await.expect("a listing");
    call(&session, "echo", CallOptions::default()).await.expect("a result");
    session.close().await;
    let requests = peer::requests(&server).await;
    assert_eq!(header(requests.last().expect("a call"), "mcp-param-text"), Some("hello"));
}

#[tokio::test]
async fn every_event_of_a_stream_is_recorded_as_it_came() {
    let server = HttpServer::start(|seen: Seen| async move {
        if let Some(greeting) = greet_http(&seen) {
            return greeting;
        }
        let (sender, response) = events();
        let answer = result(&seen.message(), r#"{"content": [] , "zz":1.0}"#);
        for event in [
            "id: 1\ndata:\n\n".to_owned(),
            "data: {\"jsonrpc\":\"2.0\",\n".to_owned(),
            "data: \"method\":\"notifications/vendor\"}\n\n: ping\n\n".to_owned(),
            format!("event: message\ndata: {answer}\n\n"),
        ] {
            let _ = sender.send(event).await;
        }
        response
    })
    .await;
    let session = connect(&Target::http(&server.url), MODERN).await;
    let from = session.recorder().end();
    let outcome = call(&session, "echo", CallOptions::default()).await.expect("a result");
    assert_eq!(outcome.raw.get(), r#"{"content": [] , "zz":1.0}"#);
    let frames = session.recorder().since(from + 1);
    assert_eq!(frames[0].bytes, "{\"jsonrpc\":\"2.0\",\n\"method\":\"notifications/vendor\"}");
    assert!(frames.iter().all(|frame| frame.direction == Direction::ServerToClient) && frames.len() == 2);
    session.close().await;
}

#[tokio::test]
async fn a_status_without_a_message_is_a_failure_with_status_and_body() {
    for status in [401, 403, 404, 429, 500, 503] {
        let failure = failing(LEGACY, move |_| peer::reply(status, "text/plain", "so it goes")).await;
        let Failure::Http { status: seen, body } = &failure else { panic!("{failure:?}") };
        assert_eq!((*seen, &**body), (status, "so it goes"));
    }
}

#[tokio::test]
async fn a_json_rpc_error_in_the_body_is_what_the_caller_sees_with_or_without_an_id() {
    for status in [200, 400, 404, 500] {
        let failure =
            failing(MODERN, move |request| peer::reply(status, "application/json", error(&message(request), -32020)))
                .await;
        assert!(matches!(&failure, Failure::Rpc(error) if error.code == -32020), "{status}: {failure}");
        let body = r#"{"jsonrpc":"2.0","error":{"code":-32020,"message":"m","data":[1]}}"#;
        let failure = failing(MODERN, move |_| peer::reply(status, "application/json", body)).await;
        assert!(matches!(&failure, Failure::Rpc(error) if error.data.is_some()), "{status}: {failure}");
    }
    let failure =
        failing(MODERN, |request| peer::reply(401, "application/json", error(&message(request), -32001))).await;
    assert_eq!(failure.kind(), "rpc", "the frame is there, whatever the status");
}

#[tokio::test]
async fn a_success_without_a_response_is_malformed_at_once() {
    for (media_type, body, expected) in [
        ("text/html", "<p>", "a body of type \"text/html\""),
        ("application/json", "{half", "not JSON: key"),
        ("application/json", r#"{"jsonrpc":"2.0","id":77,"result":{}}"#, "the id 77, which no request has"),
        ("application/json", r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, "not a response"),
    ] {
        let failure = failing(MODERN, move |_| peer::reply(200, media_type, body)).await;
        assert!(matches!(&failure, Failure::Malformed(what) if what.contains(expected)), "{body}: {failure:?}");
    }
}

#[tokio::test]
async fn a_stream_that_ends_before_the_answer_is_a_disconnect() {
    let failure = failing(MODERN, |_| peer::reply(200, "text/event-stream", ": nothing\n\ndata: {\"cut\n")).await;
    assert_eq!(failure.kind(), "disconnected", "{failure}");
}

#[tokio::test]
async fn an_expired_session_is_not_silently_replaced() {
    let server = calling(|_| peer::reply(404, "text/plain", "session not found")).await;
    let session = connect(&Target::http(peer::url(&server)), LEGACY).await;
    for _ in 0..2 {
        let failure = call(&session, "echo", CallOptions::default()).await.expect_err("expired");
        assert!(matches!(failure, Failure::Http { status: 404, .. }), "{failure}");
    }
    session.close().await;
    let handshakes =
        peer::requests(&server).await.iter().filter(|request| message(request)["method"] == "initialize").count();
    assert_eq!(handshakes, 1);
}

#[tokio::test]
async fn auto_falls_back_on_a_bare_client_error_and_exact_reports_it() {
    let server = peer::start(|request| match message(request)["method"].as_str() {
        Some("server/discover") => peer::reply(400, "text/plain", "Bad Request: no session"),
        _ => peer::greet(request).unwrap_or_else(|| hello(request)),
    })
    .await;
    let session = connect(&Target::http(peer::url(&server)), Protocol::Auto).await;
    assert_eq!(session.info().version.known(), Some(Version::V2025_11_25));
    assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("a result").text(), "hello");
    session.close().await;
    let config = ServerParams::new("s", Target::http(peer::url(&server)));
    let Err(error) = Session::connect(&config, MODERN).await else { panic!("a session") };
    assert!(matches!(&error, ConnectError::Http { status: 400, .. }), "{error:?}");
    let said = "answered with HTTP 400: Bad Request: no session; it may only support older versions: ";
    assert!(error.to_string().contains(said) && error.may_be_older(), "{error}");
}

#[tokio::test]
async fn a_refused_handshake_names_status_or_error() {
    let connect_error = async |server: &MockServer, protocol| {
        Session::connect(&ServerParams::new("s", Target::http(peer::url(server))), protocol)
            .await
            .expect_err("no session")
    };
    let server = peer::start(|_| peer::reply(503, "text/plain", "later")).await;
    for protocol in [LEGACY, MODERN, Protocol::Auto] {
        let error = connect_error(&server, protocol).await;
        assert!(matches!(error, ConnectError::Http { status: 503, .. }), "{protocol}: {error}");
    }
    let server = peer::start(|request| peer::reply(400, "application/json", error(&message(request), -32602))).await;
    let error = connect_error(&server, LEGACY).await;
    assert!(matches!(&error, ConnectError::Refused { error, .. } if error.code == -32602), "{error}");
    let gone = HttpServer::start(|_| async { json(String::new()) }).await;
    let target = Target::http(&gone.url);
    drop(gone);
    let refused = Session::connect(&ServerParams::new("s", target), LEGACY).await.expect_err("no session");
    assert!(matches!(refused, ConnectError::Unreachable { .. } | ConnectError::Malformed(_)), "{refused}");
}

#[tokio::test]
async fn a_redirect_is_followed_only_within_the_origin_and_with_its_method() {
    let other = peer::start(|request| peer::json(result(&message(request), INITIALIZED))).await;
    for (status, location, follows) in [(307, "/mcp", true), (302, "/mcp", false), (307, &*peer::url(&other), false)] {
        let server = peer::start(|request| peer::greet(request).expect("a handshake")).await;
        let redirect = ResponseTemplate::new(status).insert_header("location", location);
        Mock::given(any()).respond_with(redirect).up_to_n_times(1).with_priority(1).mount(&server).await;
        let connected = Session::connect(&ServerParams::new("s", Target::http(peer::url(&server))), LEGACY).await;
        match connected {
            Ok(session) if follows => drop(session.close().await),
            Err(ConnectError::Http { status: seen, .. }) if !follows => assert_eq!(seen, status),
            connected => panic!("{status} {:?}", connected.err()),
        }
    }
    assert!(peer::requests(&other).await.is_empty());
}

async fn raw(session: &Session, text: &'static str, headers: &[(&str, Option<&str>)]) -> RawReply {
    let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect();
    session.raw(Bytes::from_static(text.as_bytes()), &headers, Duration::from_secs(5)).await.expect("an answer")
}

#[tokio::test]
async fn a_raw_post_carries_the_headers_in_use_unless_they_are_changed() {
    let server = calling(|request| peer::reply(418, "application/json", error(&message(request), -32602))).await;
    let session = connect(&Target::http(peer::url(&server)), MODERN).await;
    let call = r#"{"jsonrpc":"2.0","id":"r","method":"tools/call","params":{"name":"échö"}}"#;
    let reply = raw(&session, call, &[]).await;
    assert_eq!(reply.status, Some(418));
    assert!(reply.answer.expect("an answer").bytes.starts_with(br#"{"jsonrpc":"2.0","id":"r","error""#));
    let changes = [("mcp-protocol-version", None), ("Mcp-Name", Some("liar")), ("content-type", Some("text/plain"))];
    raw(&session, call, &changes).await;
    let garbage = raw(&session, "{garbage", &[]).await;
    assert_eq!((garbage.answer.is_some(), garbage.frames.len()), (true, 1));
    session.close().await;
    let requests = peer::requests(&server).await;
    let header = |index: usize, name: &str| header(&requests[index], name).map(str::to_owned);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(header(1, "mcp-name"), some("=?base64?w6ljaMO2?="));
    assert_eq!((header(1, "mcp-protocol-version"), header(1, "mcp-method")), (some("2026-07-28"), some("tools/call")));
    assert_eq!((header(2, "mcp-protocol-version"), header(2, "mcp-name")), (None, some("liar")));
    assert_eq!(header(2, "content-type"), some("text/plain"));
    assert_eq!((header(3, "mcp-method"), requests[3].body.len()), (None, 8));
}

#[tokio::test]
async fn a_raw_post_reads_an_event_stream_up_to_its_answer() {
    let server = HttpServer::start(|seen: Seen| async move {
        if let Some(greeting) = greet_http(&seen) {
            return greeting;
        }
        let (sender, response) = events();
        let _ = sender.send("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n".to_owned()).await;
        let _ = sender.send(format!("data: {}\n\n", result(&seen.message(), "{}"))).await;
        tokio::spawn(async move { sender.closed().await });
        response
    })
    .await;
    let session = connect(&Target::http(&server.url), LEGACY).await;
    let reply = raw(&session, r#"{"jsonrpc":"2.0","id":41,"method":"x"}"#, &[]).await;
    assert_eq!((reply.status, reply.frames.len()), (Some(200), 2));
    assert!(reply.answer.is_some());
    let seen = server.seen();
    let post = seen.iter().find(|seen| seen.message()["id"] == 41).expect("the raw POST");
    assert_eq!((post.header("mcp-session-id"), post.header("mcp-method")), (Some("s-1"), None));
    session.close().await;
}

#[tokio::test]
async fn a_probe_without_a_response_leads_to_the_handshake() {
    let (nothing, head, half) = ("nothing", "text/event-stream", "application/json");
    for kind in [nothing, head, half] {
        let server = HttpServer::start(move |seen: Seen| async move {
            match seen.message()["method"].as_str() {
                Some("server/discover") if kind == nothing => std::future::pending().await,
                Some("server/discover") => {
                    let (sender, mut response) = events();
                    response.headers_mut().insert("content-type", kind.parse().expect("a header"));
                    tokio::spawn(async move {
                        let _ = sender.send(": wait\n\n".to_owned()).await;
                        sender.closed().await;
                    });
                    response
                }
                Some("tools/call") => json(result(&seen.message(), HELLO)),
                _ => greet_http(&seen).expect("a greeting"),
            }
        })
        .await;
        let timeouts = Timeouts { connect: Duration::from_secs(1), ..Timeouts::default() };
        let config = ServerParams { timeouts, ..ServerParams::new("scripted", Target::http(&server.url)) };
        let session = Session::connect(&config, Protocol::Auto).await.expect("a session");
        assert_eq!(session.info().version.known(), Some(Version::V2025_11_25), "{kind}");
        assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("a result").text(), "hello");
        session.close().await;
    }
}
