//! The traces of mcpsnoop: an envelope a value, and several values may stand on one line.

use std::collections::BTreeMap;

use super::{
    Format,
    content::{Content, text},
    direction::named,
    recording::{Place, Recording},
    time::instant,
};
use crate::{EventKind, Transport};

pub(super) const FORMAT: Format = Format {
    name: "mcpsnoop",
    source: "mcpsnoop 0.18",
    date: "2026-08-08",
    mark: "lines with `session_id`, `direction` and `seq`",
    has_mark: |content| content.lines_have(&["session_id", "direction", "seq"]),
    read,
};

fn read(content: &Content, recording: &mut Recording) {
    recording.lose_some("lines that are no JSON", content.broken);
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    for line in &content.lines {
        let is_http = line["transport"] == "http";
        // Ids are unique in a connection only.
        let session = format!("{} {}", text(&line["session_id"]), line["conn_id"]);
        let place = Place {
            session: &session,
            at: instant(text(&line["ts"])),
            ..Place::new(text(&line["server_label"]), if is_http { Transport::Http } else { Transport::Stdio })
        };
        let number = line["seq"].as_u64().unwrap_or_default();
        let before = numbers.insert(text(&line["session_id"]), number);
        let missing = before.map_or(0, |before| number.saturating_sub(before + 1));
        recording.lose_some("frames that the recorder dropped", usize::try_from(missing).unwrap_or_default());
        for (member, what) in [("truncated", "frames that are cut"), ("redacted", "frames with values taken out")] {
            recording.lose_some(what, usize::from(line[member] == true));
        }
        if is_http {
            recording.note("headers, of which the format has none");
        }
        match (named(text(&line["direction"])), text(&line["direction"])) {
            (Some(from), _) if !line["raw"].is_null() => recording.message(place, from, &line["raw"]),
            (Some(from), _) if line["text"].is_string() => recording.message(place, from, &line["text"]),
            (Some(_), _) => recording.lose("HTTP responses with nothing but a status"),
            (None, "stderr") => {
                recording.event(place, EventKind::Stderr(text(&line["text"]).to_owned().into()));
            }
            // The command.
            (None, "meta") => {}
            (None, _) => recording.lose("lines of an unknown kind"),
        }
    }
}
