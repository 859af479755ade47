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
    for script in include_str!("refused.txt").lines() {
        assert!(Script::parse(&Source::new("s", script)).is_err(), "the reader accepts {script}");
        assert!(!validator.is_valid(&json(script)), "the schema accepts {script}");
    }
}
