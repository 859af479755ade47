//! The JSON Schema of script files, for editors: draft-07, which the YAML language server of VS Code knows best.
//!
//! It says what the reader says, as far as a schema can: tests hold its keys to those of the reader, and its judgement
//! to the reader's. Every key has a description, which editors show, and examples.

mod fault;
mod input_request;
mod item;
mod reply;
mod server;
mod skill;
mod step;
#[cfg(test)]
mod tests;
mod when;

use serde_json::{Map, Value as Json, json};

/// The keys of a mapping: `"name": schema, "description", [examples];`
macro_rules! keys {
    ($($name:literal: $schema:expr, $description:expr, $examples:tt;)*) => {
        vec![$(($name, $crate::mock::script::schema::described($schema, $description, json!($examples)))),*]
    };
}
use keys;

/// The keys of a mapping with the schemas of their values.
type Keys = Vec<(&'static str, Json)>;

/// The schema of a script file.
pub fn schema() -> Json {
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Mock script of rehearse",
        "description": "What a mock MCP server offers and how it answers.",
    });
    let root = object(&[], server::keys());
    let definitions = [server::definitions(), item::definitions(), reply::definitions(), step::definitions()];
    let more = [input_request::definitions(), when::definitions(), skill::definitions(), fault::definitions()];
    let definitions: Map<_, _> = definitions.into_iter().chain(more).flatten().collect();
    if let (Json::Object(schema), Json::Object(root)) = (&mut schema, root) {
        schema.extend(root);
        schema.insert("definitions".into(), definitions.into());
    }
    schema
}

/// Definitions by their names.
type Definitions = Vec<(String, Json)>;

/// A mapping with these keys and no others.
fn object(required: &[&str], keys: Keys) -> Json {
    let properties: Map<_, _> = keys.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let mut object = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// A schema with what editors show of it. A reference takes them along, though draft-07 reads nothing beside it.
fn described(mut schema: Json, description: &str, examples: Json) -> Json {
    schema["description"] = description.into();
    if examples.as_array().is_some_and(|examples| !examples.is_empty()) {
        schema["examples"] = examples;
    }
    schema
}

/// A schema with further members.
fn with(mut schema: Json, members: Json) -> Json {
    if let (Json::Object(schema), Json::Object(members)) = (&mut schema, members) {
        schema.extend(members);
    }
    schema
}

fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/definitions/{name}") })
}

fn list_of(items: Json) -> Json {
    json!({ "type": "array", "items": items })
}

/// One of it, or a list of them.
fn one_or_more(item: Json) -> Json {
    json!({ "anyOf": [item.clone(), { "type": "array", "items": item, "minItems": 1 }] })
}

fn text() -> Json {
    json!({ "type": "string" })
}

/// A text that may be a template. A number is taken as it is written.
fn template() -> Json {
    json!({ "type": ["string", "number"] })
}

/// Data whose texts may be templates.
fn any() -> Json {
    json!({})
}

fn mapping() -> Json {
    json!({ "type": "object" })
}

fn flag(default: bool) -> Json {
    json!({ "type": "boolean", "default": default })
}

fn choice(words: &[&str]) -> Json {
    json!({ "enum": words })
}

fn whole(minimum: u64) -> Json {
    json!({ "type": "integer", "minimum": minimum })
}

const DURATION: &str = r"^\s*\d*\.?\d+\s*(ms|s|m|min)\s*$";

fn duration() -> Json {
    json!({ "anyOf": [{ "type": "string", "pattern": DURATION }, { "const": 0 }] })
}

/// What has one of these keys, and not two.
fn exactly_one(keys: &[&str]) -> Json {
    json!({ "oneOf": keys.iter().map(|key| json!({ "type": "object", "required": [key] })).collect::<Vec<_>>() })
}

/// What has at most one of these keys.
fn at_most_one(keys: &[&str]) -> Json {
    let pairs = keys.iter().enumerate().flat_map(|(index, first)| keys[index + 1..].iter().map(move |it| [first, it]));
    json!({ "not": { "anyOf": pairs.map(|pair| json!({ "required": pair })).collect::<Vec<_>>() } })
}
