//! Tasks and the connections on which they were begun.

use super::{client::Client, *};

const SCRIPT: &str = "
tools:
  - { name: job, steps: [{ task: {} }, { wait: 20ms }, { reply: done }] }
  - { name: asks, steps: [{ task: {} }, { roots: { as: r } }, { reply: done }] }
";

fn with_tasks(mut request: Json) -> Json {
    request = modern(request);
    let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
    request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "roots": {}, "extensions": extensions });
    request
}

/// The id of a task that was begun on a connection which is closed by now.
async fn begun_and_left(client: &Client, transport: Transport, tool: &str) -> String {
    let request = with_tasks(call(1, tool)).to_string();
    let reply = if transport == Transport::Ws {
        let mut socket = client.socket().await;
        socket.send(WsMessage::text(request)).await.expect("sends");
        let reply = socket.next().await.expect("a message").expect("well formed");
        socket.close(None).await.expect("closes");
        while socket.next().await.is_some_and(|message| message.is_ok()) {}
        reply.to_text().expect("text").to_owned()
    } else {
        let (reader, mut writer) = tokio::io::split(client.server.connect());
        writer.write_all(format!("{request}\n").as_bytes()).await.expect("writes");
        let mut lines = BufReader::new(reader).lines();
        let reply = lines.next_line().await.expect("reads").expect("a line");
        writer.shutdown().await.expect("closes");
        assert_eq!(lines.next_line().await.expect("reads"), None);
        reply
    };
    let reply: Json = serde_json::from_str(&reply).expect("JSON");
    reply["result"]["taskId"].as_str().unwrap_or_else(|| panic!("a task: {reply}")).to_owned()
}

#[tokio::test]
async fn a_task_outlives_the_connection_that_started_it() {
    for transport in [Transport::Ws, Transport::Memory] {
        let client = Client::open(SCRIPT).await;
        let ask = async |method: &str, mut params: Json, id: &str| -> Json {
            params["taskId"] = id.into();
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            let response = client.post_as_is(with_tasks(request), id).await;
            response.expect("a response").json().await.expect("JSON")
        };
        let ended = async |id: &str| {
            let mut task = ask("tasks/get", json!({}), id).await;
            while task["result"]["status"] == "working" {
                task = ask("tasks/get", json!({}), id).await;
            }
            task["result"]["status"].clone()
        };
        let job = begun_and_left(&client, transport, "job").await;
        let end = tokio::time::timeout(PATIENCE, ended(&job)).await.expect("it goes on");
        assert_eq!(end, "completed", "{transport}");
        let asks = begun_and_left(&client, transport, "asks").await;
        assert_eq!(ended(&asks).await, "input_required");
        ask("tasks/update", json!({ "inputResponses": { "r": { "roots": [] } } }), &asks).await;
        let end = tokio::time::timeout(PATIENCE, ended(&asks)).await.expect("it goes on");
        assert_eq!(end, "completed", "{transport}");
    }
}

#[tokio::test]
async fn a_task_on_the_only_connection_of_a_server_ends_with_it() {
    let engine = engine(SCRIPT);
    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(far);
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve_pipe(engine.clone(), Transport::Stdio, reader, writer, stop, PATIENCE));
    let (reader, mut writer) = tokio::io::split(near);
    writer.write_all(format!("{}\n", with_tasks(call(1, "asks"))).as_bytes()).await.expect("writes");
    let mut lines = BufReader::new(reader).lines();
    lines.next_line().await.expect("reads").expect("a line");
    writer.shutdown().await.expect("closes");
    assert_eq!(serving.await.expect("no panic").expect("no error"), PipeEnd::Closed);
    assert_eq!(engine.in_flight(), 0);
}

#[tokio::test]
async fn a_task_that_lets_the_server_die_ends_every_pipe_of_it() {
    let pipes = PipeServer::new(engine("tools: [{ name: dies, steps: [{ task: {} }, { wait: 1ms }, { exit: 3 }] }]"));
    let serve = |far: DuplexStream| {
        let (pipes, (reader, writer)) = (pipes.clone(), tokio::io::split(far));
        let serving = async move {
            pipes.serve(Transport::Memory, reader, writer, CancellationToken::new(), PATIENCE).await.expect("no error")
        };
        tokio::time::timeout(PATIENCE, serving)
    };
    let ((mut near, far), (_idle, other)) = (tokio::io::duplex(1 << 16), tokio::io::duplex(1 << 16));
    near.write_all(format!("{}\n", with_tasks(call(1, "dies"))).as_bytes()).await.expect("writes");
    let (first, second) = tokio::join!(serve(far), serve(other));
    assert_eq!((first.expect("in time"), second.expect("in time")), (PipeEnd::Exited(3), PipeEnd::Exited(3)));
}
