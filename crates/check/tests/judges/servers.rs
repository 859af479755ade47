//! Servers that do nothing wrong, and whose normal work fails or differs: nothing accuses them.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rehearse_check::{CheckOptions, RecordSink, check};
use rehearse_client::{CommandSpec, Endpoint, ServerParams, Target, ToolPermission};
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer, PipeServer},
};
use rehearse_protocol::{Direction, Trace, Transport, Version};
use rehearse_report::check::{CheckVerdict, CheckedServer, JudgedCheck};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream},
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::pipe::serve;

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
/// It declares what it does not have.
const EMPTY_CAPABILITIES: &str = r#"
protocol: 2025-11-25
capabilities: { prompts: {}, resources: {} }
methods:
  - { method: prompts/list, reply: { rpcError: { code: -32601, message: Method not found } } }
  - { method: prompts/get, reply: { rpcError: { code: -32601, message: Method not found } } }
  - { method: resources/list, reply: { rpcError: { code: -32601, message: Method not found } } }
  - { method: resources/templates/list, reply: { rpcError: { code: -32601, message: Method not found } } }
  - { method: resources/read, reply: { rpcError: { code: -32601, message: Method not found } } }
"#;
/// It lists what it has no methods for.
const WITHOUT_METHODS: &str = r#"
capabilities: { resources: { subscribe: true }, completions: {}, logging: {} }
tools: [{ name: a, description: A., annotations: { readOnlyHint: true }, reply: x }]
resources: [{ uri: "test://a", name: a, reply: x }]
prompts: [{ name: p, arguments: [{ name: x, required: true }], messages: [{ role: user, content: x }] }]
methods:
  - { method: tools/call, reply: { rpcError: { code: -32601, message: Method not found } } }
  - { method: resources/read, reply: { rpcError: { code: -32601, message: Method not found } } }
  - { method: resources/templates/list, reply: { rpcError: { code: -32601, message: Method not found } } }
  - { method: resources/subscribe, reply: { rpcError: { code: -32601, message: Method not found } } }
  - { method: resources/unsubscribe, reply: { rpcError: { code: -32601, message: Method not found } } }
  - { method: prompts/get, reply: { rpcError: { code: -32601, message: Method not found } } }
  - { method: completion/complete, reply: { rpcError: { code: -32601, message: Method not found } } }
  - { method: logging/setLevel, reply: { rpcError: { code: -32601, message: Method not found } } }
"#;
/// No arguments satisfy the schema of a tool.
const IMPOSSIBLE_ARGUMENTS: &str = r"
tools:
  - { name: a, description: A., reply: x }
  - name: never
    description: B.
    inputSchema: { type: object, properties: { x: { type: string, const: 1 } }, required: [x] }
    reply: x
";
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
/// A prompt that asks, and has an optional argument.
const LETTER: &str = r"
capabilities: { completions: {} }
prompts:
  - name: letter
    arguments: [{ name: to, required: true }, { name: tone }]
    steps:
      - elicit: { as: c, message: What?, requestedSchema: { type: object, properties: { words: { type: string } } } }
      - reply: { messages: [{ role: user, content: x }] }
";

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
        (Duration::from_secs(60), Duration::from_secs(10 * 60), Duration::from_millis(100));
    let (versions, varied_prompts) = (versions.into(), vec!["*".to_owned()]);
    let options =
        CheckOptions { request_timeout, budget, grace, tools, varied_prompts, versions, ..CheckOptions::default() };
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

#[tokio::test]
async fn a_method_that_does_not_exist_is_one_finding() {
    let (legacy, modern) = (Version::V2025_11_25, Version::V2026_07_28);
    for (script, version, expected) in [
        (EMPTY_CAPABILITIES, legacy, "life.caps.resources-works life.caps.prompts-works"),
        (
            WITHOUT_METHODS,
            legacy,
            "life.caps.subscribe-works tools.call.works res.read.listed-works \
             prompts.get.works comp.prompt.values log.level.set-empty",
        ),
        (WITHOUT_METHODS, modern, "discover.caps.completions tools.call.works res.read.listed-works prompts.get.works"),
    ] {
        let source = rehearse_document::Source::new("script.yaml", script);
        let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
        let server = MockServer::start(engine, ListenOptions::default()).await.expect("starts");
        let url = server.url(Transport::Ws).expect("a URL");
        let checked = checked(Target::Ws(Endpoint { url, headers: Vec::new() }), &[version]).await;
        let found = accused(&checked);
        let found: BTreeSet<_> = found.iter().filter_map(|it| it.split([' ', ':']).nth(1)).collect();
        assert_eq!(found, expected.split(' ').collect(), "{version} {script}");
    }
}

/// The names of the tools that were not called, and the reasons of what was not tested that have the advice to allow more.
async fn uncalled(allowed: &[&str]) -> (Vec<String>, Vec<String>) {
    let (address, serving) = serve(IMPOSSIBLE_ARGUMENTS, None);
    let allowed = allowed.iter().map(|name| (*name).to_owned()).collect();
    let tools = ToolPermission { allowed, ..ToolPermission::default() };
    let versions = vec![Version::V2025_11_25];
    let options = CheckOptions { tools, versions, grace: Duration::from_millis(50), ..CheckOptions::default() };
    let checked = check(&ServerParams::new("server", Target::Memory(address)), &options).await.checked;
    serving.abort();
    let reasons = checked.versions.iter().flat_map(|version| &version.checks).filter_map(|it| it.reason.clone());
    let advice = reasons.filter(|reason| reason.contains("--allow-tool")).collect();
    (checked.uncalled_tools.into_iter().map(|tool| tool.name).collect(), advice)
}

#[tokio::test]
async fn allowed_tools_that_were_not_called_are_named_and_not_to_be_allowed_again() {
    let (names, advice) = uncalled(&["*"]).await;
    assert_eq!((names, advice), (vec!["never".to_owned()], Vec::new()));
    let (names, advice) = uncalled(&["a"]).await;
    assert!(names.is_empty() && !advice.is_empty(), "{names:?} {advice:?}");
}

/// What a run sends of the values of a prompt that asks, and its result.
async fn sent_to_a_prompt(varied: &[&str]) -> (BTreeSet<String>, CheckedServer) {
    let source = rehearse_document::Source::new("script.yaml", LETTER);
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let server = MockServer::start(engine, ListenOptions::default()).await.expect("starts");
    let target = Target::Ws(Endpoint { url: server.url(Transport::Ws).expect("a URL"), headers: Vec::new() });
    let varied_prompts = varied.iter().map(|name| (*name).to_owned()).collect();
    let options = CheckOptions { varied_prompts, ..CheckOptions::default() };
    let run = check(&ServerParams::new("server", target), &options).await;
    let frames = run.traces.iter().flat_map(|run| &run.traces).flat_map(Trace::frames);
    let own = frames.filter(|frame| frame.direction == Direction::ClientToServer);
    let messages: Vec<Value> = own.filter_map(|frame| serde_json::from_slice(&frame.bytes).ok()).collect();
    let values = messages.iter().filter_map(|message| {
        let params = &message["params"];
        let answer = &params["inputResponses"];
        match message["method"].as_str() {
            Some("prompts/get") if params["name"] == "letter" => Some(format!("{} {answer}", params["arguments"])),
            Some("completion/complete") if params["ref"]["name"] == "letter" => {
                params["argument"]["value"].as_str().map(ToOwned::to_owned)
            }
            None if !message["result"]["action"].is_null() => Some(message["result"].to_string()),
            _ => None,
        }
    });
    (values.collect(), run.checked)
}

#[tokio::test]
async fn a_prompt_gets_odd_values_only_if_it_is_named() {
    let (plain, checked) = sent_to_a_prompt(&["other"]).await;
    let accepted = r#"{"action":"accept","content":{}}"#;
    let retried = format!(r#"{{"to":"rehearse"}} {{"c":{accepted}}}"#);
    // What it requires, that left out, what it asks for, and the beginning of a completion.
    let known = [r#"{"to":"rehearse"} null"#, "null null", &retried, accepted, ""].map(ToOwned::to_owned);
    assert_eq!(plain, BTreeSet::from(known));
    assert_eq!(accused(&checked), [""; 0]);
    for id in [
        "prompts.get.injection-escape",
        "comp.input.odd-values-safe",
        "ask.elicit.decline-cancel-handled",
        "mrtr.state.tamper-rejected",
    ] {
        let checks = checked.versions.iter().flat_map(|version| &version.checks);
        let mut reasons = checks
            .filter(|it| it.id == id && it.verdict == CheckVerdict::NotTested)
            .filter_map(|it| it.reason.as_deref());
        assert!(reasons.any(|reason| reason.contains("--allow-prompt NAME")), "{id}");
    }
    let (varied, checked) = sent_to_a_prompt(&["let*"]).await;
    assert_eq!(accused(&checked), [""; 0]);
    assert!(varied.len() > 15 && plain.is_subset(&varied), "{varied:?}");
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
                let request: Value =
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

/// A server that ends when its only tool is called.
const MORTAL: &str = r"
tools: [{ name: crash, annotations: { readOnlyHint: true }, steps: [{ exit: 3 }] }]
";

#[tokio::test]
async fn a_server_over_http_that_ends_is_incomplete_and_not_accused_of_what_came_later() {
    let source = rehearse_document::Source::new("script.yaml", MORTAL);
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let server = MockServer::start(engine, ListenOptions::default()).await.expect("a port");
    let url = server.url(Transport::Http).expect("it listens");
    let ending = tokio::spawn(async move {
        server.wait_exit().await;
        server.stop(Duration::ZERO).await;
    });
    let checked = checked(Target::Http(Endpoint { url, headers: Vec::new() }), &[]).await;
    ending.await.expect("no panic");
    let unfinished = checked.unfinished();
    assert!(unfinished.iter().any(|it| it.starts_with("the server has ended")), "{unfinished:?}");
    assert_eq!(accused(&checked), [""; 0]);
}

/// Answers every handshake with a fault, but for the first ones.
const FEW_HANDSHAKES: &str = r"
tools: [{ name: a, description: A., annotations: { readOnlyHint: true }, inputSchema: { type: object }, reply: ok }]
prompts: [{ name: p, messages: [{ role: user, content: x }] }]
faults:
  - { on: { method: initialize, call: { min: 3 } }, do: FAULT }
";

#[tokio::test]
async fn what_follows_a_handshake_that_was_not_answered_over_http_is_not_judged() {
    for fault in ["{ delay: 3s }", "{ status: 429 }"] {
        let checked = checked_with_few_handshakes(fault).await;
        assert_eq!(accused(&checked), [""; 0], "{fault}");
        let passed = |version: Version| {
            let judged = checked.versions.iter().find(|it| it.version == version).expect("the version");
            judged.checks.iter().filter(|check| check.verdict == CheckVerdict::Pass).count()
        };
        assert!(passed(Version::V2025_11_25) > 50, "{fault}: {}", passed(Version::V2025_11_25));
        let is_limited = checked.unfinished().iter().any(|it| it.contains("HTTP 429 (too many requests)"));
        assert_eq!(is_limited, fault.contains("429"), "{:?}", checked.unfinished());
    }
}

async fn checked_with_few_handshakes(fault: &str) -> CheckedServer {
    let source = rehearse_document::Source::new("script.yaml", FEW_HANDSHAKES.replace("FAULT", fault));
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let server = MockServer::start(engine, ListenOptions::default()).await.expect("starts");
    let url = server.url(Transport::Http).expect("a URL");
    let versions = vec![Version::V2025_06_18, Version::V2025_11_25];
    let (start_timeout, request_timeout) = (Duration::from_millis(500), Duration::from_millis(500));
    let options = CheckOptions { start_timeout, request_timeout, versions, ..CheckOptions::default() };
    let target = Target::Http(Endpoint { url, headers: Vec::new() });
    check(&ServerParams::new("server", target), &options).await.checked
}

#[cfg(unix)]
#[tokio::test]
async fn an_answer_to_the_handshake_with_another_id_is_the_failure() {
    let script = r#"while read -r line; do echo '{"jsonrpc":"2.0","id":77,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}'; done"#;
    let args = vec!["-c".to_owned(), script.to_owned()];
    let target = Target::Stdio(CommandSpec { program: "sh".to_owned(), args, ..CommandSpec::default() });
    // Nothing waits so long for an answer that has come.
    let options = CheckOptions { start_timeout: Duration::from_secs(3600), ..CheckOptions::default() };
    let checked = check(&ServerParams::new("server", target), &options).await.checked;
    let checks = checked.versions.iter().flat_map(|version| &version.checks);
    let verdict = checks.filter(|check| check.id == "rpc.id.echo-value").map(|check| check.verdict).next();
    assert_eq!(verdict, Some(CheckVerdict::Fail), "{:?}", checked.error);
}

#[cfg(unix)]
#[tokio::test]
async fn a_process_that_hangs_is_waited_for_once_and_its_line_is_shown() {
    let opened = Arc::new(AtomicUsize::new(0));
    let counted = opened.clone();
    let record_sink = RecordSink(Some(Arc::new(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
    })));
    let start_timeout = Duration::from_millis(400);
    let options = CheckOptions { start_timeout, record_sink, ..CheckOptions::default() };
    let args = ["-c", "echo starting; exec sleep 100"].map(ToOwned::to_owned).to_vec();
    let target = Target::Stdio(CommandSpec { program: "sh".to_owned(), args, ..CommandSpec::default() });
    let checked = check(&ServerParams::new("server", target), &options).await.checked;
    let error = checked.error.unwrap_or_default();
    assert!(
        error.contains(
            "within 400ms, and does not read its input; --start-timeout waits longer; its standard output is not MCP: starting"
        ),
        "{error}"
    );
    // Four processes start at once, and the fifth version waits for them.
    assert!(opened.load(Ordering::Relaxed) < Version::ALL.len());
}

/// How often `tools/list` is sent to a server with a tool whose description has this length, in one version.
async fn readings(description: usize) -> (usize, CheckedServer) {
    let script = format!("tools: [{{ name: a, description: {}, reply: x }}]", "a".repeat(description));
    let source = rehearse_document::Source::new("script.yaml", script);
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let server = MockServer::start(engine, ListenOptions::default()).await.expect("starts");
    let target = Target::Ws(Endpoint { url: server.url(Transport::Ws).expect("a URL"), headers: Vec::new() });
    let options = CheckOptions { versions: vec![Version::V2025_11_25], ..CheckOptions::default() };
    let run = check(&ServerParams::new("server", target), &options).await;
    let traces = run.traces.iter().flat_map(|run| &run.traces);
    let lists = traces.flat_map(Trace::frames).filter(|frame| {
        frame.direction == Direction::ClientToServer && String::from_utf8_lossy(&frame.bytes).contains("\"tools/list\"")
    });
    (lists.count(), run.checked)
}

#[tokio::test]
async fn a_large_list_is_read_in_normal_work_only() {
    let ((small, _), (large, checked), (largest, _)) =
        tokio::join!(readings(10), readings(300 << 10), readings(3 << 20));
    // Three times, once before `initialize`, once without params, and three times with a cursor.
    assert!(small > 20 && large <= 8 && largest <= 2, "{small}, {large}, {largest}");
    assert_eq!(accused(&checked), [""; 0]);
    let checks = checked.versions.iter().flat_map(|version| &version.checks);
    let verdict = checks.filter(|check| check.id == "tools.list.name-charset").map(|check| check.verdict).next();
    assert_eq!(verdict, Some(CheckVerdict::Pass));
}

const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;

/// Answers the handshake, and then sends log messages without end, as fast as it can or with pauses.
async fn flood(stream: DuplexStream, pause: Duration) -> Option<()> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = BufReader::new(reader).lines();
    let asked: serde_json::Value = serde_json::from_str(&lines.next_line().await.ok()??).ok()?;
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"flood","version":"1"}}"#;
    let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", asked["id"]);
    let keys = ["/protocolVersion", "/clientInfo/name", "/clientInfo/version", "/capabilities"];
    if asked["method"] == "initialize" && keys.iter().all(|key| asked["params"].pointer(key).is_some()) {
        writer.write_all(answer.as_bytes()).await.ok()?;
    }
    if asked["method"] == "server/discover" {
        let unknown = r#""error":{"code":-32601,"message":"Method not found"}"#;
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{unknown}}}\n", asked["id"]);
        writer.write_all(answer.as_bytes()).await.ok()?;
    }
    tokio::spawn(async move { while lines.next_line().await.is_ok_and(|line| line.is_some()) {} });
    loop {
        writer.write_all(format!("{LOG}\n").as_bytes()).await.ok()?;
        tokio::time::sleep(pause).await;
    }
}

/// Checks such a server.
async fn flooded(pause: Duration, budget: Duration) -> CheckedServer {
    let (address, mut listener) = rehearse_net::pipe::listen();
    let serving = tokio::spawn(async move {
        while let Some(stream) = listener.accept().await {
            tokio::spawn(flood(stream, pause));
        }
    });
    let versions = vec![Version::V2025_11_25, Version::LATEST];
    let options = CheckOptions { versions, budget, ..CheckOptions::default() };
    let checked = check(&ServerParams::new("server", Target::Memory(address)), &options).await.checked;
    serving.abort();
    checked
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_nothing_is_judged_soon_whatever_else_it_sends() {
    for pause in [Duration::from_millis(300), Duration::from_secs(3600)] {
        let begun = Instant::now();
        let checked = flooded(pause, Duration::from_secs(10 * 60)).await;
        assert!(begun.elapsed() < Duration::from_secs(60), "{pause:?}: {:?}", begun.elapsed());
        assert_eq!(checked.versions.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_without_end_is_read_to_a_limit_and_passes_nothing() {
    // The clock stands still: only what is kept is a limit.
    let checked = flooded(Duration::ZERO, Duration::from_secs(10 * 60)).await;
    let accused = accused(&checked);
    assert!(accused.iter().all(|it| it.contains(" log.msg.rate: ")), "{accused:?}");
    let checks: Vec<_> = checked.versions.iter().flat_map(|version| &version.checks).collect();
    let passed: Vec<_> = checks.iter().filter(|check| check.verdict == CheckVerdict::Pass).map(|it| &it.id).collect();
    assert!(!checks.is_empty() && passed.is_empty(), "{passed:?}");
}

/// A server with one tool that takes an hour, and a list that has a tool twice.
const SLOW: &str = r"
tools: [{ name: slow, annotations: { readOnlyHint: true }, steps: [{ wait: 60m }, { reply: x }] }]
methods:
  - { method: prompts/list, reply: { result: { prompts: [{ name: p }, { name: p }] } } }
prompts: [{ name: p, messages: [{ role: user, content: x }] }]
";

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_says_what_it_has_found() {
    let source = rehearse_document::Source::new("script.yaml", SLOW);
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let server = PipeServer::new(engine);
    let (address, mut listener) = rehearse_net::pipe::listen();
    let serving = tokio::spawn(async move {
        while let Some(stream) = listener.accept().await {
            let (server, (reader, writer)) = (server.clone(), tokio::io::split(stream));
            let (stop, grace) = (CancellationToken::new(), Duration::from_secs(1));
            tokio::spawn(async move { server.serve(Transport::Memory, reader, writer, stop, grace).await });
        }
    });
    let (shutdown, mut params) = (CancellationToken::new(), ServerParams::new("server", Target::Memory(address)));
    params.shutdown = shutdown.clone();
    let options = CheckOptions { versions: vec![Version::V2025_11_25], ..CheckOptions::default() };
    let interrupt = async {
        // By then the lists are read, and the tool is called.
        tokio::time::sleep(Duration::from_secs(1)).await;
        shutdown.cancel();
    };
    let (run, ()) = tokio::join!(check(&params, &options), interrupt);
    serving.abort();
    let checked = run.checked;
    assert!(checked.is_interrupted && checked.error.is_none(), "{:?}", checked.error);
    let accused = accused(&checked);
    assert!(accused.iter().all(|it| it.contains("prompts.list.name-unique")) && accused.len() == 1, "{accused:?}");
    let checks: Vec<_> = checked.versions.iter().flat_map(|version| &version.checks).collect();
    let verdict = |id: &str| checks.iter().find(|check| check.id == id).map(|check| check.verdict);
    assert_eq!(verdict("tools.list.name-unique"), Some(CheckVerdict::Pass));
    assert_eq!(verdict("rpc.method.unknown-32601"), Some(CheckVerdict::NotTested));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_budget_ends_a_run_although_messages_flow() {
    let (budget, begun) = (Duration::from_secs(12), Instant::now());
    let checked = flooded(Duration::from_millis(50), budget).await;
    assert!(checked.is_budget_spent);
    assert!(begun.elapsed() <= budget + Duration::from_secs(1), "{:?}", begun.elapsed());
}
