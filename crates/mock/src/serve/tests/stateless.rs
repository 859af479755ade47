//! Requests over HTTP without a session.

use super::{
    client::{Client, Events},
    *,
};

#[tokio::test]
async fn a_late_failure_has_the_same_status_as_an_immediate_one() {
    const SCRIPT: &str = "
tools:
  - { name: asks, steps: [{ wait: 1ms }, { roots: { as: r } }, { reply: x }] }
  - { name: task, steps: [{ wait: 1ms }, { task: { required: true } }, { reply: x }] }
  - { name: unknown, delay: 1ms, reply: { rpcError: { code: -32601, message: m } } }
  - { name: down, delay: 1ms, reply: { rpcError: { code: -7, message: m, status: 503 } } }
  - { name: works, delay: 1ms, reply: x }
";
    for faults in ["", "faults: [{ do: { delay: 1ms } }]"] {
        let client = Client::open(&format!("{SCRIPT}{faults}")).await;
        for (tool, status, code) in [
            ("asks", 400, json!(-32021)),
            ("task", 400, json!(-32021)),
            ("unknown", 404, json!(-32601)),
            ("down", 503, json!(-7)),
            ("works", 200, Json::Null),
        ] {
            let response = client.post_modern(call(1, tool)).await;
            assert_eq!(response.status(), status, "{tool} {faults}");
            assert_eq!(response.headers()["content-type"], "application/json", "{tool} {faults}");
            let reply: Json = response.json().await.expect("JSON");
            assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(1), &code));
        }
    }
}

#[tokio::test]
async fn without_sessions_a_request_that_names_no_version_is_of_one_that_is_offered() {
    let tool =
        "http: { sessions: false }\ntools: [{ name: t, inputSchema: { type: object, required: [x] }, reply: y }]";
    for (protocol, header, expected) in [
        // Wrong arguments are a tool error since 2025-11-25.
        ("[2025-11-25]", None, json!([null, true])),
        ("[2025-06-18, 2025-11-25]", None, json!([null, true])),
        ("[2025-03-26, 2025-11-25]", None, json!([-32602, null])),
        ("[2025-03-26, 2025-11-25]", Some("2025-11-25"), json!([null, true])),
        ("[2024-11-05, 2025-11-25]", Some("2024-11-05"), json!([-32602, null])),
        ("[2025-11-25]", Some("2024-11-05"), json!([-32600, null])),
        ("[2025-11-25]", Some("2025-06-18"), json!([-32600, null])),
    ] {
        let mut client = Client::open(&format!("protocol: {protocol}\n{tool}")).await;
        client.headers.extend(header.map(|version: &str| ("mcp-protocol-version", version.to_owned())));
        let reply: Json = client.post("/mcp", &call(1, "t")).await.json().await.expect("JSON");
        assert_eq!(json!([reply["error"]["code"], reply["result"]["isError"]]), expected, "{protocol} {header:?}");
    }
}

#[tokio::test]
async fn without_sessions_batches_are_answered_where_the_version_has_them() {
    let client = Client::open(&format!("{SCRIPT}\nhttp: {{ sessions: false }}")).await;
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let batch = json!([call(1, "later"), call(2, "echo"), call(3, "never"), cancel(3), initialized]);
    let mut events = Events::from_response(client.post("/mcp", &batch).await);
    assert_eq!((events.json().await["id"].clone(), events.json().await["id"].clone()), (json!(2), json!(1)));
    assert_eq!(events.next().await, None, "what was cancelled is not answered");
    assert_eq!(client.post("/mcp", &json!([initialized])).await.status(), 202);
    for version in ["2025-06-18", "2026-07-28"] {
        let later = client.request(reqwest::Method::POST, "/mcp").header("mcp-protocol-version", version);
        assert_eq!(later.body(batch.to_string()).send().await.expect("a response").status(), 400, "{version}");
    }
}

#[tokio::test]
async fn a_stream_whose_first_message_is_lost_is_open_nevertheless() {
    let script = "capabilities: { tools: { listChanged: true } }\ntools: [{ name: t, reply: x }]\nfaults: [{ on: { method: subscriptions/listen }, do: { drop: notifications } }]";
    let client = Client::open(script).await;
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let listen = modern(json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params }));
    let opened = tokio::time::timeout(PATIENCE, client.post_as_is(listen, "")).await.expect("in time");
    let mut events = Events::from_response(opened.expect("a response"));
    let stopped = tokio::spawn(client.server.stop(PATIENCE));
    assert_eq!(events.json().await["id"], 1);
    drop((events, client.http));
    stopped.await.expect("no panic");
}
