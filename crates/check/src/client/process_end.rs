//! How a client has ended the processes of the mock, by what they have noted.

use std::{fs, path::Path, time::Duration};

use rehearse_protocol::{EventKind, ProcessEvent, Trace, Transport};

/// Adds to the traces over stdio the end of standard input, SIGTERM, and whether the process is left.
pub(super) fn add(traces: &mut [Trace], folder: &Path) {
    let mut files: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()).collect();
    files.sort();
    let is_process = |trace: &&mut Trace| trace.transport() == Some(Transport::Stdio);
    let of_processes: Vec<_> = traces.iter_mut().filter(is_process).collect();
    if of_processes.len() != files.len() {
        return;
    }
    for (trace, file) in of_processes.into_iter().zip(&files) {
        let text = fs::read_to_string(file).unwrap_or_default();
        let notes: Vec<_> = text.lines().filter_map(|line| line.split_once(' ')).collect();
        let time = |wanted: &str| {
            let (_, at) = notes.iter().find(|(what, _)| *what == wanted)?;
            at.parse().ok().map(Duration::from_millis)
        };
        let place = |wanted: &str| notes.iter().position(|(what, _)| *what == wanted);
        // The relay notes an end of the input after a signal only if both came together. Which was first is not known, as
        // the end of a client closes its pipes as well.
        let are_together = place("term").zip(place("eof")).is_some_and(|(term, eof)| term < eof);
        let (last, first) = (trace.events().map(|it| it.at).max().unwrap_or_default(), time("eof").or(time("term")));
        let mut push = |at: Duration, event| {
            trace.push(last + at.saturating_sub(first.unwrap_or_default()), EventKind::Process(event));
        };
        if let Some(at) = time("eof").filter(|_| !are_together) {
            push(at, ProcessEvent::InputClosed);
        }
        match time("term").filter(|_| !are_together) {
            Some(at) => push(at, ProcessEvent::Terminated),
            // It was killed, and has seen nothing.
            None if first.is_none() && time("end").is_none() => push(Duration::ZERO, ProcessEvent::Terminated),
            None => {}
        }
        if time("left").is_some() {
            push(Duration::ZERO, ProcessEvent::LeftBehind);
        }
    }
}

/// Notes which processes live after their client has ended.
pub(super) fn note_left(folder: &Path) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()).filter(|it| is_alive(it)) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::write(&file, text + "left 0\n");
    }
}

/// Whether the process whose id ends the name of the file lives.
fn is_alive(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let id = name.rsplit('-').next().and_then(|id| id.parse().ok());
    id.is_some_and(rehearse_system::process::is_alive)
}
