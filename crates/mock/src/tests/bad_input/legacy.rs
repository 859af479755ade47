//! Single frames of a legacy client, in an open session and before it.

use super::{
    Expected::{Error, Nameless, Nothing, Result as Answered, ToolError},
    *,
};

const PARSE: i64 = -32_700;
const REQUEST: i64 = -32_600;
const METHOD: i64 = -32_601;
const PARAMS: i64 = -32_602;
const RESOURCE: i64 = -32_002;

/// Frames that are not messages in any version.
pub(super) fn broken() -> Vec<Row> {
    let ping = request(1, "ping", json!({}));
    let rpc = "JSON-RPC 2.0, 5.1 Error object";
    let ids = "Basic: Requests";
    vec![
        row("no JSON", rpc, "nonsense", Nameless(PARSE)),
        row("half a message", rpc, r#"{"jsonrpc":"2.0","id":1,"method":"#, Nameless(PARSE)),
        row("a byte order mark", rpc, "\u{feff}{}", Nameless(PARSE)),
        row(
            "a control character in a text",
            rpc,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\u{1}\"}",
            Nameless(PARSE),
        ),
        row("a number", rpc, "42", Nameless(REQUEST)),
        row("a text", rpc, "\"ping\"", Nameless(REQUEST)),
        row("null", rpc, "null", Nameless(REQUEST)),
        row("an empty object", rpc, "{}", Nameless(REQUEST)),
        row("no jsonrpc", rpc, frame_with(ping.clone(), json!({ "jsonrpc": null })), Error(REQUEST)),
        row("jsonrpc 1.0", rpc, frame_with(ping.clone(), json!({ "jsonrpc": "1.0" })), Error(REQUEST)),
        row("jsonrpc as a number", rpc, frame_with(ping.clone(), json!({ "jsonrpc": 2.0 })), Error(REQUEST)),
        row("no method", rpc, frame_with(ping.clone(), json!({ "method": null })), Error(REQUEST)),
        row("a method that is not a text", rpc, frame_with(ping.clone(), json!({ "method": 5 })), Error(REQUEST)),
        row(
            "params that are a list",
            "Basic: Requests (an object)",
            frame_with(ping.clone(), json!({ "params": [] })),
            Error(REQUEST),
        ),
        row("params that are a text", rpc, frame_with(ping.clone(), json!({ "params": "x" })), Error(REQUEST)),
        row(
            "a member twice",
            "JSON-RPC 2.0, 4 (the answer is open)",
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            Nameless(REQUEST),
        ),
        row("id null", ids, r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Nameless(REQUEST)),
        row("a fractional id", ids, frame_with(ping.clone(), json!({ "id": 1.5 })), Nameless(REQUEST)),
        row("an id that is true", ids, frame_with(ping.clone(), json!({ "id": true })), Nameless(REQUEST)),
        row("an id that is an object", ids, frame_with(ping.clone(), json!({ "id": {} })), Nameless(REQUEST)),
        row(
            "an id of more than 64 bits, which this server cannot read",
            ids,
            r#"{"jsonrpc":"2.0","id":18446744073709551616,"method":"ping"}"#,
            Nameless(REQUEST),
        ),
        // An error with this id would fail the client's own request with the same id.
        row(
            "a result and an error",
            "JSON-RPC 2.0, 5 Response object",
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
            Nameless(REQUEST),
        ),
        row(
            "an error that is none",
            "JSON-RPC 2.0, 5.1",
            r#"{"jsonrpc":"2.0","id":1,"error":"bad"}"#,
            Nameless(REQUEST),
        ),
        row("a result without an id", "JSON-RPC 2.0, 5", r#"{"jsonrpc":"2.0","result":{}}"#, Nameless(REQUEST)),
        row("a method and a result", rpc, frame_with(ping, json!({ "result": {} })), Error(REQUEST)),
    ]
    .into_iter()
    .map(|row| row.status(400))
    .collect()
}

/// Frames that are messages of a session.
fn session(version: &str) -> Vec<Row> {
    let call = |params| request(2, "tools/call", params).to_string();
    let ask = |method, params| request("a\"\n", method, params).to_string();
    let (tools, pages) = ("Tools: Error Handling", "Pagination: Error Handling");
    let (prompts, resources) = ("Prompts: Error Handling", "Resources: Error Handling");
    let cancel = "Cancellation: Error Handling";
    let note = |method: &str, params: Json| json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
    // Until 2025-06-18 input validation is a protocol error (2025-11-25, Changelog: SEP-1303).
    let wrong_arguments = if version >= "2025-11-25" { ToolError } else { Error(PARAMS) };
    let completion =
        |reference: Json, argument: Json| ask("completion/complete", json!({ "ref": reference, "argument": argument }));
    let prompt = || json!({ "type": "ref/prompt", "name": "greet" });
    vec![
        row("an unknown method", "JSON-RPC 2.0, 5.1", ask("tools/nope", json!({})), Error(METHOD)),
        row("an empty method", "JSON-RPC 2.0, 5.1", ask("", json!({})), Error(METHOD)),
        row("a method in other letters", "JSON-RPC 2.0, 5.1", ask("Tools/List", json!({})), Error(METHOD)),
        row(
            "a modern method",
            "2026-07-28, Versioning",
            ask("subscriptions/listen", json!({ "notifications": {} })),
            Error(METHOD),
        ),
        row(
            "a notification as a request",
            "JSON-RPC 2.0, 5.1",
            ask("notifications/initialized", json!({})),
            Error(METHOD),
        ),
        row("an unknown notification", "JSON-RPC 2.0, 4.1", note("notifications/nope", json!({})), Nothing),
        row(
            "a request as a notification",
            "JSON-RPC 2.0, 4.1",
            note("tools/call", json!({ "name": "plain" })),
            Nothing,
        ),
        row(
            "an answer to a question never asked",
            "JSON-RPC 2.0, 5",
            r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
            Nothing,
        ),
        row(
            "an error for a question never asked",
            "JSON-RPC 2.0, 5",
            r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}"#,
            Nothing,
        ),
        row(
            "an error about nothing",
            "JSON-RPC 2.0, 5",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#,
            Nothing,
        ),
        row(
            "the cancellation of nothing",
            cancel,
            note("notifications/cancelled", json!({ "requestId": 77 })),
            Nothing,
        ),
        row("a cancellation without an id", cancel, note("notifications/cancelled", json!({})), Nothing),
        row("a cancellation of null", cancel, note("notifications/cancelled", json!({ "requestId": null })), Nothing),
        row("a cancellation of 1.5", cancel, note("notifications/cancelled", json!({ "requestId": 1.5 })), Nothing),
        row("no tool", tools, call(json!({})), Error(PARAMS)),
        row("a tool that is not a text", tools, call(json!({ "name": 5 })), Error(PARAMS)),
        row("a tool that is null", tools, call(json!({ "name": null })), Error(PARAMS)),
        row("an unknown tool", tools, call(json!({ "name": "nope" })), Error(PARAMS)),
        row("arguments that are a list", tools, call(json!({ "name": "plain", "arguments": [1] })), Error(PARAMS)),
        row("arguments that are a text", tools, call(json!({ "name": "plain", "arguments": "x" })), Error(PARAMS)),
        row("a missing argument", tools, call(json!({ "name": "echo", "arguments": {} })), wrong_arguments),
        row(
            "an argument of another type",
            tools,
            call(json!({ "name": "echo", "arguments": { "text": 5 } })),
            wrong_arguments,
        ),
        row(
            "an argument that is half a character",
            tools,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"\ud800"}}}"#,
            Error(PARAMS),
        ),
        row(
            "_meta that is a list",
            "Schema: RequestParams",
            call(json!({ "name": "plain", "_meta": [] })),
            Error(PARAMS),
        ),
        row(
            "a progress token that is none",
            "Progress: Progress Flow (the answer is open)",
            call(json!({ "name": "plain", "_meta": { "progressToken": 1.5 } })),
            Answered,
        ),
        row("an unknown cursor", pages, ask("tools/list", json!({ "cursor": "nope" })), Error(PARAMS)),
        row("an empty cursor", pages, ask("tools/list", json!({ "cursor": "" })), Error(PARAMS)),
        row("a cursor that is a number", pages, ask("resources/list", json!({ "cursor": 1 })), Error(PARAMS)),
        row("an unknown prompt", prompts, ask("prompts/get", json!({ "name": "nope" })), Error(PARAMS)),
        row("a prompt without its argument", prompts, ask("prompts/get", json!({ "name": "greet" })), Error(PARAMS)),
        row(
            "a prompt's argument that is not a text",
            prompts,
            ask("prompts/get", json!({ "name": "greet", "arguments": { "who": 5 } })),
            Error(PARAMS),
        ),
        row("an unknown resource", resources, ask("resources/read", json!({ "uri": "file:///nope" })), Error(RESOURCE)),
        row("no resource", resources, ask("resources/read", json!({})), Error(PARAMS)),
        row("a subscription to nothing", resources, ask("resources/subscribe", json!({})), Error(PARAMS)),
        row(
            "a subscription to a list",
            resources,
            ask("resources/unsubscribe", json!({ "uri": ["file:///a"] })),
            Error(PARAMS),
        ),
        row(
            "an unknown log level",
            "Logging: Error Handling",
            ask("logging/setLevel", json!({ "level": "loud" })),
            Error(PARAMS),
        ),
        row("no log level", "Logging: Error Handling", ask("logging/setLevel", json!({})), Error(PARAMS)),
        row(
            "a completion of an unknown prompt",
            "Completion: Error Handling",
            completion(json!({ "type": "ref/prompt", "name": "nope" }), json!({ "name": "who", "value": "" })),
            Error(PARAMS),
        ),
        row(
            "a completion of an unknown kind",
            "Completion: Error Handling",
            completion(json!({ "type": "ref/tool", "name": "echo" }), json!({ "name": "who", "value": "" })),
            Error(PARAMS),
        ),
        row(
            "a completion without a value",
            "Completion: Error Handling",
            completion(prompt(), json!({ "name": "who" })),
            Error(PARAMS),
        ),
        row(
            "a completion without an argument",
            "Completion: Error Handling",
            completion(prompt(), Json::Null),
            Error(PARAMS),
        ),
        row(
            "a completion of an argument that is not there",
            "Completion (the answer is open)",
            completion(prompt(), json!({ "name": "nope", "value": "" })),
            Answered,
        ),
    ]
}

fn batches(version: &str) -> Vec<Row> {
    let one = Json::from(vec![request(1, "ping", json!({}))]).to_string();
    let where_from = "2025-03-26, Messages: Batching; 2025-06-18, Changelog 1";
    match version {
        "2025-03-26" => vec![
            row("an empty batch", "JSON-RPC 2.0, 6 Batch", "[]", Nameless(REQUEST)),
            row("a batch of a notification", where_from, r#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#, Nothing),
        ],
        _ => vec![
            row("a batch", where_from, one, Nameless(REQUEST)),
            row("an empty batch", where_from, "[]", Nameless(REQUEST)),
        ],
    }
}

/// Frames before there is a session. `status` is that of HTTP, where there is no way to say them without one.
fn unopened() -> Vec<Row> {
    let order = "Lifecycle: Initialization";
    let hello = |members: Json| {
        let mut hello = initialize("2025-11-25", &json!({}));
        for (name, value) in members.as_object().into_iter().flatten() {
            hello["params"][name] = value.clone();
        }
        hello.to_string()
    };
    vec![
        row("a call before the handshake", order, request(1, "tools/list", json!({})).to_string(), Error(REQUEST))
            .status(400),
        row("an unknown method before the handshake", order, request(1, "nope", json!({})).to_string(), Error(REQUEST))
            .status(400),
        row("a handshake without a version", order, hello(json!({ "protocolVersion": null })), Error(PARAMS)),
        row("a handshake with a number for a version", order, hello(json!({ "protocolVersion": 5 })), Error(PARAMS)),
        row("a handshake without capabilities", order, hello(json!({ "capabilities": null })), Error(PARAMS)),
        row("a handshake with a list of capabilities", order, hello(json!({ "capabilities": [] })), Error(PARAMS)),
        row("a handshake without a client", order, hello(json!({ "clientInfo": null })), Error(PARAMS)),
        row("a handshake without anything", order, r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#, Error(PARAMS)),
    ]
}

#[tokio::test]
async fn frames_of_a_legacy_session() {
    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let rows = || [broken(), session(version), batches(version)].into_iter().flatten();
        for (on, mut line) in line::Line::open_all(&engine, &server).await {
            let hello = line.exchange(initialize(version, &json!({})).to_string().as_bytes()).await;
            assert_eq!(hello[0]["result"]["protocolVersion"], version);
            for row in rows() {
                row.check(&format!("{on} in {version}"), &line.exchange(&row.frame).await);
            }
            // Lifecycle: Initialization (the answer is open).
            let again = line.exchange(initialize(version, &json!({})).to_string().as_bytes()).await;
            assert_eq!(again[0]["result"]["protocolVersion"], version, "a second handshake on {on}");
            if version == "2025-03-26" {
                let batch = json!([
                    request(1, "ping", json!({})),
                    7,
                    initialize(version, &json!({})),
                    request(2, "nope", json!({}))
                ]);
                let replies: Vec<_> = line.exchange(batch.to_string().as_bytes()).await;
                let replies: Vec<_> =
                    replies.iter().map(|frame| (frame["id"].clone(), frame["error"]["code"].clone())).collect();
                let (ok, bad) = ((json!(1), Json::Null), (Json::Null, json!(REQUEST)));
                assert_eq!(
                    replies,
                    [ok, bad, (json!(0), json!(REQUEST)), (json!(2), json!(METHOD))],
                    "each part for itself"
                );
            }
        }
        let session = sessions::Session::open(&server, version).await;
        let again = initialize(version, &json!({})).to_string();
        assert_eq!(session.post(again.as_bytes()).await.code(), Some(REQUEST), "a second handshake in a session");
        for row in rows() {
            row.check_http(&session.post(&row.frame).await);
            let header = [("mcp-protocol-version", version)];
            let ping = request(1, "ping", json!({})).to_string();
            assert_eq!(session.send("POST", &header, ping.as_bytes()).await.status, 200);
        }
    }
}

#[tokio::test]
async fn frames_before_the_handshake() {
    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    for (on, mut line) in line::Line::open_all(&engine, &server).await {
        for row in broken().into_iter().chain(unopened()) {
            row.check(on, &line.exchange(&row.frame).await);
        }
        let unknown = line.exchange(initialize("1999-01-01", &json!({})).to_string().as_bytes()).await;
        assert_eq!(unknown[0]["result"]["protocolVersion"], "2025-11-25", "Lifecycle: Version Negotiation");
    }
    let address = server.address().to_string();
    let client = http::Http::new(&address);
    for row in broken().into_iter().chain(unopened()) {
        row.check_http(&client.post("/mcp", &[BOTH, IS_JSON], &row.frame).await);
    }
}
