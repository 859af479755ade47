//! The cassettes of mcp-cassette on npm.

use super::{
    Format,
    content::{Content, items, text},
    direction::named,
    http_exchange::split,
    recording::{Place, Recording},
    time::duration,
};
use crate::{Direction, Transport};

pub(super) const FORMAT: Format = Format {
    name: "mcp-cassette-npm",
    source: "mcp-cassette 0.4.0 of ivermin1123, on npm",
    date: "2026-08-16",
    mark: "a first line with `type` and `cassetteVersion`",
    has_mark: |content| content.lines_have(&["type", "cassetteVersion"]),
    read,
};

fn read(content: &Content, recording: &mut Recording) {
    recording.lose_some("lines that are no JSON", content.broken);
    let Some((header, lines)) = content.lines.split_first() else { return };
    if header["cassetteVersion"].as_u64().is_none_or(|version| version > 2) {
        return recording.note(format!("all: version {} of the format is not known", header["cassetteVersion"]));
    }
    let is_http = header["transport"] == "http";
    if is_http {
        recording.note("headers, of which the format has none");
    }
    let (server, transport) = match is_http {
        true => (split(text(&header["url"])).0, Transport::Http),
        false => (text(&header["command"][0]), Transport::Stdio),
    };
    let place = Place::new(server, transport);
    for line in lines {
        let place = Place { at: duration(&line["t"], 1000.0), ..place };
        match (text(&line["type"]), named(text(&line["dir"]))) {
            ("frame", Some(from)) => recording.message(place, from, &line["frame"]),
            ("raw", Some(from)) => recording.message(place, from, &line["data"]),
            ("chunks", _) => {
                for chunk in items(&line["chunks"]) {
                    let place = Place { at: duration(&chunk["t"], 1000.0), ..place };
                    recording.message(place, Direction::ServerToClient, &chunk["frame"]);
                }
            }
            _ => recording.lose("lines of an unknown kind"),
        }
    }
}
