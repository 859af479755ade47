//! Calls: approval, caching, cancellation, lost sessions.

use super::*;

#[tokio::test]
async fn a_call_needs_approval_unless_the_config_allows_it() {
    let server = server("s", &["a", "b"]);
    let listed = HubServer { always_allow: vec!["a".into()], ..member("s", &target(&server)) };
    let hub = Hub::new([listed], HubOptions { approval: ApprovalMode::NoApprover, ..options() });
    hub.discover().await.expect("discovers");
    assert_eq!(text(&hub, "a").await.expect("allowed"), "s: a");
    let error = text(&hub, "b").await.expect_err("refused").to_string();
    assert_eq!(error, r#"the tool "b" needs approval, and there is no terminal to ask on"#);
    hub.close().await;

    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let ask: Approver = Arc::new(move |request: ApprovalRequest| {
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        Box::pin(async move {
            match (first, &*request.tool.original) {
                (true, _) => ApprovalDecision::Deny,
                _ => ApprovalDecision::AllowAlways,
            }
        })
    });
    let hub = Hub::new([member("s", &target(&server))], HubOptions { approval: ApprovalMode::Ask(ask), ..options() });
    hub.discover().await.expect("discovers");
    assert_eq!(text(&hub, "a").await.expect_err("denied").to_string(), "Tool execution was denied by user.");
    text(&hub, "a").await.expect("always allowed");
    text(&hub, "a").await.expect("not asked again");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    hub.close().await;
}

#[tokio::test]
async fn the_result_of_a_reading_tool_is_reused_and_calls_are_counted() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let server = in_memory(move |message| {
        count.fetch_add(usize::from(message["method"] == "tools/call"), Ordering::Relaxed);
        answer("s", &["read", "write"], message)
    });
    let hub = Hub::new(
        [member("s", &target(&server))],
        HubOptions { result_ttl: Some(Duration::from_secs(60)), ..options() },
    );
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
    // A writing tool invalidates the cache.
    call("read", json!({ "a": 2 })).await;
    assert_eq!(calls.load(Ordering::Relaxed), 5);
    let usage: Vec<_> = hub.usage().into_iter().map(|(_, tool, usage)| (tool, usage.calls, usage.stored)).collect();
    assert_eq!(usage, [("read".to_owned(), 4, 1), ("write".to_owned(), 2, 0)]);
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_has_its_own_timeout() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("tools/call") => Vec::new(),
        _ => answer("s", &["slow"], message),
    });
    let mut slow = member("s", &target(&server));
    let call = async |server: &HubServer, limit| {
        let hub = Hub::new([server.clone()], options());
        hub.discover().await.expect("discovers");
        let started = tokio::time::Instant::now();
        let result = tokio::time::timeout(limit, text(&hub, "slow")).await;
        hub.close().await;
        result.map(|result| (result.expect_err("no answer"), started.elapsed().as_secs()))
    };
    let day = Duration::from_secs(86_400);
    slow.waits_for_tools = true;
    assert!(call(&slow, day).await.is_err(), "its caller ends the call");
    slow.tool_timeouts.insert("slow".into(), Duration::from_secs(3));
    let ended = call(&slow, day).await;
    assert!(matches!(ended, Ok((CallError::Failed(Failure::Timeout(_)), 3))), "{ended:?}");
}

#[tokio::test]
async fn closing_cancels_running_calls_on_the_wire() {
    let (server, mut methods) = changing();
    let hub = Hub::new([member("s", &target(&server))], options());
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
    assert!(error.ends_with("the attempt was cancelled"), "{error}");
}

#[tokio::test]
async fn disconnecting_cancels_the_calls_of_that_server_only() {
    let (server, mut methods) = changing();
    let (other, mut others) = changing();
    let naming = Naming::Literal("{server}.{tool}");
    let servers = [member("s", &target(&server)), member("o", &target(&other))];
    let hub = Hub::new(servers, HubOptions { naming, ..options() });
    hub.discover().await.expect("discovers");
    let call = |name: &'static str| {
        let hub = hub.clone();
        tokio::spawn(async move { text(&hub, name).await })
    };
    let (calling, waiting) = (call("s.never"), call("o.never"));
    for methods in [&mut methods, &mut others] {
        while methods.recv().await.as_deref() != Some("tools/call") {}
    }
    hub.disconnect("s").await.expect("disconnects");
    assert!(matches!(calling.await.expect("ends"), Err(CallError::Failed(Failure::Cancelled))));
    assert!(!waiting.is_finished());
    assert_eq!(states(&hub), [ConnectionState::NotConnected, ConnectionState::Connected]);
    hub.close().await;
    assert!(waiting.await.expect("ends").is_err());
}

#[tokio::test]
async fn arguments_and_annotations_are_verbatim() {
    let (seen, mut messages) = mpsc::unbounded_channel();
    let server = in_memory(move |message| {
        let _ = seen.send(message.clone());
        answer("s", &["read", "write"], message)
    });
    let hub = Hub::new([member("s", &target(&server))], options());
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
async fn calls_at_the_same_time_share_the_connection_to_their_server() {
    let (mut greeted, mut waiting) = (0, Vec::new());
    let one = in_memory(move |message| {
        greeted += usize::from(message["method"] == "initialize");
        if message["method"] != "tools/call" {
            return answer("one", &["echo"], message);
        }
        // It answers when all three are there.
        waiting.extend(answer(&format!("connection {greeted}"), &[], message));
        if waiting.len() < 3 { Vec::new() } else { std::mem::take(&mut waiting) }
    });
    let hub = Hub::new([member("one", &target(&one))], HubOptions { connect: ConnectMode::Lazy, ..options() });
    hub.discover().await.expect("discovers");
    let (a, b, c) = tokio::join!(text(&hub, "echo"), text(&hub, "echo"), text(&hub, "echo"));
    for text in [a, b, c] {
        assert_eq!(text.expect("a result"), "connection 1: echo");
    }
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn session_work_connects_once_and_is_dropped_after_the_grace_period() {
    let one = server("one", &["echo"]);
    let recorders = Arc::new(Mutex::new(Vec::new()));
    let sink = recorders.clone();
    let record_sink: RecordSink = Arc::new(move |server, recorder| {
        assert!(recorder.since(0).is_empty(), "no frame was sent yet");
        sink.lock().push((server.clone(), recorder.clone()));
    });
    let hub = Hub::new([member("one", &target(&one))], HubOptions { record_sink: Some(record_sink), ..options() });
    for _ in 0..2 {
        let name = hub.with_session("one", async |session, _| session.name().to_owned()).await.expect("connects");
        assert_eq!(name, "one");
    }
    let (server, recorder) = recorders.lock()[..].first().cloned().expect("one connection");
    assert_eq!((&*server, recorders.lock().len()), ("one", 1));
    let asked = |method: &str| {
        recorder.since(0).iter().any(|frame| frame.message().is_ok_and(|it| it.method() == Some(method)))
    };
    assert!(asked("initialize") && !asked("tools/list"));
    assert!(hub.tool_definitions("one").expect("a server").is_empty());
    assert!(matches!(hub.with_session("two", async |_, _| ()).await, Err(HubError::UnknownServer(_))));

    let (begun, begins) = tokio::sync::oneshot::channel();
    let deaf = hub.with_session("one", async |_, _| {
        let _ = begun.send(());
        std::future::pending::<()>().await;
    });
    let end = async {
        begins.await.expect("begins");
        hub.close().await;
    };
    let both = async { tokio::join!(deaf, end) };
    let (outcome, ()) = tokio::time::timeout(Duration::from_secs(60), both).await.expect("the hub closes");
    assert!(matches!(outcome, Err(HubError::Unreachable { error, .. }) if matches!(*error, ConnectError::Cancelled)));
}

#[tokio::test]
async fn a_lost_session_is_renewed_once_per_request() {
    let unknown = Arc::new(AtomicUsize::new(0));
    let left = unknown.clone();
    let server = HttpServer::start(move |seen: Seen| {
        let take = |left: usize| left.checked_sub(1);
        let is_asked = matches!(seen.message()["method"].as_str(), Some("tools/list" | "tools/call"));
        let is_lost = is_asked && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        async move {
            let message = seen.message();
            match is_lost {
                true => reply(404, "text/plain", "session not found"),
                false => greet_http(&seen)
                    .unwrap_or_else(|| reply(200, "application/json", answer("s", &["t"], &message).concat())),
            }
        }
    })
    .await;
    let hub = Hub::new([member("s", &Target::http(&server.url))], options());
    let mut events = hub.events();
    let mut renewed = 0;
    let mut count = |hub: &Hub| {
        assert_eq!(names(hub), ["s/t"]);
        while let Ok(event) = events.try_recv() {
            renewed += usize::from(matches!(event, Event::SessionRenewed(_)));
        }
        let greetings = server.seen().into_iter().filter(|seen| seen.message()["method"] == "initialize");
        let sessions: Vec<_> = greetings.map(|seen| seen.header("mcp-session-id").map(str::to_owned)).collect();
        assert_eq!(sessions, vec![None; renewed + 1], "no new session uses the old id");
        renewed
    };
    unknown.store(1, Ordering::Relaxed);
    assert!(hub.discover().await.expect("discovers").incomplete.is_empty());
    assert_eq!(count(&hub), 1);
    unknown.store(1, Ordering::Relaxed);
    assert_eq!(text(&hub, "t").await.expect("a result"), "s: t");
    assert_eq!(count(&hub), 2);
    unknown.store(1, Ordering::Relaxed);
    let call = async |session: &Session, _| session.call_tool("t", None, CallOptions::default()).await;
    hub.request("s", call).await.expect("reaches").expect("a result");
    assert_eq!(count(&hub), 3);
    unknown.store(2, Ordering::Relaxed);
    let failure = text(&hub, "t").await.expect_err("lost again");
    assert!(matches!(failure, CallError::Failed(Failure::Http { status: 404, .. })), "{failure}");
    assert_eq!(count(&hub), 4);
    hub.close().await;
}

#[tokio::test]
async fn closing_cancels_a_listing_on_the_wire() {
    let (seen, mut methods) = mpsc::unbounded_channel();
    let server = in_memory(move |message| {
        let method = message["method"].as_str().unwrap_or_default();
        let _ = seen.send(method.to_owned());
        if method == "tools/list" { Vec::new() } else { answer("s", &[], message) }
    });
    let hub = Hub::new([member("s", &target(&server))], options());
    let discovering = tokio::spawn({
        let hub = hub.clone();
        async move { hub.discover().await }
    });
    while methods.recv().await.as_deref() != Some("tools/list") {}
    hub.close().await;
    assert_eq!(methods.recv().await.as_deref(), Some("notifications/cancelled"));
    let found = discovering.await.expect("ends").expect("discovers");
    assert!(matches!(found.incomplete[..], [(_, Failure::Cancelled)]), "{found:?}");
}

#[tokio::test]
async fn arguments_must_match_the_schema_of_the_tool_unless_the_options_allow_others() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let server = in_memory(move |message| match message["method"].as_str() {
        Some("tools/list") => {
            let properties = json!({ "text": { "type": "string" }, "n": { "type": "integer", "minimum": 1 } });
            let schema = json!({ "type": "object", "properties": properties, "required": ["text"] });
            vec![result(message, &json!({ "tools": [{ "name": "say", "inputSchema": schema }] }).to_string())]
        }
        Some("tools/call") => {
            count.fetch_add(1, Ordering::Relaxed);
            answer("s", &["say"], message)
        }
        _ => answer("s", &[], message),
    });
    let wrong = || json!({ "n": 0, "txt": "a" }).as_object().cloned();
    for (checks_arguments, sent) in [(true, 0), (false, 1)] {
        let hub = Hub::new([member("s", &target(&server))], HubOptions { checks_arguments, ..options() });
        hub.discover().await.expect("discovers");
        let called = hub.call("say", wrong(), CallOptions::default()).await;
        assert_eq!((called.is_ok(), calls.load(Ordering::Relaxed)), (!checks_arguments, sent));
        if let Err(CallError::InvalidArguments { violations, .. }) = &called {
            let codes: Vec<_> = violations.iter().map(|it| format!("{} {}", it.parameter, it.code)).collect();
            assert_eq!(codes, ["text MISSING_REQUIRED", "n OUT_OF_RANGE", "txt UNKNOWN_PARAMETER"]);
        }
        hub.close().await;
    }
}
