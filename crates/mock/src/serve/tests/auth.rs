//! Clients that show who they are.

use super::{
    client::{Client, Events},
    *,
};

const SCRIPT: &str = "
auth: { tokens: [{ token: a, scopes: [x] }, { token: b }] }
tools:
  - { name: secret, scopes: [x], reply: top secret }
  - { name: open, reply: x }
";

impl Client {
    /// Shows another token from now on.
    fn show(&mut self, token: &str) {
        self.headers.retain(|(name, _)| *name != "authorization");
        self.headers.push(("authorization", format!("Bearer {token}")));
    }
}

#[tokio::test]
async fn only_the_client_that_opened_a_session_can_use_it() {
    let mut client = Client::open(SCRIPT).await;
    client.show("a");
    let opened = client.post("/mcp", &initialize("2025-11-25")).await;
    client.headers.push(("mcp-session-id", opened.headers()["mcp-session-id"].to_str().expect("text").to_owned()));
    client.show("b");
    assert_eq!(client.post("/mcp", &call(1, "open")).await.status(), 404);
    assert_eq!(client.post("/mcp", &json!([])).await.status(), 400);
    assert_eq!(client.get("/mcp").await.status(), 404);
    let deleted = client.request(reqwest::Method::DELETE, "/mcp").send().await.expect("a response");
    assert_eq!(deleted.status(), 404);
    client.show("a");
    assert_eq!(client.post("/mcp", &call(1, "secret")).await.status(), 200);
}

#[tokio::test]
async fn only_the_client_that_opened_a_stream_of_http_with_sse_can_use_it() {
    let mut client = Client::open(SCRIPT).await;
    client.show("a");
    let mut events = Events::from_response(client.get("/sse").await);
    let endpoint = events.next().await.expect("the endpoint").data.expect("data");
    let path = String::from_utf8(endpoint.to_vec()).expect("text");
    assert_eq!(client.post(&path, &initialize("2024-11-05")).await.status(), 202);
    events.json().await;
    client.show("b");
    assert_eq!(client.post(&path, &call(1, "secret")).await.status(), 404);
    client.show("a");
    assert_eq!(client.post(&path, &call(2, "secret")).await.status(), 202);
    let reply = events.json().await;
    assert_eq!((&reply["id"], &reply["result"]["content"][0]["text"]), (&json!(2), &json!("top secret")));
}
