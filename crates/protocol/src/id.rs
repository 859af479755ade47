//! Ids of requests.

use std::fmt;

use serde::Serialize;
use serde_json::value::RawValue;

/// A request id: a string or an integer (MCP forbids `null`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Id {
    /// Of 64 bits, with or without a sign.
    Number(i128),
    String(Box<str>),
}

impl Id {
    /// What serde_json can write of all that it reads.
    const NUMBERS: std::ops::RangeInclusive<i128> = i64::MIN as i128..=u64::MAX as i128;

    /// The id that the JSON text is; `None` for anything but a string or an integer.
    pub fn parse(raw: &RawValue) -> Option<Id> {
        let text = raw.get();
        match text.as_bytes().first()? {
            b'"' => serde_json::from_str(text).ok().map(Id::String),
            b'-' | b'0'..=b'9' => text.parse().ok().filter(|number| Id::NUMBERS.contains(number)).map(Id::Number),
            _ => None,
        }
    }

    /// The id as JSON text.
    pub fn to_json(&self) -> String {
        match self {
            Id::Number(number) => number.to_string(),
            Id::String(text) => serde_json::Value::from(&**text).to_string(),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(number) => number.fmt(f),
            Id::String(text) => text.fmt(f),
        }
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Self {
        Id::Number(number.into())
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        Id::String(text.into())
    }
}
