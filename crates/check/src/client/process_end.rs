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
        let last = trace.events().map(|it| it.at).max().unwrap_or_default();
        for (later, event) in events(&fs::read_to_string(file).unwrap_or_default()) {
            trace.push(last + later, EventKind::Process(event));
        }
    }
}

/// What a process has noted of its end, and how long after the first of it.
fn events(notes: &str) -> Vec<(Duration, ProcessEvent)> {
    let notes: Vec<_> = notes.lines().filter_map(|line| line.split_once(' ')).collect();
    let time = |wanted: &str| {
        let (_, at) = notes.iter().find(|(what, _)| *what == wanted)?;
        at.parse().ok().map(Duration::from_millis)
    };
    let place = |wanted: &str| notes.iter().position(|(what, _)| *what == wanted);
    // The relay notes an end of the input after a signal only if both came together. Which was first is not known, as the
    // end of a client closes its pipes as well.
    let are_together = place("term").zip(place("eof")).is_some_and(|(term, eof)| term < eof);
    let (closed, terminated) = (time("eof").filter(|_| !are_together), time("term").filter(|_| !are_together));
    let first = time("eof").or(time("term"));
    // It was killed, and has seen nothing.
    let is_killed = first.is_none() && time("end").is_none();
    let killed = is_killed.then_some(Duration::ZERO);
    let left = time("left").map(|_| Duration::ZERO);
    let all = [
        (closed, ProcessEvent::InputClosed),
        (terminated.or(killed), ProcessEvent::Terminated),
        (left, ProcessEvent::LeftBehind),
    ];
    let since = |at: Duration| at.saturating_sub(first.unwrap_or_default());
    all.into_iter().filter_map(|(at, event)| Some((since(at?), event))).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(notes: &str) -> Vec<ProcessEvent> {
        events(notes).into_iter().map(|(_, event)| event).collect()
    }

    #[test]
    fn of_an_end_of_input_and_a_signal_that_come_together_the_first_is_not_known() {
        assert_eq!(ended("term 100\neof 100\nend 101\n"), []);
        let both = [ProcessEvent::InputClosed, ProcessEvent::Terminated];
        assert_eq!(ended("eof 100\nterm 100\nend 101\n"), both);
        assert_eq!(ended("eof 100\nterm 2100\nend 2101\n"), both);
        assert_eq!(ended("term 100\nend 101\n"), [ProcessEvent::Terminated]);
        assert_eq!(ended(""), [ProcessEvent::Terminated]);
        assert_eq!(
            events("eof 100\nterm 2100\nleft 0\n")[1..],
            [(Duration::from_secs(2), ProcessEvent::Terminated), (Duration::ZERO, ProcessEvent::LeftBehind),]
        );
    }
}
