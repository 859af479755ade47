//! What HTTP itself forbids, and what the headers of a modern request must be.

use super::*;

/// What a POST has besides its body; `None` takes the header away, and `+` before a name adds another one.
type Change<'a> = (&'a str, Option<&'a str>);

/// What it is, the section that says so, the frame, what is changed, the status and the code of the error.
type Case<'a> = (&'a str, &'a str, &'a str, &'a [Change<'a>], u16, Option<i64>);

async fn sent(address: &str, frame: &str, changes: &[Change<'_>]) -> Reply {
    let mirrored = modern::mirrored(frame.as_bytes());
    let is_kept = |name: &str| !changes.iter().any(|(changed, _)| *changed == name);
    let kept = mirrored.iter().filter(|(name, _)| is_kept(name)).map(|(name, value)| (*name, value.as_str()));
    let added = changes.iter().filter_map(|(name, value)| Some((name.trim_start_matches('+'), (*value)?)));
    let headers: Vec<_> = kept.chain(added).collect();
    http::Http::new(address).post("/mcp", &headers, frame.as_bytes()).await
}

#[tokio::test]
async fn headers_of_a_modern_request() {
    let server = serve(&engine(SCRIPT)).await;
    let address = server.address().to_string();
    let call = modern(1, "tools/call", json!({ "name": "plain" })).to_string();
    let list = modern(1, "tools/list", json!({})).to_string();
    let read = modern(1, "resources/read", json!({ "uri": "item:///é" })).to_string();
    let get = modern(1, "tasks/get", json!({ "taskId": "x" })).to_string();
    let same = modern(1, "tools/call", json!({ "name": "=?base64?cGxhaW4=?=" })).to_string();
    let (version, method, name) = ("mcp-protocol-version", "mcp-method", "mcp-name");
    let validation = "Streamable HTTP: Server Validation";
    let rows: &[Case<'_>] = &[
        ("all is well", "", &call, &[], 200, None),
        ("no version", validation, &call, &[(version, None)], 400, Some(-32_020)),
        (
            "another version than the body's",
            "Protocol Version Header",
            &call,
            &[(version, Some("2025-11-25"))],
            400,
            Some(-32_020),
        ),
        (
            "an unknown version in the header only",
            "Protocol Version Header",
            &call,
            &[(version, Some("v999"))],
            400,
            Some(-32_020),
        ),
        ("an empty version", validation, &call, &[(version, Some(""))], 400, Some(-32_020)),
        ("the version twice", validation, &call, &[("+mcp-protocol-version", Some("2026-07-28"))], 400, Some(-32_020)),
        (
            "a version of other characters",
            validation,
            &call,
            &[(version, Some("2026-07-28\u{e9}"))],
            400,
            Some(-32_020),
        ),
        ("no method", validation, &list, &[(method, None)], 400, Some(-32_020)),
        ("another method", validation, &list, &[(method, Some("prompts/list"))], 400, Some(-32_020)),
        ("the method in other letters", "Case Sensitivity", &list, &[(method, Some("TOOLS/LIST"))], 400, Some(-32_020)),
        ("the method twice", validation, &list, &[("+mcp-method", Some("tools/list"))], 400, Some(-32_020)),
        (
            "a header's name in other letters",
            "Case Sensitivity",
            &list,
            &[(method, None), ("MCP-METHOD", Some("tools/list"))],
            200,
            None,
        ),
        ("white space around a value", "RFC 9110, 5.5", &call, &[(name, Some("  plain \t"))], 200, None),
        ("no name", validation, &call, &[(name, None)], 400, Some(-32_020)),
        ("another name", validation, &call, &[(name, Some("echo"))], 400, Some(-32_020)),
        ("the name twice", validation, &call, &[("+mcp-name", Some("plain"))], 400, Some(-32_020)),
        ("a name in Base64", "Value Encoding", &call, &[(name, Some("=?base64?cGxhaW4=?="))], 200, None),
        (
            "a name in Base64 in capitals",
            "Value Encoding (case-sensitive)",
            &call,
            &[(name, Some("=?BASE64?cGxhaW4=?="))],
            400,
            Some(-32_020),
        ),
        ("a name in wrong Base64", "Value Encoding", &call, &[(name, Some("=?base64?cGxhaW4?="))], 400, Some(-32_020)),
        ("a name that is not a text", "Value Encoding", &call, &[(name, Some("=?base64?/w==?="))], 400, Some(-32_020)),
        ("a name that looks encoded, unencoded", "Value Encoding", &same, &[], 400, Some(-32_020)),
        (
            "a name that looks encoded, encoded",
            "Value Encoding",
            &same,
            &[(name, Some("=?base64?PT9iYXNlNjQ/Y0d4aGFXND0/PQ==?="))],
            200,
            Some(-32_602),
        ),
        ("a URI of other characters", "Value Encoding", &read, &[], 400, Some(-32_020)),
        ("a URI in Base64", "Value Encoding", &read, &[(name, Some("=?base64?aXRlbTovLy/DqQ==?="))], 200, None),
        ("a task without its name", "SEP-2663: Routing Headers", &get, &[(name, None)], 400, Some(-32_020)),
        ("an unneeded name", validation, &list, &[(name, Some("x"))], 200, None),
        ("a session", "Earlier Streamable HTTP Revisions", &call, &[("mcp-session-id", Some("nope"))], 200, None),
        (
            "an event to resume from",
            "Earlier Streamable HTTP Revisions",
            &call,
            &[("last-event-id", Some("0-0"))],
            200,
            None,
        ),
    ];
    for (what, spec, frame, changes, status, code) in rows {
        let reply = sent(&address, frame, changes).await;
        assert_eq!((reply.status, reply.code()), (*status, *code), "{what} ({spec}): {reply:?}");
        assert_eq!(reply.frames[0]["id"], 1, "{what}");
        assert_eq!(reply.header("mcp-session-id"), None, "{what}");
    }
}

#[tokio::test]
async fn http_errors_in_both_eras() {
    let server = serve(&engine(SCRIPT)).await;
    let address = server.address().to_string();
    let hello = initialize("2025-11-25", &json!({})).to_string();
    let call = modern(1, "tools/call", json!({ "name": "plain" })).to_string();
    let (accept, kind) = ("accept", "content-type");
    let sending = "Transports: Sending Messages to the Server";
    let origin = "Transports: Security Warning; 2026-07-28, Security & Endpoint";
    let rows: &[(&str, &str, &[Change<'_>], u16)] = &[
        ("no Accept", sending, &[(accept, None)], 406),
        ("JSON only", sending, &[(accept, Some("application/json"))], 406),
        ("streams only", sending, &[(accept, Some("text/event-stream"))], 406),
        ("something else", sending, &[(accept, Some("text/html"))], 406),
        ("anything", "RFC 9110, 12.5.1", &[(accept, Some("*/*"))], 200),
        (
            "both, in two headers",
            "RFC 9110, 5.3",
            &[(accept, Some("application/json")), ("+accept", Some("text/event-stream"))],
            200,
        ),
        ("no Content-Type", "RFC 9110, 15.5.16", &[(kind, None)], 415),
        ("a text", "RFC 9110, 15.5.16", &[(kind, Some("text/plain"))], 415),
        ("a form", "RFC 9110, 15.5.16", &[(kind, Some("application/x-www-form-urlencoded"))], 415),
        ("JSON of a character set", "RFC 9110, 8.3", &[(kind, Some("application/json; charset=utf-8"))], 200),
        ("a foreign origin", origin, &[("origin", Some("http://evil.example.com"))], 403),
        ("no origin at all", origin, &[("origin", Some("null"))], 403),
        ("its own origin", origin, &[("origin", Some("http://localhost:1234"))], 200),
        ("a foreign host", origin, &[("host", Some("evil.example.com"))], 403),
    ];
    for (what, spec, changes, status) in rows {
        for frame in [&hello, &call] {
            let changes: Vec<_> = match frame == &hello {
                true => [("mcp-protocol-version", None), ("mcp-method", None), ("mcp-name", None)]
                    .iter()
                    .chain(*changes)
                    .copied()
                    .collect(),
                false => changes.to_vec(),
            };
            let reply = sent(&address, frame, &changes).await;
            assert_eq!(reply.status, *status, "{what} ({spec}): {reply:?}");
            assert!(*status == 200 || reply.frames[0].get("id").is_none(), "{what}: an error has no id: {reply:?}");
        }
    }
}

#[tokio::test]
async fn methods_and_paths_that_are_not_there() {
    for (protocol, has_sessions) in [("", true), ("protocol: 2026-07-28", false)] {
        let server = serve(&engine(&format!("{SCRIPT}{protocol}"))).await;
        let address = server.address().to_string();
        let client = http::Http::new(&address);
        let modern = ("mcp-protocol-version", "2026-07-28");
        for (method, path, headers, status) in [
            // 2026-07-28, Streamable HTTP: Earlier Streamable HTTP Revisions.
            ("GET", "/mcp", &[BOTH, modern][..], 405),
            ("DELETE", "/mcp", &[modern], 405),
            ("GET", "/mcp", &[BOTH], if has_sessions { 400 } else { 405 }),
            ("DELETE", "/mcp", &[], if has_sessions { 400 } else { 405 }),
            // RFC 9110, 15.5.6 and 15.5.5.
            ("PUT", "/mcp", &[], 405),
            ("POST", "/sse", &[], 405),
            ("GET", "/messages", &[], 405),
            ("POST", "/", &[], 404),
            ("GET", "/mcp/", &[], 404),
            ("POST", "/messages", &[IS_JSON], 404),
            ("POST", "/messages?sessionId=nope", &[IS_JSON], 404),
            // RFC 6455, 4.2.1.
            ("GET", "/ws", &[], 400),
            ("GET", "/ws", &[("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "8")], 426),
        ] {
            let reply = client.send(method, path, headers, b"").await;
            assert_eq!(reply.status, status, "{method} {path} {headers:?} {protocol}: {reply:?}");
            assert!(status != 405 || reply.header("allow").is_some(), "RFC 9110, 15.5.6: {reply:?}");
        }
    }
}
