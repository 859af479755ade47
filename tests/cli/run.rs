//! `rehearse run`.

use serde_json::{Value as Json, json};

use crate::{
    orphans::{gone, started},
    rehearse::Rehearse,
};

const MOCK: &str = "
server: { name: stories }
tools:
  - { name: hello, reply: hello }
  - { name: never, delay: 60s, reply: never }
  - { name: headers, reply: \"{{ 'mcp-session-id' in headers }}\" }
";

const HELLO: &str = "
servers: { s: { mock: mock.yaml } }
matrix: { protocol: [2025-11-25] }
steps:
  - { call: { tool: hello }, expect: { text: hello }, snapshot: hello }
";

/// A tool with another result over HTTP.
const DIFFERENT: &str = "
servers: { s: { mock: mock.yaml } }
matrix: { transport: [stdio, http, ws], protocol: [2025-11-25] }
steps:
  - { call: { tool: headers }, snapshot: answer }
";

const NEVER: &str = "
servers: { s: { mock: mock.yaml } }
matrix: { transport: [stdio, http], protocol: [2025-11-25] }
steps:
  - { call: { tool: never } }
";

fn story(scenario: &str) -> Rehearse {
    Rehearse::new().file("mock.yaml", MOCK).file("demo.yaml", scenario).env("CI", "").args(["run", "demo.yaml"])
}

#[test]
fn a_snapshot_is_accepted_once_and_then_compared() {
    let first = story(HELLO).run();
    let first = first.stdout_has("no snapshot `hello` yet").stdout_has("4 failed").code(1);
    assert!(first.read("snapshots/demo/hello.snap.new").contains("\"hello\""));
    let accepted = story(HELLO).args(["--update"]).run().stdout_has("4 passed").code(0);
    let snapshot = accepted.read("snapshots/demo/hello.snap");
    story(HELLO).file("snapshots/demo/hello.snap", &snapshot).run().stdout_has("4 passed").code(0);
    let broken = snapshot.replace("\"hello\"", "\"goodbye\"");
    let differs = story(HELLO).file("snapshots/demo/hello.snap", &broken).run();
    differs.stdout_has("-       \"text\": \"goodbye\"").stdout_has("+       \"text\": \"hello\"").code(1);
}

#[test]
fn in_ci_a_missing_snapshot_fails_and_nothing_is_written() {
    let run = story(HELLO).env("CI", "true").run().code(1);
    assert!(!run.path("snapshots").exists());
}

#[test]
fn a_difference_on_one_transport_is_a_failure_that_names_the_cell() {
    let run = story(DIFFERENT).args(["--update"]).run();
    let run = run.stdout_has("  in http/2025-11-25\n").stdout_has("2 passed, 1 failed").code(1);
    assert!(!run.path("snapshots").exists(), "nothing is accepted that not all cells agree on");
    let false_everywhere = "---\nsource: x\n---\n{\n  \"content\": [\n    {\n      \"text\": \"False\",\n      \"type\": \"text\"\n    }\n  ]\n}\n";
    let run = story(DIFFERENT).file("snapshots/demo/answer.snap", false_everywhere).args(["--trace"]).run();
    let run = run.stdout_has("  in http/2025-11-25\n").stdout_has("2 passed, 1 failed");
    run.stdout_has("frames in http/2025-11-25").stdout_has("← s {").code(1);
}

#[test]
fn some_of_the_cells_cannot_update_a_snapshot() {
    let run = story(HELLO).args(["--update", "--filter", "/http/"]).run();
    let run = run.stdout_has("is not accepted: some cells that share it were not selected").code(1);
    assert!(!run.path("snapshots").exists());
}

#[test]
fn update_does_not_accept_failures() {
    let crash = "servers: { s: { command: sh, args: [-c, exit 1] } }\nsteps: [{ discover: {}, snapshot: tools }]";
    let run = story(crash)
        .args(["--update"])
        .run()
        .stdout_has("connect: the server closed the connection during the handshake")
        .code(1);
    assert!(!run.path("snapshots").exists());
}

#[test]
fn an_unreachable_server_does_not_affect_steps_of_others() {
    let scenario = "
servers: { s: { mock: mock.yaml }, gone: { url: 'http://127.0.0.1:9/mcp' } }
matrix: { transport: http, protocol: 2025-11-25 }
steps:
  - parallel:
      - { call: { tool: hello }, server: gone, expect: { failure: connect } }
      - { call: { tool: hello }, expect: { text: goodbye } }
";
    story(scenario).run().stdout_has("[1] call hello: text: expected \"goodbye\", found \"hello\"").code(1);
}

#[test]
fn a_corrupt_snapshot_is_reported_with_its_location() {
    let run = story(HELLO).file("snapshots/demo/hello.snap", "<<<<<<< HEAD\n").run();
    run.stdout("").stderr_has("snapshots/demo/hello.snap:1:1: not a snapshot").code(2);
}

#[test]
fn a_report_that_cannot_be_written_is_not_a_success() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("opens");
    let status = story(HELLO).args(["--update", "--format", "json"]).status(std::process::Stdio::null(), full);
    assert_eq!(status.code(), Some(3));
}

#[test]
fn a_failed_expectation_says_what_was_expected_and_found() {
    let wrong = HELLO.replace("text: hello", "text: goodbye");
    let run = story(&wrong).args(["--update"]).run();
    run.stdout_has("demo.yaml:5  call hello").stdout_has("text: expected \"goodbye\", found \"hello\"").code(1);
}

#[test]
fn a_run_ends_with_what_failed_and_the_command_that_repeats_it() {
    let step = "  - { call: { tool: hello }, only: { transport: http }, expect: { text: goodbye } }\n";
    let run = story(&format!("{HELLO}{step}")).args(["--update", "--seed", "7"]).run().code(1);
    let end = "\n✗ demo  http/2025-11-25\n  again: rehearse run demo.yaml --filter '/http/2025-11-25$' --seed 7\n\n1 scenario, ";
    assert!(run.stdout_text().contains(end), "{}", run.stdout_text());
    story(DIFFERENT).run().stdout_has("\n  again: rehearse run demo.yaml\n").code(1);
}

#[test]
fn the_json_report_has_every_cell_with_its_reason_and_the_seed() {
    let both = HELLO.replace("[2025-11-25]", "[2025-11-25, 2026-07-28]");
    let run = story(&both).args(["--update", "--format", "json", "--seed", "7", "--output", "report.json"]).run();
    let run = run.stdout("").code(0);
    let report: Json = serde_json::from_str(&run.read("report.json")).expect("JSON");
    assert_eq!(report["seed"], 7);
    assert_eq!(
        report["totals"],
        serde_json::json!({ "passed": 7, "failed": 0, "errors": 0, "notApplicable": 1, "notRun": 0 })
    );
    let cells = report["scenarios"][0]["cells"].as_array().expect("a list");
    let sse = cells.iter().find(|cell| cell["cell"] == "sse/2026-07-28").expect("shown, not dropped");
    assert_eq!((&sse["status"], &sse["reason"]), (&"notApplicable".into(), &"sse does not support 2026-07-28".into()));
}

#[test]
fn the_junit_report_has_a_case_for_each_cell() {
    let run = story(DIFFERENT).args(["--update", "--format", "junit"]).run();
    let run = run.stdout_has("<testsuite name=\"demo\" tests=\"3\"").stdout_has("failures=\"1\"");
    run.stdout_has("<testcase name=\"http/2025-11-25\" classname=\"demo\"")
        .stdout_has("differs from stdio/2025-11-25")
        .code(1);
}

#[test]
fn cells_can_be_listed_filtered_and_sharded() {
    let list = story(HELLO).args(["--list"]).run();
    list.stdout("demo/stdio/2025-11-25\ndemo/http/2025-11-25\ndemo/sse/2025-11-25\ndemo/ws/2025-11-25\n").code(0);
    let json = story(HELLO).args(["--list", "--format", "json"]).run().code(0);
    let cells: Json = serde_json::from_str(json.stdout_text()).expect("JSON");
    assert_eq!((cells[1]["id"].as_str(), cells.as_array().map(Vec::len)), (Some("demo/http/2025-11-25"), Some(4)));
    story(HELLO)
        .args(["--list", "--format", "junit"])
        .run()
        .stderr_has("--list has the formats human and json")
        .code(2);
    story(HELLO)
        .args(["--list", "--filter", "/(ws|sse)/"])
        .run()
        .stdout("demo/sse/2025-11-25\ndemo/ws/2025-11-25\n")
        .code(0);
    story(HELLO).args(["--list", "--shard", "2/3"]).run().stdout("demo/http/2025-11-25\n").code(0);
    story(HELLO).args(["--shard", "5/3"]).run().stderr_has("is not a shard").code(2);
    story(HELLO).args(["--filter", "nothing"]).run().stderr_has("nothing was selected").code(4);
    story(HELLO).args(["--filter", "nothing", "--shard", "1/3"]).run().stderr_has("nothing was selected").code(4);
    // More parts than cells.
    story(HELLO).args(["--shard", "9/9", "--format", "json"]).run().stdout_has("\"scenarios\"").code(0);
    let auto = || story(HELLO).args(["--list", "--shard", "auto"]);
    auto().env("CIRCLE_NODE_INDEX", "1").env("CIRCLE_NODE_TOTAL", "3").run().stdout("demo/http/2025-11-25\n").code(0);
    auto().run().stderr_has("none of them are set").code(2);
}

#[test]
fn the_durations_of_an_earlier_result_make_parts_equally_long() {
    let cell = |(transport, duration): &(&str, f64)| {
        let cell = format!("{transport}/2025-11-25");
        json!({ "cell": cell, "status": "passed", "durationMs": duration, "steps": [] })
    };
    // The cell over WebSocket is new.
    let cells: Vec<_> = [("stdio", 1.0), ("http", 900.5), ("sse", 1.0)].iter().map(cell).collect();
    let scenarios = json!([{ "name": "demo", "path": "demo.yaml", "cells": cells }]);
    let totals = json!({ "passed": 3, "failed": 0, "errors": 0, "notApplicable": 0, "notRun": 0 });
    let last = json!({ "format": 1, "seed": 1, "durationMs": 1, "totals": totals, "scenarios": scenarios }).to_string();
    let part = |args: &[&str]| story(HELLO).file("last.json", &last).args(args.iter().copied()).args(["--list"]).run();
    part(&["--shard", "1/2", "--durations", "last.json"]).stdout("demo/http/2025-11-25\n").code(0);
    let others = "demo/stdio/2025-11-25\ndemo/sse/2025-11-25\ndemo/ws/2025-11-25\n";
    part(&["--shard", "2/2", "--durations", "last.json"]).stdout(others).code(0);
    part(&["--durations", "last.json"]).stderr_has("--shard <I/N>").code(2);
    part(&["--shard", "1/2", "--durations", "gone.json"]).stderr_has("--durations gone.json: ").code(2);
    let check = story(HELLO).file("last.json", r#"{"format":1,"targets":[]}"#);
    check.args(["--shard", "1/2", "--durations", "last.json"]).run().stderr_has("--durations last.json: ").code(2);
}

#[test]
fn fail_fast_starts_no_further_cell() {
    let run = story(HELLO).args(["--fail-fast", "--jobs", "1", "--filter", "http|sse|ws"]).run();
    run.stdout_has("1 failed").stdout_has("2 not run").code(1);
}

#[test]
fn a_mistake_in_any_file_is_reported_and_nothing_runs() {
    let run = story("servers: { s: { mock: mock.yaml } }\nsteps: [{ cal: { tool: hello } }]").run();
    run.stdout("").stderr_has("demo.yaml:2:11: a step has no key `cal`").stderr_has("did you mean `call`?").code(2);
    let run = story(HELLO).file("mock.yaml", "tools: [{ nam: x }]").run();
    run.stdout("").stderr_has("mock.yaml:1:11: a tool has no key `nam`").code(2);
    Rehearse::new().args(["run"]).run().stderr_has("scenarios").code(2);
}

#[test]
fn a_server_that_cannot_be_started_is_not_a_failed_expectation() {
    let run = story("servers: { s: { command: ./no-such-program } }\nsteps: [{ connect: {} }]").run();
    run.stdout_has("could not be started").stdout_has("2 could not run").code(3);
}

#[test]
fn a_server_without_responses_is_a_failed_expectation() {
    let server = "servers: { s: { command: sh, args: [-c, 'echo oops >&2; exit 3'] } }\nsteps: [{ connect: {} }]";
    story(server)
        .run()
        .stdout_has("connect: the server closed the connection during the handshake")
        .stdout_has("oops")
        .code(1);
}

#[test]
fn an_interrupted_run_stops_its_servers_and_reports_its_results() {
    let story = story(NEVER).args(["--trace", "--seed", "7"]);
    let (running, processes) = started(story, ["mock.yaml --seed 7", " guard"]);
    running.signal("INT");
    running.end().stderr_has("interrupted").stdout_has("2 not run").code(3);
    gone(&processes);
}

#[test]
fn a_response_with_too_large_numbers_is_malformed() {
    let mock = "
tools:
  - name: odd
    reply: { raw: '{\"jsonrpc\":\"2.0\",\"id\":{{ id }},\"result\":{\"content\":[],\"isError\":true,\"n\":1e400}}' }
";
    let scenario = "
servers: { s: { mock: mock.yaml } }
matrix: { protocol: [2025-11-25] }
steps: [{ call: { tool: odd }, snapshot: odd }]
";
    let run = story(scenario).file("mock.yaml", mock).args(["--update"]).run();
    run.stdout_has("malformed: ").stdout_has("number out of range").stdout_has("4 failed").code(1);
}

#[test]
fn a_different_result_is_saved_beside_the_snapshot() {
    let accepted = story(HELLO).args(["--update", "--filter", "stdio"]).run().code(1);
    accepted.stdout_has("cells that share it were not selected");
    let stored = "---\nsource: demo.yaml\nexpression: x\n---\nanother\n";
    let differs = |ci: &'static str| {
        let story = story(HELLO).file("snapshots/demo/hello.snap", stored).env("CI", ci).args(["--filter", "stdio"]);
        story.run().stdout_has("the result differs from the snapshot `hello`").code(1)
    };
    let said = "hello.snap.new; --update accepts it if all cells agree\n";
    differs("").stdout_has("    the new result is in ").stdout_has(said);
    assert!(!differs("true").stdout_text().contains("snap.new"));
}

#[test]
fn a_step_without_the_capture_of_a_failed_step_fails() {
    let steps = "
servers: { s: { mock: mock.yaml } }
matrix: { transport: [stdio], protocol: [2025-11-25] }
steps:
  - { call: { tool: hello }, capture: { x: /nothing } }
  - { call: { tool: hello, args: { a: '{{ captured.x }}' } } }
  - { call: { tool: hello }, expect: { text: hello } }
";
    let run = story(steps).args(["--keep-going"]).run().stdout_has("capture x: the result has no value at /nothing");
    run.stdout_has("`captured.x` has no value").stdout_has("1 cell: 1 failed").code(1);
}

/// Refuses the handshake, after a log line.
const REFUSING: &str = r#"
servers:
  s: { command: sh, args: [-c, 'read line; echo no; echo "$0"', '{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"m"}}'] }
steps: [{ connect: {} }]
"#;

#[test]
fn the_frames_of_a_failed_handshake_are_shown() {
    let run = story(REFUSING).args(["--trace", "--filter", "2025"]).run();
    let run = run.stdout_has("the server refused the handshake: error 1: m").stdout_has("\"method\": \"initialize\"");
    run.stdout_has("← s no\n").code(1);
}

/// A legacy server.
const OLDER: &str = r#"
servers:
  s: { command: sh, args: [-c, 'read line; echo "$0"', '{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"m"}}'] }
steps: [{ connect: {} }]
"#;

#[test]
fn a_legacy_server_gets_a_hint_about_the_matrix() {
    let run = story(OLDER).run().code(1);
    let run = run.stdout_has("error -32601: m; it may only support older versions: use 2025-11-25 or auto, as");
    run.stdout_has("`matrix: { protocol: [2025-11-25] }` does\n")
        .stdout_has("refused the handshake: error -32601: m\n");
}

/// A server that logs to its standard output.
const NOISY: &str = r#"
servers:
  s: { command: sh, args: [-c, 'echo Server started; exec "$0" mock mock.yaml', "${REHEARSE}"] }
steps: [{ call: { tool: hello }, expect: { text: hello } }]
"#;

#[test]
fn an_unexpected_log_line_on_stdout_fails_its_step() {
    let noisy = |text: &str| story(text).env("REHEARSE", env!("CARGO_BIN_EXE_rehearse")).run();
    let line = "noise: not JSON: expected value at line 1 column 1: Server started\n";
    noisy(NOISY).stdout_has(line).stdout_has("2 failed").code(1);
    let expected = NOISY.replace("text: hello }", "text: hello, noise: [Server started] }");
    noisy(&expected).stdout_has("2 passed").code(0);
}

#[test]
fn a_reply_that_is_not_a_message_is_malformed_on_every_transport() {
    let mock = "tools: [{ name: garbage, reply: { raw: so it goes } }, { name: hello, reply: hello }]";
    let scenario = "
servers: { s: { mock: mock.yaml } }
steps:
  - { call: { tool: garbage }, expect: { failure: malformed } }
  - raw: { jsonrpc: '2.0', id: r, method: tools/call, params: { name: garbage } }
    expect: { failure: malformed }
    only: { era: legacy }
  - { call: { tool: hello }, expect: { text: hello } }
";
    story(scenario).file("mock.yaml", mock).run().stdout_has("7 passed; 1 not applicable").code(0);
}

#[test]
fn a_redaction_that_matches_nothing_is_reported() {
    let redacted = format!("{HELLO}redact:\n  - {{ at: /content/0/text }}\n  - {{ matches: never }}\n");
    let run = story(&redacted).args(["--update"]).run();
    run.stdout_has("\n? demo\n  demo.yaml:8  the redaction matches no snapshot\n").code(0);
    let part = ["--filter", "/http/", "--format", "json", "--output", "part.json"];
    let part = story(&redacted).args(part).run().code(1);
    assert!(!part.read("part.json").contains("warnings"), "some of the cells say nothing of all");
}

#[test]
fn an_unknown_capture_is_a_mistake_in_the_file() {
    let scenario = HELLO.replace("tool: hello }", "tool: hello, args: { a: '{{ captured.token }}' } }");
    let run = story(&scenario).run();
    run.stdout("").stderr_has("no earlier step captures `token`").code(2);
}

#[test]
fn a_result_that_changes_between_repetitions_is_not_accepted() {
    let changing = "
servers: { s: { command: sh, args: [-c, 'echo >> runs; exec $0 mock mock.yaml --seed $$(wc -l < runs)', $REHEARSE] } }
matrix: { protocol: 2025-11-25 }
steps:
  - { call: { tool: random, args: { a: 1 } }, snapshot: random }
  - { call: { tool: hello }, snapshot: hello }
";
    let mock = format!("{MOCK}  - {{ name: random, reply: '{{{{ rand(1, 1000000) }}}}' }}\n");
    let run = |args: &[&str]| {
        let story = story(&changing.replace("$REHEARSE", Rehearse::BINARY)).file("mock.yaml", &mock);
        story.args(args.iter().copied()).run()
    };
    let run_once = run(&["--update"]).stdout_has("✓ accepted snapshots\n  snapshots/demo/hello.snap\n").code(0);
    assert!(run_once.read("snapshots/demo/random.snap").contains("expression: \"call random {\\\"a\\\":1}\"\n"));
    let repeated = run(&["--update", "--repeat", "3"]).code(1);
    let repeated = repeated.stdout_has("    | - { call: { tool: random, args: { a: 1 } }, snapshot: random }\n");
    let repeated = repeated.stdout_has("redact: [{ at: /content/0/text }]").stdout_has("at /content/0/text\n");
    let repeated = repeated.stdout_has("- first time  + later");
    assert!(
        repeated.path("snapshots/demo/hello.snap").exists() && !repeated.path("snapshots/demo/random.snap").exists()
    );
}

#[test]
fn every_mistake_of_a_step_is_reported_in_the_order_of_the_file() {
    let step = "{ call: { tool: a, argz: 1 }, expct: 1, server: t, timeout: 5, only: { transport: htp } }";
    let run = story(&format!("servers: {{ s: {{ mock: mock.yaml }} }}\nsteps: [{step}]")).run().code(2);
    let columns = ["argz", "expct", "t, timeout", "5, only", "htp"].map(|part| 9 + step.find(part).expect(part));
    let shown: Vec<_> = run.stderr().lines().filter_map(|line| line.trim().strip_prefix("× demo.yaml:2:")).collect();
    let shown: Vec<usize> = shown.iter().filter_map(|line| line.split_once(':')?.0.parse().ok()).collect();
    assert_eq!(shown, columns, "{}", run.stderr());
}

#[test]
fn files_of_another_kind_and_keys_of_other_tools_have_a_hint() {
    let run = story(MOCK).run().stderr_has("demo.yaml:2:1: this is a mock script, not a scenario").code(2);
    run.stderr_has("serve it with `rehearse mock`");
    for (step, hint) in [
        ("{ call: { tool: hello, arguments: {} } }", "did you mean `args`?"),
        ("{ call: { tool: hello }, expect: { text: { regex: h } } }", "did you mean `matches`?"),
        ("{ call: { tool: hello }, redact: [] }", "`redact` applies to all steps: write it beside `steps`"),
    ] {
        story(&format!("servers: {{ s: {{ mock: mock.yaml }} }}\nsteps: [{step}]")).run().stderr_has(hint).code(2);
    }
    let mock = Rehearse::new().file("demo.yaml", HELLO).args(["mock", "demo.yaml"]).run();
    mock.stderr_has("this is a scenario, not a mock script").stderr_has("run it with `rehearse run`").code(2);
    Rehearse::new().args(["run"]).run().stderr_has("write a first one with `rehearse init`").code(2);
}

#[test]
fn files_may_be_as_editors_of_windows_write_them_but_not_utf_16() {
    let windows = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
    let files = || Rehearse::new().file("mock.yaml", &windows(MOCK)).file("demo.yaml", &windows(HELLO));
    files().args(["run", "demo.yaml", "--update"]).run().stdout_has("4 passed").code(0);
    files().args(["mock", "mock.yaml", "--validate"]).run().code(0);
    let wide: Vec<u8> = windows(MOCK).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let run = files().bytes("mock.yaml", &wide).args(["mock", "mock.yaml"]).run().code(2);
    run.stderr_has("mock.yaml: it is UTF-16; save the file as UTF-8");
}

#[test]
fn the_first_files_of_a_project_work_and_replace_nothing() {
    let init = |story: Rehearse| story.args(["init"]).run().code(0);
    let first = init(Rehearse::new()).stdout_has("wrote  scenarios/weather.yaml\n");
    let files = ["mocks/weather.yaml", "scenarios/weather.yaml"].map(|name| (name, first.read(name)));
    let project = || files.iter().fold(Rehearse::new(), |story, (name, text)| story.file(name, text)).env("CI", "");
    project().args(["run", "--update"]).run().stdout_has("7 passed").code(0);
    let workflow = first.read(".github/workflows/rehearse.yml");
    assert!(
        workflow.contains(concat!("cargo install --git ", env!("CARGO_PKG_REPOSITORY"), " --locked")),
        "{workflow}"
    );
    let lines: Vec<_> = workflow.lines().filter_map(|line| line.trim().strip_prefix("- run: rehearse ")).collect();
    assert_eq!(lines, ["mock --validate mocks/*.yaml", "run --report report.xml"]);
    let in_ci = project().args(lines[1].split(' ')).run().stdout_has("no snapshot").code(1);
    assert!(in_ci.read("report.xml").contains("<testsuites"));
    let second = init(project().file("mocks/weather.yaml", "mine")).stdout_has("exists mocks/weather.yaml\n");
    assert_eq!(second.read("mocks/weather.yaml"), "mine");
}

#[test]
fn a_server_of_another_version_fails_the_cell_unless_any_is_accepted() {
    let run = |matrix: &str| {
        let steps = "steps: [{ call: { tool: hello }, expect: { text: hello } }]";
        let scenario = format!("servers: {{ s: {{ mock: mock.yaml }} }}\nmatrix: {matrix}\n{steps}");
        story(&scenario).file("mock.yaml", &format!("protocol: [2025-06-18]\n{MOCK}")).run()
    };
    run("{ transport: stdio, protocol: 2025-11-25 }")
        .stdout_has(
            "connect: the server negotiated 2025-06-18 instead of 2025-11-25; test that version with `matrix: {",
        )
        .code(1);
    let negotiated = run("{ transport: [stdio, ws], protocol: negotiated }").code(0);
    negotiated.stdout_has("demo negotiated 2025-06-18 over stdio, ws\n");
}

#[test]
fn structured_content_that_breaks_the_output_schema_fails_unless_it_is_expected() {
    const TOOL: &str = "{ name: t, outputSchema: { type: object, properties: { n: { type: integer } }, required: [n] }, \
                        reply: { result: { content: [], structuredContent: { n: x } } } }";
    let run = |expect: &str| {
        let step = format!("{{ call: {{ tool: t, args: {{ n: x }} }}, expect: {{ {expect} }} }}");
        let scenario =
            format!("servers: {{ s: {{ mock: mock.yaml }} }}\nmatrix: {{ transport: stdio }}\nsteps: [{step}]");
        story(&scenario).file("mock.yaml", &format!("tools: [{TOOL}]")).run()
    };
    let error = "the output schema of the tool does not allow /n: \"x\" is not of type \"integer\"\n";
    run("isError: false").stdout_has(error).stdout_has("2 failed").code(1);
    run("schemaErrors: true").stdout_has("2 passed").code(0);
    run("schemaErrors: { contains: { matches: ^/n } }").stdout_has("2 passed").code(0);
    run("schemaErrors: { length: 2 }").stdout_has("schemaErrors: expected length 2").code(1);
    let call =
        ["mcp", "call-tool", "t", "n=x", "--stdio", &format!("{} mock mock.yaml", Rehearse::BINARY)].map(str::to_owned);
    let call = Rehearse::new().file("mock.yaml", &format!("tools: [{TOOL}]")).args(call).run().code(0);
    call.stderr_has("warning: the structured content breaks the output schema of the tool: /n: \"x\" is not of type");
}
