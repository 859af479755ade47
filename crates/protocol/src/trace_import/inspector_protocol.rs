//! The messages that the MCP Inspector exports. Those that a user has pinned may lack the handshake.

use super::{
    Format,
    content::{Content, items, text},
    direction::{DirectionGuess, named, reversed},
    recording::{Place, Recording},
    time::{duration, instant},
};
use crate::Transport;

pub(super) const FORMAT: Format = Format {
    name: "inspector-protocol",
    source: "the export of messages by MCP Inspector 2.12",
    date: "2026-10-21",
    mark: "an array whose items have `direction` and `message`",
    has_mark: |content| content.items_have(&["direction", "message"]),
    read,
};

fn read(content: &Content, recording: &mut Recording) {
    recording.note("the transport: stdio is assumed");
    let mut guess = DirectionGuess::default();
    for entry in items(&content.whole) {
        let message = &entry["message"];
        let known = named(text(&entry["origin"]));
        let Some(from) = guess.of(message, known) else {
            recording.lose("responses to no request, whose direction is not known");
            continue;
        };
        if known.is_none() {
            recording.lose("directions, which are guessed by the messages");
        }
        let at = instant(text(&entry["timestamp"]));
        let place = Place { at, ..Place::new("server", Transport::Stdio) };
        recording.message(place, from, message);
        // The response stands beside its request.
        if let Some(response) = entry.get("response").filter(|response| !response.is_null()) {
            let took = duration(&entry["duration"], 1000.0).unwrap_or_default();
            let from = guess.of(response, None).unwrap_or(reversed(from));
            recording.message(Place { at: at.map(|at| at + took), ..place }, from, response);
        }
    }
}
