//! `rehearse final-answer` at the command line, and the step of scenarios.

use std::process::Stdio;

use serde_json::{Value as Json, json};

use crate::rehearse::Rehearse;

const PAGE: &str = include_str!("../../docs/final-answer.md");

const SCHEMA: &str = r#"{ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } }"#;

fn story(dialog: &Json, args: &[&str]) -> Rehearse {
    let story = Rehearse::new().file("d.json", &dialog.to_string()).file("s.json", SCHEMA);
    story.args(["final-answer"]).args(args.iter().copied())
}

fn called(arguments: &Json) -> Json {
    json!([{ "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "final_answer", "input": arguments }] }])
}

/// The blocks of the page: info string and text.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let blocks = PAGE.split("\n```").skip(1).step_by(2);
    blocks.map(|block| block.split_once('\n').expect("a block has a first line")).collect()
}

fn with_files_of_the_page() -> Rehearse {
    blocks().into_iter().fold(Rehearse::new(), |story, (info, text)| match info.split_once(' ') {
        Some((_, name)) => story.file(name, text),
        None => story,
    })
}

#[test]
fn every_command_of_the_page_has_the_shown_output() {
    let consoles: Vec<_> = blocks().into_iter().filter(|(info, _)| *info == "console").collect();
    assert_eq!(consoles.len(), 2);
    for (_, console) in consoles {
        for command in console.split("$ rehearse ").skip(1) {
            let (args, expected) = command.split_once('\n').expect("a command has an output");
            let expected = format!("{}\n", expected.trim_end());
            let run = with_files_of_the_page().args(args.split(' ')).run();
            match expected.starts_with("error: ") {
                true => assert_eq!(run.stdout("").code(1).stderr(), expected, "{args}"),
                false => drop(run.stdout(&expected).code(0)),
            }
        }
    }
}

#[test]
fn the_scenario_of_the_page_passes_and_a_wrong_one_fails() {
    with_files_of_the_page().args(["run", "scenario.yaml"]).run().stdout_has("1 scenario, 1 cell: 1 passed").code(0);
    let wrong = "steps:\n- final_answer: { dialog: dialog.json, schema: review.schema.json }\n  expect: { structured: { verdict: merge } }";
    let run = with_files_of_the_page().file("wrong.yaml", wrong).args(["run", "wrong.yaml"]).run();
    run.stdout_has(r#"structured/verdict: expected "merge", found "wait""#).stdout_has("final_answer").code(1);
}

#[test]
fn a_dialog_can_be_standard_input_or_the_result_of_a_step() {
    let run = story(&json!([]), &["-", "--schema", "s.json"]).stdin(&called(&json!({ "n": 1 })).to_string()).run();
    run.stdout("{\"n\":1}\n").code(0);
    let dialog = Json::from(called(&json!({ "n": 2 })).to_string());
    let mock = format!("tools: [{{ name: talk, reply: {{ text: {dialog} }} }}]");
    let scenario = "
servers: { s: { mock: mock.yaml } }
matrix: { transport: ws }
steps:
- { call: { tool: talk }, capture: { said: /content/0/text } }
- { final_answer: { dialog: '{{ captured.said }}', schema: s.json }, expect: { structured: { n: 2 } } }
- parallel: [{ discover: {} }, { final_answer: { dialog: '{{ captured.said }}', schema: s.json }, expect: { text: '{\"n\":2}' } }]
";
    let story = Rehearse::new().file("s.json", SCHEMA).file("mock.yaml", &mock).file("d.yaml", scenario);
    story.args(["run", "d.yaml"]).run().stdout_has("2 passed").code(0);
}

#[test]
fn an_invalid_answer_exits_with_1_and_unreadable_input_with_2() {
    let run = story(&called(&json!({ "n": "1" })), &["d.json", "--schema", "s.json"]).run().stdout("");
    run.stderr_has("d.json:1:").stderr_has("/n: \"1\" is not of type \"integer\"").code(1);
    let run = story(&json!([{ "role": "assistant", "content": "One." }]), &["d.json", "--schema", "s.json"]).run();
    run.stderr_has("error: subagent did not call final_answer tool\nhint: its last turn is a text: \"One.\"").code(1);
    let twice = json!([{ "role": "assistant", "function_call": { "name": "final_answer", "arguments": "{\"n\":1}" },
        "tool_calls": [{ "function": { "name": "final_answer", "arguments": "{\"n\"" } }] }]);
    let run = story(&twice, &["d.json", "--schema", "s.json"]).run().stdout("{\"n\":1}\n");
    run.stderr_has("info: 2 calls of final_answer; the one at d.json:1:").code(0);

    story(&json!([5]), &["d.json"]).run().stdout("").stderr_has("d.json:1:2: expected an object").code(2);
    story(&json!([]), &["gone.json"]).run().stderr_has("cannot read gone.json: ").code(2);
    story(&json!([]), &["d.json", "--schema", "d.json"]).run().stderr_has("d.json:1:1: expected an object").code(2);
    let broken =
        story(&json!([]), &["d.json", "--schema", "b.json"]).file("b.json", r#"{"properties":{"a":{"type":"x"}}}"#);
    broken.run().stderr_has("b.json:1:28: not a valid JSON Schema at /properties/a/type: ").code(2);
    Rehearse::new().args(["final-answer"]).run().stderr_has("<DIALOG>").code(2);
    Rehearse::new().args(["final-answer", "--help"]).run().stdout_has("Examples:").stdout_has("Exit codes:").code(0);
}

#[test]
fn json_has_the_answer_or_the_error_with_locations_and_the_tool_result() {
    let report = |dialog: &Json, args: &[&str], code: i32| {
        let run = story(dialog, &[args, &["d.json", "--format", "json"]].concat()).run().code(code);
        serde_json::from_str::<Json>(run.stdout_text()).expect("JSON")
    };
    let schema = ["--schema", "s.json"];
    let answer = report(&called(&json!({ "n": 1 })), &schema, 0);
    let content = json!([{ "type": "text", "text": "{\"n\":1}" }]);
    assert_eq!(answer["answer"], json!({ "n": 1 }));
    assert_eq!(answer["at"]["pointer"], "/0/content/0/input");
    assert_eq!(answer["result"], json!({ "content": content, "structuredContent": { "n": 1 } }));
    let said = report(&json!([{ "role": "assistant", "content": "One." }]), &[], 0);
    assert_eq!((&said["answer"], &said["text"]), (&Json::Null, &json!("One.")));

    let failed = report(&called(&json!({ "n": "x" })), &schema, 1);
    assert_eq!(failed["error"]["kind"], "mismatch");
    let violation = &failed["error"]["violations"][0];
    assert_eq!((&violation["path"], &violation["at"]["pointer"]), (&json!("/n"), &json!("/0/content/0/input/n")));
    assert!(violation["at"]["column"].as_u64() > failed["error"]["at"]["column"].as_u64(), "{failed:#}");
    assert_eq!(failed["result"]["isError"], true);
    assert_eq!(report(&json!([]), &schema, 1)["error"]["hint"], "no message has the role `assistant`");
}

#[test]
fn the_tool_is_defined_for_each_provider() {
    for (provider, pointer) in [("anthropic", "/input_schema"), ("openai", "/function/parameters")] {
        let run = story(&json!([]), &["--tool", provider, "--schema", "s.json"]).run().code(0);
        let tool: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
        assert_eq!(tool.pointer(pointer), Some(&serde_json::from_str(SCHEMA).expect("JSON")));
    }
    story(&json!([]), &["--tool", "openai"]).run().stderr_has("--schema").code(2);
}

#[test]
fn an_answer_that_cannot_be_written_is_not_a_success() {
    let said = json!([{ "role": "assistant", "content": "One." }]);
    for format in ["human", "json"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("opens");
        let status = story(&said, &["d.json", "--format", format]).status(Stdio::null(), full);
        assert_eq!(status.code(), Some(3), "{format}");
    }
}
