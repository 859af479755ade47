//! The building blocks of the schema.

use serde_json::{Map, Value as Json, json};

/// The keys of an object: `"name": schema, "description", [examples];`
macro_rules! keys {
    ($($name:literal: $schema:expr, $description:expr, $examples:tt;)*) => {
        vec![$(($name, $crate::script::schema::build::described($schema, $description, json!($examples)))),*]
    };
}
pub(super) use keys;

/// The keys of an object with the schemas of their values.
pub(super) type Keys = Vec<(&'static str, Json)>;

/// Definitions by their names.
pub(super) type Definitions = Vec<(String, Json)>;

/// An object with these keys and no others.
pub(super) fn object(required: &[&str], keys: Keys) -> Json {
    let properties: Map<_, _> = keys.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let mut object = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// A schema with a description and examples for editors. A reference has them too, although draft-07 ignores them
/// there.
pub(super) fn described(mut schema: Json, description: &str, examples: Json) -> Json {
    schema["description"] = description.into();
    if examples.as_array().is_some_and(|examples| !examples.is_empty()) {
        schema["examples"] = examples;
    }
    schema
}

/// A schema with further members.
pub(super) fn extend(mut schema: Json, members: Json) -> Json {
    if let (Json::Object(schema), Json::Object(members)) = (&mut schema, members) {
        schema.extend(members);
    }
    schema
}

pub(super) fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/definitions/{name}") })
}

pub(super) fn list_of(items: Json) -> Json {
    json!({ "type": "array", "items": items })
}

/// One item, or a list of items.
pub(super) fn one_or_more(item: Json) -> Json {
    json!({ "anyOf": [item.clone(), { "type": "array", "items": item, "minItems": 1 }] })
}

pub(super) fn text() -> Json {
    json!({ "type": "string" })
}

/// A string that may be a template. A number is used as it is written.
pub(super) fn template() -> Json {
    json!({ "type": ["string", "number"] })
}

/// Data whose strings may be templates.
pub(super) fn any() -> Json {
    json!({})
}

pub(super) fn mapping() -> Json {
    json!({ "type": "object" })
}

pub(super) fn flag(default: bool) -> Json {
    json!({ "type": "boolean", "default": default })
}

pub(super) fn choice(words: &[&str]) -> Json {
    json!({ "enum": words })
}

pub(super) fn integer(minimum: u64) -> Json {
    json!({ "type": "integer", "minimum": minimum })
}

pub(super) const DURATION: &str = r"^\s*\d*\.?\d+\s*(ms|s|m|min)\s*$";

pub(super) fn duration() -> Json {
    json!({ "anyOf": [{ "type": "string", "pattern": DURATION }, { "const": 0 }] })
}

/// A number of bytes.
pub(super) fn size() -> Json {
    let text = json!({ "type": "string", "pattern": r"^\s*\d+\s*([kKmM]?[bB]|[kKmMgG][iI][bB])?\s*$" });
    json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, text] })
}

/// An object with exactly one of these keys.
pub(super) fn exactly_one(keys: &[&str]) -> Json {
    json!({ "oneOf": keys.iter().map(|key| json!({ "type": "object", "required": [key] })).collect::<Vec<_>>() })
}

/// An object with at most one of these keys.
pub(super) fn at_most_one(keys: &[&str]) -> Json {
    let pairs = keys.iter().enumerate().flat_map(|(index, first)| keys[index + 1..].iter().map(move |it| [first, it]));
    json!({ "not": { "anyOf": pairs.map(|pair| json!({ "required": pair })).collect::<Vec<_>>() } })
}
