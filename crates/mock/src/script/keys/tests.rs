use serde_json::{Map, Value as Json, json};

use super::{KEYS, schema};
use crate::script::Script;
use rehearse_document::{Source, parse_yaml};

#[test]
fn every_line_of_the_table_is_read() {
    assert_eq!(KEYS.unread(), [""; 0]);
}

fn json(yaml: &str) -> Json {
    parse_yaml(&Source::new("s", yaml)).unwrap_or_else(|problems| panic!("{yaml}: {problems:?}")).to_json()
}

fn validator(schema: &Json) -> jsonschema::Validator {
    jsonschema::draft7::new(schema).unwrap_or_else(|error| panic!("{error}"))
}

/// Calls `visit` with every schema in a schema, and where it stands.
fn visit(schema: &Json, pointer: &str, visitor: &mut impl FnMut(&str, &Json)) {
    visitor(pointer, schema);
    for (name, member) in schema.as_object().into_iter().flatten() {
        match (name.as_str(), member) {
            ("properties" | "definitions", Json::Object(schemas)) => {
                for (key, schema) in schemas {
                    visit(schema, &format!("{pointer}/{name}/{key}"), visitor);
                }
            }
            ("anyOf" | "allOf" | "oneOf", Json::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    visit(schema, &format!("{pointer}/{name}/{index}"), visitor);
                }
            }
            ("items" | "additionalProperties" | "contains" | "not" | "if" | "then" | "else", schema) => {
                visit(schema, &format!("{pointer}/{name}"), visitor);
            }
            _ => {}
        }
    }
}

#[test]
fn the_schema_is_one_and_every_key_is_explained_with_examples_that_are_valid() {
    let root = schema();
    jsonschema::meta::validate(&root).unwrap_or_else(|error| panic!("{error}"));
    let (mut schemas, mut examples) = (Map::new(), Vec::new());
    visit(&root, "", &mut |pointer, schema| {
        let keys = schema["properties"].as_object().filter(|_| !pointer.contains("/if"));
        for (key, property) in keys.into_iter().flatten() {
            let description = property["description"].as_str().unwrap_or_default();
            assert!(description.ends_with('.'), "{pointer}: {key}: {description}");
            let is_shown = ["examples", "not", "$ref", "items"].iter().any(|member| property.get(member).is_some());
            assert!(is_shown || pointer.starts_with("/definitions/fault"), "{pointer}: {key} has no example");
        }
        for example in schema["examples"].as_array().into_iter().flatten() {
            schemas.insert(pointer.to_owned(), json!({ "allOf": [schema] }));
            examples.push(Json::Object(Map::from_iter([(pointer.to_owned(), example.clone())])));
        }
    });
    let validator = validator(&json!({ "properties": schemas, "definitions": root["definitions"] }));
    for example in &examples {
        let errors: Vec<_> = validator.iter_errors(example).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{example}: {errors:?}");
    }
    assert!(examples.len() > 200, "{}", examples.len());
}

/// What is wrong in the structure, rather than in a template or a name, is wrong for both.
#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let validator = validator(&schema());
    for script in [
        "- a list",
        "serve: {}",
        "server: {}",
        "server: { name: 5 }",
        "server: { name: a, version: 1.0 }",
        "protocol: 2025-11-24",
        "protocol: [2025-11-25, latest]",
        "pageSize: 0",
        "pageSize: many",
        "instructions: [a]",
        "capabilities: { tools: true }",
        "state: [1]",
        "unexpected: ignore",
        "requestState: { ttl: 10 }",
        "limits: { output: big }",
        "limits: { state: -1 }",
        "http: { answers: stream }",
        "http: { sessions: 1 }",
        "http: { retry: 500 }",
        "auth: { scopes: [a] }",
        "auth: { tokens: [{ scopes: [a] }] }",
        "auth: { tokens: [{ token: a b }] }",
        "auth: { tokens: [], scopes: [a b] }",
        "auth: { issuer: { path: as } }",
        "auth: { issuer: { clients: [{ secret: s }] } }",
        "auth: { issuer: { expireAfter: -1 } }",
        "auth: { issuer: { token: [] } }",
        "tools: { name: t }",
        "tools: [{ reply: x }]",
        "tools: [{ name: t, description: 5 }]",
        "tools: [{ name: t, annotations: x }]",
        "tools: [{ name: t, inputSchema: [] }]",
        "tools: [{ name: t, reply: { text: a, json: b } }]",
        "tools: [{ name: t, reply: {} }]",
        "tools: [{ name: t, reply: [a] }]",
        "tools: [{ name: t, reply: a, steps: [{ reply: a }] }]",
        "tools: [{ name: t, reply: a, rules: [] }]",
        "tools: [{ name: t, replies: [] }]",
        "tools: [{ name: t, then: cycle, reply: a }]",
        "tools: [{ name: t, replies: [a], then: first }]",
        "tools: [{ name: t, delay: 5, reply: a }]",
        "tools: [{ name: t, delay: 5h, reply: a }]",
        "tools: [{ name: t, enabled: yes, reply: a }]",
        "tools: [{ name: t, repeat: 0, reply: a }]",
        "tools: [{ name: t, repeat: 100001, reply: a }]",
        "tools: [{ name: t, expect: 2, reply: a }]",
        "tools: [{ name: t, expect: { calls: -1 }, reply: a }]",
        "tools: [{ name: t, messages: [], reply: a }]",
        "tools: [{ name: t, reply: { result: 5 } }]",
        "tools: [{ name: t, reply: { content: a } }]",
        "tools: [{ name: t, reply: { content: [{ text: a }] } }]",
        "tools: [{ name: t, reply: { content: [{ type: text }] } }]",
        "tools: [{ name: t, reply: { content: [{ type: image, data: aGk= }] } }]",
        "tools: [{ name: t, reply: { text: x, _meta: [1] } }]",
        "tools: [{ name: t, reply: { rpcError: { code: 1 } } }]",
        "tools: [{ name: t, reply: { rpcError: { code: x, message: m } } }]",
        "tools: [{ name: t, reply: { rpcError: { code: 1, message: m, status: 99 } } }]",
        "tools: [{ name: t, reply: { result: [] } }]",
        "tools: [{ name: t, rules: [{ when: {} }] }]",
        "tools: [{ name: t, rules: [{ reply: a, replies: [b] }] }]",
        "tools: [{ name: t, rules: [{ when: { probability: 2 }, reply: a }] }]",
        "tools: [{ name: t, rules: [{ when: { era: old }, reply: a }] }]",
        "tools: [{ name: t, rules: [{ when: { version: 1 }, reply: a }] }]",
        "tools: [{ name: t, rules: [{ when: { transport: tcp }, reply: a }] }]",
        "tools: [{ name: t, rules: [{ when: { call: { every: 0 } }, reply: a }] }]",
        "tools: [{ name: t, rules: [{ when: { call: first }, reply: a }] }]",
        "tools: [{ name: t, rules: [{ when: { time: { after: 5 } }, reply: a }] }]",
        "tools: [{ name: t, rules: [{ when: { headers: [a] }, reply: a }] }]",
        "tools: [{ name: t, rules: [{ when: { args: { matches: 5 } }, reply: a }] }]",
        "tools: [{ name: t, rules: [{ when: { args: { equals: 5, other: 6 } }, reply: a }] }]",
        "tools: [{ name: t, rules: [{ when: { args: { exists: maybe } }, reply: a }] }]",
        "tools: [{ name: t, rules: [{ when: { args: { a: { b: { length: long } } } }, reply: a }] }]",
        "tools: [{ name: t, steps: [] }]",
        "tools: [{ name: t, steps: [{ wait: 5ms }] }]",
        "tools: [{ name: t, steps: [{ wait: 5 }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ wait: 5ms, reply: a }] }]",
        "tools: [{ name: t, steps: [{ if: 'true' }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ if: true, wait: 5ms }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ log: { level: loud, data: a } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ log: { level: info } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ progress: { total: 5 } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ progress: { progress: abc } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ set: [a] }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ notify: tools/list_changed }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ notify: { params: {} } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ enable: t }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ enable: { tool: t, prompt: p } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ replace: { tool: { reply: a } } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ task: { ttl: 5 } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ task: true }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ disconnect: 5ms }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ exit: 256 }] }]",
        "tools: [{ name: t, steps: [{ exit: now }] }]",
        "tools: [{ name: t, steps: [{ elicit: { requestedSchema: {} } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ elicit: { message: m } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ elicit: { mode: url, message: m } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ elicit: { as: a b, message: m, requestedSchema: {} } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ sample: { maxTokens: 5 } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ sample: { messages: hello } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ roots: { timeout: 5 } }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ ask: {} }, { reply: a }] }]",
        "tools: [{ name: t, steps: [{ ask: { a: { elicit: { message: m, requestedSchema: {}, as: b } } } }, { exit: 1 }]}]",
        "tools: [{ name: t, steps: [{ ask: { a: { roots: {}, sample: { messages: [] } } } }, { reply: a }] }]",
        "resources: [{ name: a }]",
        "resources: [{ uri: 'a:b', text: x, blob: aGk= }]",
        "resources: [{ uri: 'a:b', contents: x }]",
        "resources: [{ uri: 'a:b', reply: { structured: {} } }]",
        "resources: [{ uri: 'a:b', steps: [{ task: {} }, { reply: a }] }]",
        "resourceTemplates: [{ uri: 'a:b' }]",
        "prompts: [{ name: p, reply: text }]",
        "prompts: [{ name: p, messages: [{ role: robot, content: hi }] }]",
        "prompts: [{ name: p, messages: [{ role: user }] }]",
        "prompts: [{ name: p, messages: [{ role: user, content: [] }] }]",
        "prompts: [{ name: p, arguments: [{ required: true }] }]",
        "prompts: [{ name: p, arguments: [{ name: a, required: maybe }] }]",
        "methods: [{ reply: { result: {} } }]",
        "methods: [{ method: m, reply: text }]",
        "methods: [{ method: m, reply: { text: a } }]",
        "methods: [{ method: m, steps: [{ elicit: { message: m, requestedSchema: {} } }, { reply: { result: {} } }] }]",
        "completions: [{ argument: a, values: [] }]",
        "completions: [{ prompt: p, resource: 'a:{b}', argument: a, values: [] }]",
        "completions: [{ prompt: p, values: [] }]",
        "completions: [{ prompt: p, argument: a, values: [1] }]",
        "faults: { do: hang }",
        "faults: [{ on: { tool: t } }]",
        "faults: [{ do: [] }]",
        "faults: [{ do: hand }]",
        "faults: [{ do: { truncate: { before: 5 } } }]",
        "faults: [{ do: { hang: {}, reset: {} } }]",
        "faults: [{ on: { tool: t, prompt: p }, do: hang }]",
        "faults: [{ on: { probability: often }, do: hang }]",
        "tools: [{ name: t, ui: { html: x, file: y } }]",
        "tools: [{ name: t, ui: { html: x, visibility: [user] } }]",
        "skills: [{ name: s }]",
        "skills: [{ name: s, description: d, listed: 1 }]",
        "skills: [{ name: s, description: d, files: { a: { text: x, blob: aGk= } } }]",
        "skills: [{ name: s, description: d, files: [a] }]",
    ] {
        assert!(Script::parse(&Source::new("s", script)).is_err(), "the reader accepts {script}");
        assert!(!validator.is_valid(&json(script)), "the schema accepts {script}");
    }
}
