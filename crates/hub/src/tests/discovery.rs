//! Discovery: connecting, listing, registering.

use super::*;

#[tokio::test]
async fn tools_are_registered_in_the_order_of_the_config() {
    let waits = Arc::new(Notify::new());
    let held = Arc::new(Mutex::new(Vec::<String>::new()));
    let (hold, known) = (held.clone(), waits.clone());
    // The first server responds only after the second.
    let (address, mut listener) = pipe::listen();
    let slow = tokio::spawn(async move {
        known.notified().await;
        while let Some(stream) = listener.accept().await {
            let (reader, writer) = tokio::io::split(stream);
            let (mut reader, mut writer) =
                (rehearse_net::LineReader::new(reader), rehearse_net::LineWriter::new(writer));
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
            hold.lock().push("quick listed".into());
            done.notify_one();
        }
        answer("quick", &["echo", "list"], message)
    });
    let hub = Hub::new([member("slow", &Target::Memory(address)), member("quick", &target(&quick))], options());
    let discovery = hub.discover().await.expect("discovers");
    assert_eq!(names(&hub), ["slow/echo", "quick/list"]);
    assert_eq!(discovery.registry.notices.len(), 1);
    assert_eq!(text(&hub, "echo").await.expect("a result"), "slow: echo");
    assert_eq!(states(&hub), [ConnectionState::Connected, ConnectionState::Connected]);
    hub.close().await;
    assert_eq!(states(&hub), [ConnectionState::NotConnected, ConnectionState::NotConnected]);
    slow.abort();
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_skipped_or_fatal() {
    let good = server("good", &["echo"]);
    // The first hangs up only after the last could not be reached.
    let (hear, mut heard) = mpsc::unbounded_channel();
    let last = Target::Memory(pipe::listen().0);
    let late = in_memory(move |_| {
        let _ = hear.send(());
        vec!["hang up".into()]
    });
    let hub =
        Hub::new([member("bad", &target(&late)), member("good", &target(&good)), member("worse", &last)], options());
    let discovery = hub.discover().await.expect("discovers");
    heard.recv().await.expect("was asked");
    let unreachable: Vec<_> = discovery.unreachable.iter().map(|(server, _)| server.to_string()).collect();
    assert_eq!(unreachable, ["bad", "worse"]);
    assert_eq!((names(&hub), states(&hub)[1]), (vec!["good/echo".to_owned()], ConnectionState::Connected));
    hub.close().await;
    let hub = Hub::new([member("bad", &unreachable_target()), member("good", &target(&good))], options());
    hub.discover().await.expect("discovers");
    assert_eq!(states(&hub), [ConnectionState::Failed, ConnectionState::Connected]);
    let (_, status) = &hub.status()[0];
    assert!(status.last_error.as_deref().is_some_and(|error| error.contains("cannot reach")), "{status:?}");
    hub.close().await;

    let fatal = || HubOptions { unreachable: Unreachable::Fatal, ..options() };
    let hub = Hub::new([member("bad", &target(&late)), member("worse", &last)], fatal());
    let error = hub.discover().await.expect_err("fatal").to_string();
    assert!(error.starts_with("cannot connect to server bad: "), "the first of the config: {error}");
    hub.close().await;
    let hub = Hub::new([member("good", &target(&good)), member("bad", &unreachable_target())], fatal());
    let error = hub.discover().await.expect_err("fatal").to_string();
    assert!(error.starts_with("cannot connect to server bad: cannot reach"), "{error}");
    assert_eq!(states(&hub)[0], ConnectionState::NotConnected);
    hub.close().await;
}

#[tokio::test]
async fn a_lazy_hub_connects_on_first_use() {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    let server = in_memory(move |message| {
        count.fetch_add(usize::from(message["method"] == "initialize"), Ordering::Relaxed);
        answer("s", &["echo"], message)
    });
    let hub = Hub::new([member("s", &target(&server))], HubOptions { connect: ConnectMode::Lazy, ..options() });
    assert_eq!((states(&hub)[0], connections.load(Ordering::Relaxed)), (ConnectionState::NotConnected, 0));
    assert_eq!(states(&hub)[0].to_string(), "Not connected");
    hub.connect("s").await.expect("connects");
    hub.connect("s").await.expect("stays connected");
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    assert_eq!(names(&hub), ["s/echo"]);
    hub.disconnect("s").await.expect("disconnects");
    assert_eq!((names(&hub).len(), states(&hub)[0]), (0, ConnectionState::NotConnected));
    assert!(matches!(text(&hub, "echo").await, Err(CallError::UnknownTool { .. })));
    assert!(matches!(hub.connect("t").await, Err(HubError::UnknownServer(_))));
    hub.close().await;
}

#[tokio::test]
async fn a_disabled_server_is_not_connected_to_until_it_is_enabled() {
    let server = server("s", &["echo"]);
    let off = HubServer { is_enabled: false, ..member("s", &target(&server)) };
    let hub = Hub::new([off], options());
    assert!(hub.discover().await.expect("discovers").registry.tools().is_empty());
    assert!(matches!(hub.connect("s").await, Err(HubError::Disabled(_))));
    hub.enable("s").await.expect("connects");
    assert_eq!(text(&hub, "echo").await.expect("a result"), "s: echo");
    hub.disable("s").await.expect("disables");
    assert_eq!((names(&hub).len(), states(&hub)[0]), (0, ConnectionState::Disabled));
    hub.close().await;
}

#[tokio::test]
async fn the_server_gets_the_original_name_of_a_tool() {
    let (one, two) = (server("one", &["echo"]), server("two", &["echo"]));
    let servers = || [member("one", &target(&one)), member("two", &target(&two))];
    let hub = Hub::new(servers(), HubOptions { naming: Naming::Literal("{tool}@{server}"), ..options() });
    hub.discover().await.expect("discovers");
    assert_eq!(text(&hub, "echo@two").await.expect("a result"), "two: echo");
    let error = text(&hub, "echo@tow").await.expect_err("no such tool").to_string();
    assert_eq!(error, r#"unknown tool "echo@tow"; did you mean "echo@two"?"#);
    hub.close().await;
    let hub = Hub::new(servers(), HubOptions { duplicates: Duplicates::Rejected, ..options() });
    assert!(matches!(hub.discover().await, Err(HubError::Duplicate(_))));
    hub.close().await;
}

#[tokio::test]
async fn a_failed_listing_keeps_the_received_pages() {
    let server = in_memory(|message| match (message["method"].as_str(), message["params"]["cursor"].as_str()) {
        (Some("tools/list"), None) => {
            vec![result(message, &json!({ "tools": definitions(&["a"]), "nextCursor": "2" }).to_string())]
        }
        (Some("tools/list"), _) => vec![rehearse_testing::error(message, -32603)],
        _ => answer("s", &[], message),
    });
    let hub = Hub::new([member("s", &target(&server))], options());
    let discovery = hub.discover().await.expect("discovers");
    assert_eq!((discovery.incomplete.len(), names(&hub)), (1, vec!["s/a".to_owned()]));
    assert_eq!(hub.status()[0].1.tools, Some(1));
    hub.close().await;
}

#[tokio::test]
async fn many_servers_are_discovered_at_once_and_all_are_closed() {
    let servers: Vec<_> = (0..100).map(|_| server("s", &["echo"])).collect();
    let servers = servers.iter().enumerate().map(|(index, server)| member(&format!("s{index}"), &target(server)));
    let naming = Naming::Qualified("{server}_{tool}");
    let hub = Hub::new(servers, HubOptions { naming, ..options() });
    let discovery = hub.discover().await.expect("discovers");
    assert_eq!(discovery.registry.tools().len(), 100);
    let calls = (0..100).map(|index| {
        let hub = hub.clone();
        async move { text(&hub, &format!("s{index}_echo")).await.expect("a result") }
    });
    assert_eq!(futures_util::future::join_all(calls).await, vec!["s: echo"; 100]);
    hub.close().await;
    assert!(states(&hub).iter().all(|state| *state == ConnectionState::NotConnected));
}

#[tokio::test]
async fn a_server_that_declares_no_tools_is_not_asked_for_them() {
    let bare = in_memory(|message| match message["method"].as_str() {
        Some("initialize") => {
            let identity = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } });
            vec![result(message, &identity.to_string())]
        }
        // A request would fail.
        Some("tools/list") => vec![result(message, "{}")],
        _ => Vec::new(),
    });
    let hub = Hub::new([member("bare", &target(&bare))], options());
    let found = hub.discover().await.expect("discovers");
    assert!(found.incomplete.is_empty(), "{:?}", found.incomplete);
    assert_eq!(hub.status()[0].1.tools, Some(0));
    hub.close().await;
}

#[tokio::test]
async fn a_server_can_override_the_protocol_version_of_the_hub() {
    let one = server("one", &["echo"]);
    let mut older = member("one", &target(&one));
    older.protocol = Some(Protocol::Exact(Version::V2026_07_28));
    let hub = Hub::new([older], options());
    let version =
        hub.with_session("one", async |session, _| session.info().version.to_string()).await.expect("connects");
    assert_eq!(version, "2026-07-28");
    hub.close().await;
}

/// A server without responses.
fn silent_server() -> Server {
    in_memory(|_| Vec::new())
}

#[tokio::test]
async fn a_name_is_settled_when_no_preferred_server_may_have_it() {
    let (first, good, last) = (silent_server(), server("good", &["echo"]), silent_server());
    let bare = |duplicates| HubOptions { duplicates, naming: Naming::Bare, ..options() };
    let dotted = |duplicates| HubOptions { naming: Naming::Literal("{server}.{tool}"), ..bare(duplicates) };
    let fatal = HubOptions { unreachable: Unreachable::Fatal, ..dotted(Duplicates::FirstWins) };
    for (options, name, expected) in [
        (bare(Duplicates::FirstWins), "echo", [false, true, false, true]),
        (bare(Duplicates::Qualified), "echo", [false, true, false, true]),
        (bare(Duplicates::LastWins), "echo", [false, false, true, true]),
        (bare(Duplicates::Rejected), "echo", [false, false, false, true]),
        (bare(Duplicates::FirstWins), "none", [false; 4]),
        (dotted(Duplicates::FirstWins), "good.echo", [true; 4]),
        (dotted(Duplicates::Rejected), "good.echo", [true; 4]),
        (fatal, "good.echo", [false; 4]),
    ] {
        let what = format!("{name} with {options:?}");
        let servers = [("first", &first), ("good", &good), ("last", &last)];
        let hub = Hub::new(servers.map(|(name, server)| member(name, &target(server))), options);
        hub.connect("good").await.expect("connects");
        let over: [&[&str]; 4] = [&[], &["first"], &["last"], &["first", "last"]];
        let certain = over.map(|over| hub.is_settled(name, |server| over.contains(&server)));
        assert_eq!(certain, expected, "{what}");
        if name == "echo" {
            hub.disable("first").await.expect("a server");
            hub.disable("last").await.expect("a server");
            assert!(hub.is_settled(name, |_| false), "{what}: disabled servers do not matter");
        }
        hub.close().await;
    }
}

#[tokio::test]
async fn finding_a_name_does_not_wait_for_irrelevant_servers() {
    let (good, silent) = (server("good", &["echo"]), silent_server());
    let dotted = HubOptions { naming: Naming::Literal("{server}.{tool}"), ..options() };
    let hub = Hub::new([member("silent", &target(&silent)), member("good", &target(&good))], dotted);
    let found = hub.discover_for("good.echo").await.expect("discovers");
    assert!(found.registry.get("good.echo").is_some() && found.unreachable.is_empty());
    assert_eq!(states(&hub), [ConnectionState::NotConnected, ConnectionState::Connected]);
    hub.close().await;

    let bare = || HubOptions { naming: Naming::Bare, ..options() };
    let hub = Hub::new([member("good", &target(&good)), member("silent", &target(&silent))], bare());
    hub.discover_for("echo").await.expect("discovers");
    assert_eq!(states(&hub), [ConnectionState::Connected, ConnectionState::Connecting]);
    assert!(hub.take_unsolicited().is_empty(), "pending connections are skipped");
    hub.close().await;
    assert_eq!(states(&hub), [ConnectionState::NotConnected, ConnectionState::NotConnected]);

    // An unknown name needs the lists of all servers.
    let other = server("other", &["list"]);
    let dotted = HubOptions { naming: Naming::Literal("{server}.{tool}"), ..options() };
    let hub = Hub::new(
        [member("good", &target(&good)), member("gone", &unreachable_target()), member("other", &target(&other))],
        dotted,
    );
    let found = hub.discover_for("list").await.expect("discovers");
    assert_eq!((names(&hub).len(), found.unreachable.len()), (2, 1));
    hub.close().await;
}

#[test]
fn one_server_at_a_time_is_the_rule_of_some_programs() {
    let at_once = |dialect: &str| {
        let dialect = rehearse_client_configs::dialect::by_name(dialect).expect(dialect);
        HubOptions::from_policy(&dialect.policy).concurrency.get()
    };
    assert_eq!(["cpe", "mcpilot", "cursor"].map(at_once), [1, 1, 8]);
}
