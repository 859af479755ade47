//! Which trace a request over HTTP belongs to: that of its client, whatever connection it comes on.

use rehearse_protocol::{EventKind, Trace};

use super::{client::http_client, *};

const STATELESS: &str = "http: { sessions: false }\ntools: [{ name: a, reply: x }]";

struct Recorded {
    server: MockServer,
    /// Not kept alive: each request comes on a connection of its own.
    fresh: reqwest::Client,
}

impl Recorded {
    async fn start(script: &str, lenient: bool) -> Recorded {
        let listen = ListenOptions { lenient, recorder: Some(Arc::default()), ..ListenOptions::default() };
        let server = MockServer::start(engine(script), listen).await.expect("binds");
        let fresh = http_client().pool_max_idle_per_host(0).build().expect("a client");
        Recorded { server, fresh }
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<Json>) -> reqwest::Response {
        let method = method.parse().expect("a method");
        let request = self.fresh.request(method, format!("http://{}{path}", self.server.address()));
        let usual = [("accept", "application/json, text/event-stream"), ("content-type", "application/json")];
        let request = usual.iter().chain(headers).fold(request, |request, (name, value)| request.header(*name, *value));
        let request = body.iter().fold(request, |request, body| request.body(body.to_string()));
        request.send().await.expect("a response")
    }

    async fn post(&self, headers: &[(&str, &str)], body: Json) -> u16 {
        self.send("POST", "/mcp", headers, Some(body)).await.status().as_u16()
    }

    async fn modern(&self, request: Json) -> u16 {
        let message = modern(request);
        let method = message["method"].as_str().expect("a method").to_owned();
        let name = message["params"]["name"].as_str().unwrap_or("none").to_owned();
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", &*method), ("mcp-name", &*name)];
        self.post(&headers[..if name == "none" { 2 } else { 3 }], message).await
    }

    /// The methods that each trace has, of HTTP for what is no message.
    fn sent(&self) -> Vec<Vec<String>> {
        self.server.traces().iter().map(sent).collect()
    }
}

fn sent(trace: &Trace) -> Vec<String> {
    let sent = trace.events().filter_map(|event| match &event.kind {
        EventKind::Frame(frame) if frame.direction == rehearse_protocol::Direction::ClientToServer => {
            let message: Json = serde_json::from_slice(&frame.bytes).expect("JSON");
            Some(message["method"].as_str().expect("a method").to_owned())
        }
        EventKind::HttpRequest { method, target, .. } if method != "POST" => Some(format!("{method} {target}")),
        _ => None,
    });
    sent.collect()
}

fn list(id: u32) -> Json {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {} })
}

#[tokio::test]
async fn what_follows_an_initialize_without_a_session_is_one_client() {
    for lenient in [false, true] {
        let it = Recorded::start(STATELESS, lenient).await;
        let version = [("mcp-protocol-version", "2025-11-25")];
        it.send("GET", "/.well-known/oauth-protected-resource/mcp", &[], None).await;
        for _ in 0..2 {
            assert_eq!(it.post(&[], initialize("2025-11-25")).await, 200);
            assert_eq!(it.post(&version, list(2)).await, 200);
            it.send("GET", "/mcp", &version, None).await;
        }
        let client = ["initialize", "tools/list", "GET /mcp"];
        let aside = ["GET /.well-known/oauth-protected-resource/mcp"];
        assert_eq!(it.sent(), [&aside[..], &client, &client], "lenient: {lenient}");
    }
}

#[tokio::test]
async fn a_modern_client_with_a_connection_for_each_request_is_one_client_and_another_process_another() {
    let it = Recorded::start("tools: [{ name: a, reply: x }]", false).await;
    let discover = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "a" } });
    for request in [discover.clone(), list(2), list(3), discover, call] {
        assert_eq!(it.modern(request).await, 200);
    }
    // A message with a known id again is of a third one.
    assert_eq!(it.modern(list(2)).await, 200);
    let all = it.sent();
    assert_eq!(all[0], ["server/discover", "tools/list", "tools/list"]);
    assert_eq!(all[1], ["server/discover", "tools/call"]);
    assert_eq!(all.len(), 3, "{all:?}");
}

#[tokio::test]
async fn a_request_that_is_refused_for_now_is_of_the_same_client_when_it_comes_again() {
    let script = "tools: [{ name: a, reply: x }]\nfaults: [{ do: { status: 503 } }]";
    let it = Recorded::start(script, false).await;
    for _ in 0..3 {
        assert_eq!(it.modern(list(1)).await, 503);
    }
    assert_eq!(it.sent(), [["tools/list"; 3]]);
}

#[tokio::test]
async fn an_id_of_no_session_is_in_the_trace_of_the_session_and_a_get_without_one_is_refused() {
    let it = Recorded::start("tools: [{ name: a, reply: x }]", true).await;
    let opened = it.send("POST", "/mcp", &[], Some(initialize("2025-11-25"))).await;
    assert!(opened.headers().contains_key("mcp-session-id"));
    assert_eq!(it.post(&[("mcp-session-id", "another")], list(2)).await, 404);
    assert_eq!(it.send("GET", "/mcp", &[], None).await.status(), 400);
    assert_eq!(it.sent()[0], ["initialize", "tools/list"]);
    // Of two clients it may be either.
    it.send("POST", "/mcp", &[], Some(initialize("2025-11-25"))).await;
    assert_eq!(it.post(&[("mcp-session-id", "another")], list(2)).await, 404);
    let sessions: Vec<_> = it.sent().into_iter().filter(|sent| sent[0] == "initialize").collect();
    assert_eq!(sessions, [&["initialize", "tools/list"][..], &["initialize"]]);
}
