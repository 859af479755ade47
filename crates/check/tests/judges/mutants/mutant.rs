//! One change of a trace, as a faulty server would have made it.

use std::{fs, path::Path, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use rehearse_conformance::{Check, CheckVerdict, EventRef, Evidence};
use rehearse_protocol::{Closed, ClosedHow, Direction, Event, EventKind, Frame, Trace, Transport, Version};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::bases::Base;
use crate::process::ProcessFault;

/// One change of a trace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    /// The check that must report it.
    pub(crate) check: String,
    /// The method or the case whose answer is changed, or several with spaces between them; `notification:METHOD` or `request:METHOD` for a message of the
    /// server itself, `GET` or `POST` for the HTTP requests of normal traffic.
    #[serde(default)]
    pub(crate) on: String,
    /// What the process does, on stdio, in place of a changed answer.
    pub(crate) process: Option<ProcessFault>,
    pub(crate) version: Option<Version>,
    pub(crate) transport: Option<Transport>,
    /// Values to set in the answer, by JSON pointer.
    #[serde(default)]
    pub(crate) set: Map<String, Value>,
    /// Members to remove from the answer.
    #[serde(default)]
    pub(crate) remove: Vec<String>,
    /// A whole answer; its id is that of the request unless it has one.
    pub(crate) answer: Option<Value>,
    /// Bytes in place of the answer, with `$ID` for its id; with `close`, those before the end.
    pub(crate) raw: Option<String>,
    /// Bytes that are not UTF-8 at the end of the answer.
    #[serde(default)]
    pub(crate) not_utf8: bool,
    pub(crate) status: Option<u16>,
    #[serde(default)]
    pub(crate) header: Map<String, Value>,
    /// No answer at all; of a GET, an empty stream.
    #[serde(default)]
    pub(crate) drop: bool,
    /// A message of the server before the answer.
    pub(crate) before: Option<Value>,
    /// A message of the server after the answer.
    pub(crate) after: Option<Value>,
    /// The server ends the connection like this after the request.
    pub(crate) close: Option<ClosedHow>,
    /// The event stream of the answer stays open.
    #[serde(default)]
    pub(crate) open: bool,
    /// Only the first answer is changed.
    #[serde(default)]
    pub(crate) once: bool,
    /// Only the last answer is changed.
    #[serde(default)]
    pub(crate) last: bool,
    /// The event stream of the answer ends after it.
    #[serde(default)]
    pub(crate) end: bool,
    /// Only notifications with these values are changed, by JSON pointer.
    #[serde(default)]
    pub(crate) at: Map<String, Value>,
    /// Bytes in the body of the answer's event stream.
    pub(crate) body: Option<String>,
    /// A text in the bodies of the answer, and another in its place.
    pub(crate) replace: Option<(String, String)>,
    /// How the end of the connection is seen.
    pub(crate) closed: Option<ClosedHow>,
    /// The whole body of a response that is not a message.
    pub(crate) document: Option<Value>,
    /// Checks that necessarily report it as well.
    #[serde(default)]
    pub(crate) also: Vec<String>,
    /// The verdict on the check.
    pub(crate) verdict: Option<CheckVerdict>,
    /// The specification allows it: the check must not report it.
    #[serde(default)]
    pub(crate) allowed: bool,
}

impl Mutant {
    /// Whether a check judges it in a base.
    pub(crate) fn fits(&self, check: &Check, base: &Base) -> bool {
        self.version.is_none_or(|it| it == base.run.version)
            && self.transport.is_none_or(|it| it == base.transport)
            && check.levels.contains_key(&base.run.version)
            && check.transports.contains(&base.transport)
    }
}

/// Where the answers are that a mutant changes: the request, the answer, the head of the HTTP response.
pub(crate) fn targets(mutant: &Mutant, evidence: &Evidence<'_>) -> Vec<(EventRef, Option<EventRef>, Option<EventRef>)> {
    let mut found: Vec<_> = match mutant.on.split_once(':') {
        Some((kind, method)) => evidence
            .received()
            .filter(|it| it.method() == Some(method) && it.id().is_some() == (kind == "request"))
            .filter(|it| mutant.at.iter().all(|(pointer, value)| it.at(pointer) == value))
            .map(|it| (it.place, Some(it.place), None))
            .collect(),
        None if matches!(mutant.on.as_str(), "GET" | "POST") => {
            let exchanges = evidence.exchanges().map(|(_, http)| http);
            let exchanges = exchanges.filter(|http| http.method == mutant.on && http.case.is_none());
            exchanges.map(|http| (http.request, None, http.response)).collect()
        }
        None => {
            let is_one = |name: &str, case: &str| case == name || case.starts_with(&format!("{name}/"));
            let is_named = |call: &rehearse_conformance::Call<'_>| match call.request.case {
                _ if mutant.on == "*" => true,
                Some(case) => mutant.on.split(' ').any(|name| is_one(name, case)),
                None => mutant.on.split(' ').any(|name| name == call.method()),
            };
            let calls = evidence.calls().filter(is_named);
            let mut places: Vec<_> = calls
                .map(|call| {
                    let head = call.http.and_then(|http| http.response);
                    (call.request.place, call.response.map(|it| it.place), head)
                })
                .collect();
            let exchanges = mutant.on.split(' ').flat_map(|name| evidence.http_case(name));
            let exchanges = exchanges
                .filter(|(connection, http)| http.messages.iter().all(|it| connection.messages[*it].is_from_server()));
            places.extend(exchanges.map(|(_, http)| (http.request, None, http.response)));
            places
        }
    };
    if mutant.once {
        found.truncate(1);
    }
    if mutant.last {
        found.drain(..found.len().saturating_sub(1));
    }
    found
}

fn frame(event: &Event, bytes: Bytes) -> Event {
    let kind = EventKind::Frame(Frame::new(Direction::ServerToClient, event.at, bytes));
    Event { at: event.at, exchange: event.exchange, kind }
}

/// Applies a mutant to the traces.
pub(crate) fn mutate(
    mutant: &Mutant,
    traces: &[Trace],
    targets: &[(EventRef, Option<EventRef>, Option<EventRef>)],
) -> Vec<Trace> {
    let mut mutated = Vec::new();
    for (number, trace) in traces.iter().enumerate() {
        let mut out = Trace::default();
        let mut is_closed = false;
        for (event, it) in trace.since(0) {
            let place = EventRef { connection: number, event };
            if is_closed {
                continue;
            }
            let is_end = matches!(it.kind, EventKind::HttpEnd { .. });
            let ends = |(request, ..): &&(EventRef, Option<EventRef>, Option<EventRef>)| {
                let request = trace.since(request.event).next();
                request.is_some_and(|(_, request)| request.exchange == it.exchange)
            };
            if mutant.open && is_end && targets.iter().filter(|(it, ..)| it.connection == number).any(|it| ends(&it)) {
                continue;
            }
            let changed = match &it.kind {
                EventKind::Closed(closed) if targets.iter().any(|(request, ..)| request.connection == number) => {
                    mutant.closed.map(|how| EventKind::Closed(closed.clone().with(how)))
                }
                EventKind::HttpBody { direction, bytes } => mutant.replace.as_ref().and_then(|(old, new)| {
                    let bytes = Bytes::from(String::from_utf8_lossy(bytes).replace(old, new));
                    let is_target = targets.iter().filter(|(it, ..)| it.connection == number).any(|it| ends(&it));
                    is_target.then_some(EventKind::HttpBody { direction: *direction, bytes })
                }),
                _ => None,
            };
            if let Some(kind) = changed {
                out.push_event(Event { kind, ..it.clone() });
                continue;
            }
            let is_body = matches!(it.kind, EventKind::HttpBody { .. });
            let is_message = it.frame().is_some_and(|frame| frame.direction == Direction::ServerToClient);
            let is_gone = |(_, answer, _): &(EventRef, Option<EventRef>, Option<EventRef>)| {
                (mutant.document.is_some() && is_body) || (mutant.drop && (is_body || is_message) && answer.is_none())
            };
            let mut here = targets.iter().filter(|(it, ..)| it.connection == number);
            if here.any(|target| is_gone(target) && ends(&target)) {
                continue;
            }
            let target = targets.iter().find(|(request, answer, head)| {
                *answer == Some(place) || *head == Some(place) || (answer.is_none() && *request == place)
            });
            let Some((request, answer, head)) = target else {
                out.push_event(it.clone());
                if targets.iter().any(|(request, ..)| *request == place) {
                    if let (Some(_), Some(raw)) = (mutant.close, &mutant.raw) {
                        out.push_event(frame(it, raw.clone().into()));
                    }
                    is_closed = close(mutant, &mut out, it.at);
                }
                continue;
            };
            let id = trace.since(request.event).next().and_then(|(_, event)| {
                let bytes = &event.frame()?.bytes;
                serde_json::from_slice::<Value>(bytes).ok()?.get("id").cloned()
            });
            if *head == Some(place) {
                let EventKind::HttpResponse { status, headers } = &it.kind else { continue };
                let mut headers = headers.clone();
                for (name, value) in &mutant.header {
                    let name: HeaderName = name.parse().expect("a header");
                    match value.as_str() {
                        Some(value) => drop(headers.insert(name, HeaderValue::from_str(value).expect("a value"))),
                        None => drop(headers.remove(name)),
                    }
                }
                let status = mutant.status.map_or(*status, |status| StatusCode::from_u16(status).expect("a status"));
                out.push_event(Event { kind: EventKind::HttpResponse { status, headers }, ..it.clone() });
                if let Some(body) = mutant.body.clone().or(mutant.document.as_ref().map(Value::to_string)) {
                    let bytes = Bytes::from(body);
                    let kind = EventKind::HttpBody { direction: Direction::ServerToClient, bytes };
                    out.push_event(Event { kind, ..it.clone() });
                }
                if answer.is_none()
                    && let Some(mut answer) = mutant.answer.clone()
                {
                    answer_id(&mut answer, id.as_ref());
                    out.push_event(frame(it, answer.to_string().into()));
                }
                continue;
            }
            if answer.is_none() && *request == place {
                out.push_event(it.clone());
                if head.is_none()
                    && let Some(mut answer) = mutant.answer.clone()
                {
                    answer_id(&mut answer, id.as_ref());
                    out.push_event(frame(it, answer.to_string().into()));
                }
                is_closed = close(mutant, &mut out, it.at);
                continue;
            }
            let old = it.frame().map(|frame| frame.bytes.clone()).unwrap_or_default();
            if let Some(before) = &mutant.before {
                out.push_event(frame(it, before.to_string().into()));
            }
            if !mutant.drop {
                out.push_event(frame(it, answered(mutant, &old, id.as_ref())));
            }
            if let Some(after) = &mutant.after {
                let after = if after == "again" { old.clone() } else { Bytes::from(after.to_string()) };
                out.push_event(frame(it, after));
            }
            if mutant.end {
                out.push_event(Event { kind: EventKind::HttpEnd { is_whole: true }, ..it.clone() });
            }
            is_closed = close(mutant, &mut out, it.at);
        }
        mutated.push(out);
    }
    mutated
}

/// Ends the connection, if the server of this mutant does.
fn close(mutant: &Mutant, trace: &mut Trace, at: Duration) -> bool {
    let Some(how) = mutant.close else { return false };
    trace.push(at, EventKind::Closed(Closed::by_server("the server ended the connection").with(how)));
    true
}

fn answer_id(answer: &mut Value, id: Option<&Value>) {
    if let (Some(members), Some(id)) = (answer.as_object_mut(), id) {
        members.entry("id").or_insert_with(|| id.clone());
    }
}

fn answered(mutant: &Mutant, old: &Bytes, id: Option<&Value>) -> Bytes {
    if let Some(raw) = &mutant.raw {
        return raw.replace("$ID", &id.map(ToString::to_string).unwrap_or_default()).into();
    }
    if mutant.not_utf8 {
        return [old, &b"\xff"[..]].concat().into();
    }
    let mut message: Value = match &mutant.answer {
        Some(answer) => {
            let mut answer = answer.clone();
            answer_id(&mut answer, id);
            answer
        }
        None if mutant.set.is_empty() && mutant.remove.is_empty() => return old.clone(),
        None => serde_json::from_slice(old).expect("JSON"),
    };
    for (pointer, value) in &mutant.set {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        match message.pointer_mut(parent) {
            Some(Value::Object(members)) => drop(members.insert(key.replace("~1", "/"), value.clone())),
            Some(Value::Array(items)) => match key.parse::<usize>() {
                Ok(at) if at < items.len() => items[at] = value.clone(),
                _ => items.push(value.clone()),
            },
            _ => {}
        }
    }
    for pointer in &mutant.remove {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        if let Some(Value::Object(members)) = message.pointer_mut(parent) {
            members.remove(&key.replace("~1", "/"));
        }
    }
    message.to_string().into()
}

pub(crate) fn mutants() -> Vec<Mutant> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutants");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let texts = files.iter().map(|file| fs::read_to_string(file).expect("text"));
    let lines: Vec<_> = texts.flat_map(|text| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>()).collect();
    lines.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}
