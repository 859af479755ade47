//! The cassettes of mcp-recorder on PyPI: each request with its answer.

use std::time::Duration;

use super::{
    Format,
    content::{Content, items, text},
    http_exchange::split,
    recording::{Place, Recording},
    time::{duration, instant},
};
use crate::{Direction, Transport};

pub(super) const FORMAT: Format = Format {
    name: "mcp-recorder-devhelm",
    source: "mcp-recorder 0.5.0 of devhelmhq, on PyPI",
    date: "2026-03",
    mark: "an object with `version`, `metadata` and `interactions`",
    has_mark: |content| content.has(&["version", "metadata", "interactions"]),
    read,
};

fn read(content: &Content, recording: &mut Recording) {
    let metadata = &content.whole["metadata"];
    recording.note("headers, progress and logs, of which the format has none");
    recording.note("times between messages: only how long answers took is known");
    let url = text(&metadata["server_url"]);
    let is_http = url.starts_with("http") && metadata["transport_type"] != "stdio";
    let transport = if is_http { Transport::Http } else { Transport::Stdio };
    let server = if is_http { split(url).0 } else { text(&metadata["server_info"]["name"]) };
    let mut at = instant(text(&metadata["recorded_at"])).unwrap_or(Duration::ZERO);
    for interaction in items(&content.whole["interactions"]) {
        if interaction["type"] == "lifecycle" {
            recording.lose("GET and DELETE requests");
            continue;
        }
        let place = Place::new(server, transport);
        recording.message(Place { at: Some(at), ..place }, Direction::ClientToServer, &interaction["request"]);
        at += duration(&interaction["latency_ms"], 1000.0).unwrap_or_default();
        if !interaction["response"].is_null() {
            recording.message(Place { at: Some(at), ..place }, Direction::ServerToClient, &interaction["response"]);
        }
    }
}
