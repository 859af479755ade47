use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::*;
use crate::{
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer},
};
use rehearse_document::Source;

const SCRIPT: &str = "
server: { name: shop }
state: { cart: { apples: 1 }, open: true }
tools:
  - name: buy
    expect: { calls: 1 }
    steps: [{ set: { bought: '{{ args.what }}' } }, { reply: 'bought {{ args.what }}' }]
";

struct Both {
    mock: MockServer,
    admin: AdminServer,
}

impl Both {
    async fn start() -> Both {
        let script = Script::parse(&Source::new("s", SCRIPT)).unwrap_or_else(|error| panic!("{error}"));
        let engine = Engine::new(script, 1, Journal::default());
        let mock = MockServer::start(engine.clone(), ListenOptions::default()).await.expect("binds");
        let admin = AdminServer::start(engine, None, mock.started(), ([127, 0, 0, 1], 0).into()).await.expect("binds");
        Both { mock, admin }
    }

    /// The status, the head and the body of what is answered to a request with the token.
    async fn send(&self, request: &str, body: &str) -> (u16, Json) {
        let authorization = format!("Authorization: Bearer {}\r\nHost: localhost\r\n", self.admin.token());
        let response = exchange(self.admin.address(), request, &authorization, body).await;
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, if body.is_empty() { Json::Null } else { serde_json::from_str(body).expect(body) })
    }

    async fn get(&self, path: &str) -> Json {
        let (status, body) = self.send(&format!("GET {path}"), "").await;
        assert_eq!(status, 200, "{body}");
        body
    }

    /// Calls the tool.
    async fn buy(&self, what: &str) -> String {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}
        });
        let params = json!({ "name": "buy", "arguments": { "what": what }, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let headers = "Host: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                       Accept: application/json, text/event-stream\r\nMcp-Method: tools/call\r\nMcp-Name: buy\r\n";
        exchange(self.mock.address(), "POST /mcp", headers, &body).await
    }
}

async fn exchange(address: SocketAddr, request: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("connects");
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).await.expect("writes");
    let mut response = String::new();
    let read = timeout(Duration::from_secs(60), stream.read_to_string(&mut response)).await;
    read.expect("in time").expect("reads");
    response
}

#[tokio::test]
async fn only_requests_with_the_token_from_this_machine_are_answered() {
    let both = Both::start().await;
    let token = both.admin.token().to_owned();
    let other: String = token.chars().map(|c| if c == '0' { '1' } else { '0' }).collect();
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    for (headers, status) in [
        (format!("Host: localhost\r\n{}", bearer(&token)), "200"),
        (format!("Host: localhost\r\nOrigin: http://localhost:3000\r\n{}", bearer(&token)), "200"),
        ("Host: localhost\r\n".into(), "401"),
        (format!("Host: localhost\r\n{}", bearer("")), "401"),
        (format!("Host: localhost\r\n{}", bearer(&token[1..])), "401"),
        (format!("Host: localhost\r\n{}", bearer(&format!("{token}0"))), "401"),
        (format!("Host: localhost\r\n{}", bearer(&other)), "401"),
        (format!("Host: localhost\r\nAuthorization: Basic {token}\r\n"), "401"),
        (format!("Host: evil.example.com\r\n{}", bearer(&token)), "403"),
        (format!("Host: localhost\r\nOrigin: http://evil.example.com\r\n{}", bearer(&token)), "403"),
        (bearer(&token), "400"),
    ] {
        let response = exchange(both.admin.address(), "GET /state", &headers, "").await;
        assert_eq!(response.split(' ').nth(1), Some(status), "{headers}{response}");
        assert_eq!(response.contains("www-authenticate: Bearer\r\n"), status == "401", "{response}");
        assert_eq!(response.contains("apples"), status == "200", "{response}");
    }
    let engine = both.mock.engine().clone();
    let refused = AdminServer::start(engine, None, Instant::now(), ([0, 0, 0, 0], 0).into()).await;
    assert_eq!(refused.expect_err("everybody could reach it").kind(), io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn the_journal_shows_a_message_however_deep_it_is() {
    let both = Both::start().await;
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let ping = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{deep}}}"#);
    let headers =
        "Host: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    exchange(both.mock.address(), "POST /mcp", headers, &ping).await;
    for path in ["/journal", "/verify"] {
        let authorization = format!("Authorization: Bearer {}\r\nHost: localhost\r\n", both.admin.token());
        let answer = exchange(both.admin.address(), &format!("GET {path}"), &authorization, "").await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(&deep), "{path}: {answer}");
    }
}

#[tokio::test]
async fn the_journal_and_the_verification_report_what_came() {
    let both = Both::start().await;
    let verified = both.get("/verify").await;
    assert_eq!((&verified["holds"], &verified["expectations"]), (&json!(false), &json!(1)));
    assert_eq!(verified["report"], "tools.buy: expected 1 call, got 0 calls\n");
    assert!(both.buy("pears").await.contains("bought pears"));
    let journal = both.get("/journal").await;
    assert_eq!((&journal["entries"][0]["handling"], &journal["entries"][1]), (&json!("tools.buy"), &Json::Null));
    assert_eq!(journal["entries"][0]["request"]["params"]["arguments"]["what"], "pears");
    assert_eq!(both.get("/verify").await["holds"], true);
    assert_eq!(both.send("DELETE /journal", "").await, (204, Json::Null));
    assert_eq!(both.get("/journal").await, json!({ "entries": [] }));
    assert_eq!(both.get("/verify").await["holds"], true, "counters are no part of it");
}

#[tokio::test]
async fn the_state_is_read_replaced_and_merged_and_a_reset_begins_again() {
    let both = Both::start().await;
    both.buy("pears").await;
    assert_eq!(both.get("/state").await, json!({ "cart": { "apples": 1 }, "open": true, "bought": "pears" }));
    let patch = r#"{"cart": {"apples": null, "plums": 2}, "open": null}"#;
    let merged = json!({ "cart": { "plums": 2 }, "bought": "pears" });
    assert_eq!(both.send("PATCH /state", patch).await, (200, merged.clone()));
    assert_eq!(both.get("/state").await, merged);
    assert_eq!(both.send("PUT /state", r#"{"only": 1}"#).await, (200, json!({ "only": 1 })));
    let put = both.send("PUT /state", r#"{"only": 1, "none": null, "deep": {"kept": null}}"#).await;
    assert_eq!(put, (200, json!({ "only": 1, "deep": { "kept": null } })), "a null takes a value away");
    assert_eq!(both.send("PUT /state", r#"{"only": 1}"#).await.0, 200);
    for wrong in ["[1]", "{", ""] {
        for request in ["PUT /state", "PATCH /state"] {
            let (status, body) = both.send(request, wrong).await;
            assert!(status == 400 && body["error"].as_str().is_some_and(|why| why.contains("a JSON object")), "{body}");
        }
    }
    assert_eq!(both.get("/state").await, json!({ "only": 1 }));
    both.send("POST /rules", r#"{"tool": "buy", "rule": {"reply": "sold out"}}"#).await;
    assert_eq!(both.send("POST /reset", "").await, (204, Json::Null));
    assert_eq!(both.get("/state").await, json!({ "cart": { "apples": 1 }, "open": true }));
    assert_eq!(both.get("/verify").await["unmet"][0]["calls"], 0);
    assert_eq!(both.get("/rules").await["rules"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_rule_is_put_in_front_and_taken_away() {
    let both = Both::start().await;
    let rule = json!({ "tool": "buy", "rule": { "when": { "args": { "what": "plums" } }, "reply": "sold out" } });
    assert_eq!(both.send("POST /rules", &rule.to_string()).await, (201, json!({ "id": "r1" })));
    assert!(both.buy("plums").await.contains("sold out"));
    assert!(both.buy("pears").await.contains("bought pears"));
    let rules = both.get("/rules").await;
    assert_eq!(
        rules["rules"][0],
        json!({ "id": "r1", "kind": "tool", "name": "buy", "label": "tools.buy.rules[r1]", "calls": 1 })
    );
    assert_eq!(both.send("DELETE /rules/r1", "").await, (204, Json::Null));
    assert!(both.buy("plums").await.contains("bought plums"));
    assert_eq!(both.send("DELETE /rules/r1", "").await.0, 404);
}

#[tokio::test]
async fn mistakes_of_a_rule_are_reported_with_their_places_in_the_body() {
    let both = Both::start().await;
    let (status, body) = both.send("POST /rules", "{\"tool\": \"buy\",\n \"rule\": {\"repply\": \"x\"}}").await;
    assert_eq!(status, 400);
    let hint = "did you mean `reply`?";
    let problem = json!({ "line": 2, "column": 11, "message": "a rule has no key `repply`", "hint": hint });
    assert_eq!(body, json!({ "error": "the rule has mistakes", "problems": [problem] }));
}

#[tokio::test]
async fn a_rule_that_is_refused_uses_no_id_up() {
    let both = Both::start().await;
    for expected in ["r1", "r2"] {
        for wrong in ["{", r#"{"tool": "none", "rule": {"reply": "x"}}"#] {
            assert_eq!(both.send("POST /rules", wrong).await.0, 400);
        }
        let added = both.send("POST /rules", r#"{"tool": "buy", "rule": {"reply": "x"}}"#).await;
        assert_eq!(added, (201, json!({ "id": expected })));
    }
    both.send("DELETE /rules/r2", "").await;
    let added = both.send("POST /rules", r#"{"tool": "buy", "rule": {"reply": "x"}}"#).await;
    assert_eq!(added, (201, json!({ "id": "r3" })), "no id is used twice");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_read_to_its_end_and_refused() {
    let both = Both::start().await;
    let (status, body) = both.send("PUT /state", &" ".repeat(MAX_FRAME + (8 << 20))).await;
    assert_eq!((status, &body["error"]), (413, &json!(format!("a body of more than {MAX_FRAME} bytes"))));
}

#[tokio::test]
async fn every_endpoint_is_listed_and_others_are_refused() {
    let both = Both::start().await;
    let index = both.get("/").await;
    assert_eq!(index["name"], "shop");
    for endpoint in index["endpoints"].as_array().expect("a list") {
        let request = endpoint["request"].as_str().expect("a text").replace("{id}", "r1");
        let (status, body) = both.send(&request, "{}").await;
        assert!(status != 405 && body["error"] != format!("there is nothing at {request}"), "{request}: {body}");
    }
    assert_eq!(both.send("GET /nothing", "").await.0, 404);
    assert_eq!(both.send("GET /rules/", "").await.0, 404);
    let (status, body) = both.send("POST /state", "").await;
    let why = "the method is not allowed here; allowed are GET, PUT, PATCH";
    assert_eq!((status, body["error"].as_str()), (405, Some(why)));
}

#[tokio::test]
async fn nothing_listens_any_more_when_it_has_stopped() {
    let both = Both::start().await;
    let address = both.admin.address();
    both.admin.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
}
