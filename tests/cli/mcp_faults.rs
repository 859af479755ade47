//! What a user of `rehearse mcp` sees of a server that misbehaves: what is said, the exit code, and nothing left running.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    mcp::{listening, mcp, stdio},
    rehearse::{Rehearse, Run},
};

/// A tool for each fault.
const FAULTY: &str = r#"
server: { name: faulty }
tools:
  - { name: dies, reply: x }
  - { name: dies_midway, reply: x }
  - { name: hangs, reply: x }
  - { name: hangs_midway, reply: x }
  - { name: noisy, reply: of use }
  - { name: truncated, reply: x }
  - { name: resets, reply: x }
  - { name: closes, reply: x }
  - { name: closes_midway, reply: x }
  - { name: wrong_id, reply: x }
  - { name: long, reply: "{{ 'x' * 300000 }}" }
  - { name: slow_headers, reply: of use }
  - { name: unavailable, reply: x }
  - { name: broken, reply: x }
  - { name: unauthorized, reply: x }
  - { name: html, reply: x }
  - { name: redirects, reply: x }
faults:
  - { on: { tool: dies }, do: { exit: 3 } }
  - { on: { tool: dies_midway }, do: { exit: { code: 3, after: 20 } } }
  - { on: { tool: hangs }, do: { hang: {} } }
  - { on: { tool: hangs_midway }, do: { hang: { after: 20 } } }
  - { on: { tool: noisy }, do: { noise: npm warn deprecated } }
  - { on: { tool: truncated }, do: { truncate: { after: 20 } } }
  - { on: { tool: resets }, do: { reset: {} } }
  - { on: { tool: closes }, do: { close: {} } }
  - { on: { tool: closes_midway }, do: { close: { after: 20 } } }
  - { on: { tool: wrong_id }, do: { wrong_id: type } }
  - { on: { tool: slow_headers }, do: { delay: 300ms } }
  - { on: { tool: unavailable }, do: { status: 503 } }
  - { on: { tool: broken }, do: { status: { code: 500, text: oops } } }
  - { on: { tool: html }, do: { content_type: text/html } }
  - { on: { tool: redirects }, do: { status: { code: 307, headers: { Location: 'http://127.0.0.1:1/' } } } }
"#;

/// The mock cannot answer, whatever time it is given.
const SHORT: [&str; 4] = ["--timeout", "1s", "--protocol", "2025-11-25"];

/// The processes that work in a folder.
fn left_in(folder: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").expect("lists").flatten().map(|process| process.path());
    processes.filter(|process| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder)).collect()
}

#[track_caller]
fn nothing_is_left_in(folder: &Path) {
    let left = left_in(folder);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_process_that_is_left_would_be_seen() {
    let (running, _) = listening("tools.yaml");
    assert_eq!(left_in(&running.path("")).len(), 1);
}

fn over_stdio(tool: &str, options: &[&str]) -> Run {
    let story = mcp(["call-tool"]).file("faulty.yaml", FAULTY).args(stdio("faulty.yaml"));
    let run = story.args([tool]).args(options.iter().copied()).run();
    nothing_is_left_in(&run.path(""));
    run
}

/// One call in each era, each with a server of its own.
fn over_http(tool: &str, options: &[&str]) -> Vec<Run> {
    let call = |protocol: &str| {
        let mut mock = Rehearse::new()
            .file("faulty.yaml", FAULTY)
            .args(["mock", "faulty.yaml", "--listen", "127.0.0.1:0"])
            .start();
        let url = format!("http://{}/mcp", mock.address("http://", "/mcp"));
        mcp(["call-tool", "--http", &url, "--protocol", protocol, tool]).args(options.iter().copied()).run()
    };
    ["2025-11-25", "2026-07-28"].map(call).into()
}

#[test]
fn a_process_that_misbehaves_is_told_of_and_ended() {
    for (tool, said) in [
        ("dies", "disconnected: the server closed its standard output; the process ended with exit status: 3"),
        ("resets", "disconnected: the server closed its standard output"),
        ("closes", "disconnected: the server closed its standard output"),
        ("wrong_id", "malformed: an answer to the id \"2\", which no request had"),
    ] {
        over_stdio(tool, &[]).stderr_has(said).stdout("").code(1);
    }
    for tool in ["hangs", "hangs_midway"] {
        over_stdio(tool, &SHORT).stderr_has("timeout: no answer within 1s").code(1);
    }
    for tool in ["dies_midway", "closes_midway"] {
        over_stdio(tool, &[]).stderr_has("disconnected: ").code(1);
    }
}

#[test]
fn lines_that_are_no_messages_are_passed_over_and_told() {
    let run = over_stdio("noisy", &[]).stdout("of use\n").code(0);
    run.stderr_has("WARN: MCP server 'rehearse' sent what belongs to nothing").stderr_has("npm warn deprecated");
    let cut = over_stdio("truncated", &SHORT).stderr_has("timeout: no answer within 1s").code(1);
    cut.stderr_has("sent what belongs to nothing");
    let run = over_stdio("long", &[]).code(0);
    assert_eq!(run.stdout_text().len(), 300_001);
}

#[test]
fn an_answer_over_http_that_is_none_is_told() {
    for (tool, said) in [
        ("resets", "disconnected: "),
        ("closes", "disconnected: "),
        ("closes_midway", "disconnected: "),
        ("truncated", "malformed: the body is no message"),
        ("wrong_id", "malformed: an answer to the id \"2\", which no request had"),
        ("unavailable", "http: status 503"),
        ("broken", "http: status 500"),
        ("html", "malformed: HTTP 200 with a body of type \"text/html\""),
        ("redirects", "http: status 307"),
    ] {
        for run in over_http(tool, &[]) {
            run.stderr_has(said).stdout("").code(1);
        }
    }
    for tool in ["hangs", "hangs_midway"] {
        for run in over_http(tool, &["--timeout", "1s"]) {
            run.stderr_has("timeout: no answer within 1s").code(1);
        }
    }
    for run in over_http("html", &["--trace"]) {
        run.stderr_has("← HTTP 200 OK | content-type: text/html").stderr_has("← HTTP body: {\"jsonrpc\"").code(1);
    }
    for run in over_http("slow_headers", &[]) {
        run.stdout("of use\n").code(0);
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_told_with_the_reason() {
    for (options, said) in [
        (["--stdio", "no-such-program"], "could not be started: No such file or directory"),
        (["--stdio", "false"], "exit status: 1"),
        (["--http", "http://127.0.0.1:1/mcp"], "Connection refused"),
        (["--sse", "http://127.0.0.1:1/sse"], "Connection refused"),
        (["--ws", "ws://127.0.0.1:1/ws"], "Connection refused"),
        (["--http", "http://no-such-host.invalid/mcp"], "cannot reach http://no-such-host.invalid/mcp"),
    ] {
        let run = mcp(["call-tool", "echo"]).args(options).run();
        nothing_is_left_in(&run.path(""));
        run.stderr_has(said).stdout("").code(3);
    }
    // The port speaks, but not TLS.
    let (_mock, address) = listening("tools.yaml");
    mcp(["call-tool", "echo", "--http", &format!("https://{address}/mcp")]).run().stderr_has("cannot reach").code(3);
}
