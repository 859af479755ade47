//! `rehearse mcp` with hostile servers that need a peer, a port or a signal. The rest is in `tests/console/mcp-hostile.md`.

use std::{
    io::Read,
    net::TcpListener,
    process::{Command, Stdio},
};

use crate::{
    mcp::{listening, mcp, stdio},
    mcp_interrupts::shell,
    orphans::{gone, started},
};

pub(crate) const INITIALIZED: (&str, &str) = (
    "initialize",
    r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"s","version":"1"}}"#,
);
pub(crate) const FAILS: (&str, &str) = ("tools/list", r#""error":{"code":-32603,"message":"list broke"}"#);

/// A server as a shell script, which answers these methods with these members.
pub(crate) fn server(answers: &[(&str, &str)]) -> String {
    let mut cases = String::new();
    for (method, members) in answers {
        cases.push_str(&format!("*'\"{method}\"'*) answer '{members}';;\n"));
    }
    format!(
        r#"
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$1"; }}
while read -r line; do
  case "$line" in *'"id":'*) ;; *) continue;; esac
  id=${{line##*\"id\":}}; id=${{id%%[,\}}]*}}
  case "$line" in
  {cases}*) answer '"error":{{"code":-32601,"message":"Method not found"}}';;
  esac
done
"#
    )
}

#[test]
fn a_command_with_unread_output_ends_by_signals() {
    let script = format!("tools: [{{ name: t, reply: {:?} }}]", "x".repeat(1 << 20));
    let story = mcp(["call-tool", "t"]).file("large.yaml", &script).args(stdio("large.yaml"));
    let mut command = story.command();
    let mut process =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
    let mut unread = process.stdout.take().expect("a pipe");
    unread.read_exact(&mut [0]).expect("the result has begun");
    // One of two equal signals may be lost.
    for signal in ["INT", "TERM"] {
        assert!(Command::new("kill").args(["-s", signal, &process.id().to_string()]).status().expect("runs").success());
    }
    assert_eq!(process.wait().expect("ends").code(), Some(3));
}

#[test]
fn a_short_timeout_selects_the_legacy_version() {
    let args = ["info", "--stdio", "sleep 9", "--timeout", "200ms", "--start-timeout", "300ms", "--protocol"];
    let run = |protocol: &str| mcp(args).args([protocol]).run();
    run("auto").stderr_has("no answer within 300ms of its start; it may only support the older handshake").code(3);
    assert!(!run("2025-11-25").code(3).stderr().contains("older handshake"));
    // SSE exists only in legacy versions.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/sse", silent.local_addr().expect("an address"));
    let run = mcp(["info", "--sse", &url, "--timeout", "300ms"]).run().stderr_has("no answer within 300ms").code(3);
    assert!(!run.stderr().contains("older handshake"));
}

#[test]
fn a_mismatch_of_tls_has_a_hint() {
    let (_mock, address) = listening("tools.yaml");
    let run = mcp(["info", "--http", &format!("https://{address}/mcp")]).run();
    run.stderr_has("the server does not seem to use TLS: try http:// or ws://").code(3);
}

#[test]
fn waiting_for_a_server_to_exit_is_reported() {
    let stays = shell("trap '' TERM; $MOCK; sleep 4345; true");
    let (mut calling, processes) = started(mcp(["call-tool", "echo", "text=a"]).args(stays), [" mock tools.yaml"]);
    calling.stderr_line("info: waiting for servers to exit (Ctrl-C to force)");
    calling.signal("INT");
    calling.stderr_line("interrupted: closing connections");
    calling.signal("INT");
    calling.end().stdout("a -\n").code(3);
    gone(&processes);
}

#[test]
fn a_call_ends_when_the_list_times_out() {
    let silent = server(&[INITIALIZED, ("tools/list", "silence")]).replace("answer 'silence'", ":");
    let story = mcp(["call-tool", "--timeout", "300ms", "t"]).file("server.sh", &silent);
    let run = story.args(["--stdio", "sh server.sh"]).run();
    let run = run.stderr_has("failed to list MCP tools for server sh: no answer within 300ms\n").code(1);
    assert_eq!(run.stderr().lines().count(), 1, "{}", run.stderr());
}
