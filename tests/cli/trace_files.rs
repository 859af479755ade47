//! `--trace-file`, `--check` and `check --trace`.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value as Json, json};

use crate::rehearse::{Rehearse, Run};

const MOCK: &str = r#"
server: { name: shop }
tools:
  - { name: good, reply: fine }
  - { name: login, reply: "token=Zq7kd83hfKw92jx" }
  - { name: broken, reply: { raw: '{"jsonrpc":"1.0","id":{{ id | tojson }},"result":{"content":[]}}' } }
"#;

/// A server with a tool that MCP does not allow.
const CARELESS: &str = "tools: [{ name: careless, unchecked: true, inputSchema: { type: string }, reply: x }]";

const SCENARIO: &str = r#"
servers: { s: { mock: mock.yaml } }
matrix: { transport: [stdio, http], protocol: [2025-11-25] }
steps:
  - raw: { jsonrpc: "2.0", id: 8, method: tools/list }
  - request: { method: tools/call, params: { name: TOOL } }
"#;

fn scenario(script: &str, tool: &str) -> Rehearse {
    let scenario = SCENARIO.replace("TOOL", tool);
    Rehearse::new().file("mock.yaml", script).file("demo.yaml", &scenario).args(["run", "demo.yaml"])
}

fn mcp(script: &str, args: &[&str]) -> Run {
    let server = format!("'{}' mock mock.yaml", env!("CARGO_BIN_EXE_rehearse"));
    Rehearse::new().file("mock.yaml", script).args(["mcp"]).args(args.iter().copied()).args(["--stdio", &server]).run()
}

fn lines(run: &Run) -> Vec<Json> {
    let text = run.read("trace.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn a_command_fails_if_the_server_violates_a_must_and_says_how() {
    let good = mcp(MOCK, &["call-tool", "good", "--check"]).stdout_has("fine").code(0);
    assert!(!good.stderr().contains("spec:"), "{}", good.stderr());
    let found = mcp(CARELESS, &["list-tools", "--check"]).stdout_has("careless").code(1);
    found.stderr_has("MUST, rehearse").stderr_has("spec: https://").stderr_has("tools/list");
    mcp(MOCK, &["call-tool", "broken", "--check"]).stderr_has("rpc.envelope.version-field").code(1);
}

#[test]
fn a_cell_fails_if_its_server_violates_a_must() {
    scenario(MOCK, "good").args(["--check"]).run().stdout_has("2 passed").code(0);
    scenario(CARELESS, "careless").run().stdout_has("2 passed").code(0);
    let check = || scenario(CARELESS, "careless").args(["--check"]);
    let human = check().run().stdout_has("2 failed").code(1);
    human
        .stdout_has("MUST, demo s in stdio/2025-11-25, http/2025-11-25")
        .stdout_has("found")
        .stdout_has("spec: https://");
    let json = check().args(["--format", "json"]).run().code(1);
    let json: Json = serde_json::from_str(json.stdout_text()).expect("JSON");
    let violation = &json["scenarios"][0]["cells"][0]["violations"][0];
    assert_eq!((&violation["server"], &violation["verdict"]), (&"s".into(), &"fail".into()));
    let junit = check().args(["--format", "junit"]).run().code(1);
    junit.stdout_has(&format!("<failure message=\"s {}", violation["id"].as_str().expect("an id")));
}

#[test]
fn a_trace_is_judged_as_the_run_that_wrote_it() {
    let server = format!("'{}' mock mock.yaml", env!("CARGO_BIN_EXE_rehearse"));
    let check = Rehearse::new().file("mock.yaml", MOCK).args(["check", "--format", "json", "--stdio", &server]);
    let run = check.args(["--protocol-version", "2025-11-25", "--trace-file", "trace.jsonl"]).run();
    let again = Rehearse::new().file("trace.jsonl", &run.read("trace.jsonl"));
    let again = again.args(["check", "--format", "json", "--trace", "trace.jsonl"]).run();
    let verdicts = |run: &Run| {
        let json: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
        let checks = json["servers"][0]["versions"][0]["checks"].as_array().expect("checks").clone();
        // A trace does not have the environment of the server.
        let known = checks.iter().filter(|check| check["id"] != "safety.env.canary");
        known.map(|check| format!("{} {}", check["id"], check["verdict"])).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&run), verdicts(&again));
}

#[test]
fn a_trace_file_has_every_cell_and_only_its_owner_can_read_it() {
    let run = scenario(MOCK, "login").args(["--trace-file", "trace.jsonl"]).run().code(0);
    let mode = run.path("trace.jsonl").metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let lines = lines(&run);
    assert_eq!(lines[0]["format"], "rehearse-trace");
    let mut cells: Vec<_> = lines.iter().filter_map(|line| line["cell"].as_str()).collect();
    cells.sort_unstable();
    assert_eq!(cells, ["http/2025-11-25", "stdio/2025-11-25"]);
    assert!(lines.iter().any(|line| line["event"] == "http-response" && line["status"] == 200));
    let text = run.read("trace.jsonl");
    assert!(text.contains("token=***") && !text.contains("Zq7kd83hf"), "{text}");
    let check = Rehearse::new().file("trace.jsonl", &text).args(["check", "--trace", "trace.jsonl"]).run();
    check.stdout_has("s in trace.jsonl   http").stdout_has("s in trace.jsonl   stdio").code(0);
}

#[test]
fn what_is_no_trace_is_a_usage_error() {
    let check = |text: &str| Rehearse::new().file("x", text).args(["check", "--trace", "x"]).run().stdout("").code(2);
    check("{}").stderr_has("it is not a trace of rehearse");
    check("{\"format\":\"rehearse-trace\",\"version\":9}\n").stderr_has("version 9 of its format");
    check("{\"format\":\"rehearse-trace\",\"version\":1}\n").stderr_has("it has no connection");
}

#[test]
fn a_recorded_server_becomes_a_mock_that_answers_as_it_did() {
    let server = format!("'{}' mock mock.yaml", env!("CARGO_BIN_EXE_rehearse"));
    let rehearse = |args: &[&str]| Rehearse::new().file("mock.yaml", SHOP).args(args.iter().copied());
    let run = rehearse(&["run", "demo.yaml", "--trace-file", "trace.jsonl"]).file("demo.yaml", PURCHASES).run().code(0);
    let script = rehearse(&["mock", "--from-trace", "trace.jsonl"]).file("trace.jsonl", &run.read("trace.jsonl"));
    let script = script.run().code(0);
    let text = script.stdout_text();
    assert_eq!(script.stderr(), "", "{text}");
    let modern = PURCHASES.replace("2025-11-25", "2026-07-28");
    for scenario in [PURCHASES, &modern] {
        Rehearse::new().file("mock.yaml", text).file("demo.yaml", scenario).args(["run", "demo.yaml"]).run().code(0);
    }
    let call = Rehearse::new().file("mock.yaml", text);
    let call = call.args(["mcp", "call-tool", "price", "item=other", "--stdio", &server]).run();
    call.stdout_has("No rule of the tool price matches the arguments").code(1);
}

/// The requests of a trace, in this order, and what was answered.
fn trace_of(calls: &[(Json, Json)]) -> String {
    let handshake =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let capabilities = json!({ "tools": {}, "resources": {}, "prompts": {} });
    let server = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": { "name": "s", "version": "1" } });
    let first = (json!({ "method": "initialize", "params": handshake }), server);
    let head = r#"{"format":"rehearse-trace","version":1}
{"connection":1,"atMs":0,"event":"connection","server":"s","transport":"stdio"}
"#;
    let mut text = head.to_owned();
    for (id, (request, result)) in [&first].into_iter().chain(calls).enumerate() {
        let mut request = request.clone();
        (request["jsonrpc"], request["id"]) = ("2.0".into(), id.into());
        let response = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        for (from, message) in [("client", request), ("server", response)] {
            let line = json!({ "connection": 1, "atMs": id, "event": "frame", "from": from, "message": message });
            text += &format!("{line}\n");
        }
    }
    text
}

#[test]
fn what_was_not_recorded_is_unexpected() {
    let content = json!({ "content": [{ "type": "text", "text": "x" }] });
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let trace = trace_of(&[
        (json!({ "method": "tools/list" }), json!({ "tools": [tool("next"), tool("plain"), tool("idle")] })),
        (json!({ "method": "resources/list" }), json!({ "resources": [{ "name": "r", "uri": "x:r" }] })),
        (
            json!({ "method": "tools/call", "params": { "name": "next", "arguments": { "who": "ada" } } }),
            content.clone(),
        ),
        (json!({ "method": "tools/call", "params": { "name": "plain" } }), content),
        (
            json!({ "method": "prompts/get", "params": { "name": "p", "arguments": { "x": "y" } } }),
            json!({ "messages": [] }),
        ),
        (json!({ "method": "acme/plain", "params": {} }), json!({ "a": 1 })),
    ]);
    let script =
        Rehearse::new().file("trace.jsonl", &trace).args(["mock", "--from-trace", "trace.jsonl"]).run().code(0);
    let script = format!("unexpected: fail\n{}", script.stdout_text());
    let calls = [
        ("call: { tool: next, args: { who: ada } }", None),
        ("call: { tool: plain }", None),
        ("request: { method: acme/plain }", None),
        ("get_prompt: { name: p, args: { x: y } }", None),
        (
            "call: { tool: next, args: { who: eve } }",
            Some("tools.next.rules[0]: expected {\"who\":\"ada\"}, found {\"who\":\"eve\"}"),
        ),
        ("call: { tool: plain, args: { more: 1 } }", Some("tools.plain.rules[0]")),
        ("call: { tool: idle }", Some("no rule matched: idle has no rules")),
        ("read_resource: 'x:r'", Some("no rule matched: x:r has no rules")),
        (
            "get_prompt: { name: p, args: { x: zzz } }",
            Some("prompts.p.rules[0]: expected {\"x\":\"y\"}, found {\"x\":\"zzz\"}"),
        ),
        ("request: { method: acme/plain, params: { a: 1 } }", Some("methods.acme/plain.rules[0]")),
    ];
    for (call, missed) in calls {
        let scenario = format!(
            "servers: {{ s: {{ url: URL }} }}\nmatrix: {{ transport: [http], protocol: [2025-11-25] }}\nsteps: [{{ {call} }}]\n"
        );
        let run = format!("sed -i \"s|URL|$REHEARSE_URL|\" call.yaml; '{}' run call.yaml || true", Rehearse::BINARY);
        let mock = Rehearse::new().file("mock.yaml", &script).file("call.yaml", &scenario);
        let run = mock.args(["mock", "mock.yaml", "--exec", "--", "sh", "-c", &run]).run();
        match missed {
            None => run.code(0).stderr_has("the expectation"),
            Some(missed) => run.code(1).stderr_has(missed),
        };
    }
}

/// What a shop answers.
const SHOP: &str = r#"
server: { name: shop, version: 1.0.0 }
instructions: Ask for {{ everything }}.
tools:
  - name: price
    description: "The price: of an {item}"
    inputSchema: { type: object, properties: { item: { type: string } }, required: [item] }
    rules:
      - when: { args: { item: pear } }
        steps:
          - progress: { progress: 1, total: 2, message: "asking # the owner" }
          - log: { level: info, data: { asked: true } }
          - elicit: { message: How many?, requestedSchema: { type: object, properties: { n: { type: integer } } } }
          - reply: { structured: { price: 3 } }
      - { when: { args: { item: none } }, reply: { error: "There is no such item: none" } }
      - { when: { args: { item: odd } }, reply: { rpcError: { code: -31000, message: Odd } } }
      - replies: ["1 euro", "2 euro"]
resources:
  - { uri: "shop://hours", mimeType: text/plain, text: "{{ '{{' }} 9-17 }}" }
prompts:
  - { name: greet, arguments: [{ name: who }], messages: [{ role: user, content: "Hello {{ args.who }}" }] }
"#;

const PURCHASES: &str = r#"
servers: { s: { mock: mock.yaml } }
matrix: { transport: [stdio], protocol: [2025-11-25] }
answers: { elicitation: { content: { n: 2 } } }
steps:
  - { discover: {}, expect: { at: { /tools/0: { description: "The price: of an {item}" } } } }
  - call: { tool: price, args: { item: pear } }
    expect: { structured: { price: 3 }, asked: [{ params: { message: How many? } }], notifications: { length: { min: 1 } } }
  - { call: { tool: price, args: { item: none } }, expect: { isError: true, text: "There is no such item: none" } }
  - { call: { tool: price, args: { item: odd } }, expect: { rpcError: { code: -31000 } } }
  - { call: { tool: price, args: { item: fig } }, expect: { text: 1 euro } }
  - { call: { tool: price, args: { item: fig } }, expect: { text: 2 euro } }
  - list_resources: {}
  - { read_resource: "shop://hours", expect: { at: { /contents/0/text: "{{ 9-17 }}" } } }
  - list_prompts: {}
  - { get_prompt: { name: greet, args: { who: Ada } }, expect: { at: { /messages/0/content/text: Hello Ada } } }
"#;

/// A server whose answers have its process id and the date.
const CLOCK: &str = r#"
server: { name: clock, version: 1.0.0 }
tools:
  - { name: up, reply: "pid {{ env.PID }} is up, 3 users" }
  - { name: item, reply: { structured: { id: "{{ env.PID }}", name: a } } }
  - { name: day, reply: "today is {{ env.DAY }}" }
  - { name: form, reply: "{{ env.FORM }}" }
"#;

/// Records what a scenario gets, and runs `then` with the trace `t.jsonl`; `$R` is the program.
fn recorded(files: &[(&str, &str)], env: &str, then: &str) -> super::rehearse::Run {
    let start = "export PID=$$ DAY=${DAY:-$(date -u +%F)}; echo \"$(cat form) x\" > form; export FORM=\"$(cat form)\"\n\
                 exec \"$R\" mock \"$1\"\n";
    let script = format!(
        "export R='{}'; echo > form; {env} \"$R\" run demo.yaml --trace-file t.jsonl > log && {then}",
        Rehearse::BINARY
    );
    let story = Rehearse::new().program("sh").args(["-c", &script]).file("start.sh", start);
    files.iter().fold(story, |story, (name, text)| story.file(name, text)).run()
}

const CLOCK_CALLS: &str = "
servers: { s: { command: sh, args: [start.sh, mock.yaml] } }
matrix: { protocol: 2026-07-28 }
steps: [{ call: { tool: up } }, { call: { tool: item } }, { call: { tool: day } }, { call: { tool: form } }]
";

#[test]
fn a_recording_is_replayed_and_what_differs_each_time_is_hidden() {
    let other = CLOCK.replace("3 users", "4 users").replace("name: a }", "name: b }").replace("name: clock", "name: o");
    let files = [("mock.yaml", CLOCK), ("other.yaml", &other), ("demo.yaml", CLOCK_CALLS)];
    let day = "DAY=2020-01-01";
    let same = "\"$R\" run --from-trace t.jsonl --write scenarios -- sh start.sh mock.yaml && \"$R\" run";
    let same = recorded(&files, day, same).stdout_has("1 passed").stderr_has("wrote scenarios/t.yaml").code(0);
    let same = same.stderr_has("the answer of call form has another form each time");
    let written = same.read("scenarios/t.yaml");
    for rule in [r#"{ matches: "pid \\d+", with: "pid [redacted]" }"#, r#"{ at: "/structuredContent/id" }"#, "[date]"] {
        assert!(written.contains(rule), "{written}");
    }
    assert!(same.read("snapshots/t/call-up.snap").contains("pid [redacted] is up, 3 users"));
    let changed = "\"$R\" run --from-trace t.jsonl --report r.xml -- sh start.sh other.yaml";
    let changed = recorded(&files, day, changed).code(1);
    let changed = changed.stdout_has("/serverInfo/name: expected \"clock\", found \"o\"");
    let changed = changed.stdout_has("at /content/0/text, /structuredContent/name").stdout_has("is up, 4 users");
    let changed = changed.stdout_has("again: rehearse run --from-trace t.jsonl --trace -- sh start.sh other.yaml");
    assert!(changed.read("r.xml").contains("the result differs from the recording"));
    assert!(!changed.stdout_text().contains("call day"), "{}", changed.stdout_text());
}

#[test]
fn a_replay_sends_back_the_ids_and_cursors_of_the_new_answers() {
    let mock = "
server: { name: shop, version: 1.0.0 }
pageSize: 1
tools:
  - { name: cart, reply: { structured: { cart: { id: 'cart-{{ env.PID }}-x' } } } }
  - { name: pay, reply: \"{{ 'paid' if args.id == 'cart-' ~ env.PID ~ '-x' else 'no such cart' }}\" }
";
    let demo = "
servers: { s: { command: sh, args: [start.sh, mock.yaml] } }
matrix: { protocol: 2025-11-25 }
steps:
  - discover: {}
  - { call: { tool: cart }, capture: { id: /structuredContent/cart/id } }
  - { call: { tool: pay, args: { id: '{{ captured.id }}' } }, expect: { text: paid } }
";
    let then = "\"$R\" run --from-trace t.jsonl --write scenarios -- sh start.sh mock.yaml && \"$R\" run";
    let run = recorded(&[("mock.yaml", mock), ("demo.yaml", demo)], "", then).stdout_has("1 passed").code(0);
    let written = run.read("scenarios/t.yaml");
    for part in
        ["cursor: \"{{ captured.nextCursor1 }}\"", "id3: \"/structuredContent/cart/id\"", "id: \"{{ captured.id3 }}\""]
    {
        assert!(written.contains(part), "{part} in {written}");
    }
}

#[test]
fn a_replay_answers_the_server_as_the_recorded_client_did() {
    let files = [("mock.yaml", SHOP), ("demo.yaml", PURCHASES)];
    let then = "\"$R\" run --from-trace t.jsonl --write scenarios -- \"$R\" mock mock.yaml && \"$R\" run";
    let run = recorded(&files, "", then).stdout_has("1 passed").code(0);
    let written = run.read("scenarios/t.yaml");
    assert!(written.contains("answers: { elicitation: [{ action: accept, content: { \"n\": 2 } }] }"), "{written}");
    assert!(run.read("snapshots/t/call-price.snap").contains("\"price\": 3"));
    let no_trace = Rehearse::new().args(["run", "--stdio", "sh server.sh"]).run();
    no_trace.stderr_has("a server belongs to `--from-trace`").code(2);
}

#[test]
fn a_recorder_stands_between_client_and_server_over_stdio() {
    let rehearse = env!("CARGO_BIN_EXE_rehearse");
    let server = format!("'{rehearse}' record --trace-file trace.jsonl -- '{rehearse}' mock mock.yaml");
    let call =
        Rehearse::new().file("mock.yaml", SHOP).args(["mcp", "call-tool", "price", "item=fig", "--stdio", &server]);
    let call = call.run().stdout_has("1 euro").code(0);
    let text = call.read("trace.jsonl");
    assert!(text.contains("\"event\":\"process-exited\",\"code\":0") && text.contains("1 euro"), "{text}");
    let script = Rehearse::new().file("trace.jsonl", &text).args(["mock", "--from-trace", "trace.jsonl"]).run();
    script.stdout_has("name: shop").stdout_has("1 euro").code(0);
}

#[test]
fn a_recorder_masks_the_secrets_of_its_environment_and_appends_to_traces_only() {
    let server =
        format!("'{}' record --trace-file trace.jsonl -- '{}' mock mock.yaml", Rehearse::BINARY, Rehearse::BINARY);
    let record = |file: &str| {
        let call = Rehearse::new().file("mock.yaml", SHOP).file("trace.jsonl", file);
        call.args(["mcp", "call-tool", "price", "item=geheim.42", "--stdio", &server])
            .env("SHOP_API_TOKEN", "geheim.42")
    };
    let run = record("").run().stdout_has("1 euro").code(0);
    let text = run.read("trace.jsonl");
    assert!(text.contains("\"item\":\"***\"") && !text.contains("geheim.42"), "{text}");
    let run = record("[package]\nname = \"x\"\n").run();
    let run = run.stderr_has("cannot append to trace.jsonl: it is not a trace of rehearse").code(3);
    assert_eq!(run.read("trace.jsonl"), "[package]\nname = \"x\"\n");
}

#[test]
fn a_recorder_stands_between_client_and_server_over_http() {
    let mut mock = Rehearse::new().file("mock.yaml", SHOP).args(["mock", "mock.yaml", "--listen", ":0"]).start();
    let to = format!("http://{}/mcp", mock.address("http://", "/mcp"));
    let recorder = ["record", "--trace-file", "trace.jsonl", "--listen", "0", "--to", &to];
    let mut recorder = Rehearse::new().args(recorder).start();
    let url = format!("http://{}/mcp", recorder.address("http://", "/mcp"));
    for protocol in ["2025-11-25", "2026-07-28"] {
        let call = ["mcp", "call-tool", "price", "item=fig", "--http", &url, "--protocol", protocol];
        Rehearse::new().args(call).run().stdout_has(" euro").code(0);
    }
    recorder.signal("TERM");
    let text = std::fs::read_to_string(recorder.path("trace.jsonl")).expect("a trace");
    assert!(text.contains("\"status\":200") && text.contains("1 euro") && text.contains("2 euro"), "{text}");
    let script = Rehearse::new().file("trace.jsonl", &text).args(["mock", "--from-trace", "trace.jsonl"]).run();
    script.stdout_has("name: shop").stdout_has("1 euro").code(0);
    recorder.end();
}

#[test]
fn listed_tools_become_the_skeleton_of_a_mock() {
    let script = mcp(SHOP, &["list-tools", "--for", "script"]).stdout_has("reply: TODO").code(0);
    let checked = Rehearse::new().file("x.yaml", script.stdout_text()).args(["mock", "--validate", "x.yaml"]).run();
    checked.code(0);
}
