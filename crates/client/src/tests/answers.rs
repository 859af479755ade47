//! The requests of a server, and the client's answers in each era.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{LEGACY, MODERN, call, target};
use crate::{
    Answer, AnswerScript, Answers, CallOptions, Failure, InputHandler, InputKind, ServerParams, Session, Target,
    ToolOutcome,
};
use rehearse_net::{LineReader, LineWriter};
use rehearse_protocol::{Protocol, RpcError};
use rehearse_testing::{HELLO, HttpServer, Seen, Server, events, greet, greet_http, in_memory, reply, result};

fn ada_answer() -> Value {
    json!({ "action": "accept", "content": { "name": "Ada", "z": 1, "a": 1.0 } })
}

fn script(elicitation: impl IntoIterator<Item = Answer>) -> Answers {
    let script = AnswerScript { elicitation: elicitation.into_iter().collect(), ..AnswerScript::default() };
    Answers::from_script(script, [])
}

async fn connect(target: &Target, protocol: Protocol, answers: Answers) -> Session {
    let config = ServerParams { answers, ..ServerParams::new("asking", target.clone()) };
    Session::connect(&config, protocol).await.expect("a session")
}

async fn call_tool(target: &Target, protocol: Protocol, answers: Answers) -> Result<ToolOutcome, Failure> {
    let session = connect(target, protocol, answers).await;
    let outcome = call(&session, "ask", CallOptions::default()).await;
    session.close().await;
    outcome
}

/// A legacy server that asks its client before it answers a call, and answers with what the client said.
fn asking() -> Server {
    let mut waiting = Value::Null;
    in_memory(move |message| match (message["method"].as_str(), message["id"].as_str()) {
        (Some("tools/call"), _) => {
            waiting = message.clone();
            vec![r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?"}}"#.to_owned()]
        }
        (None, Some("q")) => {
            let said = message.get("result").or(message.get("error")).cloned().unwrap_or_default();
            let content = json!({ "content": [{ "type": "text", "text": said.to_string() }] });
            vec![result(&waiting, &content.to_string())]
        }
        _ => greet(message),
    })
}

#[tokio::test]
async fn a_legacy_request_is_answered_verbatim_and_without_an_answer_with_an_error() {
    let server = asking();
    let answered = async |answers| call_tool(&target(&server), LEGACY, answers).await.expect("a result").text();
    assert_eq!(answered(script([Answer::Result(ada_answer())])).await, ada_answer().to_string());
    let refusal = RpcError::new(-32000, "busy").with_data(json!({ "for": 5 }));
    let expected = json!({ "code": -32000, "message": "busy", "data": { "for": 5 } }).to_string();
    assert_eq!(answered(script([Answer::Error(refusal)])).await, expected);
    let unanswered = answered(Answers::default()).await;
    assert!(unanswered.contains("-32601"), "{unanswered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn simultaneous_requests_of_a_legacy_server_are_answered_in_order() {
    const QUESTIONS: usize = 30;
    let (mut waiting, mut said) = (Value::Null, Vec::new());
    let server = in_memory(move |message| match (message["method"].as_str(), message["id"].as_u64()) {
        (Some("tools/call"), _) => {
            waiting = message.clone();
            let ask = |id| {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"message":"Who?"}}}}"#)
            };
            (0..QUESTIONS).map(ask).collect()
        }
        (None, Some(id)) => {
            said.push((id, message["result"]["content"]["number"].as_u64()));
            if said.len() < QUESTIONS {
                return Vec::new();
            }
            let is_right = said.drain(..).all(|(id, number)| number == Some(id));
            vec![result(&waiting, &json!({ "content": [], "isError": !is_right }).to_string())]
        }
        _ => greet(message),
    });
    let answer = |number| Answer::Result(json!({ "action": "accept", "content": { "number": number } }));
    for _ in 0..5 {
        let answers = script((0..QUESTIONS).map(answer));
        assert!(!call_tool(&target(&server), LEGACY, answers).await.expect("a result").is_error);
    }
}

#[tokio::test]
async fn the_capabilities_are_declared_at_the_handshake_or_with_every_request() {
    let (seen, mut messages) = mpsc::unbounded_channel::<Value>();
    let server = in_memory(move |message| {
        let _ = seen.send(message.clone());
        match message["method"].as_str() {
            Some("tools/call") => vec![result(message, HELLO)],
            _ => greet(message),
        }
    });
    let declared = json!({ "roots": {}, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} } });
    for (protocol, pointer) in
        [(LEGACY, "/params/capabilities"), (MODERN, "/params/_meta/io.modelcontextprotocol~1clientCapabilities")]
    {
        for (answers, expected) in [
            (Answers::default(), json!({})),
            (Answers::from_script(AnswerScript::default(), InputKind::ALL), declared.clone()),
        ] {
            call_tool(&target(&server), protocol, answers).await.expect("a result");
            let requests: Vec<_> = std::iter::from_fn(|| messages.try_recv().ok()).collect();
            let mut capabilities = requests.iter().filter_map(|message| message.pointer(pointer));
            assert!(capabilities.clone().count() >= 1 && capabilities.all(|it| *it == expected), "{requests:?}");
        }
    }
}

/// A modern server that gives these results to one call after the other, and what it was asked with.
fn rounds_server(results: &'static [&'static str]) -> (Server, Arc<Mutex<Vec<Value>>>) {
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let calls = seen.clone();
    let server = in_memory(move |message| match message["method"].as_str() {
        Some("tools/call") => {
            let mut calls = calls.lock().expect("no panic");
            calls.push(message.clone());
            results.get(calls.len() - 1).map(|text| vec![result(message, text)]).unwrap_or_default()
        }
        _ => greet(message),
    });
    (server, seen)
}

const WHO: &str = r#"{"resultType":"input_required","requestState":"s \u00e9/=\\","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?"}}}}"#;

#[tokio::test]
async fn each_round_repeats_the_request_with_its_own_answers_and_state() {
    const AGAIN: &str = r#"{"resultType":"input_required","inputRequests":{"other":{"method":"elicitation/create"}}}"#;
    const WAIT: &str = r#"{"resultType":"input_required","requestState":"wait"}"#;
    const DONE: &str = r#"{"resultType":"complete","content": [{"type":"text","text":"done"}] , "zz": 1.0}"#;
    let (server, seen) = rounds_server(&[WHO, AGAIN, WAIT, DONE]);
    let decline = json!({ "action": "decline" });
    let answers = script([Answer::Result(ada_answer()), Answer::Result(decline.clone())]);
    let outcome = call_tool(&target(&server), MODERN, answers).await.expect("a result");
    assert_eq!(outcome.raw.get(), DONE, "the last result byte for byte");
    let calls = seen.lock().expect("no panic").clone();
    let sent = |index: usize, member: &str| calls[index]["params"].get(member).cloned();
    let responses: Vec<_> = (0..4).map(|index| sent(index, "inputResponses")).collect();
    assert_eq!(responses, [None, Some(json!({ "who": ada_answer() })), Some(json!({ "other": decline })), None]);
    let states: Vec<_> = (0..4).map(|index| sent(index, "requestState")).collect();
    assert_eq!(states, [None, Some(json!("s é/=\\")), None, Some(json!("wait"))]);
    assert!(calls.iter().all(|call| call["params"]["arguments"] == json!({ "text": "hello" })));
    let mut ids: Vec<_> = calls.iter().map(|call| call["id"].to_string()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 4, "every round has an id of its own");
}

#[tokio::test]
async fn a_round_that_cannot_be_answered_ends_the_call_with_the_reason() {
    let error = || script([Answer::Error(RpcError::new(1, "m"))]);
    for (answers, first, kind) in [
        (Answers::default(), WHO, "unanswered"),
        (error(), WHO, "unanswered"),
        (error(), r#"{"resultType":"input_required"}"#, "malformed"),
        (error(), r#"{"resultType":"input_required","inputRequests":[]}"#, "malformed"),
        (error(), r#"{"resultType":"input_required","inputRequests":{"a":5}}"#, "malformed"),
        (error(), r#"{"resultType":"input_required","requestState":{}}"#, "malformed"),
        (error(), r#"{"resultType":"task","taskId":"t"}"#, "malformed"),
        (error(), r#"{"resultType":7}"#, "malformed"),
    ] {
        let (server, _) = rounds_server(Vec::leak(vec![first]));
        let failure = call_tool(&target(&server), MODERN, answers).await.expect_err(first);
        assert_eq!(failure.kind(), kind, "{first}: {failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn rounds_are_bounded_in_number_and_by_one_timeout() {
    let answers = || script([Answer::Result(ada_answer())]);
    let (server, seen) = rounds_server(&[WHO; 20]);
    let failure = call_tool(&target(&server), MODERN, answers()).await.expect_err("no end");
    assert!(matches!(failure, Failure::Rounds(10)), "{failure}");
    assert_eq!(seen.lock().expect("no panic").len(), 10);
    let (server, _) = rounds_server(&[r#"{"resultType":"input_required","requestState":"s"}"#, HELLO]);
    let started = tokio::time::Instant::now();
    call_tool(&target(&server), MODERN, Answers::default()).await.expect("nothing to answer");
    assert_eq!(started.elapsed().as_millis(), 100, "a pause where nothing is asked");
    let (server, _) = rounds_server(&[r#"{"resultType":"input_required","requestState":"s"}"#; 3]);
    let session = connect(&target(&server), MODERN, answers()).await;
    let started = tokio::time::Instant::now();
    let limit = Duration::from_millis(350);
    let failure =
        call(&session, "ask", CallOptions::with_timeout(limit)).await.expect_err("silence in the fourth round");
    assert!(matches!(&failure, Failure::Timeout(overdue) if overdue.limit == limit), "{failure}");
    assert!(started.elapsed() < Duration::from_millis(400));
    session.close().await;
}

#[tokio::test]
async fn resources_and_prompts_are_requested_in_rounds_as_well() {
    let server = in_memory(|message| match (message["method"].as_str(), message["params"].get("inputResponses")) {
        (Some("resources/read" | "prompts/get"), None) => vec![result(message, WHO)],
        (Some("resources/read" | "prompts/get"), Some(reply)) => {
            vec![result(message, &json!({ "contents": [], "messages": [], "reply": reply }).to_string())]
        }
        _ => greet(message),
    });
    let session = connect(&target(&server), MODERN, script([Answer::Result(ada_answer())])).await;
    let expected = json!({ "contents": [], "messages": [], "reply": { "who": ada_answer() } }).to_string();
    let read = session.read_resource("a://b", CallOptions::default()).await.expect("a resource");
    let prompt = session.get_prompt("p", None, CallOptions::default()).await.expect("a prompt");
    assert_eq!((read.get(), prompt.get()), (&*expected, &*expected));
    session.close().await;
}

#[tokio::test]
async fn over_legacy_http_a_question_may_come_on_either_stream() {
    for on_get in [false, true] {
        let (answers, said) = mpsc::channel::<Value>(1);
        let said = Arc::new(tokio::sync::Mutex::new(said));
        let get: Arc<tokio::sync::Mutex<Option<mpsc::Sender<String>>>> = Arc::default();
        let server = HttpServer::start(move |seen: Seen| {
            let (answers, said, get) = (answers.clone(), said.clone(), get.clone());
            async move {
                let message = seen.message();
                match (&*seen.method, message["method"].as_str()) {
                    ("GET", _) => {
                        let (sender, response) = events();
                        *get.lock().await = Some(sender);
                        return response;
                    }
                    ("POST", None) => {
                        assert_eq!(seen.header("mcp-session-id"), Some("s-1"));
                        let _ = answers.send(message).await;
                        return reply(202, "text/plain", "");
                    }
                    _ => {}
                }
                if let Some(greeting) = greet_http(&seen) {
                    return greeting;
                }
                let question = r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"Who?"}}"#;
                let question = format!("data: {question}\n\n");
                let (sender, response) = events();
                tokio::spawn(async move {
                    match on_get {
                        true => get.lock().await.as_ref().expect("a GET stream").send(question).await,
                        false => sender.send(question).await,
                    }
                    .expect("a reader");
                    let said = said.lock().await.recv().await.expect("an answer");
                    let content = json!({ "content": [{ "type": "text", "text": said["result"].to_string() }] });
                    let _ = sender.send(format!("data: {}\n\n", result(&message, &content.to_string()))).await;
                });
                response
            }
        })
        .await;
        let outcome = call_tool(&Target::http(&server.url), LEGACY, script([Answer::Result(ada_answer())]))
            .await
            .expect("a result");
        assert_eq!(outcome.text(), ada_answer().to_string());
    }
}

/// Asks `count` times in the course of a call, and answers it when it has the answers, which it reads meanwhile or
/// never. Returns a counter of the sent requests.
fn insistent(question: &'static str, count: usize, is_reading: bool) -> (Target, Arc<AtomicUsize>) {
    let (address, mut listener) = rehearse_net::pipe::listen();
    let asked = Arc::<AtomicUsize>::default();
    let counter = asked.clone();
    tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(listener.accept().await.expect("a client"));
        let (mut reader, mut writer) = (LineReader::new(reader), LineWriter::new(writer));
        let called = loop {
            let line = reader.next().await.expect("an open pipe").expect("a line").expect("a short one");
            let message: Value = serde_json::from_slice(&line).expect("JSON");
            if message["method"] == "tools/call" {
                break message;
            }
            for answer in greet(&message) {
                writer.write(answer.as_bytes()).await.expect("an open pipe");
            }
        };
        let asking = async {
            for id in 0..count {
                let question = question.replace("ID", &format!("\"{id}\""));
                writer.write(question.as_bytes()).await.expect("an open pipe");
                counter.fetch_add(1, Ordering::Relaxed);
            }
        };
        let reading = async {
            for _ in 0..count {
                match is_reading {
                    true => drop(reader.next().await),
                    false => std::future::pending().await,
                }
            }
        };
        tokio::join!(asking, reading);
        writer.write(result(&called, HELLO).as_bytes()).await.expect("an open pipe");
        std::future::pending::<()>().await;
    });
    (Target::Memory(address), asked)
}

const QUESTIONS: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":ID,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#,
];

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_and_does_not_read_is_not_read_from_without_end() {
    for question in QUESTIONS {
        let (target, asked) = insistent(question, 50_000, false);
        let session = connect(&target, LEGACY, Answers::default()).await;
        let limit = CallOptions::with_timeout(Duration::from_secs(1));
        let failure = call(&session, "ask", limit).await.expect_err("no answer");
        assert!(matches!(failure, Failure::Timeout(_)), "{failure}");
        session.close().await;
        // What the two pipes hold comes on top of what is open.
        assert!(asked.load(Ordering::Relaxed) < 5_000, "{asked:?}");
    }
}

#[tokio::test]
async fn a_server_that_asks_a_lot_and_reads_gets_all_its_answers() {
    for question in QUESTIONS {
        let (target, _) = insistent(question, 2_000, true);
        assert_eq!(call_tool(&target, LEGACY, Answers::default()).await.expect("a result").text(), "hello");
    }
}

#[tokio::test(start_paused = true)]
async fn questions_that_wait_for_an_answer_are_bounded_as_well() {
    let (target, asked) = insistent(QUESTIONS[1], 3_000, true);
    let thinking: InputHandler = Arc::new(|_| Box::pin(std::future::pending()));
    let session = connect(&target, LEGACY, Answers::with_handler(AnswerScript::default(), thinking)).await;
    let limit = CallOptions::with_timeout(Duration::from_secs(1));
    call(&session, "ask", limit).await.expect_err("no answer");
    session.close().await;
    assert!(asked.load(Ordering::Relaxed) < 2_000, "{asked:?}");
}
