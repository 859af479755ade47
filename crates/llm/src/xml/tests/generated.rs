//! Generated requests.

use proptest::prelude::*;

use super::*;

fn json_value() -> impl Strategy<Value = Value> {
    let text = "([a-z<>&;\\[\\]{}\" \n`]|</?(t|p|a)>|<!\\[CDATA\\[|\\]\\]>|&lt;|true|null|[0-9]){0,8}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000_i32..1000).prop_map(|number| Value::from(f64::from(number) / 4.0)),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z<& ]{1,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A schema for the value: with its type, with several types, or without a type.
fn schema_of(value: &Value, choice: u8) -> Value {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    match choice {
        0 => json!({ "type": kind }),
        1 => json!({ "type": [kind, "string"] }),
        2 => json!({ "anyOf": [{ "type": "null" }, { "type": kind }] }),
        3 => json!({ "enum": [value, 1, "1"] }),
        _ => json!({}),
    }
}

const NAME: &str = "[A-Za-z][A-Za-z0-9_.@:-]{0,6}";

proptest! {
    #[test]
    fn written_requests_read_back_as_the_same_arguments(
        name in NAME,
        members in prop::collection::btree_map(NAME, (json_value(), 0..5_u8), 0..4),
        before in "[a-z .\n]{0,8}",
        after in "[a-z .`\n]{0,8}",
    ) {
        let properties: Map<_, _> =
            members.iter().map(|(name, (value, choice))| (name.clone(), schema_of(value, *choice))).collect();
        let schema = json!({ "type": "object", "properties": properties });
        let arguments: Map<_, _> = members.into_iter().map(|(name, (value, _))| (name, value)).collect();
        let written = write(&name, &arguments, &schema);
        let requests = parser_with(&[(&name, schema)], many()).parse(&format!("{before}{written}{after}"));
        prop_assert_eq!(&requests.errors, &[], "{}", written);
        prop_assert_eq!(requests.calls.len(), 1, "{}", written);
        prop_assert_eq!(&requests.calls[0].arguments, &arguments, "{}", written);
        prop_assert_eq!(requests.calls[0].range.clone(), before.len()..before.len() + written.len());
    }

    #[test]
    fn the_parser_accepts_any_text(
        text in "(<|>|/|</?(read_file|path|limit|ping|use_mcp_tool|tool_name|arguments|thinking|x_y)>|<ping/>|<!\\[CDATA\\[|\\]\\]>|<!--|-->|```|`|\n|ä|&lt;|&#|[{}\\[\\]a1 ]){0,40}",
        strict in any::<bool>(),
    ) {
        let grammar = if strict { Grammar::Strict } else { Grammar::Registry };
        let tools = [("read_file", read_file()), ("ping", json!({})), ("", json!({}))];
        let requests = parser_with(&tools, Options { grammar, ..many() }).parse(&text);
        for range in requests.calls.iter().map(|call| &call.range).chain(requests.errors.iter().map(|it| &it.range)) {
            prop_assert!(text.get(range.clone()).is_some_and(|it| it.starts_with('<')), "{:?}", range);
        }
    }
}
