//! The frames that show a failure.

use std::fmt::Write;

use rehearse_protocol::Direction;
use serde_json::Value as Json;
use textwrap::core::display_width;

use crate::{
    TraceLine, WireKind, WireLine,
    palette::{BAD, DIM, STRONG, styled},
    text::{block, printable, shortened},
};

/// All frames and what the server wrote besides, with their times; what does not fit into a line has several.
pub(super) fn traffic(out: &mut String, lines: &[TraceLine], width: usize) {
    let _ = writeln!(out, "  {}", styled(if lines.is_empty() { "no frames" } else { "frames" }, DIM));
    for TraceLine { server, line } in lines.iter().filter(|it| is_shown(it.line.kind)) {
        let at = styled(format!("{:>9.1} ms", line.at.as_secs_f64() * 1000.0), DIM);
        let cut = if line.is_cut() { format!("… ({} bytes)", line.length) } else { String::new() };
        let (server, frame) = (printable(server), format!("{}{cut}", printable(&line.text)));
        let _ = write!(out, "  {at} {} {}", line.sign(), styled(&server, STRONG));
        if 19 + display_width(&server) + display_width(&frame) <= width {
            let _ = writeln!(out, " {frame}");
            continue;
        }
        out.push('\n');
        let pretty = serde_json::from_str::<Json>(&line.text).and_then(|frame| serde_json::to_string_pretty(&frame));
        for line in pretty.as_deref().unwrap_or(&frame).lines() {
            let text = line.trim_start();
            block(out, &" ".repeat(6 + line.len() - text.len()), text, width);
        }
    }
}

fn is_shown(kind: WireKind) -> bool {
    matches!(kind, WireKind::Frame | WireKind::Stderr | WireKind::Process)
}

/// A frame in one line, shortened around what violates the rule, which is marked below.
pub(super) fn brief(out: &mut String, line: &WireLine, width: usize) {
    let room = width.saturating_sub(4).max(20);
    // What the client sent is not what violates the rule.
    let mark = line.mark.as_deref().filter(|_| line.direction == Direction::ServerToClient);
    let (before, marked, after) = match mark.and_then(|mark| line.text.split_once(mark).zip(Some(mark))) {
        Some(((before, after), marked)) => (printable(before), printable(marked), printable(after)),
        None => (printable(&line.text), "".into(), "".into()),
    };
    let is_whole = line.offset == 0 && display_width(&before) + display_width(&marked) + display_width(&after) <= room;
    // A third of the room is for what comes before.
    let keeps = if marked.is_empty() { room } else { room.saturating_sub(display_width(&marked)).min(room / 3) };
    let before = match is_whole || (line.offset == 0 && display_width(&before) <= keeps) {
        true => before.into_owned(),
        false if marked.is_empty() => shortened(&before, room),
        false => format!("…{}", last(&before, keeps.saturating_sub(1))),
    };
    let marked = shortened(&marked, room.saturating_sub(display_width(&before)));
    let after = shortened(&after, room.saturating_sub(display_width(&before) + display_width(&marked)));
    let cut = if line.is_cut() && is_whole { "…" } else { "" };
    let _ = writeln!(out, "  {} {before}{marked}{after}{cut}", line.arrow());
    if !marked.is_empty() {
        let carets = "^".repeat(display_width(&marked));
        let _ = writeln!(out, "    {:1$}{2}", "", display_width(&before), styled(carets, BAD));
    }
    if let Some(hex) = &line.hex {
        let _ = writeln!(out, "    {}", styled(format!("bytes: {}", shortened(hex, room.saturating_sub(7))), DIM));
    }
}

/// The end of a text.
fn last(text: &str, count: usize) -> String {
    let skipped = text.chars().count().saturating_sub(count);
    text.chars().skip(skipped).collect()
}
