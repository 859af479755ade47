//! A stream of `subscriptions/listen` (2026-07-28, Subscriptions).

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::{envelope::Envelope, instance::Engine, legacy_session::NotificationSink, subscribers::Subscriber};
use rehearse_protocol::{Era, Id, Transport, message, names::META_SUBSCRIPTION_ID};

/// An accepted request to listen; it listens when it is opened.
#[derive(Debug)]
pub struct PendingSubscription {
    engine: Arc<Engine>,
    subscriber: Arc<Subscriber>,
}

/// A listening client, until this is dropped.
#[derive(Debug)]
pub struct Subscription(PendingSubscription);

impl PendingSubscription {
    pub(super) fn new(engine: Arc<Engine>, subscriber: Arc<Subscriber>) -> Self {
        PendingSubscription { engine, subscriber }
    }

    /// Starts to listen; the acknowledgement is sent first.
    pub fn open(self, sink: Box<dyn NotificationSink>) -> Subscription {
        let params = json!({ "notifications": self.subscriber.filter.to_json() });
        sink.push(self.subscriber.frame("notifications/subscriptions/acknowledged", Some(&params.to_string())));
        let _ = self.subscriber.sink.set(sink);
        self.engine.subscribers.subscribers().push(self.subscriber.clone());
        Subscription(self)
    }

    /// The id of the request.
    pub fn id(&self) -> &Id {
        &self.subscriber.id
    }
}

impl Subscription {
    /// The notification that comes before the response when the server ends the subscription: `None` over HTTP, where
    /// the end of the stream says the same (2026-07-28, Cancellation; Streamable HTTP: Sending Messages to the Server).
    pub fn cancellation(&self) -> Option<Bytes> {
        let Subscriber { id, transport, .. } = &*self.0.subscriber;
        let params = json!({ "requestId": id, "reason": "the server ends the subscription" }).to_string();
        let is_needed = *transport != Transport::Http;
        is_needed.then(|| self.0.subscriber.frame("notifications/cancelled", Some(&params)))
    }

    /// The response that ends the subscription gracefully (2026-07-28, Subscriptions: Graceful Closure).
    pub fn closing(&self) -> Bytes {
        let PendingSubscription { engine, subscriber } = &self.0;
        let meta = format!("{{\"{META_SUBSCRIPTION_ID}\":{}}}", subscriber.id.to_json());
        let envelope = Envelope { meta: Some(&meta), ..Envelope::default() };
        message::result(&subscriber.id, &engine.catalog().result(Era::Modern, "", envelope))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.engine.subscribers.subscribers().retain(|it| !Arc::ptr_eq(it, &self.0.subscriber));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::{
        super::{
            Decision,
            test_client::{Received, TestClient},
        },
        super::{legacy_session::MAX_URIS, notifications::MAX_SUBSCRIPTIONS},
        *,
    };

    const SCRIPT: &str = "
tools:
  - { name: touch, steps: [{ notify: { method: notifications/resources/updated, params: { uri: 'file:///{{ args.name }}' } } }, { reply: x }] }
  - { name: show, steps: [{ enable: { tool: hidden } }, { reply: x }] }
  - { name: hide, steps: [{ disable: { tool: hidden } }, { reply: x }] }
  - { name: hidden, enabled: false, reply: 'first' }
  - { name: swap, steps: [{ replace: { tool: { name: hidden, description: new, reply: second } } }, { reply: x }] }
  - { name: tell, steps: [{ notify: { method: notifications/custom, params: { n: 1 } } }, { reply: x }] }
  - { name: job, steps: [{ task: {} }, { wait: 1s }, { reply: done }] }
resources: [{ uri: 'file:///a', text: a }]
";

    fn listen(client: &TestClient, filter: Json) -> (Subscription, Received) {
        let received = Received::default();
        let request = client.request("subscriptions/listen", json!({ "notifications": filter }));
        match client.decision(&request) {
            Decision::Subscribe(listen) => (listen.open(Box::new(received.clone())), received),
            other => panic!("refused: {other:?}"),
        }
    }

    fn methods(received: &Received) -> Vec<String> {
        received.take().iter().map(|frame| frame["method"].as_str().unwrap_or("a response").to_owned()).collect()
    }

    #[test]
    fn the_acknowledgement_comes_first_and_names_what_is_honoured() {
        let client = TestClient::modern(SCRIPT, json!({}));
        let filter =
            json!({ "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["file:///a"] });
        let (subscription, received) = listen(&client, filter);
        let id = subscription.0.subscriber.id.clone();
        let frames = received.take();
        assert_eq!(frames[0]["method"], "notifications/subscriptions/acknowledged");
        let honoured = json!({ "toolsListChanged": true, "resourceSubscriptions": ["file:///a"] });
        assert_eq!(frames[0]["params"]["notifications"], honoured);
        assert_eq!(frames[0]["params"]["_meta"][META_SUBSCRIPTION_ID], json!(id));
        let closing: Json = serde_json::from_slice(&subscription.closing()).expect("JSON");
        assert_eq!((&closing["id"], &closing["result"]["_meta"][META_SUBSCRIPTION_ID]), (&json!(id), &json!(id)));
    }

    #[test]
    fn the_end_of_a_subscription_is_announced_where_its_stream_cannot_end() {
        let mut client = TestClient::modern(SCRIPT, json!({}));
        let (subscription, _) = listen(&client, json!({}));
        let id = json!(subscription.0.subscriber.id);
        let frame: Json = serde_json::from_slice(&subscription.cancellation().expect("a notification")).expect("JSON");
        assert_eq!((&frame["method"], &frame["params"]["requestId"]), (&json!("notifications/cancelled"), &id));
        assert_eq!(frame["params"]["_meta"][META_SUBSCRIPTION_ID], id);
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")];
        let header = |(name, value): (&str, _)| (name.parse().expect("a name"), http::HeaderValue::from_static(value));
        client.headers = Some(headers.into_iter().map(header).collect());
        assert_eq!(listen(&client, json!({})).0.cancellation(), None, "the stream ends");
    }

    #[test]
    fn subscriptions_and_what_they_name_are_limited() {
        let client = TestClient::modern(SCRIPT, json!({}));
        let refused = |filter: Json| {
            client.call("subscriptions/listen", json!({ "notifications": filter }))["error"]["code"].clone()
        };
        let uris: Vec<_> = (0..=MAX_URIS).map(|it| format!("file:///{it}")).collect();
        assert_eq!(refused(json!({ "resourceSubscriptions": uris })), -32603);
        let subscriptions: Vec<_> = (0..MAX_SUBSCRIPTIONS).map(|_| listen(&client, json!({}))).collect();
        assert_eq!(refused(json!({})), -32603);
        drop(subscriptions);
        listen(&client, json!({}));
        let legacy = TestClient::legacy(SCRIPT, json!({}));
        let subscribe = |uri: &str| legacy.call("resources/subscribe", json!({ "uri": uri }))["error"]["code"].clone();
        for uri in &uris[..MAX_URIS] {
            assert_eq!(subscribe(uri), Json::Null);
        }
        assert_eq!((subscribe(&uris[MAX_URIS]), subscribe(&uris[0])), (json!(-32603), Json::Null));
        legacy.call("resources/unsubscribe", json!({ "uri": uris[0] }));
        assert_eq!(subscribe(&uris[MAX_URIS]), Json::Null);
    }

    #[test]
    fn only_subscribed_changes_are_notified_with_the_id_of_the_subscription() {
        let client = TestClient::modern(SCRIPT, json!({}));
        let (tools, of_tools) = listen(&client, json!({ "toolsListChanged": true }));
        let (_resource, of_resource) = listen(&client, json!({ "resourceSubscriptions": ["file:///b"] }));
        assert_eq!((methods(&of_tools).len(), methods(&of_resource).len()), (1, 1));
        for name in ["a", "b"] {
            client.tool("touch", json!({ "name": name }));
        }
        client.tool("show", json!({}));
        let frames = of_resource.take();
        assert_eq!(frames.len(), 1, "{frames:?}");
        assert_eq!(frames[0]["params"]["uri"], "file:///b");
        assert!(frames[0]["params"]["_meta"][META_SUBSCRIPTION_ID].is_number());
        assert_eq!(methods(&of_tools), ["notifications/tools/list_changed"]);
        drop(tools);
        client.tool("hide", json!({}));
        assert_eq!(of_tools.take(), [] as [Json; 0], "it has ended");
    }

    #[test]
    fn a_legacy_client_receives_list_changes_always_and_resource_updates_if_it_subscribed() {
        let client = TestClient::legacy(SCRIPT, json!({}));
        client.tool("touch", json!({ "name": "a" }));
        assert_eq!(methods(&client.unasked), [""; 0]);
        assert_eq!(client.call("resources/subscribe", json!({ "uri": "file:///a" }))["result"], json!({}));
        client.tool("touch", json!({ "name": "a" }));
        client.tool("touch", json!({ "name": "b" }));
        client.tool("show", json!({}));
        assert_eq!(methods(&client.unasked), ["notifications/resources/updated", "notifications/tools/list_changed"]);
        client.call("resources/unsubscribe", json!({ "uri": "file:///a" }));
        client.tool("touch", json!({ "name": "a" }));
        assert_eq!(methods(&client.unasked), [""; 0]);
    }

    #[test]
    fn a_client_receives_changes_after_the_handshake() {
        let client = TestClient::uninitialized(SCRIPT, json!({}));
        client.tool("show", json!({}));
        assert_eq!(methods(&client.unasked), [""; 0]);
        for _ in 0..2 {
            client.initialized();
        }
        client.tool("hide", json!({}));
        assert_eq!(methods(&client.unasked), ["notifications/tools/list_changed"]);
    }

    #[test]
    fn a_reset_reports_which_lists_are_others_now() {
        let client = TestClient::legacy(SCRIPT, json!({}));
        client.engine.reset(client.clock.get());
        assert_eq!(methods(&client.unasked), [""; 0]);
        client.tool("show", json!({}));
        client.unasked.take();
        client.engine.reset(client.clock.get());
        assert_eq!(methods(&client.unasked), ["notifications/tools/list_changed"]);
    }

    #[test]
    fn notifications_without_subscription_go_to_the_caller() {
        let client = TestClient::legacy(SCRIPT, json!({}));
        let frames = client.exchange("tools/call", json!({ "name": "tell" }));
        assert_eq!(frames[0], json!({ "jsonrpc": "2.0", "method": "notifications/custom", "params": { "n": 1 } }));
        assert_eq!(methods(&client.unasked), [""; 0]);
    }

    #[test]
    fn tools_appear_change_and_disappear_and_only_a_difference_is_notified() {
        let client = TestClient::legacy(SCRIPT, json!({}));
        let names = || {
            let tools = client.call("tools/list", json!({}))["result"]["tools"].clone();
            let tools = tools.as_array().expect("a list").iter().map(|tool| tool["name"].as_str().map(str::to_owned));
            tools.map(Option::unwrap_or_default).collect::<Vec<_>>().join(" ")
        };
        let without = "touch show hide swap tell job";
        assert_eq!(names(), without);
        assert_eq!(client.tool("hidden", json!({}))["error"]["code"], -32602);
        for _ in 0..2 {
            client.tool("show", json!({}));
        }
        assert_eq!(methods(&client.unasked).len(), 1);
        assert_eq!(names(), "touch show hide hidden swap tell job");
        assert_eq!(client.text("hidden", json!({})), "first");
        client.tool("swap", json!({}));
        assert_eq!(client.text("hidden", json!({})), "second");
        client.tool("hide", json!({}));
        assert_eq!((names().as_str(), methods(&client.unasked).len()), (without, 2));
        client.engine.reset(client.clock.get());
        client.tool("show", json!({}));
        assert_eq!(client.text("hidden", json!({})), "first", "a reset begins anew");
    }

    #[test]
    fn a_task_notifies_its_subscribers() {
        let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
        let client = TestClient::modern(SCRIPT, json!({ "extensions": extensions }));
        let task = client.tool("job", json!({}))["result"]["taskId"].clone();
        let (_subscription, received) = listen(&client, json!({ "taskIds": [task] }));
        client.advance(std::time::Duration::from_secs(1));
        let frames = received.take();
        assert_eq!(frames[0]["params"]["notifications"], json!({ "taskIds": [task] }));
        assert_eq!(
            (&frames[1]["method"], &frames[1]["params"]["status"]),
            (&json!("notifications/tasks"), &json!("completed"))
        );
        assert_eq!(frames[1]["params"]["result"]["content"][0]["text"], "done");
        let stranger = client.share_engine(TestClient::modern(SCRIPT, json!({})));
        let refused = stranger.call("subscriptions/listen", json!({ "notifications": { "taskIds": ["x"] } }));
        assert_eq!(refused["error"]["code"], -32021);
    }

    #[test]
    fn an_invalid_filter_is_an_error_and_unsupported_topics_are_not_honoured() {
        let client = TestClient::modern(SCRIPT, json!({}));
        for params in [json!({}), json!({ "notifications": [] }), json!({ "notifications": { "toolsListChanged": 1 } })]
        {
            assert_eq!(client.call("subscriptions/listen", params)["error"]["code"], -32602);
        }
        let client = TestClient::modern("tools: [{ name: t, reply: x }]", json!({}));
        let (_subscription, received) = listen(&client, json!({ "toolsListChanged": true, "taskIds": null }));
        assert_eq!(received.take()[0]["params"]["notifications"], json!({}));
    }
}
