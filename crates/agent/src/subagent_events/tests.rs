use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use rehearse_llm::model::{Block, ToolCall, ToolResult};

use super::*;
use crate::{Event, EventSink, RunLabel, RunStatistics};

fn label() -> RunLabel {
    RunLabel { agent: "coder".into(), run_id: "abcd1234".into() }
}

fn call() -> ToolCall {
    ToolCall { id: "call_1".into(), name: "read".into(), arguments: r#"{"path":"a"}"#.into() }
}

fn record(event: &Event<'_>) -> EventRecord {
    EventRecord::new(&label(), event, SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_597_200_123)).expect("sent")
}

#[test]
fn an_event_has_the_fields_of_cpe() {
    let call = call();
    let json = serde_json::to_string(&record(&Event::ToolCall { call: &call, timeout: None })).expect("JSON");
    let expected = r#"{"subagentName":"coder","subagentRunId":"abcd1234","timestamp":"2026-11-25T09:00:00.123Z","type":"tool_call","toolName":"read","toolCallId":"call_1","payload":"{\"path\":\"a\"}"}"#;
    assert_eq!(json, expected);
    let other = r#"{"subagentName":"coder","subagentRunID":"abcd1234","timestamp":1795597200123,"type":"tool_call","toolName":"read","toolCallID":"call_1","payload":"{\"path\":\"a\"}"}"#;
    assert_eq!(
        serde_json::from_str::<EventRecord>(other).expect("the other spelling"),
        serde_json::from_str(expected).expect("JSON")
    );
    assert_eq!(EventRecord::new(&label(), &Event::Response("x"), SystemTime::now()), None);
}

#[test]
fn people_see_calls_results_and_thoughts() {
    let call = call();
    let called = record(&Event::ToolCall { call: &call, timeout: None });
    assert_eq!(called.text(Form::Concise, true).expect("text"), "#### coder [abcd1234] → read\n");
    assert_eq!(
        called.text(Form::Verbose, false).expect("text"),
        "#### coder [tool call] read\n```json\n{\n  \"path\": \"a\"\n}\n```\n"
    );
    let result =
        ToolResult { call_id: "call_1".into(), tool: "read".into(), content: vec![Block::text("x")], is_error: false };
    let result = record(&Event::ToolResult(&result));
    assert_eq!(result.text(Form::Concise, true).expect("text"), "#### coder [abcd1234] ✓ read\n");
    assert_eq!(
        result.text(Form::Verbose, true).expect("text"),
        "#### coder [abcd1234] Tool \"read\" result:\n```shell\nx\n```\n"
    );
    let thought = record(&Event::Thought { text: "a\nb\nc", is_encrypted: false });
    assert_eq!(thought.text(Form::Concise, false).expect("text"), "#### coder thought trace\na\nb\n...\n");
    let code = ToolCall { name: "execute_go_code".into(), ..call };
    let code = record(&Event::ToolCall { call: &code, timeout: None });
    assert!(
        code.text(Form::Verbose, false).expect("text").starts_with("#### coder [tool call] (timeout: 0s)\n```go\n")
    );
    let code = ToolCall { id: "call_2".into(), name: "execute_code".into(), arguments: r#"{"code":"1"}"#.into() };
    let code = record(&Event::ToolCall { call: &code, timeout: None });
    assert!(code.text(Form::Verbose, false).expect("text").contains("\n```js\n"));
    assert_eq!(record(&Event::Started).text(Form::Verbose, true), None);
}

#[tokio::test]
async fn events_arrive_in_order_and_one_that_does_not_is_an_error() {
    let seen = Arc::<Mutex<Vec<EventRecord>>>::default();
    let log = seen.clone();
    let listener = EventListener::start(move |record| log.lock().push(record)).await.expect("listens");
    let emitter = EventEmitter::new(listener.url()).expect("a URL");
    emitter.emit(&label(), Event::Started).await.expect("arrives");
    emitter.emit(&label(), Event::Response("not sent")).await.expect("nothing to send");
    emitter
        .emit(&label(), Event::Ended { error: Some("no"), statistics: RunStatistics::default() })
        .await
        .expect("arrives");
    let kinds: Vec<_> = seen.lock().iter().map(|record| (record.kind, record.payload.clone())).collect();
    assert_eq!(kinds, [(EventKind::SubagentStart, String::new()), (EventKind::SubagentEnd, "no".to_owned())]);
    let elsewhere = EventEmitter::new(&format!("{}/other", listener.url())).expect("a URL");
    let error = elsewhere.emit(&label(), Event::Started).await.expect_err("there is nothing");
    assert_eq!(error.why, "server returned non-2xx status: 404 Not Found");
    listener.stop().await;
    let error = emitter.emit(&label(), Event::Started).await.expect_err("there is no listener");
    assert_eq!(error.event, "subagent_start");
    assert!(error.why.starts_with("failed to send event: "), "{error}");
    assert!(EventEmitter::new("nowhere").is_err());
}

#[tokio::test]
async fn what_is_not_an_event_is_refused() {
    let listener = EventListener::start(|record| panic!("{record:?}")).await.expect("listens");
    let http = rehearse_net::http_client::builder(true).build().expect("a client");
    let status = async |request: reqwest::RequestBuilder| {
        let response = request.send().await.expect("an answer");
        (response.status().as_u16(), response.text().await.expect("a text"))
    };
    let url = format!("{}{PATH}", listener.url());
    assert_eq!(status(http.get(&url)).await, (405, "Method Not Allowed".to_owned()));
    assert_eq!(status(http.post(&url).body("{")).await, (400, "Bad Request: invalid JSON".to_owned()));
    assert_eq!(status(http.post(format!("{}/other", listener.url()))).await.0, 404);
    assert_eq!(status(http.post(&url).header("origin", "https://evil.example").body("{}")).await.0, 403);
}

#[test]
fn a_program_is_sent_as_it_is_and_the_answer_is_not_sent() {
    let arguments = r#"{"code":"package main\n","executionTimeout":30}"#;
    let program = ToolCall { name: "execute_go_code".into(), arguments: arguments.into(), ..call() };
    let sent = record(&Event::ToolCall { call: &program, timeout: Some(Duration::from_secs(30)) });
    assert_eq!((&*sent.payload, sent.execution_timeout_seconds), ("package main\n", Some(30)));
    let shown = sent.text(Form::Verbose, false).expect("text");
    assert_eq!(shown, "#### coder [tool call] (timeout: 30s)\n```go\npackage main\n```\n");
    let answer = ToolCall { name: "final_answer".into(), ..call() };
    let broken = ToolCall { arguments: "{".into(), ..call() };
    let answered =
        ToolResult { call_id: "1".into(), tool: "final_answer".into(), content: Vec::new(), is_error: false };
    for event in [
        Event::ToolCall { call: &answer, timeout: None },
        Event::ToolCall { call: &broken, timeout: None },
        Event::ToolResult(&answered),
    ] {
        assert_eq!(EventRecord::new(&label(), &event, SystemTime::now()), None, "{event:?}");
    }
}

#[test]
fn encrypted_thoughts_and_unknown_events_are_no_error() {
    let thought = record(&Event::Thought { text: "", is_encrypted: true });
    for form in [Form::Concise, Form::Verbose] {
        let shown = thought.text(form, false).expect("text");
        assert_eq!(shown, "#### coder thought trace\n[Reasoning content is encrypted]\n");
    }
    let later = r#"{"subagentName":"a","subagentRunId":"r","timestamp":"t","type":"something_new","more":1}"#;
    let later: EventRecord = serde_json::from_str(later).expect("read");
    assert_eq!((later.kind, later.text(Form::Verbose, true)), (EventKind::Unknown, None));
}
