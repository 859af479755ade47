//! Every row about clients is seen to fail: one change of what a conformant client sent, and the row reports it.
//!
//! The traces are real: our client does the work of an application against mocks. A bad client sends one thing otherwise.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderName, HeaderValue};
use rehearse_check::ACTS;
use rehearse_client::{
    Answer, AnswerScript, Answers, CallOptions, Endpoint, ServerParams, Session, SubscriptionFilter, Target, example,
};
use rehearse_conformance::{Evidence, Facts, Flow, Place, Role, Verdict, judge_all, rows, rows_of};
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer},
};
use rehearse_protocol::{Direction, Event, EventKind, Frame, Protocol, Trace, Transport, Version};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// How long our client may work with a server.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many mocks run at the same time.
const AT_ONCE: usize = 8;

/// Servers that have everything, and what only a wire shows, beside those of the acts.
const MORE: [(&str, &str); 2] = [
    ("everything", include_str!("../../../mock-servers/everything.yaml")),
    ("wire", include_str!("scripts/wire.yaml")),
];

/// What a bad client does otherwise.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BadClient {
    /// The row that must report it.
    row: String,
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
    /// Bytes that are no UTF-8 at the end of the message.
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
    /// HTTP requests at the end of the trace.
    #[serde(default)]
    requests: Vec<Exchange>,
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
    /// Rows that necessarily report it as well.
    #[serde(default)]
    also: Vec<String>,
    /// The specification allows it: the row must not report it.
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
    /// Bytes of an event stream that are no message.
    body: Option<String>,
    answer: Option<Value>,
    /// How many milliseconds later the answer comes.
    #[serde(default)]
    later: u64,
}

fn endpoint() -> String {
    "/mcp".to_owned()
}

/// What a conformant client did with a server.
struct Base {
    server: &'static str,
    transport: Transport,
    version: Version,
    traces: Vec<Trace>,
    endpoint: Option<String>,
    /// What the client did in the act `clean`.
    flow: Option<Flow>,
}

async fn base(name: &'static str, script: &'static str, transport: Transport, version: Version) -> Base {
    let source = rehearse_document::Source::new(name, script);
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let listen = ListenOptions { recorder: Some(Arc::default()), ..ListenOptions::default() };
    let server = MockServer::start(engine, listen).await.expect("starts");
    for _ in 0..if name == "closed" { 3 } else { 1 } {
        // It may wait for what never comes.
        let _ = tokio::time::timeout(PATIENCE, work(&server, transport, version)).await;
    }
    let (traces, endpoint) = (server.traces(), server.url(transport));
    server.stop(Duration::ZERO).await;
    Base { server: name, transport, version, traces, endpoint, flow: None }
}

async fn bases() -> Vec<Base> {
    // Those have a test of their own.
    let acts = ACTS.iter().filter(|act| !act.name.starts_with("auth")).map(|act| (act.name, act.script));
    let all = MORE.into_iter().chain(acts).flat_map(|(name, script)| {
        let transports = [Transport::Http, Transport::Ws, Transport::Sse].into_iter();
        transports.flat_map(move |transport| {
            let versions = Version::ALL.into_iter().filter(move |version| transport.carries(*version));
            versions.map(move |version| base(name, script, transport, version))
        })
    });
    let mut bases: Vec<_> = stream::iter(all).buffered(AT_ONCE).collect().await;
    // What is sent over a WebSocket is what a process gets.
    let piped: Vec<_> = bases.iter().filter(|base| base.transport == Transport::Ws).map(as_process).collect();
    bases.extend(piped);
    let flows: Vec<_> = bases
        .iter()
        .filter(|base| base.server == ACTS[0].name)
        .map(|base| (base.transport, base.version, Flow::new(&evidence(&base.traces, base, false, false))))
        .collect();
    for base in &mut bases {
        let is_same = |(transport, version, _): &&(Transport, Version, Flow)| {
            *transport == base.transport && *version == base.version
        };
        base.flow = flows.iter().find(is_same).map(|(.., flow)| flow.clone());
    }
    bases
}

fn as_process(base: &Base) -> Base {
    let traces = base.traces.iter().map(|trace| {
        let mut out = Trace::default();
        for event in trace.events() {
            let kind = match &event.kind {
                EventKind::Opened(_) => EventKind::Opened(Transport::Stdio),
                EventKind::HttpRequest { .. } | EventKind::HttpResponse { .. } => continue,
                kind => kind.clone(),
            };
            out.push_event(Event { exchange: None, kind, ..event.clone() });
        }
        out
    });
    Base { transport: Transport::Stdio, traces: traces.collect(), endpoint: None, flow: None, ..*base }
}

/// Lists everything, and uses one or a few of each.
async fn work(server: &MockServer, transport: Transport, version: Version) {
    let at = Endpoint { url: server.url(transport).expect("a URL"), headers: Vec::new() };
    let target = match transport {
        Transport::Http => Target::Http(at),
        Transport::Sse => Target::Sse(at),
        _ => Target::Ws(at),
    };
    let mut params = ServerParams::new("server", target);
    params.answers = Answers::from_script(
        AnswerScript {
            elicitation: vec![Answer::Result(json!({ "action": "accept", "content": {
                    "username": "x", "email": "x@y.zz", "name": "x", "color": "red", "confirm": true,
                } }))],
            sampling: vec![Answer::Result(
                json!({ "role": "assistant", "content": { "type": "text", "text": "x" }, "model": "m", "stopReason": "endTurn" }),
            )],
            roots: vec![Answer::Result(json!({ "roots": [{ "uri": "file:///srv", "name": "srv" }] }))],
        },
        [],
    );
    let Ok(session) = Session::connect(&params, Protocol::Exact(version)).await else { return };
    let options = CallOptions::default;
    let offered: Value = serde_json::from_str(session.info().capabilities.get()).expect("JSON");
    if offered["logging"].is_object() {
        let _ = session.set_log_level("info", options()).await;
    }
    let is_offered = offered["tools"].is_object();
    let tools = if is_offered {
        session.list_tools(options()).await.map(|listed| listed.items).unwrap_or_default()
    } else {
        Vec::new()
    };
    if session.is_lost() {
        return;
    }
    for tool in tools {
        let tool: Value = serde_json::from_str(tool.get()).expect("JSON");
        let name = tool["name"].as_str().expect("a name");
        const USED: [&str; 12] = [
            "a",
            "break-off",
            "mirror",
            "one",
            "echo",
            "greet",
            "test_sampling",
            "test_elicitation",
            "test_tool_with_progress",
            "multi_input",
            "test_input_required_result_list_roots",
            "test_input_required_result_multi_round",
        ];
        // Other transports end with the stream.
        let is_left_out = name == "break-off" && (transport, version) != (Transport::Http, Version::V2025_11_25);
        if USED.contains(&name) && !is_left_out {
            let arguments = Some(example::object(&tool["inputSchema"]));
            let token = json!({ "progressToken": "p" }).as_object().cloned();
            let _ = session.call_tool(name, arguments, CallOptions { meta: token, ..options() }).await;
            if session.is_lost() {
                return;
            }
        }
    }
    if offered["extensions"].is_object() {
        let arguments = json!({ "filename": "x" }).as_object().cloned();
        let _ = session.call_tool_as_task("confirm_delete", arguments, options()).await;
        let skills = session.list_skills(options()).await.expect("skills").items;
        let skill: Value = serde_json::from_str(skills[0].get()).expect("JSON");
        for file in skill["resources"].as_array().expect("files") {
            let _ = session.read_resource(file["uri"].as_str().expect("a URI"), options()).await;
        }
    }
    if offered["resources"].is_object() {
        let _ = session.list_resource_templates(options()).await;
        let Ok(listed) = session.list_resources(options()).await else { return };
        let first: Value = serde_json::from_str(listed.items[0].get()).expect("JSON");
        let uri = first["uri"].as_str().expect("a URI");
        let _ = session.read_resource(uri, options()).await;
        if offered["resources"]["subscribe"] == true {
            let filter = SubscriptionFilter { uris: vec![uri.to_owned()], ..SubscriptionFilter::default() };
            let _ = session.listen(&filter, options()).await;
            let _ = session.unsubscribe(uri, options()).await;
        }
    }
    if offered["prompts"].is_object() {
        let _ = session.list_prompts(options()).await;
        let arguments = json!({ "arg1": "x", "arg2": "y" }).as_object().cloned();
        let _ = session.get_prompt("test_prompt_with_arguments", arguments, options()).await;
    }
    session.close().await;
}

fn evidence<'t>(traces: &'t [Trace], base: &Base, has_handshake: bool, has_both_eras: bool) -> Evidence<'t> {
    let facts = Facts {
        role: Role::Client,
        act: Some(base.server.to_owned()),
        flow: base.flow.clone(),
        exit_code: Some(0),
        has_handshake,
        has_both_eras,
        endpoint: base.endpoint.clone(),
        is_local: true,
        ..Facts::default()
    };
    Evidence::new(&traces.iter().collect::<Vec<_>>(), base.version, base.transport, facts)
}

/// The ids of the rows that fail or warn.
fn violated(evidence: &Evidence<'_>) -> BTreeSet<String> {
    let judged = judge_all(evidence).filter(|(_, outcome)| matches!(outcome.verdict, Verdict::Fail | Verdict::Warn));
    judged.map(|(row, _)| row.id.clone()).collect()
}

/// The frames or heads that a bad client changes.
fn targets(bad: &BadClient, evidence: &Evidence<'_>) -> Vec<Place> {
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

fn mutate(bad: &BadClient, traces: &[Trace], targets: &[Place]) -> Vec<Trace> {
    let changed = |(connection, trace): (usize, &Trace)| {
        let mut out = Trace::default();
        let is_target = |event: &usize| targets.contains(&Place { connection, event: *event });
        let exchanges: BTreeSet<_> =
            trace.since(0).filter(|(event, _)| is_target(event)).filter_map(|(_, it)| it.exchange).collect();
        for (event, it) in trace.since(0) {
            let frame = |direction: Direction, at: Duration, bytes: Bytes| Event {
                at,
                kind: EventKind::Frame(Frame { direction, at, bytes }),
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
                out.push_event(it.clone());
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
                        let told = message.get("server").or(message.get("client")).unwrap_or(message);
                        let text = match message.get("again") {
                            Some(Value::Object(values)) => with(old.clone(), values).to_string(),
                            _ if message == "again" => return frame(direction, at, bytes.clone()),
                            _ if message.is_string() => message.as_str().unwrap_or_default().to_owned(),
                            _ => told.to_string().replace("\"$ID\"", &old["id"].to_string()),
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
        if !exchanges.is_empty() {
            bad.requests.iter().zip(900..).for_each(|(request, number)| add(&mut out, request, number));
        }
        out
    };
    traces.iter().enumerate().map(changed).collect()
}

fn status_code(status: u16) -> http::StatusCode {
    http::StatusCode::from_u16(status).expect("a status")
}

fn with_headers(mut headers: http::HeaderMap, changes: &Map<String, Value>) -> http::HeaderMap {
    for (name, value) in changes {
        let name: HeaderName = name.parse().expect("a header");
        match value.as_str() {
            Some(value) => drop(headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"))),
            None => drop(headers.remove(name)),
        }
    }
    headers
}

/// Adds an HTTP request with its response at the end of a trace.
fn add(trace: &mut Trace, request: &Exchange, number: u32) {
    let at = trace.events().map(|event| event.at).max().unwrap_or_default();
    let headers = |changes| with_headers(http::HeaderMap::new(), changes);
    let frame =
        |direction, message: &Value| EventKind::Frame(Frame { direction, at, bytes: message.to_string().into() });
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
    if let Some(answer) = &request.answer {
        let at = at + Duration::from_millis(request.later);
        let frame = Frame { direction: Direction::ServerToClient, at, bytes: answer.to_string().into() };
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

#[tokio::test]
async fn every_row_reports_its_bad_client_and_none_reports_ours() {
    let bases = bases().await;
    let bases: Vec<_> = bases.iter().map(|base| (base, evidence(&base.traces, base, false, false))).collect();
    let mut wrong = Vec::new();
    for (base, evidence) in &bases {
        for id in violated(evidence) {
            wrong.push(format!("{} {} {}: our client violates {id}", base.server, base.transport, base.version));
        }
    }
    let bad_clients = bad_clients();
    for bad in &bad_clients {
        let Some(row) = rows().iter().find(|row| row.id == bad.row) else {
            wrong.push(format!("{}: there is no such row", bad.row));
            continue;
        };
        let fits = |(base, _): &&(&Base, Evidence<'_>)| {
            bad.version.is_none_or(|it| it == base.version)
                && bad.transport.is_none_or(|it| it == base.transport)
                && bad.server.as_ref().is_none_or(|it| it == base.server)
                && row.levels.contains_key(&base.version)
                && row.transports.contains(&base.transport)
        };
        let mut applied = 0;
        let found = bases.iter().filter(fits).find_map(|(base, conformant)| {
            let targets = targets(bad, conformant);
            applied += usize::from(!targets.is_empty());
            let traces = mutate(bad, &base.traces, &targets);
            let mut evidence = evidence(&traces, base, bad.handshake, bad.both_eras);
            evidence.facts.exit_code = bad.exit.or(evidence.facts.exit_code);
            let is_reported = !targets.is_empty() && !row.judge(&evidence).judgement.violations.is_empty();
            is_reported.then(|| violated(&evidence))
        });
        match found {
            _ if bad.allowed && applied > 0 && found.is_none() => {}
            Some(found) if !bad.allowed => {
                let is_other = |id: &&String| **id != bad.row && !bad.also.contains(id);
                let others: Vec<_> = found.iter().filter(is_other).collect();
                if !others.is_empty() {
                    wrong.push(format!("{}: also {others:?}", bad.row));
                }
            }
            _ => wrong.push(format!("{}: applied {applied} times, reported: {}", bad.row, found.is_some())),
        }
    }
    let seen: BTreeSet<_> = bad_clients.iter().filter(|bad| !bad.allowed).map(|bad| bad.row.as_str()).collect();
    let all = rows_of(Role::Client).map(|row| row.id.as_str()).filter(|id| !id.starts_with("client-auth."));
    let without: Vec<_> = all.filter(|id| !seen.contains(id)).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(without.is_empty(), "without a bad client: {without:?}");
}
