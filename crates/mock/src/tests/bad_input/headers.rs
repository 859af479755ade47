//! What HTTP itself forbids, and what the headers of a modern request must be.

use super::*;

const TABLE: &str = include_str!("headers.txt");

/// What a POST has besides its body; `None` takes the header away, and `+` before a name adds another one.
type Change<'a> = (&'a str, Option<&'a str>);

/// The changes of a row.
fn changes(column: &str) -> Vec<Change<'_>> {
    let changes = column.split(" ; ").filter(|it| !it.is_empty()).map(|change| match change.strip_prefix('-') {
        Some(name) => (name, None),
        None => change.split_once(": ").map(|(name, value)| (name, Some(value))).expect("a header"),
    });
    changes.collect()
}

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
    let request = |name: &str| match name {
        "call" => modern(1, "tools/call", json!({ "name": "plain" })),
        "list" => modern(1, "tools/list", json!({})),
        "read" => modern(1, "resources/read", json!({ "uri": "item:///é" })),
        "get" => modern(1, "tasks/get", json!({ "taskId": "x" })),
        "same" => modern(1, "tools/call", json!({ "name": "=?base64?cGxhaW4=?=" })),
        name => panic!("no request: {name}"),
    };
    for [what, spec, frame, changed, status, code] in table::rows(TABLE, "a modern request") {
        let reply = sent(&address, &request(&frame).to_string(), &changes(&changed)).await;
        let code = code.parse().ok();
        assert_eq!((reply.status.to_string(), reply.code()), (status, code), "{what} ({spec}): {reply:?}");
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
    for [what, spec, changed, status] in table::rows(TABLE, "a request of either era") {
        let changed = changes(&changed);
        let modern = ["mcp-protocol-version", "mcp-method", "mcp-name"].map(|name| (name, None));
        for (frame, without) in [(&hello, &modern[..]), (&call, &[])] {
            let reply = sent(&address, frame, &[without, &changed].concat()).await;
            assert_eq!(reply.status.to_string(), status, "{what} ({spec}): {reply:?}");
            assert!(status == "200" || reply.frames[0].get("id").is_none(), "{what}: an error has no id: {reply:?}");
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
