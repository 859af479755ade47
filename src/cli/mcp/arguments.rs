//! The typed arguments of a call.

use std::{io, path::Path};

use serde_json::{Map, Value, value::RawValue};

use super::print::json_tokens::inexact_number;
use crate::cli::{Failure, usage_hint::wrong_arguments};
use rehearse_document::{
    json_schema::{Type, View},
    text::{text, text_of},
};

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
    pub(crate) fn read(args: Option<&str>, words: &[String]) -> Result<Arguments, Failure> {
        Arguments::read_all(args, words).map_err(|wrong| Failure::Usage(wrong_arguments(wrong, words)))
    }

    fn read_all(args: Option<&str>, words: &[String]) -> Result<Arguments, String> {
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
    pub(crate) fn typed(self, schema: Option<&RawValue>) -> Result<Map<String, Value>, Failure> {
        self.converted(schema).map_err(Failure::Usage)
    }

    fn converted(self, schema: Option<&RawValue>) -> Result<Map<String, Value>, String> {
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
            let allowed = property.map(AllowedValues::from_schema).unwrap_or_default();
            let is_list =
                allowed.types.contains(&Type::Array) && !is_json_list(&text) && !allowed.types.contains(&Type::String);
            if !is_list {
                let value = allowed.value(&text).map_err(|why| format!("{name}: {why}"))?;
                object.insert(name, value);
                continue;
            }
            let items = property.and_then(|property| property.schema("items"));
            let allowed = items.map(AllowedValues::from_schema).unwrap_or_default();
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
    pub(crate) fn texts(self) -> Result<Map<String, Value>, Failure> {
        let mut object = self.objects;
        object.extend(self.single.into_iter().map(|(name, argument)| match argument {
            ArgumentValue::Text(text) => (name, Value::String(text)),
            ArgumentValue::Json(value) => (name, value),
        }));
        match object.iter().find(|(_, value)| !value.is_string()) {
            Some((name, value)) => {
                Err(Failure::Usage(format!("{name}: prompt arguments must be strings, found {value}")))
            }
            None => Ok(object),
        }
    }
}

/// The values that a schema allows; any value by default.
#[derive(Default)]
struct AllowedValues<'s> {
    types: Vec<Type>,
    /// The values of `enum` and `const`.
    values: Vec<&'s Value>,
}

impl<'s> AllowedValues<'s> {
    fn from_schema(schema: View<'s>) -> AllowedValues<'s> {
        let (mut allowed, mut parts, mut next) = (AllowedValues::default(), vec![schema], 0);
        while let Some(part) = parts.get(next).copied().filter(|_| next < MAX_PARTS) {
            next += 1;
            allowed.types.extend(part.named_types().into_iter().flatten());
            allowed.values.extend(part.list("enum").into_iter().flatten().chain(part.get("const")));
            parts.extend(["anyOf", "oneOf"].iter().filter_map(|key| part.schemas(key)).flatten().take(MAX_PARTS));
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
        let is_text = self.types.contains(&Type::String);
        let is_allowed = |json: &Value| match self.types.is_empty() {
            true => self.values.is_empty(),
            false => !json.is_string() && self.types.iter().any(|it| it.matches(json)),
        };
        match (json.filter(is_allowed), check_numbers(text)) {
            (Some(json), Ok(())) => Ok(json),
            (Some(_), Err(why)) if !is_text => Err(why),
            _ if is_text || self.types.is_empty() => Ok(text.into()),
            _ => {
                let types: Vec<_> = self.types.iter().map(|it| it.as_str()).collect();
                Err(format!("expected the type {}, found {text:?}", types.join(" or ")))
            }
        }
    }
}

/// The argument names of a schema, and whether each is required; required ones first.
pub(crate) fn names_of(schema: &Value) -> Vec<(&str, bool)> {
    let mut names: Vec<(&str, bool)> = Vec::new();
    for (name, _) in parts(schema).flat_map(View::properties) {
        if names.iter().all(|(known, _)| *known != name) {
            names.push((name, View::new(schema).is_required(name)));
        }
    }
    names.sort_by_key(|(_, is_required)| !is_required);
    names
}

/// The possible values of an argument, if the schema lists them.
pub(crate) fn values_of(schema: &Value, name: &str) -> Vec<String> {
    let Some(property) = property(schema, name) else { return Vec::new() };
    let allowed = AllowedValues::from_schema(property);
    let of_items = property.schema("items").map(AllowedValues::from_schema).unwrap_or_default();
    let text = |value: &&Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut values: Vec<_> = allowed.values.iter().chain(&of_items.values).map(text).collect();
    if allowed.types.contains(&Type::Boolean) {
        values.extend(["true".to_owned(), "false".to_owned()]);
    }
    values
}

/// The schema of a property, in the schema or one of its parts.
fn property<'s>(schema: &'s Value, name: &str) -> Option<View<'s>> {
    parts(schema).find(|part| part.has_property(name))?.property(name)
}

/// The schema and its parts.
fn parts(schema: &Value) -> impl Iterator<Item = View<'_>> {
    let schema = View::new(schema);
    let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(move |key| schema.schemas(key)).flatten();
    std::iter::once(schema).chain(parts)
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
        Arguments::read_all(None, &words)?.converted(Some(&schema)).map(Value::Object)
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
        assert!(Arguments::read_all(Some("[]"), &[]).expect_err("a list").starts_with("invalid tool arguments JSON: "));
        assert!(Arguments::read_all(Some("@/gone"), &[]).expect_err("no file").starts_with("cannot read /gone: "));
    }

    #[test]
    fn arguments_of_prompts_are_texts() {
        let words = ["a=1".to_owned(), "b:=\"x\"".to_owned()];
        let texts = Arguments::read(None, &words).expect("reads").texts();
        assert_eq!(Value::Object(texts.expect("texts")), json!({ "a": "1", "b": "x" }));
        assert!(Arguments::read(Some(r#"{"a":1}"#), &[]).expect("reads").texts().is_err());
    }
}
