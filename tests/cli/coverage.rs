//! `rehearse run --coverage`.

use serde_json::Value as Json;

use crate::rehearse::Rehearse;

const MOCK: &str = "
server: { name: weather }
tools:
  - name: forecast
    inputSchema: { type: object, properties: { city: { type: string }, unit: { enum: [C, F] } }, required: [city] }
    reply: sunny
  - { name: broken, reply: { error: The disk is full. } }
prompts: [{ name: ask, messages: [{ role: user, content: hello }] }]
resources: [{ uri: 'page://1', text: one }]
resourceTemplates: [{ uriTemplate: 'day://{day}', name: day, text: '{{ args.day }}' }]
";

/// One scenario lists, another one calls; each has its own name for the server.
const LISTS: &str = "
servers: { s: { mock: ../mock.yaml } }
matrix: { transport: memory }
steps: [{ request: { method: tools/list } }, { list_resources: {} }, { list_resource_templates: {} }]
";
const CALLS: &str = "
servers: { other: { mock: ../mock.yaml } }
matrix: { transport: memory }
steps:
  - { call: { tool: forecast, args: { city: Bern, unit: F } } }
  - { call: { tool: broken }, expect: { isError: true } }
  - { read_resource: 'day://monday' }
  - { get_prompt: { name: ask } }
";

/// A run of both.
pub(crate) fn story(args: &[&str]) -> Rehearse {
    let files = [("mock.yaml", MOCK), ("scenarios/lists.yaml", LISTS), ("scenarios/calls.yaml", CALLS)];
    let story = files.iter().fold(Rehearse::new(), |story, (name, text)| story.file(name, text));
    story.args(["run", "--coverage"].iter().chain(args).copied())
}

#[test]
fn a_run_says_what_of_the_server_was_used_and_what_was_not() {
    let run = story(&[]).run().code(0);
    let text = run.stdout_text();
    let table = "\
Coverage: 58.3 % (7 of 12)
           tools  errors  prompts  resources  templates  branches
  weather    1/2     1/2      1/1        0/1        1/1       3/5
  not covered: weather: tool broken: no call that works
  not covered: weather: tool forecast: no call with /unit absent, /unit = \"C\"
  not covered: weather: tool forecast: no call that fails
  not covered: weather: resource page://1
  not covered: weather: no scenario lists the prompts, so it is unknown which are not used
";
    assert!(text.contains(table), "{text}");
}

#[test]
fn a_run_that_uses_too_little_fails() {
    story(&["--fail-under", "58.3%"]).run().code(0);
    let reports = ["--report", "run.json", "--report", "run.md", "--report", "run.xml", "--report", "run.html"];
    let run = story(&[&["--fail-under", "58.4"][..], &reports].concat()).run();
    let sentence = "the coverage is 58.3 %, which is less than 58.4 %";
    let run = run.stdout_has(sentence).code(1);
    let result: Json = serde_json::from_str(&run.read("run.json")).expect("JSON");
    assert_eq!((&result["verdict"], &result["coverage"]["failUnder"]), (&"failed".into(), &58.4.into()));
    for report in ["run.md", "run.xml", "run.html"] {
        assert!(run.read(report).contains(sentence), "{report}");
    }
    assert!(run.read("run.xml").contains("failures=\"1\""));
    story(&["--fail-under", "101%"]).run().stderr_has("write a number up to 100, such as 80%").code(2);
    Rehearse::new().args(["run", "--fail-under", "1%"]).run().stderr_has("--coverage").code(2);
}

#[test]
fn the_page_and_a_merged_result_have_the_coverage() {
    let run = story(&["--format", "json", "--report", "page.html"]).run().code(0);
    let found: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    assert_eq!((&found["coverage"]["covered"], &found["coverage"]["percent"]), (&7.into(), &58.3.into()));
    assert!(run.read("page.html").contains("Coverage: 58.3 % (7 of 12)"));
    // What one part has not used, another one has.
    let part = |filter| story(&["--format", "json", "--filter", filter]).run().code(0).stdout_text().to_owned();
    let merged = Rehearse::new().file("a.json", &part("^lists/")).file("b.json", &part("^calls/"));
    let merged = merged.args(["report", "a.json", "b.json", "--format", "json"]).run().code(0);
    let merged: Json = serde_json::from_str(merged.stdout_text()).expect("JSON");
    let names = |value: &Json| {
        let items = value["coverage"]["servers"][0]["items"].as_array().expect("items").iter();
        let covered = items.filter(|item| item["covered"] == true && item["kind"] == "tool");
        covered.map(|item| item["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((names(&merged), names(&found)), (vec!["forecast".into()], vec!["forecast".into()]));
}
