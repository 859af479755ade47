use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{LEGACY, call, sent_methods};
use crate::{CallOptions, ConnectError, Endpoint, Failure, ServerParams, Session, Target};
use rehearse_protocol::Protocol;
use rehearse_testing::{HELLO, HttpServer, Seen, error, events, greet, reply, result};

/// A server of 2024-11-05 that names `endpoint` and answers calls with these events.
async fn server(endpoint: &'static str, answer: fn(&Value) -> Vec<String>) -> (HttpServer, Target) {
    let stream = Arc::new(Mutex::new(None));
    let server = HttpServer::start(move |seen: Seen| {
        let stream = stream.clone();
        async move {
            if seen.method == "GET" {
                let (sender, response) = events();
                let hello = format!("event: ping\ndata: x\n\nevent: endpoint\ndata: {endpoint}\n\n");
                let _ = sender.send(hello).await;
                *stream.lock().expect("no panic") = Some(sender);
                return response;
            }
            let message = seen.message();
            if message["params"]["name"] == "refused" {
                return reply(400, "text/plain", "not that one");
            }
            let answers = if message["method"] == "tools/call" { answer(&message) } else { greet(&message) };
            let sender = stream.lock().expect("no panic").clone().expect("an open stream");
            for answer in answers {
                if answer == "hang up" {
                    *stream.lock().expect("no panic") = None;
                } else {
                    let _ = sender.send(format!("event: message\ndata: {answer}\n\n")).await;
                }
            }
            reply(202, "text/plain", "Accepted")
        }
    })
    .await;
    let configured = [("x-own", "1"), ("content-type", "text/plain"), ("accept", "application/json")];
    let headers = configured.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let target = Target::Sse(Endpoint { url: server.url.clone(), headers });
    (server, target)
}

#[tokio::test]
async fn frames_go_up_by_post_and_come_down_the_stream() {
    let (server, target) = server("/message?s=1", |message| vec![result(message, HELLO)]).await;
    for protocol in [LEGACY, Protocol::Auto] {
        let session = super::connect(&target, protocol).await;
        assert_eq!(sent_methods(&session)[0], "initialize");
        assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("a result").text(), "hello");
        let failure = call(&session, "refused", CallOptions::default()).await.expect_err("a refusal");
        assert!(matches!(&failure, Failure::Http { status: 400, body } if body == "not that one"), "{failure}");
        let ping = br#"{"jsonrpc":"2.0","id":9,"method":"tools/call"}"#;
        let reply = session.raw((&ping[..]).into(), &[], std::time::Duration::from_secs(5)).await.expect("a reply");
        assert_eq!((reply.status, reply.frames.len()), (Some(202), 1));
        session.close().await;
    }
    assert!(server.seen().iter().all(|seen| seen.header("x-own") == Some("1")));
    // Headers of the protocol replace configured ones.
    let own = |seen: &Seen| match &*seen.method {
        "GET" => seen.header("accept") == Some("text/event-stream"),
        _ => seen.header("content-type") == Some("application/json"),
    };
    assert!(server.seen().iter().all(own), "{:?}", server.seen());
}

#[tokio::test]
async fn the_end_of_the_stream_is_a_disconnect() {
    let (_server, target) = server("/message", |_| vec!["hang up".to_owned()]).await;
    let session = super::connect(&target, LEGACY).await;
    let failure = call(&session, "echo", CallOptions::default()).await.expect_err("no stream");
    assert!(matches!(&failure, Failure::Disconnected { detail } if detail.contains("event stream")), "{failure}");
    session.close().await;
}

#[tokio::test]
async fn an_endpoint_elsewhere_or_nowhere_is_refused() {
    let connect_error =
        async |target: Target| Session::connect(&ServerParams::new("s", target), LEGACY).await.expect_err("no session");
    let (_server, target) = server("http://127.0.0.1:9/message", greet).await;
    let error = connect_error(target).await;
    assert!(matches!(&error, ConnectError::Malformed(what) if what.contains("another origin")), "{error}");
    let plain = HttpServer::start(|seen| async move { reply(200, "application/json", error_of(&seen)) }).await;
    let at = |server: &HttpServer| Target::Sse(Endpoint { url: server.url.clone(), headers: Vec::new() });
    let error = connect_error(at(&plain)).await;
    assert!(matches!(&error, ConnectError::Malformed(what) if what.contains("not an event stream")), "{error}");
    let absent = HttpServer::start(|_| async { reply(405, "text/plain", "POST only") }).await;
    let error = connect_error(at(&absent)).await;
    assert!(matches!(error, ConnectError::Http { status: 405, .. }), "{error}");
    let ended = HttpServer::start(|_| async { reply(200, "text/event-stream", "data: x\n\n") }).await;
    let error = connect_error(at(&ended)).await;
    assert!(matches!(&error, ConnectError::Malformed(what) if what.contains("before an `endpoint`")), "{error}");
}

fn error_of(seen: &Seen) -> String {
    error(&seen.message(), 1)
}
