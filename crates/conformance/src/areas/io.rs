//! Standard input and output.

use std::{str, time::Duration};

use super::Judge;
use crate::{Case, Connection, Evidence, Judgement, Kind, Material, Message};

/// How long a server may take to exit.
const EXIT: Duration = Duration::from_secs(2);

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("io.line.no-embedded-newline", no_newline),
    ("io.stdout.only-messages", |e, j| lines(e, j, |_, _| true)),
    ("io.stdout.from-start", |e, j| lines(e, j, is_before_requests)),
    ("io.stdout.at-exit", |e, j| lines(e, j, is_after_end)),
    ("io.stdout.utf8", utf8),
    ("io.stderr.utf8", stderr_utf8),
    ("io.exit.on-stdin-close", exits),
    ("io.exit.on-stdin-close-legacy", exits),
    ("io.exit.status-zero", status),
    ("io.crash.none", lives),
];

pub(super) fn cases(_: &Material) -> Vec<Case> {
    Vec::new()
}

fn is_before_requests(connection: &Connection<'_>, line: &Message<'_>) -> bool {
    connection.messages.iter().find(|it| !it.is_from_server()).is_none_or(|first| line.place < first.place)
}

fn is_after_end(connection: &Connection<'_>, line: &Message<'_>) -> bool {
    connection.input_closed.is_some_and(|(place, _)| line.place > place)
}

/// Whether a line is the beginning of a JSON value that goes on in the next lines.
fn is_part(text: &str) -> bool {
    matches!(text.trim(), "{" | "[" | "}" | "]" | "}," | "],") || text.trim_start().starts_with("\"jsonrpc\"")
}

fn text(message: &Message<'_>) -> String {
    let text = String::from_utf8_lossy(message.bytes);
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{:?}…", &text[..at]),
        None => format!("{text:?}"),
    }
}

fn no_newline(evidence: &Evidence<'_>, j: &mut Judgement) {
    for line in evidence.received().filter(|it| !it.is_in_batch) {
        let is_part = line.value.is_null() && str::from_utf8(line.bytes).is_ok_and(is_part);
        j.check(!is_part, line, || format!("the line {}", text(line)));
    }
}

fn lines(evidence: &Evidence<'_>, j: &mut Judgement, counts: impl Fn(&Connection<'_>, &Message<'_>) -> bool) {
    for connection in &evidence.connections {
        if connection.closed.is_none() && connection.messages.is_empty() {
            continue;
        }
        let mut is_clean = true;
        for line in connection.messages.iter().filter(|it| it.is_from_server() && !it.is_in_batch) {
            let is_message = line.kind != Kind::Other || str::from_utf8(line.bytes).is_ok_and(is_part);
            if counts(connection, line) && !is_message {
                is_clean = false;
                j.check(false, line, || format!("the line {}", text(line)));
            }
        }
        if let (true, Some(first)) = (is_clean, connection.messages.first()) {
            j.check(true, first, String::new);
        }
    }
}

fn utf8(evidence: &Evidence<'_>, j: &mut Judgement) {
    for line in evidence.received().filter(|it| !it.is_in_batch) {
        j.check(str::from_utf8(line.bytes).is_ok(), line, || "bytes that are no UTF-8".to_owned());
    }
}

fn stderr_utf8(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (place, line) in evidence.connections.iter().flat_map(|connection| &connection.stderr) {
        let is_text = !String::from_utf8_lossy(line).contains('\u{fffd}');
        j.check_at(is_text, None, vec![*place], || "bytes that are no UTF-8".to_owned());
    }
}

fn exits(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
        let (Some((place, closed)), Some((exited, _))) = (connection.input_closed, connection.exited) else { continue };
        let took = exited.saturating_sub(closed);
        j.check_at(took <= EXIT, None, vec![place], || format!("the end of the process after {took:.1?}"));
    }
}

fn status(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
        let (Some((place, _)), Some((_, code))) = (connection.input_closed, connection.exited) else { continue };
        j.check_at(code == Some(0), None, vec![place], || match code {
            Some(code) => format!("the exit code {code}"),
            None => "an end by a signal".to_owned(),
        });
    }
}

fn lives(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in evidence.connections.iter().filter(|connection| connection.started.is_some()) {
        let last = connection.messages.iter().rfind(|it| !it.is_from_server());
        if let Some(last) = last {
            let subject = last.case.map(ToOwned::to_owned);
            j.check_at(!connection.ended_by_server(), subject, vec![last.place], || {
                "the end of the process after this message".to_owned()
            });
        }
    }
}
