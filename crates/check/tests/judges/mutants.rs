//! Every check is seen to fail: one change of a conformant server's trace, and the check reports it.
//!
//! The traces are real: the prober runs against the mock `everything`. A mutant changes what the server answered to one
//! message, as a faulty server would have.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderName, HeaderValue, StatusCode};
use rehearse_check::{CheckOptions, Tokens, VersionTraces, check, probes_of};
use rehearse_client::{ServerParams, Target, ToolPermission};
use rehearse_conformance::{Check, CheckVerdict, EventRef, Evidence, Facts, Level, Role, checks, checks_of, judge_all};
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer},
};
use rehearse_protocol::{Closed, ClosedHow, Direction, Event, EventKind, Frame, Trace, Transport, Version};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::{
    delay::Slowness,
    pipe::serve,
    process::{ProcessFault, process},
};

/// Checks that no change of one answer of this server can violate.
const NOT_MUTATED: &[&str] = &[
    // They are about time.
    "log.msg.rate",
    "ping.result.prompt",
    "progress.rate.limited",
    // They are, too; the tests beside their judges have the traces.
    "cancel.http.no-leak",
    "cancel.inflight.no-response",
    "cancel.inflight.silence-modern",
    "tasks.create.prompt",
];

/// A server whose tools come on pages, one without tools, one that answers with streams, one of the modern era alone, one
/// without sessions, one whose skills have no folders, and one with tasks that cannot be listed.
const SMALL: [&str; 7] = [
    "pageSize: 1\ncapabilities: { logging: null }\ntools: [{ name: a, description: A, steps: [{ roots: { as: r, optional: true } }, { reply: x }] }, { name: b, description: B, annotations: { readOnlyHint: true }, outputSchema: { type: object, required: [n] }, reply: { structured: { n: 1 } } }]\nprompts: [{ name: p, description: P, arguments: [{ name: x }], messages: [{ role: user, content: Hello }] }]\n",
    "resources: [{ uri: 'file:///srv/a.txt', name: a, reply: x }]\n",
    "http: { answers: sse, priming: true }\ntools: [{ name: a, description: A, steps: [{ wait: 20ms }, { reply: x }] }]\n",
    "protocol: 2026-07-28\ntools: [{ name: a, description: A, inputSchema: { type: object, properties: { text: { type: string, x-mcp-header: Text }, count: { type: integer, x-mcp-header: Count }, flag: { type: boolean, x-mcp-header: Flag }, more: { type: string, x-mcp-header: More } }, required: [text, count, flag] }, reply: x }]\nprompts: [{ name: grüße, description: B, messages: [{ role: user, content: x }] }]\n",
    "protocol: 2025-11-25\nhttp: { sessions: false }\ntools: [{ name: a, description: A, reply: x }]\n",
    "protocol: 2026-07-28\ncapabilities: { extensions: { io.modelcontextprotocol/skills: { directoryRead: null } } }\nskills: [{ name: a, description: A. }]\n",
    "protocol: 2025-11-25\ncapabilities: { tasks: {} }\nresources: [{ uri: 'file:///srv/a.txt', name: a, reply: x }]\n",
];

/// A server whose tools log, ask and take their time.
const BUSY: &str = r"
pageSize: 2
tools:
  - name: talk
    description: Logs and reports.
    annotations: { idempotentHint: true }
    steps:
      - log: { level: debug, logger: talk, data: 1 }
      - progress: { progress: 1 }
      - notify: { method: notifications/resources/updated, params: { uri: 'a://3' } }
      - reply: x
  - name: ask
    description: Asks.
    steps:
      - elicit: { message: Yes?, requestedSchema: { type: object, properties: { ok: { type: boolean } } } }
      - reply: x
  - name: slow
    description: Takes its time.
    inputSchema: { type: object, properties: { hide: { type: boolean } } }
    steps: [{ wait: 300ms }, { if: args.hide | default(false), disable: { resource: 'a://1' } }, { reply: x }]
resources:
  - { uri: 'a://1', name: one, reply: x }
  - { uri: 'a://2', name: two, reply: x }
  - { uri: 'a://3', name: three, reply: x }
prompts:
  - { name: p, arguments: [{ name: x }], messages: [{ role: user, content: '{{ args.x }}' }] }
";

/// A server that speaks no version with a handshake.
const MODERN: &str = "protocol: 2026-07-28\ntools: [{ name: a, description: A, reply: x }]\n";

/// A server of two legacy versions, and one that requires a token.
const LEGACY: &str = "protocol: [2025-06-18, 2025-11-25]\ntools: [{ name: a, description: A, reply: x }]\n";
const LOCKED: &str = "auth: { scopes: [read], issuer: {}, tokens: [{ token: eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ3In0.c2lnbmVk, scopes: [read, write] }, { token: reader, scopes: [read] }] }\ntools: [{ name: write, description: W, scopes: [write], annotations: { readOnlyHint: true }, reply: x }]\n";

/// The tools of `everything` that are called: a list that changes on the way is no good base for the change of an answer.
pub(crate) const CALLED: [&str; 14] = [
    "greet",
    "json_schema_2020_12_tool",
    "test_custom_header",
    "test_sampling",
    "test_elicitation",
    "test_input_required_*",
    "test_missing_capability",
    "test_error_handling",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
    "slow_compute",
];

/// The versions in which `everything` is probed on other transports than HTTP: those that differ most.
pub(crate) const FEW: [Version; 3] = [Version::V2024_11_05, Version::V2025_11_25, Version::V2026_07_28];

/// The token that the prober sends.
const TOKEN: &str = "rehearse-token";

/// One change of a trace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    /// The check that must report it.
    pub(crate) check: String,
    /// The method or the case whose answer is changed, or several with spaces between them; `notification:METHOD` or `request:METHOD` for a message of the
    /// server itself, `GET` or `POST` for the HTTP requests of normal traffic.
    #[serde(default)]
    on: String,
    /// What the process does, on stdio, in place of a changed answer.
    process: Option<ProcessFault>,
    version: Option<Version>,
    transport: Option<Transport>,
    /// Values to set in the answer, by JSON pointer.
    #[serde(default)]
    set: Map<String, Value>,
    /// Members to remove from the answer.
    #[serde(default)]
    remove: Vec<String>,
    /// A whole answer; its id is that of the request unless it has one.
    answer: Option<Value>,
    /// Bytes in place of the answer, with `$ID` for its id.
    raw: Option<String>,
    /// Bytes that are not UTF-8 at the end of the answer.
    #[serde(default)]
    not_utf8: bool,
    status: Option<u16>,
    #[serde(default)]
    header: Map<String, Value>,
    /// No answer at all; of a GET, an empty stream.
    #[serde(default)]
    drop: bool,
    /// A message of the server before the answer.
    before: Option<Value>,
    /// A message of the server after the answer.
    after: Option<Value>,
    /// The server ends the connection like this after the request.
    close: Option<ClosedHow>,
    /// The event stream of the answer stays open.
    #[serde(default)]
    open: bool,
    /// Only the first answer is changed.
    #[serde(default)]
    once: bool,
    /// Only the last answer is changed.
    #[serde(default)]
    last: bool,
    /// The event stream of the answer ends after it.
    #[serde(default)]
    end: bool,
    /// Only notifications with these values are changed, by JSON pointer.
    #[serde(default)]
    at: Map<String, Value>,
    /// Bytes in the body of the answer's event stream.
    body: Option<String>,
    /// A text in the bodies of the answer, and another in its place.
    replace: Option<(String, String)>,
    /// How the end of the connection is seen.
    closed: Option<ClosedHow>,
    /// The whole body of a response that is not a message.
    document: Option<Value>,
    /// Checks that necessarily report it as well.
    #[serde(default)]
    also: Vec<String>,
    /// The verdict on the check.
    verdict: Option<CheckVerdict>,
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

/// The traces of the conformant server in one version over one transport.
pub(crate) struct Base {
    /// The number of its script.
    script: usize,
    endpoint: Option<String>,
    pub(crate) transport: Transport,
    pub(crate) run: VersionTraces,
}

/// The traces of runs for all checks.
pub(crate) async fn all_bases() -> &'static [Base] {
    static BASES: OnceCell<Vec<Base>> = OnceCell::const_new();
    BASES.get_or_init(|| bases(&[])).await
}

/// The traces of runs for these checks alone, or for all.
async fn bases(only: &[String]) -> Vec<Base> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mock-servers/everything.yaml");
    let everything = fs::read_to_string(path).expect("the script");
    let scripts = [
        (everything.as_str(), Transport::Http),
        (&everything, Transport::Ws),
        (&everything, Transport::Sse),
        (SMALL[0], Transport::Http),
        (SMALL[1], Transport::Http),
        (SMALL[2], Transport::Http),
        (SMALL[3], Transport::Http),
        (SMALL[4], Transport::Http),
        (SMALL[5], Transport::Http),
        (SMALL[6], Transport::Http),
        (BUSY, Transport::Http),
        (BUSY, Transport::Ws),
        (MODERN, Transport::Ws),
        (LOCKED, Transport::Http),
        (LEGACY, Transport::Ws),
        (include_str!("../scripts/tasks.yaml"), Transport::Http),
        (include_str!("../scripts/tasks-2025-11-25.yaml"), Transport::Http),
    ];
    // A few at a time: on a busy machine a server that shares it with all others seems to be silent.
    let mut bases = Vec::new();
    for (first, scripts) in (0..).step_by(2).zip(scripts.chunks(2)) {
        let runs = (first..).zip(scripts).map(|(number, (script, transport))| served(number, script, *transport, only));
        bases.extend(join_all(runs).await.into_iter().flatten());
    }
    let options = CheckOptions { versions: FEW.into(), ..options(&CALLED, only) };
    bases.extend(piped(scripts.len(), &everything, &options, None).await);
    bases
}

/// The traces of a process with this script. A slow one has a seed.
pub(crate) async fn piped(
    number: usize,
    script: &str,
    options: &CheckOptions,
    slow: Option<(Slowness, u64)>,
) -> Vec<Base> {
    let (address, serving) = serve(script, slow);
    let run = check(&ServerParams::new("server", Target::Memory(address)), options).await;
    serving.abort();
    let as_process = |mut run: VersionTraces| {
        run.traces = run.traces.iter().map(|trace| process(trace, &ProcessFault::default())).collect();
        Base { script: number, endpoint: None, transport: Transport::Stdio, run }
    };
    run.traces.into_iter().map(as_process).collect()
}

pub(crate) fn options(tools: &[&str], only: &[String]) -> CheckOptions {
    let allowed = tools.iter().map(|tool| (*tool).to_owned()).collect();
    let tools = ToolPermission { allowed, ..ToolPermission::default() };
    // The machine may be busy.
    let (request_timeout, budget) = (Duration::from_mins(1), Duration::from_mins(10));
    let grace = Duration::from_millis(150);
    let versions = Version::ALL.to_vec();
    let (checks, varied_prompts) = (only.to_vec(), vec!["*".to_owned()]);
    CheckOptions { versions, grace, request_timeout, budget, tools, varied_prompts, checks, ..CheckOptions::default() }
}

/// The traces of a server with this script.
async fn served(number: usize, script: &str, transport: Transport, only: &[String]) -> Vec<Base> {
    let source = rehearse_document::Source::new("script.yaml", script);
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let server = MockServer::start(engine, ListenOptions::default()).await.expect("starts");
    let headers = (script == BUSY).then(|| ("Authorization".to_owned(), format!("Bearer {TOKEN}")));
    let at = rehearse_client::Endpoint {
        url: server.url(transport).expect("a URL"),
        headers: headers.into_iter().collect(),
    };
    let target = match transport {
        Transport::Http => Target::Http(at.clone()),
        Transport::Sse => Target::Sse(at.clone()),
        _ => Target::Ws(at.clone()),
    };
    let is_everything = script.contains("name: everything");
    let mut options = options(if is_everything { &CALLED } else { &["*"] }, only);
    if is_everything && transport != Transport::Http {
        options.versions = FEW.into();
    }
    if script == LOCKED {
        let token = |token: &str| Some(token.to_owned());
        options.tokens = Tokens {
            valid: token("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ3In0.c2lnbmVk"),
            low_scope: token("reader"),
            expired: token("expired"),
            wrong_audience: token("foreign"),
        };
    }
    let run = check(&ServerParams::new("server", target), &options).await;
    let base = |run| Base { script: number, endpoint: Some(at.url.clone()), transport, run };
    run.traces.into_iter().map(base).collect()
}

fn facts(base: &Base) -> Facts {
    let secrets = vec!["s3cret-of-the-environment".to_owned()];
    Facts { is_local: true, secrets, endpoint: base.endpoint.clone(), ..Facts::default() }
}

pub(crate) fn evidence<'t>(traces: &[&'t Trace], base: &Base) -> Evidence<'t> {
    Evidence::new(traces, base.run.version, base.transport, facts(base))
}

/// The ids of the checks that fail or warn.
pub(crate) fn violated(evidence: &Evidence<'_>) -> BTreeSet<String> {
    let judged = judge_all(evidence)
        .into_iter()
        .filter(|(_, outcome)| matches!(outcome.verdict, CheckVerdict::Fail | CheckVerdict::Warn));
    let found = judged.map(|(check, _)| check.id.clone());
    // How long this machine takes is not what is tested.
    found.filter(|id| !NOT_MUTATED.contains(&id.as_str())).collect()
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

/// While you work on some checks: `MUTANTS=tools.list,res` walks only the mutants of checks whose ids begin so.
pub(crate) fn is_wanted(id: &str) -> bool {
    std::env::var("MUTANTS").map_or(true, |wanted| wanted.split(',').any(|wanted| id.starts_with(wanted)))
}

#[tokio::test]
async fn every_check_reports_its_mutant_and_none_reports_the_conformant_server() {
    let bases = all_bases().await;
    let bases = judged(bases);
    let accused = bases.iter().filter_map(|(base, evidence)| {
        let found = violated(evidence);
        (!found.is_empty()).then(|| format!("{} {}: without a mutant {found:?}", base.transport, base.run.version))
    });
    let (mut wrong, mut seen) = (accused.collect::<Vec<_>>(), BTreeSet::new());
    let mut mutants = mutants();
    mutants.retain(|mutant| is_wanted(&mutant.check));
    seen.extend(mutants.iter().filter(|mutant| !mutant.allowed).map(|mutant| mutant.check.clone()));
    let half = mutants.len() / 2;
    let judged = std::thread::scope(|scope| {
        let other = scope.spawn(|| walk(&mutants[..half], &bases));
        let mut wrong = walk(&mutants[half..], &bases);
        wrong.extend(other.join().expect("no panic"));
        wrong
    });
    wrong.extend(judged);
    let ids = checks_of(Role::Server).map(|check| check.id.as_str()).filter(|id| is_wanted(id));
    let without: Vec<_> = ids.filter(|id| !seen.contains(*id)).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let unseen: Vec<_> = without.iter().filter(|id| !NOT_MUTATED.contains(*id)).collect();
    assert!(unseen.is_empty(), "{} without a mutant: {unseen:?}", unseen.len());
}

/// With the evidence of each.
fn judged(bases: &[Base]) -> Vec<(&Base, Evidence<'_>)> {
    bases.iter().map(|base| (base, evidence(&base.run.traces.iter().collect::<Vec<_>>(), base))).collect()
}

/// How many groups of checks are run alone, unless `ALONE` says another number.
const ALONE: usize = 2;

/// `--only` sends less and sees the same. Checks for which the same is sent are run together.
#[tokio::test]
async fn a_check_that_is_run_alone_reports_its_mutants_and_passes_where_it_passes_among_others() {
    let mut groups: BTreeMap<BTreeSet<&str>, Vec<String>> = BTreeMap::new();
    for check in checks_of(Role::Server).filter(|check| is_wanted(&check.id)) {
        groups.entry(probes_of(check)).or_default().push(check.id.clone());
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    // Those for which little is sent are run first.
    groups.sort_by_key(|(probes, ids)| (probes.len(), std::cmp::Reverse(ids.len())));
    groups.truncate(std::env::var("ALONE").ok().and_then(|number| number.parse().ok()).unwrap_or(ALONE));
    let all = bases(&[]).await;
    let all = judged(&all);
    let mut wrong = Vec::new();
    for (probes, ids) in &groups {
        let alone = bases(ids).await;
        let alone = judged(&alone);
        let own = mutants().into_iter().filter(|mutant| ids.contains(&mutant.check));
        for mutant in own {
            let verdict = reported(&mutant, &alone).map(|(found, ..)| found.is_some());
            if verdict != Some(!mutant.allowed) {
                wrong.push(format!("{probes:?} {}: {verdict:?} for its mutant", mutant.check));
            }
        }
        for (base, among) in &all {
            let is_same = |other: &&(&Base, Evidence<'_>)| {
                (other.0.script, other.0.transport, other.0.run.version)
                    == (base.script, base.transport, base.run.version)
            };
            let own = checks_of(Role::Server).filter(|check| ids.contains(&check.id));
            for check in own.filter(|check| !NOT_MUTATED.contains(&check.id.as_str())) {
                let verdict = check.judge(among).verdict;
                let found = alone.iter().find(is_same).map(|(_, evidence)| check.judge(evidence).verdict);
                // Alone there is more time.
                let is_tested = !matches!(verdict, CheckVerdict::NotApplicable | CheckVerdict::NotTested);
                if is_tested && found != Some(verdict) {
                    let place = (base.script, base.transport, base.run.version);
                    wrong.push(format!("{probes:?} {}: {found:?}, not {verdict:?} {place:?}", check.id));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether a violation of a check is more than information.
fn is_counted(id: &str, version: Version) -> bool {
    checks().iter().any(|check| check.id == id && check.levels.get(&version) != Some(&Level::Info))
}

/// The traces of a base with a mutant, and which of them it is in; `None` if it changes nothing.
pub(crate) fn faulty(mutant: &Mutant, base: &Base, conformant: &Evidence<'_>) -> Option<(Vec<Trace>, Vec<bool>)> {
    let traces = &base.run.traces;
    let targets = targets(mutant, conformant);
    let mutated: Vec<_> = match &mutant.process {
        Some(_) if base.transport != Transport::Stdio => return None,
        Some(fault) => traces.iter().map(|trace| process(trace, fault)).collect(),
        None if targets.is_empty() => return None,
        None => mutate(mutant, traces, &targets),
    };
    let is_changed =
        |number: usize| mutant.process.is_some() || targets.iter().any(|(request, ..)| request.connection == number);
    let own = (0..mutated.len()).map(is_changed).collect();
    Some((mutated, own))
}

/// All checks that report a mutant, the transport and the version.
type Report = (BTreeSet<String>, Transport, Version);

/// What reports a mutant, and how often the mutant was applied.
/// `None` if there is no such check.
fn reported(mutant: &Mutant, bases: &[(&Base, Evidence<'_>)]) -> Option<(Option<Report>, usize)> {
    let check = checks().iter().find(|check| check.id == mutant.check)?;
    let fits = |(base, _): &&(&Base, Evidence<'_>)| mutant.fits(check, base);
    let mut applied = 0;
    let found = bases.iter().filter(fits).find_map(|(base, conformant)| {
        let (mutated, own) = faulty(mutant, base, conformant)?;
        applied += 1;
        let changed: Vec<&Trace> = mutated.iter().zip(own).filter(|(_, own)| *own).map(|(trace, _)| trace).collect();
        // Most checks look at one connection at a time.
        [changed, mutated.iter().collect()].iter().find_map(|traces| {
            let evidence = evidence(traces, base);
            let outcome = check.judge(&evidence);
            let is_meant = mutant.verdict.is_none_or(|verdict| verdict == outcome.verdict);
            let is_reported = !outcome.judgement.violations.is_empty() && is_meant;
            is_reported.then(|| (violated(&evidence), base.transport, base.run.version))
        })
    });
    Some((found, applied))
}

/// Says which mutants are not reported by their checks, or also by other checks.
fn walk(mutants: &[Mutant], bases: &[(&Base, Evidence<'_>)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for mutant in mutants {
        let Some((found, applied)) = reported(mutant, bases) else {
            wrong.push(format!("{}: there is no such check", mutant.check));
            continue;
        };
        if mutant.allowed {
            if applied == 0 || found.is_some() {
                wrong.push(format!("{}: allowed, but reported (applied {applied} times)", mutant.check));
            }
            continue;
        }
        let Some((found, transport, version)) = found else {
            wrong.push(format!("{}: not reported (applied {applied} times)", mutant.check));
            continue;
        };
        let is_other = |id: &&String| **id != mutant.check && !mutant.also.contains(id) && is_counted(id, version);
        let others: Vec<_> = found.iter().filter(is_other).collect();
        if !others.is_empty() {
            wrong.push(format!("{}: also {others:?} ({transport} {version})", mutant.check));
        }
    }
    wrong
}
