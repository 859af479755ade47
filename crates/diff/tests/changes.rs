//! A table of changes, each with the classes that it must have.

use std::collections::BTreeSet;

use rehearse_diff::{RecordedCall, Surface, compare, compare_calls, schema::RULES};
use rehearse_protocol::List;
use serde_json::Value as Json;

fn lines(old: &Json, new: &Json) -> BTreeSet<String> {
    let changes = compare(&Surface::from_json(old), &Surface::from_json(new));
    changes.iter().map(|change| format!("{} {} {}", change.class, change.rule, change.subject)).collect()
}

#[test]
fn each_change_has_its_class_and_its_rule() {
    for line in include_str!("changes.jsonl").lines() {
        let case: Json = serde_json::from_str(line).expect("a case");
        let expected: BTreeSet<_> = case["changes"]
            .as_array()
            .expect("changes")
            .iter()
            .map(|it| it.as_str().expect("a text").to_owned())
            .collect();
        assert_eq!(lines(&case["old"], &case["new"]), expected, "{}", case["name"]);
        assert!(lines(&case["old"], &case["old"]).is_empty(), "{}", case["name"]);
    }
}

#[test]
fn a_place_is_where_the_change_is_in_the_surface_file() {
    let list = |required: bool| {
        serde_json::json!({ "prompts": [{ "name": "z" },
        { "name": "p", "arguments": [{ "name": "x", "required": required }] }] })
    };
    let (old, new) = (Surface::from_json(&list(false)), Surface::from_json(&list(true)));
    let change = compare(&old, &new).remove(0);
    for (pointer, surface) in [(change.old, old), (change.new, new)] {
        let pointer = pointer.expect("a place");
        assert_eq!(pointer, "/prompts/0/arguments/0");
        assert_eq!(surface.to_json().pointer(&pointer).expect("a value")["name"], "x");
    }
}

#[test]
fn the_page_about_changes_has_every_rule() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/changes.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let rows =
        RULES.iter().map(|rule| format!("| `{}` | {} | {} | {} |\n", rule.id, rule.input, rule.output, rule.meaning));
    let table = format!("| rule | input | output | meaning |\n| --- | --- | --- | --- |\n{}", rows.collect::<String>());
    let (before, rest) = page.split_once("<!-- rules -->\n").expect("the beginning");
    let (_, after) = rest.split_once("<!-- end of the rules -->").expect("the end");
    let written = format!("{before}<!-- rules -->\n{table}<!-- end of the rules -->{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &written).expect("writes");
    }
    assert_eq!(page.replace("\r\n", "\n"), written, "UPDATE_DOCS=1 writes the page");
    for line in include_str!("changes.jsonl").lines() {
        let case: Json = serde_json::from_str(line).expect("a case");
        for change in case["changes"].as_array().expect("changes") {
            let rule = change.as_str().and_then(|text| text.split(' ').nth(1)).expect("a rule");
            let (of, name) = rule.rsplit_once('.').expect("a dot");
            let is_of_schema = RULES.iter().any(|it| it.id == name) && matches!(of, "input" | "output");
            let is_named = before.contains(&format!("`{rule}`")) || before.contains(&format!("`tool.{name}`"));
            assert!(is_of_schema || is_named, "{rule}");
        }
    }
}

#[test]
fn long_texts_are_shown_where_they_differ() {
    let tool = |end: &str| {
        let description = format!("{}{end}", "Many words that both descriptions begin with, ".repeat(5));
        Surface::from_json(&serde_json::json!({ "tools": [{ "name": "a", "description": description }] }))
    };
    let change = compare(&tool("old ü"), &tool("new ü")).remove(0);
    let said =
        "`description` differs, \"…descriptions begin with, old ü\" before, \"…descriptions begin with, new ü\" now";
    assert!(change.message.starts_with(said), "{}", change.message);
}

#[test]
fn the_outcomes_of_the_same_calls_are_compared() {
    let call = |name: &str, n: u32, outcome: &str| RecordedCall {
        list: List::Tools,
        name: name.to_owned(),
        arguments: serde_json::json!({ "n": n }),
        client: None,
        has_succeeded: outcome != "failed",
        has_structured_content: outcome == "structured",
    };
    let changes = |old: &[RecordedCall], new: &[RecordedCall]| {
        let changes = compare_calls(old, new);
        let line = |it: &rehearse_report::diff::Change| {
            let instance = it.instance.as_ref().expect("the arguments");
            format!("{} {} {} {instance} {}", it.class, it.rule, it.subject, it.message)
        };
        changes.iter().map(line).collect::<Vec<_>>()
    };
    let old = [
        call("a", 1, "text"),
        call("a", 2, "text"),
        call("b", 1, "failed"),
        call("c", 1, "structured"),
        call("d", 1, "text"),
        call("d", 2, "text"),
        call("e", 1, "text"),
        call("e", 1, "failed"),
        call("f", 1, "text"),
    ];
    let new = [
        call("d", 1, "structured"),
        call("a", 1, "failed"),
        call("a", 2, "failed"),
        call("b", 1, "text"),
        call("c", 1, "text"),
        call("e", 1, "text"),
        call("f", 2, "failed"),
    ];
    assert_eq!(
        changes(&old, &new),
        [
            "breaking call.fails tool a {\"n\":1} A recorded call worked before and has an error now (and 1 more of it).",
            "breaking call.structure-removed tool c {\"n\":1} A recorded call has no structured content any more.",
            "behaviour call.works tool b {\"n\":1} A recorded call had an error before and works now.",
            "addition call.structure-added tool d {\"n\":1} A recorded call has structured content now.",
        ]
    );
    assert!(changes(&old, &old).is_empty());
}
