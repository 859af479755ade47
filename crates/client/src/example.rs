//! Example values for a JSON Schema.

use serde_json::{Map, Value, json};

/// The depth at which recursive schemas are cut.
const DEEPEST: usize = 16;

/// An example object with the required properties, and those with a default.
pub fn object(schema: &Value) -> Map<String, Value> {
    object_of(schema, schema, DEEPEST)
}

/// An example value: the default of the schema, else the first value that it names, else the simplest of its type.
pub fn value(schema: &Value) -> Value {
    value_of(schema, schema, DEEPEST)
}

fn object_of(schema: &Value, root: &Value, depth: usize) -> Map<String, Value> {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_required = |name: &str| required.iter().any(|it| it == name);
    let wanted = properties.iter().filter(|(name, schema)| is_required(name) || schema.get("default").is_some());
    let mut object: Map<_, _> =
        wanted.map(|(name, schema)| (name.clone(), value_of(schema, root, depth.saturating_sub(1)))).collect();
    // A required property may have no schema.
    for name in required.iter().filter_map(Value::as_str) {
        object.entry(name).or_insert_with(|| json!("test"));
    }
    object
}

fn value_of(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth == 0 {
        return Value::Null;
    }
    let first = |key: &str| schema[key].as_array().and_then(|list| list.first());
    if let Some(named) = schema.get("default").or(schema.get("const")).or(first("enum")).or(first("examples")) {
        return named.clone();
    }
    if let Some(referred) = schema["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?)) {
        return value_of(referred, root, depth - 1);
    }
    if let Some(branch) = ["oneOf", "anyOf", "allOf"].iter().find_map(|key| first(key)) {
        return value_of(branch, root, depth - 1);
    }
    let kinds = schema["type"].as_array();
    let kind = kinds.and_then(|kinds| kinds.iter().find(|kind| *kind != "null")).unwrap_or(&schema["type"]);
    let least = |key: &str| schema[key].as_f64();
    match kind.as_str() {
        Some("string") => text(schema).into(),
        Some("integer") => {
            let least = least("minimum").or(least("exclusiveMinimum").map(|above| above.floor() + 1.0));
            let number = clamp(least.map(f64::ceil), schema["maximum"].as_f64().map(f64::floor));
            serde_json::from_str(&format!("{number:.0}")).unwrap_or(json!(1))
        }
        Some("number") => {
            let least = least("minimum").or(least("exclusiveMinimum").map(|above| above + 1.0));
            json!(clamp(least, schema["maximum"].as_f64()))
        }
        Some("boolean") => true.into(),
        Some("array") => {
            let count = schema["minItems"].as_u64().unwrap_or_default().min(DEEPEST as u64);
            (0..count).map(|_| value_of(&schema["items"], root, depth - 1)).collect()
        }
        Some("null") => Value::Null,
        _ if kind == "object" || schema.get("properties").is_some() => object_of(schema, root, depth).into(),
        _ => "test".into(),
    }
}

/// The number closest to 1 within the limits.
fn clamp(least: Option<f64>, most: Option<f64>) -> f64 {
    let number = least.map_or(1.0, |least| least.max(1.0));
    most.map_or(number, |most| number.min(most))
}

fn text(schema: &Value) -> String {
    let text = match schema["format"].as_str() {
        Some("email") => "test@example.com",
        Some("uri") => "https://example.com/",
        Some("date") => "2026-01-01",
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("time") => "00:00:00Z",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "test",
    };
    let length = |key: &str| schema[key].as_u64().and_then(|length| usize::try_from(length).ok());
    let (least, most) = (length("minLength").unwrap_or_default().min(4096), length("maxLength").unwrap_or(usize::MAX));
    let filled = text.chars().chain(std::iter::repeat('x')).take(text.len().max(least).min(most));
    filled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_what_is_required_and_every_default() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer" },
                "optional": { "type": "string" },
                "nested": { "type": "object", "properties": { "x": { "type": "boolean" } }, "required": ["x"] },
            },
            "required": ["age", "nested", "undescribed"],
        });
        let expected = json!({ "name": "John Doe", "age": 1, "nested": { "x": true }, "undescribed": "test" });
        assert_eq!(Value::from(object(&schema)), expected);
    }

    #[test]
    fn an_example_is_accepted_by_its_schema() {
        for schema in [
            json!({ "type": "string", "minLength": 9 }),
            json!({ "type": "string", "maxLength": 2 }),
            json!({ "type": ["null", "integer"], "minimum": 7 }),
            json!({ "type": "integer", "exclusiveMinimum": 1, "maximum": 2 }),
            json!({ "type": "number", "maximum": -1.5 }),
            json!({ "enum": ["a", "b"] }),
            json!({ "const": 5 }),
            json!({ "oneOf": [{ "const": "x", "title": "X" }, { "const": "y" }] }),
            json!({ "type": "array", "items": { "type": "integer" }, "minItems": 2 }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "boolean" } } }),
            json!({ "properties": { "a": { "type": "null" } }, "required": ["a"] }),
            json!(true),
        ] {
            let example = value(&schema);
            let compiled = jsonschema::validator_for(&schema).expect("a schema");
            assert!(compiled.is_valid(&example), "{schema}: {example}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_comes_to_an_end() {
        let schema = json!({ "type": "object", "properties": { "a": { "$ref": "#" } }, "required": ["a"] });
        assert!(object(&schema)["a"].is_object());
    }
}
