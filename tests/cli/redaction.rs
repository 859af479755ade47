//! Secrets of servers in reports, traces and messages.

use crate::{mcp::mcp, rehearse::Rehearse};

/// A server that reveals its key on stderr and in results.
const SECRET: &str = "geheim-1234";
const TOOLS: &str = "
tools:
  - { name: reveal, reply: \"It is {{ env.API_KEY | default('') }}{{ headers.authorization | default('') }}\" }
";

fn run(server: &str, args: &[&str]) -> String {
    let scenario = format!(
        "servers: {{ s: {server} }}
matrix: {{ protocol: [2025-11-25] }}
steps: [{{ call: {{ tool: reveal }}, expect: {{ text: other }} }}]"
    );
    let story = Rehearse::new().file("mock.yaml", TOOLS).file("demo.yaml", &scenario).env("CI", "");
    let run = story.args(["run", "demo.yaml"]).args(args.iter().copied()).run().code(1);
    run.stdout_text().to_owned()
}

#[test]
fn mistakes_in_a_file_are_shown_without_its_secrets() {
    let server = format!("{{ command: x, env: {{ API_KEY: {SECRET}, N: [1] }} }}");
    let scenario = format!("servers: {{ s: {server} }}\nsteps: [{{ call: {{ tool: {SECRET} }}, expct: 1 }}]");
    for log in ["human", "json"] {
        let run = Rehearse::new().file("demo.yaml", &scenario).args(["--log-format", log, "run", "demo.yaml"]);
        let run = run.run().stderr_has("demo.yaml:1:").stderr_has("expct").code(2);
        assert!(!run.stderr().contains(SECRET), "{}", run.stderr());
    }
}

#[test]
fn a_report_of_a_run_has_no_secrets() {
    let start = format!("echo the key $API_KEY is set >&2; exec {} mock mock.yaml", Rehearse::BINARY);
    let command = format!("{{ command: sh, args: [-c, '{start}'], env: {{ API_KEY: {SECRET} }} }}");
    let header = format!("{{ mock: mock.yaml, headers: {{ Authorization: Bearer {SECRET} }} }}");
    for (args, shown) in [
        (&["--trace"][..], "\"text\":\"It is ***"),
        (&["--format", "json"], "It is ***"),
        (&["--format", "junit"], "the key *** is set"),
    ] {
        let report = run(&command, args);
        assert!(report.contains(shown) && !report.contains(SECRET), "{report}");
        let report = run(&header, args);
        assert!(report.contains("***") && !report.contains(SECRET), "{report}");
    }
}

#[test]
fn a_malformed_header_or_variable_is_not_quoted() {
    let url = ["list-tools", "--http", "http://127.0.0.1:1/mcp", "--header"];
    for args in [[&url[..], &[SECRET]].concat(), vec!["list-tools", "--stdio", "true", "--env", SECRET]] {
        let run = mcp(args).run().stdout("").stderr_has("is not of the form").code(2);
        assert!(!run.stderr().contains(SECRET), "{}", run.stderr());
    }
}

#[test]
fn the_trace_masks_secrets_in_stderr_and_no_prose() {
    let start = "echo a session: line $API_KEY of user $WORD >&2; exit 1";
    let args = ["list-tools", "--trace", "--env", "API_KEY=geheim-1234", "--env", "PASSWORD=session", "--stdio"];
    let run = mcp(args).args([format!("sh -c '{start}'")]).env("WORD", "session").run().code(3);
    run.stderr_has("stderr: a session: line *** of user session\n");
}
