//! `rehearse repl` with commands from a pipe.

use std::{io::Write, process::Stdio};

use serde_json::{Value as Json, json};

use crate::{
    mcp::commands_of,
    orphans::{gone_already, started},
    rehearse::{Rehearse, Running, children},
};

const PAGE: &str = include_str!("../../docs/repl.md");
const TOKEN: &str = "ghp_0123456789abcdefABCD";

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
  - name: ask
    steps:
      - elicit: { as: guest, message: Who?, requestedSchema: { type: object, properties: { name: { type: string } } } }
      - reply: "Hello {{ guest.content.name }}"
resources: [{ uri: "docs://index", name: index, text: The index. }]
prompts: [{ name: greet, arguments: [{ name: who, required: true }], messages: [{ role: user, content: { type: text, text: "Greet {{ args.who }}." } }] }]
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
fn the_status_of_every_server_is_a_table() {
    let servers = json!({ "one": mock("tools.yaml"), "gone": { "command": "/gone" } });
    let run = with(&servers).stdin("/mcp status\nquit\n").run().code(0);
    let lines: Vec<_> = run.stdout_text().lines().collect();
    assert_eq!(lines[..2], ["MCP Servers Status:", "┌────────┬───────────┬───────┬───────────┬─────────┬─────────┐"]);
    assert_eq!(lines[2], "│ Server │ Status    │ Tools │ Resources │ Prompts │ Updated │");
    let one = "│ one    │ Connected │ 5     │ 1         │ 1       │ ";
    assert!(lines[4].starts_with(one) && lines[4].ends_with("s ago  │"), "{}", lines[4]);
    assert_eq!(lines[5], "│ gone   │ Failed    │ -     │ -         │ -       │ Error   │");
    assert_eq!(
        lines[7..],
        ["", "Use '/mcp list-tools' to see all tools", "Use '/mcp debug <server>' for more details"]
    );
    run.stderr_has("info: connected to MCP server 'one': 5 tools\n")
        .stderr_has("warning: MCP server 'gone' connection failed: \"/gone\" could not be started")
        .stderr_has("info: continuing with other MCP servers\n");
}

#[test]
fn debug_shows_the_kinds_of_an_error_and_its_causes() {
    let gone = json!({ "gone": { "command": "/gone" } });
    let run = with(&gone).args(["--debug", "--retries", "0"]).stdin("connect gone\n").run().code(1);
    run.stderr_has("debug: caused by Spawn: \"/gone\" could not be started: No such file or directory (os error 2)")
        .stderr_has("\ndebug: caused by Os: No such file or directory (os error 2)\n");
}

#[test]
fn a_tool_is_called_by_both_names_with_converted_arguments() {
    let call = |line: &str| with(&json!({ "one": mock("tools.yaml") })).stdin(&format!("{line}\n")).run();
    call("call echo text=5 n=7").stdout("5 7\n").code(0);
    call("/mcp call mcp__one__echo 'text=two words'").stdout("two words -\n").code(0);
    call(r#"call echo {"text": "it's", "n": 1}"#).stdout("it's 1\n").code(0);
    call("call echo text=a --as code_agent").stdout_has("\"output\": \"a -\",\n").code(0);
    call("call fail --as cpe").stdout_has("\"tool_result_error\": true").code(1);
    call("call fail").stdout("It never works.\n").stderr_has("the tool fail reported an error").code(1);
    call("call echo text=a n=x").stdout("").stderr_has("error: n: expected the type integer, found \"x\"").code(1);
    call("call ecko").stderr_has("error: no server has a tool \"ecko\"; did you mean \"echo\"?").code(1);
    call("call echo -").stderr_has("error: cannot read `-`: standard input contains the commands; use @FILE").code(1);
    call("cal echo").stderr_has("error: unknown command \"cal\"; did you mean 'call'?").code(1);
    call("# only a note\n\n/mcp").stdout_has("Commands (the prefix /mcp is optional):").code(0);
    let two = json!({ "one": mock("tools.yaml"), "two": mock("tools.yaml") });
    let run = with(&two).stdin("call echo text=a\ncall mcp__two__echo text=b\n").run().stdout("b -\n").code(1);
    run.stderr_has("error: several servers have a tool \"echo\": mcp__one__echo, mcp__two__echo");
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
fn calls_that_need_approval_are_denied_without_a_user() {
    let story = |args: &[&str]| {
        let one = json!({ "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"], "alwaysAllow": ["echo"] });
        let story = repl(["--mcp-config", "mcp.json"]).args(args.iter().copied());
        story.file("mcp.json", &config(&json!({ "one": one })))
    };
    story(&["--dialect", "cline"]).stdin("call echo text=a\n").run().stdout("a -\n").code(0);
    let story = |args: &[&str]| story(args).args(["--dialect", "roo"]);
    let run = story(&[]).stdin("call echo text=a\ncall fail\n").run().stdout("a -\n").code(1);
    run.stderr_has("needs approval, and there is no terminal to ask on")
        .stderr_has("hint: use --yes to allow every call");
    let run = story(&[]).stdin("call fail --as engine\n").run().code(1);
    run.stdout_has("\"text\": \"Tool execution was denied by user.\"");
    story(&["--yes"]).stdin("call fail\n").run().stdout("It never works.\n").code(1);
    let ad_hoc = ["--stdio".to_owned(), format!("{} mock tools.yaml", Rehearse::BINARY)];
    repl(ad_hoc).stdin("call echo text=a\n").run().stdout("a -\n").code(0);
}

#[test]
fn server_requests_are_answered_from_a_file() {
    let story = || with(&json!({ "one": mock("tools.yaml") })).stdin("call ask\n");
    story().run().stdout("").stderr_has("The client does not declare the capability elicitation").code(1);
    let answers = "elicitation: { content: { name: Ada } }";
    story().args(["--answer", "a.yaml"]).file("a.yaml", answers).run().stdout("Hello Ada\n").code(0);
}

#[test]
fn servers_are_disabled_and_enabled() {
    let story =
        |lines: &[&str]| with(&json!({ "one": mock("tools.yaml") })).stdin(&format!("{}\n", lines.join("\n"))).run();
    let run = story(&["disable one", "status", "call echo text=a"]).code(1);
    run.stdout_has("MCP server 'one' is disabled\n")
        .stdout_has("│ one    │ Disabled │ -     │ -       │")
        .stderr_has("error: no server has a tool \"echo\"\n");
    let run = story(&["disable one", "connect one", "enable one", "call echo text=a"]).code(1);
    run.stderr_has("error: the server \"one\" is disabled; type 'enable one' to enable it")
        .stdout_has("MCP server 'one' is connected, with 5 tools\na -\n");
    let run = story(&["disconnect one", "status", "reconnect one", "call echo text=a"]).code(0);
    run.stdout_has("│ one    │ Not connected │ -     │ -       │").stdout_has("with 5 tools\na -\n");
    let run = story(&["connect on"]).stdout("").code(1);
    run.stderr_has("error: unknown server \"on\"; did you mean 'one'?");
}

#[test]
fn a_command_for_an_unreachable_server_fails() {
    let servers = json!({ "one": mock("tools.yaml"), "gone": { "command": "/gone" } });
    let run = with(&servers).stdin("connect gone\ncall echo text=a\nresources\n").run().code(1);
    run.stdout_has("a -\n")
        .stdout_has("- `docs://index` (index)")
        .stderr_has("error: MCP server 'gone' connection failed: \"/gone\" could not be started");
    with(&servers).args(["--on-connect-error", "fail"]).stdin("").start().end().stderr_has("connection failed").code(3);
}

#[test]
fn resources_and_prompts_are_read_from_the_server_that_lists_them() {
    let plain = "tools: [{ name: t, reply: x }]";
    let servers = json!({ "plain": mock("plain.yaml"), "one": mock("tools.yaml") });
    let lines = "resources one\nread docs://index\nprompts\nprompt greet who=Ada\nread docs://other\nprompt greet\n";
    let run = with(&servers).file("plain.yaml", plain).stdin(lines).run().code(1);
    run.stdout_has("# Resources of server 'one'\n\n- `docs://index` (index)\nThe index.\n")
        .stdout_has("# Prompts of server 'one'\n\n- `greet`\n  - `who` (required)\n")
        .stdout_has("## user\nGreet Ada.\n")
        .stderr_has("no server lists \"docs://other\"; select a server with --server; did you mean \"docs://index\"?\n")
        .stderr_has("error: rpc: ");
}

#[test]
fn tools_are_listed_with_their_servers_and_counted_when_they_are_called() {
    let lines = "list-tools\ncall echo text=a\ncall fail\ncall echo text=b\nusage\n";
    let run = with(&json!({ "one": mock("tools.yaml") })).stdin(lines).run().code(1);
    run.stdout_has("one (5)\n  mcp__one__echo text [n]  Returns its input text.\n  mcp__one__fail\n")
        .stdout_has("│ Server │ Tool │ Calls │ Errors │ Failures │")
        .stdout_has("│ one    │ echo │ 2     │ 0      │ 0        │")
        .stdout_has("│ one    │ fail │ 1     │ 1      │ 0        │");
    let run = with(&json!({ "one": mock("tools.yaml") })).stdin("list-tools one\nusage\n").run().code(0);
    run.stdout_has("# Available tools on server 'one'\n")
        .stdout_has("### `echo`\n")
        .stderr_has("no tool was called yet\n");
}

#[test]
fn a_lazy_repl_connects_on_first_use() {
    let story = |line: &str| {
        let story = with(&json!({ "one": mock("tools.yaml") })).args(["--lazy"]);
        story.stdin(&format!("status\n{line}\nstatus\n")).run().code(0)
    };
    for line in ["list-tools", "call echo text=a", "resources", "connect one"] {
        let run = story(line);
        let text = run.stdout_text();
        let (waiting, connected) = (text.find("│ Not connected │"), text.find("│ Connected │"));
        assert!(waiting.is_some() && connected > waiting, "{line}: {text}");
    }
}

#[test]
fn frames_are_printed_on_request_without_secrets() {
    let one = || json!({ "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"], "env": { "TOKEN": TOKEN } });
    let story = || with(&json!({ "one": one() }));
    let lines =
        format!("call echo text=before\ndebug one on\ncall echo text={TOKEN}\ndebug off\ncall echo text=after\n");
    let run = story().stdin(&lines).run().code(0);
    run.stdout_has("frames of 'one' are printed\n").stdout_has("frames are no longer printed\n");
    let run = story().stdin(&lines).run();
    let shown = run.stderr();
    assert!(shown.contains("→ one {\"jsonrpc\"") && shown.contains("\"text\":\"***\""), "{shown}");
    assert!(!shown.contains("before") && !shown.contains("after") && !shown.contains(TOKEN), "{shown}");
    assert!(shown.contains("debug: called 'mcp__one__echo' in "), "{shown}");

    let call = "call echo text=a\n";
    let wire = "\"method\":\"tools/call\"";
    for run in [
        story().args(["--debug"]).stdin(call).run(),
        story().args(["--trace"]).stdin(call).run(),
        story().env("CODE_AGENT_MCP_DEBUG", "1").stdin(call).run(),
    ] {
        run.stderr_has(wire).stderr_has("debug: connected to 'one' in ").code(0);
    }
    let servers = |debug: bool| {
        let server =
            json!({ "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"], "debug": debug });
        json!({ "mcp": { "enabled": true, "servers": { "one": server } } })
    };
    let of_all = json!({ "mcp": { "debug": true, "servers": { "one": mock("tools.yaml") } } });
    let story = |config: &Json| {
        let story = repl(["--mcp-config", "c.json", "--dialect", "code_agent", "--yes"]);
        story.file("c.json", &config.to_string()).stdin(call).run().code(0)
    };
    story(&servers(true)).stderr_has(wire);
    story(&of_all).stderr_has(wire);
    assert!(!story(&servers(false)).stderr().contains(wire));
}

#[test]
fn the_description_of_a_server_has_its_last_stderr_lines() {
    let chatty = format!("echo said hello >&2; exec {} mock tools.yaml", Rehearse::BINARY);
    let servers = json!({ "one": { "command": "sh", "args": ["-c", chatty] }, "gone": { "command": "/gone" } });
    let run = with(&servers).stdin("debug one\ndebug gone\ndebug\n").run().code(0);
    run.stdout_has("Connected to server: one\n  Name: tools 1.0.0\n")
        .stdout_has("Status: Connected, since ")
        .stdout_has("Tools: 5\n")
        .stdout_has("Standard error:\n  said hello\n")
        .stdout_has("Status: Failed, since ")
        .stdout_has("Last error: \"/gone\" could not be started")
        .stdout_has("one: off\ngone: off\n");
}

#[test]
fn a_valid_edit_is_reloaded_and_an_invalid_one_is_not() {
    let one = || mock("tools.yaml");
    let mut running = connected(with(&json!({ "one": one() })));
    save(&running, &config(&json!({ "one": one(), "two": mock("tools.yaml") })));
    running.stderr_line("info: config reloaded: added two");
    running.stderr_line("info: connected to MCP server 'two': 5 tools");
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
    running.stderr_line("info: connected to MCP server 'two': 5 tools");
    running.close_stdin();
    running.end().code(0);
}

#[test]
fn the_status_counts_callable_tools() {
    let one = json!({ "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"], "disabledTools": ["fail"] });
    let story =
        repl(["--mcp-config", "mcp.json", "--dialect", "roo"]).file("mcp.json", &config(&json!({ "one": one })));
    let run = story.stdin("status\ndebug one\n").run().code(0);
    run.stdout_has("│ one    │ Connected │ 4     │").stdout_has("Tools: 4 of 5\n");
}

#[test]
fn a_line_that_is_not_utf8_fails_and_the_repl_continues() {
    let story = with(&json!({ "one": mock("tools.yaml") }));
    let folder = story.folder().join("lines");
    std::fs::write(&folder, b"call echo text=\xff\ncall echo text=b\n").expect("writes");
    let lines = std::fs::File::open(&folder).expect("opens");
    let out = std::fs::File::create(story.folder().join("out")).expect("creates");
    let read = story.folder().join("out");
    // The folder is deleted with the test.
    let kept = std::fs::File::open(read).expect("opens");
    assert_eq!(story.status(lines, out).code(), Some(1));
    assert_eq!(std::io::read_to_string(kept).expect("reads"), "b -\n");
}

#[test]
fn a_secret_in_server_output_is_not_printed() {
    let secret = "sk-abc1234defg5678hijk";
    let chatty = format!("echo token={secret} >&2; exec {} mock tools.yaml", Rehearse::BINARY);
    let servers = json!({ "one": { "command": "sh", "args": ["chatty.sh"] } });
    let story = || with(&servers).file("chatty.sh", &chatty);
    let run = story().stdin("debug one\ncall die\n").run().code(1);
    let run = run.stdout_has("Standard error:\n  token=***\n").stderr_has("token=***");
    assert!(!run.stderr().contains(secret), "{}", run.stderr());
    let run = story().args(["--show-secrets"]).stdin("debug one\n").run().code(0);
    run.stdout_has(&format!("  token={secret}\n"));
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
fn the_repl_starts_without_servers() {
    let run = repl([""; 0]).stdin("status\ncall echo\n").run().stdout_has("MCP Servers Status:\n").code(1);
    run.stderr_has("No MCP servers configured.\nhint: --http URL").stderr_has("error: no server has a tool \"echo\"\n");
    let wrong = repl(["--mcp-config", "mcp.json"]).file("mcp.json", "{\"mcpServers\": {\"one\": {}}}");
    wrong.run().stdout("").stderr_has("mcp.json:1:").code(2);
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
fn results_that_cannot_be_written_are_not_a_success() {
    let story = with(&json!({ "one": mock("tools.yaml") }));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("opens");
    let mut process = story.command().stdin(Stdio::piped()).stdout(full).stderr(Stdio::null()).spawn().expect("starts");
    process.stdin.take().expect("a pipe").write_all(b"call echo text=hi\n").expect("writes");
    assert_eq!(process.wait().expect("ends").code(), Some(3));
}

#[test]
fn the_last_stderr_lines_of_a_server_are_printed_line_by_line() {
    let dead = json!({ "command": "sh", "args": ["-c", "echo fatal: no database >&2; exit 7"] });
    let run = with(&json!({ "dead": dead })).stdin("debug dead\n").run();
    run.stdout_has("last lines of its standard error:\n    fatal: no database\n");
}

#[test]
fn a_shadowed_tool_is_announced_at_any_time_and_called_with_its_server() {
    let who = |name: &str| format!("tools: [{{ name: who, reply: {name} }}]");
    let server = |script: &str, disabled| json!({ "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", script], "disabled": disabled });
    let servers = json!({ "one": server("one.yaml", false), "two": server("two.yaml", true) });
    let story = |commands: &str| {
        let story = repl(["--mcp-config", "mcp.json", "--dialect", "mcpilot", "--yes"]).stdin(commands);
        story.file("mcp.json", &config(&servers)).file("one.yaml", &who("one")).file("two.yaml", &who("two")).run()
    };
    let commands = "enable two\ncall who\ncall who --server two\ncall who {} --server=two --as engine\n";
    let run = story(commands).stdout_has("one\ntwo\n").stdout_has("\"text\": \"two\"").code(0);
    let notice = "skipping duplicate tool name 'who' in server 'two' (already registered from server 'one')";
    assert_eq!(run.stderr().matches(notice).count(), 1, "{}", run.stderr());
    let run = story("call whom --server one\ncall who --server tow\n").code(1);
    run.stderr_has("server 'one' has no tool \"whom\"; did you mean \"who\"?").stderr_has("did you mean 'two'?");
}

#[test]
fn the_status_says_why_a_server_failed() {
    let servers = json!({ "one": mock("tools.yaml"), "gone": { "command": "/gone" } });
    let run = with(&servers).stdin("status\n").run().stdout_has("│ gone   │ Failed    │").code(0);
    let reason = "warning: MCP server 'gone' connection failed: \"/gone\" could not be started";
    assert_eq!(run.stderr().matches(reason).count(), 2, "{}", run.stderr());
}

#[test]
fn a_long_description_is_cut_after_its_first_sentence_and_wrapped() {
    let long = "tools: [{ name: read, description: 'Reads one file of the folder that the root names, with its lines \
                and columns as they are. Else it fails.', reply: x }]";
    let run = with(&json!({ "one": mock("long.yaml") })).file("long.yaml", long).stdin("list-tools\n").run().code(0);
    let lines = "  mcp__one__read\n      Reads one file of the folder that the root names, with its lines and\n      columns as they are.\n";
    run.stdout(&format!("one (1)\n{lines}"));
}
