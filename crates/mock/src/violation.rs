//! A rule of the specification that a peer has violated.

use std::fmt;

use bytes::Bytes;
use rehearse_protocol::{Transport, Version};
use serde::Serialize;
use serde_json::value::RawValue;

/// A rule of the specification that was violated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProtocolViolation {
    /// The id of the rule; `rehearse check --explain ID` explains it.
    pub rule: &'static str,
    /// The rule, in one sentence.
    pub text: &'static str,
    /// Whether it is a MUST.
    pub is_must: bool,
    /// The version by which it was judged.
    pub version: Version,
    /// The transport.
    pub transport: Transport,
    /// What was found.
    pub found: String,
    /// The message that shows it, if there is one.
    pub message: Option<Bytes>,
}

/// The rule, and what was found.
impl fmt::Display for ProtocolViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = if self.is_must { "MUST" } else { "SHOULD" };
        write!(f, "{} ({level}, {}): {} Found {}.", self.rule, self.version, self.text, self.found)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    rule: &'static str,
    text: &'static str,
    is_must: bool,
    version: Version,
    transport: Transport,
    found: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a RawValue>,
}

/// `{ "rule", "text", "isMust", "version", "transport", "found", "message" }`; no message if it is not JSON.
impl Serialize for ProtocolViolation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ProtocolViolation { rule, text, is_must, version, transport, ref found, ref message } = *self;
        let message = message.as_ref().and_then(|bytes| serde_json::from_slice(bytes).ok());
        Line { rule, text, is_must, version, transport, found, message }.serialize(serializer)
    }
}
