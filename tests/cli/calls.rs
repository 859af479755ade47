//! Calls from the command line and the REPL: checked arguments, repeated calls, and the choice of a server.

use serde_json::{Value as Json, json};

use crate::{
    mcp::{mcp, stdio},
    rehearse::Rehearse,
};

const WRONG: &str = r#"{"n":"x","txt":"a"}"#;
const VIOLATIONS: &str = "text (MISSING_REQUIRED): Missing required parameter: text; n (INVALID_TYPE): Invalid type for n: \
                          expected integer; txt (UNKNOWN_PARAMETER): Unknown parameter: txt; did you mean text?";

fn repl(servers: &Json, args: &[&str]) -> Rehearse {
    let config = json!({ "mcpServers": servers }).to_string();
    let story = Rehearse::new().args(["repl", "--mcp-config", "c.json", "--dialect", "mcpilot", "--yes"]);
    let script = "tools: [{ name: echo, inputSchema: { type: object, properties: { text: { type: string }, n: { type: integer } }, required: [text] }, reply: said }]";
    story.args(args.iter().copied()).env("HOME", "home").file("c.json", &config).file("t.yaml", script)
}

fn mock(script: &str) -> Json {
    json!({ "command": Rehearse::BINARY, "args": ["mock", script] })
}

/// A mock of which every call ends the process, until it has died once if it `recovers`.
fn dying(story: Rehearse, recovers: bool) -> (Rehearse, Json) {
    let tool = |then: &str| format!("tools: [{{ name: who, annotations: {{ readOnlyHint: true }}, {then} }}]");
    let story = story.file("dies.yaml", &tool("steps: [{ exit: 1 }]")).file("lives.yaml", &tool("reply: one"));
    let lives = if recovers { "lives.yaml" } else { "dies.yaml" };
    let mock = format!("{} mock", Rehearse::BINARY);
    let script = format!("if [ -e died ]; then exec {mock} {lives}; else touch died; exec {mock} dies.yaml; fi");
    (story, json!({ "command": "sh", "args": ["-c", script] }))
}

#[test]
fn wrong_arguments_are_listed_and_not_sent_unless_that_is_wanted() {
    let call = |args: &[&str]| {
        mcp(["call-tool", "echo", "--args", WRONG]).args(args.iter().copied()).args(stdio("tools.yaml")).run()
    };
    let run = call(&[]).stdout("").stderr_has(&format!("error: the arguments of \"echo\" are invalid: {VIOLATIONS}\n"));
    run.stderr_has("hint: --no-check-arguments sends the call\n").code(2);
    let run = call(&["--no-check-arguments", "--trace"]).stderr_has("\"method\":\"tools/call\"");
    assert!(!run.stderr().contains("MISSING_REQUIRED"), "{}", run.stderr());
    let printed: Json = serde_json::from_str(call(&["--json"]).code(2).stdout_text()).expect("JSON");
    assert_eq!(printed["failure"]["kind"], "invalidArguments");
    call(&["--as", "cpe"]).stdout_has(&format!("Error parsing parameters: {VIOLATIONS}")).code(2);

    let lines = format!("call echo {WRONG}\n");
    let run =
        repl(&json!({ "one": mock("t.yaml") }), &[]).stdin(&lines).run().stdout("").stderr_has(VIOLATIONS).code(1);
    run.stderr_has("hint: start `rehearse repl` with --no-check-arguments to send such calls\n");
    let run = repl(&json!({ "one": mock("t.yaml") }), &["--no-check-arguments"]).stdin(&lines).run();
    assert!(!run.stderr().contains("MISSING_REQUIRED"), "{}", run.stderr());
}

#[test]
fn a_lost_call_of_a_tool_that_reads_is_repeated() {
    let plain = |retries: &str| {
        let (story, one) = dying(mcp(["call-tool", "who", "--mcp-config", "c.json", "--retries", retries]), true);
        story.file("c.json", &json!({ "mcpServers": { "one": one } }).to_string()).run()
    };
    plain("1").stdout("one\n").code(0);
    plain("0").stdout("").stderr_has("error: disconnected: ").code(1);
    let typed = |retries: &str| {
        let (story, one) = dying(Rehearse::new(), true);
        let config = json!({ "mcpServers": { "one": one } }).to_string();
        let story = story.args(["repl", "--mcp-config", "c.json", "--yes", "--retries", retries]).env("HOME", "home");
        story.file("c.json", &config).stdin("call who\n").run()
    };
    typed("1").stdout("one\n").code(0);
    typed("0").stdout("").stderr_has("error: disconnected: ").code(1);
}

#[test]
fn a_first_connection_that_fails_is_tried_again() {
    let script = format!("if [ -e seen ]; then exec {} mock t.yaml; else touch seen; exit 7; fi", Rehearse::BINARY);
    let servers = json!({ "late": { "command": "sh", "args": ["-c", script] } });
    let mut running = repl(&servers, &["--protocol", "2025-11-25"]).start();
    running.stderr_line("warning: MCP server 'late' connection failed: ");
    running.stderr_line("info: reconnected to MCP server 'late'");
    running.signal("TERM");
    running.end().code(3);
}

#[test]
fn a_call_goes_to_another_server_or_to_each_in_turn() {
    let who = |name: &str| format!("tools: [{{ name: who, reply: {name} }}]");
    let servers = json!({ "one": mock("one.yaml"), "two": mock("two.yaml") });
    let story = |args: &[&str], lines: &str| {
        let story = repl(&servers, args).file("one.yaml", &who("one")).file("two.yaml", &who("two"));
        story.stdin(lines).run().code(0)
    };
    story(&["--routing", "round-robin"], "call who\ncall who\ncall who\ncall who --server two\n")
        .stdout("one\ntwo\none\ntwo\n");
    story(&[], "call who\ncall who\n").stdout("one\none\n");

    let fallback = |args: &[&str]| {
        let (story, one) = dying(mcp(["call-tool", "who", "--mcp-config", "c.json", "--dialect", "mcpilot"]), false);
        let config = json!({ "mcpServers": { "one": one, "two": mock("two.yaml") } }).to_string();
        story.file("c.json", &config).file("two.yaml", &who("two")).args(args.iter().copied()).run()
    };
    let run = fallback(&["--routing", "fallback"]).stdout("two\n").code(0);
    run.stderr_has("warning: the call of 'who' failed at MCP server 'one', and goes to 'two': ");
    fallback(&[]).stdout("").code(1);
}
