use std::time::Duration;

use serde_json::Value;

use super::{LEGACY, MODERN, call, connect, sent_methods, target};
use crate::{CallOptions, ConnectError, Endpoint, ServerParams, Session, Target, Timeouts};
use rehearse_protocol::{Protocol, Transport, Version};
use rehearse_testing::{DISCOVERED, HELLO, INITIALIZED, Server, error, greet, in_memory, result};

async fn refused(target: &Target, protocol: Protocol) -> ConnectError {
    match Session::connect(&ServerParams::new("scripted", target.clone()), protocol).await {
        Err(error) => error,
        Ok(_) => panic!("a session"),
    }
}

#[tokio::test]
async fn each_era_opens_in_its_own_way_and_asks_for_its_version() {
    let server = in_memory(greet);
    let legacy = connect(&target(&server), Protocol::Exact(Version::V2025_06_18)).await;
    legacy.recorder().wait_for(0, |frame| frame.bytes.ends_with(b"initialized\"}")).await;
    assert_eq!(sent_methods(&legacy), ["initialize", "notifications/initialized"]);
    let first = &legacy.recorder().since(0)[0].bytes;
    assert!(String::from_utf8_lossy(first).contains(r#""protocolVersion":"2025-06-18""#));
    assert_eq!(legacy.info().version.known(), Some(Version::V2025_11_25), "what the server chose");
    legacy.close().await;
    let modern = connect(&target(&server), MODERN).await;
    assert_eq!(sent_methods(&modern), ["server/discover"]);
    assert_eq!(modern.info().version.known(), Some(Version::V2026_07_28));
    modern.close().await;
}

#[tokio::test]
async fn auto_falls_back_to_the_handshake_on_any_error_that_is_not_modern() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("server/discover") => vec![error(message, -32601)],
        _ => greet(message),
    });
    let session = connect(&target(&server), Protocol::Auto).await;
    assert_eq!(session.info().version.known(), Some(Version::V2025_11_25));
    assert_eq!(sent_methods(&session)[..2], ["server/discover", "initialize"]);
    session.close().await;
    let error = refused(&target(&server), MODERN).await;
    assert!(matches!(&error, ConnectError::Refused { error, .. } if error.code == -32601), "{error}");
    assert!(error.may_be_older() && error.to_string().ends_with("use 2025-11-25 or auto"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn auto_falls_back_when_the_probe_gets_no_readable_answer() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("server/discover") => vec![r#"{"jsonrpc":"2.0","id":0,"error":"what?"}"#.to_owned()],
        _ => greet(message),
    });
    let session = connect(&target(&server), Protocol::Auto).await;
    assert_eq!(session.info().version.known(), Some(Version::V2025_11_25));
    session.close().await;
}

#[tokio::test]
async fn a_server_without_a_common_version_names_what_it_offers() {
    let server = in_memory(|message| vec![result(message, &DISCOVERED.replace("2026-07-28", "2031-01-01"))]);
    let error = refused(&target(&server), MODERN).await;
    let text = "the server does not speak 2026-07-28; it offers 2031-01-01";
    assert_eq!(error.to_string(), text);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_cannot_be_read_is_malformed_at_once() {
    for (line, expected) in [
        (r#"{"jsonrpc":"1.0","id":0,"result":{}}"#, "`jsonrpc` must be"),
        (r#"{"jsonrpc":"2.0","id":0,"result":{},"error":{"code":1,"message":"m"}}"#, "more than one of"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, "the id 7 instead of 0"),
        (
            r#"{"jsonrpc":"2.0","id":0,"result":{"capabilities":{}}}"#,
            "the result of `initialize`: missing field `protocolVersion`",
        ),
    ] {
        let started = tokio::time::Instant::now();
        let server = in_memory(move |_| vec![line.to_owned()]);
        let error = refused(&target(&server), LEGACY).await;
        assert!(matches!(&error, ConnectError::Malformed(what) if what.contains(expected)), "{line}: {error}");
        assert!(started.elapsed() < Duration::from_secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn silence_garbage_and_hanging_up_are_distinguished() {
    let silent = in_memory(|_| vec!["garbage".to_owned()]);
    let error = refused(&target(&silent), LEGACY).await;
    assert!(matches!(&error, ConnectError::Timeout { after, .. } if after.as_secs() == 30), "{error}");
    let gone = in_memory(|_| vec!["hang up".to_owned()]);
    let error = refused(&target(&gone), LEGACY).await;
    assert!(matches!(&error, ConnectError::Closed { detail, .. } if detail.contains("closed the pipe")), "{error}");
    let (address, listener) = rehearse_net::pipe::listen();
    drop(listener);
    let error = refused(&Target::Memory(address), LEGACY).await;
    assert!(matches!(&error, ConnectError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_combination_that_does_not_exist_is_not_tried() {
    let endpoint = Endpoint { url: "nonsense".into(), headers: Vec::new() };
    let error = refused(&Target::Sse(endpoint.clone()), MODERN).await;
    assert!(matches!(error, ConnectError::NotApplicable { transport: Transport::Sse, .. }), "{error}");
    assert_eq!(error.to_string(), "sse does not exist in protocol 2026-07-28");
    for protocol in [Protocol::Exact(Version::V2024_11_05), MODERN] {
        let error = refused(&Target::Http(endpoint.clone()), protocol).await;
        assert!(matches!(&error, ConnectError::Invalid(what) if what.contains("nonsense")), "{error}");
    }
}

#[tokio::test]
async fn the_last_answer_wins_over_earlier_noise() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("initialize") => vec!["log line".to_owned(), result(message, INITIALIZED)],
        _ => Vec::new(),
    });
    connect(&target(&server), LEGACY).await.close().await;
}

/// Answers `server/discover`, as a server that has only just started, when it is asked to `initialize`: first with `late`,
/// made of the probe, and then as `answer` says.
fn late(late: impl Fn(&Value) -> String + Send + 'static, answer: fn(&Value) -> String) -> Server {
    let mut probe = Value::Null;
    in_memory(move |message| match message["method"].as_str() {
        Some("server/discover") => {
            probe = message.clone();
            Vec::new()
        }
        Some("initialize") => vec![late(&probe), answer(message)],
        Some("tools/call") => vec![result(message, HELLO)],
        _ => Vec::new(),
    })
}

fn initialized(message: &Value) -> String {
    result(message, INITIALIZED)
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_an_abandoned_probe_is_not_the_answer_to_the_handshake() {
    let unaddressed = |_: &Value| r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"what?"}}"#.to_owned();
    for server in [
        late(|probe| error(probe, -32601), initialized),
        late(|probe| result(probe, DISCOVERED), initialized),
        late(|probe| result(probe, r#"{"odd":1}"#), initialized),
        late(unaddressed, initialized),
    ] {
        let session = connect(&target(&server), Protocol::Auto).await;
        assert_eq!(session.info().version.known(), Some(Version::V2025_11_25));
        assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("a result").text(), "hello");
        assert_eq!(
            sent_methods(&session),
            ["server/discover", "initialize", "notifications/initialized", "tools/call"]
        );
        session.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_starts_late_is_spoken_to_as_one() {
    let server = late(|probe| result(probe, DISCOVERED), |initialize| error(initialize, -32601));
    let session = connect(&target(&server), Protocol::Auto).await;
    assert_eq!(session.info().version.known(), Some(Version::V2026_07_28));
    assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("a result").text(), "hello");
    assert_eq!(sent_methods(&session), ["server/discover", "initialize", "tools/call"]);
    let frames = session.recorder().since(0);
    let call = frames.iter().find(|frame| frame.bytes.windows(10).any(|part| part == b"tools/call")).expect("a call");
    assert!(String::from_utf8_lossy(&call.bytes).contains(r#"/protocolVersion":"2026-07-28""#), "{call:?}");
    session.close().await;
    let unknown = DISCOVERED.replace("2026-07-28", "2031-01-01");
    let server = late(move |probe| result(probe, &unknown), |initialize| error(initialize, -32022));
    let error = refused(&target(&server), Protocol::Auto).await;
    assert!(matches!(error.last(), ConnectError::Refused { error, .. } if error.code == -32022), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_older_way_has_as_much_time_as_the_newest_if_there_is_little() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("initialize") => vec![result(message, INITIALIZED)],
        _ => Vec::new(),
    });
    for (connect, expected) in [(4, 2000), (30, 9900)] {
        let timeouts = Timeouts { connect: Duration::from_secs(connect), ..Timeouts::default() };
        let config = ServerParams { timeouts, ..ServerParams::new("scripted", target(&server)) };
        let started = tokio::time::Instant::now();
        let session = Session::connect(&config, Protocol::Auto).await.expect("a session");
        assert_eq!(started.elapsed().as_millis() / 100 * 100, expected);
        assert_eq!(session.info().version.known(), Some(Version::V2025_11_25));
        session.close().await;
    }
}
