//! What a user of `rehearse mcp` sees of servers that keep no measure, and of what cannot be used at all.

use std::process::Stdio;

use crate::{
    mcp::{mcp, stdio},
    mcp_interrupts::shell,
    rehearse::Rehearse,
};

#[test]
fn a_timeout_holds_against_a_server_that_never_stops_writing() {
    for protocol in ["auto", "2025-11-25"] {
        let run = mcp(["info", "--stdio", "yes", "--timeout", "1s", "--protocol", protocol]).run();
        run.stdout("").stderr_has("no answer within 1s").code(3);
    }
}

#[test]
fn any_number_of_lines_before_the_handshake_is_passed_over() {
    let noisy = shell("yes loading | head -n 20000; exec $MOCK");
    let run = mcp(["call-tool", "echo", "text=a", "--protocol", "2025-11-25"]).args(noisy).run();
    run.stdout("a -\n").stderr_has("sent what belongs to nothing: not JSON").code(0);
}

#[test]
fn a_result_that_cannot_be_written_is_no_success() {
    for command in [&["call-tool", "echo", "text=a"][..], &["list-tools", "--format", "json"], &["info"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("opens");
        let status = mcp(command.iter().copied()).args(stdio("tools.yaml")).status(Stdio::null(), full);
        assert_eq!(status.code(), Some(3), "{command:?}");
    }
}

#[test]
fn a_config_that_its_program_rejects_is_an_error_if_it_was_named_and_left_out_if_not() {
    let good = format!(r#"{{"mcpServers":{{"good":{{"command":{:?},"args":["mock","basic"]}}}}}}"#, Rehearse::BINARY);
    for (text, place) in [
        (r#"{ "mcpServers": {"#.to_owned(), ".mcp.json:1:"),
        (good.replace(r#","args""#, r#" "args""#), ".mcp.json:1:"),
        (good.replace("mcpServers", "mcpservers"), ".mcp.json:1:"),
        ("[]".to_owned(), ".mcp.json:1:"),
    ] {
        for command in ["list-servers", "status"] {
            let story = || mcp([command]).file(".mcp.json", &text).file(".cursor/mcp.json", &good);
            let run = story().args(["--mcp-config", ".mcp.json"]).run();
            run.stdout("").stderr_has(place).code(2);
            let run = story().run();
            run.stdout_has("good").stderr_has("WARN: .mcp.json is left out: .mcp.json:1:").code(0);
        }
    }
}
