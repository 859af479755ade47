//! One message that a mock received.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Answer, Refusal};
use crate::ProtocolViolation;
use rehearse_protocol::{Message, Transport};

/// One message that a mock received, or an HTTP request without one.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Counted from 1 in the order of arrival.
    pub number: u64,
    /// Time since the mock was started.
    pub at: Duration,
    /// The transport that carried it.
    pub transport: Transport,
    /// The id of the session, or a name for a connection that has no session.
    pub session: Option<Arc<str>>,
    /// The HTTP method and the path, if the request has no message.
    pub http: Option<String>,
    /// The bytes of the message; empty if the request had no body.
    pub request: Bytes,
    /// How the mock handled the message.
    pub handling: Handling,
    /// Why the answer is not what the client asked for.
    pub reason: Option<String>,
    /// The names of the faults that were applied to the answer.
    pub faults: Vec<&'static str>,
    pub(super) answer: Arc<OnceLock<Answer>>,
}

/// What happens in a journal.
#[derive(Clone, Debug)]
pub enum JournalEvent {
    /// A new entry.
    Received(Entry),
    /// The end of the call of an earlier entry, this time since the mock was started.
    Answered(Entry, Duration),
    /// A rule of the specification that a client has violated, and the number of the entry with the message.
    Violated(Option<u64>, ProtocolViolation),
}

/// How the mock handled a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handling {
    /// This rule of the script answered.
    Rule(Arc<str>),
    /// The protocol answered: a handshake, a list, a notification.
    Protocol,
    /// No rule of the script matched; the closest rule, and why it did not match.
    Unmatched {
        /// The label of the closest rule, if there is one.
        closest: Option<String>,
        /// The reason why it did not match.
        why: String,
    },
    /// The message was refused.
    Refused {
        /// The kind of the reason.
        refusal: Refusal,
        /// The reason.
        why: String,
    },
}

impl Handling {
    /// A message that is refused for this reason.
    pub fn refused(refusal: Refusal, why: impl Into<String>) -> Handling {
        Handling::Refused { refusal, why: why.into() }
    }
}

impl Entry {
    /// The method of the message, if it has one.
    pub fn method(&self) -> Option<String> {
        Message::parse(&self.request).ok()?.method().map(str::to_owned)
    }

    /// How the request ended; `None` for a message without an answer, and while the mock answers.
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.get()
    }

    /// Why the answer is an error, or not what the client asked for.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref().or_else(|| self.answer()?.reason())
    }
}

impl fmt::Display for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Handling::Rule(label) => f.write_str(label),
            Handling::Protocol => f.write_str("protocol"),
            Handling::Unmatched { closest: Some(closest), why } => {
                write!(f, "no rule matched; closest is {closest}: {why}")
            }
            Handling::Unmatched { closest: None, why } => write!(f, "no rule matched: {why}"),
            Handling::Refused { why, .. } => write!(f, "refused: {why}"),
        }
    }
}

/// A line of the journal.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    number: u64,
    at_ms: f64,
    transport: Transport,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<&'a str>,
    method: Option<String>,
    handling: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refusal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    faults: &'a [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Entry {
    fn line<'a>(&'a self, at: Duration, request: Option<&'a RawValue>) -> Line<'a> {
        let refusal = match &self.handling {
            Handling::Refused { refusal, .. } => Some(*refusal),
            _ => None,
        };
        Line {
            number: self.number,
            at_ms: (at.as_secs_f64() * 1_000_000.0).round() / 1000.0,
            transport: self.transport,
            session: self.session.as_deref(),
            http: self.http.as_deref(),
            method: self.method(),
            handling: self.handling.to_string(),
            refusal,
            answer: self.answer().map(Answer::as_str),
            outcome: self.answer().and_then(Answer::outcome).map(|outcome| outcome.as_str()),
            reason: self.reason(),
            faults: &self.faults,
            request,
            text: None,
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The newlines of a valid request are white space between its tokens; one entry is one line.
        let request: Vec<u8> =
            self.request.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
        let request = serde_json::from_slice(&request).ok();
        let text =
            (request.is_none() && !self.request.is_empty()).then(|| String::from_utf8_lossy(&self.request).into());
        Line { text, ..self.line(self.at, request) }.serialize(serializer)
    }
}

/// A new entry, for the end of a call the same entry with its answer and without the request, or
/// `{ "number", "violation" }`.
impl Serialize for JournalEvent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            JournalEvent::Received(entry) => entry.serialize(serializer),
            JournalEvent::Answered(entry, at) => entry.line(*at, None).serialize(serializer),
            JournalEvent::Violated(number, violation) => {
                #[derive(Serialize)]
                struct Violated<'a> {
                    #[serde(skip_serializing_if = "Option::is_none")]
                    number: Option<u64>,
                    violation: &'a ProtocolViolation,
                }
                Violated { number: *number, violation }.serialize(serializer)
            }
        }
    }
}
