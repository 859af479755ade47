//! `rehearse mcp`: the status of servers, pings, and disconnecting.

use std::{
    io::{Read, Write},
    net::TcpListener,
};

use serde_json::{Value as Json, json};

use crate::{
    mcp::{json_of, mcp, stdio},
    mcp_faults::assert_no_processes_in,
    mcp_interrupts::shell,
    orphans::{gone, started},
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
    run.stderr_has("warning: MCP server 'gone' connection failed: cannot reach")
        .stderr_has("info: continuing with other MCP servers\n");
    let status = json_of(story(), 3);
    assert_eq!((&status["servers"][0]["status"], &status["servers"][0]["tools"]), (&json!("connected"), &json!(9)));
    assert_eq!((&status["servers"][1]["status"], &status["servers"][1]["tools"]), (&json!("failed"), &Json::Null));
    mcp(["status"]).args(stdio("tools.yaml")).run().stdout_has("Connected").code(0);
}

#[test]
fn an_interrupted_status_shows_what_is_known() {
    let sh = |script: &str| json!({ "command": "sh", "args": ["-c", script] });
    let servers = json!({ "mcpServers": {
        "good": { "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"] },
        "gone": sh("exit 7"),
        "mute": sh("exec sleep 4348"),
        "late": sh("exit 8"),
    } })
    .to_string();
    let interrupted = |args: &[&str]| {
        let story = mcp(["status", "--mcp-config", "c.json", "--parallel", "1"]).args(args.iter().copied());
        let (running, processes) = started(story.file("c.json", &servers), ["sleep 4348"]);
        running.signal("INT");
        let run = running.end().code(3);
        gone(&processes);
        run
    };
    let run = interrupted(&[])
        .stdout_has("│ gone   │ Failed      │ -     │ Error   │\n")
        .stdout_has("│ good   │ Connected   │ 9     │ ");
    run.stdout_has("│ mute   │ Interrupted │ -     │ ")
        .stdout_has("│ late   │ Not asked   │ -     │ -       │\n")
        .stderr_has("warning: MCP server 'gone' connection failed: ");
    let run = interrupted(&["--json"]);
    let printed: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    let states: Vec<_> = (0..4).map(|server| printed["servers"][server]["status"].as_str().expect("a word")).collect();
    assert_eq!(states, ["connected", "failed", "interrupted", "notAsked"]);
    assert_eq!(printed["servers"][0]["tools"], 9);
    assert!(printed["servers"][1]["error"].as_str().expect("a text").contains("exit status: 7"), "{printed}");
}

#[test]
fn a_watched_status_is_printed_when_it_changes() {
    let lives = format!("exec {} mock tools.yaml", Rehearse::BINARY);
    let servers =
        json!({ "mcpServers": { "one": { "command": "sh", "args": ["-c", format!("echo $$ > pid; {lives}")] } } });
    let story = mcp(["status", "--watch=60s", "--mcp-config", "c.json"]).file("c.json", &servers.to_string());
    let pid = story.folder().join("pid");
    let mut running = story.start();
    running.stdout_line("│ one    │ Connected │ 9     │");
    let pid = std::fs::read_to_string(pid).expect("a process");
    assert!(std::process::Command::new("kill").arg(pid.trim()).status().expect("kills").success());
    running.stdout_line("│ one    │ Failed │ -     │");
    running.signal("INT");
    running.end().code(3);
    let mut running =
        mcp(["status", "--watch=100ms", "--mcp-config", "c.json"]).file("c.json", &servers.to_string()).start();
    running.stdout_line("│ one    │ Connected │ 9     │");
    let pid = std::fs::read_to_string(running.path("pid")).expect("a process");
    assert!(std::process::Command::new("kill").arg(pid.trim()).status().expect("kills").success());
    running.stdout_line("│ one    │ Failed │ -     │");
    running.stdout_line("│ one    │ Connected │ 9     │");
    running.signal("INT");
    running.end().code(3);
    mcp(["status", "--watch", "--json"]).run().stderr_has("cannot be used with").code(2);
}

#[test]
fn a_tool_has_a_timeout_of_its_own() {
    let never = |args: &[&str]| mcp(["call-tool", "never"]).args(args.iter().copied()).args(stdio("tools.yaml")).run();
    never(&["--tool-timeout", "never=200ms"]).stderr_has("error: timeout: no answer within 200ms").code(1);
    never(&["--tool-timeout", "never"]).stderr_has("write it as TOOL=30s").code(2);
    let server =
        json!({ "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"], "toolTimeouts": { "never": 300 } });
    let config = json!({ "mcp": { "servers": { "one": server } } }).to_string();
    let story =
        mcp(["call-tool", "never", "--mcp-config", "c.json", "--dialect", "code_agent"]).file("c.json", &config);
    story.run().stderr_has("error: timeout: no answer within 300ms").code(1);
}

#[test]
fn servers_are_pinged() {
    for (protocol, method) in [("2025-11-25", "ping"), ("2026-07-28", "server/discover")] {
        let story = || mcp(["ping", "--protocol", protocol]).args(stdio("tools.yaml"));
        story().run().stdout_has(&format!("✓ rehearse answered {method} in ")).code(0);
        assert_eq!(json_of(story(), 0)["servers"][0]["method"], method);
    }
    mcp(["ping", "--http", "http://127.0.0.1:1/mcp"]).run().stdout("").stderr_has("connection failed").code(3);
}

#[test]
fn a_server_is_disconnected_in_order() {
    let run = mcp(["ping"]).args(shell("$MOCK; echo let go > printed")).run().code(0);
    assert_eq!(run.read("printed"), "let go\n");
}

#[test]
fn a_call_does_not_wait_for_servers_that_cannot_have_the_tool() {
    let good = json!({ "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"] });
    let mute = json!({ "command": "sh", "args": ["-c", "exec sleep 4351"] });
    let story = |tool: &str, args: &[&str], is_mute_first: bool| {
        let servers = match is_mute_first {
            true => json!({ "mcpServers": { "mute": mute, "good": good } }),
            false => json!({ "mcpServers": { "good": good, "mute": mute } }),
        };
        let story = mcp(["call-tool", "--mcp-config", ".mcp.json", "--start-timeout", "10m", tool, "text=a"]);
        story.file(".mcp.json", &servers.to_string()).args(args.iter().copied())
    };
    for (naming, name) in [
        ("mcp_server_tool", "mcp_good_echo"),
        ("{server}__{tool}", "good__echo"),
        ("tool@server", "echo@good"),
        ("server::tool", "good::echo"),
        ("server.tool", "good.echo"),
    ] {
        let run = story(name, &["--naming", naming, "--parallel", "1"], true).run().stdout("a -\n").code(0);
        assert_eq!(run.stderr(), "", "{naming}");
    }
    let bare = ["--naming", "bare", "--duplicates", "first"];
    let run = story("echo", &bare, false).run().stdout("a -\n").code(0);
    assert_eq!(run.stderr(), "");
    assert_no_processes_in(&run.path(""));
    // An earlier server may have the tool, too; and an original name may be on any server.
    for (args, is_mute_first) in [(&bare[..], true), (&["--naming", "server.tool"], false)] {
        let (running, processes) = started(story("echo", args, is_mute_first), ["sleep 4351"]);
        running.signal("INT");
        running.end().stdout("").code(3);
        gone(&processes);
    }
}

#[test]
fn a_url_without_its_path_is_reported_with_a_hint() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            if stream.read(&mut [0; 4096]).is_ok() {
                let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        }
    });
    let said = |command: &[&str], path: &str| {
        let url = format!("http://{address}{path}");
        let run = Rehearse::new().args([command, &["--http", &url]].concat()).run().code(3);
        format!("{}{}", run.stdout_text(), run.stderr())
    };
    for command in [&["mcp", "list-tools"][..], &["check"]] {
        for (path, is_shown) in [("", true), ("/api?key=/mcp", true), ("/mcp", false), ("/mcp?key=a", false)] {
            let said = said(command, path);
            assert!(said.contains("404"), "{said}");
            assert_eq!(said.contains("; is the path right? it is often /mcp"), is_shown, "{said}");
        }
    }
}

#[test]
fn a_server_with_only_the_sse_transport_is_reported_with_a_hint() {
    let hint = "; if it only supports HTTP+SSE, use --sse, or the type sse in a config\n";
    let story = Rehearse::new().args(["mock", "legacy-2024-11-05", "--listen", "127.0.0.1:0"]);
    let mut old = story.start();
    let address = old.address("http://", "/sse");
    for command in [&["info"][..], &["list-tools"], &["call-tool", "add"], &["ping"], &["read-resource", "a://b"]] {
        for path in ["mcp", "sse"] {
            let run = mcp(command.iter().copied()).args(["--http", &format!("http://{address}/{path}")]).run().code(3);
            run.stderr_has(hint);
        }
        let at = format!("http://{address}/nothing");
        let run = mcp(command.iter().copied()).args(["--sse", &at]).run().code(3).stderr_has("HTTP 404");
        assert!(!run.stderr().contains("--sse"), "{}", run.stderr());
    }
}

#[test]
fn the_first_version_can_be_used_over_streamable_http() {
    let mut mock = Rehearse::new().args(["mock", "basic", "--listen", "127.0.0.1:0"]).start();
    let url = format!("http://{}/mcp", mock.address("http://", "/mcp"));
    let args = |command| mcp([command, "--http", &url, "--protocol", "2024-11-05"]);
    args("info").run().stdout_has("2024-11-05").code(0);
    args("list-tools").run().stdout_has("echo").code(0);
}
