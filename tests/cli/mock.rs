//! `rehearse mock` with connections, signals and streams. The rest is in `tests/console/mock-scripts.md`.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::{
        fd::OwnedFd,
        unix::{fs::PermissionsExt, net::UnixStream},
    },
    process::{Command, Stdio},
};

use serde_json::Value as Json;

use crate::rehearse::{Post, Rehearse};

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
#[test]
fn a_fault_is_in_the_journal_and_the_verbose_output() {
    let script =
        "tools: [{ name: later, reply: x }]\nfaults: [{ on: { tool: later, call: 1 }, do: { status: 503 } }]\n";
    let mut mock = Rehearse::new()
        .file("mock.yaml", script)
        .args(["mock", "mock.yaml", "--listen", ":0", "--journal", "journal.jsonl", "--verbose"])
        .start();
    let address = mock.address("http://", "/mcp");
    modern_call(&address, "later").response();
    modern_call(&address, "later").response();
    mock.signal("TERM");
    let run = mock.end().stderr_has("tools.later, fault status\n").stderr_has("tools.later\n").code(0);
    let journal = run.read("journal.jsonl");
    let entries: Vec<Json> = journal.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(
        (&entries[0]["handling"], &entries[0]["faults"][0]),
        (&Json::from("tools.later"), &Json::from("status"))
    );
    assert!(entries[1].get("faults").is_none(), "{journal}");
}

const PONG: &str = r#"{"jsonrpc":"2.0","id":"p","result":{}}"#;

const SCRIPT: &str = "
server: { name: stories }
tools:
  - { name: later, delay: 100ms, reply: here it is }
  - { name: never, delay: 60s, reply: never }
  - { name: dies, steps: [{ exit: 7 }] }
";

pub(crate) fn call(tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
}

pub(crate) fn modern_call(address: &str, tool: &str) -> Post {
    let meta =
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = call(tool).replace("\"params\":{", &format!("\"params\":{{\"_meta\":{meta},"));
    let headers =
        [("Host", address), ("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
    Post::send(address, "/mcp", &headers, &body)
}

fn listening() -> (crate::rehearse::Running, String) {
    let mut mock = Rehearse::new()
        .file("mock.yaml", SCRIPT)
        .args(["mock", "mock.yaml", "--listen", "127.0.0.1:0", "--verbose"])
        .start();
    let address = mock.address("http://", "/mcp");
    mock.stderr_line("Ctrl-C");
    (mock, address)
}

#[test]
fn a_port_in_use_is_reported_with_a_hint() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    Rehearse::new()
        .args(["mock", "basic", "--listen", &address])
        .run()
        .stdout("")
        .stderr_has(&format!("cannot listen on {address}: the port is in use"))
        .stderr_has("use a free port with `--listen :0`")
        .code(3);
    for served in [&[][..], &["--listen", ":0"], &["--exec", "--", "true"]] {
        let admin = format!("--admin={address}");
        let run = Rehearse::new().args(["mock", "basic", &admin]).args(served.iter().copied()).stdin(PING).run();
        run.stdout("").stderr_has("the port is in use").stderr_has("use a free port with `--admin`").code(3);
    }
}

#[test]
fn the_urls_and_a_client_configuration_are_printed() {
    let mut mock = Rehearse::new().args(["mock", "basic", "--listen", "0", "--seed", "42"]).start();
    mock.stderr_line("(seed 42)");
    let address = mock.address("http://", "/mcp");
    assert_eq!(mock.address("http://", "/sse"), address);
    assert_eq!(mock.address("ws://", "/ws"), address);
    mock.stderr_line("Ctrl-C");
    mock.signal("TERM");
    let run = mock.end().stdout("").code(0);
    let shown = run.stderr();
    let config = &shown[shown.find('{').expect("a configuration")..=shown.rfind('}').expect("a configuration")];
    let config: Json = serde_json::from_str(config).expect("JSON");
    assert_eq!(config["mcpServers"]["basic"]["url"], format!("http://{address}/mcp"));
}

#[test]
fn a_listening_mock_finishes_responses_after_sigterm() {
    let (mut mock, address) = listening();
    let post = modern_call(&address, "later");
    mock.stderr_line("tools/call later");
    mock.signal("TERM");
    assert!(post.response().contains("here it is"));
    mock.end().stdout("").code(0);
}

#[test]
fn a_second_signal_ends_a_listening_mock_at_once() {
    let (mut mock, address) = listening();
    let post = modern_call(&address, "never");
    mock.stderr_line("tools/call never");
    mock.signal("INT");
    mock.stderr_line("(Ctrl-C to force)");
    mock.signal("INT");
    mock.end().code(0);
    assert!(!post.response().contains("never"));
}

#[test]
fn a_connection_too_many_is_refused_and_reported() {
    let args = ["mock", "basic", "--listen", ":0", "--max-connections", "1", "--verbose"];
    let mut mock = Rehearse::new().args(args).start();
    let address = mock.address("http://", "/mcp");
    let open = std::net::TcpStream::connect(&address).expect("connects");
    let refused = Post::send(&address, "/mcp", &[("Host", &address)], PING).response();
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    mock.stderr_line("refused: 503: no more than 1 connections may be open");
    drop(open);
    mock.signal("TERM");
    mock.end().code(0);
}

#[test]
fn signals_end_a_mock_that_renders_a_template() {
    let script = r#"
tools:
  - name: busy
    steps: [{ wait: 1ms }, { reply: "{% set x = 'x' | repeat(30000000) %}{% for n in range(9999) %}{% if x ~ x %}{% endif %}{% endfor %}" }]
"#;
    let start = |args: &[&str]| {
        let args = ["mock", "mock.yaml", "--verbose"].iter().chain(args).copied();
        Rehearse::new().file("mock.yaml", script).args(args).start()
    };
    let (mut listening, mut on_stdio) = (start(&["--listen", ":0"]), start(&[]));
    let address = listening.address("http://", "/mcp");
    let post = modern_call(&address, "busy");
    on_stdio.send(&format!("{INITIALIZE}\n{}", call("busy")));
    for mut mock in [listening, on_stdio] {
        mock.stderr_line("tools.busy");
        mock.signal("TERM");
        mock.signal("INT");
        mock.end();
    }
    drop(post);
}

#[test]
fn a_stopping_mock_reports_that_it_waits_for_responses() {
    let script = "tools: [{ name: later, reply: here it is }]\nfaults: [{ on: { tool: later }, do: { delay: 60m } }]\n";
    let start = |args: &[&str]| {
        let args = ["mock", "mock.yaml", "--verbose"].iter().chain(args).copied();
        Rehearse::new().file("mock.yaml", script).args(args).start()
    };
    let (mut listening, mut on_stdio) = (start(&["--listen", ":0"]), start(&[]));
    let address = listening.address("http://", "/mcp");
    let post = modern_call(&address, "later");
    on_stdio.send(&format!("{INITIALIZE}\n{}", call("later")));
    for mut mock in [listening, on_stdio] {
        mock.stderr_line("tools.later");
        mock.signal("TERM");
        mock.stderr_line("(Ctrl-C to force)");
        mock.signal("TERM");
        mock.end().code(0);
    }
    assert!(!post.response().contains("here it is"));
}

#[test]
fn sigint_ends_a_mock_on_stdio() {
    for signal in ["INT", "TERM"] {
        let mut mock = Rehearse::new().file("mock.yaml", SCRIPT).args(["mock", "mock.yaml"]).start();
        mock.send(INITIALIZE);
        mock.send(PING);
        mock.stdout_line(PONG);
        mock.signal(signal);
        mock.end().code(0);
    }
}

#[test]
fn an_exit_step_ends_the_process_with_its_code() {
    let stdin = format!("{INITIALIZE}\n{}\n", call("dies"));
    Rehearse::new().file("mock.yaml", SCRIPT).args(["mock", "mock.yaml"]).stdin(&stdin).run().code(7);
    let (mock, address) = listening();
    modern_call(&address, "dies").response();
    mock.end().code(7);
}

#[test]
fn the_journal_has_every_request_and_only_its_owner_can_read_it() {
    let mut mock = Rehearse::new()
        .file("mock.yaml", SCRIPT)
        .args(["mock", "mock.yaml", "--listen", ":0", "--journal", "journal.jsonl"])
        .start();
    let address = mock.address("http://", "/mcp");
    modern_call(&address, "later").response();
    modern_call(&address, "latr").response();
    Post::send(&address, "/mcp", &[("Host", "evil.example.com")], PING).response();
    Post::send(&address, "/messages?sessionId=1", &[("Host", &address)], PING).response();
    mock.signal("TERM");
    let run = mock.end().code(0);
    let journal = run.read("journal.jsonl");
    let mut entries: Vec<Json> = journal.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    // A call that takes time has a second line at its end.
    let end = entries.remove(1);
    assert_eq!((&end["number"], &end["answer"], &end["request"]), (&1.into(), &"answered".into(), &Json::Null));
    let values = |name: &str| entries.iter().map(|entry| entry[name].clone()).collect::<Vec<_>>();
    assert_eq!(values("number"), [1, 2, 3, 4]);
    assert_eq!(values("transport"), ["http", "http", "http", "sse"]);
    assert_eq!(entries[0]["handling"], "tools.later");
    assert_eq!(entries[0]["request"]["params"]["name"], "later");
    assert!(entries[1]["handling"].as_str().is_some_and(|it| it.contains("closest is later")), "{journal}");
    assert!(entries[2]["handling"].as_str().is_some_and(|it| it.starts_with("refused: 403")), "{journal}");
    let mode = std::fs::metadata(run.path("journal.jsonl")).expect("written").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn another_host_is_accepted_only_if_allowed() {
    let mut mock = Rehearse::new().args(["mock", "basic", "--listen", ":0", "--allow-host", "mock.internal"]).start();
    let address = mock.address("http://", "/mcp");
    let status = |host| {
        let response = Post::send(&address, "/mcp", &[("Host", host)], INITIALIZE).response();
        response.split(' ').nth(1).map(str::to_owned)
    };
    assert_eq!(status("mock.internal").as_deref(), Some("200"));
    assert_eq!(status("evil.example.com").as_deref(), Some("403"));
    Rehearse::new().args(["mock", "basic", "--allow-host", "mock.internal"]).run().stderr_has("--listen").code(2);
}

#[test]
fn only_a_terminal_gets_colours_unless_they_are_forced() {
    let broken = || Rehearse::new().file("mock.yaml", "tool: []").args(["mock", "mock.yaml", "--verbose"]);
    let served = || Rehearse::new().args(["mock", "basic", "--verbose"]).stdin(PING);
    for prepare in [&broken as &dyn Fn() -> Rehearse, &served] {
        prepare().run().coloured(false);
        prepare().env("NO_COLOR", "1").run().coloured(false);
        prepare().env("CLICOLOR_FORCE", "1").run().coloured(true);
    }
}

#[test]
fn stdin_and_stdout_may_be_sockets_as_node_makes_them() {
    let (near_in, far_in) = UnixStream::pair().expect("a socket");
    let (mut near_out, far_out) = UnixStream::pair().expect("a socket");
    let client = std::thread::spawn(move || {
        (&near_in).write_all(format!("{PING}\n").as_bytes()).expect("writes");
        drop(near_in);
        let mut answer = String::new();
        near_out.read_to_string(&mut answer).expect("reads");
        answer
    });
    let status = Rehearse::new().args(["mock", "basic"]).status(OwnedFd::from(far_in), OwnedFd::from(far_out));
    assert!(status.success());
    assert_eq!(client.join().expect("a client"), format!("{PONG}\n"));
}

#[test]
fn a_mock_ends_when_its_client_is_killed_during_a_response() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("mock.yaml"), SCRIPT).expect("writes");
    let mut mock = Command::new(env!("CARGO_BIN_EXE_rehearse"))
        .args(["mock", "mock.yaml"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let mut stdin = mock.stdin.take().expect("a pipe");
    stdin.write_all(format!("{INITIALIZE}\n{}\n{PING}\n", call("never")).as_bytes()).expect("writes");
    let stdout = BufReader::new(mock.stdout.take().expect("a pipe"));
    assert!(stdout.lines().nth(1).expect("a line").expect("UTF-8").contains("\"p\""), "the call is under way");
    assert_eq!(mock.wait().expect("waits").code(), Some(0));
    drop(stdin);
}

#[test]
fn an_unread_stderr_blocks_neither_the_mock_nor_the_journal() {
    let args = ["mock", "mock.yaml", "--verbose", "--journal", "journal.jsonl"];
    for signal in [None, Some("TERM")] {
        let mut mock = Rehearse::new().file("mock.yaml", SCRIPT).args(args).unread_stderr().start();
        mock.send(&[PING; 5000].join("\n"));
        mock.send(&PING.replace("\"p\"", "\"last\""));
        mock.stdout_line("\"last\"");
        match signal {
            None => mock.close_stdin(),
            Some(signal) => mock.signal(signal),
        }
        assert_eq!(mock.end().code(0).read("journal.jsonl").lines().count(), 5001, "{signal:?}");
    }
}

#[test]
fn a_listening_mock_with_an_unread_stderr_ends_like_any_other() {
    let args = ["mock", "mock.yaml", "--listen", ":0", "--journal", "/dev/stdout", "--verbose"];
    let mut mock = Rehearse::new().file("mock.yaml", SCRIPT).args(args).unread_stderr().start();
    let address = mock.address("http://", "/mcp");
    let name = "n".repeat(200);
    for _ in 0..500 {
        modern_call(&address, &name).response();
    }
    let post = modern_call(&address, "never");
    mock.stdout_line("tools.never");
    mock.signal("TERM");
    mock.signal("INT");
    mock.end().code(0);
    assert!(!post.response().contains("never"));
}

#[test]
fn a_mock_on_stdio_finishes_responses_after_a_signal_unless_a_second_one_arrives() {
    let start = || {
        let mut mock = Rehearse::new().file("mock.yaml", SCRIPT).args(["mock", "mock.yaml", "--verbose"]).start();
        mock.send(INITIALIZE);
        mock
    };
    let mut mock = start();
    mock.send(&call("later"));
    mock.stderr_line("tools.later");
    mock.signal("TERM");
    mock.end().stdout_has("here it is").code(0);
    let mut mock = start();
    mock.send(&call("never"));
    mock.stderr_line("tools.never");
    mock.signal("TERM");
    mock.stderr_line("(Ctrl-C to force)");
    mock.signal("INT");
    mock.end().code(0);
}
