//! `rehearse bench` of listening servers, and its results. The rest is in `tests/console/bench.md`.

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
}

/// A server that answers in 20 ms to one request at a time.
#[test]
fn the_highest_rate_is_searched() {
    let slow = "tools: [{ name: x, annotations: { readOnlyHint: true }, delay: 20ms, reply: a }]";
    let command = ["--script", "slow.yaml", "--find-max", "p99 < 2s", "--duration", "300ms"];
    let run = call(&command).file("slow.yaml", slow).run().code(0);
    run.stdout_has("per second: p99 ").stdout_has("  i highest rate that held: ");
}
