//! The cancellation of requests at the server (2026-07-28, Cancellation).

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{LEGACY, MODERN, call, connect, sent_methods, target};
use crate::{CallOptions, Failure, Target};
use rehearse_testing::{Body, HttpServer, Seen, events, greet, greet_http, in_memory};

fn soon() -> CallOptions {
    CallOptions::with_timeout(Duration::from_millis(50))
}

#[tokio::test(start_paused = true)]
async fn a_timeout_sends_notifications_cancelled_with_the_id_of_the_request() {
    for protocol in [LEGACY, MODERN] {
        let (seen, mut messages) = mpsc::unbounded_channel::<Value>();
        let server = in_memory(move |message| {
            let _ = seen.send(message.clone());
            greet(message)
        });
        let session = connect(&target(&server), protocol).await;
        let failure = call(&session, "slow", soon()).await.expect_err("no answer");
        assert!(matches!(&failure, Failure::Timeout(overdue) if overdue.limit.as_millis() == 50), "{failure}");
        let mut asked = Value::Null;
        let cancelled = loop {
            let message = messages.recv().await.expect("a cancellation");
            match message["method"].as_str() {
                Some("tools/call") => asked = message["id"].clone(),
                Some("notifications/cancelled") => break message["params"].clone(),
                _ => {}
            }
        };
        assert_eq!((&cancelled["requestId"], &cancelled["reason"]), (&asked, &Value::from("timeout")));
        session.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_can_cancel() {
    let token = CancellationToken::new();
    let trigger = token.clone();
    let server = in_memory(move |message| {
        if message["method"] == "tools/call" {
            trigger.cancel();
        }
        greet(message)
    });
    let session = connect(&target(&server), MODERN).await;
    let options = CallOptions { cancel: Some(token), ..CallOptions::default() };
    let failure = call(&session, "slow", options).await.expect_err("cancelled");
    assert_eq!(failure.kind(), "cancelled");
    assert_eq!(sent_methods(&session).last().map(String::as_str), Some("notifications/cancelled"));
    session.close().await;
}

/// A server that holds every call: before the head of its answer, or with an open event stream after a first event. It
/// reports the end of a call.
async fn holding(open_stream: bool) -> (HttpServer, mpsc::UnboundedReceiver<&'static str>) {
    struct OnDrop(mpsc::UnboundedSender<&'static str>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }
    let (dropped, drops) = mpsc::unbounded_channel();
    let dropped = Arc::new(dropped);
    let server = HttpServer::start(move |seen: Seen| {
        let dropped = dropped.clone();
        async move {
            if let Some(greeting) = greet_http(&seen) {
                return greeting;
            }
            let guard = OnDrop((*dropped).clone());
            if !open_stream {
                std::future::pending::<()>().await;
            }
            let (sender, response): (_, hyper::Response<Body>) = events();
            let _ = sender.send("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n".to_owned()).await;
            tokio::spawn(async move {
                let _guard = guard;
                sender.closed().await;
            });
            response
        }
    })
    .await;
    (server, drops)
}

fn posted(server: &HttpServer) -> Vec<String> {
    let seen = server.seen().into_iter().filter(|seen| seen.method == "POST");
    seen.filter_map(|seen| seen.message()["method"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn on_modern_http_a_timeout_closes_the_response_and_posts_nothing() {
    for open_stream in [false, true] {
        let (server, mut drops) = holding(open_stream).await;
        let session = connect(&Target::http(&server.url), MODERN).await;
        let failure = call(&session, "slow", soon()).await.expect_err("no answer");
        assert_eq!(failure.kind(), "timeout");
        assert_eq!(drops.recv().await, Some("dropped"), "the server sees the disconnect");
        session.close().await;
        assert_eq!(posted(&server), ["server/discover", "tools/call"]);
    }
}

#[tokio::test]
async fn on_legacy_http_a_timeout_posts_notifications_cancelled() {
    for open_stream in [false, true] {
        let (server, _drops) = holding(open_stream).await;
        let session = connect(&Target::http(&server.url), LEGACY).await;
        let failure = call(&session, "slow", soon()).await.expect_err("no answer");
        assert_eq!(failure.kind(), "timeout");
        let cancelled =
            |frame: &rehearse_protocol::Frame| frame.bytes.windows(23).any(|w| w == b"notifications/cancelled");
        session.recorder().wait_for(0, cancelled).await.expect("a cancellation");
        session.close().await;
        let posted = posted(&server);
        assert_eq!(posted[..3], ["initialize", "notifications/initialized", "tools/call"]);
        assert_eq!(posted[3..], ["notifications/cancelled"]);
    }
}
