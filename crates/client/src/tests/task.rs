//! Tool calls that become tasks.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{MODERN, arguments, sent_methods, target};
use crate::{Answer, AnswerScript, Answers, CallOptions, Failure, ServerParams, Session, Target, TaskRun};
use rehearse_testing::{HELLO, HttpServer, Seen, Server, greet, greet_http, in_memory, json as json_response, result};

fn task(status: &str, more: &Value) -> Value {
    let mut task = json!({
        "resultType": "complete", "taskId": "t-1", "status": status, "ttlMs": null, "pollIntervalMs": 1000,
        "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z",
    });
    task.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    task
}

fn created() -> Value {
    task("working", &json!({ "resultType": "task" }))
}

/// Makes a task of every call, describes it at each poll as the next of these, the last again and again, and remembers
/// what it was sent.
fn tasking(polls: Vec<Value>) -> (Server, Arc<Mutex<Vec<Value>>>) {
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let (log, mut polled) = (seen.clone(), 0);
    let server = in_memory(move |message| {
        log.lock().expect("no panic").push(message.clone());
        match message["method"].as_str() {
            Some("tools/call") => vec![result(message, &created().to_string())],
            Some("tasks/get") => {
                polled += 1;
                vec![result(message, &polls[(polled - 1).min(polls.len() - 1)].to_string())]
            }
            Some("tasks/update" | "tasks/cancel") => vec![result(message, r#"{"resultType":"complete"}"#)],
            _ => greet(message),
        }
    });
    (server, seen)
}

async fn connect(target: &Target) -> Session {
    let ada = Answer::Result(json!({ "action": "accept", "content": { "name": "Ada" } }));
    let answers = AnswerScript { elicitation: vec![ada], ..AnswerScript::default() };
    let config = ServerParams { answers: Answers::from_script(answers, []), ..ServerParams::new("s", target.clone()) };
    Session::connect(&config, MODERN).await.expect("a session")
}

async fn run(target: &Target, options: CallOptions) -> (TaskRun, Session) {
    let session = connect(target).await;
    let run = session.call_tool_as_task("echo", Some(arguments()), options).await;
    (run, session)
}

fn hello() -> Value {
    json!({ "result": serde_json::from_str::<Value>(HELLO).expect("JSON") })
}

#[tokio::test(start_paused = true)]
async fn a_task_is_polled_at_the_interval_of_the_server_and_gets_its_input_once() {
    let who = json!({ "inputRequests": { "who": { "method": "elicitation/create", "params": {} } } });
    let (server, seen) = tasking(vec![
        task("working", &json!({ "pollIntervalMs": 3000 })),
        task("input_required", &who),
        task("input_required", &who),
        task("working", &Value::Null),
        task("completed", &hello()),
    ]);
    let started = Instant::now();
    let (run, session) = run(&target(&server), CallOptions::default()).await;
    assert_eq!(run.statuses, ["working", "input_required", "working", "completed"]);
    assert_eq!(run.outcome.expect("a result").raw.get(), HELLO);
    assert_eq!(started.elapsed().as_secs(), 1 + 3 + 1 + 1 + 1);
    let polls = ["tasks/get"; 2].as_slice();
    let sent = [&["server/discover", "tools/call"], polls, &["tasks/update", "tasks/get", "tasks/get", "tasks/get"]];
    assert_eq!(sent_methods(&session), sent.concat());
    session.close().await;
    let seen = seen.lock().expect("no panic").clone();
    let update = seen.iter().find(|message| message["method"] == "tasks/update").expect("an update");
    let answers = json!({ "who": { "action": "accept", "content": { "name": "Ada" } } });
    assert_eq!((&update["params"]["taskId"], &update["params"]["inputResponses"]), (&json!("t-1"), &answers));
    let declared = json!({
        "elicitation": { "form": {}, "url": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} },
    });
    for message in &seen[1..] {
        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], declared, "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_end_of_a_task_is_distinguished() {
    let error = json!({ "error": { "code": -32000, "message": "m", "data": { "a": 1 } } });
    let sampling = json!({ "inputRequests": { "a": { "method": "sampling/createMessage" } } });
    for (last, kind, is_given_up) in [
        (task("failed", &error), "rpc", false),
        (task("cancelled", &json!({ "statusMessage": "no time" })), "cancelled", false),
        (task("completed", &Value::Null), "malformed", true),
        (task("failed", &Value::Null), "malformed", true),
        (task("asleep", &Value::Null), "malformed", true),
        (json!({ "status": "working" }), "malformed", true),
        (task("input_required", &sampling), "unanswered", true),
        (task("working", &Value::Null), "timeout", true),
    ] {
        let (server, _) = tasking(vec![last.clone()]);
        let (run, session) = run(&target(&server), CallOptions::with_timeout(Duration::from_millis(4500))).await;
        let failure = run.outcome.expect_err("no result");
        assert_eq!(failure.kind(), kind, "{last}: {failure}");
        let gave_up = sent_methods(&session).last().is_some_and(|method| method == "tasks/cancel");
        assert_eq!(gave_up, is_given_up, "{last}");
        if let Failure::Timeout(overdue) = failure {
            assert_eq!(overdue.limit.as_millis(), 4500);
        }
        session.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_is_passed_on_and_the_end_of_the_task_awaited() {
    let token = CancellationToken::new();
    let trigger = token.clone();
    let mut is_cancelled = false;
    let server = in_memory(move |message| match message["method"].as_str() {
        Some("tools/call") => vec![result(message, &created().to_string())],
        Some("tasks/get") => {
            trigger.cancel();
            let status = if is_cancelled { "cancelled" } else { "working" };
            vec![result(message, &task(status, &Value::Null).to_string())]
        }
        Some("tasks/cancel") => {
            is_cancelled = true;
            vec![result(message, r#"{"resultType":"complete"}"#)]
        }
        _ => greet(message),
    });
    let options = CallOptions { cancel: Some(token), ..CallOptions::default() };
    let (run, session) = run(&target(&server), options).await;
    assert!(matches!(run.outcome, Err(Failure::TaskCancelled(None))), "{:?}", run.outcome);
    assert_eq!(run.statuses, ["working", "cancelled"]);
    assert_eq!(sent_methods(&session)[2..], ["tasks/get", "tasks/cancel", "tasks/get"]);
    session.close().await;
}

#[tokio::test]
async fn a_server_may_answer_at_once() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("tools/call") => vec![result(message, HELLO)],
        _ => greet(message),
    });
    let (run, session) = run(&target(&server), CallOptions::default()).await;
    assert_eq!((run.statuses.len(), run.outcome.expect("a result").text()), (0, "hello".to_owned()));
    session.close().await;
}

#[tokio::test]
async fn over_http_the_headers_name_the_task() {
    let server = HttpServer::start(move |seen: Seen| async move {
        let message = seen.message();
        match message["method"].as_str() {
            Some("tools/call") => {
                let created = task("working", &json!({ "resultType": "task", "pollIntervalMs": 1 }));
                json_response(result(&message, &created.to_string()))
            }
            Some("tasks/get") => json_response(result(&message, &task("completed", &hello()).to_string())),
            _ => greet_http(&seen).expect("a greeting"),
        }
    })
    .await;
    let (run, session) = run(&Target::http(&server.url), CallOptions::default()).await;
    assert_eq!(run.outcome.expect("a result").text(), "hello");
    session.close().await;
    let seen = server.seen();
    let poll = seen.last().expect("a poll");
    assert_eq!((poll.header("mcp-method"), poll.header("mcp-name")), (Some("tasks/get"), Some("t-1")));
}
