use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A mock script, so that the bindings can also be tried with a server.
const TOOLS: &str = include_str!("tools.json");

fn tools() -> Vec<Tool> {
    let script: Value = serde_json::from_str(TOOLS).expect("JSON");
    let tool = |tool: &Value| Tool {
        name: tool["name"].as_str().expect("a name").to_owned(),
        description: tool["description"].as_str().map(str::to_owned),
        input_schema: tool["inputSchema"].clone(),
        output_schema: tool.get("outputSchema").cloned(),
    };
    script["tools"].as_array().expect("tools").iter().map(tool).collect()
}

fn named(name: &str) -> Tool {
    Tool { name: name.to_owned(), description: None, input_schema: json!({}), output_schema: None }
}

#[test]
fn bindings_of_all_that_schemas_have() {
    insta::assert_snapshot!("bindings.ts", Language::TypeScript.bindings(&tools()));
    insta::assert_snapshot!("bindings.go", Language::Go.bindings(&tools()));
}

#[test]
fn definitions_for_a_model() {
    let tools = &tools()[..1];
    insta::assert_snapshot!("definitions.ts", Language::TypeScript.definitions(tools));
    insta::assert_snapshot!("definitions.go", Language::Go.definitions(tools));
}

#[test]
fn a_reference_to_another_document_is_any_value() {
    let schema = json!({ "type": "object", "properties": { "a": { "$ref": "https://example.com/schema" } } });
    let tools = [Tool { input_schema: schema, ..named("t") }];
    assert!(Language::TypeScript.definitions(&tools).contains("  a?: unknown;\n"));
    assert!(Language::Go.definitions(&tools).contains("\tA any `json:\"a,omitempty\"`\n"));
}

#[test]
fn the_order_of_the_tools_does_not_matter() {
    let (tools, mut reversed) = (tools(), tools());
    reversed.reverse();
    for language in [Language::TypeScript, Language::Go] {
        assert_eq!(language.bindings(&tools), language.bindings(&reversed));
    }
}

#[test]
fn a_tool_whose_name_is_an_identifier_keeps_it() {
    let tools = ["get-user", "get_user", "get.user", "GetUser"].map(named);
    let typescript = Language::TypeScript.bindings(&tools);
    for (function, tool) in
        [("GetUser", "GetUser"), ("get_user2", "get-user"), ("get_user3", "get.user"), ("get_user", "get_user")]
    {
        assert!(typescript.contains(&format!("    {function}: async () => (await callTool(client, {tool:?}, ")));
    }
    let go = Language::Go.bindings(&tools);
    assert!(go.contains("func (t Tools) GetUser(ctx context.Context) (GetUserOutput, error) {\n\treturn call[GetUserOutput](ctx, t.Session, \"GetUser\","), "{go}");
}

#[test]
fn collisions_are_errors_in_the_words_of_cpe() {
    let check = |language: Language, names: &[&str]| {
        let tools: Vec<_> = names.iter().map(|name| named(name)).collect();
        language.check_names(&tools, "execute_go_code").map_or_else(|error| error.to_string(), |()| String::new())
    };
    assert_eq!(check(Language::Go, &["a_b", "c"]), "");
    assert_eq!(
        check(Language::Go, &["x", "get_user", "get-user"]),
        "code mode collision: tools \"get-user\" and \"get_user\" both convert to Go function name \"GetUser\"; exclude \
         one using 'excludedTools' configuration or remove one of the MCP servers providing them"
    );
    assert_eq!(check(Language::TypeScript, &["getUser", "GetUser"]), "");
    assert!(check(Language::TypeScript, &["get.user", "get-user"]).contains("name \"get_user\""));
    assert_eq!(
        check(Language::Go, &["execute_go_code"]),
        "code mode collision: tool \"execute_go_code\" conflicts with reserved code mode tool name; either exclude this \
         tool using 'excludedTools' configuration or remove the MCP server providing it"
    );
}

/// Small schemas with references to each other.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({ "type": "string" })),
        Just(json!({ "const": 1.5 })),
        Just(json!({ "enum": ["a", null, 3] })),
        (0..3).prop_map(|n| json!({ "$ref": format!("#/$defs/d{n}") })),
        Just(json!({ "$ref": "#" })),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            ("[a-c\"-]{0,2}", inner.clone(), any::<bool>()).prop_map(|(name, schema, is_required)| {
                let required: Vec<_> = is_required.then(|| name.clone()).into_iter().collect();
                json!({ "type": "object", "properties": { name: schema }, "required": required })
            }),
            inner.clone().prop_map(|schema| json!({ "type": "object", "additionalProperties": schema })),
            inner.clone().prop_map(|schema| json!({ "type": ["array", "null"], "items": schema })),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|all| json!({ "prefixItems": all })),
            ("(anyOf|oneOf|allOf)", prop::collection::vec(inner, 0..3)).prop_map(|(key, all)| json!({ key: all })),
        ]
    })
}

proptest! {
    #[test]
    fn every_schema_becomes_definitions_with_brackets_in_pairs(root in schemas(), definitions in prop::array::uniform3(schemas())) {
        let [a, b, c] = definitions;
        let mut schema = json!({ "allOf": [root] });
        schema["$defs"] = json!({ "d0": a, "d1": b, "d2": c });
        let tool = Tool { input_schema: schema.clone(), output_schema: Some(schema), ..named("t") };
        for language in [Language::TypeScript, Language::Go] {
            let text = language.bindings(std::slice::from_ref(&tool));
            for [open, close] in [['{', '}'], ['(', ')'], ['[', ']']] {
                prop_assert_eq!(text.matches(open).count(), text.matches(close).count(), "{}", text);
            }
        }
    }
}
