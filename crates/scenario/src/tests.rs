//! Scenarios against small scripted servers in this process.

use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Plan, RunOptions, Selection, file::Scenario, run};
use rehearse_client::Target;
use rehearse_document::Source;
use rehearse_mock::script::BuiltinScript;
use rehearse_report::{RunResult, Status};
use rehearse_testing::{greet, in_memory, result};

/// A script that scenarios of tests can name.
pub(super) const BUILTINS: &[BuiltinScript] =
    &[BuiltinScript { name: "basic", text: "tools: [{ name: echo, reply: '{{ args.text }}' }]" }];

/// Runs steps, over a pipe in this process and in both eras unless the text has a matrix, against a server that answers
/// each message with these lines.
async fn play(text: &str, answer: impl FnMut(&Value) -> Vec<String> + Send + 'static) -> RunResult {
    let source = Source::new("test.yaml", format!("servers: {{ s: {{ mock: basic }} }}\n{text}"));
    let mut scenario = Scenario::parse(&source, Path::new("/nowhere/test.yaml"), BUILTINS).expect(text);
    let server = in_memory(answer);
    assert!(!scenario.set_target("t", Target::Memory(server.address.clone())));
    assert!(scenario.set_target("s", Target::Memory(server.address.clone())));
    let options = RunOptions { builtin_scripts: BUILTINS, keep_going: true, ..RunOptions::default() };
    run(Plan::new(vec![scenario], &Selection::default()), options, CancellationToken::new(), |_| {}).await
}

/// The problems of every step of every cell, each with its cell.
pub(super) fn problems(result: &RunResult) -> Vec<String> {
    let cells = result.scenarios.iter().flat_map(|scenario| &scenario.cells);
    let problems = cells.flat_map(|cell| {
        let is_error = matches!(cell.status, Status::Error | Status::NotRun);
        assert!(!is_error, "{}: {:?}", cell.cell, cell.reason);
        let problems = cell.steps.iter().flat_map(|step| &step.problems);
        problems.map(|problem| format!("{}: {}", cell.cell.protocol, problem.message))
    });
    problems.collect()
}

/// Requests a name before it answers a call, in the form of the client's era, and greets that name.
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
async fn server_requests_are_answered_and_observed_alike_in_both_eras() {
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
async fn a_failed_step_says_that_its_server_lists_no_such_tool_or_prompt() {
    let result = play(
        "
matrix: { protocol: 2026-07-28 }
steps:
  - { call: { tool: helo } }
  - { get_prompt: { name: quite else } }
  - { parallel: [{ call: { tool: helo } }] }
  - { call: { tool: hello } }
  - { call: { tool: helo }, expect: { rpcError: { code: -32602 } } }
",
        |message| match message["method"].as_str() {
            Some(method @ ("tools/list" | "prompts/list")) => {
                let item = json!({ "name": "hello", "inputSchema": { "type": "object" } });
                let page = json!({ method.split('/').next().unwrap_or_default(): [item], "ttlMs": 0, "cacheScope": "private" });
                vec![result(message, &page.to_string())]
            }
            Some("tools/call" | "prompts/get") => {
                let error = json!({ "code": -32602, "message": "no" });
                vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string()]
            }
            _ => greet(message),
        },
    )
    .await;
    let refused = "2026-07-28: error -32602: no";
    let parallel = "2026-07-28: [0] call helo: ";
    assert_eq!(
        problems(&result),
        [
            refused,
            "2026-07-28: the server lists no tool `helo`; did you mean `hello`?",
            refused,
            "2026-07-28: the server lists no prompt `quite else`",
            &format!("{parallel}error -32602: no"),
            &format!("{parallel}the server lists no tool `helo`; did you mean `hello`?"),
            refused,
        ]
    );
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

/// A server of both eras that changes its lists and notifies its subscribers.
fn changing() -> impl FnMut(&Value) -> Vec<String> + Send + 'static {
    let mut subscription = Value::Null;
    move |message| {
        let params = &message["params"];
        let is_modern = params["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some();
        let notification = |subscription: &Value, method: &str, params: Value| {
            let mut notification = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            match (is_modern, notification["params"].as_object_mut()) {
                (true, Some(params)) => {
                    params.insert("_meta".into(), json!({ "io.modelcontextprotocol/subscriptionId": subscription }));
                }
                (false, Some(params)) if params.is_empty() => {
                    drop(notification.as_object_mut().map(|it| it.remove("params")))
                }
                _ => {}
            }
            notification.to_string()
        };
        match message["method"].as_str() {
            Some("initialize") => {
                let capabilities = json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true } });
                let info = json!({ "name": "s", "version": "1" });
                let result =
                    json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info });
                vec![self::result(message, &result.to_string())]
            }
            Some("subscriptions/listen") => {
                subscription = message["id"].clone();
                let filter = json!({ "notifications": params["notifications"] });
                vec![notification(&subscription, "notifications/subscriptions/acknowledged", filter)]
            }
            Some("tools/call") => {
                let updated =
                    |uri: &str| notification(&subscription, "notifications/resources/updated", json!({ "uri": uri }));
                let changed = notification(&subscription, "notifications/tools/list_changed", json!({}));
                let answer = result(message, r#"{"content":[]}"#);
                vec![updated("a://1"), changed, updated("a://2"), answer, updated("a://1")]
            }
            Some("resources/templates/list") => {
                vec![result(message, r#"{"resourceTemplates":[{"name":"t","uriTemplate":"a://{b}"}]}"#)]
            }
            Some("completion/complete") => {
                let values =
                    json!([params["ref"]["type"], params["argument"]["value"], params["context"]["arguments"]["c"]]);
                vec![result(message, &json!({ "completion": { "values": values } }).to_string())]
            }
            Some("x/level") => {
                let level = params["_meta"].get("io.modelcontextprotocol/logLevel");
                vec![result(message, &json!({ "level": level, "n": params["n"] }).to_string())]
            }
            Some("resources/subscribe" | "resources/unsubscribe" | "logging/setLevel") => vec![result(message, "{}")],
            _ => greet(message),
        }
    }
}

#[tokio::test]
async fn every_step_brings_the_same_in_both_eras() {
    let steps = "
steps:
  - { listen: { tools: true }, expect: { result: { equals: {} } } }
  - { subscribe: 'a://1', expect: { result: { equals: {} } } }
  - { call: { tool: change } }
  - await_notification: { method: notifications/resources/updated, params: { uri: 'a://2' } }
    expect: { result: { equals: { method: notifications/resources/updated, params: { uri: 'a://2' } } } }
  - await_notification: notifications/tools/list_changed
    expect: { result: { equals: { method: notifications/tools/list_changed } } }
  - { await_notification: { method: notifications/resources/updated, params: { uri: 'a://1' } } }
  - { await_notification: { method: notifications/resources/updated, params: { uri: 'a://1' } } }
  - { unsubscribe: { uri: 'a://1' }, expect: { result: { equals: {} } } }
  - { list_resource_templates: {}, expect: { at: { /resourceTemplates/0/name: t, /pages: 1 } } }
  - complete: { prompt: p, argument: a, value: v, context: { c: d } }
    expect: { at: { /completion/values: [ref/prompt, v, d] } }
  - { complete: { resource: 'a://{b}', argument: b }, expect: { at: { /completion/values: [ref/resource, '', null] } } }
  - { request: { method: x/level, params: { n: 1 } }, expect: { result: { equals: { level: null, n: 1 } } } }
  - { set_log_level: info, expect: { result: { equals: {} } } }
  - { request: { method: x/level }, expect: { at: { /level: info } }, only: { era: modern } }
  - { request: { method: x/level }, expect: { at: { /level: null } }, only: { era: legacy } }
";
    assert_eq!(problems(&play(steps, changing()).await), [""; 0]);
}

#[tokio::test]
async fn a_notification_satisfies_one_step_and_a_step_that_waits_in_vain_says_what_came() {
    let steps = "
matrix: { transport: memory, protocol: 2026-07-28 }
steps:
  - { subscribe: 'a://1' }
  - { call: { tool: change } }
  - { await_notification: notifications/tools/list_changed }
  - await_notification: { method: notifications/tools/list_changed }
    timeout: 100ms
  - await_notification: { method: notifications/resources/updated, params: { uri: 'a://3' } }
    timeout: 100ms
";
    let found = problems(&play(steps, changing()).await);
    assert_eq!(found.len(), 2, "{found:?}");
    let first = "timeout: no matching notification arrived within 100ms; received: \
                 notifications/resources/updated; notifications/subscriptions/acknowledged; \
                 notifications/tools/list_changed (consumed by an earlier step)";
    assert!(found[0].ends_with(first), "{}", found[0]);
    let second = "notifications/resources/updated with other params/uri: expected \"a://3\", found \"a://1\"";
    assert!(found[1].contains(second), "{}", found[1]);
}

#[tokio::test]
async fn the_statuses_of_a_task_can_be_expected() {
    let steps = "
matrix: { transport: memory, protocol: [2025-11-25, 2026-07-28] }
steps:
  - call: { tool: slow, task: true }
    only: { era: modern }
    expect: { statuses: [working, completed], text: done }
  - cancel: { tool: slow, task: true, after: 0 }
    only: { era: modern }
    expect: { failure: cancelled, statuses: [working, cancelled] }
";
    let (mut calls, mut is_cancelled) = (0, false);
    let tasking = move |message: &Value| {
        let task = |status: &str, more: &str| {
            let rest = r#""ttlMs":null,"pollIntervalMs":20,"createdAt":"x","lastUpdatedAt":"x""#;
            format!(r#"{{"taskId":"t","status":"{status}",{rest}{more}}}"#)
        };
        match message["method"].as_str() {
            Some("tools/call") => {
                calls += 1;
                vec![result(message, &task("working", r#","resultType":"task""#))]
            }
            Some("tasks/get") if is_cancelled => vec![result(message, &task("cancelled", ""))],
            Some("tasks/get") if calls > 1 => vec![result(message, &task("working", ""))],
            Some("tasks/get") => {
                let done = r#","result":{"content":[{"type":"text","text":"done"}]}"#;
                vec![result(message, &task("completed", done))]
            }
            Some("tasks/cancel") => {
                is_cancelled = true;
                vec![result(message, "{}")]
            }
            _ => greet(message),
        }
    };
    let result = play(steps, tasking).await;
    assert_eq!(problems(&result), [""; 0]);
    assert_eq!((result.totals.passed, result.totals.not_applicable), (1, 1));
}

/// Sends unsolicited frames: around the handshake, before, after and instead of the answers.
fn noisy(message: &Value) -> Vec<String> {
    let log = |text: &str| vec![text.to_owned()];
    let hello = || vec![result(message, r#"{"content":[{"type":"text","text":"hello"}]}"#)];
    match (message["method"].as_str(), message["params"]["name"].as_str()) {
        (Some("initialize" | "server/discover"), _) => [log("Listening"), greet(message)].concat(),
        (_, Some("quiet")) => hello(),
        (_, Some("logs")) => [log("called"), hello()].concat(),
        (_, Some("twice")) => [hello(), hello()].concat(),
        (_, Some("garbage")) => log("<html>"),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn noise_is_a_failure_of_the_step_in_which_it_came_unless_it_is_expected() {
    let steps = "
steps:
  - { connect: {} }
  - { call: { tool: logs } }
  - { call: { tool: logs }, expect: { text: hello, noise: true } }
  - { call: { tool: logs }, expect: { text: hello, noise: [called] } }
  - { call: { tool: logs }, expect: { text: hello, noise: { contains: shouted } } }
  - { call: { tool: quiet }, expect: { text: hello, noise: true } }
  - { call: { tool: garbage }, expect: { failure: malformed } }
  - { raw: { jsonrpc: '2.0', id: r, method: tools/call, params: { name: garbage } }, expect: { failure: malformed } }
  - { parallel: [{ call: { tool: quiet } }, { call: { tool: quiet } }], expect: { noise: false } }
  - { call: { tool: quiet }, expect: { text: hello } }
  - { call: { tool: twice }, expect: { text: hello } }
";
    let not_json = "not JSON: expected value at line 1 column 1";
    // The first call of `logs` has been answered by then, as far as its caller is concerned.
    let expected = |protocol: &str| {
        [
            format!("{protocol}: noise: {not_json}: Listening"),
            format!("{protocol}: malformed: {not_json}: called"),
            format!(r#"{protocol}: noise: expected an array with "shouted", found ["called"]"#),
            format!("{protocol}: noise: expected unsolicited output, found none"),
        ]
    };
    let found = problems(&play(steps, noisy).await);
    for (found, protocol) in found.chunks(5).zip(["2025-11-25", "2026-07-28"]) {
        assert_eq!(found[..4], expected(protocol));
        assert!(found[4].contains("noise: a second response with the id"), "{}", found[4]);
    }
    assert_eq!(found.len(), 10, "{found:?}");
}

#[tokio::test]
async fn a_server_that_sends_too_much_fails_the_step_with_the_limit() {
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} }).to_string();
    let answer = move |message: &Value| match message["method"].as_str() {
        Some("tools/call") => vec![note.clone(); 100_500],
        _ => greet(message),
    };
    let text = "matrix: { transport: memory, protocol: 2025-11-25 }\nsteps: [{ call: { tool: t } }]";
    let expected = "overflow: the server sent more than 100000 messages or 64 MiB during this step";
    let found = problems(&play(text, answer).await);
    assert!(found.len() == 1 && found[0].ends_with(expected), "{found:?}");
}

/// Each scenario in `mistakes.txt` has the mistakes below it, with at least these words.
#[test]
fn every_mistake_has_a_position_and_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("broken")).expect("creates");
    for (name, text) in [
        (".mcp.json", r#"{"mcpServers": {"one": {"command": "x"}, "two": {"command": "y"}}}"#),
        ("broken/.mcp.json", "{\n\"mcpServers\": {\"one\": {\"comand\": \"x\"}}}"),
        ("other.json", "{}"),
        ("unclear.json", r#"{"mcpServers": {"one": {"command": "x", "disabled": "true"}}}"#),
        ("off.json", r#"{"mcpServers": {"one": {"command": "x", "disabled": true}}}"#),
        ("model.yaml", "rules: [{ reply: x }]"),
        ("bad.yaml", "rules: [{ replay: x }]"),
        ("good.json", "[]"),
        ("bad.json", "[{},\n5]"),
        ("schema.json", r#"{"type":"list"}"#),
    ] {
        std::fs::write(folder.path().join(name), text).expect("writes");
    }
    for case in include_str!("mistakes.txt").trim_end().split("\n\n") {
        let (said, scenario): (Vec<_>, Vec<_>) = case.lines().partition(|line| line.starts_with("! "));
        let source = Source::new("s.yaml", scenario.join("\n"));
        let parsed = Scenario::parse(&source, &folder.path().join("s.yaml"), BUILTINS);
        let error = parsed.map(|_| ()).expect_err(case).to_string();
        let error = error.replace(&folder.path().display().to_string(), "DIR").replace("DIR\\", "DIR/");
        let are_said = error.lines().zip(&said).all(|(line, said)| format!("! {line}").starts_with(said));
        assert!(are_said && error.lines().count() == said.len(), "{case}\n{error}");
    }
}
