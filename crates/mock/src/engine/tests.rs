use serde_json::{Value as Json, json};

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderMap;

use super::{test_client::TestClient, *};
use crate::{journal::Journal, script::Script};
use rehearse_document::Source;
use rehearse_protocol::{Era, Transport, Version};

const SCRIPT: &str = r#"
server: { name: t, version: 1.2.3, title: Test }
instructions: Be nice.
pageSize: 4
tools:
  - name: echo
    inputSchema: { type: object, properties: { text: { type: string } }, required: [text] }
    reply: { text: "{{ args.text }}" }
  - name: slow
    delay: 5s
    reply: done
  - name: steps
    steps:
      - log: { level: warning, logger: l, data: { n: "{{ call }}" } }
      - progress: { progress: 1, total: 2 }
      - wait: 50ms
      - reply: { json: { n: "{{ call }}" }, _meta: { k: 1 } }
  - name: by_city
    rules:
      - when: { args: { city: Paris } }
        reply: { rpcError: { code: -7, message: "no {{ args.city }}", data: { city: "{{ args.city }}" } } }
      - when: { args: { city: { matches: ^Ro } } }
        replies: [first, second]
        then: error
  - name: silent
  - name: verbatim
    reply: { result: { anything: [1.0] } }
  - name: dies
    steps: [{ wait: 1ms }, { exit: 7 }]
  - name: templated_output
    outputSchema: { type: object, properties: { n: { type: integer } } }
    reply: { structured: { n: "{{ args.n }}" } }
resources:
  - { uri: "file:///a.txt", name: a, mimeType: text/plain, text: "hello" }
  - { uri: "file:///b.bin", blob: aGk= }
prompts:
  - name: greet
    description: Greets.
    arguments: [{ name: who, required: true }]
    messages: [{ role: user, content: "Hello {{ args.who }}" }]
"#;

pub(super) struct Mock {
    pub(super) engine: Arc<Engine>,
    session: Arc<LegacySession>,
    headers: Option<HeaderMap>,
}

impl Mock {
    fn new(script: &str) -> Mock {
        let script = Script::parse(&Source::new("s", script)).unwrap_or_else(|error| panic!("{error}"));
        Mock { engine: Engine::new(script, 1, Journal::default()), session: Arc::default(), headers: None }
    }

    pub(super) fn legacy(script: &str, version: &str) -> Mock {
        let mock = Mock::new(script);
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
        let reply = mock.send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        assert_eq!(reply["result"]["protocolVersion"], version);
        mock
    }

    fn decision(&self, frame: &str) -> Decision {
        let bytes = Bytes::copy_from_slice(frame.as_bytes());
        let headers = self.headers.as_ref();
        self.engine.receive(
            &self.session,
            Incoming {
                bytes: &bytes,
                transport: if headers.is_some() { Transport::Http } else { Transport::Memory },
                at: Duration::ZERO,
                headers,
                token: None,
                session: None,
                faults: &[],
            },
        )
    }

    /// Every event of an answer; waits are skipped.
    fn events(&self, frame: &Json) -> Vec<Event> {
        match self.decision(&frame.to_string()) {
            Decision::Respond(answer) => vec![Event::Finish(answer)],
            Decision::Exchange(mut exchange) => {
                let mut events = vec![exchange.next_event(Duration::ZERO)];
                while !matches!(events.last(), Some(Event::Finish(_) | Event::Exit(_))) {
                    events.push(exchange.next_event(Duration::ZERO));
                }
                events
            }
            other => panic!("no answer: {other:?}"),
        }
    }

    fn send(&self, frame: Json) -> Json {
        match self.events(&frame).pop() {
            Some(Event::Finish(answer)) => serde_json::from_slice(&answer.frame).expect("JSON"),
            other => panic!("no answer: {other:?}"),
        }
    }

    pub(super) fn call(&self, method: &str, params: Json) -> Json {
        self.send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
    }

    fn tool(&self, name: &str, arguments: Json) -> Json {
        self.call("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    fn last_handling(&self) -> String {
        self.engine.journal().entries().last().map(|entry| entry.handling.to_string()).unwrap_or_default()
    }
}

fn modern(params: Json) -> Json {
    let mut params = params;
    params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    params
}

#[test]
fn the_handshake_negotiates_the_version_and_declares_what_the_script_has() {
    let mock = Mock::new(SCRIPT);
    let hello = |version| json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": {} });
    assert_eq!(mock.call("tools/list", json!({}))["error"]["code"], -32600);
    assert_eq!(mock.call("ping", json!({}))["result"], json!({}));
    assert_eq!(mock.call("initialize", json!({ "protocolVersion": 5 }))["error"]["code"], -32602);
    let result = mock.call("initialize", hello("1999-01-01"));
    assert_eq!(
        result["result"],
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "logging": {}, "prompts": {}, "resources": {}, "tools": {} },
            "serverInfo": { "name": "t", "version": "1.2.3", "title": "Test" },
            "instructions": "Be nice.",
        })
    );
    assert_eq!(Mock::legacy(SCRIPT, "2024-11-05").session.version(), Some(Version::V2024_11_05));
}

#[test]
fn a_second_handshake_begins_a_new_session() {
    let script = "
resources: [{ uri: 'x:a', text: a }]
tools:
  - { name: gone, reply: x }
  - name: changes
    steps:
      - log: hi
      - disable: { tool: gone }
      - notify: { method: notifications/resources/updated, params: { uri: 'x:a' } }
      - reply: x
";
    let client = TestClient::legacy(script, json!({ "roots": {} }));
    assert_eq!(client.call("logging/setLevel", json!({ "level": "error" }))["result"], json!({}));
    assert_eq!(client.call("resources/subscribe", json!({ "uri": "x:a" }))["result"], json!({}));
    let hello = json!({ "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {} });
    assert_eq!(client.call("initialize", hello)["result"]["protocolVersion"], "2025-03-26");
    assert!(client.session.wait_initialized().is_some());
    client.initialized();
    assert_eq!((client.session.version(), client.session.capabilities()), (Some(Version::V2025_03_26), json!({})));
    assert_eq!(client.exchange("tools/call", json!({ "name": "changes" }))[0]["params"]["data"], "hi");
    let methods: Vec<_> = client.unasked.take().iter().map(|frame| frame["method"].clone()).collect();
    assert_eq!(methods, ["notifications/tools/list_changed"], "once, and nothing of the first session");
}

#[test]
fn an_undeclared_capability_has_no_methods() {
    let mock = Mock::legacy("tools: [{ name: a, reply: x }]", "2025-11-25");
    for method in ["resources/list", "prompts/get", "logging/setLevel", "completion/complete", "tools/nope"] {
        assert_eq!(mock.call(method, json!({}))["error"]["code"], -32601, "{method}");
    }
    assert!(mock.engine.catalog().capabilities(Era::Legacy) == r#"{"tools":{}}"#);
}

#[test]
fn the_same_tool_answers_alike_in_both_eras_but_for_the_envelope() {
    let legacy = Mock::legacy(SCRIPT, "2025-11-25").tool("echo", json!({ "text": "h\"é" }));
    assert_eq!(legacy["result"], json!({ "content": [{ "type": "text", "text": "h\"é" }] }));
    let reply = Mock::new(SCRIPT).call("tools/call", modern(json!({ "name": "echo", "arguments": { "text": "x" } })));
    assert_eq!(
        reply["result"],
        json!({
            "content": [{ "type": "text", "text": "x" }],
            "resultType": "complete",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "t", "version": "1.2.3", "title": "Test" } },
        })
    );
}

#[test]
fn wrong_arguments_are_a_tool_error_since_2025_11_25_and_a_protocol_error_before() {
    let new = Mock::legacy(SCRIPT, "2025-11-25").tool("echo", json!({ "text": 5 }));
    assert_eq!(new["result"]["isError"], true);
    assert_eq!(
        new["result"]["content"][0]["text"],
        r#"Invalid arguments for tool echo: /text: 5 is not of type "string""#
    );
    let old = Mock::legacy(SCRIPT, "2025-06-18").tool("echo", json!({}));
    assert_eq!(old["error"]["code"], -32602);
    let mock = Mock::legacy(SCRIPT, "2025-11-25");
    assert_eq!(mock.tool("echo", json!("text"))["error"]["code"], -32602);
    assert_eq!(mock.tool("silent", json!([]))["error"]["code"], -32602);
}

#[test]
fn an_unknown_tool_is_invalid_params_and_the_journal_names_the_nearest() {
    let mock = Mock::legacy(SCRIPT, "2025-11-25");
    let reply = mock.tool("ecko", json!({}));
    assert_eq!(reply["error"], json!({ "code": -32602, "message": "Unknown tool: ecko" }));
    assert_eq!(mock.last_handling(), "no rule matched; closest is echo: Unknown tool: ecko");
}

#[test]
fn steps_run_in_order_and_send_only_requested_notifications() {
    let mock = Mock::legacy(SCRIPT, "2025-11-25");
    let call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": "steps", "_meta": { "progressToken": "tok" } } });
    let shown: Vec<_> = mock
        .events(&call)
        .into_iter()
        .map(|event| match event {
            Event::Wait(time) => format!("wait {time:?}"),
            Event::Send(bytes) | Event::Finish(ResponseFrame { frame: bytes, .. }) => {
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Event::Exit(code) => format!("exit {code}"),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"l","data":{"n":1}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":1,"total":2}}"#,
            "wait 50ms",
            r#"{"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"{\"n\":1}"}],"_meta":{"k":1}}}"#,
        ]
    );
    assert_eq!(mock.call("logging/setLevel", json!({ "level": "error" }))["result"], json!({}));
    let quiet = json!({ "jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": { "name": "steps" } });
    assert_eq!(mock.events(&quiet).len(), 2, "neither the log below the level nor progress without a token");
    let modern_call =
        json!({ "jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": modern(json!({ "name": "steps" })) });
    assert_eq!(mock.events(&modern_call).len(), 2, "no log level, no log");
    assert_eq!(mock.call("logging/setLevel", json!({ "level": "loud" }))["error"]["code"], -32602);
}

#[test]
fn the_first_matching_rule_answers_and_a_miss_names_the_nearest() {
    let mock = Mock::legacy(SCRIPT, "2025-11-25");
    let error = &mock.tool("by_city", json!({ "city": "Paris" }))["error"];
    assert_eq!(*error, json!({ "code": -7, "message": "no Paris", "data": { "city": "Paris" } }));
    assert_eq!(mock.last_handling(), "tools.by_city.rules[0]");
    let texts: Vec<_> = (0..3).map(|_| mock.tool("by_city", json!({ "city": "Rome" }))["result"].clone()).collect();
    assert_eq!(texts[0]["content"][0]["text"], "first");
    assert_eq!(texts[1]["content"][0]["text"], "second");
    assert_eq!(texts[2]["isError"], true);
    let miss = mock.tool("by_city", json!({ "city": "Oslo" }));
    assert_eq!(miss["result"]["isError"], true);
    assert_eq!(
        mock.last_handling(),
        r#"no rule matched; closest is tools.by_city.rules[0]: /city: expected "Paris", found "Oslo""#
    );
    assert_eq!(mock.tool("silent", json!({}))["result"]["isError"], true);
}

#[test]
fn odd_replies_are_kept_as_the_script_has_them() {
    let mock = Mock::legacy(SCRIPT, "2025-11-25");
    assert_eq!(mock.tool("verbatim", json!({}))["result"].to_string(), r#"{"anything":[1.0]}"#);
    let dies = mock.events(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "dies" } }));
    assert_eq!(dies.last(), Some(&Event::Exit(7)));
    assert_eq!(mock.tool("templated_output", json!({ "n": 3 }))["result"]["structuredContent"], json!({ "n": 3 }));
    assert_eq!(mock.tool("templated_output", json!({ "n": "x" }))["error"]["code"], -32603);
    assert_eq!(mock.tool("templated_output", json!({}))["error"]["code"], -32603, "undefined in a template");
}

#[test]
fn a_request_with_any_member_of_the_modern_meta_is_a_modern_one() {
    let mock = Mock::new(SCRIPT);
    for name in ["protocolVersion", "clientInfo", "clientCapabilities"] {
        let mut params = json!({ "name": "echo" });
        params["_meta"][format!("io.modelcontextprotocol/{name}")] = json!({});
        assert_eq!(mock.call("tools/call", params)["error"]["code"], -32602, "{name}");
    }
}

#[test]
fn lists_are_paged_in_both_eras() {
    let mock = Mock::legacy(SCRIPT, "2025-11-25");
    let first = mock.call("tools/list", json!({}))["result"].clone();
    assert_eq!(first["tools"].as_array().map(Vec::len), Some(4));
    assert_eq!(first.get("ttlMs"), None);
    let second = mock.call("tools/list", modern(json!({ "cursor": first["nextCursor"] })))["result"].clone();
    assert_eq!(second["tools"].as_array().map(Vec::len), Some(4));
    assert_eq!(
        (&second["ttlMs"], &second["cacheScope"], &second["nextCursor"]),
        (&json!(0), &json!("public"), &Json::Null)
    );
    assert_eq!(mock.call("tools/list", json!({ "cursor": "x" }))["error"]["code"], -32602);
}

#[test]
fn resources_and_prompts_answer_with_the_codes_of_their_era() {
    let mock = Mock::legacy(SCRIPT, "2025-11-25");
    let read = |params| mock.call("resources/read", params);
    assert_eq!(
        read(json!({ "uri": "file:///a.txt" }))["result"],
        json!({ "contents": [{ "uri": "file:///a.txt", "mimeType": "text/plain", "text": "hello" }] })
    );
    assert_eq!(read(json!({ "uri": "file:///b.bin" }))["result"]["contents"][0]["blob"], "aGk=");
    let missing = json!({ "code": -32002, "message": "Resource not found", "data": { "uri": "file:///nope" } });
    assert_eq!(read(json!({ "uri": "file:///nope" }))["error"], missing);
    assert_eq!(read(modern(json!({ "uri": "file:///nope" })))["error"]["code"], -32602);
    assert_eq!(mock.call("resources/templates/list", json!({}))["result"], json!({ "resourceTemplates": [] }));
    let prompt = mock.call("prompts/get", json!({ "name": "greet", "arguments": { "who": "Ada" } }));
    assert_eq!(
        prompt["result"],
        json!({ "description": "Greets.", "messages": [{ "role": "user", "content": { "type": "text", "text": "Hello Ada" } }] })
    );
    assert_eq!(
        mock.call("prompts/get", json!({ "name": "greet" }))["error"]["message"],
        "Missing required argument: who"
    );
    assert_eq!(mock.call("prompts/get", json!({ "name": "x" }))["error"]["code"], -32602);
}

#[test]
fn discover_names_every_version_and_may_be_cached() {
    let result = &Mock::new(SCRIPT).call("server/discover", modern(json!({})))["result"];
    assert_eq!(
        result["supportedVersions"],
        json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
    );
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["instructions"]),
        (&json!("complete"), &json!(0), &json!("Be nice."))
    );
}

#[test]
fn modern_requests_are_checked_in_the_order_of_what_each_check_relies_on() {
    let mut mock = Mock::new(SCRIPT);
    let refused = |mock: &Mock, method: &str, params: Json| match mock
        .decision(&json!({ "jsonrpc": "2.0", "id": "x", "method": method, "params": params }).to_string())
    {
        Decision::Respond(answer) => {
            let frame: Json = serde_json::from_slice(&answer.frame).expect("JSON");
            assert_eq!(frame["id"], "x");
            (answer.status, frame["error"]["code"].as_i64().unwrap_or_default())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&mock, "server/discover", json!({})), (400, -32602), "no _meta at all");
    let headers = |pairs: &[(&'static str, &'static str)]| {
        Some(
            pairs
                .iter()
                .map(|(name, value)| ((*name).parse().expect("a name"), http::HeaderValue::from_static(value)))
                .collect(),
        )
    };
    let version = ("mcp-protocol-version", "2026-07-28");
    mock.headers = headers(&[("mcp-method", "tools/list")]);
    assert_eq!(refused(&mock, "tools/list", modern(json!({}))), (400, -32020), "no version header");
    mock.headers = headers(&[version]);
    assert_eq!(refused(&mock, "tools/list", modern(json!({}))), (400, -32020), "no method header");
    mock.headers = headers(&[version, ("mcp-method", "tools/list")]);
    assert_eq!(refused(&mock, "tools/list", json!({})), (400, -32602), "no _meta");
    let no_capabilities = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    assert_eq!(refused(&mock, "tools/list", no_capabilities), (400, -32602));
    let mut other_version = modern(json!({}));
    other_version["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("v9");
    assert_eq!(refused(&mock, "tools/list", other_version.clone()), (400, -32020), "header and body differ");
    mock.headers = headers(&[("mcp-protocol-version", "v9"), ("mcp-method", "tools/list")]);
    assert_eq!(refused(&mock, "tools/list", other_version), (400, -32022));
    mock.headers = headers(&[version, ("mcp-method", "ping")]);
    assert_eq!(refused(&mock, "initialize", modern(json!({}))), (404, -32601), "an unknown method before its mirror");
    assert_eq!(refused(&mock, "tools/list", modern(json!({}))), (400, -32020), "Mcp-Method differs");
    mock.headers = headers(&[version, ("mcp-method", "tools/call")]);
    assert_eq!(refused(&mock, "tools/call", modern(json!({ "name": "echo" }))), (400, -32020), "no Mcp-Name");
    mock.headers = headers(&[version, ("mcp-method", "tools/call"), ("mcp-name", "fail")]);
    assert_eq!(refused(&mock, "tools/call", modern(json!({ "name": "echo" }))), (400, -32020), "Mcp-Name differs");
    mock.headers = headers(&[version, ("mcp-method", "tools/call"), ("mcp-name", "=?base64?!!?=")]);
    assert_eq!(refused(&mock, "tools/call", modern(json!({ "name": "echo" }))), (400, -32020), "no Base64");
    mock.headers = headers(&[version, ("mcp-method", "tools/call"), ("mcp-name", "=?base64?ZWNobw==?=")]);
    assert_eq!(
        mock.call("tools/call", modern(json!({ "name": "echo", "arguments": { "text": "x" } })))["result"]["resultType"],
        "complete"
    );
}

#[test]
fn a_server_of_one_era_names_its_versions_to_the_other() {
    let modern_only = Mock::new("protocol: [2026-07-28]\ntools: [{ name: a, reply: x }]");
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
    let message = modern_only.call("initialize", hello)["error"]["message"].to_string();
    assert!(message.contains("2026-07-28"), "{message}");
    let legacy_only = Mock::legacy("protocol: [2025-06-18]\ntools: [{ name: a, reply: x }]", "2025-06-18");
    assert_eq!(legacy_only.call("server/discover", modern(json!({})))["error"]["code"], -32601);
}

#[test]
fn notifications_cancel_or_are_silent_and_broken_frames_are_answered() {
    let mock = Mock::legacy(SCRIPT, "2025-11-25");
    let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#;
    assert!(matches!(mock.decision(cancelled), Decision::Cancel(id) if id == "a".into()));
    assert!(matches!(mock.decision(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), Decision::Ignore));
    assert!(matches!(mock.decision(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#), Decision::Ignore));
    for (frame, code) in [("nonsense", -32700), ("[]", -32600), (r#"{"id":1}"#, -32600)] {
        let Decision::Respond(answer) = mock.decision(frame) else { panic!("an answer to {frame}") };
        let reply: Json = serde_json::from_slice(&answer.frame).expect("JSON");
        assert_eq!((answer.status, &reply["error"]["code"]), (400, &json!(code)), "{frame}");
    }
}

#[test]
fn batches_exist_in_2025_03_26_only() {
    let batch =
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},7]"#;
    let Decision::Batch(parts) = Mock::legacy(SCRIPT, "2025-03-26").decision(batch) else { panic!("a batch") };
    assert!(matches!(&parts[..], [Decision::Respond(_), Decision::Ignore, Decision::Respond(_)]), "{parts:?}");
    assert!(matches!(Mock::legacy(SCRIPT, "2025-06-18").decision(batch), Decision::Respond(_)));
}

#[test]
fn a_progress_that_is_not_a_number_fails_instead_of_being_sent() {
    let script = "tools: [{ name: t, steps: [{ progress: { progress: '{{ args.n }}' } }, { reply: x }] }]";
    let call = |n: Json| {
        let params = json!({ "name": "t", "arguments": { "n": n }, "_meta": { "progressToken": 1 } });
        Mock::legacy(script, "2025-11-25").call("tools/call", params)
    };
    assert_eq!(call(json!(2.5))["result"]["content"][0]["text"], "x");
    let message = "a template failed: `progress` must be a number, not \"many\"";
    assert_eq!(call(json!("many"))["error"], json!({ "code": -32603, "message": message }));
}

#[test]
fn a_client_gets_only_requests_of_its_version_despite_its_capabilities() {
    let script = "protocol: [2025-03-26]\ntools: [{ name: t, steps: [{ elicit: { message: m, requestedSchema: { type: object } } }, { reply: x }] }]";
    let mock = Mock::new(script);
    let capabilities = json!({ "elicitation": {} });
    mock.call("initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {} }));
    let result = &mock.tool("t", json!({}))["result"];
    assert_eq!(result["content"][0]["text"], "The client does not declare the capability elicitation");
    assert_eq!(result["isError"], true);
}
