//! JSON data with templates in it.

use serde_json::Value as Json;

use super::expression::{NativeExpression, Text};

/// JSON data with templates in its strings. Data without templates is kept as JSON text.
#[derive(Debug)]
pub enum Data {
    /// JSON text.
    Literal(String),
    /// A string.
    Text(Text),
    /// The value of an expression.
    NativeExpression(Box<NativeExpression>),
    /// A string that holds the JSON text of the data.
    Quoted(Box<Data>),
    /// An array.
    Sequence(Vec<Data>),
    /// An object.
    Mapping(Vec<(String, Data)>),
}

impl Data {
    /// The same data as JSON text, if no template is in it.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Data::Literal(json) => Some(json),
            _ => None,
        }
    }

    /// The same data as a literal, if every part of it is one.
    pub(super) fn collapsed(self) -> Data {
        let mut json = String::new();
        let mut add = |before: &str, part: &Data| part.literal().map(|part| json.extend([before, part])).is_some();
        let (open, close, is_literal) = match &self {
            Data::Sequence(items) => {
                ('[', ']', items.iter().enumerate().all(|(index, item)| add(if index > 0 { "," } else { "" }, item)))
            }
            Data::Mapping(entries) => {
                let mut member = |(index, (key, data)): (usize, &(String, Data))| {
                    let comma = if index > 0 { "," } else { "" };
                    add(&format!("{comma}{}:", Json::from(key.as_str())), data)
                };
                ('{', '}', entries.iter().enumerate().all(&mut member))
            }
            _ => return self,
        };
        if is_literal { Data::Literal(format!("{open}{json}{close}")) } else { self }
    }
}
