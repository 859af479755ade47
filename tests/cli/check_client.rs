//! `rehearse check client`: our own client, and bad ones. What cannot be checked is in `tests/console/check-client.md`.

use std::{collections::BTreeSet, path::Path};

use serde_json::Value as Json;

use crate::rehearse::{Rehearse, Run};

fn client(command: &[&str]) -> Rehearse {
    Rehearse::new().args(["check", "client"]).args(command.iter().copied())
}

/// The example `conformance_client`, which uses all that a server has.
fn suite_client() -> String {
    let client = Path::new(Rehearse::BINARY).with_file_name("examples").join("conformance_client");
    assert!(client.exists(), "build it: cargo build --example conformance_client");
    client.display().to_string()
}

fn json(run: &Run) -> Json {
    serde_json::from_str(run.stdout_text()).expect("JSON and nothing else")
}

/// Checks our client in one of four parts of the acts, each of them alone: all of them take longer than a command of a test
/// may. Returns the acts of the part, and the run.
fn checked_part(part: usize, options: &[&str], command: &[&str]) -> Run {
    let listed = client(&["--list-acts"]).run().code(0);
    let acts: Vec<_> = listed.stdout_text().lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(acts.len() > 100 && acts[0] == "clean", "{acts:?}");
    let part = acts.iter().skip(part).step_by(4).flat_map(|act| ["--act", act]);
    let arguments: Vec<_> = part.chain(options.iter().copied()).chain(["--"]).chain(command.iter().copied()).collect();
    client(&arguments).run().code(0)
}

/// Over stdio with a call: there our client calls the tool that it is given, also where a server has none.
fn our_client_passes(part: usize) {
    let run =
        checked_part(part, &[], &[Rehearse::BINARY, "mcp", "call-tool", "--stdio", "{command}", "echo", "text=x"]);
    let verdicts = ["\npassed   ", "\npassed, with warnings "];
    assert!(verdicts.iter().any(|verdict| run.stdout_text().contains(verdict)), "{}", run.stdout_text());
}

macro_rules! our_client_passes {
    ($($part:literal: $stdio:ident;)*) => {$(
        #[test]
        fn $stdio() {
            our_client_passes($part);
        }
    )*};
}

our_client_passes! {
    0: our_client_passes_the_first_acts_over_stdio;
    1: our_client_passes_the_second_acts_over_stdio;
    2: our_client_passes_the_third_acts_over_stdio;
    3: our_client_passes_the_fourth_acts_over_stdio;
}

/// The transport, version and id of each check that a client has exercised.
fn tested(run: &Run) -> BTreeSet<String> {
    let report = json(run);
    let servers = report["servers"].as_array().expect("servers").iter();
    let versions = servers.flat_map(|server| {
        let versions = server["versions"].as_array().expect("versions").iter();
        versions.map(|version| (server["transport"].to_string(), version))
    });
    let tested = versions.flat_map(|(transport, version)| {
        let checks = version["checks"].as_array().expect("checks").iter();
        let tested = checks.filter(|check| check["exercised"].as_u64() > Some(0));
        tested.map(move |check| format!("{transport} {} {}", version["version"], check["id"]))
    });
    tested.collect()
}

#[test]
fn composite_acts_test_what_single_acts_do_with_fewer_starts() {
    let folder = Rehearse::new();
    let counted = |name: &str| format!("echo >> {}; exec {} $0", folder.folder().join(name).display(), suite_client());
    let starts = |name: &str| std::fs::read_to_string(folder.folder().join(name)).expect("a count").lines().count();
    let (composed, alone) = (counted("composed"), counted("alone"));
    let run = client(&["--format", "json", "--idle", "2s", "--", "sh", "-c", &composed, "{url}"]).run().code(0);
    let mut missing = BTreeSet::new();
    // A quarter of the acts, or all of them with `ACTS=all`.
    let parts = if std::env::var("ACTS").is_ok_and(|acts| acts == "all") { 4 } else { 1 };
    for part in 0..parts {
        missing.extend(tested(&checked_part(
            part,
            &["--format", "json", "--idle", "2s"],
            &["sh", "-c", &alone, "{url}"],
        )));
    }
    missing.retain(|check| !tested(&run).contains(check));
    assert!(missing.is_empty(), "{missing:?}");
    let (composed, alone) = (starts("composed"), starts("alone"));
    assert!(composed * 3 * parts < alone * 2 * 4, "{composed} starts, {alone} of single acts in {parts} of 4 parts");
}

/// HTTP backward compatibility, 2026-07-28: an older server may answer anything to a request without a session.
#[test]
fn our_own_client_reaches_every_older_server() {
    // No rule says what a client does with the answers of the last three.
    let acts = ["1", "2", "3", "4", "silent"].map(|name| format!("legacy-{name}"));
    let odd = ["5", "6", "7"].map(|name| format!("{}/tests/cli/acts/legacy-{name}.yaml", env!("CARGO_MANIFEST_DIR")));
    let acts: Vec<_> = acts.into_iter().chain(odd).map(|act| format!("--act={act}")).collect();
    for server in [&["--http", "{url}"][..], &["--", "{command}"]] {
        let folder = Rehearse::new();
        let called = folder.folder().join("called");
        let call = format!("{} mcp call-tool echo text=hello $* >> {}", Rehearse::BINARY, called.display());
        let options: Vec<_> = acts.iter().map(String::as_str).collect();
        client(&[&options[..], &["--strict", "--", "sh", "-c", &call, "sh"], server].concat()).run().code(0);
        let called = std::fs::read_to_string(called).expect("the output of the calls");
        assert_eq!(called.lines().collect::<Vec<_>>(), ["hello"; 9], "{server:?}: with the act clean");
    }
}

#[test]
fn the_acts_of_several_machines_are_one_check() {
    let acts = ["--act", "pages", "--act", "json", "--act", "streams"];
    let checked = |options: &[&str]| {
        let command = ["--format", "json", "--", &suite_client(), "{url}"];
        client(&[&acts[..], options, &command].concat())
    };
    let whole = checked(&[]).run().code(0);
    // The act `json` took longest.
    let last = r#"{"format":1,"verdict":"passed","startedAt":"","durationMs":1,"seed":1,"strict":false,"totals":{"failed":0,
        "warnings":0,"notTested":0,"accepted":0,"info":0,"passed":0,"notApplicable":0},"servers":[],"acts":[
        {"acts":["json"],"durationMs":9},{"acts":["pages"],"durationMs":1},{"acts":["streams"],"durationMs":1}]}"#;
    let part = |shard: &str| {
        let part = checked(&["--shard", shard, "--durations", "last.json"]).file("last.json", last).run().code(0);
        let ran: Vec<_> =
            json(&part)["acts"].as_array().expect("acts").iter().map(|it| it["acts"][0].clone()).collect();
        (part.stdout_text().to_owned(), ran)
    };
    let (one, ran) = part("1/2");
    assert_eq!(ran, ["clean", "json"]);
    let (two, ran) = part("2/2");
    assert_eq!(ran, ["clean", "pages", "streams"]);
    let report = |files: &[&str]| {
        let files = Rehearse::new().file("one.json", &one).file("two.json", &two).args(["report"]).args(files.to_vec());
        files.args(["--format", "json"]).run()
    };
    let merged = report(&["one.json", "two.json"]).code(0);
    assert_eq!(tested(&merged), tested(&whole));
    let verdicts = |run: &Run| {
        let checks = json(run)["servers"][0]["versions"][0]["checks"].as_array().expect("checks").clone();
        let verdicts = checks.into_iter().map(|it| (it["id"].to_string(), it["verdict"].to_string()));
        verdicts.collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(verdicts(&merged), verdicts(&whole));
    assert_eq!(json(&report(&["two.json"]).code(3))["verdict"], "incomplete");
    assert_eq!(json(&report(&["two.json", "--part"]).code(0))["verdict"], "passed");
    for options in [&["--attach", "--act", "json"][..], &["--require", "client-rpc", "--", "true"]] {
        client(&[&["--shard", "1/2"], options].concat()).run().code(2).stderr_has("--shard runs a part of the acts");
    }
}

/// A client in `sh`: it sends these lines, and reads what comes until the mock has nothing more to say.
fn script(lines: &[&str]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| said(line)).collect();
    format!("({}; sleep 0.3) | $REHEARSE_STDIO > /dev/null", lines.join("; "))
}

fn said(line: &str) -> String {
    format!("printf '%s\\n' '{line}'")
}

#[test]
fn a_bad_client_is_told_which_rules_it_breaks_and_in_which_act() {
    let bad = script(&[
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
        r#"{"id":1,"method":"tools/list"}"#,
    ]);
    let run = client(&["--format", "json", "--act", "only-tools", "--", "sh", "-c", &bad]).run().code(1);
    let report = json(&run);
    let checks = report["servers"][0]["versions"][0]["checks"].as_array().expect("checks");
    let failed: Vec<_> =
        checks.iter().filter(|check| check["verdict"] == "fail").map(|check| check["id"].as_str()).collect();
    // Whether the second request comes before the response to the first is up to the machine.
    let expected = ["client-rpc.envelope.version-field", "client-rpc.id.unique-session", "client-life.init.params"];
    assert!(expected.iter().all(|id| failed.contains(&Some(id))), "{failed:?}");
    let found: Vec<_> = checks[0]["violations"].as_array().expect("violations").iter().collect();
    assert_eq!(found[0]["found"], "no `jsonrpc` (act clean)");
    assert_eq!(found[1]["found"], "no `jsonrpc` (act only-tools)");
}

#[test]
fn a_client_that_computes_is_not_idle_when_an_act_is_repeated() {
    let begins = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"slow","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    ];
    let begins = begins.map(said).join("; ");
    // It computes for seconds before the call, but not at the first start.
    let computes = "test -e begun && i=0 && while [ $i -lt 1500000 ]; do i=$((i+1)); done; touch begun";
    let call =
        said(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#);
    let slow = format!("({begins}; {computes}; {call}; sleep 0.05) | $REHEARSE_STDIO > /dev/null");
    let only = ["--only", "client-life.instructions.accepts", "--act", "instructions", "--idle", "500ms", "--strict"];
    let run = client(&[&only[..], &["--", "sh", "-c", &slow]].concat()).run().code(0);
    run.stdout_has("1 rule kept");
}

#[test]
fn the_page_about_acts_has_them_all() {
    assert_eq!(crate::mcp::commands_of(include_str!("../../docs/acts.md")), 1);
}

#[test]
fn a_file_is_an_act_and_a_client_that_hangs_is_ended() {
    let files = Rehearse::new().file("odd.yaml", "tools: [{ name: a, reply: x }]\n");
    let hangs = script(&[r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#]) + "; exec sleep 60";
    let args = ["check", "client", "--act", "odd.yaml", "--idle", "300ms", "--", "sh", "-c", &hangs];
    files.args(args).run().code(1).stdout_has("client-life.init.first").stdout_has("tools/list first (act odd.yaml)");
}

#[test]
fn commands_and_a_model_make_the_client_work() {
    let list = format!("{} mcp list-tools --http {{url}} --quiet > /dev/null; sleep 60", Rehearse::BINARY);
    let drive = "call=echo {tool} {arguments} >> calls";
    let args = ["check", "client", "--act", "clean", "--idle", "300ms", "--drive", drive, "--", "sh", "-c", &list];
    let run = Rehearse::new().args(args).run().code(0);
    assert!(run.read("calls").starts_with("echo {\"text\":"), "{}", run.read("calls"));
    let args = ["check", "client", "--act", "clean", "--idle", "300ms", "--drive", "exit 7", "--", "sh", "-c", &list];
    let failed = Rehearse::new().args(args).run().code(3);
    failed.stdout_has("incomplete: the command of --drive failed in every act: exit 7 (exit code 7)");
    let agent = format!(
        "echo Work | {} chat --model anthropic:m --base-url {{model_url}} --mcp-config {{config}} > said 2>&1; sleep 60",
        Rehearse::BINARY
    );
    // The agent speaks with the model once more after its last call.
    let args = ["check", "client", "--act", "clean", "--idle", "5s", "--model", "--", "sh", "-c", &agent];
    let run = Rehearse::new().args(args).run().code(0);
    let said = run.read("said");
    assert!(said.contains("rehearse-clean__echo") && said.contains("done"), "{said}");
}

#[test]
fn a_client_that_something_else_starts_is_checked_in_one_act() {
    let args = ["check", "client", "--attach", "--act", "only-tools", "--idle", "100ms"];
    let mut check = Rehearse::new().args(args).start();
    let url = check.stderr_line("  http   ").split_whitespace().last().expect("a URL").to_owned();
    Rehearse::new().args(["mcp", "list-tools", "--http", &url]).run().code(0);
    check.stderr_line("now let it call a tool, for example ");
    Rehearse::new().args(["mcp", "call-tool", "--http", &url, "echo", "text=x"]).run();
    check.stderr_line("the client has done everything that the act needs");
    check.end().code(0).stdout_has("passed");
}
