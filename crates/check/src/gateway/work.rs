//! What the clients of a gateway do.

use std::{cell::Cell, time::Duration};

use futures_util::future::join_all;
use rehearse_client::{
    CallOptions, ClientRecorder, CompletionReference, ConnectError, ConnectOptions, Failure, Listing, ServerParams,
    Session, SubscriptionFilter,
};
use rehearse_conformance::is_named;
use rehearse_protocol::{Direction, List, Protocol, Trace, Transport, Version};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::GatewayOptions;
use crate::client::ActServer;

/// How many calls are made at once.
const AT_ONCE: usize = 12;
/// How many times as long as the calls at once something may take to be sent on.
const SLOWER: u32 = 5;
/// How long a gateway may answer with a server error at first.
const READY: Duration = Duration::from_secs(10);
/// How long after a server error the handshake is tried again.
const AGAIN: Duration = Duration::from_millis(250);
/// How often it is looked whether something has arrived.
const LOOK: Duration = Duration::from_millis(20);
/// The case of what is asked after the end of the upstream.
const GONE: &str = "gateway/gone";
/// The case of a call that is cancelled.
const CANCEL: &str = "gateway/cancel";
/// The tools that are called in a way of their own.
const SPECIAL: [&str; 3] = ["echo", "slow", "change"];

/// A client of the gateway.
pub(super) struct Client {
    session: Session,
    recorder: ClientRecorder,
    version: Version,
    grace: Duration,
    /// How long the calls at once took: on a busy machine everything takes longer.
    slowest: Cell<Duration>,
}

/// What has passed on both sides.
pub(super) struct Work {
    pub(super) clients: Vec<Trace>,
    pub(super) upstream: Vec<Trace>,
    /// Whether the gateway stopped answering before the upstream was ended.
    pub(super) is_lost: bool,
}

impl Client {
    /// # Errors
    /// The gateway does not speak the version, or cannot be reached.
    pub(super) async fn connect(
        params: &ServerParams,
        version: Version,
        options: &GatewayOptions,
    ) -> Result<Client, ConnectError> {
        let begun = Instant::now();
        loop {
            let recorder = ClientRecorder::new().with_brief_details();
            let connect = ConnectOptions { recorder: recorder.clone(), ..ConnectOptions::default() };
            match Session::connect_with(params, Protocol::Exact(version), connect).await {
                // Some open their port before they have reached their upstream.
                Err(ConnectError::Http { status: 500.., .. }) if begun.elapsed() < READY.min(options.start_timeout) => {
                    sleep(AGAIN).await;
                }
                session => {
                    let (grace, slowest) = (options.grace, Cell::default());
                    return Ok(Client { session: session?, recorder, version, grace, slowest });
                }
            }
        }
    }

    /// Does all that a client can do, with an idle second client beside it, then ends the upstream, and asks once more.
    pub(super) async fn work(self, params: &ServerParams, upstream: ActServer, options: &GatewayOptions) -> Work {
        let is_shared = params.target.transport() != Transport::Stdio;
        let idle = match is_shared {
            true => Client::connect(params, self.version, options).await.ok(),
            false => None,
        };
        let [tools, resources, templates, prompts] = self.lists().await;
        self.subscribe(&resources).await;
        self.call_all(&tools, &upstream).await;
        self.read_all(&resources, &templates).await;
        self.get_all(&prompts).await;
        self.change(&tools).await;
        let last = self.session.list_partial(List::Tools, 1, CallOptions::default()).await.1;
        let is_lost = last.is_some_and(|failure| !matches!(failure, Failure::Rpc(_)));
        let upstream = upstream.finish(false).await.traces;
        self.recorder.announce(GONE);
        if let Some(echo) = named(&tools, "echo") {
            let limit = self.session.timeouts().call.max(self.patience());
            let _ = self.session.call_tool(echo, arguments("gone"), CallOptions::with_timeout(limit)).await;
        }
        let mut clients = Vec::new();
        for client in [Some(self), idle].into_iter().flatten() {
            let recorder = client.recorder.clone();
            client.session.close().await;
            clients.push(recorder.trace());
        }
        Work { clients, upstream, is_lost }
    }

    /// All lists; those that the gateway does not have are empty.
    async fn lists(&self) -> [Vec<String>; 4] {
        let mut names =
            [List::Tools, List::Resources, List::ResourceTemplates, List::Prompts].map(|list| (list, Vec::new()));
        for (list, names) in &mut names {
            let listing: Listing = self.session.list(*list, CallOptions::default()).await.unwrap_or_default();
            names.extend(listing.values().filter_map(|item| Some(item[list.key()].as_str()?.to_owned())));
        }
        names.map(|(_, names)| names)
    }

    async fn subscribe(&self, resources: &[String]) {
        let _ = self.session.set_log_level("debug", CallOptions::default()).await;
        let uris: Vec<_> = named(resources, "test://notes/today").map(ToOwned::to_owned).into_iter().collect();
        for (lists, uris) in [(vec![List::Tools, List::Prompts, List::Resources], Vec::new()), (Vec::new(), uris)] {
            let _ = self.session.listen(&SubscriptionFilter { lists, uris }, CallOptions::default()).await;
        }
    }

    async fn call_all(&self, tools: &[String], upstream: &ActServer) {
        let plain = tools.iter().filter(|name| !SPECIAL.iter().any(|it| is_named(name, it)));
        let mut plain: Vec<_> = plain.collect();
        let is_item = |name: &str| (2..=120).any(|n| is_named(name, &format!("item_{n}")));
        plain.retain(|name| !is_item(name));
        for name in plain {
            let _ = self.session.call_tool(name, None, CallOptions::default()).await;
        }
        if let Some(echo) = named(tools, "echo") {
            let options = CallOptions { meta: Some(meta()), ..CallOptions::default() };
            let _ = self.session.call_tool(echo, odd_arguments(), options).await;
            let call =
                |number| self.session.call_tool(echo, arguments(&format!("at once {number}")), CallOptions::default());
            let begun = Instant::now();
            join_all((0..AT_ONCE).map(call)).await;
            self.slowest.set(begun.elapsed());
        }
        if let Some(slow) = named(tools, "slow") {
            let cancel = CancellationToken::new();
            let options = CallOptions { cancel: Some(cancel.clone()), ..CallOptions::default() };
            self.recorder.announce(CANCEL);
            let calling = self.session.call_tool(slow, None, options);
            let cancelling = async {
                self.wait_until(|| upstream.has_got("tools/call", "slow")).await;
                cancel.cancel();
                self.wait_until(|| upstream.has_got("notifications/cancelled", "")).await;
            };
            let _ = tokio::join!(calling, cancelling);
        }
    }

    async fn read_all(&self, resources: &[String], templates: &[String]) {
        let days = templates.iter().map(|template| template.replace("{day}", "monday"));
        for uri in resources.iter().cloned().chain(days) {
            let _ = self.session.read_resource(&uri, CallOptions::default()).await;
        }
    }

    async fn get_all(&self, prompts: &[String]) {
        for prompt in prompts {
            let topic = Map::from_iter([("topic".to_owned(), "milk & <ä>".into())]);
            let _ = self.session.get_prompt(prompt, Some(topic), CallOptions::default()).await;
            let reference = CompletionReference::Prompt(prompt);
            let _ = self.session.complete(reference, "topic", "m", None, CallOptions::default()).await;
        }
    }

    /// Has the lists of the upstream changed, and waits for what the client hears of it.
    async fn change(&self, tools: &[String]) {
        let Some(change) = named(tools, "change") else { return };
        let _ = self.session.call_tool(change, None, CallOptions::default()).await;
        let methods = ["tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"];
        self.wait_until(|| methods.iter().all(|it| self.has_heard(it))).await;
    }

    fn has_heard(&self, notification: &str) -> bool {
        let is_it = |frame: &rehearse_protocol::Frame| {
            let message: Value = serde_json::from_slice(&frame.bytes).unwrap_or_default();
            message["method"].as_str().is_some_and(|method| method == format!("notifications/{notification}"))
        };
        let received = |it: &&rehearse_protocol::Frame| it.direction == Direction::ServerToClient;
        self.recorder.since(0).iter().filter(received).any(is_it)
    }

    /// How long what is sent on may take.
    fn patience(&self) -> Duration {
        self.grace.max(self.slowest.get() * SLOWER)
    }

    /// Waits until something is so, for as long as what is sent on may take.
    async fn wait_until(&self, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() && begun.elapsed() < self.patience() {
            sleep(LOOK).await;
        }
    }
}

/// The name at the gateway of an item of the upstream.
fn named<'n>(names: &'n [String], upstream: &str) -> Option<&'n str> {
    names.iter().find(|name| is_named(name, upstream)).map(String::as_str)
}

fn arguments(text: &str) -> Option<Map<String, Value>> {
    Some(Map::from_iter([("text".to_owned(), text.into())]))
}

/// Arguments that are easily changed on the way.
fn odd_arguments() -> Option<Map<String, Value>> {
    let odd = json!({
        "text": "  ä € 😀\r\n\t\"quoted\" \\ </script> {{ braces }} %41  ",
        "number": 9_007_199_254_740_993_i64,
        "nothing": null,
        "any": [1],
        "list": [1, "1", true, null, [], {}],
        "nested": { "a.b/c~d": {}, "": { "deep": [0.1, -0.5] } },
    });
    odd.as_object().cloned()
}

fn meta() -> Map<String, Value> {
    let meta = json!({
        "com.example/marker": { "n": 9_007_199_254_740_993_i64 },
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    meta.as_object().cloned().unwrap_or_default()
}
