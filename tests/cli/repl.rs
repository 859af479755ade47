//! `rehearse repl` with signals and edits. The rest is in `tests/console/repl.md`.

use serde_json::{Value as Json, json};

use crate::{
    mcp::commands_of,
    orphans::{gone_already, started},
    rehearse::{Rehearse, Running, children},
};

const PAGE: &str = include_str!("../../docs/repl.md");

const TOOLS: &str = r#"
server: { name: tools, version: 1.0.0 }
tools:
  - name: echo
    description: Returns its input text.
    inputSchema: { type: object, properties: { text: { type: string }, n: { type: integer } }, required: [text] }
    reply: "{{ args.text }} {{ args.n | default('-') }}"
  - { name: fail, reply: { error: It never works. } }
  - { name: never, delay: 60s, reply: never }
  - { name: die, steps: [{ exit: 3 }] }
resources: [{ uri: "docs://index", name: index, text: The index. }]
"#;

/// On a machine without configs.
fn repl<S: Into<String>>(args: impl IntoIterator<Item = S>) -> Rehearse {
    let unset = ["XDG_CONFIG_HOME", "CODE_AGENT_MCP_SERVERS", "CODE_AGENT_MCP_CONFIG_PATH", "CODE_AGENT_MCP_DEBUG"];
    let story = unset.into_iter().fold(Rehearse::new(), |story, name| story.env(name, ""));
    story.env("HOME", "home").file("tools.yaml", TOOLS).args(["repl"]).args(args)
}

/// With the servers of this config, without approval.
fn with(servers: &Json) -> Rehearse {
    repl(["--mcp-config", "mcp.json", "--yes"]).file("mcp.json", &config(servers))
}

fn config(servers: &Json) -> String {
    json!({ "mcpServers": servers }).to_string()
}

fn mock(script: &str) -> Json {
    json!({ "command": Rehearse::BINARY, "args": ["mock", script] })
}

/// Starts and waits until all servers are connected.
fn connected(story: Rehearse) -> Running {
    let mut running = story.start();
    running.stderr_line("info: connected to MCP server 'one'");
    running
}

/// Replaces the config atomically, as an editor does.
fn save(running: &Running, text: &str) {
    std::fs::write(running.path("next.json"), text).expect("writes");
    std::fs::rename(running.path("next.json"), running.path("mcp.json")).expect("moves");
}

#[test]
fn a_hanging_server_delays_only_commands_that_may_concern_it() {
    let mute = json!({ "command": "sh", "args": ["-c", "exec sleep 4349"] });
    let story = |args: &[&str], is_mute_first: bool| {
        let servers = match is_mute_first {
            true => json!({ "two": mute, "one": mock("tools.yaml") }),
            false => json!({ "one": mock("tools.yaml"), "two": mute }),
        };
        with(&servers).args(["--start-timeout", "10m"]).args(args.iter().copied())
    };
    let lines = "list-tools one\ncall mcp__one__echo text=a\nread docs://index --server one\ncall mcp__one__fail\nreconnect one\n";
    let (mut running, processes) = started(story(&["--naming", "mcp__{server}__{tool}"], true), ["sleep 4349"]);
    running.send(lines);
    running.close_stdin();
    running.end().stdout_has("Returns its input text.").stdout_has("a -\nThe index.\nIt never works.\n").code(1);
    gone_already(&processes);
    // A name is settled when no earlier server may have it.
    let bare = ["--naming", "bare", "--duplicates", "first"];
    story(&bare, false).stdin("call echo text=a\n").run().stdout("a -\n").code(0);
    for (args, is_mute_first) in [(&bare[..], true), (&["--naming", "bare", "--duplicates", "last"], false)] {
        let (mut running, processes) = started(story(args, is_mute_first), ["sleep 4349"]);
        running.stderr_line("info: connected to MCP server");
        running.send("call echo text=a");
        running.signal("INT");
        running.end().stdout("").code(3);
        gone_already(&processes);
    }
}

#[test]
fn a_valid_edit_is_reloaded_and_an_invalid_one_is_not() {
    let one = || mock("tools.yaml");
    let mut running = connected(with(&json!({ "one": one() })));
    save(&running, &config(&json!({ "one": one(), "two": mock("tools.yaml") })));
    running.stderr_line("info: config reloaded: added two");
    running.stderr_line("info: connected to MCP server 'two': 4 tools");
    running.send("call mcp__two__echo text=a");
    running.stdout_line("a -");

    save(&running, "{\"mcpServers\": {\"one\": {\"comand\": 5}}");
    running.stderr_line("mcp.json:1:");
    running.stderr_line("not reloaded: still using the previous servers");
    running.send("call mcp__two__echo text=b");
    running.stdout_line("b -");

    save(&running, &config(&json!({ "one": one(), "gone": { "command": "/gone" } })));
    running.stderr_line("info: config reloaded: added gone; removed two");
    running.stderr_line("warning: MCP server 'gone' connection failed");
    running.send("call mcp__two__echo text=c");
    running.stderr_line("error: no server has a tool \"mcp__two__echo\"");
    running.send("reload");
    running.stderr_line("info: config reloaded: no server changed");
    running.close_stdin();
    running.end().code(1);
}

#[test]
fn an_invalid_default_file_keeps_its_servers() {
    let story = repl(["--yes"]).file(".mcp.json", &config(&json!({ "one": mock("tools.yaml") })));
    let mut running = connected(story);
    std::fs::write(running.path(".mcp.json"), "{").expect("writes");
    running.stderr_line("not reloaded: still using the previous servers");
    running.send("call echo text=a");
    running.stdout_line("a -");
    std::fs::remove_file(running.path(".mcp.json")).expect("removes");
    running.stderr_line("info: config reloaded: removed one");
    running.close_stdin();
    running.end().code(0);
}

#[test]
fn a_hanging_server_does_not_block_later_edits() {
    let one = || mock("tools.yaml");
    let mut running = connected(with(&json!({ "one": one() })).args(["--start-timeout", "10m"]));
    let hang = json!({ "command": "sleep", "args": ["1000"] });
    save(&running, &config(&json!({ "one": one(), "hang": hang })));
    running.stderr_line("info: config reloaded: added hang");
    save(&running, &config(&json!({ "one": one(), "hang": hang, "two": one() })));
    running.stderr_line("info: config reloaded: added two");
    running.stderr_line("info: connected to MCP server 'two': 4 tools");
    running.close_stdin();
    running.end().code(0);
}

#[test]
fn a_lost_connection_is_reported_and_restored() {
    let mut running = connected(with(&json!({ "one": mock("tools.yaml") })));
    running.send("call die");
    running.stderr_line("warning: lost the connection to MCP server 'one': ");
    running.stderr_line("info: reconnected to MCP server 'one'");
    running.send("call echo text=a");
    running.stdout_line("a -");
    running.close_stdin();
    running.end().code(1);
}

#[test]
fn a_changed_list_of_tools_is_reported() {
    let watched = json!({ "command": Rehearse::BINARY, "args": ["mock", "few.yaml", "--watch"] });
    let few = "tools: [{ name: a, reply: x }, { name: b, reply: x }]";
    let mut running = connected(with(&json!({ "one": watched })).file("few.yaml", few));
    std::fs::write(running.path("few.yaml"), "tools: [{ name: b, reply: x }, { name: c, reply: new }]")
        .expect("writes");
    running.stderr_line("info: the tools of MCP server 'one' changed: +c -a");
    running.send("call c");
    running.stdout_line("new");
    running.close_stdin();
    running.end().code(0);
}

#[test]
fn an_interruption_cancels_the_call_and_leaves_no_process() {
    let story = with(&json!({ "one": mock("tools.yaml") })).args(["--debug"]).stdin("call never\n");
    let (mut running, processes) = started(story, [" mock tools.yaml", " guard"]);
    running.stderr_line("\"method\":\"tools/call\"");
    running.signal("INT");
    running.end().stderr_has("\"notifications/cancelled\"").stderr_has("interrupted: closing connections").code(3);
    gone_already(&processes);
}

#[test]
fn the_repl_and_its_servers_end_with_the_pipe() {
    let mut running = connected(with(&json!({ "one": mock("tools.yaml") })));
    let servers = children(running.id());
    assert_eq!(servers.len(), 2, "a server and the guard");
    running.close_stdin();
    running.end().code(0);
    for server in servers {
        assert!(!std::path::Path::new(&format!("/proc/{server}")).exists());
    }
}

#[test]
fn the_session_of_the_page_has_the_shown_output() {
    let blocks: Vec<_> = PAGE.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect();
    let (_, config) = blocks.iter().find(|(info, _)| *info == "json .mcp.json").expect("a config");
    let (_, session) = blocks.iter().find(|(info, _)| *info == "text session").expect("a session");
    let folder = Rehearse::BINARY.strip_suffix("/rehearse").expect("a folder");
    let path: &'static str = format!("{folder}:{}", std::env::var("PATH").expect("a path")).leak();
    let mut parts = session.split("mcp> ").skip(1).map(|part| part.split_once('\n').expect("a command has an output"));
    let (lines, outputs): (Vec<_>, Vec<_>) = parts.by_ref().unzip();
    let story = repl(["--yes"]).env("PATH", path).file(".mcp.json", config).stdin(&format!("{}\n", lines.join("\n")));
    let run = story.run();
    let mut text = run.stdout_text();
    for output in outputs {
        let at = text.find(output.trim_end()).unwrap_or_else(|| panic!("no {output:?} in {text}"));
        text = &text[at..];
    }
    assert_eq!(lines.len(), 4);
}

#[test]
fn every_command_of_the_page_has_the_shown_output() {
    assert_eq!(commands_of(PAGE), 1);
}

#[test]
fn a_first_connection_that_fails_is_tried_again() {
    let script = format!("if [ -e seen ]; then exec {} mock tools.yaml; else touch seen; exit 7; fi", Rehearse::BINARY);
    let servers = json!({ "late": { "command": "sh", "args": ["-c", script] } });
    let mut running = with(&servers).args(["--dialect", "mcpilot", "--protocol", "2025-11-25"]).start();
    running.stderr_line("warning: MCP server 'late' connection failed: ");
    running.stderr_line("info: reconnected to MCP server 'late'");
    running.signal("TERM");
    running.end().code(3);
}
