//! Standard input and output.

use std::{str, time::Duration};

use rehearse_document::text::quoted;
use rehearse_protocol::{Direction, Event, EventKind, ProcessEvent, Trace, Transport};
use serde_json::json;

use super::Judge;
use super::common::{
    NEVER_ANSWERED, NOT_DUE, cheap_request, connection, is_broken, is_case_of, is_due, is_unanswered_control,
    is_usually_answered, survives,
};
use super::query::Query;
use crate::{
    Call, Case, CaseGroup, Connection, Evidence, Judgement, Kind, Level, Material, Message, is_header, without_mark,
};

/// How long a server may take to exit, unless it takes long to start.
const EXIT: Duration = Duration::from_secs(2);

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("io.line.no-embedded-newline", no_newline),
    ("io.line.no-header", |e, j| {
        let lines = e.received().filter(|it| !it.is_in_batch);
        lines.must(j, |line| !is_header(line.bytes), |line| format!("the line {}", text(line)));
    }),
    ("io.stdout.only-messages", |e, j| lines(e, j, |_, line| !is_header(line.bytes))),
    ("io.stdout.from-start", |e, j| lines(e, j, is_before_requests)),
    ("io.stdout.at-exit", |e, j| lines(e, j, is_after_end)),
    ("io.stdout.utf8", |e, j| {
        let lines = e.received().filter(|it| !it.is_in_batch);
        lines.must(j, |line| str::from_utf8(line.bytes).is_ok(), |_| "bytes that are not UTF-8");
    }),
    ("io.stderr.utf8", |e, j| {
        for (place, line) in e.connections.iter().flat_map(|connection| &connection.stderr) {
            let is_text = !String::from_utf8_lossy(line).contains('\u{fffd}');
            j.check_at(is_text, None, vec![*place], || "bytes that are not UTF-8");
        }
    }),
    ("io.exit.on-stdin-close", exits),
    ("io.exit.on-stdin-close-legacy", exits),
    ("io.exit.status-zero", |e, j| {
        for connection in &e.connections {
            let (Some((place, _)), Some((_, code))) = (connection.input_closed, connection.exited) else { continue };
            j.check_at(code == Some(0), None, vec![place], || match code {
                Some(code) => format!("the exit code {code}"),
                None => "an end by a signal".to_owned(),
            });
        }
    }),
    ("io.exit.on-sigterm", |e, j| {
        let limit = exit_limit(e);
        for connection in &e.connections {
            let (Some((place, sent)), Some((exited, _))) = (connection.terminated, connection.exited) else { continue };
            let took = exited.saturating_sub(sent);
            if took > EXIT && took <= limit {
                j.untested(SLOW);
                continue;
            }
            j.check_at(took <= limit, None, vec![place], || format!("the end of the process {took:.1?} after SIGTERM"));
        }
    }),
    ("io.exit.during-call", |e, j| {
        // Only of a server that exits otherwise.
        let limit = exit_limit(e);
        let is_busy = |it: &&Connection<'_>| it.calls().any(|call| call.request.case == Some(BUSY));
        let mut others = e.connections.iter().filter(|it| !is_busy(it)).filter_map(exit_time);
        if !others.any(|took| took <= limit) {
            return j.untested("the server does not exit in time without a request either");
        }
        for connection in e.connections.iter().filter(is_busy) {
            exit(connection, j, limit);
        }
    }),
    ("io.exit.no-orphans", |e, j| {
        for connection in e.connections.iter().filter(|it| it.exited.is_some() && it.terminated.is_none()) {
            let place = connection.left_behind;
            let found = || "processes that the server had started and that still ran";
            j.check_at(place.is_none(), None, place.into_iter().collect(), found);
        }
    }),
    ("io.crash.none", |e, j| {
        // A server may end by itself, with the exit code 0; else its end is a crash, worse after a valid message.
        let is_alone = runs_alone(e);
        for connection in e.connections.iter().filter(|connection| connection.started.is_some()) {
            let calls: Vec<_> = connection.calls().collect();
            let end = connection.closed.map(|(place, ..)| place);
            let is_before = |call: &&Call<'_>| end.is_none_or(|end| call.request.place < end);
            let Some(last) = calls.iter().filter(is_before).rfind(|call| !is_unanswered_control(call)) else {
                continue;
            };
            let code = connection.exited.map(|(_, code)| code);
            let exit = match code {
                Some(Some(code)) => format!(" with exit code {code}"),
                Some(None) => " by a signal".to_owned(),
                None => String::new(),
            };
            let stderr = connection.stderr.last().map(|(place, _)| *place);
            let places = [last.request.place].into_iter().chain(connection.cut).chain(stderr).collect();
            let has_ended = connection.ended_by_server();
            let found = || format!("the end of the process{exit} after this message");
            j.check_at(!has_ended, last.request.case, places, found);
            if has_ended && is_first_message(e, connection) && (last.request.case.is_none() || is_alone) {
                // Perhaps only one process can run at a time, and another one does.
                j.at_level(Level::Info);
                continue;
            }
            let is_open = last.request.kind == Kind::Request && last.response.is_none();
            j.at_level_if(has_ended && !is_broken(last) && (is_open || code != Some(Some(0))), Level::Must);
        }
    }),
    ("io.stdout.flush", |e, j| {
        // An answer that comes only when the input has ended was in a buffer.
        for connection in e.connections.iter().filter(|it| it.has_answered()) {
            // A subscription has no answer until it ends, and a request that is cancelled needs none.
            let is_short = |call: &Call<'_>| {
                call.request.kind == Kind::Request
                    && call.request.case != Some(BUSY)
                    && call.method() != "subscriptions/listen"
                    && !is_case_of(call, "cancel-inflight")
            };
            for call in connection.calls().filter(is_short) {
                let Some(response) = call.response else { continue };
                let after = connection.input_closed.filter(|(closed, _)| response.place > *closed);
                // A slow server may have been busy until then.
                if after.is_some_and(|(_, at)| at.saturating_sub(call.request.time) < e.facts.patience) {
                    j.untested(NOT_DUE);
                    continue;
                }
                j.check_answer(after.is_none(), &call, || "the answer only after the end of standard input");
            }
        }
    }),
    ("io.stdin.crlf", |e, j| answered(e, j, "stdin/crlf")),
    ("io.stdin.blank-line", |e, j| answered(e, j, "stdin/after-blank")),
    ("io.stdin.split-write", |e, j| answered(e, j, "stdin/split")),
    ("io.stdin.many-in-one-write", |e, j| answered(e, j, "stdin/joined")),
    ("io.stdin.large-line", |e, j| survives(e, j, "malformed/large")),
    ("io.env.secrets-not-echoed", |e, j| {
        let secrets = &e.facts.secrets;
        if secrets.is_empty() {
            return j.untested("no variable for the server is named like a secret");
        }
        let has_secret = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            secrets.iter().any(|secret| text.contains(secret.as_str()))
        };
        for connection in &e.connections {
            let messages = connection.received().filter(|it| !it.is_in_batch);
            let lines = messages.map(|it| (it.place, it.bytes)).chain(connection.stderr.iter().copied());
            for (place, bytes) in lines {
                j.check_at(!has_secret(bytes), None, vec![place], || "a secret of its environment");
            }
        }
    }),
    ("io.modern.no-requests", |e, j| {
        let messages = e.received();
        messages.must(j, |message| message.kind != Kind::Request, |message| format!("the request {}", text(message)));
    }),
];

/// The request that is not answered yet when standard input ends.
const BUSY: &str = "shutdown/during-call";

pub(super) fn cases(material: &Material) -> Vec<Case> {
    let is_pipe = matches!(material.transport, Some(Transport::Stdio | Transport::Memory));
    if !is_pipe {
        return Vec::new();
    }
    let cheap = cheap_request(material);
    let body = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": cheap.0, "params": cheap.1 }).to_string();
    vec![
        Case::bytes("stdin/crlf", CaseGroup::Input, format!("{}\r", body("crlf"))),
        Case::bytes("stdin/blank", CaseGroup::Input, "").unanswered(),
        Case::bytes("stdin/after-blank", CaseGroup::Input, body("blank")),
    ]
}

fn is_before_requests(connection: &Connection<'_>, line: &Message<'_>) -> bool {
    connection.sent().next().is_none_or(|first| line.place < first.place)
}

fn is_after_end(connection: &Connection<'_>, line: &Message<'_>) -> bool {
    connection.input_closed.is_some_and(|(place, _)| line.place > place)
}

/// Whether a line is the beginning of a JSON value that goes on in the next lines.
pub(super) fn is_part(text: &str) -> bool {
    matches!(text.trim(), "{" | "[" | "}" | "]" | "}," | "],") || text.trim_start().starts_with("\"jsonrpc\"")
}

pub(super) fn text(message: &Message<'_>) -> String {
    quoted(&String::from_utf8_lossy(message.bytes), 60)
}

pub(super) fn no_newline(e: &Evidence<'_>, j: &mut Judgement) {
    for line in e.own().filter(|it| !it.is_in_batch) {
        let is_part = line.value.is_null() && str::from_utf8(line.bytes).is_ok_and(is_part);
        j.check(!is_part, line, || format!("the line {}", text(line)));
    }
}

fn lines(e: &Evidence<'_>, j: &mut Judgement, counts: impl Fn(&Connection<'_>, &Message<'_>) -> bool) {
    for connection in &e.connections {
        if connection.closed.is_none() && connection.messages.is_empty() {
            continue;
        }
        let mut is_clean = true;
        for line in connection.received().filter(|it| !it.is_in_batch) {
            let is_message = line.kind != Kind::Other || str::from_utf8(line.bytes).is_ok_and(is_part);
            let is_marked = without_mark(line.bytes).len() < line.bytes.len();
            if !counts(connection, line) || (is_message && !is_marked) {
                continue;
            }
            is_clean = false;
            let is_blank = line.bytes.iter().all(u8::is_ascii_whitespace);
            j.check(false, line, || match (is_blank, is_marked && is_message) {
                (true, _) => "an empty line".to_owned(),
                (_, true) => format!("a byte order mark before the message {}", text(line)),
                _ => format!("the line {}", text(line)),
            });
            // It ends no message.
            j.at_level_if(is_blank, Level::Derived);
        }
        if let (true, Some(first)) = (is_clean, connection.messages.first()) {
            j.check(true, first, String::new);
        }
    }
}

fn exits(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in &e.connections {
        exit(connection, j, exit_limit(e));
    }
}

/// Whether a process got one message and has answered nothing, while another one answers.
fn is_first_message(e: &Evidence<'_>, connection: &Connection<'_>) -> bool {
    connection.calls().count() == 1 && !connection.has_answered() && is_answered_elsewhere(e)
}

/// Whether perhaps only one process can run at a time: one has ended at a plain handshake, while another one answered.
fn runs_alone(e: &Evidence<'_>) -> bool {
    let is_plain = |it: &Connection<'_>| it.calls().all(|call| call.request.case.is_none());
    e.connections.iter().any(|it| it.ended_by_server() && is_plain(it) && is_first_message(e, it))
}

/// Why an end is not judged that is late, and not later than the starts.
const SLOW: &str = "the server took long to end; it also took long to start, so the machine may be busy";

/// The machine may be busy: a process may take as long to exit as five of its starts.
fn exit_limit(evidence: &Evidence<'_>) -> Duration {
    let starts = evidence.connections.iter().filter(|it| it.has_answered());
    let starts = starts.filter_map(|it| it.first_word()?.time.checked_sub(it.started?));
    let others = evidence.facts.others.iter().filter_map(|(_, trace)| start(trace));
    EXIT.max(starts.chain(others).max().unwrap_or_default() * 5)
}

/// How long the process of a trace took to say something.
fn start(trace: &Trace) -> Option<Duration> {
    let is_start = |event: &&Event| matches!(event.kind, EventKind::Process(ProcessEvent::Started { .. }));
    let is_open = |event: &&Event| !matches!(event.kind, EventKind::Process(ProcessEvent::InputClosed));
    let events = || trace.events().take_while(is_open);
    let first = events().filter_map(Event::frame).find(|frame| frame.direction == Direction::ServerToClient)?;
    first.at.checked_sub(events().find(is_start)?.at)
}

fn exit_time(connection: &Connection<'_>) -> Option<Duration> {
    Some(connection.exited?.0.saturating_sub(connection.input_closed?.1))
}

fn exit(connection: &Connection<'_>, j: &mut Judgement, limit: Duration) {
    // A process that is not up yet does not see the end of its standard input.
    let Some(took) = exit_time(connection).filter(|_| connection.has_answered()) else { return };
    let closed = connection.input_closed.map(|(_, at)| at).unwrap_or_default();
    if connection.terminated.is_some_and(|(_, at)| at.saturating_sub(closed) < limit) {
        return j.untested("the server was stopped before it had taken longer than its starts take");
    }
    let last = connection.messages.last().map(|it| it.place);
    let holds = took <= limit;
    if holds && took > EXIT {
        return j.untested(SLOW);
    }
    j.check_at(holds, None, last.into_iter().collect(), || match connection.terminated {
        Some(_) => "that it had to be stopped by a signal".to_owned(),
        None => format!("the end of the process after {took:.1?}"),
    });
}

/// Checks that each request of a case gets a response.
fn answered(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for call in e.case(case) {
        let connection = connection(e, call.request.place);
        if call.response.is_some() {
            j.check_call(true, &call);
        } else if !connection.is_some_and(|it| is_due(e, it, &call)) {
            j.untested(NOT_DUE);
        } else if is_usually_answered(e, &call) {
            j.check_call(false, &call);
        } else {
            j.untested(NEVER_ANSWERED);
        }
    }
}

/// Whether another process of the server has answered, in this version or another one.
fn is_answered_elsewhere(e: &Evidence<'_>) -> bool {
    let has_answer = |trace: &Trace| trace.frames().any(|frame| frame.direction == Direction::ServerToClient);
    e.connections.iter().any(Connection::has_answered) || e.facts.others.iter().any(|(_, trace)| has_answer(trace))
}

#[cfg(test)]
mod tests {
    use rehearse_protocol::{Closed, Version};

    use super::*;
    use crate::{Facts, checks};

    /// The trace of a process that answers the handshake, or ends.
    fn process(answers: bool) -> Trace {
        let mut trace = Trace::default();
        let mut push = |kind| trace.push(Duration::ZERO, kind);
        let frame = |direction, text: &'static str| {
            EventKind::Frame(rehearse_protocol::Frame::new(direction, Duration::ZERO, text.into()))
        };
        push(EventKind::Process(ProcessEvent::Started { pid: 1 }));
        push(frame(Direction::ClientToServer, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#));
        match answers {
            true => push(frame(Direction::ServerToClient, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)),
            false => {
                push(EventKind::Closed(Closed::by_server("the process has ended")));
                push(EventKind::Process(ProcessEvent::Exited { code: Some(1) }));
            }
        }
        trace
    }

    #[test]
    fn an_answer_after_the_end_of_input_shows_a_buffer_only_if_there_was_time_for_it() {
        let is_violated = |closed| {
            let mut trace = process(true);
            let frame = |direction, text: &'static str| {
                EventKind::Frame(rehearse_protocol::Frame::new(direction, Duration::ZERO, text.into()))
            };
            let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
            trace.push(Duration::ZERO, frame(Direction::ClientToServer, list));
            trace.push(Duration::from_secs(closed), EventKind::Process(ProcessEvent::InputClosed));
            let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#;
            trace.push(Duration::from_secs(closed), frame(Direction::ServerToClient, answer));
            let facts = Facts { patience: Duration::from_secs(25), ..Facts::default() };
            let evidence = Evidence::new(&[&trace], Version::V2025_11_25, Transport::Stdio, facts);
            let check = checks().iter().find(|check| check.id == "io.stdout.flush").expect("the check");
            !check.judge(&evidence).judgement.violations.is_empty()
        };
        assert!(is_violated(30) && !is_violated(1));
    }

    #[test]
    fn a_process_may_take_as_long_to_exit_as_five_starts_of_any_version() {
        let is_violated = |slow_start: Option<u64>| {
            let mut trace = process(true);
            trace.push(Duration::from_secs(1), EventKind::Process(ProcessEvent::InputClosed));
            trace.push(Duration::from_secs(9), EventKind::Process(ProcessEvent::Exited { code: Some(0) }));
            let other = slow_start.map(|seconds| {
                let mut other = Trace::default();
                other.push(Duration::ZERO, EventKind::Process(ProcessEvent::Started { pid: 2 }));
                other.push_frame(Duration::from_secs(seconds), Direction::ServerToClient, "{}".into());
                (Version::LATEST, other)
            });
            let facts = Facts { others: other.into_iter().collect(), ..Facts::default() };
            let evidence = Evidence::new(&[&trace], Version::V2025_11_25, Transport::Stdio, facts);
            let check = checks().iter().find(|check| check.id == "io.exit.on-stdin-close-legacy").expect("the check");
            !check.judge(&evidence).judgement.violations.is_empty()
        };
        assert!(is_violated(None) && is_violated(Some(1)) && !is_violated(Some(2)));
    }

    #[test]
    fn a_process_that_ends_at_once_beside_another_one_is_information() {
        let levels = |traces: &[Trace]| {
            let traces: Vec<_> = traces.iter().collect();
            let evidence = Evidence::new(&traces, Version::V2025_11_25, Transport::Stdio, Facts::default());
            let check = checks().iter().find(|check| check.id == "io.crash.none").expect("the check");
            check.judge(&evidence).judgement.violations.iter().map(|it| it.level).collect::<Vec<_>>()
        };
        assert_eq!(levels(&[process(false), process(true)]), [Some(Level::Info)]);
        assert_eq!(levels(&[process(false)]), [Some(Level::Must)]);
        // A message of a probe says no more, if a plain handshake ends in the same way.
        let mut probed = Trace::default();
        probed.push(Duration::ZERO, EventKind::Case("quiet-window/initialize".into()));
        process(false).events().for_each(|event| probed.push(event.at, event.kind.clone()));
        assert_eq!(levels(&[probed.clone(), process(true)]), [Some(Level::Must)]);
        assert_eq!(levels(&[probed, process(false), process(true)]), [Some(Level::Info); 2]);
    }
}
