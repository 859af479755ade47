//! Servers that do nothing wrong, and whose normal work fails or differs: nothing accuses them.

use std::time::Duration;

use rehearse_check::{CheckOptions, check};
use rehearse_client::{Endpoint, ServerParams, Target, ToolPermission};
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer},
};
use rehearse_protocol::{Transport, Version};
use rehearse_report::check::{CheckVerdict, CheckedServer, JudgedCheck};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Its backend is down: nothing that it has to look up is there.
const BACKEND_DOWN: &str = r#"
resourceTemplates:
  - { uriTemplate: "forge://group/{id}", name: group, reply: { rpcError: { code: -32603, message: failed to get group } } }
prompts:
  - { name: audit, arguments: [{ name: project, required: true }], reply: { rpcError: { code: -32603, message: down } } }
"#;
/// As above, also what it lists.
const LISTS_DOWN: &str = r#"
capabilities: { completions: {} }
tools: [{ name: a, description: A., annotations: { readOnlyHint: true }, reply: ok }]
resources: [{ uri: "test://a", name: a, reply: x }]
prompts: [{ name: p, arguments: [{ name: x, required: true }], messages: [{ role: user, content: x }] }]
methods:
  - { method: tools/list, reply: { rpcError: { code: -32603, message: down } } }
  - { method: resources/list, reply: { rpcError: { code: 0, message: down } } }
  - { method: completion/complete, reply: { rpcError: { code: -32603, message: down } } }
"#;
/// Its optional arguments exclude one another.
const EXCLUSIVE_ARGUMENTS: &str = r"
prompts:
  - name: get_paper
    arguments: [{ name: doi }, { name: citation }]
    rules:
      - when: { args: { doi: { exists: true }, citation: { exists: true } } }
        reply: { rpcError: { code: 0, message: provide only one of doi or citation } }
      - reply: { messages: [{ role: user, content: Get it. }] }
";
/// One of its resources never changes.
const SUBSCRIBE_SOME: &str = r#"
capabilities: { resources: { subscribe: true, listChanged: true } }
resources:
  - { uri: "forge://guide", name: guide, reply: a static guide }
  - { uri: "forge://job/1", name: job, reply: a job that changes }
methods:
  - method: resources/subscribe
    rules:
      - { when: { params: { uri: "forge://job/1" } }, reply: { result: {} } }
      - { reply: { rpcError: { code: -32602, message: the resource never changes } } }
  - { method: resources/unsubscribe, reply: { result: {} } }
"#;
/// What it offers needs a client that can be asked.
const ASKING: &str = r#"
prompts:
  - name: letter
    steps:
      - elicit: { as: c, message: What?, requestedSchema: { type: object, properties: { words: { type: string } } } }
      - reply: { messages: [{ role: user, content: x }] }
resources:
  - uri: test://a
    name: A
    steps:
      - elicit: { as: c, message: Which part?, requestedSchema: { type: object, properties: { p: { type: string } } } }
      - reply: { contents: [{ uri: "test://a", text: hello }] }
"#;

/// What fails or warns, with the version.
fn accused(checked: &CheckedServer) -> Vec<String> {
    assert!(checked.error.is_none(), "{:?}", checked.error);
    let versions = checked.versions.iter();
    let all = versions.flat_map(|version| version.checks.iter().map(move |check| (version.version, check)));
    let found = all.filter(|(_, check)| matches!(check.verdict, CheckVerdict::Fail | CheckVerdict::Warn));
    let texts = |check: &JudgedCheck| check.violations.iter().map(|it| it.found.clone()).collect::<Vec<_>>().join(", ");
    found.map(|(version, check)| format!("{version} {}: {}", check.id, texts(check))).collect()
}

/// Checks the server at a URL in these versions, without the checks that are about time.
async fn checked(target: Target, versions: &[Version]) -> CheckedServer {
    let tools = ToolPermission::default();
    let (request_timeout, budget, grace) =
        (Duration::from_mins(1), Duration::from_mins(10), Duration::from_millis(100));
    let versions = versions.into();
    let options = CheckOptions { request_timeout, budget, grace, tools, versions, ..CheckOptions::default() };
    check(&ServerParams::new("server", target), &options).await.checked
}

#[tokio::test]
async fn a_server_whose_normal_work_fails_is_not_accused_of_what_varies_it() {
    let (all, legacy) = ([Version::V2025_11_25, Version::V2026_07_28], [Version::V2025_06_18, Version::V2025_11_25]);
    let old = [Version::V2024_11_05, Version::V2025_03_26];
    for (script, versions) in [
        (BACKEND_DOWN, &all),
        (LISTS_DOWN, &all),
        (EXCLUSIVE_ARGUMENTS, &all),
        // The script serves a method that 2026-07-28 removed.
        (SUBSCRIBE_SOME, &legacy),
        (ASKING, &all),
        (ASKING, &old),
    ] {
        let source = rehearse_document::Source::new("script.yaml", script);
        let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
        let server = MockServer::start(engine, ListenOptions::default()).await.expect("starts");
        let url = server.url(Transport::Ws).expect("a URL");
        let checked = checked(Target::Ws(Endpoint { url, headers: Vec::new() }), versions).await;
        assert_eq!(accused(&checked), [""; 0], "{script}");
    }
}

/// Answers requests on one connection. One of another media type is refused before its body is read.
async fn answer(mut stream: TcpStream) -> Option<()> {
    let mut read: Vec<u8> = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = read.windows(4).position(|it| it == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut read).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8_lossy(read.get(..end)?).to_ascii_lowercase();
        read.drain(..end);
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let (status, body) = match header("content-type") {
            _ if !head.starts_with("post ") => ("400 Bad Request", String::new()),
            Some(kind) if !kind.starts_with("application/json") => ("415 Unsupported Media Type", String::new()),
            _ => {
                let length = header("content-length").and_then(|it| it.parse().ok()).unwrap_or_default();
                while read.len() < length {
                    stream.read_buf(&mut read).await.ok()?;
                }
                let request: serde_json::Value =
                    serde_json::from_slice(&read.drain(..length).collect::<Vec<_>>()).unwrap_or_default();
                match (request["method"].as_str(), request.get("id")) {
                    (Some(method), Some(id)) => {
                        let result = match method {
                            "initialize" => {
                                r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"unread","version":"1"}}"#
                            }
                            _ => "{}",
                        };
                        ("200 OK", format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
                    }
                    _ => ("202 Accepted", String::new()),
                }
            }
        };
        let length = body.len();
        let kind = if length > 0 { "content-type: application/json\r\n" } else { "" };
        let head = format!("HTTP/1.1 {status}\r\n{kind}content-length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).await.ok()?;
    }
}

#[tokio::test]
async fn a_body_that_is_left_unread_is_no_fault_of_the_next_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    let checked = checked(Target::Http(Endpoint { url, headers: Vec::new() }), &[Version::V2025_11_25]).await;
    serving.abort();
    // The request with another media type comes right before this one.
    let checks = checked.versions.iter().flat_map(|version| &version.checks);
    let verdict = checks.filter(|check| check.id == "http.post.charset-param").map(|check| check.verdict).next();
    assert_eq!(verdict, Some(CheckVerdict::Pass));
}

#[tokio::test]
async fn a_server_that_wants_a_token_and_says_403_is_judged() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut read = Vec::new();
                while !read.windows(4).any(|it| it == b"\r\n\r\n")
                    && stream.read_buf(&mut read).await.is_ok_and(|it| it > 0)
                {}
                let head = "HTTP/1.1 403 Forbidden\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                stream.write_all(head.as_bytes()).await
            });
        }
    });
    let checked = checked(Target::Http(Endpoint { url, headers: Vec::new() }), &[]).await;
    serving.abort();
    let checks = checked.versions.iter().flat_map(|version| &version.checks);
    let verdict = checks.filter(|check| check.id == "auth.challenge.status-401").map(|check| check.verdict).next();
    assert_eq!(verdict, Some(CheckVerdict::Fail), "{:?}", checked.error);
}
