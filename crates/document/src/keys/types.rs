//! The types of a [`KeyTable`](super::KeyTable) as JSON Schemas.
//!
//! `text`, `flag`, `number`, `integer`, `object`, `array`, `null`, `any` and `never`; `1..`, `0..255` and `0.0..1.0`; the JSON of a
//! scalar; `[T]` and `{T}`, an array and an object of values; `[T]+`, an array that is not empty; `T+`, one or such an array;
//! `T | U`; `T = JSON`, with a default; a JSON Schema, in which `@name` refers to an object or a type; and such a name.

use serde_json::{Value as Json, json};

/// The schema of a type.
pub(super) fn schema(text: &str) -> Json {
    if let Some((value, default)) = text.rsplit_once(" = ") {
        return with(schema(value), json!({ "default": parsed(default) }));
    }
    let parts = alternatives(text);
    match parts.as_slice() {
        [one] => single(one),
        _ => any_of(&parts.into_iter().map(single).collect::<Vec<_>>()),
    }
}

fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_default()
}

/// The parts between `|` that are not in brackets. No text of ours has a quote in it.
fn alternatives(text: &str) -> Vec<&str> {
    let (mut depth, mut is_text) = (0_usize, false);
    let parts = text.split(|c| {
        match c {
            '"' => is_text = !is_text,
            '[' | '{' if !is_text => depth += 1,
            ']' | '}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '|' && depth == 0 && !is_text
    });
    parts.map(str::trim).collect()
}

fn any_of(parts: &[Json]) -> Json {
    let all = |key: &str| {
        let values =
            parts.iter().map(|part| part.get(key).filter(|_| part.as_object().is_some_and(|it| it.len() == 1)));
        values.map(|value| value.cloned()).collect::<Option<Vec<_>>>()
    };
    match (all("const"), all("type")) {
        (Some(values), _) => json!({ "enum": values }),
        (None, Some(types)) => json!({ "type": types }),
        (None, None) => json!({ "anyOf": parts }),
    }
}

fn single(text: &str) -> Json {
    let inner = |open: char, close: char| text.strip_prefix(open)?.strip_suffix(close);
    if text.starts_with("{\"") {
        return parsed(text);
    }
    if let Some(one) = text.strip_suffix('+') {
        return match single(one) {
            list if one.starts_with('[') => with(list, json!({ "minItems": 1 })),
            one => json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] }),
        };
    }
    if let Some(item) = inner('[', ']') {
        return json!({ "type": "array", "items": schema(item) });
    }
    if let Some(value) = inner('{', '}') {
        return json!({ "type": "object", "additionalProperties": schema(value) });
    }
    if let Some((least, most)) = text.split_once("..").filter(|_| text.starts_with(|c: char| c.is_ascii_digit())) {
        let kind = if least.contains('.') { "number" } else { "integer" };
        let range = json!({ "type": kind, "minimum": parsed(least) });
        return if most.is_empty() { range } else { with(range, json!({ "maximum": parsed(most) })) };
    }
    match text {
        "text" => json!({ "type": "string" }),
        "flag" => json!({ "type": "boolean" }),
        "number" | "integer" | "object" | "array" | "null" => json!({ "type": text }),
        "any" => json!({}),
        "never" => json!({ "not": {} }),
        _ => match serde_json::from_str::<Json>(text) {
            Ok(value) => json!({ "const": value }),
            Err(_) => json!({ "$ref": format!("@{text}") }),
        },
    }
}

/// A schema with more members, which come first if it has them too.
pub(super) fn with(mut schema: Json, more: Json) -> Json {
    if let (Json::Object(schema), Json::Object(more)) = (&mut schema, more) {
        schema.extend(more);
    }
    schema
}

const REFERENCE: &str = "\"$ref\":\"@";

/// The names to which a schema refers.
pub(super) fn references(schema: &Json) -> Vec<String> {
    let text = schema.to_string();
    text.split(REFERENCE).skip(1).filter_map(|it| Some(it.split_once('"')?.0.to_owned())).collect()
}

/// A schema whose definitions are at `place`, with pointers for names.
pub(super) fn resolved(schema: &Json, place: &str) -> Json {
    parsed(&schema.to_string().replace(REFERENCE, &format!("\"$ref\":\"#/{place}/")))
}
