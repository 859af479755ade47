//! Interrupts of `rehearse mcp` at every step: cancellation, and no processes left behind.

use std::{
    fs::OpenOptions,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use serde_json::{Value as Json, json};

use crate::{
    mcp::{mcp, stdio},
    mcp_faults::assert_no_processes_in,
    orphans::{gone, gone_already, started},
    rehearse::{Rehearse, Run, Running},
};

/// A server that never answers this method.
fn stuck_at(method: &str) -> String {
    format!(
        "server: {{ name: stuck }}\ntools: [{{ name: t, reply: x }}]\nfaults: [{{ on: {{ method: {method} }}, do: {{ hang: {{}} }} }}]\n"
    )
}

/// The connection to the server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Stdio,
    Http,
    Sse,
    Ws,
}

/// Interrupts a command while it waits for the response to this method.
fn interrupted(command: &[&str], way: Way, protocol: &str, method: &str) -> Run {
    let story = || {
        mcp(command.iter().copied()).args([
            "--protocol",
            protocol,
            "--trace",
            "--timeout",
            "10m",
            "--start-timeout",
            "10m",
        ])
    };
    let sent = format!("\"method\":\"{method}\"");
    let signal = if command[0] == "list-tools" { "INT" } else { "TERM" };
    if way == Way::Stdio {
        let story = story().file("stuck.yaml", &stuck_at(method)).args(stdio("stuck.yaml"));
        let mut running = story.start();
        running.stderr_line(&sent);
        return after_signal(running, signal);
    }
    let mut server = Rehearse::new()
        .file("stuck.yaml", &stuck_at(method))
        .args(["mock", "stuck.yaml", "--listen", "127.0.0.1:0", "--verbose"])
        .start();
    let address = server.address("http://", "/mcp");
    let (flag, url) = match way {
        Way::Sse => ("--sse", format!("http://{address}/sse")),
        Way::Ws => ("--ws", format!("ws://{address}/ws")),
        _ => ("--http", format!("http://{address}/mcp")),
    };
    let running = story().args([flag, &url]).start();
    server.stderr_line(method);
    let run = after_signal(running, signal);
    let is_begun = !matches!(method, "initialize" | "server/discover");
    if is_begun && protocol == "2025-11-25" {
        server.stderr_line("cancelled");
    }
    run
}

fn after_signal(running: Running, signal: &str) -> Run {
    running.signal(signal);
    let run = running.end();
    assert_no_processes_in(&run.path(""));
    run.stdout("").stderr_has("interrupted: closing connections\n").code(3)
}

#[test]
fn a_command_can_be_interrupted_at_every_step_and_leaves_nothing() {
    let (list, call) = (&["list-tools"][..], &["call-tool", "t"][..]);
    for (protocol, greeting, ways) in [
        ("2025-11-25", "initialize", &[Way::Stdio, Way::Http, Way::Sse, Way::Ws][..]),
        ("2026-07-28", "server/discover", &[Way::Stdio, Way::Http, Way::Ws]),
    ] {
        for way in ways.iter().copied() {
            for (command, method) in
                [(list, greeting), (list, "tools/list"), (call, greeting), (call, "tools/list"), (call, "tools/call")]
            {
                let step = format!("{command:?} over {way:?} in {protocol} at {method}");
                let run = interrupted(command, way, protocol, method);
                let said = |what: &str| run.stderr().contains(what);
                // A handshake cannot be cancelled; over modern HTTP, closing the response cancels the request.
                let is_asked = method != greeting && !(way == Way::Http && protocol == "2026-07-28");
                assert_eq!(
                    said("→ {\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\""),
                    is_asked,
                    "{step}: {}",
                    run.stderr()
                );
                let has_session = way == Way::Http && protocol == "2025-11-25" && method != greeting;
                assert_eq!(said("→ HTTP DELETE"), has_session, "{step}: {}", run.stderr());
            }
        }
    }
}

#[test]
fn an_interrupted_attempt_to_connect_leaves_no_process() {
    let deaf = "sh -c \"trap '' TERM; sleep 4341 & sleep 4342; true\"";
    let story = || mcp(["info", "--start-timeout", "10m", "--stdio", deaf]);
    let (mut connecting, processes) = started(story(), ["sleep 4341", "sleep 4342", " guard"]);
    connecting.signal("INT");
    connecting.stderr_line("interrupted");
    connecting.signal("INT");
    connecting.end().code(3);
    gone_already(&processes);
    let (connecting, processes) = started(story(), ["sleep 4341", "sleep 4342"]);
    connecting.signal("KILL");
    gone(&processes);
}

#[test]
fn an_interrupted_check_reports_what_it_knows_and_leaves_no_process() {
    let deaf = "sh -c 'sleep 4346; true'";
    let check = Rehearse::new().args(["check", "--protocol", "2025-11-25", "--stdio", deaf]);
    let (mut checking, processes) = started(check, ["sleep 4346"]);
    checking.signal("TERM");
    checking.stderr_line("interrupted: reporting what was found so far");
    checking.end().stdout_has("the run was interrupted before the server had answered").code(3);
    gone(&processes);
}

#[test]
fn a_server_in_its_handshake_has_time_to_terminate_when_it_is_interrupted() {
    let tidy = "trap 'echo > tidy; exit' TERM; echo > ready; while :; do sleep 4345 & wait; done";
    let config = json!({ "mcpServers": { "mute": { "command": "sh", "args": ["-c", tidy] } } }).to_string();
    for command in [&["mcp", "info"][..], &["mcp", "call-tool", "mcp__mute__t"], &["repl"], &["validate-config"]] {
        let mut args: Vec<_> = command.to_vec();
        args.extend(match command {
            ["validate-config"] => &[".mcp.json", "--connect"][..],
            _ => &["--mcp-config", ".mcp.json", "--start-timeout", "10m"],
        });
        let story = Rehearse::new().file(".mcp.json", &config).env("HOME", "home").args(args);
        let running = story.start();
        let (ready, tidied) = (running.path("ready"), running.path("tidy"));
        while !ready.exists() {
            thread::yield_now();
        }
        running.signal("INT");
        let run = running.end().code(3);
        assert!(tidied.exists(), "{command:?}: {}", run.stderr());
        assert_no_processes_in(&run.path(""));
    }
}

/// Starts an HTTP server that never answers the end of a session, and returns its URL.
fn hanging_session_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            thread::spawn(move || answer(socket));
        }
    });
    url
}

/// Answers one request, or keeps the connection open until the client closes it.
fn answer(mut socket: TcpStream) {
    let mut lines = BufReader::new(socket.try_clone().expect("a socket"));
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).is_ok_and(|read| read > 0) {
        let line = head.trim_end().rsplit('\n').next().unwrap_or_default().to_ascii_lowercase();
        length = line.strip_prefix("content-length:").map_or(length, |it| it.trim().parse().expect("a length"));
    }
    let mut body = vec![0; length];
    if head.starts_with("DELETE") || lines.read_exact(&mut body).is_err() {
        let _ = lines.read(&mut [0]);
        return;
    }
    let body = match String::from_utf8_lossy(&body).contains("\"initialize\"") {
        true => {
            r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#
        }
        false => "",
    };
    let status = match (head.split(' ').next(), body) {
        (Some("POST"), "") => "202 Accepted",
        (Some("POST"), _) => "200 OK",
        _ => "405 Method Not Allowed",
    };
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nmcp-session-id: 1\r\nconnection: close");
    let _ = write!(socket, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
}

#[test]
fn a_session_that_does_not_end_can_be_interrupted() {
    let url = hanging_session_server();
    for signal in ["INT", "TERM"] {
        let story = mcp(["info", "--http", &url, "--protocol", "2025-11-25", "--trace"]);
        let mut leaving = story.start();
        leaving.stderr_line("→ HTTP DELETE /mcp");
        leaving.signal(signal);
        leaving.end().stdout_has("Connected to server").stderr_has("interrupted: closing connections\n").code(3);
    }
}

/// A server as this shell script, which can run commands at the end.
pub(crate) fn shell(script: &str) -> [String; 2] {
    [
        "--stdio".to_owned(),
        format!("sh -c \"{}\"", script.replace("$MOCK", &format!("{} mock tools.yaml", Rehearse::BINARY))),
    ]
}

#[test]
fn a_command_can_be_interrupted_while_the_server_exits() {
    let stays = shell("trap '' TERM; $MOCK; sleep 4344; true");
    let (mut calling, processes) =
        started(mcp(["call-tool", "echo", "text=a", "--trace"]).args(stays), [" mock tools.yaml"]);
    calling.stdout_line("a -");
    calling.signal("INT");
    calling.stderr_line("interrupted");
    calling.signal("INT");
    calling.end().code(3);
    gone(&processes);
}

#[test]
fn a_signal_speeds_up_stopping_a_server() {
    let stays = shell("trap 'echo asked >&2; exit' TERM; $MOCK; sleep 4346 & wait");
    let (mut calling, processes) =
        started(mcp(["call-tool", "echo", "text=a", "--trace"]).args(stays), [" mock tools.yaml"]);
    calling.stderr_line("waiting for servers");
    calling.signal("TERM");
    calling.end().stderr_has("interrupted").stderr_has("asked").code(3);
    gone(&processes);
}

#[test]
fn a_second_signal_does_not_wait_for_a_server() {
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

/// Interrupts a command that reads from an empty pipe.
fn interrupt_reading(story: Rehearse) -> Run {
    let running = story.fifo("pipe").start();
    // Opening succeeds when the command reads.
    let silent = OpenOptions::new().write(true).open(running.path("pipe")).expect("opens");
    running.signal("INT");
    let run = running.end();
    drop(silent);
    run
}

#[test]
fn a_command_that_waits_for_input_can_be_interrupted() {
    let call = |args: &[&str]| mcp(["call-tool", "echo"]).args(args.iter().copied()).args(stdio("tools.yaml"));
    for story in [
        call(&["@pipe"]),
        call(&["--args", "@pipe"]),
        call(&["text=a", "--answer", "pipe"]),
        mcp(["list-servers", "--mcp-config", "pipe"]),
        Rehearse::new().args(["repl", "--config", "pipe"]),
    ] {
        interrupt_reading(story).stdout("").stderr_has("interrupted\n").code(3);
    }
    let prompt = Rehearse::new().args(["repl", "--yes", "--stdio"]).args([format!("{} mock basic", Rehearse::BINARY)]);
    let run = interrupt_reading(prompt.env("HOME", "home").stdin("call echo text=@pipe\n"));
    run.stdout("").stderr_has("interrupted: closing connections\n").code(3);
}

#[test]
fn a_blocked_file_does_not_delay_signals() {
    let story = mcp(["call-tool", "pictures", "--output", "pipe", "--trace"]).args(stdio("tools.yaml")).fifo("pipe");
    let (mut calling, processes) = started(story, [" mock tools.yaml"]);
    calling.stderr_line("audio/wav");
    calling.signal("INT");
    calling.end().stdout("").stderr_has("interrupted: closing connections\n").code(3);
    gone(&processes);
}

#[test]
fn an_interrupted_startup_of_the_repl_is_reported() {
    let prompt = Rehearse::new().args(["repl", "--debug", "--stdio", "sh -c 'cat >/dev/null'"]).env("HOME", "home");
    let mut connecting = prompt.start();
    connecting.stderr_line("\"method\":");
    connecting.signal("TERM");
    connecting.end().stderr_has("interrupted: closing connections\n").code(3);
}

#[test]
fn an_interrupted_call_of_a_model_is_the_last() {
    let story = mcp(["call-tool", "--xml", "m.txt", "--max-calls", "2", "--trace", "--format", "json"]);
    let mut calling = story.args(stdio("tools.yaml")).file("m.txt", "<never/>\n<never/>").start();
    calling.stderr_line("\"method\":\"tools/call\"");
    calling.signal("INT");
    let run = calling.end().stderr_has("notifications/cancelled").code(3);
    assert_eq!(run.stderr().matches("\"method\":\"tools/call\"").count(), 1, "{}", run.stderr());
    let printed: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    assert_eq!(printed["calls"].as_array().map(Vec::len), Some(1));
}
