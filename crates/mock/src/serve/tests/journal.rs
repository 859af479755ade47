//! What the journal says about sessions, requests and answers, and which refusals fail the verification.

use super::{client::Client, *};

const JOURNALLED: &str = "
tools:
  - { name: echo, inputSchema: { type: object, required: [text] }, reply: '{{ args.text }}' }
  - { name: never, delay: 60s, reply: never }
  - { name: fails, reply: '{{ args.missing }}' }
  - { name: refuses, reply: { error: no } }
";

/// The members of each entry, without numbers, times and requests.
fn told(server: &MockServer, members: &[&str]) -> Vec<String> {
    let entries = server.engine().journal().entries();
    let line = |entry: &crate::journal::Entry| {
        let entry = json!(entry);
        let member = |name: &&str| entry[*name].as_str().map(str::to_owned);
        members.iter().filter_map(member).collect::<Vec<_>>().join(" | ")
    };
    entries.iter().map(line).collect()
}

#[tokio::test]
async fn the_journal_has_the_session_the_request_and_the_end_of_each_call() {
    let client = Client::session_with(JOURNALLED, "2025-11-25").await;
    let odd = client.http.post(client.server.url(Transport::Http).expect("a URL"));
    let odd = odd.header("accept", "application/json, text/event-stream").header("content-type", "application/json");
    assert_eq!(odd.body(initialize("1.0.0").to_string()).send().await.expect("a response").status(), 200);
    let stream = client.get("/mcp").await;
    for (id, tool) in [(1, "echo"), (2, "fails"), (3, "refuses")] {
        assert_eq!(client.post("/mcp", &call(id, tool)).await.status(), 200);
    }
    let cancelled = client.post("/mcp", &call(4, "never")).await;
    client.post("/mcp", &cancel(4)).await;
    idle(client.server.engine()).await;
    let abandoned = client.post("/mcp", &call(5, "never")).await;
    assert_eq!(client.request(reqwest::Method::DELETE, "/mcp").send().await.expect("a response").status(), 204);
    idle(client.server.engine()).await;
    assert_eq!(
        told(&client.server, &["http", "method", "handling", "answer", "outcome", "reason"]),
        [
            "initialize | protocol | answered | result",
            "initialize | protocol | answered | result | protocol version 1.0.0 is not offered; the answer is 2025-11-25",
            "GET /mcp | protocol | answered | result",
            "tools/call | tools.echo | answered | result",
            "tools/call | tools.fails | answered | error | a template failed: s:5:27: `args.missing` has no value",
            "tools/call | tools.refuses | answered | toolError",
            "tools/call | tools.never | cancelled",
            "notifications/cancelled | protocol",
            "tools/call | tools.never | abandoned",
            "DELETE /mcp | protocol | answered | result",
        ]
    );
    let mut sessions = told(&client.server, &["session"]);
    let id = client.headers.last().expect("a session").1.clone();
    assert!(sessions.remove(1) != id && sessions.iter().all(|it| *it == id), "{sessions:?}");
    drop((stream, cancelled, abandoned));
}

#[tokio::test]
async fn connections_without_a_session_have_names() {
    let client = Client::open(JOURNALLED).await;
    for _ in 0..2 {
        let mut socket = client.socket().await;
        socket.send(WsMessage::text(initialize("2025-11-25").to_string())).await.expect("sends");
        socket.next().await.expect("a frame").expect("a frame");
    }
    assert_eq!(told(&client.server, &["session"]), ["ws-1", "ws-2"]);
}

#[tokio::test]
async fn the_follower_is_told_of_a_long_call_at_its_beginning_and_at_its_end() {
    let (sender, events) = std::sync::mpsc::sync_channel(16);
    let script = Script::parse(&Source::new("s", "tools: [{ name: later, delay: 1ms, reply: x }]")).expect("valid");
    let engine = Engine::new(script, 1, Journal::new(Some(sender)));
    let server = MockServer::start(engine, ListenOptions::default()).await.expect("binds");
    let mut pipe = BufReader::new(server.connect());
    for frame in [initialize("2025-11-25"), call(1, "later")] {
        pipe.write_all(format!("{frame}\n").as_bytes()).await.expect("writes");
        pipe.read_line(&mut String::new()).await.expect("reads");
    }
    let lines: Vec<_> = events.try_iter().map(|event| json!(event)).collect();
    let of_call = |index: usize, member: &str| lines[index][member].clone();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!((of_call(1, "answer"), of_call(1, "request")["id"].clone()), (Json::Null, json!(1)));
    assert_eq!((of_call(2, "answer"), of_call(2, "outcome")), (json!("answered"), json!("result")));
    assert_eq!((of_call(2, "number"), of_call(2, "request")), (of_call(1, "number"), Json::Null));
}

/// Sends a request as it is, and returns whether the verification holds.
async fn holds(script: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> bool {
    let client = Client::open(script).await;
    let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
    let url = format!("http://{}{path}", client.server.address());
    let request = client.http.request(method, url).body(body.to_owned());
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let status = request.send().await.expect("a response").status();
    assert!(status.is_client_error() || status.is_success(), "{status}");
    let verification = client.server.engine().verify();
    assert!(status.is_success() || client.server.engine().journal().len() == 1);
    verification.holds()
}

#[tokio::test]
async fn refusals_fail_the_verification_unless_a_correct_client_is_refused_too() {
    let accept = ("accept", "application/json, text/event-stream");
    let json_type = ("content-type", "application/json");
    let lost = ("mcp-session-id", "0123456789abcdef0123456789abcdef");
    let hello = initialize("2025-11-25").to_string();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let both = [accept, json_type];
    let with = |more: (&'static str, &'static str)| [accept, json_type, more];
    for (method, headers, body) in [
        ("POST", &[json_type, ("accept", "text/plain")][..], &*hello),
        ("POST", &[accept], &hello),
        ("POST", &both, "{"),
        ("POST", &both, &list),
        ("POST", &with(("mcp-session-id", "mine")), &list),
        ("POST", &with(("mcp-protocol-version", "2026-07-28")), &modern(call(1, "echo")).to_string()),
        ("PUT", &both, ""),
    ] {
        assert!(!holds(JOURNALLED, method, "/mcp", headers, body).await, "{method} {headers:?} {body}");
    }
    assert!(!holds(JOURNALLED, "POST", "/mpc", &both, &hello).await, "a wrong path");
    let old = format!("{JOURNALLED}protocol: 2025-11-25\n");
    let probe = modern(json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {} })).to_string();
    let new = "protocol: 2026-07-28\nserver: { name: t }";
    let locked = "auth: { tokens: [{ token: x }] }";
    for (script, method, headers, body) in [
        (JOURNALLED, "POST", &both[..], &*hello),
        (JOURNALLED, "POST", &with(lost), &list),
        (&old, "POST", &with(("mcp-protocol-version", "2026-07-28")), &probe),
        (new, "POST", &both, &hello),
        (new, "GET", &both, ""),
        (locked, "POST", &both, &hello),
    ] {
        assert!(holds(script, method, "/mcp", headers, body).await, "{method} {headers:?} {body}");
    }
}

#[tokio::test]
async fn malformed_requests_fail_the_verification_and_wrong_arguments_only_if_the_script_says_so() {
    let verified = async |script: &str, request: Json| {
        let client = Client::session_with(script, "2025-11-25").await;
        client.post("/mcp", &request).await;
        client.server.engine().verify()
    };
    let request = |method: &str, params: Json| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let bad_cursor = verified(JOURNALLED, request("tools/list", json!({ "cursor": "x" }))).await;
    assert_eq!(bad_cursor.to_string(), "tools/list (number 2): refused: Invalid cursor\n");
    assert!(!bad_cursor.holds());
    let unasked = json!({ "jsonrpc": "2.0", "id": 9, "result": {} });
    assert!(!verified(JOURNALLED, unasked).await.holds());
    let wrong = request("tools/call", json!({ "name": "echo", "arguments": {} }));
    let tolerated = verified(JOURNALLED, wrong.clone()).await;
    assert!(tolerated.holds() && tolerated.tolerated.len() == 1, "{tolerated}");
    let strict = format!("unexpected: fail\n{JOURNALLED}");
    let unexpected = verified(&strict, wrong).await;
    assert!(!unexpected.holds() && unexpected.to_string().starts_with("unexpected: tools/call (number 2)"));
    assert!(verified(&strict, request("ping", json!({}))).await.holds());
}
