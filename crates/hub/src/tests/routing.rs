//! Routing: the same tool on several servers.

use super::*;

/// Answers of a server that hangs up when a tool is called.
fn dying(name: &'static str, tools: &'static [&'static str]) -> Server {
    in_memory(move |message| match message["method"].as_str() {
        Some("tools/call") => vec!["hang up".into()],
        _ => answer(name, tools, message),
    })
}

async fn hub(servers: &[(&str, &Server)], routing: Routing) -> Hub {
    let members: Vec<_> = servers.iter().map(|(name, server)| member(name, &target(server))).collect();
    let hub = Hub::new(members, HubOptions { routing, ..options() });
    hub.discover().await.expect("discovers");
    hub
}

#[tokio::test]
async fn a_lost_call_goes_to_another_server_only_if_the_tool_reads() {
    let (one, two) = (dying("one", &["read", "write"]), server("two", &["write", "read"]));
    let hub = hub(&[("one", &one), ("two", &two)], Routing::Fallback).await;
    let mut events = hub.events();
    assert_eq!(text(&hub, "read").await.expect("another server"), "two: read");
    let rerouted = |event: &Event| matches!(event, Event::Rerouted(Rerouted { tool, from, to, .. }) if tool == "read" && &**from == "one" && &**to == "two");
    wait_for(&mut events, rerouted).await;
    let error = text(&hub, "write").await.expect_err("it may have been done");
    assert!(matches!(error, CallError::Failed(Failure::Disconnected { .. })), "{error}");
    hub.close().await;
}

#[tokio::test]
async fn a_call_that_was_not_sent_goes_to_another_server() {
    let (one, two) = (server("one", &["write"]), server("two", &["write"]));
    for (routing, expected) in [(Routing::Registered, None), (Routing::Fallback, Some("two: write"))] {
        let hub = hub(&[("one", &one), ("two", &two)], routing).await;
        let tool = hub.registry().get("write").expect("registered").clone();
        assert_eq!(&*tool.server, "one");
        hub.disable("one").await.expect("disables");
        let called = hub.call_routed(&tool, None, CallOptions::default()).await;
        assert_eq!(called.result.ok().map(|outcome| outcome.text()).as_deref(), expected, "{routing:?}");
        hub.close().await;
    }
}

#[tokio::test]
async fn calls_take_turns_among_servers_that_offer_the_tool() {
    let (one, two) = (server("one", &["say"]), server("two", &["other", "say"]));
    let (three, four) = (server("three", &["say"]), server("four", &["say"]));
    let at = |value: &str| rehearse_client_configs::server::At {
        value: value.to_owned(),
        span: rehearse_document::Span::default(),
    };
    let exclude = Some(rehearse_client_configs::server::At { value: vec![at("say")], span: Default::default() });
    let filtered = HubServer {
        filter: rehearse_client_configs::server::ToolFilter { include: None, exclude },
        ..member("three", &target(&three))
    };
    let off = HubServer { is_enabled: false, ..member("four", &target(&four)) };
    let members = [member("one", &target(&one)), member("two", &target(&two)), filtered, off];
    for naming in [Naming::Bare, Naming::Literal("{tool}@{server}")] {
        let hub = Hub::new(members.clone(), HubOptions { routing: Routing::RoundRobin, naming, ..options() });
        hub.discover().await.expect("discovers");
        let name = naming.name("one", "say");
        let mut answers = Vec::new();
        for _ in 0..4 {
            answers.push(text(&hub, &name).await.expect("a result"));
        }
        assert_eq!(answers, ["one: say", "two: say", "one: say", "two: say"], "{naming:?}");
        let exact = hub.registry().find("two", "say").expect("listed").clone();
        let outcome = hub.call_tool(&exact, None, CallOptions::default()).await.expect("a result");
        assert_eq!(outcome.text(), "two: say");
        hub.close().await;
    }
}
