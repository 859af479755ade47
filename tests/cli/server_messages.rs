//! What commands print of servers: their stderr, warnings about their tools, as text and as JSON; and what servers see.

use serde_json::{Value as Json, json};

use crate::{
    mcp::{mcp, stdio},
    mcp_interrupts::shell,
    rehearse::{Rehearse, Run},
};

const TOKEN: &str = "ghp_0123456789abcdefABCD";

/// The lines of the log, each an object.
fn records(run: &Run) -> Vec<Json> {
    run.stderr().lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn the_stderr_of_a_server_is_printed_with_its_name_unless_it_is_unwanted() {
    let story = |args: &[&str]| {
        let args = args.iter().copied();
        mcp(["call-tool", "echo", "text=a"]).args(args).args(shell(&format!("echo ready {TOKEN} >&2; $MOCK"))).run()
    };
    let run = story(&[]).stdout("a -\n").code(0);
    assert_eq!(run.stderr(), "[sh] ready ***\n");
    assert_eq!(story(&["--quiet"]).code(0).stderr(), "");
    let run = story(&["--log-format", "json"]).code(0);
    let record = &records(&run)[0];
    assert_eq!([&record["msg"], &record["server"], &record["stream"]], ["ready ***", "sh", "stderr"]);
    story(&["--quiet", "--trace"]).stderr_has("cannot be used with").code(2);
}

#[test]
fn the_stack_trace_of_a_server_is_printed() {
    let reply = r#"{ rpcError: { code: -32603, message: broken, data: { stack: "at f (s.js:1:2)" } } }"#;
    let script = format!("tools: [{{ name: call, reply: {reply} }}]");
    let run = mcp(["call-tool", "call"]).file("s.yaml", &script).args(stdio("s.yaml")).run().code(1);
    run.stderr_has("error: rpc: error -32603: broken").stderr_has("data: {\"stack\":\"at f (s.js:1:2)\"}\n");
    let crash = "(echo Traceback:; echo '  File s.py, line 3'; echo ValueError: no) >&2; exit 1";
    let run = mcp(["info", "--protocol", "2025-11-25", "--quiet"]).args(shell(crash)).run().code(3);
    run.stderr_has("    Traceback:\n      File s.py, line 3\n    ValueError: no\n");
}

#[test]
fn an_error_repeats_no_stderr_that_was_printed_before() {
    let story = |args: &[&str]| {
        mcp(["info", "--protocol", "2025-11-25"])
            .args(args.iter().copied())
            .args(shell("echo no database >&2; exit 7"))
            .run()
    };
    let run = story(&[]).code(3);
    assert!(
        run.stderr().starts_with("[sh] no database\nerror: MCP server 'sh' connection failed: "),
        "{}",
        run.stderr()
    );
    assert_eq!(run.stderr().matches("no database").count(), 1, "{}", run.stderr());
    story(&["--quiet"]).stderr_has("last lines of its standard error:\n    no database\n").code(3);

    let dead = json!({ "mcpServers": { "dead": { "command": "sh", "args": ["-c", "echo no database >&2; exit 7"] } } });
    let repl = |args: &[&str]| {
        let story =
            Rehearse::new().env("HOME", "home").args(["repl", "--mcp-config", "c.json", "--protocol", "2025-11-25"]);
        story.args(args.iter().copied()).file("c.json", &dead.to_string()).stdin("connect dead\n").run().code(1)
    };
    let run = repl(&[]).stderr_has("[dead] no database\n");
    assert!(!run.stderr().contains("last lines"), "{}", run.stderr());
    let run = repl(&["--quiet"]).stderr_has("last lines of its standard error:\n    no database\n");
    assert!(!run.stderr().contains("[dead]"), "{}", run.stderr());
}

#[test]
fn a_duplicate_tool_is_logged_in_the_words_of_cpe() {
    let server = |filter: &str| json!({ "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "t.yaml"], "disabledTools": [filter] });
    let config = json!({ "mcpServers": { "server1": server("other"), "server2": server("none") } }).to_string();
    let story = |format: &str| {
        let story = mcp(["list-tools", "--mcp-config", "c.cpe.yaml", "--log-format", format]);
        story
            .file("c.cpe.yaml", &config)
            .file("t.yaml", "tools: [{ name: read_file, reply: a }, { name: other, reply: b }]")
            .run()
            .code(0)
    };
    let warning =
        "skipping duplicate tool name 'read_file' in server 'server2' (already registered from server 'server1')";
    story("human").stderr_has(&format!("warning: {warning}\n"));
    let records = records(&story("json"));
    let duplicate = records.iter().find(|it| it["msg"] == "mcp tool registration warning").expect("a warning");
    assert_eq!([&duplicate["level"], &duplicate["warning"]], ["WARN", warning]);
    let filtered = records.iter().find(|it| it["msg"] == "mcp tools filtered").expect("a filter");
    assert_eq!([&filtered["server"], &filtered["filtered"]], ["server1", "other"]);
}

#[test]
fn every_message_is_a_line_of_json_if_the_log_is() {
    let run = mcp(["info", "--http", "http://127.0.0.1:1/mcp", "--log-format", "json"]).run().stdout("").code(3);
    let records = records(&run);
    assert_eq!((records.len(), &records[0]["level"]), (1, &json!("ERROR")), "{records:?}");
    let story = Rehearse::new().args(["--log-format", "json", "mcp", "list-tools", "--mcp-config", ".mcp.json"]);
    let run = story.file(".mcp.json", "{\"mcpServers\": {\"one\": {}}}").run().code(2);
    assert_eq!(self::records(&run)[0]["level"], "ERROR");
}

#[test]
fn a_server_sees_the_client_that_the_user_names() {
    let seen = |story: Rehearse| {
        let run = story.args(["--trace", "--protocol", "2025-11-25"]).run().code(0);
        let line = run.stderr().lines().find(|line| line.contains("\"initialize\"")).expect("a handshake").to_owned();
        let frame: Json = serde_json::from_str(&line[line.find('{').expect("a frame")..]).expect("JSON");
        frame["params"]["clientInfo"].clone()
    };
    let version = env!("CARGO_PKG_VERSION");
    let story = || mcp(["info"]).args(stdio("tools.yaml"));
    assert_eq!(seen(story()), json!({ "name": "rehearse", "version": version }));
    assert_eq!(seen(story().args(["--client-info", "acme"])), json!({ "name": "acme", "version": version }));
    let whole = json!({ "name": "acme", "title": "Acme", "version": "7" });
    assert_eq!(seen(story().args(["--client-info".to_owned(), whole.to_string()])), whole);
    story().args(["--client-info", "{\"nam\": 1}"]).run().stderr_has("unknown field `nam`").code(2);
    let server = json!({ "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"] });
    let config = json!({ "mcpServers": { "one": server } }).to_string();
    let of_cpe = mcp(["info", "--mcp-config", "c.cpe.yaml"]).file("c.cpe.yaml", &config);
    assert_eq!(seen(of_cpe), json!({ "name": "cpe", "title": "CPE", "version": version }));
}
