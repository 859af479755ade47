//! What our client does with each server.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use rehearse_check::client::ACTS;
use rehearse_client::{
    Answer, AnswerScript, Answers, CallOptions, Endpoint, ServerParams, Session, SubscriptionFilter, Target, example,
};
use rehearse_conformance::{Evidence, Facts, Flow, Role};
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer, ServerRecorder},
};
use rehearse_protocol::{Closed, Event, EventKind, List, Protocol, Trace, Transport, Version};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::BadClient;

/// How long our client waits for what never comes.
const PATIENCE: Duration = Duration::from_millis(700);
/// How long it waits for any other answer: a busy machine is slow.
pub(super) const LONG_PATIENCE: Duration = Duration::from_secs(600);
/// How many mocks run at the same time.
const AT_ONCE: usize = 24;

/// A server that has everything.
pub(super) const EVERYTHING: &str = include_str!("../../../../../mock-servers/everything.yaml");
/// Servers that have everything, and what only a wire shows, beside those of the acts.
const MORE: [(&str, &str); 2] = [("everything", EVERYTHING), ("wire", include_str!("../../scripts/wire.yaml"))];

/// What a conformant client did with a server.
pub(super) struct Base {
    pub(super) server: &'static str,
    pub(super) transport: Transport,
    pub(super) version: Version,
    pub(super) traces: Vec<Trace>,
    endpoint: Option<String>,
    /// What the client did in the act `clean`.
    flow: Option<Flow>,
}

async fn base(name: &'static str, script: &'static str, transport: Transport, version: Version) -> Base {
    let source = rehearse_document::Source::new(name, script);
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let recorder = Arc::<ServerRecorder>::default();
    let listen = ListenOptions { recorder: Some(recorder.clone()), ..ListenOptions::default() };
    let server = MockServer::start(engine, listen).await.expect("starts");
    let is_silent = script.contains("do: hang") || name == "unfinished";
    let patience = if is_silent { PATIENCE } else { LONG_PATIENCE };
    for _ in 0..if name == "closed" { 3 } else { 1 } {
        work(&server, transport, version, patience).await;
    }
    recorder.close(&Closed::by_client("the client has ended"));
    let (traces, endpoint) = (server.traces(), server.url(transport));
    server.stop(Duration::ZERO).await;
    Base { server: name, transport, version, traces, endpoint, flow: None }
}

/// What our client does with all servers.
pub(super) async fn bases() -> &'static [Base] {
    static BASES: OnceCell<Vec<Base>> = OnceCell::const_new();
    BASES.get_or_init(record).await
}

async fn record() -> Vec<Base> {
    // Those have a test of their own.
    let acts = ACTS.iter().filter(|act| !act.script.contains("like: auth")).map(|act| (act.name, act.script));
    let all = MORE.into_iter().chain(acts).flat_map(|(name, script)| {
        let transports = [Transport::Http, Transport::Ws, Transport::Sse].into_iter();
        transports.flat_map(move |transport| {
            let versions =
                versions(name, script, transport).into_iter().filter(move |version| transport.carries(*version));
            versions.map(move |version| base(name, script, transport, version))
        })
    });
    // In any order, so that nothing waits for a server that is slow.
    let working = stream::iter(all.enumerate())
        .map(|(place, base)| async move { (place, tokio::spawn(base).await.expect("no panic")) });
    let mut bases: Vec<_> = working.buffer_unordered(AT_ONCE).collect().await;
    bases.sort_by_key(|(place, _)| *place);
    let mut bases: Vec<_> = bases.into_iter().map(|(_, base)| base).collect();
    // What is sent over a WebSocket is what a process gets.
    let piped: Vec<_> = bases.iter().filter(|base| base.transport == Transport::Ws).map(as_process).collect();
    bases.extend(piped);
    let flows: Vec<_> = bases
        .iter()
        .filter(|base| base.server == ACTS[0].name)
        .map(|base| (base.transport, base.version, Flow::new(&evidence(&base.traces, base, None))))
        .collect();
    for base in &mut bases {
        let is_same = |(transport, version, _): &&(Transport, Version, Flow)| {
            *transport == base.transport && *version == base.version
        };
        base.flow = flows.iter().find(is_same).map(|(.., flow)| flow.clone());
    }
    bases
}

/// The versions in which our client meets a server: the one that it has, the newest ones of both eras or that of
/// HTTP+SSE, or all.
fn versions(server: &str, script: &str, transport: Transport) -> Vec<Version> {
    let own = script.lines().find_map(|line| line.strip_prefix("protocol: ")?.parse::<Version>().ok());
    let is_whole = server == ACTS[0].name || MORE.iter().any(|(name, _)| *name == server);
    match own {
        Some(own) => vec![own],
        None if is_whole => Version::ALL.to_vec(),
        None if transport == Transport::Sse => vec![Version::V2024_11_05],
        None => vec![Version::LATEST_LEGACY, Version::LATEST],
    }
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
pub(super) async fn work(server: &MockServer, transport: Transport, version: Version, patience: Duration) {
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
    let options = || CallOptions::with_timeout(patience);
    let offered: Value = serde_json::from_str(session.info().capabilities.get()).expect("JSON");
    if offered["logging"].is_object() {
        let _ = session.set_log_level("info", options()).await;
    }
    // Every call of the act becomes a task.
    let are_tasks = server.engine().name() == "rehearse-tasks" && offered["extensions"].is_object();
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
        if USED.contains(&name) && !is_left_out && !are_tasks {
            let arguments = Some(example::object(&tool["inputSchema"]));
            let token = json!({ "progressToken": "p" }).as_object().cloned();
            let _ = session.call_tool(name, arguments, CallOptions { meta: token, ..options() }).await;
            if session.is_lost() {
                return;
            }
        }
    }
    if offered["extensions"]["io.modelcontextprotocol/tasks"].is_object() {
        let arguments = json!({ "filename": "x", "text": "x" }).as_object().cloned();
        let tool = if are_tasks { "echo" } else { "confirm_delete" };
        let _ = session.call_tool_as_task(tool, arguments, options()).await;
    }
    if offered["extensions"]["io.modelcontextprotocol/skills"].is_object() {
        let skills = session.list_skills(options()).await.expect("skills").items;
        let skill: Value = serde_json::from_str(skills[0].get()).expect("JSON");
        for file in skill["resources"].as_array().expect("files") {
            let _ = session.read_resource(file["uri"].as_str().expect("a URI"), options()).await;
        }
    }
    if offered["resources"].is_object() {
        let _ = session.list(List::ResourceTemplates, options()).await;
        let Ok(listed) = session.list(List::Resources, options()).await else { return };
        let Some(first) = listed.items.first() else { return };
        let first: Value = serde_json::from_str(first.get()).expect("JSON");
        let uri = first["uri"].as_str().expect("a URI");
        let _ = session.read_resource(uri, options()).await;
        if offered["resources"]["subscribe"] == true {
            let filter = SubscriptionFilter { uris: vec![uri.to_owned()], ..SubscriptionFilter::default() };
            let _ = session.listen(&filter, options()).await;
            let _ = session.unsubscribe(uri, options()).await;
        }
    }
    if offered["prompts"].is_object() {
        let _ = session.list(List::Prompts, options()).await;
        let arguments = json!({ "arg1": "x", "arg2": "y" }).as_object().cloned();
        let _ = session.get_prompt("test_prompt_with_arguments", arguments, options()).await;
    }
    session.close().await;
}

pub(super) fn evidence<'t>(traces: &'t [Trace], base: &Base, bad: Option<&BadClient>) -> Evidence<'t> {
    let facts = Facts {
        role: Role::Client,
        acts: vec![base.server.to_owned()],
        flow: base.flow.clone(),
        exit_code: Some(bad.and_then(|bad| bad.exit).unwrap_or_default()).filter(|_| !bad.is_some_and(|bad| bad.hangs)),
        fetched: Facts::fetched(traces),
        has_handshake: bad.is_some_and(|bad| bad.handshake),
        has_both_eras: bad.is_some_and(|bad| bad.both_eras),
        endpoint: base.endpoint.clone(),
        is_local: true,
        ..Facts::default()
    };
    Evidence::new(&traces.iter().collect::<Vec<_>>(), base.version, base.transport, facts)
}
