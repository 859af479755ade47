use rehearse_document::json_schema::compile_with_formats;

use super::*;

/// `class rule`, with `*` if there is an instance.
fn describe(change: &SchemaChange) -> String {
    let possibly = if change.is_possible { "possibly " } else { "" };
    let evidence = if change.instance.is_some() { " *" } else { "" };
    format!("{possibly}{} {}{evidence}", change.class, change.rule)
}

/// Whether the instance of a change is on the side that it must be on.
fn separates(old: &Json, new: &Json, change: &SchemaChange, direction: Direction) -> bool {
    let Some(instance) = &change.instance else { return true };
    let accepts = |schema: &Json| compile_with_formats(schema).is_ok_and(|it| it.is_valid(instance));
    let is_refused_now = (direction == Direction::Input) == (change.class == Class::Breaking);
    (accepts(old), accepts(new)) == (is_refused_now, !is_refused_now)
}

#[test]
fn every_change_has_its_class_in_both_directions() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in include_str!("tests/cases.jsonl").lines() {
        let case: Json = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        for (direction, key) in [(Direction::Input, "input"), (Direction::Output, "output")] {
            let (old, new) = (&case["old"], &case["new"]);
            let changes = compare(old, new, direction);
            let found: Vec<_> = changes.iter().map(describe).collect();
            let expected: Vec<_> =
                case[key].as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect();
            if found != expected {
                let messages: Vec<_> = changes.iter().map(|it| (&it.message, &it.instance)).collect();
                wrong.push(format!("{} {key}: {found:?}, not {expected:?}: {messages:?}", case["name"]));
            }
            for change in changes.iter().filter(|change| !separates(old, new, change, direction)) {
                wrong.push(format!("{} {key}: the instance of {change:?} does not separate", case["name"]));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 120, "{count} comparisons");
}
