//! Every check about clients is seen to fail: one change of what a conformant client sent, and the check reports it.
//!
//! The traces are real: our client does the work of an application against mocks. A bad client sends one thing otherwise.

mod base;
mod parallel;
mod slow;

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use base::{Base, bases, evidence};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use rehearse_conformance::{Check, CheckVerdict, EventRef, Evidence, Role, checks, checks_of, judge_all};
use rehearse_protocol::{Direction, Event, EventKind, Frame, ProcessEvent, Trace, Transport, Version};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What our client does wrong here, each with the server: it gives the same answers to all questions, and it is strict
/// about responses, and not about versions.
const KNOWN: [(&str, &str); 5] = [
    ("version-unknown", "client-life.negotiate.rejects-unknown"),
    ("version-2025-11-25", "client-ask.sampling.tool-balance-error"),
    ("version-2025-11-25", "client-ask.sampling.tool-choice-required"),
    ("canaries", "client-ask.elicit.url-no-content"),
    ("strays", "client-rpc.tolerate.unknown-response-id"),
];

/// What a bad client does otherwise.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BadClient {
    /// The check that must report it.
    check: String,
    /// The method of the message that is changed; with `response:`, the answer to a request of the server, with
    /// `answer:` that of the server to the client; `GET`, `POST`
    /// or `DELETE` for the heads of HTTP requests.
    on: String,
    server: Option<String>,
    version: Option<Version>,
    transport: Option<Transport>,
    /// Values to set, by JSON pointer.
    #[serde(default)]
    set: Map<String, Value>,
    /// Members to remove.
    #[serde(default)]
    remove: Vec<String>,
    /// Bytes in place of the message, with `$ID` for its id.
    raw: Option<String>,
    /// Messages before it, or after it: `again` for the same once more, `{ "again": { POINTER: VALUE } }` for the same
    /// with other values, another text for these bytes, `{ "server": MESSAGE }` for one of the server, `{ "client": MESSAGE }` or the message itself
    /// for one of the client; `later` says how many milliseconds later it is sent, `"$ID"` stands for the id.
    #[serde(default)]
    before: Vec<Value>,
    #[serde(default)]
    after: Vec<Value>,
    /// Bytes that are not UTF-8 at the end of the message.
    #[serde(default)]
    not_utf8: bool,
    /// The message is not sent.
    #[serde(default)]
    drop: bool,
    /// The time of its HTTP request, in milliseconds.
    at: Option<u64>,
    /// The HTTP method.
    method: Option<String>,
    /// The target of the HTTP request.
    target: Option<String>,
    /// Headers of its HTTP request; null removes one.
    #[serde(default)]
    header: Map<String, Value>,
    /// The HTTP status of the server.
    status: Option<u16>,
    /// Headers of the HTTP response; null removes one.
    #[serde(default)]
    respond: Map<String, Value>,
    /// HTTP requests at the end of the trace; the session id `$SESSION` is that of the trace.
    #[serde(default)]
    requests: Vec<Exchange>,
    /// They come on another connection that begins later.
    #[serde(default)]
    elsewhere: bool,
    /// The client has sent `initialize` on another connection.
    #[serde(default)]
    handshake: bool,
    /// The client tries both eras in another act.
    #[serde(default)]
    both_eras: bool,
    /// How the client has ended; 0 by default.
    exit: Option<i32>,
    /// Only the first such message, or only the last one.
    #[serde(default)]
    once: bool,
    #[serde(default)]
    last: bool,
    /// The client does not end.
    #[serde(default)]
    hangs: bool,
    /// No request of the client comes after it.
    #[serde(default)]
    alone: bool,
    /// What happens to the process at the end of the trace, each with its time in milliseconds.
    #[serde(default)]
    process: Vec<(ProcessEvent, u64)>,
    /// The client starts another process, and does the same there from this message on.
    #[serde(default)]
    restart: bool,
    /// Checks that necessarily report it as well.
    #[serde(default)]
    also: Vec<String>,
    /// The specification allows it: the check must not report it.
    #[serde(default)]
    allowed: bool,
}

/// An HTTP request with its response.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Exchange {
    method: String,
    #[serde(default = "endpoint")]
    target: String,
    #[serde(default)]
    header: Map<String, Value>,
    message: Option<Value>,
    status: u16,
    #[serde(default)]
    respond: Map<String, Value>,
    /// Bytes of an event stream that are not a message.
    body: Option<String>,
    answer: Option<Value>,
    /// How many milliseconds later the answer comes.
    #[serde(default)]
    later: u64,
    /// After how many milliseconds the client closes the stream.
    cut: Option<u64>,
}

fn endpoint() -> String {
    "/mcp".to_owned()
}

/// The ids of the checks that fail or warn.
fn violated(evidence: &Evidence<'_>) -> BTreeSet<String> {
    let judged = judge_all(evidence)
        .into_iter()
        .filter(|(_, outcome)| matches!(outcome.verdict, CheckVerdict::Fail | CheckVerdict::Warn));
    judged.map(|(check, _)| check.id.clone()).collect()
}

/// The frames or heads that a bad client changes.
fn targets(bad: &BadClient, evidence: &Evidence<'_>) -> Vec<EventRef> {
    let mut found: Vec<_> = match bad.on.split_once(':') {
        Some(("answer", "*")) => evidence.responses().map(|it| it.place).collect(),
        Some(("answer", method)) => {
            evidence.calls_of(method).filter_map(|call| call.response).map(|it| it.place).collect()
        }
        Some((_, method)) => evidence.asks_of(method).flat_map(|ask| ask.responses).map(|it| it.place).collect(),
        None if ["GET", "POST", "DELETE"].contains(&&*bad.on) => {
            evidence.exchanges().filter(|(_, http)| http.method == bad.on).map(|(_, http)| http.request).collect()
        }
        None => {
            let sent = evidence.messages().filter(|it| !it.is_from_server() && it.method() == Some(&bad.on));
            let heads = |it: &rehearse_conformance::Message<'_>| {
                let connection = &evidence.connections[it.place.connection];
                connection.exchanges.get(&it.exchange?).map(|http| http.request)
            };
            let has_head = !bad.header.is_empty();
            let is_changed = !has_head || !bad.set.is_empty() || !bad.remove.is_empty();
            let head = |it| if has_head { heads(it) } else { None };
            sent.flat_map(|it| [head(it), is_changed.then_some(it.place)]).flatten().collect()
        }
    };
    if bad.once {
        found.truncate(1);
    }
    if bad.last {
        found.drain(..found.len().saturating_sub(1));
    }
    found
}

fn mutate(bad: &BadClient, traces: &[Trace], targets: &[EventRef]) -> Vec<Trace> {
    let changed = |(connection, trace): (usize, &Trace)| {
        let mut out = Trace::default();
        let is_target = |event: &usize| targets.contains(&EventRef { connection, event: *event });
        let exchanges: BTreeSet<_> =
            trace.since(0).filter(|(event, _)| is_target(event)).filter_map(|(_, it)| it.exchange).collect();
        for (event, it) in trace.since(0) {
            let frame = |direction: Direction, at: Duration, bytes: Bytes| Event {
                at,
                kind: EventKind::Frame(Frame::new(direction, at, bytes)),
                ..it.clone()
            };
            if let EventKind::HttpResponse { status, headers } = &it.kind
                && it.exchange.is_some_and(|number| exchanges.contains(&number))
            {
                let status = bad.status.map_or(*status, status_code);
                let kind = EventKind::HttpResponse { status, headers: with_headers(headers.clone(), &bad.respond) };
                out.push_event(Event { kind, ..it.clone() });
                continue;
            }
            if !is_target(&event) {
                let is_request =
                    matches!(&it.kind, EventKind::Frame(frame) if frame.direction == Direction::ClientToServer);
                let is_after = targets.iter().any(|target| target.connection == connection && target.event < event);
                let is_left = is_request || it.exchange.is_some_and(|number| !exchanges.contains(&number));
                if !(bad.alone && is_left && is_after) {
                    out.push_event(it.clone());
                }
                continue;
            }
            match &it.kind {
                EventKind::Frame(Frame { bytes, direction, .. }) => {
                    let old: Value = serde_json::from_slice(bytes).unwrap_or_default();
                    let other = |message: &Value| {
                        let direction = match message.get("server") {
                            Some(_) => Direction::ServerToClient,
                            None => Direction::ClientToServer,
                        };
                        let at = it.at + Duration::from_millis(message["later"].as_u64().unwrap_or_default());
                        let content = message.get("server").or(message.get("client")).unwrap_or(message);
                        let text = match message.get("again") {
                            Some(Value::Object(values)) => with(old.clone(), values).to_string(),
                            _ if message == "again" => return frame(direction, at, bytes.clone()),
                            _ if message.is_string() => message.as_str().unwrap_or_default().to_owned(),
                            _ => content.to_string().replace("\"$ID\"", &old["id"].to_string()),
                        };
                        frame(direction, at, text.into())
                    };
                    bad.before.iter().map(other).for_each(|event| out.push_event(event));
                    if !bad.drop {
                        out.push_event(frame(*direction, it.at, sent(bad, bytes)));
                    }
                    bad.after.iter().map(other).for_each(|event| out.push_event(event));
                }
                EventKind::HttpRequest { .. } if bad.drop => {}
                EventKind::HttpRequest { method, target, headers } => {
                    let method = bad.method.as_ref().map_or(method.clone(), |it| it.parse().expect("a method"));
                    let target = bad.target.clone().unwrap_or_else(|| target.clone());
                    let headers = with_headers(headers.clone(), &bad.header);
                    let at = bad.at.map_or(it.at, Duration::from_millis);
                    out.push_event(Event {
                        at,
                        kind: EventKind::HttpRequest { method, target, headers },
                        ..it.clone()
                    });
                }
                _ => out.push_event(it.clone()),
            }
        }
        if !exchanges.is_empty() && !bad.elsewhere {
            bad.requests.iter().zip(900..).for_each(|(request, number)| add(&mut out, request, number));
        }
        for (event, at) in bad.process.iter().filter(|_| !targets.is_empty()) {
            let last = out.events().map(|event| event.at).max().unwrap_or_default();
            out.push(last.max(Duration::from_millis(*at)), EventKind::Process(*event));
        }
        out
    };
    let mut all: Vec<_> = traces.iter().enumerate().map(changed).collect();
    if bad.elsewhere {
        let mut later = Trace::default();
        later.push(Duration::ZERO, EventKind::Opened(Transport::Http));
        bad.requests.iter().zip(0..).for_each(|(request, number)| add(&mut later, request, number));
        all.push(later);
    }
    if let (true, Some(target)) = (bad.restart, targets.first()) {
        let mut again = Trace::default();
        let events = traces[target.connection].since(0);
        let kept = events.filter(|(event, it)| *event >= target.event || matches!(it.kind, EventKind::Opened(_)));
        kept.for_each(|(_, event)| again.push_event(event.clone()));
        all.push(again);
    }
    all
}

fn status_code(status: u16) -> http::StatusCode {
    http::StatusCode::from_u16(status).expect("a status")
}

fn with_headers(mut headers: http::HeaderMap, changes: &Map<String, Value>) -> http::HeaderMap {
    for (name, value) in changes {
        let name: HeaderName = name.parse().expect("a header");
        match value.as_str() {
            Some(value) if value.starts_with("again ") => {
                headers.append(name, HeaderValue::from_str(&value[6..]).expect("a value"));
            }
            Some(value) => drop(headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"))),
            None => drop(headers.remove(name)),
        }
    }
    headers
}

/// Adds an HTTP request with its response at the end of a trace.
fn add(trace: &mut Trace, request: &Exchange, number: u32) {
    let at = trace.events().map(|event| event.at).max().unwrap_or_default();
    let session = trace.events().find_map(|event| match &event.kind {
        EventKind::HttpResponse { headers, .. } => headers.get("mcp-session-id").cloned(),
        _ => None,
    });
    let headers = |changes| {
        let mut headers = with_headers(http::HeaderMap::new(), changes);
        if let (Some(named), Some(session)) = (headers.get_mut("mcp-session-id"), &session)
            && named == "$SESSION"
        {
            *named = session.clone();
        }
        headers
    };
    let frame = |direction, message: &Value| EventKind::Frame(Frame::new(direction, at, message.to_string().into()));
    let body = |text: &String| EventKind::HttpBody { direction: Direction::ServerToClient, bytes: text.clone().into() };
    let kinds = [
        Some(EventKind::HttpRequest {
            method: request.method.parse().expect("a method"),
            target: request.target.clone(),
            headers: headers(&request.header),
        }),
        request.message.as_ref().map(|message| frame(Direction::ClientToServer, message)),
        Some(EventKind::HttpResponse { status: status_code(request.status), headers: headers(&request.respond) }),
        request.body.as_ref().map(body),
    ];
    kinds.into_iter().flatten().for_each(|kind| trace.push_event(Event { at, exchange: Some(number), kind }));
    if let Some(cut) = request.cut {
        let kind = EventKind::HttpEnd { is_whole: false };
        trace.push_event(Event { at: at + Duration::from_millis(cut), exchange: Some(number), kind });
    }
    if let Some(answer) = &request.answer {
        let at = at + Duration::from_millis(request.later);
        let frame = Frame::new(Direction::ServerToClient, at, answer.to_string().into());
        trace.push_event(Event { at, exchange: Some(number), kind: EventKind::Frame(frame) });
    }
}

/// What is sent in place of a message.
fn sent(bad: &BadClient, old: &Bytes) -> Bytes {
    if bad.not_utf8 {
        return [old, &b"\xff"[..]].concat().into();
    }
    let mut message: Value = serde_json::from_slice(old).expect("JSON");
    if let Some(raw) = &bad.raw {
        return raw.replace("$ID", &message["id"].to_string()).into();
    }
    message = with(message, &bad.set);
    for pointer in &bad.remove {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        if let Some(Value::Object(members)) = message.pointer_mut(parent) {
            members.remove(&key.replace("~1", "/"));
        }
    }
    message.to_string().into()
}

/// The message with values set, by JSON pointer.
fn with(mut message: Value, values: &Map<String, Value>) -> Value {
    for (pointer, value) in values {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        if let Some(Value::Object(members)) = message.pointer_mut(parent) {
            members.insert(key.replace("~1", "/"), value.clone());
        }
    }
    message
}

fn bad_clients() -> Vec<BadClient> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad-clients");
    let mut files: Vec<_> = fs::read_dir(folder).expect("the folder").map(|it| it.expect("a file").path()).collect();
    files.sort();
    let lines = files.iter().map(|file| fs::read_to_string(file).expect("text")).collect::<String>();
    lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_check_reports_its_bad_client_and_none_reports_ours() {
    let bases = bases().await;
    let bases: Vec<_> = bases.iter().map(|base| (base, evidence(&base.traces, base, None))).collect();
    let mut wrong = Vec::new();
    for (base, evidence) in &bases {
        for id in violated(evidence).into_iter().filter(|id| !KNOWN.contains(&(base.server, id))) {
            wrong.push(format!("{} {} {}: our client violates {id}", base.server, base.transport, base.version));
        }
    }
    let bad_clients = bad_clients();
    // The judges take most of the time.
    let halves = bad_clients.chunks(bad_clients.len().div_ceil(2));
    std::thread::scope(|scope| {
        let walks: Vec<_> = halves.map(|half| scope.spawn(|| walk(half, &bases))).collect();
        walks.into_iter().for_each(|walk| wrong.extend(walk.join().expect("no panic")));
    });
    let seen: BTreeSet<_> = bad_clients.iter().filter(|bad| !bad.allowed).map(|bad| bad.check.as_str()).collect();
    let all = checks_of(Role::Client).map(|check| check.id.as_str()).filter(|id| !id.starts_with("client-auth."));
    let without: Vec<_> = all.filter(|id| !seen.contains(id)).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(without.is_empty(), "without a bad client: {without:?}");
}

/// Lets the checks judge bad clients. Returns what is wrong.
fn walk(bad_clients: &[BadClient], bases: &[(&Base, Evidence<'_>)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for bad in bad_clients {
        let Some(check) = checks().iter().find(|check| check.id == bad.check) else {
            wrong.push(format!("{}: there is no such check", bad.check));
            continue;
        };
        let (found, applied) = reported(bad, check, bases);
        match found {
            _ if bad.allowed && applied > 0 && found.is_none() => {}
            Some((base, traces)) if !bad.allowed => {
                let others = others(bad, base, &evidence(&traces, base, Some(bad)));
                if !others.is_empty() {
                    wrong.push(format!("{}: also {others:?}", bad.check));
                }
            }
            _ => wrong.push(format!("{}: applied {applied} times, reported: {}", bad.check, found.is_some())),
        }
    }
    wrong
}

/// The first base on which a check reports a bad client, with the traces of that, and on how many the bad client does
/// something else.
fn reported<'b>(
    bad: &BadClient,
    check: &Check,
    bases: &[(&'b Base, Evidence<'_>)],
) -> (Option<(&'b Base, Vec<Trace>)>, usize) {
    let fits = |(base, _): &&(&Base, Evidence<'_>)| {
        bad.version.is_none_or(|it| it == base.version)
            && bad.transport.is_none_or(|it| it == base.transport)
            && bad.server.as_ref().is_none_or(|it| it == base.server)
            && check.levels.contains_key(&base.version)
            && check.transports.contains(&base.transport)
    };
    let mut applied = 0;
    let found = bases.iter().filter(fits).find_map(|(base, conformant)| {
        let targets = targets(bad, conformant);
        if targets.is_empty() {
            return None;
        }
        applied += 1;
        let traces = mutate(bad, &base.traces, &targets);
        let is_reported = !check.judge(&evidence(&traces, base, Some(bad))).judgement.violations.is_empty();
        is_reported.then_some((*base, traces))
    });
    (found, applied)
}

/// The checks that report a bad client without reason.
fn others(bad: &BadClient, base: &Base, evidence: &Evidence<'_>) -> Vec<String> {
    let is_other = |id: &String| *id != bad.check && !bad.also.contains(id) && !KNOWN.contains(&(base.server, id));
    violated(evidence).into_iter().filter(is_other).collect()
}
