use proptest::prelude::*;
use rehearse_document::json_schema::{self, View, compile_with_formats, instances::Instances};
use serde_json::json;

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
    let accepts =
        |schema: &Json| schema.is_null() || compile_with_formats(schema).is_ok_and(|it| it.is_valid(instance));
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

#[test]
fn a_change_is_said_with_its_path_and_its_reason() {
    let tags = |tag: Json| json!({ "properties": { "filter": { "properties": { "tags": { "items": tag } } } } });
    let say = |old: Json, new: Json, direction| {
        let changes = compare(&tags(old), &tags(new), direction);
        changes.into_iter().map(|it| it.message).collect::<Vec<_>>().join(" ")
    };
    let failing = json!({ "anyOf": [{ "required": ["a"] }, { "properties": { "error": {} }, "required": ["error"] }] });
    assert_eq!(
        say(json!({ "required": ["a"] }), failing, Direction::Output),
        "`filter.tags[]` has one more alternative, in which `a` may be missing: a reader may meet values that it does not \
         expect."
    );
    let limit = |most: u32| json!({ "type": "integer", "maximum": most });
    assert_eq!(
        say(limit(100), limit(50), Direction::Input),
        "`filter.tags[]` must be at most 50 now, at most 100 before: larger values are refused."
    );
    assert_eq!(
        say(json!({ "enum": ["a"] }), json!({ "enum": ["a", "b"] }), Direction::Output),
        "`filter.tags[]` may be \"b\" now: a reader may meet values that it does not expect."
    );
    assert_eq!(
        say(json!({ "pattern": "^(?=a)a$" }), json!({ "pattern": "^a$" }), Direction::Input),
        "`filter.tags[]` must have the pattern \"^a$\" now, \"^(?=a)a$\" before: possibly breaking, none of 1000 \
         generated values shows it."
    );
}

#[test]
fn schemas_that_refer_to_themselves_and_what_is_no_schema_come_to_an_end() {
    let list = |least: u32| json!({ "type": "array", "items": { "$ref": "#" }, "minItems": least });
    let parts = json!([{ "$ref": "#" }, { "$ref": "#" }, { "not": { "$ref": "#/x" } }]);
    let schemas = [
        json!({ "anyOf": [list(0), list(1), list(2)] }),
        json!({ "anyOf": [list(0), list(1), list(3), { "not": { "$ref": "#" } }] }),
        json!({ "allOf": parts, "oneOf": parts, "x": list(4) }),
        json!({ "$ref": "#" }),
        json!({ "properties": 5, "required": {}, "enum": 1, "anyOf": {}, "allOf": [1], "items": [[]] }),
        json!([5]),
    ];
    for old in &schemas {
        for new in &schemas {
            let changes = compare(old, new, Direction::Input);
            assert_eq!(changes.is_empty(), old == new, "{old} {new}");
        }
    }
}

/// A schema of few words, so that two of them have much in common.
fn schema() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!({ "type": "string" })),
        (0..4u8, 0..4u8)
            .prop_map(|(least, more)| json!({ "type": "integer", "minimum": least, "maximum": least + more })),
        prop::sample::subsequence(vec!["a", "b", "c"], 1..3).prop_map(|it| json!({ "enum": it })),
        Just(json!({ "type": ["string", "null"], "pattern": "^a+$" })),
        Just(json!({ "$ref": "#" })),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let named = prop::collection::btree_map("[a-c]", inner.clone(), 0..3);
        let required = prop::sample::subsequence(vec!["a", "b", "c"], 0..2);
        let object = (named, required, any::<bool>()).prop_map(|(properties, required, is_open)| {
            json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": is_open })
        });
        let list = (prop_oneof!["anyOf", "oneOf", "allOf"], prop::collection::vec(inner.clone(), 1..3));
        prop_oneof![
            object,
            list.prop_map(|(keyword, schemas)| json!({ keyword: schemas })),
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            inner.prop_map(|it| json!({ "not": it })),
        ]
    })
}

/// The same schema with its keys and lists without order the other way round.
fn reversed(value: &Json) -> Json {
    let is_unordered = |key: &str| ["required", "enum", "type", "anyOf", "oneOf"].contains(&key);
    match value {
        Json::Object(members) => members
            .iter()
            .rev()
            .map(|(key, value)| match reversed(value) {
                Json::Array(mut items) if is_unordered(key) => {
                    items.reverse();
                    (key.clone(), items.into())
                }
                value => (key.clone(), value),
            })
            .collect(),
        Json::Array(items) => items.iter().map(reversed).collect(),
        other => other.clone(),
    }
}

#[test]
fn a_required_property_that_every_value_was_refused_with_is_new() {
    let of = |properties: Json| json!({ "properties": properties, "required": ["c"], "additionalProperties": false });
    let changes = compare(&of(json!({})), &of(json!({ "c": {} })), Direction::Output);
    assert_eq!(changes.iter().map(|it| it.rule).collect::<Vec<_>>(), ["property-added"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_schema_is_the_same_in_another_order(schema in schema()) {
        for direction in [Direction::Input, Direction::Output] {
            prop_assert_eq!(compare(&schema, &reversed(&schema), direction), []);
        }
    }

    #[test]
    fn every_instance_separates_the_schemas(old in schema(), new in schema()) {
        for direction in [Direction::Input, Direction::Output] {
            let changes = compare(&old, &new, direction);
            prop_assert!(changes.iter().all(|it| separates(&old, &new, it, direction)), "{:?}", changes);
            // Without a bad change, no value shows one.
            let is_new = |it: &SchemaChange| ["property-added", "required-added", "additional-properties-allowed"].contains(&it.rule);
            if changes.iter().all(|it| it.class < Class::Behaviour && !is_new(it)) {
                let (source, target) = if direction == Direction::Input { (&old, &new) } else { (&new, &old) };
                let accepts = |schema: &Json, value: &Json| json_schema::accepts(schema, value) == Some(true);
                let mut values = Instances::new(View::new(source), 9).take(100);
                let broken = values.find(|value| accepts(source, value) && !accepts(target, value));
                prop_assert_eq!(broken, None, "{:?}", changes);
            }
        }
    }
}
