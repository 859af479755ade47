//! Standard input, as a client writes to it.

use std::{str, time::Duration};

use super::super::Judge;
use super::super::io::{is_part, no_newline, text};
use super::super::sub::LISTEN;
use super::{cancel::gives_up, completes, ends, if_sent};
use crate::areas::query::Query;
use crate::{Connection, Evidence, Judgement, Kind, Level, Message, without_mark};

/// A client that waits less for the end of the process does not wait.
const PATIENCE: Duration = Duration::from_millis(200);

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-io.stdin.only-messages", |e, j| {
        for line in e.sent().filter(|it| !it.is_in_batch) {
            // Lines that are part of a message have a check of their own.
            let is_message = line.kind != Kind::Other || str::from_utf8(line.bytes).is_ok_and(is_part);
            let is_blank = line.bytes.iter().all(u8::is_ascii_whitespace);
            j.check(is_message, line, || match is_blank {
                true => "an empty line".to_owned(),
                false => format!("the line {}", text(line)),
            });
            j.at_level_if(!is_message && is_blank, Level::Derived);
        }
    }),
    ("client-io.stdin.no-embedded-newline", no_newline),
    ("client-io.stdin.no-bom", |e, j| {
        let is_plain = |line: &Message<'_>| without_mark(line.bytes).len() == line.bytes.len();
        let lines = e.sent().filter(|it| !it.is_in_batch);
        lines.must(j, is_plain, |line| format!("a byte order mark before {}", text(line)));
    }),
    ("client-io.stdout.split-reads", |e, j| completes(e, j, "pieces")),
    ("client-io.stdout.two-in-one", |e, j| completes(e, j, "two-in-one")),
    ("client-io.cancel.notification", |e, j| {
        gives_up(e, j, "tools/list", "silent-list");
        gives_up(e, j, "resources/read", "silent-read");
        gives_up(e, j, "prompts/get", "silent-read");
        gives_up(e, j, "tools/call", "silent-call");
        gives_up(e, j, "tools/call", "slow-call");
    }),
    ("client-io.stderr.not-error", |e, j| completes(e, j, "stderr")),
    ("client-io.stderr.drained", |e, j| completes(e, j, "stderr-flood")),
    ("client-io.crash.reports", |e, j| if_sent(e, j, "tools/call", ends, "crash")),
    ("client-io.crash.reinit", |e, j| {
        restarted(e, j, |connection| {
            let first = connection.sent().next()?;
            let is_right = first.method() == Some("initialize") || !connection.earlier.is_empty();
            Some((!is_right).then(|| format!("{} first", first.method().unwrap_or("a message"))))
        });
    }),
    ("client-io.crash.relisten", |e, j| {
        let listens = |connection: &Connection<'_>| connection.calls().any(|call| call.method() == LISTEN);
        if e.connections.first().is_some_and(listens) {
            restarted(e, j, |connection| Some((!listens(connection)).then(|| format!("no `{LISTEN}`"))));
        }
    }),
    ("client-io.shutdown.closes-stdin", |e, j| {
        for connection in &e.connections {
            let (closed, signal) = (connection.input_closed, connection.terminated);
            let is_first = closed.is_some_and(|(at, _)| signal.is_none_or(|(signal, _)| at < signal));
            if let Some((place, _)) = closed.or(signal) {
                let found = || "a signal before the end of standard input".to_owned();
                j.check_at(is_first, None, vec![place], found);
            }
        }
    }),
    ("client-io.shutdown.waits", |e, j| {
        for connection in e.connections.iter().filter(|_| e.facts.is_in("lingers")) {
            let Some((place, closed)) = connection.input_closed else { continue };
            let waited = connection.terminated.map(|(_, at)| at.saturating_sub(closed));
            let is_patient = waited.is_none_or(|waited| waited >= PATIENCE);
            let found = || format!("a signal after {} ms", waited.unwrap_or_default().as_millis());
            j.check_at(is_patient, None, vec![place], found);
        }
    }),
    ("client-io.shutdown.sigterm-then-kill", |e, j| {
        for connection in e.connections.iter().filter(|_| e.facts.is_in("deaf")) {
            let Some((place, _)) = connection.input_closed.or(connection.terminated) else { continue };
            let wrong = match (connection.terminated, connection.left_behind) {
                (None, None) => Some("no SIGTERM before the process was killed"),
                (_, Some(_)) => Some("the process left behind"),
                (Some(_), None) => None,
            };
            j.check_at(wrong.is_none(), None, vec![place], || wrong.unwrap_or_default().to_owned());
        }
    }),
    ("client-io.stdout.large-line", |e, j| completes(e, j, "large")),
];

/// Checks what a client does with a process that it starts after another one has crashed.
fn restarted(e: &Evidence<'_>, j: &mut Judgement, wrong: impl Fn(&Connection<'_>) -> Option<Option<String>>) {
    let is_crash = e.facts.is_in("crash");
    for connection in e.connections.iter().skip(1).filter(|_| is_crash) {
        let (Some(found), Some(first)) = (wrong(connection), connection.messages.first()) else { continue };
        j.check(found.is_none(), first, || found.unwrap_or_default());
    }
    j.untested("the client has not started the server again");
}
