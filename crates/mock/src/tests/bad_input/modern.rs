//! Single frames of a modern client. What is broken already as a message is in the rows of a legacy session.

use super::*;

const REQUEST: i64 = -32_600;

/// A call whose `_meta` has these members.
fn meta(method: &str, params: Json, members: Json) -> String {
    let mut request = modern(1, method, params);
    for (name, value) in members.as_object().into_iter().flatten() {
        request["params"]["_meta"][format!("{META}{name}")] = value.clone();
    }
    request.to_string()
}

/// The headers that a frame needs over HTTP.
pub(super) fn mirrored(frame: &[u8]) -> Vec<(&'static str, String)> {
    let frame: Json = serde_json::from_slice(frame).unwrap_or_default();
    let (params, method) = (&frame["params"], frame["method"].as_str().unwrap_or("none"));
    let version = params["_meta"][format!("{META}protocolVersion")].as_str().unwrap_or("2026-07-28");
    let mut headers = vec![("mcp-protocol-version", version.to_owned()), ("mcp-method", method.to_owned())];
    headers.extend([BOTH, IS_JSON].map(|(name, value)| (name, value.to_owned())));
    let name = ["taskId", "name", "uri"].iter().find_map(|name| params[*name].as_str());
    headers.extend(name.map(|name| ("mcp-name", name.to_owned())));
    headers
}

pub(super) async fn post(address: &str, frame: &[u8], headers: &[(&'static str, String)]) -> Reply {
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    http::Http::new(address).post("/mcp", &headers, frame).await
}

#[tokio::test]
async fn modern_frames() {
    for protocol in ["", "protocol: 2026-07-28"] {
        let engine = engine(&format!("{SCRIPT}requestState: {{ required: false }}\n{protocol}"));
        let server = serve(&engine).await;
        // On a connection, what says nothing of its version is legacy for a server that has both eras.
        let names_a_version = |row: &Row| String::from_utf8_lossy(&row.frame).contains("protocolVersion\":\"");
        let lines = line::Line::open_all(&engine, &server).await;
        for (on, mut line) in lines.into_iter().filter(|(on, _)| *on != "sse") {
            for row in rows("modern").iter().filter(|row| !protocol.is_empty() || names_a_version(row)) {
                row.check(on, &line.exchange(&row.frame).await);
            }
        }
        let address = server.address().to_string();
        for row in rows("modern") {
            let reply = post(&address, &row.frame, &mirrored(&row.frame)).await;
            match &*row.what {
                // A client sends no responses (Streamable HTTP: Sending Messages 4).
                "a response" => assert_eq!((reply.status, reply.code()), (400, Some(REQUEST))),
                _ => row.check_http(&reply),
            }
            let normal = modern(2, "tools/call", json!({ "name": "plain" })).to_string();
            assert_eq!(post(&address, normal.as_bytes(), &mirrored(normal.as_bytes())).await.status, 200);
        }
    }
}

#[tokio::test]
async fn a_modern_server_refuses_the_handshake_and_says_what_it_speaks() {
    let engine = engine(&format!("{SCRIPT}protocol: 2026-07-28"));
    let hello = initialize("2025-11-25", &json!({})).to_string();
    // Versioning: Backward Compatibility.
    let replies = line::Line::pipe(&engine).exchange(hello.as_bytes()).await;
    assert!(replies[0]["error"]["message"].to_string().contains("2026-07-28"), "{replies:?}");
    let server = serve(&engine).await;
    let reply = http::Http::new(&server.address().to_string()).post("/mcp", &[BOTH, IS_JSON], hello.as_bytes()).await;
    assert_eq!((reply.status, reply.code()), (400, Some(-32_020)), "Streamable HTTP: Server Validation");
}

#[tokio::test]
async fn errors_carry_what_a_client_needs_to_go_on() {
    let mut line = line::Line::pipe(&engine(SCRIPT));
    let supported = json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);
    for requested in ["v999", "2025-06-18"] {
        let unsupported = meta("tools/list", json!({}), json!({ "protocolVersion": requested }));
        let data = line.exchange(unsupported.as_bytes()).await[0]["error"]["data"].clone();
        let expected = json!({ "supported": supported, "requested": requested });
        assert_eq!(data, expected, "Schema: UnsupportedProtocolVersionError");
    }
    for (tool, needed) in [
        ("ask", json!({ "elicitation": {} })),
        ("sample", json!({ "sampling": {} })),
        ("task", json!({ "extensions": { TASKS: {} } })),
    ] {
        let call = meta("tools/call", json!({ "name": tool }), json!({ "clientCapabilities": {} }));
        let data = line.exchange(call.as_bytes()).await[0]["error"]["data"].clone();
        assert_eq!(data, json!({ "requiredCapabilities": needed }), "Schema: MissingRequiredClientCapabilityError");
    }
    let read = modern(1, "resources/read", json!({ "uri": "file:///nope" })).to_string();
    let data = line.exchange(read.as_bytes()).await[0]["error"]["data"].clone();
    assert_eq!(data, json!({ "uri": "file:///nope" }), "Resources: Error Handling");
}
