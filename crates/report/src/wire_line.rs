//! A line of the traffic with a server: a frame, an HTTP head, or what its process does.

use std::{fmt::Write, time::Duration};

use http::HeaderMap;
use rehearse_protocol::{Direction, Event, EventKind, ProcessEvent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::milliseconds::Milliseconds;

/// How many bytes of a frame are kept.
const LONGEST: usize = 4096;
/// How many of them stand before what is marked.
const BEFORE: usize = 1024;

/// What a line of the traffic is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WireKind {
    /// A message, or bytes where a message was expected.
    #[default]
    Frame,
    /// The first line and the headers of an HTTP request or response.
    HttpHead,
    /// An HTTP body that is not a message.
    HttpBody,
    /// A line on the standard error of the server's process.
    Stderr,
    /// The start or the end of the server's process.
    Process,
}

/// A line of the traffic with a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WireLine {
    #[schemars(with = "String", extend("enum" = ["client-to-server", "server-to-client"]))]
    pub direction: Direction,
    /// What the line is if it is not a message.
    #[serde(default, skip_serializing_if = "WireKind::is_frame")]
    pub kind: WireKind,
    /// Since the connection was opened.
    #[serde(rename = "atMs", with = "Milliseconds")]
    pub at: Duration,
    /// The frame, or the part of it that shows the violation. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The part of the text that violates the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The bytes of the text in hexadecimal, if they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
    /// How many bytes of the frame come before the text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: usize,
    /// The length of the frame in bytes.
    pub length: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl WireKind {
    /// Whether it is a frame.
    pub fn is_frame(&self) -> bool {
        *self == WireKind::Frame
    }
}

impl WireLine {
    /// The line of an event; `None` if the event says nothing of its own, such as the end of a body.
    pub fn from_event(event: &Event, marks: &[String]) -> Option<WireLine> {
        use Direction::{ClientToServer, ServerToClient};
        let line =
            |kind, direction, bytes: &[u8]| Some(WireLine { kind, ..WireLine::new(direction, event.at, bytes, marks) });
        match &event.kind {
            EventKind::Frame(frame) => line(WireKind::Frame, frame.direction, &frame.bytes),
            EventKind::HttpRequest { method, target, headers } => {
                let head = format!("{method} {target}{}", self::headers(headers));
                line(WireKind::HttpHead, ClientToServer, head.as_bytes())
            }
            EventKind::HttpResponse { status, headers } => {
                let head = format!("HTTP {}{}", status.as_u16(), self::headers(headers));
                line(WireKind::HttpHead, ServerToClient, head.as_bytes())
            }
            EventKind::HttpBody { direction, bytes } => line(WireKind::HttpBody, *direction, bytes),
            EventKind::Stderr(text) => line(WireKind::Stderr, ServerToClient, text),
            EventKind::Process(ProcessEvent::Exited { code }) => {
                let text = code.map_or("ended by a signal".to_owned(), |code| format!("ended with code {code}"));
                line(WireKind::Process, ServerToClient, text.as_bytes())
            }
            _ => None,
        }
    }

    /// The bytes, around the first of `marks` that occurs in them if they are long.
    pub fn new(direction: Direction, at: Duration, bytes: &[u8], marks: &[String]) -> WireLine {
        let find = |mark: &String| bytes.windows(mark.len().max(1)).position(|window| window == mark.as_bytes());
        let found = marks.iter().filter(|mark| !mark.is_empty()).find_map(|mark| Some((find(mark)?, mark)));
        let start = match found {
            Some((at, _)) if bytes.len() > LONGEST => boundary(bytes, at.saturating_sub(BEFORE)),
            _ => 0,
        };
        let end = boundary(bytes, bytes.len().min(start + LONGEST));
        let part = &bytes[start..end];
        let mark = found.filter(|(at, mark)| at + mark.len() <= end).map(|(_, mark)| mark.clone());
        let hex = std::str::from_utf8(part).is_err().then(|| hex(part));
        let text = String::from_utf8_lossy(part).into_owned();
        WireLine { kind: WireKind::Frame, direction, at, text, mark, hex, offset: start, length: bytes.len() }
    }

    /// The sign of the direction.
    pub(crate) fn arrow(&self) -> &'static str {
        if self.direction == Direction::ClientToServer { "→" } else { "←" }
    }

    /// What stands before the line: the sign of the direction, or what it is if it was not sent.
    pub(crate) fn sign(&self) -> &'static str {
        match self.kind {
            WireKind::Stderr => "stderr",
            WireKind::Process => "process",
            _ => self.arrow(),
        }
    }

    /// Whether the text ends before the frame.
    pub fn is_cut(&self) -> bool {
        self.hex.is_none() && self.offset + self.text.len() < self.length
    }
}

/// Headers, without those that authorize.
fn headers(headers: &HeaderMap) -> String {
    let shown = headers.iter().filter(|(name, _)| !matches!(name.as_str(), "authorization" | "cookie" | "set-cookie"));
    shown.map(|(name, value)| format!("  {name}: {}", String::from_utf8_lossy(value.as_bytes()))).collect()
}

/// The next place that is not within a character.
fn boundary(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| (0x80..0xc0).contains(byte)) {
        at += 1;
    }
    at
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The texts that a frame may show of a violation, best first: its subject, what was found, and the codes and quoted
/// texts in that.
pub fn marks(subject: Option<&str>, found: &str) -> Vec<String> {
    let mut marks = Vec::new();
    let mut add = |text: &str| {
        marks.push(serde_json::Value::from(text).to_string());
        if text.chars().count() >= 3 {
            marks.push(text.to_owned());
        }
    };
    subject.into_iter().for_each(&mut add);
    add(found);
    for quote in ['"', '`'] {
        found.split(quote).skip(1).step_by(2).for_each(&mut add);
    }
    let words = found.split(|character: char| !(character.is_alphanumeric() || character == '-'));
    let codes = words.filter(|word| word.len() >= 3 && word.parse::<i64>().is_ok()).map(ToOwned::to_owned);
    // The code of an error says more than its message.
    let at = subject.map_or(0, |_| 2).min(marks.len());
    let codes: Vec<_> = codes.collect();
    marks.splice(at..at, codes);
    marks
}
