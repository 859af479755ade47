//! A frame or an HTTP head that shows a violation.

use std::{fmt::Write, time::Duration};

use rehearse_protocol::Direction;
use serde::Serialize;

use super::milliseconds;

/// How many bytes of a frame are kept.
const LONGEST: usize = 4096;
/// How many of them stand before what is marked.
const BEFORE: usize = 1024;

/// A frame or an HTTP head that shows a violation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceLine {
    pub direction: Direction,
    #[serde(rename = "atMs", serialize_with = "milliseconds")]
    pub at: Duration,
    /// The frame, or the part of it that shows the violation. Bytes that are no UTF-8 are replaced.
    pub text: String,
    /// The part of the text that violates the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The bytes of the text in hexadecimal, if they are no UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
    /// How many bytes of the frame come before the text.
    #[serde(skip_serializing_if = "is_zero")]
    pub offset: usize,
    /// The length of the frame in bytes.
    pub length: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl EvidenceLine {
    /// The bytes, around the first of `marks` that occurs in them if they are long.
    pub fn new(direction: Direction, at: Duration, bytes: &[u8], marks: &[String]) -> EvidenceLine {
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
        EvidenceLine { direction, at, text, mark, hex, offset: start, length: bytes.len() }
    }

    /// The sign of the direction.
    pub(super) fn arrow(&self) -> &'static str {
        if self.direction == Direction::ClientToServer { "→" } else { "←" }
    }

    /// Whether the text ends before the frame.
    pub(super) fn is_cut(&self) -> bool {
        self.hex.is_none() && self.offset + self.text.len() < self.length
    }
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
