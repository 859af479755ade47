//! Event streams that end early (2025-11-25, Streamable HTTP: Resumability and Redelivery).

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::{LEGACY, MODERN, call, connect};
use crate::{CallOptions, Failure, Target};
use rehearse_testing::{HELLO, HttpServer, Seen, events, greet_http, reply, result};

const RETRY: Duration = Duration::from_millis(120);

/// Answers a call with these events and hangs up, and a GET that names an event with the answer to the call.
async fn breaking(events_of_call: &'static str, status_of_get: u16) -> HttpServer {
    HttpServer::start(move |seen: Seen| async move {
        let message = seen.message();
        if seen.method == "GET" && seen.header("last-event-id").is_some() {
            // The id of the first request after the handshake, in both eras.
            let answer = format!("id: 9\ndata: {}\n\n", result(&serde_json::json!({ "id": 1 }), HELLO));
            return reply(status_of_get, "text/event-stream", answer);
        }
        match message["method"].as_str() {
            Some("tools/call") => reply(200, "text/event-stream", events_of_call),
            _ => greet_http(&seen).unwrap_or_else(|| reply(500, "text/plain", "")),
        }
    })
    .await
}

fn gets(server: &HttpServer) -> Vec<Option<String>> {
    let gets = server.seen().into_iter().filter(|seen| seen.method == "GET");
    gets.map(|seen| seen.header("last-event-id").map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_response_stream_that_ends_early_is_resumed_after_the_time_that_the_server_named() {
    let server = breaking("id: 7\nretry: 120\ndata:\n\n", 200).await;
    let session = connect(&Target::http(&server.url), LEGACY).await;
    let started = Instant::now();
    assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("a result").text(), "hello");
    assert!(started.elapsed() >= RETRY, "not before");
    session.close().await;
    assert_eq!(gets(&server), [None, Some("7".to_owned())], "the response ends it");
    let get = server.seen().into_iter().rfind(|seen| seen.method == "GET").expect("a GET");
    assert_eq!((get.header("mcp-session-id"), get.header("accept")), (Some("s-1"), Some("text/event-stream")));
    assert_eq!(get.header("mcp-protocol-version"), Some("2025-11-25"));
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_is_a_disconnect_at_once() {
    for (protocol, events, status, expected) in [
        (LEGACY, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n", 200, 1),
        (LEGACY, "id: 7\ndata:\n\nid:\ndata:\n\n", 200, 1),
        (LEGACY, "id: 7\ndata:\n\n", 404, 2),
        (MODERN, "id: 7\nretry: 1\ndata:\n\n", 200, 0),
    ] {
        let server = breaking(events, status).await;
        let session = connect(&Target::http(&server.url), protocol).await;
        let failure = call(&session, "echo", CallOptions::default()).await.expect_err("no answer");
        assert!(matches!(failure, Failure::Disconnected { .. }), "{failure}");
        session.close().await;
        assert_eq!(gets(&server).len(), expected, "{protocol} {events:?}");
    }
}

#[tokio::test]
async fn the_stream_of_the_session_is_open_before_the_first_request_and_opened_again_after_its_last_event() {
    let (opened, mut streams) = mpsc::unbounded_channel();
    let server = HttpServer::start(move |seen: Seen| {
        let opened = opened.clone();
        async move {
            if seen.method != "GET" {
                return greet_http(&seen).unwrap_or_else(|| reply(500, "text/plain", ""));
            }
            let (sender, response) = events();
            let _ = opened.send((seen, sender));
            response
        }
    })
    .await;
    let session = connect(&Target::http(&server.url), LEGACY).await;
    let (_, sender) = streams.try_recv().expect("a stream before the first request");
    let changed = |n: u8| {
        format!("id: e{n}\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{{\"n\":{n}}}}}\n\n")
    };
    sender.send(changed(1)).await.expect("a reader");
    session.recorder().wait_for(0, |frame| frame.bytes.ends_with(b"{\"n\":1}}")).await.expect("a notification");
    drop(sender);
    let (again, sender) = streams.recv().await.expect("another stream");
    assert_eq!(again.header("last-event-id"), Some("e1"));
    sender.send(changed(2)).await.expect("a reader");
    session.recorder().wait_for(0, |frame| frame.bytes.ends_with(b"{\"n\":2}}")).await.expect("a notification");
    session.close().await;
}
