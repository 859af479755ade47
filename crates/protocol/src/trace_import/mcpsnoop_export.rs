//! The JSON export of mcpsnoop. It does not tell connections apart. What it says of calls is also in its events.

use serde_json::Value;

use super::{
    Format,
    content::{Content, items, text},
    direction::named,
    recording::{Place, Recording},
    time::instant,
};
use crate::{EventKind, Transport};

pub(super) const FORMAT: Format = Format {
    name: "mcpsnoop-export",
    source: "the JSON export of mcpsnoop 0.18",
    date: "2026-08-08",
    mark: "an object with `session`, `calls` and `events`",
    has_mark: |content| content.has(&["session", "calls", "events"]),
    read,
};

fn read(content: &Content, recording: &mut Recording) {
    let server = text(&content.whole["session"]["label"]);
    let place = |time: &Value| Place { at: instant(text(time)), ..Place::new(server, Transport::Stdio) };
    recording.note("the transport: stdio is assumed");
    let missing = content.whole["session"]["missing_frames"].as_u64().unwrap_or_default();
    recording.lose_some("frames that the recorder dropped", usize::try_from(missing).unwrap_or_default());
    for event in items(&content.whole["events"]) {
        let place = place(&event["timestamp"]);
        match (named(text(&event["direction"])), &event["raw"]) {
            (Some(_), Value::Null) => recording.lose("events without a message"),
            (Some(from), message) => recording.message(place, from, message),
            (None, _) if event["direction"] == "stderr" => {
                recording.event(place, EventKind::Stderr(text(&event["text"]).to_owned().into()));
            }
            (None, _) => {}
        }
    }
}
