//! Writes the journal of a mock to a file and to stderr.

use std::{
    fmt,
    fs::File,
    io::{self, Write},
    path::Path,
    sync::mpsc,
    time::Duration,
};

use serde_json::Value as Json;

use super::console::Console;
use crate::cli::{Failure, background::BackgroundThread, style};
use rehearse_document::text::shortened;
use rehearse_mock::journal::{Handling, JournalEvent};
use rehearse_system::{
    private,
    special_file::{StandardStream, is_device, standard_stream},
};

/// The maximum length of a printed name or reason, in characters.
const SHOWN: usize = 300;
/// How many events may wait to be written. If there are more, the mock waits.
const CAPACITY: usize = 256;
/// The names of standard output.
const STDOUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// The thread that writes the journal. It ends with the sender of entries.
#[derive(Debug)]
pub(super) struct JournalWriter(BackgroundThread<io::Result<()>>);

/// Starts the thread; `None` without a file and a console.
pub(super) fn start(
    file: Option<File>,
    console: Option<Console>,
) -> Option<(mpsc::SyncSender<JournalEvent>, JournalWriter)> {
    if file.is_none() && console.is_none() {
        return None;
    }
    let (sender, entries) = mpsc::sync_channel(CAPACITY);
    Some((sender, JournalWriter(BackgroundThread::start(move || write_entries(&entries, file, console.as_ref())))))
}

impl JournalWriter {
    /// Waits until all entries are written, until the timeout, or until the next signal. The sender of entries must be
    /// dropped.
    ///
    /// # Errors
    /// Some entries could not be written to the file.
    pub(super) fn finish(self, timeout: Duration, file: Option<&Path>) -> Result<(), Failure> {
        let name = file.map(|file| format!(" {}", file.display())).unwrap_or_default();
        let incomplete = |why: &dyn fmt::Display| Failure::cannot(format!("the journal{name} is incomplete: {why}"));
        match self.0.join_timeout(timeout) {
            Some(outcome) => outcome.map_err(|error| incomplete(&error)),
            None => Err(incomplete(&"timeout")),
        }
    }
}

/// Opens the file of a journal. Only its owner can read it, because requests may contain secrets.
///
/// # Errors
/// It cannot be written, is a pipe, or is standard output although `is_stdout_used` by the protocol.
pub(super) fn open(path: &Path, is_stdout_used: bool) -> Result<File, Failure> {
    let cannot =
        |why: &dyn fmt::Display| Failure::cannot(format!("cannot write the journal {}: {why}", path.display()));
    let found = std::fs::metadata(path).ok();
    let stdout = standard_stream(StandardStream::Output, path);
    if is_stdout_used && (stdout.is_some() || STDOUT.iter().any(|name| path == Path::new(name))) {
        let why = "the journal cannot go to standard output, which carries the protocol (use a file or --listen)";
        return Err(Failure::Usage(why.into()));
    }
    if let Some(stream) = stdout.or_else(|| standard_stream(StandardStream::Error, path)) {
        return Ok(stream);
    }
    if found.is_some_and(|found| !found.is_file() && !is_device(&found)) {
        return Err(cannot(&"it is not a regular file"));
    }
    private::append(path).map_err(|error| cannot(&error))
}

fn write_entries(
    entries: &mpsc::Receiver<JournalEvent>,
    mut file: Option<File>,
    console: Option<&Console>,
) -> io::Result<()> {
    let mut outcome = Ok(());
    while let Ok(first) = entries.recv() {
        let mut lines = Vec::new();
        for event in std::iter::once(first).chain(entries.try_iter().take(CAPACITY)) {
            if file.is_some() {
                append(&mut lines, &event);
            }
            if let Some(console) = console {
                console.print(describe(&event));
            }
        }
        if let Some(Err(error)) = file.as_mut().map(|file| file.write_all(&lines)) {
            file = None;
            outcome = Err(error);
        }
    }
    outcome
}

/// One line of JSON.
fn append(lines: &mut Vec<u8>, event: &JournalEvent) {
    let start = lines.len();
    match serde_json::to_writer(&mut *lines, event) {
        Ok(()) => lines.push(b'\n'),
        Err(_) => lines.truncate(start),
    }
}

/// One line with the time, the transport, the method, its object, what handled it, and how it ended if that is not
/// plain.
fn describe(event: &JournalEvent) -> String {
    let (entry, at) = match event {
        JournalEvent::Received(entry) => (entry, entry.at),
        JournalEvent::Answered(entry, at) => (entry, *at),
        JournalEvent::Violated(number, violation) => {
            let number = number.map(|number| format!("number {number}: ")).unwrap_or_default();
            return format!("{bad}violation:{bad:#} {number}{}\n", shown(&violation.to_string()), bad = style::BAD);
        }
    };
    let request: Json = serde_json::from_slice(&entry.request).unwrap_or_default();
    let params = &request["params"];
    let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default();
    let unnamed = entry.http.as_deref().unwrap_or(if entry.request.is_empty() { "-" } else { "?" });
    let method = request["method"].as_str().unwrap_or(unnamed);
    let what = format!("{method} {name}");
    let colour = match &entry.handling {
        Handling::Rule(_) => style::GOOD,
        Handling::Protocol => style::DIM,
        Handling::Unmatched { .. } => style::DOUBTFUL,
        Handling::Refused { .. } => style::BAD,
    };
    let (bad, faults) = (style::BAD, entry.faults.join(", "));
    let struck = if faults.is_empty() { String::new() } else { format!(", {bad}fault {faults}{bad:#}") };
    let end = match (entry.answer(), event) {
        (Some(answer), JournalEvent::Answered(..)) => format!(", {}", answer.as_str()),
        _ => String::new(),
    };
    let reason = entry.reason().map(|reason| format!(", {bad}{}{bad:#}", shown(reason))).unwrap_or_default();
    format!(
        "{dim}{:>9.3}s{dim:#} {:<5} {:<24} {colour}{}{colour:#}{struck}{end}{reason}\n",
        at.as_secs_f64(),
        entry.transport,
        shown(what.trim_end()),
        shown(&entry.handling.to_string()),
        dim = style::DIM,
    )
}

fn shown(text: &str) -> String {
    style::printable(&shortened(text, SHOWN)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearse_mock::journal::{Entry, Journal, Refusal};
    use rehearse_protocol::Transport;

    fn entry(request: &str, handling: Handling) -> Entry {
        let journal = Journal::default();
        journal.record(Duration::from_millis(12), Transport::Http, request.as_bytes(), handling);
        journal.entries().remove(0)
    }

    #[test]
    fn a_request_over_several_lines_is_one_line_of_the_journal() {
        let mut lines = Vec::new();
        let valid = entry("{\"jsonrpc\":\"2.0\",\r\n \"method\":\"a\\nb\"}", Handling::Protocol);
        append(&mut lines, &JournalEvent::Received(valid));
        let broken = entry("not\nJSON", Handling::refused(Refusal::Malformed, "no"));
        append(&mut lines, &JournalEvent::Received(broken));
        let text = String::from_utf8(lines).expect("text");
        let parsed: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((parsed.len(), &parsed[0]["request"]["method"]), (2, &Json::from("a\nb")));
        assert_eq!(parsed[1]["text"], "not\nJSON");
    }

    #[test]
    fn a_line_stays_short_for_any_client_input() {
        let why = "é".repeat(100_000);
        let refused = entry(r#"{"method":"m"}"#, Handling::refused(Refusal::Malformed, why));
        let line = describe(&JournalEvent::Received(refused));
        assert!(line.chars().count() < 2 * SHOWN && line.contains("é…"), "{line}");
    }

    #[test]
    fn a_line_names_the_method_its_object_and_the_rule() {
        let mut call = entry(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"e\u001b[2J"}}"#,
            Handling::Rule("tools.echo".into()),
        );
        let text = |event: &JournalEvent| anstream::adapter::strip_str(&describe(event)).to_string();
        let line = text(&JournalEvent::Received(call.clone()));
        assert_eq!(line, "    0.012s http  tools/call e\\u{1b}[2J    tools.echo\n");
        call.faults = vec!["delay", "status"];
        let line = text(&JournalEvent::Received(call.clone()));
        assert!(line.ends_with("tools.echo, fault delay, status\n"), "{line}");
        (call.http, call.request) = (Some("DELETE /mcp".into()), Default::default());
        let line = text(&JournalEvent::Received(call));
        assert!(line.contains(" DELETE /mcp "), "{line}");
    }
}
