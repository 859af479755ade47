//! `rehearse bench`, as a user would run it; how long anything takes is not tested.

use serde_json::Value as Json;

use crate::rehearse::{Rehearse, Run};

fn call(command: &[&str]) -> Rehearse {
    Rehearse::new().args(["bench", "call", "--warmup", "0s"]).args(command.iter().copied())
}

fn json(run: &Run) -> Json {
    serde_json::from_str(run.stdout_text()).expect("JSON and nothing else")
}

const ECHO: &[&str] = &["--script", "basic", "--tool", "echo", "--allow-tool", "echo", "--requests", "50"];

#[test]
fn a_report_has_a_table_and_a_histogram() {
    let run = call(ECHO).run().code(0);
    run.stdout_has("basic   rehearse mock basic   stdio   2026-07-28\n")
        .stdout_has("requests  per second ")
        .stdout_has("  call echo        50 ")
        .stdout_has("  call echo: latency, and how many requests had it\n")
        .stdout_has("\nmeasured\n");
}

#[test]
fn lines_that_are_no_messages_are_skipped() {
    let noisy = format!("sh -c 'echo starting; exec {} mock basic'", Rehearse::BINARY);
    let call = call(&["--stdio", &noisy, "--tool", "echo", "--allow-tool", "echo", "--requests", "5"]);
    let report = json(&call.args(["--format", "json"]).run().code(0));
    assert_eq!(report["targets"][0]["measures"][0]["errors"], Json::Null, "{report}");
}

#[test]
fn conditions_decide_the_exit_code() {
    let with = |condition: &str| call(&[ECHO, &["--fail-if", condition]].concat()).run();
    with("errors > 0").code(0).stdout_has("✓ fail if errors > 0: errors 0.00 % (basic, call echo)\n");
    with("p99 < 10s").code(1).stdout_has("✗ fail if p99 < 10s: p99 ").stdout_has("\nfailed\n");
    with("p99 = 3").code(2).stderr_has("there is no < or >").stderr_has("'p99 > 50ms'");
}

#[test]
fn a_result_is_the_base_of_a_later_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("base.json");
    let base = base.to_str().expect("UTF-8");
    call(&[ECHO, &["--format", "json", "--output", base]].concat()).run().code(0).stdout("");
    let read: Json = serde_json::from_str(&std::fs::read_to_string(base).expect("a file")).expect("JSON");
    let measure = &read["targets"][0]["measures"][0];
    assert_eq!((&measure["name"], &measure["latency"]["count"]), (&"call echo".into(), &50.into()));
    assert_eq!(measure["slices"].as_array().expect("slices").len(), 10);
    // Whatever the comparison says, it is the same server on the same machine: so only that there is one is tested.
    let run = call(&[ECHO, &["--format", "json", "--against", base]].concat()).run();
    let figures: Vec<_> =
        json(&run)["comparisons"].as_array().expect("comparisons").iter().map(|it| it["figure"].clone()).collect();
    assert_eq!(figures, ["p50", "p99", "rate"]);
    let ping = ["--script", "basic", "--list-tools", "--requests", "50", "--against", base];
    call(&ping).run().code(0).stdout_has("has no measure \"tools/list\" of \"basic\"");
    std::fs::write(base, "{}").expect("a file");
    call(&[ECHO, &["--against", base]].concat())
        .run()
        .code(2)
        .stderr_has("is not a result of `rehearse bench --format json`");
}

#[test]
fn two_servers_take_turns_and_a_scenario_is_a_mix() {
    let mut mock = Rehearse::new().args(["mock", "basic", "--listen", "127.0.0.1:0"]).start();
    let url = format!("http://{}/mcp", mock.address("http://", "/mcp"));
    let scenario = "\
servers: { basic: { mock: basic } }
steps:
  - { call: { tool: echo, args: { text: a } } }
  - { call: { tool: echo, args: { text: a } } }
  - discover: {}
  - { set_log_level: info }
";
    let command = ["--http", &*url, "--http", &*url, "--scenario", "mix.yaml", "--requests", "300"];
    let options = ["--allow-tool", "echo", "--format", "json", "--connections", "2"];
    let run = call(&[&command[..], &options].concat()).file("mix.yaml", scenario).run();
    let run = run.code(0).stderr_has("mix.yaml:6: this step is not measured");
    let report = json(&run);
    for (target, name) in [(0, "127.0.0.1 1"), (1, "127.0.0.1 2")] {
        let target = &report["targets"][target];
        assert_eq!(target["name"], name);
        let counts: Vec<_> =
            target["measures"].as_array().expect("measures").iter().map(|it| &it["latency"]["count"]).collect();
        assert_eq!(counts, [200, 100]);
    }
    assert!(report["comparisons"].as_array().is_some_and(|all| all.iter().all(|it| it["base"] == "127.0.0.1 1")));
}

#[test]
fn what_cannot_be_measured_says_why() {
    call(&["--http", "http://127.0.0.1:9/mcp", "--requests", "5"])
        .run()
        .code(3)
        .stdout_has("not everything was measured");
    call(&["--script", "basic", "--requests", "5"]).run().code(3).stdout_has("no tool has readOnlyHint; allow one");
    let refused = ["--script", "basic", "--tool", "echo", "--requests", "5"];
    call(&refused).run().code(3).stdout_has("allow it with --allow-tool echo");
    let unknown = ["--script", "basic", "--tool", "ecko", "--requests", "5"];
    call(&unknown).run().code(3).stdout_has("there is no tool \"ecko\"; tools are echo, fail");
    let failing = ["--script", "basic", "--tool", "fail", "--allow-tool", "fail", "--requests", "5"];
    call(&failing).run().code(3).stdout_has("not everything was measured");
    call(&["--tool", "x", "--args", "[1]"]).run().code(2).stderr_has("not a JSON object");
    call(&["--rate", "0"]).run().code(2).stderr_has("not a number of requests per second");
}

#[test]
fn a_discovery_is_cold_and_warm_and_of_several_servers_also_at_once() {
    let command = ["bench", "discovery", "--script", "basic", "--copies", "3", "--requests", "5"];
    let run = Rehearse::new().args(command).run().code(0);
    run.stdout_has("basic 3   rehearse mock basic   stdio   2026-07-28\n")
        .stdout_has("  connect and list  ")
        .stdout_has("  list again  ")
        .stdout_has("all servers   3 servers   stdio\n")
        .stdout_has("  one after the other  ")
        .stdout_has("  all at once  ");
}

/// The machines are processes, one after the other.
#[test]
fn several_machines_send_one_load_that_is_judged_as_a_whole() {
    let mut mock = Rehearse::new().args(["mock", "basic", "--listen", "127.0.0.1:0"]).start();
    let url = format!("http://{}/mcp", mock.address("http://", "/mcp"));
    let load = |args: &[&str]| {
        let load = ["--http", &*url, "--tool", "echo", "--allow-tool", "echo", "--format", "json"];
        call(&[&load[..], args].concat()).run()
    };
    let part = |shard: &str| load(&["--requests", "50", "--shard", shard]).code(0).stdout_text().to_owned();
    let [one, two] = ["1/2", "2/2"].map(part);
    let part: Json = serde_json::from_str(&two).expect("JSON");
    assert_eq!((&part["shard"]["index"], &part["load"]["connections"]), (&2.into(), &2.into()));
    assert_eq!(part["targets"][0]["measures"][0]["latency"]["count"], 25);
    let report = |files: &[(&str, &str)], args: &[&str]| {
        let empty = Rehearse::new().args(["report"]).args(args.iter().copied());
        files.iter().fold(empty, |all, (name, text)| all.file(name, text).args([*name])).run()
    };
    let both = [("one.json", &*one), ("two.json", &*two)];
    let whole = report(&both, &["--format", "json", "--fail-if", "errors > 0"]).code(0);
    let whole = whole.stderr_has("the parts sent together for only 0.0 of ").stderr_has("part 2 began last");
    let whole = json(&whole);
    assert_eq!(whole["targets"][0]["measures"][0]["latency"]["count"], 50);
    assert_eq!((&whole["shard"], whole["shards"].as_array().map(Vec::len)), (&Json::Null, Some(2)));
    report(&both, &["--fail-if", "p99 < 10s"])
        .code(1)
        .stdout_has("# rehearse: failed")
        .stdout_has("fail if p99 &lt; 10s");
    report(&both, &[]).code(0).stdout_has("parts 1, 2 of 2");
    report(&both[1..], &["--fail-if", "errors > 0"]).code(3).stdout_has("part 1 of 2 is missing");
    report(&both[1..], &["--part", "--fail-if", "errors > 0"]).code(0);
    let twice = report(&[both[0], ("again.json", &one)], &[]).code(2).stdout("");
    twice.stderr_has("again.json: part 1 of 2 is there twice; report them apart");
    let alone = load(&["--requests", "5"]).code(0).stdout_text().to_owned();
    report(&[both[0], ("alone.json", &alone)], &[]).code(2).stderr_has("alone.json: it is no part of --shard");
    report(&[("run.json", r#"{"format":1,"servers":[]}"#)], &["--fail-if", "errors > 0"]).code(2);
    for (args, wrong) in [
        (&["--shard", "1/2", "--fail-if", "errors > 0"][..], "give it to `rehearse report`"),
        (&["--shard", "1/2", "--http", &url], "--shard is for one server"),
        (&["--shard", "1/3", "--connections", "2"], "--connections 2 is too little for 3 parts"),
        (&["--shard", "1/3", "--requests", "2"], "--requests 2 is too little for 3 parts"),
        (&["--shard", "1/2", "--find-max", "p99 < 1s"], "cannot be used with"),
        (&["--start-at", "2126-11-27T14:00:00Z"], "--shard <I/N>"),
        (&["--shard", "1/2", "--start-at", "+10s"], "not a time in UTC, such as 2026-11-27T14:00:00Z"),
        (&["--shard", "1/2", "--start-at", "2026-01-01T00:00:00Z"], "it passed "),
    ] {
        load(args).code(2).stdout("").stderr_has(wrong);
    }
    call(&[ECHO, &["--shard", "1/2"]].concat()).run().code(2).stderr_has("a command is another server on each of them");
}

/// A server that answers in 20 ms to one request at a time.
#[test]
fn the_highest_rate_is_searched() {
    let slow = "tools: [{ name: x, annotations: { readOnlyHint: true }, delay: 20ms, reply: a }]";
    let command = ["--script", "slow.yaml", "--find-max", "p99 < 2s", "--duration", "300ms"];
    let run = call(&command).file("slow.yaml", slow).run().code(0);
    run.stdout_has("per second: p99 ").stdout_has("  highest rate that held: ");
}
