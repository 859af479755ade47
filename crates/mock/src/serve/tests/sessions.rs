//! Requests over HTTP in a session.

use super::{
    client::{Client, Events, http_client},
    *,
};

const ASKS: &str = "
tools:
  - { name: asks, steps: [{ roots: { as: folders, optional: false } }, { reply: '{{ folders.roots | length }}' }] }
  - { name: never, delay: 60s, reply: never }
  - { name: sets, steps: [{ wait: 30ms }, { set: { done: true } }, { reply: x }] }
";

/// A session whose client can be asked for its roots.
async fn client_with_question(script: &str) -> Client {
    let mut client = Client::open(script).await;
    let mut hello = initialize("2025-11-25");
    hello["params"]["capabilities"] = json!({ "roots": {} });
    let opened = client.post("/mcp", &hello).await;
    client.headers.push(("mcp-session-id", opened.headers()["mcp-session-id"].to_str().expect("text").to_owned()));
    let greeting = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(client.post("/mcp", &greeting).await.status(), 202);
    client
}

#[tokio::test]
async fn a_stream_is_read_by_the_connection_that_resumed_it_last_and_by_no_other() {
    let mut client = client_with_question(ASKS).await;
    let mut first = Events::from_response(client.post("/mcp", &call(1, "asks")).await);
    first.next().await.expect("priming");
    let question = first.next().await.expect("a question");
    client.headers.push(("last-event-id", question.id.expect("an id")));
    let mut second = Events::from_response(client.get("/mcp").await);
    assert_eq!(first.next().await, None, "it was read on elsewhere");
    let mut third = Events::from_response(client.get("/mcp").await);
    assert_eq!(second.next().await, None);
    let question: Json = serde_json::from_slice(&question.data.expect("data")).expect("JSON");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
    assert_eq!(client.post("/mcp", &answer).await.status(), 202);
    assert_eq!(third.json().await["result"]["content"][0]["text"], "0");
    assert_eq!(third.next().await, None);
}

#[tokio::test]
async fn a_new_standalone_stream_ends_the_one_before_it() {
    let client = client_with_question(ASKS).await;
    let mut first = Events::from_response(client.get("/mcp").await);
    first.next().await.expect("priming");
    let mut second = Events::from_response(client.get("/mcp").await);
    second.next().await.expect("priming");
    assert_eq!(first.next().await, None);
}

#[tokio::test]
async fn an_answer_that_is_always_json_can_be_cancelled_and_keeps_its_id() {
    let client = client_with_question(&format!("{ASKS}\nhttp: {{ answers: json }}")).await;
    let request = call(1, "never");
    let cancelled = async {
        busy(client.server.engine()).await;
        let reply: Json = client.post("/mcp", &call(1, "never")).await.json().await.expect("JSON");
        assert_eq!(reply["error"]["code"], -32600, "the id is in use");
        assert_eq!(client.post("/mcp", &cancel(1)).await.status(), 202);
    };
    let (response, ()) = tokio::join!(client.post("/mcp", &request), cancelled);
    assert_eq!(Events::from_response(response).next().await, None, "it is not answered");
    idle(client.server.engine()).await;
}

#[tokio::test]
async fn an_answer_that_is_always_json_comes_about_although_the_connection_is_lost() {
    let client = client_with_question(&format!("{ASKS}\nhttp: {{ answers: json }}")).await;
    let engine = client.server.engine().clone();
    let request = call(1, "sets");
    tokio::select! {
        _ = client.post("/mcp", &request) => panic!("not yet"),
        () = busy(&engine) => {}
    }
    idle(&engine).await;
    assert_eq!(engine.state().get().get("done"), Some(&json!(true)));
}

#[tokio::test]
async fn a_lenient_server_answers_without_the_headers_and_has_one_trace_of_the_session() {
    let engine = MockServer::from_script("tools: [{ name: a, reply: x }]").engine().expect("a script");
    let listen = ListenOptions { lenient: true, recorder: Some(Arc::default()), ..ListenOptions::default() };
    let server = MockServer::start(engine, listen).await.expect("binds");
    let (http, url) = (http_client().build().expect("a client"), server.url(Transport::Http).expect("a URL"));
    let post = async |message: Json| {
        let response = http.post(&url).body(message.to_string()).send().await.expect("a response");
        response.status().as_u16()
    };
    let info = json!({ "name": "c", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    assert_eq!(post(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })).await, 200);
    assert_eq!(post(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" })).await, 200);
    let key = |name: &str| format!("io.modelcontextprotocol/{name}");
    let meta = json!({ key("protocolVersion"): "2026-07-28", key("clientCapabilities"): {} });
    let modern = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": { "_meta": meta } });
    assert_eq!(post(modern).await, 200);
    assert_eq!(server.traces().len(), 1);
}

#[tokio::test]
async fn a_fault_for_the_modern_era_applies_where_a_legacy_server_is_asked_for_it() {
    let script = |fault: &str| format!("protocol: 2025-11-25\nfaults: [{{ on: {{ era: modern }}, do: {fault} }}]\n");
    for (fault, status, body) in [
        ("{ status: 404 }", 404, ""),
        ("{ status: 202 }", 202, ""),
        ("{ status: { code: 200, rpcError: { code: -32601, message: No } } }", 200, r#""id":1,"error":{"code":-32601"#),
        ("{ change: { set: { /id: server-error } } }", 400, r#""id":"server-error""#),
    ] {
        let client = Client::open(&script(fault)).await;
        let discover = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {} });
        let response = client.post_modern(discover).await;
        assert_eq!(response.status(), status, "{fault}");
        let text = response.text().await.expect("text");
        assert!(text.contains(body), "{fault}: {text}");
        assert_eq!(client.post("/mcp", &initialize("2025-11-25")).await.status(), 200, "{fault}");
    }
}
