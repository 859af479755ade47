//! `rehearse mcp`: how it stands with servers, and what an interruption leaves of the connections with them.

use serde_json::{Value as Json, json};

use crate::{
    mcp::{json_of, listening, mcp, stdio},
    orphans::{gone, gone_already, started},
    rehearse::Rehearse,
};

#[test]
fn the_status_of_every_server_is_a_table() {
    let servers = json!({ "mcp": { "servers": {
        "good": { "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"] },
        "gone": { "type": "http", "httpUrl": "http://127.0.0.1:1/mcp" },
    } } })
    .to_string();
    let story = || mcp(["status", "--mcp-config", "c.json", "--dialect", "code_agent"]).file("c.json", &servers);
    let run = story().run().code(3);
    let lines: Vec<_> = run.stdout_text().lines().collect();
    assert_eq!(
        lines[..4],
        [
            "MCP Servers Status:",
            "┌────────┬───────────┬───────┬─────────┐",
            "│ Server │ Status    │ Tools │ Updated │",
            "├────────┼───────────┼───────┼─────────┤",
        ]
    );
    assert!(lines[4].starts_with("│ good   │ Connected │ 9     │ ") && lines[4].ends_with("s ago  │"), "{}", lines[4]);
    assert_eq!(
        lines[5..],
        [
            "│ gone   │ Failed    │ -     │ Error   │",
            "└────────┴───────────┴───────┴─────────┘",
            "",
            "Use 'rehearse mcp list-tools' to see all tools",
            "Use 'rehearse mcp debug <server>' for more details",
        ]
    );
    run.stderr_has("WARN: MCP server 'gone' connection failed: cannot reach")
        .stderr_has("INFO: Continuing with other MCP servers\n");
    let status = json_of(story(), 3);
    assert_eq!((&status["servers"][0]["status"], &status["servers"][0]["tools"]), (&json!("connected"), &json!(9)));
    assert_eq!((&status["servers"][1]["status"], &status["servers"][1]["tools"]), (&json!("failed"), &Json::Null));
    mcp(["status"]).args(stdio("tools.yaml")).run().stdout_has("Connected").code(0);
}

#[test]
fn servers_are_asked_for_a_sign_of_life() {
    for (protocol, method) in [("2025-11-25", "ping"), ("2026-07-28", "server/discover")] {
        let story = || mcp(["ping", "--protocol", protocol]).args(stdio("tools.yaml"));
        story().run().stdout_has(&format!("✓ rehearse answered {method} after ")).code(0);
        assert_eq!(json_of(story(), 0)["servers"][0]["method"], method);
    }
    mcp(["ping", "--http", "http://127.0.0.1:1/mcp"]).run().stdout("").stderr_has("connection failed").code(3);
}

#[test]
fn an_interrupted_call_is_cancelled_on_the_wire_and_leaves_nobody() {
    let (mut server, address) = listening("tools.yaml");
    for (flag, url) in [("--http", format!("http://{address}/mcp")), ("--ws", format!("ws://{address}/ws"))] {
        let calling = mcp(["call-tool", "never", "--protocol", "2025-11-25", flag, &url, "--trace"]).start();
        server.stderr_line("tools/call never");
        calling.signal("INT");
        let run = calling.end().stdout("").stderr_has("interrupted: closing the connections").code(3);
        assert!(run.stderr().contains("\"method\":\"notifications/cancelled\""), "{}", run.stderr());
        server.stderr_line("cancelled");
    }
    let (calling, processes) =
        started(mcp(["call-tool", "never", "--trace"]).args(stdio("tools.yaml")), [" mock tools.yaml", " guard"]);
    let mut calling = calling;
    calling.stderr_line("\"method\":\"tools/call\"");
    calling.signal("TERM");
    calling.end().stderr_has("interrupted").stderr_has("notifications/cancelled").code(3);
    gone_already(&processes);
}

#[test]
fn an_interrupted_attempt_to_connect_leaves_nobody() {
    let deaf = "sh -c \"trap '' TERM; sleep 4341 & sleep 4342; true\"";
    let story = || mcp(["info", "--timeout", "10m", "--stdio", deaf]);
    let (connecting, processes) = started(story(), ["sleep 4341", "sleep 4342", " guard"]);
    connecting.signal("INT");
    connecting.end().stderr_has("interrupted").code(3);
    gone_already(&processes);
    let (connecting, processes) = started(story(), ["sleep 4341", "sleep 4342"]);
    connecting.signal("KILL");
    gone(&processes);
}

#[test]
fn an_interrupted_listing_ends_at_once() {
    let script = "tools: [{ name: t, reply: x }]\nfaults: [{ on: { method: tools/list }, do: { delay: 60s } }]";
    let mut listing = mcp(["list-tools", "--trace"]).args(stdio("slow.yaml")).file("slow.yaml", script).start();
    listing.stderr_line("\"method\":\"tools/list\"");
    listing.signal("INT");
    listing.end().stderr_has("interrupted").code(3);
}

/// A server that does something when it is let go, as the shell of this command.
fn shell(script: &str) -> [String; 2] {
    [
        "--stdio".to_owned(),
        format!("sh -c \"{}\"", script.replace("$MOCK", &format!("{} mock tools.yaml", Rehearse::BINARY))),
    ]
}

#[test]
fn a_server_is_let_go_in_order() {
    let run = mcp(["ping"]).args(shell("$MOCK; echo let go > told")).run().code(0);
    assert_eq!(run.read("told"), "let go\n");
}

#[test]
fn a_second_signal_does_not_wait_for_a_server_that_does_not_leave() {
    let stays = shell("trap '' TERM; $MOCK; sleep 4343; true");
    let calling = mcp(["call-tool", "never", "--trace"]).args(stays);
    let (mut calling, mock) = started(calling, [" mock tools.yaml"]);
    calling.stderr_line("\"method\":\"tools/call\"");
    calling.signal("INT");
    calling.stderr_line("interrupted");
    calling.signal("INT");
    calling.end().code(3);
    gone(&mock);
}
