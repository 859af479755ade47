//! Sessions of streamable HTTP in the legacy versions (2025-11-25, Transports: Session Management).

use super::*;

pub(super) struct Session {
    address: String,
    id: String,
}

impl Session {
    pub(super) async fn open(server: &MockServer, version: &str) -> Session {
        let address = server.address().to_string();
        let hello = initialize(version, &json!({ "elicitation": {} })).to_string();
        let reply = http::Http::new(&address).post("/mcp", &[BOTH, IS_JSON], hello.as_bytes()).await;
        assert_eq!(reply.frames[0]["result"]["protocolVersion"], version, "{reply:?}");
        let id = reply.header("mcp-session-id").expect("a session").to_owned();
        let session = Session { address, id };
        assert_eq!(session.post(INITIALIZED.as_bytes()).await.status, 202);
        session
    }

    pub(super) async fn post(&self, frame: &[u8]) -> Reply {
        self.send("POST", &[], frame).await
    }

    pub(super) async fn send(&self, method: &str, more: &[(&str, &str)], frame: &[u8]) -> Reply {
        let headers = [&[("mcp-session-id", self.id.as_str()), BOTH, IS_JSON], more].concat();
        http::Http::new(&self.address).send(method, "/mcp", &headers, frame).await
    }

    /// A stream that stays open.
    pub(super) fn stream(
        &self,
        method: reqwest::Method,
        more: &[(&str, &str)],
        frame: String,
    ) -> reqwest::RequestBuilder {
        let headers = [&[("mcp-session-id", self.id.as_str()), BOTH, IS_JSON], more].concat();
        let request = http::client().request(method, format!("http://{}/mcp", self.address)).body(frame);
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    }
}

#[tokio::test]
async fn a_session_that_is_not_there() {
    let server = serve(&engine(SCRIPT)).await;
    let session = Session::open(&server, "2025-11-25").await;
    let ping = request(1, "ping", json!({})).to_string();
    let note = INITIALIZED;
    let client = http::Http::new(&session.address);
    for frame in [&*ping, note] {
        assert_eq!(client.post("/mcp", &[BOTH, IS_JSON], frame.as_bytes()).await.status, 400, "Session Management 2");
        for id in ["nope", "", &session.id[1..]] {
            let headers = [BOTH, IS_JSON, ("mcp-session-id", id)];
            assert_eq!(
                client.post("/mcp", &headers, frame.as_bytes()).await.status,
                404,
                "Session Management 3: {id:?}"
            );
        }
    }
    for (version, status) in [("2025-11-25", 200), ("2025-06-18", 200), ("1999-01-01", 400), ("", 400), ("\u{e9}", 400)]
    {
        let reply = session.send("POST", &[("mcp-protocol-version", version)], ping.as_bytes()).await;
        assert_eq!(reply.status, status, "Protocol Version Header: {version:?}");
    }
    let get = |more: &'static [(&str, &str)]| session.send("GET", more, b"");
    assert_eq!(get(&[("last-event-id", "77-0")]).await.status, 400, "an event of no stream (the answer is open)");
    assert_eq!(get(&[("last-event-id", "nope")]).await.status, 400);
    let headers = [("mcp-session-id", session.id.as_str()), ("accept", "application/json")];
    assert_eq!(client.send("GET", "/mcp", &headers, b"").await.status, 406, "Listening for Messages 2");
    assert_eq!(client.send("DELETE", "/mcp", &[("mcp-session-id", "nope")], b"").await.status, 404);
    assert_eq!(session.post(ping.as_bytes()).await.status, 200, "nothing of this ended it");
    for (method, status) in [("DELETE", 204), ("DELETE", 404), ("POST", 404), ("GET", 404)] {
        assert_eq!(session.send(method, &[], ping.as_bytes()).await.status, status, "Session Management 3: {method}");
    }
    assert_eq!(Session::open(&server, "2025-11-25").await.post(ping.as_bytes()).await.status, 200);
}

#[tokio::test]
async fn a_stream_is_resumed_by_its_own_session_only() {
    let server = serve(&engine(SCRIPT)).await;
    let (own, foreign) = (Session::open(&server, "2025-11-25").await, Session::open(&server, "2025-11-25").await);
    let late = request(1, "tools/call", json!({ "name": "late" })).to_string();
    let reply = own.post(late.as_bytes()).await;
    assert_eq!(reply.frames[0]["result"]["content"][0]["text"], "late");
    // Resumability and Redelivery 2: nothing of another stream is replayed.
    assert_eq!(foreign.send("GET", &[("last-event-id", "0-0")], b"").await.status, 400);
    let again = own.send("GET", &[("last-event-id", "0-0")], b"").await;
    assert_eq!((again.status, &again.frames), (200, &reply.frames));
    assert_eq!(own.send("GET", &[("last-event-id", "0-99")], b"").await.status, 400, "an event that never was");
}

/// A session's question, asked on the stream of a call that stays open.
async fn open_request(session: &Session) -> (Json, reqwest::Response) {
    let call = request(5, "tools/call", json!({ "name": "ask" })).to_string();
    let mut stream = session.stream(reqwest::Method::POST, &[], call).send().await.expect("a stream");
    let question = next_message(&mut stream).await;
    assert_eq!(question["method"], "elicitation/create");
    (question["id"].clone(), stream)
}

/// The next message of a stream.
async fn next_message(stream: &mut reqwest::Response) -> Json {
    let (mut decoder, mut events) = (rehearse_protocol::sse::Decoder::default(), Vec::new());
    loop {
        let chunk = tokio::time::timeout(PATIENCE, stream.chunk()).await.expect("in time").expect("reads");
        decoder.push(&chunk.expect("more to come"), &mut events).expect("small");
        let data = events.drain(..).filter_map(|event| event.data).find(|data| !data.is_empty());
        if let Some(data) = data {
            return serde_json::from_slice(&data).expect("JSON");
        }
    }
}

#[tokio::test]
async fn only_the_session_that_got_the_request_can_answer() {
    let server = serve(&engine(SCRIPT)).await;
    let (own, foreign) = (Session::open(&server, "2025-11-25").await, Session::open(&server, "2025-11-25").await);
    let (id, mut stream) = open_request(&own).await;
    let answer = |id: &Json, name: &str| {
        let result = json!({ "action": "accept", "content": { "name": name } });
        json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
    };
    // JSON-RPC 2.0, 5: an id means something to those only who share a connection.
    assert_eq!(foreign.post(answer(&id, "Eve").as_bytes()).await.status, 202);
    for wrong in [json!(99), json!(id.to_string())] {
        assert_eq!(own.post(answer(&wrong, "Bob").as_bytes()).await.status, 202);
    }
    assert_eq!(own.post(answer(&id, "Ada").as_bytes()).await.status, 202);
    assert_eq!(own.post(answer(&id, "Twice").as_bytes()).await.status, 202);
    assert_eq!(next_message(&mut stream).await["result"]["content"][0]["text"], "accept Ada");
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused_and_the_first_request_goes_on() {
    let server = serve(&engine(SCRIPT)).await;
    let session = Session::open(&server, "2025-11-25").await;
    let (id, mut stream) = open_request(&session).await;
    // Basic: Requests.
    let again = request(5, "tools/call", json!({ "name": "late" })).to_string();
    assert_eq!(session.post(again.as_bytes()).await.code(), Some(-32_600));
    let decline = json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "decline" } }).to_string();
    session.post(decline.as_bytes()).await;
    assert!(
        next_message(&mut stream).await["result"]["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.starts_with("decline"))
    );
}

#[tokio::test]
async fn without_sessions_every_request_says_its_version() {
    let script = format!("{SCRIPT}http: {{ sessions: false }}\nprotocol: [2025-03-26, 2025-11-25, 2026-07-28]\n");
    let server = serve(&engine(&script)).await;
    let address = server.address().to_string();
    let post = async |version: Option<&str>, frame: &str| {
        let version = version.map(|version| ("mcp-protocol-version", version));
        let headers: Vec<_> = [BOTH, IS_JSON].into_iter().chain(version).collect();
        http::Http::new(&address).post("/mcp", &headers, frame.as_bytes()).await
    };
    let ping = request(1, "ping", json!({})).to_string();
    for (version, status) in [
        (None, 200),
        (Some("2025-11-25"), 200),
        (Some("2025-06-18"), 400),
        (Some("2024-11-05"), 400),
        (Some("1999-01-01"), 400),
    ] {
        assert_eq!(post(version, &ping).await.status, status, "Transports: Protocol Version Header: {version:?}");
    }
}

#[tokio::test]
async fn a_handshake_where_no_version_can_be_spoken_fails_with_a_code_that_every_version_has() {
    // 2025-11-25, Lifecycle: Error Handling. Streamable HTTP does not exist in 2024-11-05; only its clients get it.
    let server = serve(&engine(&format!("{SCRIPT}protocol: 2024-11-05"))).await;
    let hello = initialize("2025-11-25", &json!({})).to_string();
    let reply = http::Http::new(&server.address().to_string()).post("/mcp", &[BOTH, IS_JSON], hello.as_bytes()).await;
    assert_eq!((reply.status, reply.code(), reply.header("mcp-session-id")), (200, Some(-32_602), None));
}
