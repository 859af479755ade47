//! The connection and approval options of `rehearse mcp` and the REPL.

use serde_json::{Value as Json, json};

use crate::{
    mcp::{json_of, mcp},
    rehearse::Rehearse,
};

const COUNTED: &str = "tools:\n  - { name: look, annotations: { readOnlyHint: true }, reply: 'It is {{ call }}' }\n  \
                       - { name: touch, reply: 'It is {{ call }}' }\n\
                       prompts: [{ name: p, messages: [] }]";

/// A config `mcp.json` with two shell scripts as servers.
fn shells(story: Rehearse, one: &str, two: &str) -> Rehearse {
    let server = |script: &str| {
        let script = script.replace("$MOCK", &format!("{} mock m.yaml", Rehearse::BINARY));
        json!({ "command": "sh", "args": ["-c", script] })
    };
    let config = json!({ "mcpServers": { "one": server(one), "two": server(two) } });
    story.args(["--mcp-config", "mcp.json"]).file("mcp.json", &config.to_string()).file("m.yaml", COUNTED)
}

#[test]
fn connecting_is_retried() {
    let lame = "sh -c \"echo x >> tries; test $(wc -l < tries) -ge 3 || exit 1; exec $MOCK mock m.yaml\"";
    let lame = lame.replace("$MOCK", Rehearse::BINARY);
    let story = |retries: &[&str]| {
        let story =
            mcp(["call-tool", "look", "--protocol", "2025-11-25", "--stdio", &*lame]).args(retries.iter().copied());
        story.file("m.yaml", COUNTED)
    };
    let run = story(&["--retries", "2", "--retry-pause", "20ms"]).run().stdout("It is 1\n").code(0);
    assert_eq!(run.read("tries"), "x\nx\nx\n");
    assert_eq!(run.stderr().matches("; retrying in ").count(), 2, "{}", run.stderr());
    let run = story(&["--retries", "1", "--retry-pause", "0s"]).run().code(3);
    let run = run.stderr_has("warning: MCP server 'sh' connection failed: ").stderr_has("; retrying at once\n");
    assert_eq!(run.read("tries"), "x\nx\n");
    let run = story(&[]).run().code(3);
    assert_eq!(run.read("tries"), "x\n");
}

#[test]
fn parallel_connections_are_limited() {
    // The first server starts only after the second.
    let (waits, comes) = ("until test -e two; do sleep 0.01; done; $MOCK", "touch two; $MOCK");
    for command in ["list-tools", "status", "list-prompts"] {
        shells(mcp([command, "--parallel", "2"]), waits, comes).run().code(0);
    }
    // The second server checks whether the first has received requests.
    let notes = "while read -r line; do echo \"$line\" >> asked; echo \"$line\"; done | $MOCK";
    for (command, method) in [("list-tools", "tools/list"), ("list-prompts", "prompts/list")] {
        let looks = format!("grep -q {method} asked || touch early; $MOCK");
        let run = shells(mcp([command, "--parallel", "1"]), notes, &looks).run().code(0);
        assert!(run.path("asked").exists() && !run.path("early").exists(), "{command}");
    }
}

#[test]
fn calls_of_a_model_follow_the_approval_option() {
    let calls = "<look/>\n<touch/>";
    let story = |args: &[&str]| {
        let server = json!({ "command": Rehearse::BINARY, "args": ["mock", "m.yaml"], "alwaysAllow": ["look"] });
        let config = json!({ "mcpServers": { "one": server } }).to_string();
        let story = mcp([
            "call-tool",
            "--xml",
            "m.txt",
            "--max-calls",
            "2",
            "--mcp-config",
            "mcp.json",
            "--dialect",
            "roo",
            "--naming",
            "bare",
        ]);
        story.args(args.iter().copied()).file("m.txt", calls).file("mcp.json", &config).file("m.yaml", COUNTED)
    };
    story(&[]).run().stdout("It is 1\nIt is 1\n").code(0);
    for (who, why) in [("ask", "and there is no terminal to ask on"), ("never", "denied by --approve never")] {
        let run = story(&["--approve", who]).run().stdout("It is 1\n").code(1);
        run.stderr_has(&format!("error: the tool \"touch\" needs approval, {why}\n"));
    }
    let printed = json_of(story(&["--approve", "ask"]), 1);
    assert_eq!(printed["calls"][1]["failure"]["kind"], "denied");
    let run = story(&["--approve", "never", "--as", "engine"]).run().code(1);
    let printed: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    assert_eq!((&printed["calls"][0]["success"], &printed["calls"][1]["success"]), (&json!(true), &json!(false)));
    assert_eq!(printed["calls"][1]["content"][0]["text"], "Tool execution was denied by user.");
    mcp(["call-tool", "look", "--approve", "ask", "--stdio", "true"]).run().stderr_has("cannot be used with").code(2);
}

#[test]
fn an_interrupted_call_of_a_model_is_the_last() {
    let script = "tools: [{ name: never, delay: 60s, reply: never }]";
    let story = mcp(["call-tool", "--xml", "m.txt", "--max-calls", "2", "--trace", "--format", "json"]);
    let story = story.args(["--stdio".to_owned(), format!("{} mock m.yaml", Rehearse::BINARY)]);
    let mut calling = story.file("m.yaml", script).file("m.txt", "<never/>\n<never/>").start();
    calling.stderr_line("\"method\":\"tools/call\"");
    calling.signal("INT");
    let run = calling.end().stderr_has("notifications/cancelled").code(3);
    assert_eq!(run.stderr().matches("\"method\":\"tools/call\"").count(), 1, "{}", run.stderr());
    let printed: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    assert_eq!(printed["calls"].as_array().map(Vec::len), Some(1));
}

/// A REPL with one server, whose config allows `look`.
fn repl(args: &[&str]) -> Rehearse {
    let server =
        json!({ "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "m.yaml"], "alwaysAllow": ["look"] });
    let config = json!({ "mcpServers": { "one": server } }).to_string();
    let story =
        Rehearse::new().env("HOME", "home").env("XDG_CONFIG_HOME", "").args(["repl", "--mcp-config", "mcp.json"]);
    story.args(["--dialect", "roo"]).args(args.iter().copied()).file("mcp.json", &config).file("m.yaml", COUNTED)
}

#[test]
fn the_repl_approves_calls_as_configured() {
    let lines = "call look\ncall touch\n";
    repl(&["--approve", "always"]).stdin(lines).run().stdout("It is 1\nIt is 1\n").code(0);
    for (who, why) in [("ask", "and there is no terminal to ask on"), ("never", "denied by --approve never")] {
        let run = repl(&["--approve", who]).stdin(lines).run().stdout("It is 1\n").code(1);
        run.stderr_has(&format!("needs approval, {why}\n"));
    }
    repl(&["--approve", "never", "--yes"]).run().stderr_has("cannot be used with").code(2);
}

#[test]
fn the_repl_caches_results_of_read_only_tools_if_configured() {
    let lines = "call look\ncall look\ncall touch\ncall touch\n";
    repl(&["--yes"]).stdin(lines).run().stdout("It is 1\nIt is 2\nIt is 1\nIt is 2\n").code(0);
    let run = repl(&["--yes", "--result-ttl", "60m"]).stdin(lines).run();
    run.stdout("It is 1\nIt is 1\nIt is 1\nIt is 2\n").code(0);
}
