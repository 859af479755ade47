//! Scenarios against small scripted servers in this process.

use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Mode, Options, Plan, RunResult, Scenario, Selection, Status, run, server::Kind};
use crate::{
    client::tests::server::{greet, in_memory, result},
    config::Source,
};

/// Runs steps, over a pipe in this process and in both eras unless the text has a matrix, against a server that answers
/// each message with these lines.
async fn play(text: &str, answer: impl FnMut(&Value) -> Vec<String> + Send + 'static) -> RunResult {
    let matrix = if text.contains("matrix:") { "" } else { "matrix: { transport: memory }\n" };
    let source = Source::new("test.yaml", format!("servers: {{ s: {{ mock: basic }} }}\n{matrix}{text}"));
    let mut scenario = Scenario::parse(&source, Path::new("/nowhere/test.yaml")).expect(text);
    let server = in_memory(answer);
    scenario.servers[0].kind = Kind::Target(server.target.clone());
    let options = Options {
        jobs: 1,
        seed: 1,
        mode: Mode::Check,
        fail_fast: false,
        keep_going: true,
        rehearse: "/nowhere/rehearse".into(),
    };
    run(Plan::new(vec![scenario], &Selection::default()), options, CancellationToken::new(), |_| {}).await
}

/// The problems of every step of every cell, each with its cell.
fn problems(result: &RunResult) -> Vec<String> {
    let cells = result.scenarios.iter().flat_map(|scenario| &scenario.cells);
    let problems = cells.flat_map(|cell| {
        assert!(matches!(cell.status, Status::Passed | Status::Failed), "{}: {:?}", cell.cell, cell.reason);
        let problems = cell.steps.iter().flat_map(|step| &step.problems);
        problems.map(|problem| format!("{}: {}", cell.cell.protocol, problem.message))
    });
    problems.collect()
}

/// Asks for a name before it answers a call, in the way of the caller's era, and greets whoever was named.
fn greeter() -> impl FnMut(&Value) -> Vec<String> + Send + 'static {
    let who = json!({ "method": "elicitation/create", "params": { "message": "Who?" } });
    let greeting = |call: &Value, answer: &Value| {
        let text = format!("Hello, {}", answer["content"]["name"].as_str().unwrap_or("stranger"));
        result(call, &json!({ "content": [{ "type": "text", "text": text }] }).to_string())
    };
    let mut waiting = Value::Null;
    move |message| match (message["method"].as_str(), message["id"].as_str()) {
        (Some("tools/call"), _) if message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_null() => {
            waiting = message.clone();
            let mut request = who.clone();
            request["jsonrpc"] = "2.0".into();
            request["id"] = "who".into();
            request["params"]["_meta"] = json!({ "progressToken": 5 });
            vec![request.to_string()]
        }
        (Some("tools/call"), _) => match message["params"]["inputResponses"].get("who") {
            Some(answer) => vec![greeting(message, answer)],
            None => {
                let asked = json!({ "resultType": "input_required", "inputRequests": { "who": who } });
                vec![result(message, &asked.to_string())]
            }
        },
        (None, Some("who")) => vec![greeting(&waiting, &message["result"])],
        _ => greet(message),
    }
}

#[tokio::test]
async fn what_a_server_asks_is_answered_and_observed_alike_in_both_eras() {
    let result = play(
        "
answers: { elicitation: [{ content: { name: Ada } }, { action: cancel }] }
steps:
  - call: { tool: hello }
    expect: { text: 'Hello, Ada', asked: [{ equals: { method: elicitation/create, params: { message: Who? } } }] }
  - { call: { tool: hello }, expect: { text: 'Hello, stranger' } }
  - call: { tool: hello }
    answers: { elicitation: { content: { name: Bob } } }
    expect: { text: 'Hello, Bob' }
  - parallel: [{ call: { tool: hello }, expect: { text: 'Hello, Eve' } }]
    answers: { elicitation: { content: { name: Eve } } }
  - { call: { tool: hello }, expect: { text: 'Hello, stranger', asked: { length: 2 } } }
",
        greeter(),
    )
    .await;
    let length = "asked: expected length 2, found length 1";
    assert_eq!(problems(&result), [format!("2025-11-25: {length}"), format!("2026-07-28: {length}")]);
}

#[tokio::test]
async fn a_question_without_an_answer_ends_a_modern_call() {
    let steps = "
steps:
  - { call: { tool: hello }, expect: { text: 'Hello, stranger' }, only: { era: legacy } }
  - { call: { tool: hello }, expect: { failure: unanswered, asked: { length: 1 } }, only: { era: modern } }
";
    assert_eq!(problems(&play(steps, greeter()).await), [""; 0]);
}
