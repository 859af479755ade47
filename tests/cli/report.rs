//! `rehearse report` and `--report`.

use serde_json::Value as Json;

use crate::rehearse::{Rehearse, Run};

const MOCK: &str = "
server: { name: stories }
tools:
  - name: hello
    rules:
      - { when: { transport: http }, reply: \"<b>another</b> text\" }
      - { reply: hello }
";

const HELLO: &str = "
servers: { s: { mock: mock.yaml } }
matrix: { protocol: [2025-11-25] }
steps:
  - { call: { tool: hello }, expect: { text: hello } }
";

fn story() -> Rehearse {
    Rehearse::new().file("mock.yaml", MOCK).file("demo.yaml", HELLO).args(["run", "demo.yaml"])
}

fn report(files: &[(&str, &str)], args: &[&str]) -> Run {
    let empty = Rehearse::new().args(["report"]).args(args.iter().copied());
    files.iter().fold(empty, |all, (name, text)| all.file(name, text)).run()
}

/// The result of one part of the cells as JSON.
fn part(shard: &str) -> String {
    story().args(["--shard", shard, "--format", "json"]).run().stdout_text().to_owned()
}

#[test]
fn a_run_writes_several_reports_besides_its_own() {
    let names = ["page.html", "junit.xml", "code.sarif", "summary.md", "result.json"];
    let run = story().args(names.iter().flat_map(|name| ["--report", name])).run().stdout_has("1 failed").code(1);
    let [page, junit, sarif, summary, json] = names.map(|name| run.read(name));
    assert!(page.contains("text: expected &quot;hello&quot;, found &quot;&lt;b&gt;another"), "{page}");
    assert!(page.contains("HTTP 200") && page.contains("class=\"here\""), "heads of HTTP and the line of the step");
    assert!(junit.contains("failures=\"1\""), "{junit}");
    let sarif: Json = serde_json::from_str(&sarif).expect("JSON");
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["region"]["startLine"], 5, "{sarif}");
    assert!(place["artifactLocation"]["uri"].as_str().is_some_and(|uri| uri.ends_with("demo.yaml")), "{sarif}");
    assert!(summary.starts_with("# rehearse: failed") && summary.contains("&lt;b&gt;another"), "{summary}");
    let json: Json = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["totals"]["failed"], 1);
    assert!(json["startedAt"].as_str().is_some_and(|time| time.ends_with('Z')), "{json}");
}

const CRASH: &str = "
server: { name: short }
tools: [{ name: hello, reply: hello }, { name: last, reply: never }]
faults: [{ on: { tool: last }, do: { exit: 3 } }]
";

#[test]
fn a_crash_is_one_cause_on_all_transports_and_the_page_says_of_what_it_is() {
    let steps = "servers: { s: { mock: crash.yaml } }\nsteps: [{ call: { tool: hello } }, { call: { tool: last } }]";
    let story = Rehearse::new().file("crash.yaml", CRASH).file("end.yaml", steps).args(["run", "end.yaml"]);
    let story =
        ["GITHUB_REPOSITORY=acme/weather", "GITHUB_SHA=0123456789ab", "GITHUB_REF_NAME=main", "GITHUB_HEAD_REF="]
            .iter()
            .filter_map(|variable| variable.split_once('='))
            .fold(story, |story, (name, value)| story.env(name, value));
    let run = story.args(["--report", "page.html"]).run().code(1);
    let text = run.stdout_text();
    assert_eq!(text.matches("✗ end\n").count(), 1, "{text}");
    assert!(text.contains("in all 7 cells") && text.contains("exit status: 3"), "{text}");
    let page = run.read("page.html");
    assert!(page.contains("<title>✗ end: call last · acme/weather</title>"), "{page}");
    assert!(page.contains("acme/weather · main · 012345678<"), "{page}");
    assert!(page.contains("1 step before it") && page.contains("call hello"), "{page}");
    let (table, failures) = (page.find("id=\"m0\""), page.find("What failed"));
    assert!(table.is_some() && table < failures, "{page}");
}

#[test]
fn the_command_of_a_failure_selects_only_its_cell() {
    let json = story().args(["--format", "json"]).run().stdout_text().to_owned();
    let page = report(&[("run.json", &json)], &["run.json", "--format", "html"]).code(0).stdout_text().to_owned();
    let command = "rehearse run demo.yaml --filter &#39;^demo/http/2025-11-25$&#39; --seed 1 --trace";
    assert!(page.replace("'", "&#39;").contains(command), "{page}");
    story().args(["--list", "--filter", "^demo/http/2025-11-25$"]).run().stdout("demo/http/2025-11-25\n").code(0);
}

#[test]
fn parts_become_one_report_with_the_verdict_of_all() {
    let [one, two] = ["1/2", "2/2"].map(part);
    let files = [("one.json", one.as_str()), ("two.json", two.as_str())];
    let both = |args: &[&str]| report(&files, &[&["one.json", "two.json"], args].concat());
    let outputs = "verdict=failed\npassed=3\nfailed=1\nincomplete=0\nskipped=0\n";
    both(&["--format", "github-output"]).stdout(outputs).code(0);
    both(&["--format", "github-output", "--gate"]).stdout(outputs).code(1);
    let merged: Json = serde_json::from_str(both(&["--format", "json"]).stdout_text()).expect("JSON");
    let whole: Json = serde_json::from_str(story().args(["--format", "json"]).run().stdout_text()).expect("JSON");
    let cells = |result: &Json| -> Vec<Json> {
        let cells = result["scenarios"][0]["cells"].as_array().expect("cells").iter();
        cells.map(|cell| serde_json::json!([cell["cell"], cell["status"]])).collect()
    };
    assert_eq!(cells(&merged), cells(&whole));
}

#[test]
fn a_part_that_is_missing_is_named_and_is_no_pass() {
    let part = |shard: &str| {
        let run = story().args(["--filter", "ws|stdio|sse", "--shard", shard, "--format", "json"]).run().code(0);
        run.stdout_text().to_owned()
    };
    let [one, three] = ["1/3", "3/3"].map(part);
    let shard: Json = serde_json::from_str(&three).expect("JSON");
    assert_eq!(shard["shard"], serde_json::json!({ "index": 3, "count": 3 }));
    let files = [("one.json", one.as_str()), ("three.json", three.as_str())];
    let both = |args: &[&str]| report(&files, &[&["one.json", "three.json"], args].concat());
    both(&[]).stdout_has("# rehearse: incomplete").stdout_has("part 2 of 3 is missing").code(3);
    both(&["--gate", "--format", "junit"]).stdout_has("part 2 of 3 is missing").code(3);
    both(&["--part", "--gate"]).stdout_has("# rehearse: passed").code(0);
    let two = part("2/3");
    let all = [files[0], files[1], ("two.json", &two)];
    report(&all, &["one.json", "two.json", "three.json", "--gate"]).stdout_has("# rehearse: passed").code(0);
}

#[test]
fn what_cannot_be_reported_is_refused() {
    let run = story().args(["--report", "page.pdf"]).run().stdout("");
    run.stderr_has("\"page.pdf\" does not say the format of the report").code(2);
    report(&[("x.json", "{}")], &["x.json"]).stdout("").stderr_has("x.json: it is not a result").code(2);
    report(&[], &["gone.json"]).stdout("").stderr_has("cannot read gone.json").code(2);
    let check = Rehearse::new().args(["check", "--stdio", "false", "--format", "json"]).run().code(3);
    let check = [("check.json", check.stdout_text())];
    report(&check, &["check.json", "--format", "sarif"]).stdout("").stderr_has("SARIF needs a place").code(2);
    report(&check, &["check.json", "--format", "github", "--gate"]).stdout_has("::error ").code(3);
}
