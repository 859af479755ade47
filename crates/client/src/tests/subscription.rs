//! Notifications of changes, in each era.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{LEGACY, MODERN, connect, sent_methods, target};
use crate::{CallOptions, Failure, SubscriptionFilter, Target};
use rehearse_protocol::List;
use rehearse_testing::{HttpServer, Seen, Server, error, events, greet, greet_http, in_memory, result};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

fn all_topics() -> SubscriptionFilter {
    SubscriptionFilter { lists: vec![List::Tools, List::Prompts], uris: vec!["a://1".into(), "a://2".into()] }
}

fn acknowledged(id: &Value, filter: &Value) -> String {
    let params = json!({ "_meta": { SUBSCRIPTION_ID: id }, "notifications": filter });
    let method = "notifications/subscriptions/acknowledged";
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// A modern server that acknowledges what `agrees` makes of a filter, after the acknowledgement of a stranger's.
fn listening(agrees: impl Fn(&Value) -> Value + Send + 'static) -> (Server, mpsc::UnboundedReceiver<Value>) {
    let (seen, messages) = mpsc::unbounded_channel();
    let server = in_memory(move |message| {
        let _ = seen.send(message.clone());
        match message["method"].as_str() {
            Some("subscriptions/listen") => {
                let filter = &message["params"]["notifications"];
                vec![acknowledged(&json!("stranger"), filter), acknowledged(&message["id"], &agrees(filter))]
            }
            _ => greet(message),
        }
    });
    (server, messages)
}

fn filters(messages: &mut mpsc::UnboundedReceiver<Value>) -> Vec<Value> {
    let all = std::iter::from_fn(|| messages.try_recv().ok());
    let listens = all.filter(|message| message["method"] == "subscriptions/listen");
    listens.map(|message| message["params"]["notifications"].clone()).collect()
}

#[tokio::test]
async fn a_modern_session_listens_as_requested_and_replaces_the_rest() {
    let (server, mut messages) = listening(Value::clone);
    let session = connect(&target(&server), MODERN).await;
    session.listen(&all_topics(), CallOptions::default()).await.expect("acknowledged");
    let lists = json!({ "toolsListChanged": true, "promptsListChanged": true });
    let with = |uris: Value| {
        let mut filter = lists.clone();
        filter["resourceSubscriptions"] = uris;
        filter
    };
    assert_eq!(filters(&mut messages), [with(json!(["a://1", "a://2"]))]);
    session.unsubscribe("a://1", CallOptions::default()).await.expect("replaced");
    session.unsubscribe("a://1", CallOptions::default()).await.expect("nothing to do");
    let others = SubscriptionFilter::for_resource("a://1");
    session.listen(&others, CallOptions::default()).await.expect("acknowledged");
    session.unsubscribe("a://1", CallOptions::default()).await.expect("ended");
    let expected =
        ["server/discover", "subscriptions/listen", "subscriptions/listen", "notifications/cancelled"].as_slice();
    assert_eq!(sent_methods(&session), [expected, &["subscriptions/listen", "notifications/cancelled"]].concat());
    session.close().await;
    assert_eq!(filters(&mut messages), [with(json!(["a://2"])), json!({ "resourceSubscriptions": ["a://1"] })]);
}

#[tokio::test(start_paused = true)]
async fn topics_that_are_not_acknowledged_are_named_and_errors_and_timeouts_are_failures() {
    let (server, _messages) = listening(
        |_| json!({ "toolsListChanged": true, "promptsListChanged": false, "resourceSubscriptions": ["a://2"] }),
    );
    let session = connect(&target(&server), MODERN).await;
    let failure = session.listen(&all_topics(), CallOptions::default()).await.expect_err("half of it");
    let expected = "the server does not send notifications/prompts/list_changed, updates of a://1";
    assert_eq!((failure.kind(), failure.to_string().as_str()), ("unacknowledged", expected));
    assert_eq!(sent_methods(&session).last().map(String::as_str), Some("notifications/cancelled"));
    session.close().await;
    for (answer, kind) in [(Some(error as fn(&Value, i64) -> String), "rpc"), (None, "timeout")] {
        let server = in_memory(move |message| match (message["method"].as_str(), answer) {
            (Some("subscriptions/listen"), Some(answer)) => vec![answer(message, -32601)],
            _ => greet(message),
        });
        let session = connect(&target(&server), MODERN).await;
        let limit = CallOptions::with_timeout(Duration::from_secs(1));
        assert_eq!(session.listen(&all_topics(), limit).await.expect_err("nothing").kind(), kind);
        session.close().await;
    }
}

#[tokio::test]
async fn a_legacy_session_subscribes_to_resources_and_goes_by_the_declared_lists() {
    let declaring = |capabilities: &'static str| {
        in_memory(move |message| match message["method"].as_str() {
            Some("initialize") => vec![result(
                message,
                &format!(
                    r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"s","version":"1"}}}}"#
                ),
            )],
            Some("resources/subscribe") if message["params"]["uri"] == "a://2" => vec![error(message, -32002)],
            Some("resources/subscribe" | "resources/unsubscribe") => vec![result(message, "{}")],
            _ => Vec::new(),
        })
    };
    let server = declaring(r#"{"tools":{"listChanged":true},"prompts":{}}"#);
    let session = connect(&target(&server), LEGACY).await;
    let failure = session.listen(&all_topics(), CallOptions::default()).await.expect_err("no prompts");
    assert_eq!(failure.to_string(), "the server does not send notifications/prompts/list_changed");
    let tools = SubscriptionFilter { lists: vec![List::Tools], ..SubscriptionFilter::for_resource("a://1") };
    session.listen(&tools, CallOptions::default()).await.expect("declared");
    session.unsubscribe("a://1", CallOptions::default()).await.expect("subscribed");
    let failure =
        session.listen(&SubscriptionFilter::for_resource("a://2"), CallOptions::default()).await.expect_err("no such");
    assert!(matches!(failure, Failure::Rpc(_)), "{failure}");
    assert_eq!(sent_methods(&session)[2..], ["resources/subscribe", "resources/unsubscribe", "resources/subscribe"]);
    session.close().await;
}

#[tokio::test]
async fn over_http_a_subscription_is_a_stream_that_lasts_until_it_is_closed() {
    let (opened, mut streams) = mpsc::unbounded_channel();
    let server = HttpServer::start(move |seen: Seen| {
        let opened = opened.clone();
        async move {
            let message = seen.message();
            match message["method"].as_str() {
                Some("subscriptions/listen") => {
                    let (sender, response) = events();
                    let filter = &message["params"]["notifications"];
                    let _ = sender.send(format!("data: {}\n\n", acknowledged(&message["id"], filter))).await;
                    let _ = opened.send(sender);
                    response
                }
                _ => greet_http(&seen).expect("a greeting"),
            }
        }
    })
    .await;
    let session = connect(&Target::http(&server.url), MODERN).await;
    session.listen(&SubscriptionFilter::for_resource("a://1"), CallOptions::default()).await.expect("acknowledged");
    let stream = streams.recv().await.expect("a stream");
    let updated = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://1"}}"#;
    stream.send(format!("data: {updated}\n\n")).await.expect("a reader");
    session.recorder().wait_for(0, |frame| frame.bytes == updated).await.expect("an update");
    session.unsubscribe("a://1", CallOptions::default()).await.expect("ended");
    stream.closed().await;
    session.close().await;
    let posted: Vec<_> = server.seen().iter().map(|seen| seen.message()["method"].clone()).collect();
    assert_eq!(posted, ["server/discover", "subscriptions/listen"]);
}
