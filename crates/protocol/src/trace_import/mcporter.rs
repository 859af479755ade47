//! The recordings of mcporter: each line is a message with a member `_meta` beside it.

use super::{
    Format,
    content::{Content, text},
    recording::{Place, Recording},
    time::instant,
};
use crate::{Closed, Direction, EventKind, Transport};

pub(super) const FORMAT: Format = Format {
    name: "mcporter",
    source: "mcporter 0.12.3",
    date: "2026-08-24",
    mark: "lines with `jsonrpc` and `_meta.dir`",
    has_mark: |content| content.lines_have(&["jsonrpc", "_meta"]) && content.lines[0]["_meta"]["dir"].is_string(),
    read,
};

fn read(content: &Content, recording: &mut Recording) {
    recording.note("the transport: stdio is assumed");
    recording.lose_some("lines that are no JSON", content.broken);
    for line in &content.lines {
        let meta = &line["_meta"];
        let at = instant(text(&meta["ts"]));
        let place = Place { at, ..Place::new(text(&meta["server"]), Transport::Stdio) };
        let mut message = line.clone();
        message.as_object_mut().and_then(|members| members.shift_remove("_meta"));
        match (text(&meta["dir"]), text(&line["method"])) {
            ("send", _) => recording.message(place, Direction::ClientToServer, &message),
            ("recv", _) => recording.message(place, Direction::ServerToClient, &message),
            (_, "$transport/start") => recording.begin(&place),
            (_, "$transport/close") => {
                recording.event(place, EventKind::Closed(Closed::by_client("the client closed the transport")));
            }
            _ => recording.lose("lines of an unknown kind"),
        }
    }
}
