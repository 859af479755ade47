//! Following a mock's journal as it is written: into a file, and onto stderr.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::mpsc,
    thread::JoinHandle,
};

use serde_json::Value as Json;

use crate::{
    cli::{Failure, style},
    mock::journal::{Entry, Handling},
};

/// The thread that writes down what a mock receives. It ends when the journal that feeds it is gone.
#[derive(Debug)]
pub(super) struct Follower(JoinHandle<io::Result<()>>);

/// Starts to follow; `None` if there is nobody to tell.
///
/// # Errors
/// The file cannot be opened.
pub(super) fn start(file: Option<&Path>, verbose: bool) -> Result<Option<(mpsc::Sender<Entry>, Follower)>, Failure> {
    if file.is_none() && !verbose {
        return Ok(None);
    }
    let file = file.map(open).transpose()?;
    let (sender, entries) = mpsc::channel();
    let thread = std::thread::spawn(move || follow(&entries, file, verbose));
    Ok(Some((sender, Follower(thread))))
}

impl Follower {
    /// Waits until everything is written. Everything that can still write the journal must be gone.
    ///
    /// # Errors
    /// Some entries could not be written to the file.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self.0.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Failure::cannot(format!("the journal is incomplete: {error}"))),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Requests may contain what is nobody else's business, so only the owner may read the file.
fn open(path: &Path) -> Result<File, Failure> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    file.map_err(|error| Failure::cannot(format!("cannot write the journal {}: {error}", path.display())))
}

fn follow(entries: &mpsc::Receiver<Entry>, mut file: Option<File>, verbose: bool) -> io::Result<()> {
    let mut outcome = Ok(());
    while let Ok(first) = entries.recv() {
        let (mut lines, mut shown) = (Vec::new(), String::new());
        for entry in std::iter::once(first).chain(entries.try_iter()) {
            if file.is_some() {
                append(&mut lines, &entry);
            }
            if verbose {
                shown.push_str(&describe(&entry));
            }
        }
        if let Some(Err(error)) = file.as_mut().map(|file| file.write_all(&lines)) {
            file = None;
            outcome = Err(error);
        }
        if verbose {
            style::print(&shown);
        }
    }
    outcome
}

/// One line of JSON.
fn append(lines: &mut Vec<u8>, entry: &Entry) {
    let start = lines.len();
    match serde_json::to_writer(&mut *lines, entry) {
        Ok(()) => lines.push(b'\n'),
        Err(_) => lines.truncate(start),
    }
}

/// One line for a person: when, over what, which method of what, and what was done.
fn describe(entry: &Entry) -> String {
    let request: Json = serde_json::from_slice(&entry.request).unwrap_or_default();
    let params = &request["params"];
    let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default();
    let method = request["method"].as_str().unwrap_or(if entry.request.is_empty() { "-" } else { "?" });
    let what = format!("{method} {name}");
    let colour = match &entry.handling {
        Handling::Rule(_) => style::GOOD,
        Handling::Protocol => style::DIM,
        Handling::Miss { .. } => style::DOUBTFUL,
        Handling::Refused(_) => style::BAD,
    };
    format!(
        "{dim}{:>9.3}s{dim:#} {:<5} {:<24} {colour}{}{colour:#}\n",
        entry.at.as_secs_f64(),
        entry.transport,
        style::printable(what.trim_end()),
        style::printable(&entry.handling.to_string()),
        dim = style::DIM,
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::transport::Transport;

    fn entry(request: &'static str, handling: Handling) -> Entry {
        let request = Bytes::from(request);
        Entry { number: 1, at: Duration::from_millis(12), transport: Transport::Http, request, handling }
    }

    #[test]
    fn a_request_over_several_lines_is_one_line_of_the_journal() {
        let mut lines = Vec::new();
        append(&mut lines, &entry("{\"jsonrpc\":\"2.0\",\r\n \"method\":\"a\\nb\"}", Handling::Protocol));
        append(&mut lines, &entry("not\nJSON", Handling::Refused("no".into())));
        let text = String::from_utf8(lines).expect("text");
        let parsed: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((parsed.len(), &parsed[0]["request"]["method"]), (2, &Json::from("a\nb")));
        assert_eq!(parsed[1]["text"], "not\nJSON");
    }

    #[test]
    fn a_line_names_the_method_its_object_and_the_rule() {
        let call = entry(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"e\u001b[2J"}}"#,
            Handling::Rule("tools.echo".into()),
        );
        let line = anstream::adapter::strip_str(&describe(&call)).to_string();
        assert_eq!(line, "    0.012s http  tools/call e\\u{1b}[2J    tools.echo\n");
    }
}
