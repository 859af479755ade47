//! The sessions of mcp-recorder by toddegray.

use super::{
    Format,
    content::{Content, text},
    direction::named,
    recording::{Place, Recording},
    time::duration,
};
use crate::Transport;

pub(super) const FORMAT: Format = Format {
    name: "mcp-recorder-toddegray",
    source: "mcp-recorder of toddegray",
    date: "2026-11",
    mark: "lines with `seq`, `t`, `dir` and `msg`",
    has_mark: |content| content.lines_have(&["seq", "t", "dir", "msg"]),
    read,
};

fn read(content: &Content, recording: &mut Recording) {
    recording.lose_some("lines that are no JSON", content.broken);
    // The last line names the server, unless the recorder was killed.
    let summary = content.lines.iter().find(|line| line["type"] == "summary");
    let server = summary.map(|line| text(&line["server"]["command"])).filter(|name| !name.is_empty());
    for line in content.lines.iter().filter(|line| line["type"] != "summary") {
        let place = Place::new(server.unwrap_or("server"), Transport::Stdio);
        match named(text(&line["dir"])) {
            Some(from) => recording.message(Place { at: duration(&line["t"], 1.0), ..place }, from, &line["msg"]),
            None => recording.lose("lines of an unknown kind"),
        }
    }
}
