use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{LEGACY, MODERN, arguments, call, connect, target};
use crate::{
    CallOptions, ClientRecorder, EventSink, Failure, PeerVersion, ServerParams, Session, Target, Timeouts,
    UnsolicitedPolicy, Wire,
};
use rehearse_protocol::{Event, List, Protocol, Version};
use rehearse_testing::{HELLO, error, greet, in_memory, result};

/// Answers the handshake, and each other request with these lines, in which `ID` stands for its id.
fn answering(lines: &'static [&'static str]) -> rehearse_testing::Server {
    in_memory(move |message| match greet(message) {
        greeting if greeting.is_empty() && message["id"].is_number() => {
            lines.iter().map(|line| line.replace("ID", &message["id"].to_string())).collect()
        }
        greeting => greeting,
    })
}

#[tokio::test]
async fn a_result_comes_back_byte_for_byte_in_both_eras() {
    let text = r#"{"content":[{"type":"text","text":"a","vendor":1.0}],"structuredContent":{"n": 1e2 },"_meta":{"k":[]},"zz":1,"isError":true}"#;
    let server = in_memory(move |message| match message["method"].as_str() {
        Some("tools/call") => vec![result(message, text)],
        _ => greet(message),
    });
    for protocol in [LEGACY, MODERN] {
        let session = connect(&target(&server), protocol).await;
        let outcome = call(&session, "echo", CallOptions::default()).await.expect("a result");
        assert_eq!(outcome.raw.get(), text);
        assert_eq!(outcome.structured_content.as_ref().expect("a structure").get(), r#"{"n": 1e2 }"#);
        assert_eq!((outcome.text(), outcome.is_error), ("a".to_owned(), true));
        session.close().await;
    }
}

#[tokio::test]
async fn the_request_carries_arguments_and_meta_unchanged() {
    let (seen, mut requests) = tokio::sync::mpsc::unbounded_channel();
    let server = in_memory(move |message| match message["method"].as_str() {
        Some("tools/call") => {
            let _ = seen.send(message["params"].clone());
            vec![result(message, HELLO)]
        }
        _ => greet(message),
    });
    let session = connect(&target(&server), MODERN).await;
    let meta = json!({ "vendor/x": 1 }).as_object().cloned();
    call(&session, "echo", CallOptions { meta, ..CallOptions::default() }).await.expect("a result");
    let params = requests.recv().await.expect("a request");
    assert_eq!((&params["name"], &params["arguments"]), (&json!("echo"), &json!({ "text": "hello" })));
    assert_eq!(params["_meta"]["vendor/x"], 1);
    assert_eq!(params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "rehearse");
    session.close().await;
}

#[tokio::test]
async fn a_json_rpc_error_is_a_failure_with_its_data() {
    let line = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"m","data":{"a": 1.0}}}"#;
    let server = answering(Vec::leak(vec![line]));
    let session = connect(&target(&server), LEGACY).await;
    let Err(Failure::Rpc(error)) = call(&session, "echo", CallOptions::default()).await else { panic!("an error") };
    assert_eq!((error.code, error.data.expect("data").get()), (-32602, r#"{"a": 1.0}"#));
    session.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_invalid_response_is_malformed_at_once() {
    let started = tokio::time::Instant::now();
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"m"}}"#, "more than one of"),
        (r#"{"jsonrpc":"1.0","id":ID,"result":{}}"#, "`jsonrpc` must be"),
        (r#"{"jsonrpc":"2.0","id":"ID","result":{"content":[]}}"#, "which no request has"),
        (r#"[{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}]"#, "a batch"),
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"content":7}}"#, "/content is not an array"),
    ] {
        let server = answering(Vec::leak(vec![line]));
        let session = connect(&target(&server), LEGACY).await;
        let failure = call(&session, "echo", CallOptions::default()).await.expect_err("malformed");
        assert!(matches!(&failure, Failure::Malformed(what) if what.contains(expected)), "{line}: {failure}");
        session.close().await;
    }
    assert!(started.elapsed() < Duration::from_secs(30), "no answer was waited for");
}

#[tokio::test]
async fn a_batch_is_an_answer_in_the_one_version_that_knows_batches() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("initialize") => {
            vec![result(
                message,
                r#"{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
            )]
        }
        Some("tools/call") => {
            let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
            vec![format!("[{log},{}]", result(message, HELLO))]
        }
        _ => Vec::new(),
    });
    let session = connect(&target(&server), Protocol::Exact(Version::V2025_03_26)).await;
    assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("a result").text(), "hello");
    session.close().await;
}

#[tokio::test]
async fn answers_out_of_order_reach_their_own_callers() {
    let mut held: Vec<Value> = Vec::new();
    let server = in_memory(move |message| match message["method"].as_str() {
        Some("tools/call") => {
            held.push(message.clone());
            if held.len() < 3 {
                return Vec::new();
            }
            let named = |call: &Value| {
                result(call, &json!({ "content": [{ "type": "text", "text": call["params"]["name"] }] }).to_string())
            };
            held.drain(..).rev().map(|call| named(&call)).collect()
        }
        _ => greet(message),
    });
    let session = connect(&target(&server), MODERN).await;
    let calls = ["a", "b", "c"].map(|tool| call(&session, tool, CallOptions::default()));
    let outcomes = futures_util::future::join_all(calls).await;
    let texts: Vec<_> = outcomes.into_iter().map(|outcome| outcome.expect("a result").text()).collect();
    assert_eq!(texts, ["a", "b", "c"]);
    session.close().await;
}

#[tokio::test]
async fn a_server_that_hangs_up_is_disconnected_not_late() {
    let server = answering(&["hang up"]);
    let session = connect(&target(&server), LEGACY).await;
    for _ in 0..2 {
        let failure = call(&session, "echo", CallOptions::default()).await.expect_err("a failure");
        assert!(
            matches!(&failure, Failure::Disconnected { detail } if detail.contains("closed the pipe")),
            "{failure}"
        );
    }
    session.close().await;
}

fn pages(next: impl Fn(&Value) -> Value + Send + 'static) -> rehearse_testing::Server {
    in_memory(move |message| match message["method"].as_str() {
        Some("tools/list") => {
            let cursor = &message["params"]["cursor"];
            let page = json!({ "tools": [{ "name": cursor }, { "name": 1.0 }], "nextCursor": next(cursor) });
            vec![result(message, &page.to_string())]
        }
        Some("resources/list") => vec![result(message, r#"{"tools":[]}"#)],
        _ => greet(message),
    })
}

#[tokio::test]
async fn a_listing_follows_the_cursor_to_its_end() {
    let server = pages(|cursor| match cursor.as_str() {
        None => json!("two"),
        Some("two") => json!("three"),
        _ => Value::Null,
    });
    let session = connect(&target(&server), LEGACY).await;
    let listing = session.list_tools(CallOptions::default()).await.expect("a listing");
    let items: Vec<_> = listing.items.iter().map(|item| item.get()).collect();
    assert_eq!(listing.pages, 3);
    assert_eq!(items[..2], [r#"{"name":null}"#, r#"{"name":1.0}"#]);
    assert_eq!(items[4], r#"{"name":"three"}"#);
    let (some, failure) = session.list_partial(List::Tools, 2, CallOptions::default()).await;
    assert_eq!((some.pages, &some.cursors[..]), (2, &["two".to_owned()][..]), "no more pages than asked for");
    assert!(failure.is_none(), "{failure:?}");
    let failure = session.list(List::Resources, CallOptions::default()).await.expect_err("no resources");
    assert!(matches!(&failure, Failure::Malformed(what) if what.contains("`resources` is missing")), "{failure}");
    session.close().await;
}

#[tokio::test]
async fn a_cursor_that_comes_twice_ends_the_listing() {
    let server = pages(|cursor| if cursor == "a" { json!("b") } else { json!("a") });
    let session = connect(&target(&server), LEGACY).await;
    let failure = session.list_tools(CallOptions::default()).await.expect_err("an endless listing");
    assert!(matches!(&failure, Failure::Malformed(what) if what.contains("\"a\" twice")), "{failure}");
    session.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_listing_has_one_deadline_for_all_its_pages() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("tools/list") if message["params"]["cursor"].is_null() => {
            vec![result(message, r#"{"tools":[],"nextCursor":"more"}"#)]
        }
        _ => greet(message),
    });
    let timeouts = Timeouts { list: Duration::from_secs(3), ..Timeouts::default() };
    let config = ServerParams { timeouts, ..ServerParams::new("s", target(&server)) };
    let session = Session::connect(&config, LEGACY).await.expect("a session");
    let started = tokio::time::Instant::now();
    let failure = session.list_tools(CallOptions::default()).await.expect_err("no second page");
    assert!(started.elapsed() < timeouts.call);
    assert!(matches!(&failure, Failure::Timeout(overdue) if overdue.limit == timeouts.list), "{failure}");
    session.close().await;
}

#[tokio::test]
async fn an_unknown_version_is_kept_as_the_server_said_it() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("initialize") => {
            vec![result(
                message,
                r#"{"protocolVersion":"1999-01-01","capabilities":{"zz":{}},"serverInfo":{"name":"s","version":"1"}}"#,
            )]
        }
        _ => Vec::new(),
    });
    let session = connect(&target(&server), LEGACY).await;
    assert_eq!(session.info().version, PeerVersion::Unknown("1999-01-01".into()));
    assert_eq!(session.info().capabilities.get(), r#"{"zz":{}}"#);
    session.close().await;
}

#[tokio::test(start_paused = true)]
async fn raw_bytes_get_their_own_answer_an_error_without_id_or_silence() {
    let server = in_memory(|message| match (message["method"].as_str(), message.is_null()) {
        (Some("odd"), _) => vec![result(&json!({ "id": 999 }), "{}"), error(message, 5)],
        (None, true) => vec![r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no JSON"}}"#.to_owned()],
        (Some("silent"), _) => Vec::new(),
        _ => greet(message),
    });
    let session = connect(&target(&server), LEGACY).await;
    let raw = async |text: &'static str| {
        session.raw(Bytes::from_static(text.as_bytes()), &[], Duration::from_secs(1)).await.expect("an open session")
    };
    session.set_unsolicited_policy(UnsolicitedPolicy::IgnoreAll);
    let reply = raw(r#"{"jsonrpc":"2.0","id":"x","method":"odd"}"#).await;
    assert_eq!((reply.status, reply.frames.len()), (None, 2));
    assert!(reply.answer.expect("an answer").bytes.ends_with(br#""id":"x","error":{"code":5,"message":"scripted"}}"#));
    session.set_unsolicited_policy(UnsolicitedPolicy::FailOnAny);
    let reply = raw(r#"{"jsonrpc":"2.0","id":"y","method":"odd"}"#).await;
    assert!(reply.answer.expect("an answer").bytes.starts_with(br#"{"jsonrpc":"2.0","id":999"#));
    session.set_unsolicited_policy(UnsolicitedPolicy::IgnoreAll);
    let reply = raw(r#"{"jsonrpc":"1.0","id":6,"method":"odd"}"#).await;
    assert!(reply.answer.expect("an answer").bytes.starts_with(br#"{"jsonrpc":"2.0","id":6"#));
    let reply = raw("{garbage").await;
    assert!(reply.answer.expect("an answer").bytes.starts_with(br#"{"jsonrpc":"2.0","error""#));
    let reply = raw(r#"{"jsonrpc":"2.0","method":"silent"}"#).await;
    assert!(reply.answer.is_none() && reply.frames.is_empty());
    assert_eq!(
        session.recorder().since(0).last().map(|frame| &frame.bytes[..]),
        Some(&br#"{"jsonrpc":"2.0","method":"silent"}"#[..])
    );
    session.close().await;
}

#[tokio::test]
async fn other_requests_return_their_results_as_they_came() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("resources/read" | "prompts/get" | "ping") => {
            let echo = json!({ "contents": [], "messages": [], "params": message["params"] });
            vec![result(message, &echo.to_string())]
        }
        _ => greet(message),
    });
    let session = connect(&target(&server), LEGACY).await;
    let read = session.read_resource("a://b", CallOptions::default()).await.expect("a resource");
    assert!(read.get().contains(r#""uri":"a://b""#), "{read}");
    let prompt = session.get_prompt("p", Some(arguments()), CallOptions::default()).await.expect("a prompt");
    assert!(prompt.get().contains(r#""arguments":{"text":"hello"}"#), "{prompt}");
    session.ping().await.expect("a sign of life");
    session.close().await;
}

#[tokio::test]
async fn a_dropped_session_hangs_up() {
    let (address, mut listener) = rehearse_net::pipe::listen();
    let (session, mut far) = tokio::join!(connect_to(Target::Memory(address)), async {
        let mut stream = listener.accept().await.expect("a client");
        let mut line = vec![0; 4096];
        let read = tokio::io::AsyncReadExt::read(&mut stream, &mut line).await.expect("a request");
        let message = serde_json::from_slice(&line[..read]).expect("JSON");
        let answer = format!("{}\n", greet(&message)[0]);
        tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await.expect("an open pipe");
        stream
    });
    drop(session);
    let mut rest = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut far, &mut rest).await.expect("the end");
}

async fn connect_to(target: Target) -> Session {
    connect(&target, LEGACY).await
}

#[tokio::test(start_paused = true)]
async fn an_invalid_message_answers_the_only_request_and_is_unsolicited_otherwise() {
    let (garbage, wrong) = ("so it goes", r#"{"jsonrpc":"2.0","id":77,"result":{}}"#);
    for (unsolicited, expected) in [(garbage, "so it goes"), (wrong, "the id 77")] {
        let server = in_memory(move |message| match message["params"]["name"].as_str() {
            Some("echo") => vec![unsolicited.to_owned(), result(message, HELLO)],
            Some("unsolicited") => vec![unsolicited.to_owned()],
            _ => greet(message),
        });
        let session = connect(&target(&server), MODERN).await;
        let failure = call(&session, "echo", CallOptions::default()).await.expect_err("taken for the answer");
        assert!(matches!(&failure, Failure::Malformed(what) if what.contains(expected)), "{failure}");
        assert_eq!(session.take_unsolicited(), [], "it was an answer");
        session.set_unsolicited_policy(UnsolicitedPolicy::IgnoreAll);
        assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("the proper answer").text(), "hello");
        let unsolicited: Vec<_> = session.take_unsolicited().iter().map(ToString::to_string).collect();
        assert!(unsolicited.len() == 1 && unsolicited[0].contains(expected), "{unsolicited:?}");
        session.set_unsolicited_policy(UnsolicitedPolicy::FailOnAny);
        let limit = || CallOptions::with_timeout(Duration::from_secs(1));
        let two = [call(&session, "unsolicited", limit()), call(&session, "unsolicited", limit())];
        for outcome in futures_util::future::join_all(two).await {
            assert_eq!(outcome.expect_err("the request is ambiguous").kind(), "timeout");
        }
        assert_eq!(session.take_unsolicited().len(), 2);
        session.close().await;
    }
}

#[tokio::test]
async fn an_error_without_an_id_answers_the_only_request() {
    let server = answering(&[r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}"#]);
    let session = connect(&target(&server), LEGACY).await;
    let failure = call(&session, "echo", CallOptions::default()).await.expect_err("an error");
    assert!(matches!(&failure, Failure::Rpc(error) if error.code == -32700), "{failure}");
    assert_eq!(session.take_unsolicited(), []);
    session.close().await;
}

#[tokio::test]
async fn the_answer_that_led_to_the_fallback_is_not_unsolicited_but_noise_is() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("server/discover") => {
            vec!["Loading".to_owned(), r#"{"error":"what?"}"#.to_owned(), error(message, -32601)]
        }
        Some("initialize") => [vec!["Listening".to_owned()], greet(message)].concat(),
        _ => Vec::new(),
    });
    let session = connect(&target(&server), Protocol::Auto).await;
    let unsolicited: Vec<_> = session.take_unsolicited().iter().map(ToString::to_string).collect();
    let noise = |text: &str| format!("not JSON: expected value at line 1 column 1: {text}");
    assert_eq!(unsolicited, ["Loading", "Listening"].map(noise));
    session.close().await;
}

/// Has no room after an event until the test gives some.
#[derive(Clone)]
struct SlowSink {
    asked: Arc<Semaphore>,
    room: Arc<Semaphore>,
}

impl EventSink for SlowSink {
    fn take(&self, _event: &Event) {}

    fn room(&self, _exchange: Option<u32>) -> BoxFuture<'_, ()> {
        self.asked.add_permits(1);
        Box::pin(async { self.room.acquire().await.expect("open").forget() })
    }
}

#[tokio::test]
async fn nothing_more_is_read_while_a_sink_has_no_room() {
    let (address, mut listener) = rehearse_net::pipe::listen();
    let sink = SlowSink { asked: Arc::new(Semaphore::new(0)), room: Arc::new(Semaphore::new(0)) };
    let recorder = ClientRecorder::new();
    recorder.set_sink(Box::new(sink.clone()));
    let params = ServerParams::new("scripted", Target::Memory(address));
    let (wire, far) = tokio::join!(Wire::open(&params, None, recorder.clone()), listener.accept());
    let (_wire, mut far) = (wire.expect("a pipe"), far.expect("a client"));
    tokio::io::AsyncWriteExt::write_all(&mut far, b"1\n2\n3\n").await.expect("an open pipe");
    for seen in 1..=3 {
        sink.asked.acquire().await.expect("open").forget();
        assert_eq!(recorder.trace().frames().count(), seen);
        sink.room.add_permits(1);
    }
}
