//! Single frames of a modern client. What is broken already as a message is in the table of the legacy ones.

use super::{
    Expected::{Error, Nameless, Nothing, Result as Answered, ToolError},
    *,
};

const REQUEST: i64 = -32_600;
const METHOD: i64 = -32_601;
const PARAMS: i64 = -32_602;
const CAPABILITY: i64 = -32_021;
const VERSION: i64 = -32_022;

/// A request whose `_meta` has these members; a null takes one away.
fn meta(method: &str, params: Json, members: Json) -> String {
    let mut request = modern(1, method, params);
    let meta = request["params"]["_meta"].as_object_mut().expect("an object");
    for (name, value) in serde_json::from_value::<Map<String, Json>>(members).expect("an object") {
        let name = if name == "progressToken" { name } else { format!("{META}{name}") };
        match value {
            Json::Null => drop(meta.shift_remove(&name)),
            value => drop(meta.insert(name, value)),
        }
    }
    request.to_string()
}

fn rows() -> Vec<Row> {
    let ask = |method, params| modern(1, method, params).to_string();
    let call = |params| ask("tools/call", params);
    let fields = "Basic: Per-request protocol fields";
    let none = json!({});
    let plain = || json!({ "name": "plain" });
    let (lists, tools) = ("Pagination: Error Handling", "Tools: Error Handling");
    let gone = "Changelog; Streamable HTTP: Protocol Version Header (404)";
    let listen = |filter: Json| ask("subscriptions/listen", json!({ "notifications": filter }));
    let lacks = |method, params| meta(method, params, json!({ "clientCapabilities": {} }));
    let tasks = "SEP-2663: Capability Negotiation, Task Polling";
    let rounds = "Multi Round-Trip Requests: Error Handling";
    let answers = |answers: Json| call(json!({ "name": "ask", "inputResponses": answers }));
    vec![
        row("no version", fields, meta("tools/list", none.clone(), json!({ "protocolVersion": null })), Error(PARAMS))
            .status(400),
        row(
            "no capabilities",
            fields,
            meta("tools/list", none.clone(), json!({ "clientCapabilities": null })),
            Error(PARAMS),
        )
        .status(400),
        row(
            "capabilities that are a list",
            fields,
            meta("tools/list", none.clone(), json!({ "clientCapabilities": [] })),
            Error(PARAMS),
        )
        .status(400),
        row("no _meta", fields, request(1, "tools/list", json!({})).to_string(), Error(PARAMS)).status(400),
        row("no params", fields, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, Error(PARAMS)).status(400),
        row(
            "_meta that is a list",
            fields,
            request(1, "tools/list", json!({ "_meta": [] })).to_string(),
            Error(PARAMS),
        )
        .status(400),
        row("no clientInfo, which need not be there", fields, ask("tools/list", none.clone()), Answered),
        row(
            "an unknown version",
            "Versioning: Protocol Version Negotiation",
            meta("tools/list", none.clone(), json!({ "protocolVersion": "v999" })),
            Error(VERSION),
        )
        .status(400),
        row(
            "a legacy version",
            "Versioning: Protocol Version Negotiation",
            meta("tools/list", none.clone(), json!({ "protocolVersion": "2025-11-25" })),
            Error(VERSION),
        )
        .status(400),
        row(
            "an unknown log level",
            "Logging: Error Handling",
            meta("tools/call", plain(), json!({ "logLevel": "loud" })),
            Error(PARAMS),
        ),
        row(
            "a log level that is a number",
            "Logging: Error Handling",
            meta("tools/call", plain(), json!({ "logLevel": 3 })),
            Error(PARAMS),
        ),
        row(
            "a progress token that is none",
            "Progress (the answer is open)",
            meta("tools/call", plain(), json!({ "progressToken": [] })),
            Answered,
        ),
        row("an unknown method", gone, ask("nope", none.clone()), Error(METHOD)).status(404),
        row("initialize", gone, ask("initialize", none.clone()), Error(METHOD)).status(404),
        row("ping", gone, ask("ping", none.clone()), Error(METHOD)).status(404),
        row("logging/setLevel", gone, ask("logging/setLevel", json!({ "level": "info" })), Error(METHOD)).status(404),
        row("resources/subscribe", gone, ask("resources/subscribe", json!({ "uri": "file:///a" })), Error(METHOD))
            .status(404),
        row("tasks/list", "SEP-2663 has none", ask("tasks/list", none.clone()), Error(METHOD)).status(404),
        row("tasks/result", "SEP-2663 has none", ask("tasks/result", json!({ "taskId": "x" })), Error(METHOD))
            .status(404),
        row("an unknown cursor", lists, ask("tools/list", json!({ "cursor": "nope" })), Error(PARAMS)),
        row("a cursor that is an object", lists, ask("prompts/list", json!({ "cursor": {} })), Error(PARAMS)),
        row("an unknown tool", tools, call(json!({ "name": "nope" })), Error(PARAMS)),
        row("arguments that are a list", tools, call(json!({ "name": "plain", "arguments": [] })), Error(PARAMS)),
        row("a missing argument", tools, call(json!({ "name": "echo" })), ToolError),
        row(
            "an unknown resource",
            "Resources: Error Handling",
            ask("resources/read", json!({ "uri": "file:///nope" })),
            Error(PARAMS),
        ),
        row(
            "an unknown prompt",
            "Prompts: Error Handling",
            ask("prompts/get", json!({ "name": "nope" })),
            Error(PARAMS),
        ),
        row(
            "a completion of an unknown prompt",
            "Completion: Error Handling",
            ask(
                "completion/complete",
                json!({ "ref": { "type": "ref/prompt", "name": "nope" }, "argument": { "name": "a", "value": "" } }),
            ),
            Error(PARAMS),
        ),
        row(
            "a question that the client does not know",
            fields,
            lacks("tools/call", json!({ "name": "ask" })),
            Error(CAPABILITY),
        )
        .status(400),
        row(
            "a response",
            "stdio: Sending Messages; JSON-RPC 2.0, 5",
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            Nothing,
        ),
        row(
            "an unknown notification",
            "JSON-RPC 2.0, 4.1",
            r#"{"jsonrpc":"2.0","method":"notifications/nope"}"#,
            Nothing,
        ),
        row(
            "the cancellation of nothing",
            "Cancellation: Error Handling",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#,
            Nothing,
        ),
        row(
            "a batch",
            "Basic: Messages; 2025-06-18, Changelog 1",
            format!("[{}]", ask("tools/list", none.clone())),
            Nameless(REQUEST),
        ),
        row("an empty batch", "Basic: Messages", "[]", Nameless(REQUEST)),
        row("answers that are null", rounds, answers(Json::Null), Error(PARAMS)),
        row("answers that are a list", rounds, answers(json!([])), Error(PARAMS)),
        row("an answer that is a number", rounds, answers(json!({ "guest": 5 })), Error(PARAMS)),
        row("an answer without an action", rounds, answers(json!({ "guest": {} })), Error(PARAMS)),
        row("an answer of another action", rounds, answers(json!({ "guest": { "action": "maybe" } })), Error(PARAMS)),
        row(
            "an answer that breaks the form",
            rounds,
            answers(json!({ "guest": { "action": "accept", "content": { "name": 5 } } })),
            Error(PARAMS),
        ),
        row(
            "an answer without a request",
            rounds,
            call(json!({ "name": "plain", "inputResponses": { "more": {} } })),
            Answered,
        ),
        row("a state that is a number", rounds, call(json!({ "name": "ask", "requestState": 5 })), Error(PARAMS)),
        row("a state that is none", rounds, call(json!({ "name": "ask", "requestState": "e30.e30" })), Error(PARAMS)),
        row("an empty state", rounds, call(json!({ "name": "ask", "requestState": "" })), Error(PARAMS)),
        row("an unknown task", tasks, ask("tasks/get", json!({ "taskId": "nope" })), Error(PARAMS)),
        row("no task", tasks, ask("tasks/cancel", json!({})), Error(PARAMS)),
        row(
            "an update of an unknown task",
            tasks,
            ask("tasks/update", json!({ "taskId": "nope", "inputResponses": {} })),
            Error(PARAMS),
        ),
        row(
            "a task of a client without tasks",
            tasks,
            lacks("tools/call", json!({ "name": "task" })),
            Error(CAPABILITY),
        )
        .status(400),
        row(
            "tasks/get of a client without tasks",
            tasks,
            lacks("tasks/get", json!({ "taskId": "nope" })),
            Error(CAPABILITY),
        )
        .status(400),
        row(
            "nothing to listen to",
            "Subscriptions: Opening a Stream",
            ask("subscriptions/listen", none),
            Error(PARAMS),
        ),
        row("a filter that is a list", "Schema: SubscriptionFilter", listen(json!([])), Error(PARAMS)),
        row("a filter that is null", "Schema: SubscriptionFilter", listen(Json::Null), Error(PARAMS)),
        row(
            "a filter with a text for a flag",
            "Schema: SubscriptionFilter",
            listen(json!({ "toolsListChanged": "yes" })),
            Error(PARAMS),
        ),
        row(
            "a filter with a text for a list",
            "Schema: SubscriptionFilter",
            listen(json!({ "resourceSubscriptions": "file:///a" })),
            Error(PARAMS),
        ),
        row(
            "a filter with numbers for URIs",
            "Schema: SubscriptionFilter",
            listen(json!({ "resourceSubscriptions": [1] })),
            Error(PARAMS),
        ),
        row(
            "tasks to listen to without tasks",
            "SEP-2663: Task Status Notifications",
            lacks("subscriptions/listen", json!({ "notifications": { "taskIds": ["x"] } })),
            Error(CAPABILITY),
        )
        .status(400),
    ]
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
            for row in rows().iter().filter(|row| !protocol.is_empty() || names_a_version(row)) {
                row.check(on, &line.exchange(&row.frame).await);
            }
        }
        let address = server.address().to_string();
        for row in rows() {
            let reply = post(&address, &row.frame, &mirrored(&row.frame)).await;
            match row.what {
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
