//! `--otlp`: spans for a collector.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::mpsc::{Receiver, channel},
    thread,
};

use serde_json::Value as Json;

use crate::{
    rehearse::Rehearse,
    serve::{assert_clean, call, config, greet, result, story},
};

/// A collector; what it gets is a head and the JSON of each request.
fn collector() -> (String, Receiver<(String, Json)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, requests) = channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let (mut head, mut line) = (String::new(), String::new());
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                head.push_str(&std::mem::take(&mut line).to_lowercase());
            }
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            let mut body = vec![0; length.unwrap_or_default()];
            reader.read_exact(&mut body).expect("a body");
            let _ = sender.send((head, serde_json::from_slice(&body).expect("JSON")));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}");
        }
    });
    (url, requests)
}

/// All spans so far, by their order in the requests.
fn spans(requests: &Receiver<(String, Json)>) -> Vec<Json> {
    let bodies = requests.try_iter().map(|(_, body)| body);
    bodies
        .flat_map(|body| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().expect("spans"))
        .collect()
}

fn attribute<'s>(span: &'s Json, key: &str) -> Option<&'s str> {
    let attributes = span["attributes"].as_array()?;
    attributes.iter().find(|it| it["key"] == key)?["value"]["stringValue"].as_str()
}

const MOCK: &str =
    "server: { name: shop }\ntools:\n  - { name: price, annotations: { readOnlyHint: true }, reply: fine }\n";
const SCENARIO: &str = "servers: { s: { mock: mock.yaml } }\n\
    matrix: { transport: [stdio, http], protocol: [2025-11-25, 2026-07-28] }\n\
    steps:\n  - { call: { tool: price }, expect: { isError: false } }\n  - { call: { tool: none }, expect: { rpcError: { code: -32602 } } }\n";

fn files() -> Rehearse {
    Rehearse::new().file("mock.yaml", MOCK).file("demo.yaml", SCENARIO)
}

#[test]
fn each_request_of_a_run_is_a_span_whose_context_the_server_gets() {
    let (url, requests) = collector();
    let files = files().env("OTEL_EXPORTER_OTLP_HEADERS", "x-team=qa%20a");
    let run = files.args(["run", "demo.yaml", "--otlp", &url, "--trace-file", "t.jsonl"]).run();
    let run = run.stdout_has("4 passed").code(0);
    let (head, first) = requests.recv().expect("a request");
    assert!(head.starts_with("post /v1/traces ") && head.contains("x-team: qa a"), "{head}");
    let service = &first["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"];
    assert_eq!(service, "rehearse");
    let mut all = first["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().expect("spans");
    all.extend(spans(&requests));
    let calls: Vec<_> = all.iter().filter(|span| span["name"] == "tools/call price").collect();
    assert_eq!(calls.len(), 4, "{all:#?}");
    let sent = run.read("t.jsonl");
    for call in calls {
        let (trace, id) = (call["traceId"].as_str().expect("an id"), call["spanId"].as_str().expect("an id"));
        assert!(sent.contains(&format!("00-{trace}-{id}-01")), "{call}");
        let root = all.iter().find(|span| span["spanId"] == call["parentSpanId"]).expect("the connection");
        assert_eq!((&root["traceId"], root.get("parentSpanId")), (&call["traceId"], None));
        assert!(root["name"].as_str().is_some_and(|name| name.starts_with("demo/") && name.ends_with(" s")), "{root}");
        assert_eq!((&call["kind"], attribute(call, "gen_ai.operation.name")), (&3.into(), Some("execute_tool")));
        assert!(attribute(call, "mcp.protocol.version").is_some() && call.get("status").is_none(), "{call}");
    }
    let failed = all.iter().filter(|span| span["name"] == "tools/call none");
    assert!(failed.clone().count() == 4 && failed.clone().all(|it| it["status"]["code"] == 2), "{all:#?}");
}

#[test]
fn a_check_sends_spans_and_is_not_changed_by_a_collector_that_is_not_there() {
    let (url, requests) = collector();
    let server = format!("'{}' mock mock.yaml", Rehearse::BINARY);
    let check = |url: &str| files().args(["check", "--stdio", &server, "--only", "tools", "--otlp", url]).run().code(0);
    let reached = check(&url);
    assert!(spans(&requests).iter().any(|span| span["name"] == "tools/list"));
    let missed = check("http://127.0.0.1:9");
    assert_eq!(missed.stderr().matches("warning: not all spans were sent: ").count(), 1, "{}", missed.stderr());
    assert!(!reached.stderr().contains("spans"), "{}", reached.stderr());
}

#[test]
fn a_recorder_passes_the_context_of_the_client_on_and_adds_a_span_to_its_trace() {
    let (url, requests) = collector();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let ping = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"traceparent":"{parent}"}}}}}}"#
    );
    let record = files().args([
        "record",
        "--trace-file",
        "t.jsonl",
        "--otlp",
        &url,
        "--",
        Rehearse::BINARY,
        "mock",
        "mock.yaml",
    ]);
    let run = record.stdin(&format!("{ping}\n")).run().code(0);
    assert!(run.read("t.jsonl").contains(parent));
    let all = spans(&requests);
    let span = all.iter().find(|span| span["name"] == "tools/list").expect("a span");
    assert_ne!(span["spanId"], span["parentSpanId"]);
    assert_eq!(
        (&span["traceId"], &span["parentSpanId"]),
        (&"4bf92f3577b34da6a3ce929d0e0e4736".into(), &"00f067aa0ba902b7".into())
    );
}

#[test]
fn each_call_of_a_benchmark_is_a_span() {
    let (url, requests) = collector();
    let server = format!("'{}' mock mock.yaml", Rehearse::BINARY);
    let bench =
        files().args(["bench", "call", "--stdio", &server, "--requests", "50", "--warmup", "0s", "--otlp", &url]);
    bench.run().code(0);
    let all = spans(&requests);
    let calls: Vec<_> = all.iter().filter(|span| span["name"] == "tools/call price").collect();
    let root = all.iter().find(|span| span["kind"] == 1).expect("the load");
    assert!(calls.len() == 50 && calls.iter().all(|call| call["parentSpanId"] == root["spanId"]), "{all:#?}");
}

#[test]
fn the_calls_of_a_subagent_are_spans() {
    let (url, requests) = collector();
    let mut running = story(&config()).args(["serve", "--config", "coder.cpe.json", "--otlp", &url]).start();
    greet(&mut running);
    call(&mut running, 2, &serde_json::json!({ "prompt": "look" }));
    assert_ne!(result(&mut running, 2)["isError"], true);
    running.close_stdin();
    assert_clean(running);
    assert!(spans(&requests).iter().any(|span| span["name"] == "tools/call look"));
}

#[test]
fn spans_are_not_sent_to_where_a_collector_redirects() {
    let (other, requests) = collector();
    for status in ["301 Moved Permanently", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let answer = format!(
            "HTTP/1.1 {status}\r\nlocation: {other}/v1/traces\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut request = [0; 1 << 16];
                let _ = stream.read(&mut request);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let run = files().args(["run", "demo.yaml", "--otlp", &url]).run().stdout_has("4 passed").code(0);
        let warning = format!("warning: not all spans were sent: HTTP {status}: redirects are not followed");
        assert_eq!(run.stderr().matches(&warning).count(), 1, "{}", run.stderr());
    }
    assert!(requests.try_recv().is_err(), "the spans went to another host");
}
