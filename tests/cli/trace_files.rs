//! `--trace-file`, `--check` and `check --trace`.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value as Json;

use crate::rehearse::{Rehearse, Run};

const MOCK: &str = r#"
server: { name: shop }
tools:
  - { name: good, reply: fine }
  - { name: login, reply: "token=Zq7kd83hfKw92jx" }
  - { name: broken, reply: { raw: '{"jsonrpc":"1.0","id":{{ id | tojson }},"result":{"content":[]}}' } }
"#;

const CARELESS: &str = "tools: [{ name: careless, unchecked: true, inputSchema: { type: string } }]";

const SCENARIO: &str = r#"
servers: { s: { mock: mock.yaml } }
matrix: { transport: [stdio, http], protocol: [2025-11-25] }
steps:
  - raw: { jsonrpc: "2.0", id: 8, method: tools/call, params: { name: TOOL, arguments: {} } }
"#;

fn scenario(tool: &str) -> Rehearse {
    let scenario = SCENARIO.replace("TOOL", tool);
    Rehearse::new().file("mock.yaml", MOCK).file("demo.yaml", &scenario).args(["run", "demo.yaml"])
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
    scenario("good").args(["--check"]).run().stdout_has("2 passed").code(0);
    scenario("broken").run().stdout_has("2 passed").code(0);
    let broken = scenario("broken").args(["--check"]).run().stdout_has("2 failed").code(1);
    broken
        .stdout_has("✗ rpc.envelope.version-field   MUST, demo s in stdio/2025-11-25, http/2025-11-25")
        .stdout_has("1.0");
    let json = scenario("broken").args(["--check", "--format", "json"]).run().code(1);
    let json: Json = serde_json::from_str(json.stdout_text()).expect("JSON");
    let violation = &json["scenarios"][0]["cells"][0]["violations"][0];
    assert_eq!((&violation["id"], &violation["server"]), (&"rpc.envelope.version-field".into(), &"s".into()));
    let junit = scenario("broken").args(["--check", "--format", "junit"]).run().code(1);
    junit.stdout_has("<failure message=\"s rpc.envelope.version-field");
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
        let rows = json["servers"][0]["versions"][0]["rows"].as_array().expect("rows").clone();
        rows.iter().map(|row| format!("{} {}", row["id"], row["verdict"])).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&run), verdicts(&again));
}

#[test]
fn a_trace_file_has_every_cell_and_only_its_owner_can_read_it() {
    let run = scenario("login").args(["--trace-file", "trace.jsonl"]).run().code(0);
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
    check("{}").stderr_has("it is no trace of rehearse");
    check("{\"format\":\"rehearse-trace\",\"version\":9}\n").stderr_has("version 9 of its format");
    check("{\"format\":\"rehearse-trace\",\"version\":1}\n").stderr_has("it has no connection");
}
