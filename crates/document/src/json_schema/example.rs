//! Example values for a JSON Schema.

use serde_json::{Map, Value as Json, json};

use super::{Type, View, formats};

/// The depth at which recursive schemas are cut.
const DEEPEST: usize = 16;

/// What stands where a schema leaves a choice.
#[derive(Clone, Copy, Debug)]
pub struct Filler {
    pub text: &'static str,
    /// A number within the limits of the schema that is closest to this one.
    pub number: f64,
    /// Whether a whole number of the type `number` has no decimal point.
    pub is_short: bool,
    pub flag: bool,
    /// A value without a type.
    pub any: &'static str,
}

const TEST: Filler = Filler { text: "test", number: 1.0, is_short: false, flag: true, any: "test" };

/// An example object with the required properties, and those with a default.
pub fn object(schema: &Json) -> Map<String, Json> {
    object_of(View::new(schema), &TEST, DEEPEST)
}

/// An example value: the default of the schema, else the first value that it names, else the simplest of its type.
pub fn value(schema: View<'_>, filler: &Filler) -> Json {
    value_of(schema, filler, DEEPEST)
}

fn object_of(schema: View<'_>, filler: &Filler, depth: usize) -> Map<String, Json> {
    let wanted = schema.properties().filter(|(name, it)| schema.is_required(name) || it.get("default").is_some());
    let mut object: Map<_, _> =
        wanted.map(|(name, it)| (name.to_owned(), value_of(it, filler, depth.saturating_sub(1)))).collect();
    // A required property may have no schema.
    for name in schema.required() {
        object.entry(name).or_insert_with(|| filler.any.into());
    }
    object
}

fn value_of(schema: View<'_>, filler: &Filler, depth: usize) -> Json {
    let Some(depth) = depth.checked_sub(1) else { return Json::Null };
    let first = |key: &str| schema.list(key)?.first();
    let named = ["default", "const", "example"].iter().find_map(|key| schema.get(key));
    if let Some(named) = named.or_else(|| first("enum")).or_else(|| first("examples")) {
        return named.clone();
    }
    if let Some(branch) = ["oneOf", "anyOf", "allOf"].iter().find_map(|key| schema.schemas(key)?.next()) {
        return value_of(branch, filler, depth);
    }
    let types = schema.named_types().unwrap_or_default();
    match types.iter().find(|kind| **kind != Type::Null).or(types.first()) {
        Some(Type::String) => text(schema, filler).into(),
        Some(Type::Integer) => {
            let above = |limit: f64| limit.floor() + 1.0;
            let least = schema.number("minimum").or(schema.number("exclusiveMinimum").map(above)).map(f64::ceil);
            let number = clamp(filler.number, least, schema.number("maximum").map(f64::floor));
            serde_json::from_str(&format!("{number:.0}")).unwrap_or(json!(1))
        }
        Some(Type::Number) => {
            let least = schema.number("minimum").or(schema.number("exclusiveMinimum").map(|above| above + 1.0));
            let number = clamp(filler.number, least, schema.number("maximum"));
            let short = serde_json::from_str(&number.to_string()).ok().filter(|_| filler.is_short);
            short.unwrap_or(json!(number))
        }
        Some(Type::Boolean) => filler.flag.into(),
        Some(Type::Array) => {
            let count = schema.count("minItems").unwrap_or_default().min(DEEPEST);
            (0..count).map(|index| schema.item(index).map_or(Json::Null, |it| value_of(it, filler, depth))).collect()
        }
        Some(Type::Null) => Json::Null,
        Some(Type::Object) => object_of(schema, filler, depth + 1).into(),
        None if schema.get("properties").is_some() => object_of(schema, filler, depth + 1).into(),
        None => filler.any.into(),
    }
}

/// The number closest to this one within the limits.
fn clamp(number: f64, least: Option<f64>, most: Option<f64>) -> f64 {
    let number = least.map_or(number, |least| least.max(number));
    most.map_or(number, |most| number.min(most))
}

fn text(schema: View<'_>, filler: &Filler) -> String {
    let text = schema.text("format").and_then(|it| formats::texts(it).first()).unwrap_or(&filler.text);
    let least = schema.count("minLength").unwrap_or_default().min(4096);
    let most = schema.count("maxLength").unwrap_or(usize::MAX);
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
        assert_eq!(Json::from(object(&schema)), expected);
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
            let example = value(View::new(&schema), &TEST);
            let compiled = super::super::compile(&schema).expect("a schema");
            assert!(compiled.is_valid(&example), "{schema}: {example}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_comes_to_an_end() {
        let schema = json!({ "type": "object", "properties": { "a": { "$ref": "#" } }, "required": ["a"] });
        assert!(object(&schema)["a"].is_object());
    }
}
