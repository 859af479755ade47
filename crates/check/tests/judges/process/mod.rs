//! A process around a pipe: the events that stdio has and a pipe inside a program has not, and what a faulty process does.

use std::time::Duration;

use bytes::Bytes;
use rehearse_protocol::{Closed, Direction, Event, EventKind, Frame, ProcessEvent, Trace};
use serde::Deserialize;
use serde_json::Value;

/// What a faulty process does, in every connection.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProcessFault {
    /// A line on standard output before the first request.
    start: Option<String>,
    /// A line on standard output after the first message of the server.
    noise: Option<String>,
    /// A line on standard output after the end of standard input.
    end: Option<String>,
    /// A line on standard error.
    stderr: Option<String>,
    /// The method whose answers come only after the end of standard input.
    late: Option<String>,
    /// Milliseconds from the end of standard input to the exit.
    exit_after: u64,
    /// The exit code.
    exit_code: i32,
    /// It has to be stopped by SIGTERM, so many milliseconds before its exit.
    terminated: Option<u64>,
    /// It exits late only if a request is open at the end of its input.
    during_call: bool,
    /// It says nothing.
    silent: bool,
    /// Its first message begins with a byte order mark.
    mark: bool,
    /// It leaves processes behind.
    left_behind: bool,
}

/// The trace of a process that behaves as the server at the other end of a pipe, with a fault.
pub(crate) fn process(trace: &Trace, fault: &ProcessFault) -> Trace {
    let mut out = Trace::default();
    let mut at = trace.events().next().map(|first| first.at).unwrap_or_default();
    let line = |at: Duration, text: &str| {
        let bytes = Bytes::from(text.to_owned());
        EventKind::Frame(Frame::new(Direction::ServerToClient, at, bytes))
    };
    let (mut late_ids, mut late, mut is_noisy) = (Vec::new(), Vec::new(), false);
    out.push(at, EventKind::Process(ProcessEvent::Started { pid: 1 }));
    if let Some(start) = &fault.start {
        out.push(at, line(at, start));
    }
    for event in trace.events().filter(|event| !is_of_process(event)) {
        at = event.at;
        if let (Some(method), Some(frame)) = (&fault.late, event.frame()) {
            let message: Value = serde_json::from_slice(&frame.bytes).unwrap_or_default();
            let id = message["id"].clone();
            if message["method"] == method.as_str() && !id.is_null() {
                late_ids.push(id);
            } else if frame.direction == Direction::ServerToClient && late_ids.contains(&id) {
                late.push(event.clone());
                continue;
            }
        }
        let is_answer = event.frame().is_some_and(|frame| frame.direction == Direction::ServerToClient);
        if fault.silent && is_answer {
            continue;
        }
        match event.frame().filter(|_| fault.mark && is_answer && !is_noisy) {
            Some(frame) => {
                is_noisy = true;
                out.push(at, line(at, &format!("\u{feff}{}", String::from_utf8_lossy(&frame.bytes))));
            }
            None => out.push_event(event.clone()),
        }
        if let (Some(noise), true, false) = (&fault.noise, is_answer, is_noisy) {
            is_noisy = true;
            out.push(at, line(at, noise));
        }
    }
    if let Some(stderr) = &fault.stderr {
        out.push(at, EventKind::Stderr(stderr.clone().into()));
    }
    out.push(at, EventKind::Process(ProcessEvent::InputClosed));
    late.into_iter().for_each(|event| out.push_event(event));
    if let Some(end) = &fault.end {
        out.push(at, line(at, end));
    }
    out.push(at, EventKind::Closed(Closed::by_server("the server closed its standard output")));
    let is_busy = |event: &Event| matches!(&event.kind, EventKind::Case(case) if **case == *"shutdown/during-call");
    let is_late = !fault.during_call || trace.events().any(is_busy);
    let exit = at + Duration::from_millis(if is_late { fault.exit_after } else { 0 });
    if let Some(before) = fault.terminated.filter(|_| is_late) {
        out.push(exit - Duration::from_millis(before), EventKind::Process(ProcessEvent::Terminated));
    }
    if fault.left_behind {
        out.push(exit, EventKind::Process(ProcessEvent::LeftBehind));
    }
    out.push(exit, EventKind::Process(ProcessEvent::Exited { code: Some(fault.exit_code) }));
    out
}

/// Whether an event is about the process, or the end of the connection.
fn is_of_process(event: &Event) -> bool {
    matches!(event.kind, EventKind::Process(_) | EventKind::Closed(_))
}
