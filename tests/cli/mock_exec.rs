//! `rehearse mock SCRIPT --exec -- COMMAND` with signals and a terminal. The rest is in `tests/console/mock-exec.md`.

use std::fs;

use serde_json::Value as Json;

use crate::{
    mock::{INITIALIZE, call, modern_call},
    orphans::{gone, gone_already, started},
    rehearse::Rehearse,
};

const SCRIPT: &str = "
server: { name: shared }
tools:
  - name: count
    expect: { calls: 2 }
    steps: [{ set: { n: '{{ state.n + 1 }}' } }, { reply: 'call {{ state.n }}' }]
  - { name: dies, steps: [{ exit: 7 }] }
state: { n: 0 }
";
const EASY: &str = "tools: [{ name: dies, steps: [{ exit: 7 }] }]";

fn exec(script: &str, command: &str) -> Rehearse {
    let args = ["mock", "mock.yaml", "--exec", "--", "sh", "-c", command];
    Rehearse::new().file("mock.yaml", script).args(args)
}

/// Calls a tool over stdio, in a pipe of a shell.
fn over_stdio(tool: &str) -> String {
    format!("printf '%s\\n' '{INITIALIZE}' '{}' | $REHEARSE_STDIO", call(tool))
}

#[test]
fn clients_on_stdio_and_http_share_the_mock() {
    let command = format!("{}; echo ready; read line; {}", over_stdio("count"), over_stdio("dies"));
    let mut mock = exec(SCRIPT, &command).start();
    let address = mock.address("shared listens on ", "").split(' ').next().expect("an address").to_owned();
    mock.stdout_line("call 1");
    mock.stdout_line("ready");
    assert!(modern_call(&address, "count").response().contains("call 2"));
    mock.send("go on");
    let run = mock.end().code(7);
    run.stderr_has("✓ shared: ");
}

#[test]
fn a_signal_is_forwarded_and_no_process_is_left() {
    for signal in ["TERM", "INT", "QUIT"] {
        let command = format!("trap 'echo heard; exit 5' {signal}; sleep 4341 & sleep 4342 & echo ready; wait; wait");
        let (mut mock, processes) = started(exec(EASY, &command), ["sleep 4341", "sleep 4342"]);
        mock.stdout_line("ready");
        mock.signal(signal);
        mock.end().stdout_has("heard").code(5);
        gone(&processes);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn processes_outside_the_group_end_with_the_command() {
    let left = |asked: &str| format!("setsid sh -c \"trap '{asked}' TERM; sleep 4351 & wait; sleep 4352\" &");
    for asked in ["echo asked; exit", ""] {
        let command = format!("{} sleep 4353 & echo ready; read line; exit 5", left(asked));
        let (mut mock, processes) = started(exec(EASY, &command), ["sleep 4351", "sleep 4353"]);
        mock.stdout_line("ready");
        mock.send("go on");
        mock.end().stdout_has(asked.strip_suffix("; exit").map_or("", |said| &said[5..])).code(5);
        gone_already(&processes);
    }
}

#[test]
fn the_command_ends_when_the_mock_is_killed() {
    let (mock, processes) =
        started(exec(EASY, "sleep 4343 & sleep 4344; true"), ["sleep 4343", "sleep 4344", " guard"]);
    mock.signal("KILL");
    gone(&processes);
}

#[cfg(target_os = "linux")]
#[test]
fn processes_outside_the_group_and_the_folder_are_removed_when_the_mock_is_killed() {
    let script = "auth: { tokens: [{ token: secret }] }";
    let command = "echo $REHEARSE_CONFIG; setsid sleep 4354 & sleep 4355; true";
    let (mut mock, processes) = started(exec(script, command), ["sleep 4354", "sleep 4355", " guard"]);
    let config = mock.stdout_line("mcp.json");
    assert!(fs::read_to_string(&config).expect("a file").contains("secret"));
    mock.signal("KILL");
    gone(&processes);
    let folder = std::path::Path::new(&config).parent().expect("a folder");
    assert!(!folder.exists(), "the guard has removed it");
}

#[cfg(target_os = "linux")]
#[test]
fn a_starting_command_ends_when_the_mock_is_killed() {
    for _ in 0..20 {
        let mock = Rehearse::new().file("mock.yaml", EASY).args(["mock", "mock.yaml", "--exec", "--", "sleep", "4356"]);
        let (mock, processes) = started(mock, ["sleep 4356"]);
        mock.signal("KILL");
        gone(&processes);
    }
}

#[test]
fn the_folder_is_absolute_and_a_too_long_path_is_reported() {
    let run = exec(EASY, "cd / && ls $REHEARSE_CONFIG && echo $REHEARSE_STDIO").env("TMPDIR", ".").run().code(0);
    let printed: Vec<_> = run.stdout_text().split_whitespace().collect();
    assert!(printed[0].starts_with('/') && printed.last().is_some_and(|socket| socket.starts_with('/')), "{printed:?}");
    let deep = "d".repeat(100);
    let run = exec(EASY, "true").file(&format!("{deep}/x"), "").env("TMPDIR", deep.leak()).run().code(3);
    run.stderr_has("cannot create the socket /").stderr_has("hint: set TMPDIR to a writable folder with a short path");
    let run = exec(EASY, "true").env("TMPDIR", "/no/such/folder").run().code(3);
    run.stderr_has("cannot create a folder in /no/such/folder: ");
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_on_a_terminal_gets_input_and_ctrl_c() {
    // Reading a line shows that the command has the terminal.
    for (command, talk, end) in [
        ("read line; echo got $line; exit 4", &[("got hello", "again\n")][..], "code 4 again"),
        (
            "trap \"echo heard; exit 6\" INT; read line; sleep 4345 & echo has it; wait",
            &[("has it", "\u{3}"), ("heard", "again\n")],
            "code 6 again",
        ),
        ("read line; kill -TTIN $$; echo went on", &[("went on", "again\n")], "code 0 again"),
    ] {
        let shell = format!(
            "'{}' mock basic --exec -- sh -c 'echo ready; {command}'; code=$?; read line; echo code $code $line",
            Rehearse::BINARY
        );
        let terminal = Rehearse::new().program("script").env("SHELL", "/bin/sh");
        let mut terminal = terminal.args(["-qc", &shell, "/dev/null"]).start();
        for (said, input) in [("ready", "hello\n")].iter().chain(talk) {
            terminal.stdout_line(said);
            terminal.type_in(input);
        }
        terminal.stdout_line(end);
        terminal.end().code(0);
    }
}

const EARLY: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;

#[test]
fn clients_are_judged_by_the_specification_while_they_run() {
    let args = ["mock", "mock.yaml", "--check", "--verify", "--verbose", "--journal", "log.jsonl"];
    let mut mock = Rehearse::new().file("mock.yaml", EASY).args(args).start();
    mock.send(INITIALIZE);
    mock.stdout_line("serverInfo");
    mock.send(EARLY);
    mock.stderr_line("violation: number 2: client-life.initialized.sent (MUST, 2025-11-25): ");
    mock.close_stdin();
    let run = mock.end().code(1).stderr_has("the client violates a rule of the specification:");
    let journal = run.read("log.jsonl");
    let last: Json = serde_json::from_str(journal.lines().last().expect("a line")).expect("JSON");
    assert_eq!((&last["number"], &last["violation"]["rule"]), (&Json::from(2), &"client-life.initialized.sent".into()));
}
