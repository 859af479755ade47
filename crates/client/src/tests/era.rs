//! What servers of older versions answer to `server/discover`: none of it keeps a client from `initialize`.

use std::time::Duration;

use serde_json::Value;

use super::{sent_methods, target};
use crate::{ConnectError, ServerParams, Session, Target, Timeouts};
use rehearse_protocol::{Protocol, Version};
use rehearse_testing::{HttpServer, INITIALIZED, Seen, error, events, greet, greet_http, in_memory, reply, result};

const JSON: &str = "application/json";

/// Messages that older servers answer, where `ID` is the id of the request.
const MESSAGES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no session"}}"#,
    r#"{"jsonrpc":"2.0","id":"0","error":{"code":-32602,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"error":"no"}"#,
    r#"{"jsonrpc":"1.0","id":ID,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":"0","result":{}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":[]}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"isError":true}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":{"supportedVersions":["2025-11-25"],"capabilities":{}}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}}"#,
    "garbage",
];

/// Other bodies, with their statuses and media types.
const BODIES: &[(u16, &str, &str)] = &[
    (200, JSON, ""),
    (200, "text/html", "<html>"),
    (200, "text/event-stream", ""),
    (200, "text/event-stream", ": nothing\n\n"),
    (200, "text/event-stream", "data: garbage\n\n"),
    (202, JSON, ""),
    (204, JSON, ""),
    (302, JSON, ""),
    (400, "text/plain", "no session"),
    (400, JSON, r#"{"error":"no session"}"#),
    (401, "text/plain", ""),
    (403, JSON, ""),
    (404, JSON, r#"{"detail":"Not Found"}"#),
    (405, "text/plain", "Method Not Allowed"),
    (500, "text/plain", "Internal Server Error"),
    (503, "text/html", "<html>"),
];

fn answer_to(message: &Value, text: &str) -> String {
    text.replace("ID", &message["id"].to_string())
}

async fn open(target: &Target) -> Result<Session, ConnectError> {
    let timeouts = Timeouts { connect: Duration::from_secs(10), ..Timeouts::default() };
    let params = ServerParams { timeouts, ..ServerParams::new("scripted", target.clone()) };
    Session::connect(&params, Protocol::Auto).await
}

async fn opens_by_initialize(target: &Target, case: &str) {
    let session = open(target).await.unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(session.info().version.known(), Some(Version::V2025_11_25), "{case}");
    let methods = ["server/discover", "initialize", "notifications/initialized"];
    // A connection that ends is followed by another one, which is the session's.
    let own = if case == "hang up" { &methods[1..] } else { &methods[..] };
    assert_eq!(sent_methods(&session), own, "{case}");
    session.close().await;
}

/// A server that answers `server/discover` so, and is of an older version otherwise.
async fn http(answer: impl Fn(&Value) -> (u16, &'static str, String) + Clone + Send + Sync + 'static) -> HttpServer {
    HttpServer::start(move |seen: Seen| {
        let answer = answer.clone();
        async move {
            match seen.message()["method"].as_str() {
                Some("server/discover") => {
                    let (status, media_type, body) = answer(&seen.message());
                    reply(status, media_type, body)
                }
                _ => greet_http(&seen).expect("a greeting"),
            }
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn every_message_of_an_older_server_leads_to_initialize_where_frames_go_both_ways() {
    for text in MESSAGES.iter().chain(&["", "hang up"]) {
        let server = in_memory(move |message| match message["method"].as_str() {
            Some("server/discover") if text.is_empty() => Vec::new(),
            Some("server/discover") => vec![answer_to(message, text)],
            _ => greet(message),
        });
        opens_by_initialize(&target(&server), text).await;
    }
}

#[tokio::test]
async fn every_message_of_an_older_server_leads_to_initialize_over_http() {
    for text in MESSAGES {
        for (status, media_type) in [(200, JSON), (400, JSON), (500, JSON), (200, "text/event-stream")] {
            let server = http(move |message| {
                let text = answer_to(message, text);
                (status, media_type, if media_type == JSON { text } else { format!("data: {text}\n\n") })
            })
            .await;
            opens_by_initialize(&Target::http(&server.url), &format!("{status} {media_type} {text}")).await;
        }
    }
}

#[tokio::test]
async fn every_other_response_of_an_older_server_leads_to_initialize_over_http() {
    for (status, media_type, body) in BODIES {
        let server = http(move |_| (*status, *media_type, (*body).to_owned())).await;
        opens_by_initialize(&Target::http(&server.url), &format!("{status} {media_type} {body}")).await;
    }
    // An answer without the end of its stream.
    let server = HttpServer::start(|seen: Seen| async move {
        if seen.message()["method"] != "server/discover" {
            return greet_http(&seen).expect("a greeting");
        }
        let (sender, response) = events();
        let _ = sender.send(format!("data: {}\n\n", answer_to(&seen.message(), MESSAGES[1]))).await;
        tokio::spawn(async move { sender.closed().await });
        response
    })
    .await;
    opens_by_initialize(&Target::http(&server.url), "an open stream").await;
}

#[tokio::test]
async fn what_only_a_newer_server_says_does_not_lead_to_initialize() {
    let newer =
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"no","data":{"supported":["2031-01-01"]}}}"#;
    for (text, expected) in [
        (newer, "2031-01-01"),
        (r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32021,"message":"capability"}}"#, "capability"),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"header"}}"#, "header"),
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"supportedVersions":["2031-01-01"],"capabilities":{}}}"#, "2031-01-01"),
    ] {
        let server = http(move |message| (400, JSON, answer_to(message, text))).await;
        let in_memory = in_memory(move |message| vec![answer_to(message, text)]);
        let is_result = text.contains("result");
        for target in [Target::http(&server.url), target(&in_memory)].iter().skip(usize::from(is_result)) {
            let error = open(target).await.expect_err("no session");
            assert!(!matches!(error, ConnectError::Both { .. }) && error.to_string().contains(expected), "{error}");
        }
    }
}

#[tokio::test]
async fn a_server_that_opens_no_session_is_quoted_twice() {
    let server = HttpServer::start(|seen: Seen| async move {
        match seen.message()["method"].as_str() {
            Some("server/discover") => reply(400, JSON, answer_to(&seen.message(), MESSAGES[1])),
            _ => reply(503, "text/plain", "later"),
        }
    })
    .await;
    let text = open(&Target::http(&server.url)).await.expect_err("no session").to_string();
    let expected = format!(
        "neither handshake opens a session. `server/discover`: error -32600: no session; `initialize`: {} answered with \
         HTTP 503: later",
        server.url
    );
    assert_eq!(text, expected);
    let gone = in_memory(|_| vec!["hang up".to_owned()]);
    let closed = open(&target(&gone)).await.expect_err("no session");
    assert!(matches!(closed, ConnectError::Closed { .. }), "the same twice is said once: {closed}");
    let refusing = in_memory(|message| match message["method"].as_str() {
        Some("server/discover") => vec!["hang up".to_owned()],
        Some("initialize") => vec![error(message, -32000)],
        _ => vec![result(message, INITIALIZED)],
    });
    let error = open(&target(&refusing)).await.expect_err("no session");
    assert!(matches!(error.last(), ConnectError::Refused { .. }) && error.to_string().contains("closed"), "{error}");
}
