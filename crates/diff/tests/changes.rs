//! A table of changes, each with the classes that it must have.

use std::collections::BTreeSet;

use rehearse_diff::{Surface, compare};
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
