//! Every check about the authorization of clients is seen to fail, and none reports our client.
//!
//! The traces are real: our client gets its tokens from mocks. A bad client sends something otherwise, or more.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use http::{HeaderName, HeaderValue};
use rehearse_check::client::ACTS;
use rehearse_client::{
    CallOptions, ServerParams, Session, Target,
    oauth::{Authorizer, Identity, Interaction, Options},
};
use rehearse_conformance::{CheckVerdict, Evidence, Facts, Flow, Role, checks, checks_of, judge_all};
use rehearse_document::Source;
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer, ServerRecorder},
};
use rehearse_protocol::{Closed, Direction, Event, EventKind, Protocol, Trace, Transport, Version};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::{Url, form_urlencoded};

/// What a bad client does otherwise in an act.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BadClient {
    /// The check that must report it.
    check: String,
    act: String,
    version: Option<Version>,
    /// The requests that are changed: `POST /as/token`; only the first or the last one of them with `nth`.
    on: Option<String>,
    nth: Option<String>,
    #[serde(flatten)]
    change: Change,
    /// The requests are not sent.
    #[serde(default)]
    drop: bool,
    /// Requests at the end.
    #[serde(default)]
    then: Vec<Added>,
    /// How often they are sent.
    #[serde(default = "once")]
    times: usize,
    /// Checks that necessarily report it as well.
    #[serde(default)]
    also: Vec<String>,
    /// The specification allows it: the check must not report it.
    #[serde(default)]
    allowed: bool,
}

/// What a request has otherwise; null removes a member.
#[derive(Debug, Default, Deserialize)]
struct Change {
    path: Option<String>,
    #[serde(default)]
    header: Map<String, Value>,
    #[serde(default)]
    query: Map<String, Value>,
    #[serde(default)]
    form: Map<String, Value>,
    #[serde(default)]
    body: Map<String, Value>,
}

/// One more request. `$TOKEN`, `$CODE` and `$ORIGIN` stand for what is in the trace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Added {
    on: String,
    #[serde(default)]
    header: Map<String, Value>,
    #[serde(default)]
    query: Map<String, Value>,
    #[serde(default)]
    form: Map<String, Value>,
    #[serde(default)]
    body: Value,
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    respond: Map<String, Value>,
    #[serde(default)]
    answer: Value,
}

const fn once() -> usize {
    1
}

const fn ok() -> u16 {
    200
}

/// What our client did in an act.
struct Base {
    act: &'static str,
    version: Version,
    traces: Vec<Trace>,
    flow: Option<Flow>,
}

async fn bases() -> Vec<Base> {
    let mut bases: Vec<Base> = Vec::new();
    for act in ACTS.iter().filter(|act| act.script.contains("like: auth")) {
        let script = || Script::parse(&Source::new(act.name, act.script)).unwrap_or_else(|error| panic!("{error}"));
        for version in script().versions.into_iter().filter(|version| *version >= Version::V2025_03_26) {
            let script = script();
            let recorder = Arc::<ServerRecorder>::default();
            let listen = ListenOptions { recorder: Some(recorder.clone()), ..ListenOptions::default() };
            let server = MockServer::start(Engine::new(script, 1, Journal::default()), listen).await.expect("starts");
            // A call that lacks a scope is repeated once.
            let rounds = if act.name == "auth-step-up" { 1 } else { 3 };
            work(&server.url(Transport::Http).expect("a URL"), version, rounds).await;
            recorder.close(&Closed::by_client("the client has ended"));
            let traces = server.traces();
            server.stop(Duration::ZERO).await;
            let mut base = Base { act: act.name, version, traces, flow: None };
            base.flow = match bases.iter().find(|it| it.act == "auth" && it.version == version) {
                Some(usual) => usual.flow.clone(),
                None => Some(Flow::new(&evidence(&base.traces, &base))),
            };
            bases.push(base);
        }
    }
    bases
}

async fn work(url: &str, version: Version, rounds: usize) {
    let redirect_uri = "http://127.0.0.1:3000/callback".to_owned();
    let identity = Identity { document: Some("https://client.example/client.json".to_owned()), ..Identity::default() };
    let options = Options { identity, interaction: Interaction::Headless { redirect_uri }, ..Options::default() };
    let authorizer = Authorizer::new(url, options).expect("an authorizer");
    let params = ServerParams { authorizer: Some(authorizer), ..ServerParams::new("server", Target::http(url)) };
    let Ok(session) = Session::connect(&params, Protocol::Exact(version)).await else { return };
    for _ in 0..rounds {
        let _ = session.list_tools(CallOptions::default()).await;
        let arguments = json!({ "text": "x" }).as_object().cloned();
        let _ = session.call_tool("echo", arguments, CallOptions::default()).await;
    }
    session.close().await;
}

fn evidence<'t>(traces: &'t [Trace], base: &Base) -> Evidence<'t> {
    let facts = Facts {
        role: Role::Client,
        acts: vec![base.act.to_owned()],
        flow: base.flow.clone(),
        is_local: true,
        ..Facts::default()
    };
    Evidence::new(&traces.iter().collect::<Vec<_>>(), base.version, Transport::Http, facts)
}

/// The ids of the checks that fail or warn.
fn violated(evidence: &Evidence<'_>) -> BTreeSet<String> {
    let judged = judge_all(evidence)
        .into_iter()
        .filter(|(_, outcome)| matches!(outcome.verdict, CheckVerdict::Fail | CheckVerdict::Warn));
    judged.map(|(check, _)| check.id.clone()).collect()
}

/// The exchanges that a bad client changes, as indices of traces and numbers.
fn targets(bad: &BadClient, traces: &[Trace]) -> Vec<(usize, Option<u32>)> {
    let Some(on) = &bad.on else { return Vec::new() };
    let heads = traces.iter().enumerate().flat_map(|(index, trace)| trace.events().map(move |event| (index, event)));
    let mut found: Vec<_> = heads
        .filter_map(|(index, event)| match &event.kind {
            EventKind::HttpRequest { method, target, .. } => {
                let path = target.split('?').next().unwrap_or_default();
                (format!("{method} {path}") == *on).then_some((index, event.exchange))
            }
            _ => None,
        })
        .collect();
    match bad.nth.as_deref() {
        Some("first") => found.truncate(1),
        Some("last") => drop(found.drain(..found.len().saturating_sub(1))),
        _ => {}
    }
    found
}

/// The text with what is in the traces.
fn filled(value: &Value, known: &HashMap<&str, String>) -> Value {
    let text = known.iter().fold(value.to_string(), |text, (name, value)| text.replace(name, value));
    serde_json::from_str(&text).expect("JSON")
}

fn known(traces: &[Trace]) -> HashMap<&'static str, String> {
    let mut known = HashMap::new();
    for event in traces.iter().flat_map(Trace::events) {
        match &event.kind {
            EventKind::HttpRequest { headers, .. } => {
                known.insert("$ORIGIN", format!("http://{}", headers["host"].to_str().expect("text")));
            }
            EventKind::HttpResponse { headers, .. } => {
                let location = headers.get("location").and_then(|it| Url::parse(it.to_str().ok()?).ok());
                let code =
                    location.and_then(|url| Some(url.query_pairs().find(|(name, _)| name == "code")?.1.into_owned()));
                known.extend(code.map(|code| ("$CODE", code)));
            }
            EventKind::HttpBody { bytes, .. } => {
                let answer: Value = serde_json::from_slice(bytes).unwrap_or_default();
                known.extend(answer["access_token"].as_str().map(|token| ("$TOKEN", token.to_owned())));
                known.extend(answer["client_id"].as_str().map(|id| ("$CLIENT", id.to_owned())));
            }
            _ => {}
        }
    }
    known
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn with_pairs(text: &[u8], changes: &Map<String, Value>) -> String {
    let mut pairs: Vec<(String, String)> = form_urlencoded::parse(text).into_owned().collect();
    pairs.retain(|(name, _)| !changes.contains_key(name));
    pairs.extend(
        changes.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), self::text(value))),
    );
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn with_headers(mut headers: http::HeaderMap, changes: &Map<String, Value>) -> http::HeaderMap {
    for (name, value) in changes {
        let name: HeaderName = name.parse().expect("a header");
        headers.remove(&name);
        if let Some(value) = value.as_str() {
            headers.insert(name, HeaderValue::from_str(value).expect("a value"));
        }
    }
    headers
}

fn changed(kind: &EventKind, change: &Change, known: &HashMap<&str, String>) -> EventKind {
    let filled = |changes: &Map<String, Value>| {
        filled(&Value::Object(changes.clone()), known).as_object().cloned().unwrap_or_default()
    };
    match kind {
        EventKind::HttpRequest { method, target, headers } => {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let path = change.path.as_deref().unwrap_or(path);
            let query = if change.query.is_empty() {
                query.to_owned()
            } else {
                with_pairs(query.as_bytes(), &filled(&change.query))
            };
            let target = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
            let headers = with_headers(headers.clone(), &filled(&change.header));
            EventKind::HttpRequest { method: method.clone(), target, headers }
        }
        EventKind::HttpBody { direction: Direction::ClientToServer, bytes } => {
            let bytes = match serde_json::from_slice::<Value>(bytes) {
                Ok(Value::Object(mut members)) => {
                    members.extend(filled(&change.body));
                    members.retain(|_, value| !value.is_null());
                    Value::Object(members).to_string()
                }
                _ => with_pairs(bytes, &filled(&change.form)),
            };
            EventKind::HttpBody { direction: Direction::ClientToServer, bytes: bytes.into() }
        }
        kind => kind.clone(),
    }
}

fn mutate(bad: &BadClient, traces: &[Trace], targets: &[(usize, Option<u32>)]) -> Vec<Trace> {
    let known = known(traces);
    let mut out: Vec<Trace> = Vec::new();
    for (index, trace) in traces.iter().enumerate() {
        let mut changed_trace = Trace::default();
        for event in trace.events() {
            let is_target = targets.contains(&(index, event.exchange));
            if !(is_target && bad.drop) {
                let kind = if is_target { changed(&event.kind, &bad.change, &known) } else { event.kind.clone() };
                changed_trace.push_event(Event { kind, ..event.clone() });
            }
        }
        out.push(changed_trace);
    }
    let is_about = |trace: &Trace| {
        trace
            .events()
            .any(|event| matches!(&event.kind, EventKind::HttpRequest { target, .. } if target.contains("well-known")))
    };
    let about = out.iter_mut().position(|trace| is_about(trace)).unwrap_or_default();
    for (added, number) in std::iter::repeat_n(&bad.then, bad.times).flatten().zip(900..) {
        add(&mut out[about], added, number, &known);
    }
    out
}

fn add(trace: &mut Trace, added: &Added, number: u32, known: &HashMap<&str, String>) {
    let at = trace.events().map(|event| event.at).max().unwrap_or_default();
    let object = |members: &Map<String, Value>| {
        filled(&Value::Object(members.clone()), known).as_object().cloned().unwrap_or_default()
    };
    let (method, path) = added.on.split_once(' ').expect("a method and a path");
    let query = with_pairs(b"", &object(&added.query));
    let mut headers = Map::from_iter([("host".to_owned(), json!(known["$ORIGIN"].trim_start_matches("http://")))]);
    headers.extend(object(&added.header));
    let body = match (&added.body, added.form.is_empty()) {
        (Value::Null, true) => None,
        (Value::Null, false) => Some(with_pairs(b"", &object(&added.form))),
        (body, _) => Some(filled(body, known).to_string()),
    };
    let sent = |direction, bytes: String| EventKind::HttpBody { direction, bytes: bytes.into() };
    let answer = Some(&added.answer).filter(|answer| !answer.is_null()).map(|answer| filled(answer, known).to_string());
    let kinds = [
        Some(EventKind::HttpRequest {
            method: method.parse().expect("a method"),
            target: if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") },
            headers: with_headers(http::HeaderMap::new(), &headers),
        }),
        body.map(|body| sent(Direction::ClientToServer, body)),
        Some(EventKind::HttpResponse {
            status: http::StatusCode::from_u16(added.status).expect("a status"),
            headers: with_headers(http::HeaderMap::new(), &object(&added.respond)),
        }),
        answer.map(|answer| sent(Direction::ServerToClient, answer)),
    ];
    kinds.into_iter().flatten().for_each(|kind| trace.push_event(Event { at, exchange: Some(number), kind }));
}

#[tokio::test]
async fn every_check_reports_its_bad_client_and_none_reports_ours() {
    let bases = bases().await;
    let mut wrong = Vec::new();
    for base in &bases {
        for id in violated(&evidence(&base.traces, base)) {
            wrong.push(format!("{} {}: our client violates {id}", base.act, base.version));
        }
    }
    let lines = include_str!("../bad-auth-clients.jsonl").lines().filter(|line| !line.is_empty());
    let bad_clients: Vec<BadClient> =
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    for bad in &bad_clients {
        let Some(check) = checks().iter().find(|check| check.id == bad.check) else {
            wrong.push(format!("{}: there is no such check", bad.check));
            continue;
        };
        let wanted = |base: &&Base| {
            base.act == bad.act
                && bad.version.is_none_or(|version| version == base.version)
                && check.levels.contains_key(&base.version)
        };
        for base in bases.iter().filter(wanted) {
            let targets = targets(bad, &base.traces);
            if bad.on.is_some() && targets.is_empty() {
                wrong.push(format!("{} {} {}: nothing to change", bad.check, bad.act, base.version));
                continue;
            }
            let traces = mutate(bad, &base.traces, &targets);
            let found = violated(&evidence(&traces, base));
            if found.contains(&bad.check) == bad.allowed {
                wrong.push(format!("{} {} {}: reported: {}", bad.check, bad.act, base.version, bad.allowed));
            }
            let is_other = |id: &&String| **id != bad.check && !bad.also.contains(id);
            let others: Vec<_> = found.iter().filter(is_other).collect();
            if !others.is_empty() && !bad.allowed {
                wrong.push(format!("{} {} {}: also {others:?}", bad.check, bad.act, base.version));
            }
        }
    }
    let seen: BTreeSet<_> = bad_clients.iter().filter(|bad| !bad.allowed).map(|bad| bad.check.as_str()).collect();
    let all = checks_of(Role::Client).map(|check| check.id.as_str()).filter(|id| id.starts_with("client-auth."));
    let without: Vec<_> = all.filter(|id| !seen.contains(id)).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(without.is_empty(), "without a bad client: {without:?}");
}
