//! The JSON Schemas: of results, which their types give, and of files, whose keys are in `keys.txt`.

use std::sync::LazyLock;

use rehearse_document::keys::KeyTable;
use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, RestrictFormats},
};
use serde_json::{Value as Json, json};

pub(crate) static KEYS: LazyLock<KeyTable> = LazyLock::new(|| KeyTable::parse(include_str!("keys.txt")));

/// The schema of a file of ours, or of one of its lines, by its name in `keys.txt`.
pub fn of_file(name: &str, title: &str) -> Json {
    KEYS.schema(name, about(title))
}

fn about(title: &str) -> Json {
    json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": title })
}

/// The schema of the report of a command with `--format json`.
pub fn of_result<T: JsonSchema>(command: &str) -> Json {
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(RestrictFormats::default());
    let generator = settings.with_transform(RecursiveTransform(leave_out_null)).into_generator();
    let mut schema = about(&format!("The report of `rehearse {command} --format json`"));
    for (name, value) in generator.into_root_schema_for::<T>().as_object().into_iter().flatten() {
        if schema.get(name).is_none() {
            schema[name] = value.clone();
        }
    }
    schema["properties"]["format"]["const"] = 1.into();
    schema
}

/// What may be absent is never null.
fn leave_out_null(schema: &mut Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &String| required.as_array().is_some_and(|all| all.iter().any(|it| it == name.as_str()));
    let properties = schema.get_mut("properties").and_then(Json::as_object_mut).into_iter().flatten();
    for (_, property) in properties.filter(|(name, _)| !is_required(name)) {
        if let Some(types) = property.get_mut("type").filter(|types| types.is_array()) {
            *types = types[0].take();
        }
        if let Some(Json::Array(kinds)) = property.as_object_mut().and_then(|it| it.remove("anyOf")) {
            property["$ref"] = kinds[0]["$ref"].clone();
        }
    }
}

#[cfg(test)]
#[test]
fn every_line_of_the_keys_is_read() {
    assert_eq!(KEYS.unread(), [""; 0]);
}
