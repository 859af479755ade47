//! The typed arguments of a call.

use std::{io, path::Path};

use serde_json::{Map, Value, value::RawValue};

use super::json_tokens::inexact_number;
use rehearse_document::text::{text, text_of};

/// The maximum length of a chain of references in a schema.
const MAX_REFERENCES: usize = 8;
/// The maximum number of visited alternatives of a schema, which may be recursive.
const MAX_PARTS: usize = 100;

/// Arguments before the conversion to the types of a schema.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    objects: Map<String, Value>,
    /// In order.
    single: Vec<(String, ArgumentValue)>,
}

#[derive(Debug)]
enum ArgumentValue {
    /// `name=text`: the schema decides the type.
    Text(String),
    /// `name:=json`
    Json(Value),
}

impl Arguments {
    /// Reads `args`, JSON or `@FILE` or `-`, and words of the forms `name=text`, `name=@FILE`, `name:=JSON`, `@FILE` and
    /// `-`.
    ///
    /// # Errors
    /// A word has another form, or cannot be read.
    pub(crate) fn read<'w>(
        args: Option<&str>,
        words: impl IntoIterator<Item = &'w String>,
    ) -> Result<Arguments, String> {
        let mut arguments = Arguments::default();
        if let Some(args) = args {
            let text = if args == "-" || args.starts_with('@') { text_at(args)? } else { args.to_owned() };
            arguments.objects = object(&text)?;
        }
        for word in words {
            if word == "-" || word.starts_with('@') {
                arguments.objects.extend(object(&text_at(word)?)?);
                continue;
            }
            if word.starts_with('{') {
                arguments.objects.extend(object(word)?);
                continue;
            }
            let Some((name, value)) = word.split_once('=') else {
                return Err(format!("{word:?} is not an argument; write name=value, name:=JSON, {{…}}, @FILE or -"));
            };
            if name.is_empty() {
                return Err(format!("{word:?} has no name before the ="));
            }
            let (name, argument) = match name.strip_suffix(':') {
                Some(name) => {
                    let json = serde_json::from_str(value)
                        .map_err(|error| format!("{name}: {value:?} is not valid JSON: {error}"))?;
                    check_numbers(value).map_err(|why| format!("{name}: {why}"))?;
                    (name, ArgumentValue::Json(json))
                }
                None if value.starts_with('@') => (name, ArgumentValue::Text(text_at(value)?)),
                None => (name, ArgumentValue::Text(value.to_owned())),
            };
            arguments.single.push((name.to_owned(), argument));
        }
        Ok(arguments)
    }

    /// Converts the arguments to the types of a schema. Without a schema, valid JSON becomes its JSON value.
    ///
    /// # Errors
    /// A text that cannot have the type of the schema.
    pub(crate) fn typed(self, schema: Option<&RawValue>) -> Result<Map<String, Value>, String> {
        let schema: Value = schema.and_then(|schema| serde_json::from_str(schema.get()).ok()).unwrap_or_default();
        let mut object = self.objects;
        let mut lists: Vec<String> = Vec::new();
        for (name, argument) in self.single {
            let text = match argument {
                ArgumentValue::Json(value) => {
                    object.insert(name, value);
                    continue;
                }
                ArgumentValue::Text(text) => text,
            };
            let property = property(&schema, &name);
            let allowed = property.map(|property| AllowedValues::from_schema(&schema, property)).unwrap_or_default();
            let is_list =
                allowed.types.contains(&"array") && !is_json_list(&text) && !allowed.types.contains(&"string");
            if !is_list {
                let value = allowed.value(&text).map_err(|why| format!("{name}: {why}"))?;
                object.insert(name, value);
                continue;
            }
            let items = property.and_then(|property| resolved(&schema, property).get("items"));
            let allowed = items.map(|items| AllowedValues::from_schema(&schema, items)).unwrap_or_default();
            let item = allowed.value(&text).map_err(|why| format!("{name}: {why}"))?;
            match object.get_mut(&name) {
                Some(Value::Array(known)) if lists.contains(&name) => known.push(item),
                _ => {
                    object.insert(name.clone(), vec![item].into());
                    lists.push(name);
                }
            }
        }
        Ok(object)
    }

    /// The arguments of a prompt, which are all strings.
    ///
    /// # Errors
    /// A JSON value that is not a string.
    pub(crate) fn texts(self) -> Result<Map<String, Value>, String> {
        let mut object = self.objects;
        object.extend(self.single.into_iter().map(|(name, argument)| match argument {
            ArgumentValue::Text(text) => (name, Value::String(text)),
            ArgumentValue::Json(value) => (name, value),
        }));
        match object.iter().find(|(_, value)| !value.is_string()) {
            Some((name, value)) => Err(format!("{name}: prompt arguments must be strings, found {value}")),
            None => Ok(object),
        }
    }
}

/// The values that a schema allows; any value by default.
#[derive(Default)]
struct AllowedValues<'s> {
    types: Vec<&'s str>,
    /// The values of `enum` and `const`.
    values: Vec<&'s Value>,
}

impl<'s> AllowedValues<'s> {
    fn from_schema(root: &'s Value, schema: &'s Value) -> AllowedValues<'s> {
        let (mut allowed, mut parts, mut next) = (AllowedValues::default(), vec![schema], 0);
        while let Some(part) = parts.get(next).filter(|_| next < MAX_PARTS) {
            let part = resolved(root, part);
            next += 1;
            match &part["type"] {
                Value::String(name) => allowed.types.push(name),
                Value::Array(names) => allowed.types.extend(names.iter().filter_map(Value::as_str)),
                _ => {}
            }
            allowed.values.extend(part["enum"].as_array().into_iter().flatten());
            allowed.values.extend(part.get("const"));
            parts.extend(["anyOf", "oneOf"].iter().filter_map(|key| part[*key].as_array()).flatten().take(MAX_PARTS));
        }
        allowed
    }

    /// Converts a text to an allowed value.
    ///
    /// # Errors
    /// The expected type, or why the value cannot be sent.
    fn value(&self, text: &str) -> Result<Value, String> {
        let spelled = |value: &&&Value| match value {
            Value::String(known) => known == text,
            other => other.to_string() == text,
        };
        if let Some(value) = self.values.iter().find(spelled) {
            return Ok((*value).clone());
        }
        let json = serde_json::from_str::<Value>(text).ok();
        let is_text = self.types.contains(&"string");
        let is_allowed = |json: &Value| match self.types.is_empty() {
            true => self.values.is_empty(),
            false => !json.is_string() && self.types.iter().any(|name| is_of_type(json, name)),
        };
        match (json.filter(is_allowed), check_numbers(text)) {
            (Some(json), Ok(())) => Ok(json),
            (Some(_), Err(why)) if !is_text => Err(why),
            _ if is_text || self.types.is_empty() => Ok(text.into()),
            _ => Err(format!("expected the type {}, found {text:?}", self.types.join(" or "))),
        }
    }
}

/// The argument names of a schema, and whether each is required; required ones first.
pub(crate) fn names_of(schema: &Value) -> Vec<(&str, bool)> {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let parts = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
    let schemas = std::iter::once(schema).chain(parts.map(|part| resolved(schema, part)));
    let mut names: Vec<(&str, bool)> = Vec::new();
    for name in schemas.filter_map(|schema| schema["properties"].as_object()).flat_map(Map::keys) {
        if names.iter().all(|(known, _)| known != name) {
            names.push((name, required.contains(&&**name)));
        }
    }
    names.sort_by_key(|(_, is_required)| !is_required);
    names
}

/// The possible values of an argument, if the schema lists them.
pub(crate) fn values_of(schema: &Value, name: &str) -> Vec<String> {
    let Some(property) = property(schema, name) else { return Vec::new() };
    let allowed = AllowedValues::from_schema(schema, property);
    let of_items = resolved(schema, property)
        .get("items")
        .map(|items| AllowedValues::from_schema(schema, items))
        .unwrap_or_default();
    let text = |value: &&Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut values: Vec<_> = allowed.values.iter().chain(&of_items.values).map(text).collect();
    if allowed.types.contains(&"boolean") {
        values.extend(["true".to_owned(), "false".to_owned()]);
    }
    values
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    }
}

/// The schema of a property, in the schema or one of its parts.
fn property<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let direct = |schema: &'s Value| schema["properties"].get(name);
    let parts = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
    direct(schema).or_else(|| parts.into_iter().find_map(|part| direct(resolved(schema, part))))
}

/// Follows references within the document.
fn resolved<'s>(root: &'s Value, mut schema: &'s Value) -> &'s Value {
    for _ in 0..MAX_REFERENCES {
        let pointer = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        match pointer.and_then(|pointer| root.pointer(pointer)) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

fn is_json_list(text: &str) -> bool {
    serde_json::from_str::<Vec<&RawValue>>(text).is_ok()
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    // The message of cpe.
    let value = serde_json::from_str(text).map_err(|error| format!("invalid tool arguments JSON: {error}"))?;
    let Value::Object(object) = value else {
        return Err("invalid tool arguments JSON: it must be an object, {…}".to_owned());
    };
    check_numbers(text).map(|()| object)
}

/// Checks that all numbers keep their value.
///
/// # Errors
/// A number has too many digits.
fn check_numbers(json: &str) -> Result<(), String> {
    match inexact_number(json) {
        Some(number) => Err(format!("the number {number} has too many digits; shorten it or pass a string")),
        None => Ok(()),
    }
}

/// The text of standard input, `-`, or of a file, `@FILE`.
fn text_at(place: &str) -> Result<String, String> {
    let Some(path) = place.strip_prefix('@') else {
        return text(io::stdin().lock()).map_err(|error| format!("cannot read standard input: {error}"));
    };
    text_of(Path::new(path)).map_err(|error| format!("cannot read {path}: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn typed(words: &[&str], schema: &Value) -> Result<Value, String> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let schema = RawValue::from_string(schema.to_string()).expect("JSON");
        Arguments::read(None, &words)?.typed(Some(&schema)).map(Value::Object)
    }

    #[test]
    fn a_text_is_converted_to_the_type_of_the_schema() {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string" }, "n": { "type": "integer" }, "x": { "type": ["number", "null"] },
                "on": { "type": "boolean" }, "tags": { "type": "array", "items": { "type": "string" } },
                "ids": { "type": "array", "items": { "$ref": "#/$defs/id" } },
                "o": { "type": "object" }, "either": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                "size": { "enum": ["1", 2] }, "free": {}, "r": { "$ref": "#/$defs/id" },
            },
            "$defs": { "id": { "type": "integer" } },
        });
        for (words, expected) in [
            (&["text=5", "n=5", "x=null", "on=true"][..], json!({ "text": "5", "n": 5, "x": null, "on": true })),
            (&["tags=1", "tags=b=c", "ids=1", "ids=2"], json!({ "tags": ["1", "b=c"], "ids": [1, 2] })),
            (&["tags=[\"a\"]", "o={\"a\":1}"], json!({ "tags": ["a"], "o": { "a": 1 } })),
            (&["either=5", "size=1", "r=7"], json!({ "either": 5, "size": "1", "r": 7 })),
            (&["either=x", "size=2"], json!({ "either": "x", "size": 2 })),
            (&["free=[1]", "unknown=x", "text:=5"], json!({ "free": [1], "unknown": "x", "text": 5 })),
            (&[r#"{"text":"a=b","n":1}"#, "n=2"], json!({ "text": "a=b", "n": 2 })),
            (&["text=", "n=1", "n=2"], json!({ "text": "", "n": 2 })),
        ] {
            assert_eq!(typed(words, &schema), Ok(expected), "{words:?}");
        }
        for (word, error) in [
            ("n=x", "n: expected the type integer, found \"x\""),
            ("n=1.5", "n: expected the type integer, found \"1.5\""),
            ("x=true", "x: expected the type number or null, found \"true\""),
            ("ids=x", "ids: expected the type integer, found \"x\""),
            ("nothing", "\"nothing\" is not an argument; write name=value, name:=JSON, {…}, @FILE or -"),
        ] {
            assert_eq!(typed(&[word], &schema), Err(error.to_owned()));
        }
    }

    #[test]
    fn names_and_values_of_arguments_are_those_of_the_schema() {
        let schema = json!({
            "properties": {
                "free": { "type": "string" }, "on": { "type": "boolean" }, "size": { "enum": ["s", 2] },
                "tags": { "type": "array", "items": { "$ref": "#/$defs/tag" } },
            },
            "required": ["size"],
            "anyOf": [{ "properties": { "other": { "const": "x" } } }, { "properties": { "on": {} } }],
            "$defs": { "tag": { "enum": ["a", "b"] } },
        });
        let names = [("size", true), ("free", false), ("on", false), ("tags", false), ("other", false)];
        assert_eq!(names_of(&schema), names);
        let values = ["free", "on", "size", "tags", "other", "unknown"].map(|name| values_of(&schema, name).join(" "));
        assert_eq!(values, ["", "true false", "s 2", "a b", "x", ""]);
    }

    #[test]
    fn a_recursive_schema_terminates() {
        let schema = json!({
            "properties": { "a": { "$ref": "#/$defs/a" }, "b": { "$ref": "#/$defs/b" } },
            "$defs": { "a": { "$ref": "#/$defs/a" }, "b": { "anyOf": [{ "$ref": "#/$defs/b" }, { "type": "integer" }] } },
        });
        assert_eq!(typed(&["a=1", "b=2"], &schema), Ok(json!({ "a": 1, "b": 2 })));
    }

    #[test]
    fn words_take_precedence_over_json_and_files_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.json");
        std::fs::write(&path, r#"{"b": 2, "c": 3}"#).expect("writes");
        let words = [format!("@{}", path.display()), "c=4".to_owned(), format!("text=@{}", path.display())];
        let arguments =
            Arguments::read(Some(r#"{"a": 1, "b": 1}"#), &words).expect("reads").typed(None).expect("types");
        let text = json!({ "b": 2, "c": 3 });
        assert_eq!(Value::Object(arguments), json!({ "a": 1, "b": 2, "c": 4, "text": text }));
        assert!(Arguments::read(Some("[]"), []).expect_err("a list").starts_with("invalid tool arguments JSON: "));
        assert!(Arguments::read(Some("@/gone"), []).expect_err("no file").starts_with("cannot read /gone: "));
    }

    #[test]
    fn arguments_of_prompts_are_texts() {
        let words = ["a=1".to_owned(), "b:=\"x\"".to_owned()];
        let texts = Arguments::read(None, &words).expect("reads").texts();
        assert_eq!(texts.map(Value::Object), Ok(json!({ "a": "1", "b": "x" })));
        assert!(Arguments::read(Some(r#"{"a":1}"#), []).expect("reads").texts().is_err());
    }
}
