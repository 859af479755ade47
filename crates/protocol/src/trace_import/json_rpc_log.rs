//! Logs of many programs: a message a line, alone, after a prefix, or as a member of an object.

use serde_json::Value;

use super::{
    Format,
    content::{Content, text},
    direction::{DirectionGuess, named},
    recording::{Place, Recording},
    time::{duration, instant},
};
use crate::{Direction, Transport};

/// The members that may have a message.
const MESSAGES: [&str; 7] = ["message", "msg", "frame", "payload", "data", "raw", "body"];
/// The members that may say who sent it. Words such as `send` depend on who writes the log, and say nothing.
const DIRECTIONS: [&str; 5] = ["direction", "dir", "from", "sender", "origin"];
const TIMES: [&str; 4] = ["ts", "timestamp", "time", "t"];

pub(super) const FORMAT: Format = Format {
    name: "json-rpc-log",
    source: "logs of many programs",
    date: "2026-11",
    mark: "lines with a JSON-RPC message, alone, after a prefix, or in a member such as `message`",
    has_mark: |content| content.text.lines().any(|line| logged(line).is_some()),
    read,
};

struct Logged {
    text: String,
    message: Value,
    from: Option<Direction>,
    at: Option<std::time::Duration>,
}

fn read(content: &Content, recording: &mut Recording) {
    recording.note("the transport: stdio is assumed");
    let mut guess = DirectionGuess::default();
    for line in content.text.lines().filter(|line| !line.trim().is_empty()) {
        let Some(Logged { text, message, from, at }) = logged(line) else {
            recording.lose("lines without a message");
            continue;
        };
        let place = Place { at, ..Place::new("server", Transport::Stdio) };
        match guess.of(&message, from) {
            Some(guessed) => {
                recording.lose_some("directions, which are guessed by the messages", usize::from(from.is_none()));
                recording.frame(place, guessed, &text);
            }
            None => recording.lose("responses to no request, whose direction is not known"),
        }
    }
}

/// The message of a line, with what the line says of it.
fn logged(line: &str) -> Option<Logged> {
    let (prefix, json) = line.split_at(line.find('{')?);
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let value = values.next()?.ok()?;
    if value.get("jsonrpc").is_some() {
        let text = json[..values.byte_offset()].to_owned();
        let words = prefix.split([' ', '\t', '[', ']']).filter(|word| word.contains('T'));
        let spaced = || prefix.trim_start_matches('[').get(..19).and_then(instant);
        let at = words.filter_map(instant).next().or_else(spaced);
        return Some(Logged { text, message: value, from: named(prefix), at });
    }
    let member = MESSAGES.iter().find_map(|name| {
        let message = match value.get(name)? {
            Value::String(text) => serde_json::from_str::<Value>(text).ok()?,
            message => message.clone(),
        };
        message.get("jsonrpc").is_some().then_some(message)
    });
    let message = member?;
    let from = DIRECTIONS.iter().find_map(|name| named(text(&value[*name])));
    let at = TIMES.iter().find_map(|name| match &value[*name] {
        Value::String(text) => instant(text),
        number => duration(number, 1.0),
    });
    Some(Logged { text: message.to_string(), message, from, at })
}
