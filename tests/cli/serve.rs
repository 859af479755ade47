//! `rehearse serve`: calls, and every kind of end. The rest is in `tests/console/serve.md`.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
};

use serde_json::{Value as Json, json};

use crate::{
    conversation::last_exported,
    mcp_faults::assert_no_processes_in,
    mcp_hostile::{FAILS, INITIALIZED, server},
    orphans::{descendants, gone},
    rehearse::{Rehearse, Running},
    terminal::Terminal,
};

/// Tools of which one has the name of a tool of the agent.
const OWN_NAME: &str = "tools: [{ name: look, reply: at sea }, { name: final_answer, reply: no }]";

/// A config whose parts are changed by the tests.
pub(crate) fn config() -> Json {
    json!({
        "version": "1.0",
        "models": [{ "ref": "script", "display_name": "S", "id": "model.yaml", "type": "scripted" }],
        "defaults": { "model": "script", "systemPromptPath": "prompt.md" },
        "subagent": { "name": "coder", "description": "Codes.", "outputSchemaPath": "answer.json" },
        "mcpServers": { "tools": { "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"] } },
    })
}

pub(crate) fn story(config: &Json) -> Rehearse {
    let story = Rehearse::new().env("HOME", "home").files_of("serve").file("coder.cpe.json", &config.to_string());
    story.file("in.txt", "content of a file").file("prompt.md", "You are {{ name }}.")
}

fn served(config: &Json) -> Rehearse {
    story(config).args(["serve", "--config", "coder.cpe.json"])
}

pub(crate) fn serve() -> Rehearse {
    served(&config())
}

pub(crate) fn greet(running: &mut Running) {
    let client = json!({ "name": "c", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    running.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string());
    running.stdout_line("\"id\":1");
    running.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
}

pub(crate) fn call(running: &mut Running, id: u32, arguments: &Json) {
    let params = json!({ "name": "coder", "arguments": arguments, "_meta": { "progressToken": id } });
    running.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
}

/// A server with a call whose prompt this is.
fn begun(story: Rehearse, prompt: &str) -> Running {
    let mut running = story.start();
    greet(&mut running);
    call(&mut running, 2, &json!({ "prompt": prompt }));
    running
}

/// What a new server of this config answers to the prompt.
fn answered(config: &Json, prompt: &str) -> (Running, Json) {
    let mut running = begun(served(config), prompt);
    let answer = result(&mut running, 2);
    (running, answer)
}

pub(crate) fn result(running: &mut Running, id: u32) -> Json {
    let line = running.stdout_line(&format!("\"id\":{id}"));
    serde_json::from_str::<Json>(&line).expect("JSON")["result"].clone()
}

fn text(result: &Json) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// The server has ended: every line of its stdout is a message, and its servers are gone.
#[track_caller]
pub(crate) fn assert_clean(running: Running) {
    let run = running.end().code(0);
    for line in run.stdout_text().lines() {
        let message: Json = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
    }
    assert_no_processes_in(&run.path(""));
}

#[test]
fn on_a_terminal_it_says_what_it_waits_for_and_ends_with_the_first_signal() {
    let mut terminal = Terminal::start(serve());
    terminal
        .shows("Waiting for JSON-RPC messages")
        .shows("\"coder\": {")
        .shows("\"args\": [\"serve\", \"--config\", \"/");
    terminal.signal("INT");
    terminal.end(0);
}

#[test]
fn tools_that_are_left_out_are_warnings_and_servers_without_tools_an_error() {
    let mut config = config();
    let failing = json!({ "type": "stdio", "command": "sh", "args": ["failing"] });
    config["mcpServers"]["zz"] = config["mcpServers"]["tools"].clone();
    config["mcpServers"]["failing"] = failing.clone();
    let start = |config: &Json| {
        let story = served(config).file("tools.yaml", OWN_NAME).file("failing", &server(&[INITIALIZED, FAILS]));
        begun(story, "look")
    };
    let mut running = start(&config);
    running.stderr_line("failed to list MCP tools for server failing: error -32603: list broke");
    running.stderr_line("skipping duplicate tool name 'look' in server 'zz'");
    running.stderr_line("skipping MCP tool name 'final_answer' in server 'tools'");
    assert_eq!(result(&mut running, 2)["structuredContent"]["verdict"], "at sea");
    config["mcpServers"] = json!({ "failing": failing });
    let answer = result(&mut start(&config), 2);
    assert!(text(&answer).contains("failed to register any MCP tools: failed to list"), "{answer}");
}

#[test]
fn warnings_are_printed_even_if_the_parent_gets_the_events() {
    // Nothing listens there.
    let story = serve().file("tools.yaml", OWN_NAME).env("CPE_SUBAGENT_LOGGING_ADDRESS", "http://127.0.0.1:1");
    let mut running = begun(story, "look");
    running.stderr_line("skipping MCP tool name 'final_answer'");
    running.stderr_line("warning: failed to emit subagent_end event: ");
    assert!(text(&result(&mut running, 2)).contains("failed to emit subagent_start event"));
}

#[test]
fn an_answer_may_be_empty_and_one_that_was_cut_off_is_a_warning() {
    let mut config = config();
    config["subagent"]["outputSchemaPath"] = Json::Null;
    let story = served(&config).file("model.yaml", "rules: [{ reply: { text: '', stop: max_tokens } }]");
    let mut running = begun(story, "x");
    running.stderr_line("warning: the answer of the model is cut off at its limit of tokens");
    let answer = result(&mut running, 2);
    assert!(answer.get("isError").is_none() && text(&answer).is_empty(), "{answer}");
}

#[test]
fn with_lazy_check_a_call_reports_what_is_missing_until_it_is_there() {
    let mut config = config();
    config["models"][0]["id"] = "later.yaml".into();
    let lazy = |config: &Json| story(config).args(["serve", "--config", "coder.cpe.json", "--lazy-check"]);
    let mut running = lazy(&config).start();
    greet(&mut running);
    call(&mut running, 2, &json!({ "prompt": "look" }));
    let answer = result(&mut running, 2);
    let expected = "Subagent execution failed: coder.cpe.json:1:";
    assert!(text(&answer).starts_with(expected) && text(&answer).contains("cannot read later.yaml"), "{answer}");
    std::fs::copy(running.path("model.yaml"), running.path("later.yaml")).expect("copies");
    call(&mut running, 3, &json!({ "prompt": "look" }));
    assert_eq!(result(&mut running, 3)["structuredContent"]["verdict"], "at sea");
    // The schema is a part of the tool.
    config["subagent"]["outputSchemaPath"] = "none.json".into();
    lazy(&config).run().stderr_has("none.json").code(2);
}

#[test]
fn a_call_of_the_agent_goes_to_another_server_if_that_is_wanted() {
    let mut config = config();
    let lost = "tools: [{ name: look, annotations: { readOnlyHint: true }, steps: [{ exit: 1 }] }]";
    config["mcpServers"] = json!({
        "broken": { "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "broken.yaml"] },
        "tools": config["mcpServers"]["tools"],
    });
    for (routing, verdict) in [("fallback", "at sea"), ("registered", "Error calling MCP tool broken/look: ")] {
        let story = story(&config).file("broken.yaml", lost);
        let mut running = story.args(["serve", "--config", "coder.cpe.json", "--routing", routing]).start();
        greet(&mut running);
        call(&mut running, 2, &json!({ "prompt": "look" }));
        let answer = result(&mut running, 2);
        assert!(answer["structuredContent"]["verdict"].as_str().is_some_and(|it| it.starts_with(verdict)), "{answer}");
        if routing == "fallback" {
            running.stderr_line("warning: the call of 'look' failed at MCP server 'broken', and goes to 'tools': ");
        }
    }
}

#[test]
fn a_client_that_does_not_read_does_not_hold_up_a_run() {
    // Several times what a pipe holds.
    let text = "x".repeat(200_000);
    let turn = format!("{{ text: {text}, calls: [{{ tool: look, args: {{ at: sea }} }}] }}");
    let model = format!(
        "rules: [{{ turns: [{turn}, {turn}, {turn}, {{ calls: [{{ tool: final_answer, args: {{ verdict: done }} }}] }}] }}]"
    );
    let mut running = serve().file("model.yaml", &model).unread_stdout().start();
    greet(&mut running);
    call(&mut running, 2, &json!({ "prompt": "x" }));
    running.stderr_line("] ended: 4 turns, 3 tool calls, ");
    assert_eq!(result(&mut running, 2)["structuredContent"]["verdict"], "done");
}

#[test]
fn a_call_runs_the_agent_and_returns_its_answer() {
    let mut running = begun(serve(), "look");
    let progress = running.stdout_line("notifications/progress");
    assert!(progress.contains("turn 1: calls look"), "{progress}");
    let answer = result(&mut running, 2);
    assert_eq!(answer["structuredContent"], json!({ "verdict": "at sea" }));
    assert_eq!(text(&answer), r#"{"verdict":"at sea"}"#);
    call(&mut running, 3, &json!({ "prompt": "the file:", "inputs": ["in.txt"] }));
    assert_eq!(result(&mut running, 3)["structuredContent"]["verdict"], "the file:\ncontent of a file");
    call(&mut running, 4, &json!({ "prompt": "system" }));
    assert_eq!(result(&mut running, 4)["structuredContent"]["verdict"], "You are coder.");
    call(&mut running, 5, &json!({ "prompt": "look", "inputs": null, "runId": "mine" }));
    assert_eq!(result(&mut running, 5)["structuredContent"]["verdict"], "at sea");
    running.stderr_line("#### coder [mine] → look");
    running.close_stdin();
    assert_clean(running);
}

#[test]
fn saved_messages_are_reported_with_their_parents() {
    let mut running = serve().start();
    greet(&mut running);
    running.send(r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}"#);
    running.stdout_line("\"id\":2");
    call(&mut running, 3, &json!({ "prompt": "look" }));
    let mut parent = Json::Null;
    for role in ["user", "assistant", "tool_result", "assistant"] {
        let line: Json = serde_json::from_str(&running.stdout_line("message_saved")).expect("JSON");
        let data = &line["params"]["data"];
        assert_eq!((&data["role"], &data["parentId"]), (&json!(role), &parent), "{line}");
        parent = data["messageId"].clone();
        assert_eq!(parent.as_str().map(str::len), Some(6), "{line}");
    }
}

#[test]
fn every_failure_of_a_run_is_an_error_of_the_tool_that_says_why() {
    let mut running = serve().start();
    greet(&mut running);
    let cases = [
        (json!({ "prompt": " " }), "prompt is required and cannot be empty"),
        (json!({ "inputs": null }), "prompt is required and cannot be empty"),
        (json!({ "prompt": 1 }), "prompt must be a string"),
        (json!({ "prompt": "look", "inputs": "in.txt" }), "inputs must be a list of strings"),
        (json!({ "prompt": "look", "inputs": [1] }), "inputs must be a list of strings"),
        (json!({ "prompt": "look", "runId": "" }), "runId is required and cannot be empty"),
        (json!({ "prompt": "look", "more": 1 }), "unknown argument \"more\"; the arguments are prompt and inputs"),
        (
            json!({ "prompt": "x", "inputs": ["none.txt"] }),
            "failed to read input files [none.txt]: input file does not exist: none.txt",
        ),
        (json!({ "prompt": "x" }), "subagent did not call final_answer tool"),
        (
            json!({ "prompt": "wrong" }),
            "the arguments of final_answer do not match the schema:\n  /verdict: 7 is not of type \"string\"",
        ),
        (json!({ "prompt": "limited" }), "subagent \"coder\" execution failed: generation failed: "),
    ];
    for (id, (arguments, expected)) in (2..).zip(&cases) {
        call(&mut running, id, arguments);
        let answer = result(&mut running, id);
        assert_eq!(answer["isError"], true, "{answer}");
        assert!(text(&answer).starts_with(&format!("Subagent execution failed: {expected}")), "{answer}");
        assert!(answer.get("structuredContent").is_none());
    }
    running.signal("INT");
    assert_clean(running);
}

#[test]
fn a_server_of_the_config_that_cannot_start_fails_the_call() {
    let mut config = config();
    config["mcpServers"]["tools"]["args"] = json!(["mock", "none.yaml"]);
    let (mut running, answer) = answered(&config, "look");
    assert!(text(&answer).contains("failed to initialize MCP connections: cannot connect to server tools"), "{answer}");
    running.stderr_line("failed: failed to initialize MCP connections");
    running.close_stdin();
    let saved: Json = serde_json::from_str(&last_exported(&running.end().path(".cpeconvo"))).expect("JSON");
    assert_eq!((&saved["messages"][0]["role"], &saved["messages"][1]), (&json!("user"), &Json::Null));
}

#[test]
fn a_run_has_a_time_limit() {
    let mut config = config();
    config["subagent"]["timeout"] = "3s".into();
    let (mut running, answer) = answered(&config, "think");
    assert!(text(&answer).contains("timed out: subagent \"coder\" had 3s"), "{answer}");
    running.stderr_line("failed: execution cancelled");
}

#[test]
fn calls_run_side_by_side_and_a_cancelled_one_stops_its_servers() {
    let mut running = begun(serve(), "hang");
    running.stdout_line("turn 1: calls hang");
    call(&mut running, 3, &json!({ "prompt": "look" }));
    assert_eq!(result(&mut running, 3)["structuredContent"]["verdict"], "at sea");
    running.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    running.stderr_line("failed: execution cancelled");
    running.signal("TERM");
    assert_clean(running);
}

#[test]
fn a_server_that_dies_in_a_run_is_named() {
    let mut running = begun(serve(), "die");
    let failed = running.stdout_line("\"tool_result\"");
    assert!(failed.contains("\"level\":\"warning\""), "{failed}");
    let answer = result(&mut running, 2);
    assert!(text(&answer).contains("Error calling MCP tool tools/die: "), "{answer}");
}

/// Reads the next request to an endpoint.
fn request(endpoint: &TcpListener) -> TcpStream {
    let stream = endpoint.accept().expect("a connection").0;
    let mut reader = BufReader::new(&stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    reader.read_exact(&mut vec![0; length]).expect("the body");
    stream
}

#[test]
fn a_model_endpoint_that_dies_in_a_run_is_named_and_the_messages_before_are_saved() {
    let function = json!({ "name": "look", "arguments": r#"{"at":"sea"}"# });
    let message =
        json!({ "role": "assistant", "tool_calls": [{ "id": "c1", "type": "function", "function": function }] });
    let first = json!({ "choices": [{ "message": message, "finish_reason": "tool_calls" }] }).to_string();
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: ";
    let whole = format!("{head}application/json\r\nContent-Length: {}\r\n\r\n{first}", first.len());
    let piece =
        format!("{head}text/event-stream\r\n\r\ndata: {{\"choices\":[{{\"delta\":{{\"content\":\"I see\"}}}}]}}\n\n");
    for begun in [String::new(), piece] {
        let endpoint = TcpListener::bind("127.0.0.1:0").expect("binds");
        let url = format!("http://{}/v1", endpoint.local_addr().expect("an address"));
        let mut config = config();
        config["models"][0] =
            json!({ "ref": "script", "display_name": "H", "id": "m", "type": "openai", "base_url": url });
        let mut running = story(&config).args(["serve", "--config", "coder.cpe.json"]).start();
        greet(&mut running);
        call(&mut running, 2, &json!({ "prompt": "look" }));
        let (die, death) = mpsc::channel();
        let whole = whole.clone();
        let process = thread::spawn(move || {
            request(&endpoint).write_all(whole.as_bytes()).expect("writes");
            let mut second = request(&endpoint);
            second.write_all(begun.as_bytes()).expect("writes");
            death.recv().expect("the test goes on");
        });
        running.stdout_line("turn 1: calls look");
        let processes = descendants(running.id());
        let servers: Vec<_> = processes.into_iter().filter(|it| it.command().ends_with("mock tools.yaml")).collect();
        assert_eq!(servers.len(), 1);
        die.send(()).expect("the endpoint lives");
        process.join().expect("the endpoint ends");
        let answer = result(&mut running, 2);
        let reason = format!("generation failed: {url}/chat/completions: ");
        assert!(answer["isError"] == true && text(&answer).contains(&reason), "{answer}");
        gone(&servers);
        running.close_stdin();
        let run = running.end().code(0);
        assert_no_processes_in(&run.path(""));
        let saved: Json = serde_json::from_str(&last_exported(&run.path(".cpeconvo"))).expect("JSON");
        let roles: Vec<_> =
            saved["messages"].as_array().expect("messages").iter().map(|it| it["role"].clone()).collect();
        assert_eq!(roles, ["user", "assistant", "tool_result"]);
    }
}

#[test]
fn whatever_ends_the_server_in_a_run_leaves_no_process() {
    for (prompt, end) in [("hang", "EOF"), ("think", "EOF"), ("hang", "INT"), ("think", "TERM"), ("hang", "HUP")] {
        let mut running = begun(serve(), prompt);
        match prompt {
            "hang" => drop(running.stdout_line("turn 1")),
            // Nothing shows that the model thinks; its servers run before that.
            _ => started_tools(&running),
        }
        match end {
            "EOF" => running.close_stdin(),
            signal => running.signal(signal),
        }
        assert_clean(running);
    }
}

/// Waits until the servers of a run are there.
fn started_tools(running: &Running) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while crate::rehearse::children(running.id()).len() < 2 {
        assert!(std::time::Instant::now() < deadline, "the servers start");
        std::thread::yield_now();
    }
}

#[test]
fn the_servers_of_a_killed_server_end() {
    let mut running = begun(serve(), "hang");
    running.stdout_line("turn 1");
    let processes = descendants(running.id());
    assert!(processes.len() >= 2, "{processes:?}");
    running.signal("KILL");
    gone(&processes);
}

#[test]
fn a_signal_reaches_the_servers_of_a_run_at_once() {
    let mut slow = config();
    let script = format!(
        "trap 'echo asked > end; exit' TERM; {} mock tools.yaml; sleep 4 & wait; echo alone > end",
        Rehearse::BINARY
    );
    slow["mcpServers"]["tools"] = json!({ "type": "stdio", "command": "sh", "args": ["-c", script] });
    let mut running = begun(served(&slow), "hang");
    running.stdout_line("turn 1");
    running.signal("TERM");
    assert_eq!(running.end().code(0).read("end"), "asked\n");
}
