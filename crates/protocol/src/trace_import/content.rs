//! The content of a file whose format is not known.

use serde_json::Value;

/// A file as JSON, as far as it is JSON.
#[derive(Debug)]
pub(super) struct Content {
    /// The whole text.
    pub(super) text: String,
    /// The JSON of the whole file; null if it is none.
    pub(super) whole: Value,
    /// The values of the lines; several may stand on one line. Empty if the whole file is an array, or has several lines.
    pub(super) lines: Vec<Value>,
    /// How many lines are no JSON.
    pub(super) broken: usize,
}

impl Content {
    pub(super) fn new(bytes: &[u8]) -> Content {
        let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).into_owned();
        let whole: Value = serde_json::from_str(&text).unwrap_or_default();
        let (mut lines, mut broken) = (Vec::new(), 0);
        if whole.is_null() {
            for line in text.lines() {
                for value in serde_json::Deserializer::from_str(line).into_iter() {
                    match value {
                        Ok(value) => lines.push(value),
                        Err(_) => broken += 1,
                    }
                }
            }
        } else if text.trim().lines().count() == 1 && whole.is_object() {
            lines.push(whole.clone());
        }
        Content { text, whole, lines, broken }
    }

    /// Whether the file is an object with these members.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        has(&self.whole, names)
    }

    /// Whether the first line is an object with these members.
    pub(super) fn lines_have(&self, names: &[&str]) -> bool {
        self.lines.first().is_some_and(|line| has(line, names))
    }

    /// Whether the file is an array whose first item has these members.
    pub(super) fn items_have(&self, names: &[&str]) -> bool {
        self.whole.get(0).is_some_and(|item| has(item, names))
    }
}

fn has(value: &Value, names: &[&str]) -> bool {
    names.iter().all(|name| value.get(name).is_some())
}

/// The items of an array; none if it is something else.
pub(super) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A text; empty if it is something else.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
