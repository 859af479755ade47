//! Over the network.

use super::{
    client::{Client, Events},
    *,
};

#[tokio::test]
async fn a_session_is_required_kept_and_gone_after_delete() {
    let client = Client::session("2025-11-25").await;
    assert_eq!(
        client.post("/mcp", &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await.status(),
        202
    );
    let reply: Json = client.post("/mcp", &call(1, "echo")).await.json().await.expect("JSON");
    assert_eq!(reply["result"]["content"][0]["text"], "hi");
    let without = Client { headers: client.headers[..2].to_vec(), ..Client::open(SCRIPT).await };
    assert_eq!(without.post("/mcp", &call(1, "echo")).await.status(), 400);
    for (version, expected) in [("2025-06-18", 200), ("2025-06-19", 400)] {
        let request = client.request(reqwest::Method::POST, "/mcp").header("mcp-protocol-version", version);
        let response = request.body(call(1, "echo").to_string()).send().await.expect("a response");
        assert_eq!(response.status(), expected, "{version}");
    }
    let delete =
        || async { client.request(reqwest::Method::DELETE, "/mcp").send().await.expect("a response").status() };
    assert_eq!(delete().await, 204);
    assert_eq!(delete().await, 404);
    assert_eq!(client.post("/mcp", &call(1, "echo")).await.status(), 404);
    assert_eq!(client.get("/mcp").await.status(), 404);
}

#[tokio::test]
async fn a_lost_stream_can_be_resumed_and_cancels_nothing() {
    let mut client = Client::session("2025-11-25").await;
    let mut events = Events::from_response(client.post("/mcp", &call(1, "steps")).await);
    let priming = events.next().await.expect("a priming event");
    assert_eq!(priming.data.as_deref(), Some(&b""[..]));
    drop(events);
    idle(client.server.engine()).await;
    client.headers.push(("last-event-id", priming.id.expect("an id")));
    let mut events = Events::from_response(client.get("/mcp").await);
    assert_eq!(events.json().await["method"], "notifications/progress");
    assert_eq!(events.json().await["result"]["content"][0]["text"], "done");
    client.headers.last_mut().expect("a header").1 = "77-0".into();
    assert_eq!(client.get("/mcp").await.status(), 400);
}

#[tokio::test]
async fn a_cancelled_legacy_request_ends_its_stream_without_an_answer() {
    let client = Client::session("2025-06-18").await;
    let mut events = Events::from_response(client.post("/mcp", &call(5, "never")).await);
    assert_eq!(client.post("/mcp", &cancel(5)).await.status(), 202);
    assert_eq!(events.next().await, None, "no priming event before 2025-11-25, no answer after the cancellation");
}

#[tokio::test]
async fn the_standalone_stream_ends_with_its_session() {
    let client = Client::session("2025-11-25").await;
    let mut stream = Events::from_response(client.get("/mcp").await);
    assert!(stream.next().await.is_some(), "priming");
    client.request(reqwest::Method::DELETE, "/mcp").send().await.expect("a response");
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn batches_are_answered_on_one_stream() {
    let client = Client::session("2025-03-26").await;
    let batch = json!([call(1, "later"), call(2, "echo"), { "jsonrpc": "2.0", "method": "notifications/x" }]);
    let mut events = Events::from_response(client.post("/mcp", &batch).await);
    assert_eq!(
        (events.json().await["id"].clone(), events.json().await["id"].clone(), events.next().await),
        (json!(2), json!(1), None)
    );
    assert_eq!(client.post("/mcp", &json!([{ "jsonrpc": "2.0", "method": "notifications/x" }])).await.status(), 202);
    assert_eq!(Client::session("2025-06-18").await.post("/mcp", &batch).await.status(), 400);
}

#[tokio::test]
async fn modern_requests_need_no_session_and_a_closed_stream_cancels() {
    let client = Client::open(SCRIPT).await;
    let response = client.post_modern(call(1, "echo")).await;
    assert_eq!((response.status().as_u16(), response.headers().get("mcp-session-id")), (200, None));
    assert_eq!(response.json::<Json>().await.expect("JSON")["result"]["resultType"], "complete");
    let mut events = Events::from_response(client.post_modern(call(2, "steps")).await);
    assert_eq!(events.json().await["params"]["progressToken"], 2);
    assert_eq!(events.json().await["result"]["content"][0]["text"], "done");
    assert_eq!(events.next().await, None);
    tokio::select! {
        _ = client.post_modern(call(3, "never")) => panic!("nothing can be known of the answer yet"),
        () = busy(client.server.engine()) => {}
    }
    idle(client.server.engine()).await;
    let unknown = client.post_modern(json!({ "jsonrpc": "2.0", "id": 4, "method": "ping", "params": {} })).await;
    assert_eq!(unknown.status(), 404);
    let refused: Json = unknown.json().await.expect("JSON");
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(4), &json!(-32601)));
}

#[tokio::test]
async fn a_server_without_legacy_versions_has_no_sessions() {
    let client = Client::open("protocol: [2026-07-28]\ntools: [{ name: a, reply: x }]").await;
    for path in ["/mcp", "/sse"] {
        assert!(client.get(path).await.status().is_client_error());
    }
    assert_eq!(client.get("/mcp").await.status(), 405);
    let refused = client.post("/mcp", &initialize("2025-11-25")).await;
    assert_eq!(refused.status(), 400);
}

#[tokio::test]
async fn requests_that_http_already_forbids_are_refused_with_their_status_and_journalled() {
    let client = Client::open(SCRIPT).await;
    let body = initialize("2025-11-25").to_string();
    let send = |name: &'static str, value: &'static str| {
        let request = client.http.post(client.server.url(Transport::Http).expect("a URL")).body(body.clone());
        let headers = [("accept", "*/*"), ("content-type", "application/json")]
            .into_iter()
            .filter(move |(known, _)| *known != name);
        headers.chain([(name, value)]).fold(request, |request, (name, value)| request.header(name, value)).send()
    };
    for (name, value, status) in [
        ("host", "evil.example.com", 403),
        ("origin", "http://evil.example.com", 403),
        ("accept", "application/json", 406),
        ("content-type", "text/plain", 415),
        ("x-nothing", "wrong", 200),
    ] {
        assert_eq!(send(name, value).await.expect("a response").status(), status, "{name}: {value}");
    }
    let handlings: Vec<_> =
        client.server.engine().journal().entries().iter().map(|entry| entry.handling.to_string()).collect();
    assert_eq!(handlings[0], "refused: 403: the host \"evil.example.com\" is not served here");
    assert_eq!((handlings.len(), handlings[4].as_str()), (5, "protocol"));
    assert_eq!(client.get("/nope").await.status(), 404);
    assert_eq!(client.request(reqwest::Method::PUT, "/mcp").send().await.expect("a response").status(), 405);
    let broken = client.request(reqwest::Method::POST, "/mcp").body("nonsense").send().await.expect("a response");
    assert_eq!(
        (broken.status().as_u16(), broken.json::<Json>().await.expect("JSON")["error"]["code"].clone()),
        (400, json!(-32700))
    );
}

#[tokio::test]
async fn http_with_sse_answers_on_the_stream() {
    let mut client = Client::open(SCRIPT).await;
    let mut events = Events::from_response(client.get("/sse").await);
    let endpoint = events.next().await.expect("the endpoint");
    assert_eq!(endpoint.event.as_deref(), Some("endpoint"));
    let path = String::from_utf8(endpoint.data.expect("data").to_vec()).expect("text");
    assert_eq!(client.post(&path, &initialize("2024-11-05")).await.status(), 202);
    assert_eq!(events.json().await["result"]["protocolVersion"], "2024-11-05");
    client.post(&path, &call(1, "later")).await;
    client.post(&path, &call(2, "echo")).await;
    assert_eq!((events.json().await["id"].clone(), events.json().await["id"].clone()), (json!(2), json!(1)));
    let refused = modern(json!({ "jsonrpc": "2.0", "id": 3, "method": "server/discover", "params": {} }));
    client.post(&path, &refused).await;
    assert_eq!(events.json().await["error"]["code"], -32601, "the modern era has no HTTP+SSE");
    client.post(&path, &call(4, "never")).await;
    drop(events);
    idle(client.server.engine()).await;
    let gone = async {
        while client.post(&path, &call(5, "echo")).await.status() != 404 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the stream is forgotten");
    client.headers.retain(|(name, _)| *name != "accept");
    client.headers.push(("accept", "application/json".into()));
    assert_eq!(client.get("/sse").await.status(), 406);
}

#[tokio::test]
async fn a_web_socket_carries_both_eras_in_text_messages() {
    let client = Client::open(SCRIPT).await;
    let url = client.server.url(Transport::Ws).expect("a URL");
    assert!(tokio_tungstenite::connect_async(&url).await.is_err(), "the subprotocol is missing");
    let mut socket = client.socket().await;
    let text = |frame: Json| WsMessage::text(frame.to_string());
    for frame in [modern(call(1, "echo")), initialize("2025-11-25"), call(2, "later"), call(3, "never"), cancel(3)] {
        socket.send(text(frame)).await.expect("sends");
    }
    let mut ids = Vec::new();
    for _ in 0..3 {
        let frame: Json = serde_json::from_str(
            socket.next().await.expect("a message").expect("well formed").to_text().expect("text"),
        )
        .expect("JSON");
        ids.push(frame["id"].clone());
    }
    assert_eq!(ids, [1, 0, 2]);
    socket.send(WsMessage::binary(Bytes::from_static(b"{}"))).await.expect("sends");
    let Some(Ok(WsMessage::Close(Some(close)))) = socket.next().await else { panic!("a close frame") };
    assert_eq!(u16::from(close.code), 1003);

    let mut socket = client.socket().await;
    socket.send(text(modern(call(1, "later")))).await.expect("sends");
    let engine = client.server.engine().clone();
    while engine.in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    client.server.stop(PATIENCE).await;
    let first = socket.next().await.expect("a message").expect("well formed");
    assert!(first.to_text().expect("text").contains("later"), "what was under way has finished: {first}");
    assert!(matches!(socket.next().await, Some(Ok(WsMessage::Close(_)))));
}

#[tokio::test]
async fn stopping_finishes_what_is_under_way_and_closes_the_rest() {
    let client = Client::session("2025-11-25").await;
    let mut standalone = Events::from_response(client.get("/mcp").await);
    standalone.next().await;
    let mut later = Events::from_response(client.post("/mcp", &call(1, "later")).await);
    let address = client.server.address();
    let stopped = tokio::spawn(client.server.stop(PATIENCE));
    assert_eq!(standalone.next().await, None);
    later.next().await;
    assert_eq!(later.json().await["result"]["content"][0]["text"], "later");
    drop((standalone, later, client.http));
    tokio::time::timeout(PATIENCE, stopped).await.expect("in time").expect("no panic");
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn stopping_finishes_what_is_under_way_on_http_with_sse_and_on_a_resumed_stream() {
    let mut client = Client::open(SCRIPT).await;
    let mut events = Events::from_response(client.get("/sse").await);
    let path =
        String::from_utf8(events.next().await.expect("the endpoint").data.expect("data").to_vec()).expect("text");
    client.post(&path, &initialize("2024-11-05")).await;
    events.json().await;
    client.post(&path, &call(1, "later")).await;
    let opened = client.post("/mcp", &initialize("2025-11-25")).await;
    client.headers.push(("mcp-session-id", opened.headers()["mcp-session-id"].to_str().expect("text").to_owned()));
    let mut lost = Events::from_response(client.post("/mcp", &call(2, "later")).await);
    client.headers.push(("last-event-id", lost.next().await.expect("priming").id.expect("an id")));
    drop(lost);
    let mut resumed = Events::from_response(client.get("/mcp").await);
    let stopped = tokio::spawn(client.server.stop(PATIENCE));
    assert_eq!(events.json().await["id"], 1);
    assert_eq!(resumed.json().await["id"], 2);
    assert_eq!((events.next().await, resumed.next().await), (None, None));
    drop((events, resumed, client.http));
    tokio::time::timeout(PATIENCE, stopped).await.expect("in time").expect("no panic");
}

#[tokio::test]
async fn unfinished_answers_are_dropped_after_the_grace_period() {
    let client = Client::session("2025-11-25").await;
    let mut never = Events::from_response(client.post("/mcp", &call(1, "never")).await);
    let engine = client.server.engine().clone();
    client.server.stop(Duration::ZERO).await;
    assert_eq!(engine.in_flight(), 0);
    never.next().await;
    assert_eq!(never.next().await, None);
}

#[tokio::test]
async fn a_server_that_dies_breaks_every_connection() {
    for era in ["legacy", "modern"] {
        let client = Client::session("2025-06-18").await;
        let mut other = Events::from_response(client.post("/mcp", &call(1, "never")).await);
        match era {
            "legacy" => {
                assert_eq!(Events::from_response(client.post("/mcp", &call(2, "dies")).await).next().await, None)
            }
            _ => assert!(client.try_post_modern(call(2, "dies")).await.is_err()),
        }
        assert_eq!(other.next().await, None);
        assert_eq!(client.server.wait_exit().await, 3);
        assert!(tokio::net::TcpStream::connect(client.server.address()).await.is_err());
    }
}
