//! Hubs of small scripted servers.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc};

use super::*;
use crate::client::{
    CallOptions, Protocol, ServerConfig, Target, ToolOutcome, memory,
    tests::server::{Server, greet, in_memory, result},
};
use crate::config::policy::Naming;
use crate::{config::policy::Duplicates, wire::Version};

/// A legacy server with tools of these names, which answer with their own and the server's name.
fn server(name: &'static str, tools: &'static [&'static str]) -> Server {
    in_memory(move |message| answer(name, tools, message))
}

fn answer(name: &str, tools: &[&str], message: &Value) -> Vec<String> {
    match message["method"].as_str() {
        Some("tools/list") => vec![result(message, &json!({ "tools": definitions(tools) }).to_string())],
        Some("tools/call") => {
            let text = format!("{name}: {}", message["params"]["name"].as_str().unwrap_or_default());
            vec![result(message, &json!({ "content": [{ "type": "text", "text": text }] }).to_string())]
        }
        Some("ping") => vec![result(message, "{}")],
        _ => greet(message),
    }
}

fn definitions(tools: &[&str]) -> Vec<Value> {
    let definition = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": name.starts_with("read") } });
    tools.iter().map(definition).collect()
}

fn member(name: &str, target: &Target) -> Member {
    Member::new(ServerConfig::new(name, target.clone()))
}

fn options() -> HubOptions {
    HubOptions { protocol: Protocol::Exact(Version::V2025_11_25), ..HubOptions::default() }
}

async fn text(hub: &Hub, name: &str) -> Result<String, CallError> {
    hub.call(name, None, CallOptions::default()).await.map(|outcome: ToolOutcome| outcome.text())
}

fn names(hub: &Hub) -> Vec<String> {
    hub.registry().tools().iter().map(|tool| format!("{}/{}", tool.server, tool.name)).collect()
}

fn states(hub: &Hub) -> Vec<State> {
    hub.status().into_iter().map(|(_, status)| status.state).collect()
}

/// An address at which nobody listens.
fn nobody() -> Target {
    Target::Memory(memory::listen().0)
}

#[tokio::test]
async fn tools_are_registered_in_the_order_of_the_config_whoever_answers_first() {
    let waits = Arc::new(Notify::new());
    let held = Arc::new(Mutex::new(Vec::<String>::new()));
    let (hold, known) = (held.clone(), waits.clone());
    // The first server answers nothing before the second has.
    let (address, mut listener) = memory::listen();
    let slow = tokio::spawn(async move {
        known.notified().await;
        while let Some(stream) = listener.accept().await {
            let (reader, writer) = tokio::io::split(stream);
            let (mut reader, mut writer) =
                (crate::transport::LineReader::new(reader), crate::transport::LineWriter::new(writer));
            while let Ok(Some(Ok(line))) = reader.next().await {
                let message = serde_json::from_slice(&line).unwrap_or_default();
                for line in answer("slow", &["echo"], &message) {
                    let _ = writer.write(line.as_bytes()).await;
                }
            }
        }
    });
    let done = waits.clone();
    let quick = in_memory(move |message| {
        if message["method"] == "tools/list" {
            hold.lock().expect("a lock").push("quick listed".into());
            done.notify_one();
        }
        answer("quick", &["echo", "list"], message)
    });
    let hub = Hub::new([member("slow", &Target::Memory(address)), member("quick", &quick.target)], options());
    let discovery = hub.discover().await.expect("discovers");
    assert_eq!(names(&hub), ["slow/echo", "quick/list"]);
    assert_eq!(discovery.registry.notices.len(), 1);
    assert_eq!(text(&hub, "echo").await.expect("a result"), "slow: echo");
    assert_eq!(states(&hub), [State::Connected, State::Connected]);
    hub.close().await;
    assert_eq!(states(&hub), [State::NotConnected, State::NotConnected]);
    slow.abort();
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_skipped_or_fatal() {
    let good = server("good", &["echo"]);
    let hub = Hub::new([member("bad", &nobody()), member("good", &good.target)], options());
    let discovery = hub.discover().await.expect("discovers");
    assert_eq!(discovery.unreachable.len(), 1);
    assert_eq!((names(&hub), states(&hub)), (vec!["good/echo".to_owned()], vec![State::Failed, State::Connected]));
    let (_, status) = &hub.status()[0];
    assert!(status.last_error.as_deref().is_some_and(|error| error.contains("cannot reach")), "{status:?}");
    hub.close().await;

    let fatal = HubOptions { unreachable: Unreachable::Fatal, ..options() };
    let hub = Hub::new([member("good", &good.target), member("bad", &nobody())], fatal);
    let error = hub.discover().await.expect_err("fatal").to_string();
    assert!(error.starts_with("server bad: connecting: cannot reach"), "{error}");
    assert_eq!(states(&hub)[0], State::NotConnected);
    hub.close().await;
}

#[tokio::test]
async fn a_lazy_hub_connects_when_it_is_needed_and_says_so_until_then() {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    let server = in_memory(move |message| {
        count.fetch_add(usize::from(message["method"] == "initialize"), Ordering::Relaxed);
        answer("s", &["echo"], message)
    });
    let hub = Hub::new([member("s", &server.target)], HubOptions { connect: Connect::Lazy, ..options() });
    assert_eq!((states(&hub)[0], connections.load(Ordering::Relaxed)), (State::NotConnected, 0));
    assert_eq!(states(&hub)[0].to_string(), "Not connected yet");
    hub.connect("s").await.expect("connects");
    hub.connect("s").await.expect("stays connected");
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    assert_eq!(names(&hub), ["s/echo"]);
    hub.disconnect("s").await.expect("disconnects");
    assert_eq!((names(&hub).len(), states(&hub)[0]), (0, State::NotConnected));
    assert!(matches!(text(&hub, "echo").await, Err(CallError::NoTool { .. })));
    assert!(matches!(hub.connect("t").await, Err(HubError::NoServer(_))));
    hub.close().await;
}

#[tokio::test]
async fn a_disabled_server_is_not_connected_to_until_it_is_enabled() {
    let server = server("s", &["echo"]);
    let off = Member { is_enabled: false, ..member("s", &server.target) };
    let hub = Hub::new([off], options());
    assert!(hub.discover().await.expect("discovers").registry.tools().is_empty());
    assert!(matches!(hub.connect("s").await, Err(HubError::Disabled(_))));
    hub.enable("s").await.expect("connects");
    assert_eq!(text(&hub, "echo").await.expect("a result"), "s: echo");
    hub.disable("s").await.expect("switches off");
    assert_eq!((names(&hub).len(), states(&hub)[0]), (0, State::Disabled));
    hub.close().await;
}

#[tokio::test]
async fn the_server_gets_its_own_name_of_a_tool_and_only_one_of_each_is_registered() {
    let (one, two) = (server("one", &["echo"]), server("two", &["echo"]));
    let members = || [member("one", &one.target), member("two", &two.target)];
    let hub = Hub::new(members(), HubOptions { naming: Naming::Literal("{tool}@{server}"), ..options() });
    hub.discover().await.expect("discovers");
    assert_eq!(text(&hub, "echo@two").await.expect("a result"), "two: echo");
    let error = text(&hub, "echo@tow").await.expect_err("no such tool").to_string();
    assert_eq!(error, r#"there is no tool "echo@tow"; did you mean "echo@two"?"#);
    hub.close().await;
    let hub = Hub::new(members(), HubOptions { duplicates: Duplicates::Rejected, ..options() });
    assert!(matches!(hub.discover().await, Err(HubError::Duplicate(_))));
    hub.close().await;
}

#[tokio::test]
async fn a_call_needs_an_approval_unless_the_config_gives_it() {
    let server = server("s", &["a", "b"]);
    let listed = Member { always_allow: vec!["a".into()], ..member("s", &server.target) };
    let hub = Hub::new([listed], HubOptions { approval: Approval::Refused, ..options() });
    hub.discover().await.expect("discovers");
    assert_eq!(text(&hub, "a").await.expect("allowed"), "s: a");
    let error = text(&hub, "b").await.expect_err("refused").to_string();
    assert_eq!(error, r#"the tool "b" needs an approval, and nobody is there to give it"#);
    hub.close().await;

    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let ask: Approver = Arc::new(move |request: Request| {
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        Box::pin(async move {
            match (first, &*request.tool.original) {
                (true, _) => Decision::Deny,
                _ => Decision::AllowAlways,
            }
        })
    });
    let hub = Hub::new([member("s", &server.target)], HubOptions { approval: Approval::Ask(ask), ..options() });
    hub.discover().await.expect("discovers");
    assert_eq!(text(&hub, "a").await.expect_err("denied").to_string(), "Tool execution was denied by user.");
    text(&hub, "a").await.expect("allowed for good");
    text(&hub, "a").await.expect("not asked again");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    hub.close().await;
}

#[tokio::test]
async fn the_result_of_a_reading_tool_stands_for_a_while_and_calls_are_counted() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let server = in_memory(move |message| {
        count.fetch_add(usize::from(message["method"] == "tools/call"), Ordering::Relaxed);
        answer("s", &["read", "write"], message)
    });
    let hub =
        Hub::new([member("s", &server.target)], HubOptions { result_ttl: Some(Duration::from_secs(60)), ..options() });
    hub.discover().await.expect("discovers");
    let call = |tool: &'static str, arguments: Value| {
        let (hub, arguments) = (hub.clone(), arguments.as_object().cloned());
        async move { hub.call(tool, arguments, CallOptions::default()).await.expect("a result") }
    };
    let first = call("read", json!({ "a": 1, "b": { "c": 1, "d": 2 } })).await;
    let again = call("read", json!({ "b": { "d": 2, "c": 1 }, "a": 1 })).await;
    assert_eq!((first.raw.get(), calls.load(Ordering::Relaxed)), (again.raw.get(), 1));
    call("read", json!({ "a": 2 })).await;
    call("write", json!({})).await;
    call("write", json!({})).await;
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    let usage: Vec<_> = hub.usage().into_iter().map(|(_, tool, usage)| (tool, usage.calls, usage.stored)).collect();
    assert_eq!(usage, [("read".to_owned(), 3, 1), ("write".to_owned(), 2, 0)]);
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_has_its_own_timeout() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("tools/call") => Vec::new(),
        _ => answer("s", &["slow"], message),
    });
    let mut slow = member("s", &server.target);
    slow.tool_timeouts.insert("slow".into(), Duration::from_secs(3));
    let hub = Hub::new([slow], options());
    hub.discover().await.expect("discovers");
    let started = tokio::time::Instant::now();
    assert!(matches!(text(&hub, "slow").await, Err(CallError::Failed(Failure::Timeout(_)))));
    assert_eq!(started.elapsed().as_secs(), 3);
    hub.close().await;
}

/// A server that changes its list, hangs up, and says what it was told.
fn changing() -> (Server, mpsc::UnboundedReceiver<String>) {
    let (seen, methods) = mpsc::unbounded_channel();
    let mut lists = 0;
    let server = in_memory(move |message| {
        let method = message["method"].as_str().unwrap_or_default();
        let _ = seen.send(method.to_owned());
        match (method, message["params"]["name"].as_str()) {
            ("initialize", _) => {
                let capabilities = json!({ "tools": { "listChanged": true } });
                let info = json!({ "name": "s", "version": "1" });
                let greeting =
                    json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info });
                vec![result(message, &greeting.to_string())]
            }
            ("tools/list", _) => {
                lists += 1;
                let tools: &[&str] = if lists == 1 { &["change", "die", "never"] } else { &["other", "die", "never"] };
                vec![result(message, &json!({ "tools": definitions(tools) }).to_string())]
            }
            ("tools/call", Some("change")) => {
                let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned();
                [changed].into_iter().chain(answer("s", &[], message)).collect()
            }
            ("tools/call", Some("die")) => vec!["hang up".into()],
            ("tools/call", Some("never")) => Vec::new(),
            _ => answer("s", &[], message),
        }
    });
    (server, methods)
}

/// Waits for an event.
async fn until(events: &mut tokio::sync::broadcast::Receiver<Event>, wanted: impl Fn(&Event) -> bool) {
    while !wanted(&events.recv().await.expect("an event")) {}
}

#[tokio::test]
async fn a_changed_list_changes_the_registry() {
    let (server, _methods) = changing();
    let hub = Hub::new([member("s", &server.target)], options());
    hub.discover().await.expect("discovers");
    let mut events = hub.events();
    text(&hub, "change").await.expect("a result");
    until(&mut events, |event| matches!(event, Event::Tools)).await;
    assert_eq!(names(&hub), ["s/other", "s/die", "s/never"]);
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_broke_is_made_again_as_the_options_say() {
    let (server, _methods) = changing();
    let hub = Hub::new([member("s", &server.target)], options());
    hub.discover().await.expect("discovers");
    let mut events = hub.events();
    assert!(matches!(text(&hub, "die").await, Err(CallError::Failed(Failure::Disconnected { .. }))));
    until(&mut events, |event| matches!(event, Event::Broke { .. })).await;
    assert_eq!(states(&hub), [State::Failed]);
    hub.close().await;

    let retry = Retry { attempts: 2, pause: Duration::from_secs(1), longest: Duration::from_secs(1) };
    let (server, _methods) = changing();
    let hub = Hub::new([member("s", &server.target)], HubOptions { retry, ..options() });
    hub.discover().await.expect("discovers");
    let mut events = hub.events();
    assert!(matches!(text(&hub, "die").await, Err(CallError::Failed(Failure::Disconnected { .. }))));
    until(&mut events, |event| matches!(event, Event::Tools)).await;
    assert_eq!((states(&hub)[0], names(&hub)[0].as_str()), (State::Connected, "s/other"));
    hub.close().await;
}

#[tokio::test]
async fn closing_cancels_the_calls_under_way_on_the_wire() {
    let (server, mut methods) = changing();
    let hub = Hub::new([member("s", &server.target)], options());
    hub.discover().await.expect("discovers");
    let calling = tokio::spawn({
        let hub = hub.clone();
        async move { text(&hub, "never").await }
    });
    while methods.recv().await.as_deref() != Some("tools/call") {}
    hub.close().await;
    assert!(matches!(calling.await.expect("ends"), Err(CallError::Failed(Failure::Cancelled))));
    assert_eq!(methods.recv().await.as_deref(), Some("notifications/cancelled"));
    let error = hub.connect("s").await.expect_err("closed").to_string();
    assert!(error.ends_with("given up"), "{error}");
}

#[tokio::test]
async fn a_changed_config_restarts_only_what_changed() {
    let (one, two, three) = (server("one", &["a"]), server("two", &["b"]), server("three", &["c"]));
    let hub = Hub::new([member("one", &one.target), member("two", &two.target)], options());
    hub.discover().await.expect("discovers");
    let mut renamed = member("two", &two.target);
    renamed.config.timeouts.call = Duration::from_secs(5);
    let allowed = Member { is_trusted: true, ..member("one", &one.target) };
    let reloaded = hub.reload([member("three", &three.target), renamed, allowed]).await.expect("reloads");
    let told = |names: &[Arc<str>]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!((told(&reloaded.added), told(&reloaded.restarted)), (vec!["three".into()], vec!["two".into()]));
    assert_eq!(names(&hub), ["three/c", "two/b", "one/a"]);
    assert!(hub.member("one").expect("there").is_trusted);
    let reloaded = hub.reload([member("one", &one.target)]).await.expect("reloads");
    assert_eq!((told(&reloaded.removed), names(&hub)), (vec!["three".into(), "two".into()], vec!["one/a".to_owned()]));
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_any_more_counts_as_gone() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("ping") => Vec::new(),
        _ => answer("s", &["echo"], message),
    });
    let health = Some(Duration::from_secs(30));
    let hub = Hub::new([member("s", &server.target)], HubOptions { health, ..options() });
    hub.discover().await.expect("discovers");
    let mut events = hub.events();
    until(&mut events, |event| matches!(event, Event::Broke { .. })).await;
    assert_eq!(states(&hub), [State::Failed]);
    let (_, status) = &hub.status()[0];
    assert_eq!(status.last_error.as_deref(), Some("ping was not answered"));
    assert_eq!(text(&hub, "echo").await.expect("connects again"), "s: echo");
    hub.close().await;
}

#[tokio::test]
async fn a_listing_that_fails_keeps_what_came() {
    let server = in_memory(|message| match (message["method"].as_str(), message["params"]["cursor"].as_str()) {
        (Some("tools/list"), None) => {
            vec![result(message, &json!({ "tools": definitions(&["a"]), "nextCursor": "2" }).to_string())]
        }
        (Some("tools/list"), _) => vec![crate::client::tests::server::error(message, -32603)],
        _ => answer("s", &[], message),
    });
    let hub = Hub::new([member("s", &server.target)], options());
    let discovery = hub.discover().await.expect("discovers");
    assert_eq!((discovery.unlisted.len(), names(&hub)), (1, vec!["s/a".to_owned()]));
    assert_eq!(hub.status()[0].1.tools, Some(1));
    hub.close().await;
}

#[tokio::test]
async fn many_servers_are_discovered_at_once_and_all_are_closed() {
    let servers: Vec<_> = (0..100).map(|_| server("s", &["echo"])).collect();
    let members = servers.iter().enumerate().map(|(index, server)| member(&format!("s{index}"), &server.target));
    let naming = Naming::Qualified("{server}_{tool}");
    let hub = Hub::new(members, HubOptions { naming, ..options() });
    let discovery = hub.discover().await.expect("discovers");
    assert_eq!(discovery.registry.tools().len(), 100);
    let calls = (0..100).map(|index| {
        let hub = hub.clone();
        async move { text(&hub, &format!("s{index}_echo")).await.expect("a result") }
    });
    assert_eq!(futures_util::future::join_all(calls).await, vec!["s: echo"; 100]);
    hub.close().await;
    assert!(states(&hub).iter().all(|state| *state == State::NotConnected));
}

#[tokio::test]
async fn arguments_and_annotations_pass_as_they_are() {
    let (seen, mut messages) = mpsc::unbounded_channel();
    let server = in_memory(move |message| {
        let _ = seen.send(message.clone());
        answer("s", &["read", "write"], message)
    });
    let hub = Hub::new([member("s", &server.target)], options());
    hub.discover().await.expect("discovers");
    let arguments = Map::from_iter([("é".to_owned(), json!([1.5, null]))]);
    hub.call("write", Some(arguments), CallOptions::default()).await.expect("a result");
    let sent = std::iter::from_fn(|| messages.try_recv().ok()).find(|message| message["method"] == "tools/call");
    assert_eq!(sent.expect("a call")["params"]["arguments"], json!({ "é": [1.5, null] }));
    let read_only: Vec<_> = hub.registry().tools().iter().map(|tool| tool.annotations.read_only).collect();
    assert_eq!(read_only, [true, false]);
    hub.close().await;
}

#[tokio::test]
async fn work_over_a_session_connects_once_and_is_dropped_when_it_does_not_heed_the_end() {
    let one = server("one", &["echo"]);
    let taps = Arc::new(Mutex::new(Vec::new()));
    let sink = taps.clone();
    let records: RecordSink = Arc::new(move |server, tap| {
        assert!(tap.is_empty(), "nothing has gone over it yet");
        sink.lock().expect("a lock").push((server.clone(), tap.clone()));
    });
    let hub = Hub::new([member("one", &one.target)], HubOptions { records: Some(records), ..options() });
    for _ in 0..2 {
        let name = hub.over("one", async |session, _| session.name().to_owned()).await.expect("connects");
        assert_eq!(name, "one");
    }
    let (server, tap) = taps.lock().expect("a lock")[..].first().cloned().expect("one connection");
    assert_eq!((&*server, taps.lock().expect("a lock").len()), ("one", 1));
    let asked =
        |method: &str| tap.since(0).iter().any(|frame| frame.message().is_ok_and(|it| it.method() == Some(method)));
    assert!(asked("initialize") && !asked("tools/list"));
    assert!(hub.listed("one").expect("a server").is_empty());
    assert!(matches!(hub.over("two", async |_, _| ()).await, Err(HubError::NoServer(_))));

    let (begun, begins) = tokio::sync::oneshot::channel();
    let deaf = hub.over("one", async |_, _| {
        let _ = begun.send(());
        std::future::pending::<()>().await;
    });
    let end = async {
        begins.await.expect("begins");
        hub.close().await;
    };
    let (outcome, ()) = tokio::join!(deaf, end);
    assert!(matches!(outcome, Err(HubError::Unreachable { error, .. }) if matches!(*error, ConnectError::GivenUp)));
}

#[tokio::test]
async fn a_server_that_declares_no_tools_is_not_asked_for_them() {
    let bare = in_memory(|message| match message["method"].as_str() {
        Some("initialize") => {
            let identity = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } });
            vec![result(message, &identity.to_string())]
        }
        // It would be a failure to be told.
        Some("tools/list") => vec![result(message, "{}")],
        _ => Vec::new(),
    });
    let hub = Hub::new([member("bare", &bare.target)], options());
    let found = hub.discover().await.expect("discovers");
    assert!(found.unlisted.is_empty(), "{:?}", found.unlisted);
    assert_eq!(hub.status()[0].1.tools, Some(0));
    hub.close().await;
}

#[tokio::test]
async fn a_member_may_be_asked_for_another_version_than_the_hub_asks_for() {
    let one = server("one", &["echo"]);
    let mut older = member("one", &one.target);
    older.protocol = Some(Protocol::Exact(Version::V2026_07_28));
    let hub = Hub::new([older], options());
    let version = hub.over("one", async |session, _| session.info().version.to_string()).await.expect("connects");
    assert_eq!(version, "2026-07-28");
    hub.close().await;
}
