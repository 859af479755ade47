//! A value of a file with its location in the text.

use std::{borrow::Cow, collections::HashMap, time::Duration};

use serde_json::value::RawValue;

use super::{Fields, Problem, Problems, Span, text::quoted};

/// A value and its location.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub span: Span,
    pub value: Value,
}

/// The JSON data model. Numbers keep the text they were written with.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
}

/// A key of an object with its value. Keys of one object are unique.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: String,
    pub key_span: Span,
    pub node: Node,
}

/// A key that occurs twice in one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    pub key: String,
    pub first: Span,
    pub second: Span,
}

/// The entries of an object while it is read. Of a duplicate key, the last value is used.
#[derive(Debug, Default)]
pub struct Entries {
    all: Vec<Entry>,
    /// Where the keys are in it.
    index: HashMap<String, usize>,
}

impl Entries {
    /// Adds an entry; reports a duplicate key.
    pub(super) fn add(&mut self, entry: Entry) -> Option<Duplicate> {
        let Some(index) = self.index.get(&entry.key).copied() else {
            self.index.insert(entry.key.clone(), self.all.len());
            self.all.push(entry);
            return None;
        };
        let second = entry.key_span;
        let Entry { key, key_span: first, .. } = std::mem::replace(&mut self.all[index], entry);
        Some(Duplicate { key, first, second })
    }

    /// Adds an entry unless its key exists.
    pub(super) fn add_if_new(&mut self, entry: Entry) {
        if !self.index.contains_key(&entry.key) {
            self.add(entry);
        }
    }

    pub(super) fn into_value(self) -> Value {
        Value::Mapping(self.all)
    }
}

/// Whether this is NaN or infinity.
pub(super) fn is_unbounded(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(text, ".nan" | ".NaN" | ".NAN") || matches!(unsigned, ".inf" | ".Inf" | ".INF")
}

/// The largest number of bytes that a file may ask for.
const MAX_BYTES: usize = 1 << 30;

/// A duration of at most a day, such as `250ms`, `5s`, `1.5s` or `2m`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match text[digits.len()..].trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        _ => return None,
    };
    let seconds = digits.trim().parse::<f64>().ok()? * scale;
    (0.0..=86_400.0).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

impl Node {
    /// A problem at this node.
    pub fn problem(&self, message: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(self.span, message)
    }

    fn expected(&self, what: &str) -> Problem {
        self.problem(format!("expected {what}, found {}", self.describe()))
    }

    /// The type of the value, without the value itself, which may be secret.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Number(text) if is_unbounded(text) => "NaN or infinity",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Sequence(_) => "an array",
            Value::Mapping(_) => "an object",
        }
    }

    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".into(),
            Value::Bool(value) => format!("the boolean {value}"),
            Value::Number(text) => format!("the number {text}"),
            Value::String(text) => format!("the string {}", quoted(text, 40)),
            Value::Sequence(_) => "an array".into(),
            Value::Mapping(_) => "an object".into(),
        }
    }

    /// The object at this node, whose keys must all be among `keys`; `what` names it in messages.
    ///
    /// # Errors
    /// This is not an object, or a key is unknown (the hint has the nearest known key).
    pub fn fields(&self, what: &str, keys: &[&str]) -> Result<Fields<'_>, Problems> {
        Fields::new(self, what, keys)
    }

    /// The value, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = &self.value { Some(text) } else { None }
    }

    /// The items, if this is an array.
    pub fn as_items(&self) -> Option<&[Node]> {
        if let Value::Sequence(items) = &self.value { Some(items) } else { None }
    }

    /// The entries, if this is an object.
    pub fn as_entries(&self) -> Option<&[Entry]> {
        if let Value::Mapping(entries) = &self.value { Some(entries) } else { None }
    }

    /// The value, if it is a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(value) = self.value { Some(value) } else { None }
    }

    /// # Errors
    /// This is not a string.
    pub fn str(&self) -> Result<&str, Problems> {
        match &self.value {
            Value::String(text) => Ok(text),
            Value::Number(_) | Value::Bool(_) => Err(self.expected("a string").hint("put it in quotes").into()),
            _ => Err(self.expected("a string").into()),
        }
    }

    /// # Errors
    /// This is not a boolean.
    pub fn bool(&self) -> Result<bool, Problems> {
        match &self.value {
            Value::Bool(value) => Ok(*value),
            _ => Err(self.expected("true or false").into()),
        }
    }

    /// # Errors
    /// This is not an integer that fits into `T`.
    pub fn integer<T: TryFrom<i128>>(&self) -> Result<T, Problems> {
        let number = match &self.value {
            Value::Number(text) => text.parse::<i128>().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.expected("a whole number"))?;
        let size =
            || self.problem(format!("the number {number} is too {}", if number < 0 { "small" } else { "large" }));
        T::try_from(number).map_err(|_| size().into())
    }

    /// A duration such as `250ms`, `5s`, `1.5s`, `2m` or `0`.
    ///
    /// # Errors
    /// This is not a duration of at most a day.
    pub fn duration(&self) -> Result<Duration, Problems> {
        let text = match &self.value {
            Value::String(text) => text.trim(),
            Value::Number(text) if text == "0" => return Ok(Duration::ZERO),
            _ => return Err(self.expected("a duration").hint("write a number with a unit: 250ms, 5s or 1m").into()),
        };
        match parse_duration(text) {
            Some(duration) => Ok(duration),
            None => Err(self.expected("a duration").hint("write a number with a unit: 250ms, 5s or 1m").into()),
        }
    }

    /// A number of bytes, such as `20`, `64 KB` or `5 MiB`.
    ///
    /// # Errors
    /// It is not a number of bytes, or more than 1 GiB.
    pub fn bytes(&self) -> Result<usize, Problems> {
        let wrong =
            || self.problem("expected a number of bytes").hint("write 20, 64KB, 5MB or 5MiB; at most 1GiB").into();
        let text = match &self.value {
            Value::Number(text) | Value::String(text) => text.trim(),
            _ => return Err(wrong()),
        };
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let scale = match text[digits.len()..].to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            _ => return Err(wrong()),
        };
        let number = digits.trim().parse::<usize>().ok().and_then(|number| number.checked_mul(scale));
        number.filter(|number| *number <= MAX_BYTES).ok_or_else(wrong)
    }

    /// # Errors
    /// This is not an array.
    pub fn items(&self) -> Result<&[Node], Problems> {
        match &self.value {
            Value::Sequence(items) => Ok(items),
            Value::Mapping(_) => Err(self.expected("an array").hint("begin each item with `- `").into()),
            _ => Err(self.expected("an array").into()),
        }
    }

    /// # Errors
    /// This is not an object.
    pub fn entries(&self) -> Result<&[Entry], Problems> {
        match &self.value {
            Value::Mapping(entries) => Ok(entries),
            _ => Err(self.expected("an object").into()),
        }
    }

    /// Reads every item of the array at this node.
    ///
    /// # Errors
    /// This is not an array; or the problems of all items.
    pub fn each<'a, T>(&'a self, read: impl FnMut(&'a Node) -> Result<T, Problems>) -> Result<Vec<T>, Problems> {
        Problems::collect(self.items()?.iter().map(read))
    }

    /// Reads every item of the array at this node, or the single item that replaces it.
    ///
    /// # Errors
    /// The array is empty; or the problems of all items.
    pub fn one_or_more<'a, T>(
        &'a self,
        mut read: impl FnMut(&'a Node) -> Result<T, Problems>,
    ) -> Result<Vec<T>, Problems> {
        match &self.value {
            Value::Sequence(items) if items.is_empty() => Err(self.problem("the array must not be empty").into()),
            Value::Sequence(_) => self.each(read),
            _ => Ok(vec![read(self)?]),
        }
    }

    /// Parses the string as a `T`.
    ///
    /// # Errors
    /// This is not a string, or it cannot be parsed.
    pub fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(&self) -> Result<T, Problems> {
        Ok(self.str()?.parse().map_err(|error: T::Err| self.problem(error.to_string()))?)
    }

    /// The value at a key, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Mapping(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node),
            _ => None,
        }
    }

    /// The value at this path of keys; the node itself if the path is empty.
    pub fn get_path(&self, keys: &[&str]) -> Option<&Node> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The value at a JSON pointer (RFC 6901), if there is one.
    pub fn pointer(&self, pointer: &str) -> Option<&Node> {
        let Some(tokens) = pointer.strip_prefix('/') else { return pointer.is_empty().then_some(self) };
        tokens.split('/').try_fold(self, |node, token| match &node.value {
            Value::Sequence(items) => items.get(token.parse::<usize>().ok()?),
            _ => node.get(&token.replace("~1", "/").replace("~0", "~")),
        })
    }

    pub fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    /// The value as JSON data.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(text) => serde_json::from_str(text).unwrap_or_default(),
            Value::String(text) => text.as_str().into(),
            Value::Sequence(items) => items.iter().map(Node::to_json).collect(),
            Value::Mapping(entries) => {
                serde_json::Value::Object(entries.iter().map(|e| (e.key.clone(), e.node.to_json())).collect())
            }
        }
    }

    /// The value as compact JSON text; keys in the order of the file, numbers as they were written.
    pub fn to_json_text(&self) -> String {
        let mut text = String::new();
        self.write_json(&mut text);
        text
    }

    /// As [`Node::to_json_text`], in serde's type for JSON text.
    pub fn to_raw(&self) -> Box<RawValue> {
        RawValue::from_string(self.to_json_text()).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }

    fn write_json(&self, out: &mut String) {
        match &self.value {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(text) => out.push_str(text),
            Value::String(text) => write_string(text, out),
            Value::Sequence(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write_json(out);
                }
                out.push(']');
            }
            Value::Mapping(entries) => {
                out.push('{');
                for (index, entry) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_string(&entry.key, out);
                    out.push(':');
                    entry.node.write_json(out);
                }
                out.push('}');
            }
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, parse_yaml};

    #[test]
    fn a_json_pointer_leads_through_lists_and_names_with_slashes() {
        let root = parse_yaml(&Source::new("t", "{ a/b: [1, { '~': x, '': y }] }")).expect("valid");
        let at = |pointer| root.pointer(pointer).map(Node::to_json_text);
        assert_eq!(at("").as_deref(), Some(r#"{"a/b":[1,{"~":"x","":"y"}]}"#));
        assert_eq!(at("/a~1b/0").as_deref(), Some("1"));
        assert_eq!(at("/a~1b/1/~0").as_deref(), Some(r#""x""#));
        assert_eq!(at("/a~1b/1/").as_deref(), Some(r#""y""#));
        assert_eq!(["/a/b", "/a~1b/2", "/a~1b/x", "/a~1b/0/0", "a~1b"].map(at), [const { None }; 5]);
    }
}
