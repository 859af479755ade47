//! `rehearse conformance-client`, which the official suite starts.

use serde_json::Value as Json;

use crate::rehearse::{Rehearse, Running};

const SCRIPT: &str = "
server: { name: stories }
tools:
  - name: add
    inputSchema:
      type: object
      properties: { a: { type: number }, unit: { type: string, default: mm }, note: { type: string } }
      required: [a]
    reply: done
  - name: ask
    steps:
      - elicit: { as: user, message: Who?, requestedSchema: { type: object, properties: { name: { type: string, default: Ada } } } }
      - reply: { text: 'hello {{ user.content.name }}' }
  - { name: fails, reply: { rpcError: { code: -32000, message: no } } }
resources: [{ uri: 'memo://a', name: a, text: A }]
prompts: [{ name: greet, arguments: [{ name: who, required: true }], reply: { messages: [{ role: user, content: { type: text, text: 'hi {{ args.who }}' } }] } }]
";

fn served() -> (Running, String) {
    let command = ["mock", "mock.yaml", "--listen", "127.0.0.1:0", "--journal", "journal.jsonl"];
    let mut mock = Rehearse::new().file("mock.yaml", SCRIPT).args(command).start();
    let address = mock.address("http://", "/mcp");
    (mock, address)
}

/// The methods of the received requests, each with its name or URI.
fn requests(journal: &str) -> Vec<String> {
    let entries = journal.lines().map(|line| serde_json::from_str::<Json>(line).expect("JSON"));
    let about = |entry: Json| {
        let (method, params) = (entry["method"].as_str()?.to_owned(), &entry["request"]["params"]);
        let name = params["name"].as_str().or(params["uri"].as_str());
        Some(name.map_or(method.clone(), |name| format!("{method} {name}")))
    };
    entries.filter_map(about).collect()
}

#[test]
fn all_features_of_a_server_are_used_once_in_both_eras() {
    let (mock, address) = served();
    for version in ["2025-11-25", "2026-07-28"] {
        let url = format!("http://{address}/mcp");
        let client = Rehearse::new().env("MCP_CONFORMANCE_PROTOCOL_VERSION", version);
        client.args(["conformance-client", &url]).run().stderr_has("tools/call fails: rpc: error -32000: no").code(0);
    }
    mock.signal("INT");
    let ended = mock.end();
    let journal = ended.read("journal.jsonl");
    let calls = requests(&journal);
    for wanted in ["tools/call add", "tools/call fails", "resources/read memo://a", "prompts/get greet"] {
        assert_eq!(calls.iter().filter(|call| *call == wanted).count(), 2, "{wanted}: {calls:?}");
    }
    // The modern server requests it in a separate round.
    assert_eq!(calls.iter().filter(|call| *call == "tools/call ask").count(), 3, "{calls:?}");
    assert!(journal.contains(r#""arguments":{"a":1.0,"unit":"mm"}"#), "{journal}");
    assert!(journal.contains(r#""content":{"name":"Ada"}"#), "{journal}");
}

#[test]
fn the_suite_selects_the_calls() {
    let (mock, address) = served();
    let context = r#"{"toolCalls": [{"name": "add", "arguments": {"a": 7}}]}"#;
    let client = Rehearse::new().env("MCP_CONFORMANCE_CONTEXT", context);
    client.args(["conformance-client", &format!("http://{address}/mcp")]).run().code(0);
    mock.signal("INT");
    let journal = mock.end().read("journal.jsonl");
    let calls: Vec<_> = requests(&journal).into_iter().filter(|call| call.starts_with("tools/call")).collect();
    assert_eq!(calls, ["tools/call add"]);
    assert!(journal.contains(r#""arguments":{"a":7}"#), "{journal}");
}

#[test]
fn unusable_input_is_reported() {
    let client = |url: &str| Rehearse::new().args(["conformance-client", url]);
    client("http://127.0.0.1:1/mcp").run().stderr_has("cannot reach http://127.0.0.1:1/mcp").code(3);
    client("nonsense").run().stderr_has("nonsense").code(2);
    let wrong = client("http://127.0.0.1:1/mcp").env("MCP_CONFORMANCE_PROTOCOL_VERSION", "2020-01-01");
    wrong.run().stderr_has("unknown protocol").code(2);
    client("http://127.0.0.1:1/mcp").env("MCP_CONFORMANCE_CONTEXT", "{").run().stderr_has("is not valid JSON").code(2);
}
