use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    sync::{Barrier, oneshot},
};

use super::HandlerCall;
use crate::{LogLevel, MockServer, Resource, Rule, Tool, journal::AnswerKind, script::ItemKind};
use rehearse_protocol::{Era, RpcError, Transport, message};

/// A client over a pipe, of one era.
struct Client {
    era: Era,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Client {
    async fn connect(server: &MockServer, era: Era) -> Client {
        let (reader, writer) = tokio::io::split(server.connect());
        let mut client = Client { era, lines: BufReader::new(reader).lines(), writer };
        if era == Era::Legacy {
            let info = json!({ "name": "c", "version": "1" });
            let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
            client.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
            client.next().await;
            client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        }
        client
    }

    async fn send(&mut self, message: &Json) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.expect("writes");
    }

    async fn next(&mut self) -> Json {
        let line = tokio::time::timeout(Duration::from_secs(60), self.lines.next_line()).await;
        serde_json::from_str(&line.expect("in time").expect("reads").expect("a line")).expect("JSON")
    }

    /// Sends a call of the tool `t`.
    async fn begin(&mut self, id: u64, arguments: Json, mut meta: Json) {
        if self.era == Era::Modern {
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let params = json!({ "name": "t", "arguments": arguments, "_meta": meta });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
    }

    async fn call(&mut self, arguments: Json) -> Json {
        self.begin(1, arguments, json!({})).await;
        self.next().await
    }
}

fn content(text: &str) -> Json {
    json!({ "content": [{ "type": "text", "text": text }] })
}

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

async fn serve(tool: Tool) -> MockServer {
    MockServer::builder().tool(tool).start().await.expect("valid")
}

#[tokio::test]
async fn a_handler_knows_its_call_and_answers_in_both_eras() {
    let tool = Tool::new("t").handle(async |call: HandlerCall| {
        assert_eq!((call.tool(), call.version().era()), ("t", call.era()));
        let text = format!("{} {}", call.arguments()["city"], call.version());
        Ok(json!({ "content": [{ "type": "text", "text": text }], "resultType": "odd", "_meta": { "k": 1 } }))
    });
    let server = serve(tool).await;
    let answer = |text: &str| json!([{ "type": "text", "text": text }]);
    let legacy = Client::connect(&server, Era::Legacy).await.call(json!({ "city": "Oslo" })).await;
    assert_eq!(legacy["result"], json!({ "content": answer("\"Oslo\" 2025-11-25"), "_meta": { "k": 1 } }));
    let modern = Client::connect(&server, Era::Modern).await.call(json!({ "city": "Oslo" })).await;
    assert_eq!(modern["result"]["content"], answer("\"Oslo\" 2026-07-28"));
    assert_eq!((&modern["result"]["resultType"], &modern["result"]["_meta"]["k"]), (&json!("complete"), &json!(1)));
    assert_eq!(modern["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "mock");
}

#[tokio::test]
async fn progress_and_log_messages_come_before_the_response_if_they_are_wanted() {
    let tool = Tool::new("t").handle(async |call: HandlerCall| {
        call.progress(0.5, Some(2.0), Some("half"));
        call.progress(f64::NAN, None, None);
        tokio::task::yield_now().await;
        call.log(LogLevel::DEBUG, None, "unwanted");
        call.log(LogLevel::WARNING, Some("l"), json!({ "n": 1 }));
        call.progress(2.0, None, None);
        Ok(content("done"))
    });
    let server = serve(tool).await;
    for era in ERAS {
        let mut client = Client::connect(&server, era).await;
        if era == Era::Legacy {
            let params = json!({ "level": "info" });
            client.send(&json!({ "jsonrpc": "2.0", "id": 9, "method": "logging/setLevel", "params": params })).await;
            assert_eq!(client.next().await["result"], json!({}));
        }
        client.begin(1, json!({}), json!({ "progressToken": "p", "io.modelcontextprotocol/logLevel": "info" })).await;
        let half = json!({ "progressToken": "p", "progress": 0.5, "total": 2, "message": "half" });
        assert_eq!(client.next().await["params"], half);
        let log = client.next().await;
        assert_eq!(log["method"], "notifications/message");
        assert_eq!(log["params"], json!({ "level": "warning", "logger": "l", "data": { "n": 1 } }));
        assert_eq!(client.next().await["params"], json!({ "progressToken": "p", "progress": 2 }));
        assert_eq!(client.next().await["id"], 1);
        if era == Era::Modern {
            client.begin(2, json!({}), json!({})).await;
            assert_eq!(client.next().await["id"], 2, "neither a token nor a level");
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_log_sends_no_messages() {
    let tool = Tool::new("t").handle(async |call: HandlerCall| {
        call.log(LogLevel::ERROR, None, "lost");
        Ok(content("done"))
    });
    let server = MockServer::builder().tool(tool).set("capabilities", json!({ "logging": null })).start().await;
    let server = server.expect("valid");
    assert_eq!(Client::connect(&server, Era::Legacy).await.call(json!({})).await["id"], 1);
}

/// Ends when a call begins, and when its future is dropped.
type CallEnds = (oneshot::Receiver<()>, oneshot::Receiver<()>);

/// A tool that never answers, for this many calls.
fn endless(count: usize) -> (Tool, Vec<CallEnds>) {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..count)
        .map(|_| {
            let (begun, ended) = (oneshot::channel(), oneshot::channel::<()>());
            ((begun.0, ended.0), (begun.1, ended.1))
        })
        .unzip();
    let senders = Arc::new(Mutex::new(senders));
    let tool = Tool::new("t").handle(move |_| {
        let (begun, guard) = senders.lock().remove(0);
        async move {
            let _guard = guard;
            let _ = begun.send(());
            std::future::pending::<Result<Json, RpcError>>().await
        }
    });
    (tool, receivers)
}

impl Client {
    /// Begins an endless call, and waits until it runs.
    async fn hang(&mut self, calls: &mut Vec<CallEnds>) -> oneshot::Receiver<()> {
        self.begin(1, json!({}), json!({})).await;
        let (begun, ended) = calls.remove(0);
        begun.await.expect("it runs");
        ended
    }
}

async fn assert_dropped(ended: oneshot::Receiver<()>) {
    assert!(tokio::time::timeout(Duration::from_secs(60), ended).await.expect("in time").is_err());
}

#[tokio::test]
async fn cancelling_a_call_closing_the_connection_and_stopping_the_server_drop_the_future() {
    let (tool, mut calls) = endless(5);
    let server = serve(tool).await;
    for era in ERAS {
        let mut client = Client::connect(&server, era).await;
        let ended = client.hang(&mut calls).await;
        let params = json!({ "requestId": 1 });
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
        assert_dropped(ended).await;
    }
    let mut client = Client::connect(&server, Era::Legacy).await;
    let ended = client.hang(&mut calls).await;
    drop(client);
    assert_dropped(ended).await;

    // Over HTTP a modern client cancels by closing its connection.
    let url = server.url(Transport::Http).expect("it listens");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "t", "arguments": {}, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let address = server.address();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json, \
         text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: t\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    assert!(url.ends_with("/mcp"));
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("connects");
    stream.write_all(format!("{head}{body}").as_bytes()).await.expect("writes");
    let (begun, ended) = calls.remove(0);
    begun.await.expect("it runs");
    drop(stream);
    assert_dropped(ended).await;

    let mut client = Client::connect(&server, Era::Legacy).await;
    let ended = client.hang(&mut calls).await;
    server.stop(Duration::ZERO).await;
    assert_dropped(ended).await;
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let barrier = Arc::new(Barrier::new(3));
    let tool = Tool::new("t").handle(move |_| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            Ok(content("all are here"))
        }
    });
    let server = serve(tool).await;
    let mut client = Client::connect(&server, Era::Legacy).await;
    for id in 1..=3 {
        client.begin(id, json!({}), json!({})).await;
    }
    let mut ids = [client.next().await, client.next().await, client.next().await].map(|it| it["id"].as_u64());
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2), Some(3)]);
}

#[tokio::test]
async fn a_panic_and_an_error_are_answers_and_the_connection_goes_on() {
    let tool = Tool::new("t")
        .rule(Rule::when_args(json!({ "do": "panic" })).handle(async |_| -> Result<Json, RpcError> {
            tokio::task::yield_now().await;
            panic!("one {}", 1)
        }))
        .rule(
            Rule::when_args(json!({ "do": "panic early" }))
                .handle(|_| -> std::future::Ready<Result<Json, RpcError>> { panic!("early") }),
        )
        .rule(
            Rule::when_args(json!({ "do": "refuse" }))
                .handle(async |_| -> Result<Json, RpcError> { Err(RpcError::new(-7, "no").with_data(5)) }),
        )
        .rule(
            Rule::always()
                .delay(Duration::from_millis(1))
                .handle(async |_| Ok(json!({ "content": [], "isError": true }))),
        );
    let server = serve(tool).await;
    let mut client = Client::connect(&server, Era::Modern).await;
    for (what, code, text) in [
        ("panic", message::INTERNAL_ERROR, "the handler of the tool t failed: it panicked: one 1"),
        ("panic early", message::INTERNAL_ERROR, "the handler of the tool t failed: it panicked: early"),
        ("refuse", -7, "no"),
    ] {
        let error = client.call(json!({ "do": what })).await["error"].take();
        assert_eq!((&error["code"], &error["message"]), (&json!(code), &json!(text)));
    }
    assert_eq!(client.call(json!({})).await["result"]["isError"], true);
    let journal = server.journal();
    let answers: Vec<_> = journal.iter().map(|entry| entry.answer().and_then(|answer| answer.outcome())).collect();
    let (error, tool_error) = (Some(AnswerKind::Error), Some(AnswerKind::ToolError));
    assert_eq!(answers, [error, error, error, tool_error]);
    assert_eq!(journal[0].handling.to_string(), "tools.t.rules[0]");
    assert_eq!(journal[0].reason(), Some("the handler of the tool t failed: it panicked: one 1"));
}

#[tokio::test]
async fn results_and_arguments_are_checked() {
    let results = [
        json!(5),
        json!({ "structuredContent": { "n": 1 } }),
        content("no structure"),
        json!({ "content": [], "structuredContent": { "n": "one" } }),
        json!({ "content": [], "structuredContent": { "n": 1 } }),
        json!({ "content": [], "isError": true }),
    ];
    let tool = Tool::new("t")
        .input_schema(json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] }))
        .output_schema(json!({ "type": "object", "properties": { "n": { "type": "integer" } } }))
        .handle(move |call: HandlerCall| {
            let result = results[call.arguments()["n"].as_u64().unwrap_or_default() as usize].clone();
            async move { Ok(result) }
        });
    let server = serve(tool).await;
    let mut client = Client::connect(&server, Era::Legacy).await;
    for (n, expected) in [
        "its result is not an object",
        "its result needs `content`, an array",
        "the tool has an outputSchema, but the result has no `structuredContent`",
        "its structuredContent breaks the tool's outputSchema: /n: \"one\" is not of type \"integer\"",
    ]
    .into_iter()
    .enumerate()
    {
        let error = client.call(json!({ "n": n })).await["error"].take();
        assert_eq!(error["message"], format!("the handler of the tool t failed: {expected}"));
    }
    assert_eq!(client.call(json!({ "n": 4 })).await["result"]["structuredContent"], json!({ "n": 1 }));
    assert_eq!(client.call(json!({ "n": 5 })).await["result"]["isError"], true);
    let refused = client.call(json!({})).await["result"].take();
    let text = "Invalid arguments for tool t: \"n\" is a required property";
    assert_eq!((&refused["isError"], &refused["content"][0]["text"]), (&json!(true), &json!(text)));
}

#[tokio::test]
async fn a_handler_is_added_to_a_running_server_and_to_a_script() {
    let script = "tools: [{ name: t, reply: from the file }]";
    let other = Tool::new("other").handle(async |_| Ok(content("other")));
    let server = MockServer::from_script(script).tool(other).start().await.expect("valid");
    let mut client = Client::connect(&server, Era::Legacy).await;
    let say = async |client: &mut Client| client.call(json!({})).await["result"]["content"][0]["text"].take();
    assert_eq!(say(&mut client).await, "from the file");
    let id = server.add_rule(ItemKind::Tool, "t", Rule::always().handle(async |_| Ok(content("added"))));
    assert_eq!(say(&mut client).await, "added");
    assert!(server.engine().remove_rule(&id.expect("fits")));
    assert_eq!(say(&mut client).await, "from the file");
    let definitions = "tools: [{ name: t, handler: 1 }]";
    let error = MockServer::from_script(definitions).start().await.expect_err("a file has no functions").to_string();
    assert!(error.starts_with("<script>:1:20: a tool has no key `handler`"), "{error}");
    let handled = Rule::always().handle(async |_| Ok(content("x")));
    let error = MockServer::builder().resource(Resource::new("x:a").rule(handled)).start().await.expect_err("no tool");
    assert!(error.to_string().contains("only a tool can have a handler"), "{error}");
}
