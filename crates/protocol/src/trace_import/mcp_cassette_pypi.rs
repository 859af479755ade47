//! The cassettes of mcp-cassette on PyPI, which has only its name in common with the one on npm.

use super::{
    Format,
    content::{Content, items, text},
    direction::named,
    recording::{Place, Recording},
    time::duration,
};
use crate::Transport;

pub(super) const FORMAT: Format = Format {
    name: "mcp-cassette-pypi",
    source: "mcp-cassette 0.3.3 of cheneeheng, on PyPI",
    date: "2026-07-24",
    mark: "an object with `messages` and an integer as `format_version`",
    has_mark: |content| content.has(&["messages"]) && content.whole["format_version"].is_u64(),
    read,
};

fn read(content: &Content, recording: &mut Recording) {
    let whole = &content.whole;
    if whole["format_version"].as_u64().is_none_or(|version| version > 2) {
        return recording.note(format!("all: version {} of the format is not known", whole["format_version"]));
    }
    let is_http = whole["transport"] == "http";
    if is_http {
        recording.note("headers, of which the format has none");
    }
    let transport = if is_http { Transport::Http } else { Transport::Stdio };
    for entry in items(&whole["messages"]) {
        let at = duration(&entry["t_offset_ms"], 1000.0);
        let exchange = entry["exchange"].as_u64().and_then(|number| u32::try_from(number).ok());
        let place = Place { at, exchange, ..Place::new(text(&whole["server_info"]["name"]), transport) };
        recording.lose_some("messages with values taken out", usize::from(entry["redacted"] == true));
        match named(text(&entry["sender"])) {
            Some(from) => recording.message(place, from, &entry["payload"]),
            None => recording.lose("messages of an unknown sender"),
        }
    }
}
