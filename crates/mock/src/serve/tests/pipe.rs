//! Over a pipe.

use super::*;

struct Client {
    reader: tokio::io::Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
    writer: Option<tokio::io::WriteHalf<DuplexStream>>,
    serving: tokio::task::JoinHandle<io::Result<PipeEnd>>,
    stop: CancellationToken,
    engine: Arc<Engine>,
}

impl Client {
    fn open() -> Client {
        Client::with_grace(PATIENCE)
    }

    fn with_grace(grace: Duration) -> Client {
        Client::serving(SCRIPT, grace)
    }

    fn serving(script: &str, grace: Duration) -> Client {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (engine, stop) = (engine(script), CancellationToken::new());
        let (reader, writer) = tokio::io::split(far);
        let serving = tokio::spawn(serve_pipe(engine.clone(), Transport::Memory, reader, writer, stop.clone(), grace));
        let (reader, writer) = tokio::io::split(near);
        Client { reader: BufReader::new(reader).lines(), writer: Some(writer), serving, stop, engine }
    }

    async fn send(&mut self, frame: Json) {
        let writer = self.writer.as_mut().expect("open");
        writer.write_all(format!("{frame}\n").as_bytes()).await.expect("writes");
    }

    async fn next(&mut self) -> Option<Json> {
        let line = tokio::time::timeout(PATIENCE, self.reader.next_line()).await.expect("in time").expect("reads");
        line.map(|line| serde_json::from_str(&line).expect("JSON"))
    }

    async fn ended(self) -> PipeEnd {
        tokio::time::timeout(PATIENCE, self.serving).await.expect("in time").expect("no panic").expect("no error")
    }
}

#[tokio::test]
async fn answers_come_when_they_are_ready_and_the_end_of_input_waits_for_them() {
    let mut client = Client::open();
    client.send(initialize("2025-11-25")).await;
    client.send(call(1, "later")).await;
    client.send(call(2, "echo")).await;
    let mut writer = client.writer.take().expect("open");
    writer.shutdown().await.expect("closes");
    let ids = [client.next().await, client.next().await, client.next().await]
        .map(|reply| reply.expect("a reply")["id"].clone());
    assert_eq!(ids, [0, 2, 1]);
    assert_eq!(client.ended().await, PipeEnd::Closed);
}

#[tokio::test]
async fn a_cancelled_request_is_never_answered_and_its_id_can_be_used_again() {
    let mut client = Client::open();
    client.send(initialize("2025-11-25")).await;
    client.next().await;
    client.send(call(1, "never")).await;
    client.send(call(1, "never")).await;
    assert_eq!(client.next().await.expect("a refusal")["error"]["code"], -32600, "the id is in use");
    client.send(cancel(1)).await;
    client.send(cancel(99)).await;
    idle(&client.engine).await;
    client.send(call(1, "echo")).await;
    assert_eq!(client.next().await.expect("a reply")["result"]["content"][0]["text"], "hi");
}

#[tokio::test]
async fn stopping_lets_answers_finish_within_the_grace() {
    let mut client = Client::open();
    client.send(initialize("2025-11-25")).await;
    client.send(call(1, "later")).await;
    client.next().await;
    client.stop.cancel();
    assert_eq!(client.next().await.expect("a reply")["id"], 1);
    assert_eq!(client.ended().await, PipeEnd::Stopped);
}

#[tokio::test]
async fn unfinished_answers_are_cancelled_after_the_grace_period() {
    let mut client = Client::with_grace(Duration::ZERO);
    client.send(initialize("2025-11-25")).await;
    client.send(call(1, "never")).await;
    client.next().await;
    client.stop.cancel();
    assert_eq!(client.next().await, None);
    let engine = client.engine.clone();
    assert_eq!(client.ended().await, PipeEnd::Stopped);
    assert_eq!(engine.in_flight(), 0);
}

#[tokio::test]
async fn a_script_can_let_the_server_die_without_an_answer() {
    let mut client = Client::open();
    client.send(initialize("2025-11-25")).await;
    client.next().await;
    client.send(call(1, "dies")).await;
    assert_eq!(client.next().await, None);
    assert_eq!(client.ended().await, PipeEnd::Exited(3));
}

#[tokio::test]
async fn a_client_that_is_gone_ends_the_server_and_its_answers() {
    let mut client = Client::open();
    client.send(initialize("2025-11-25")).await;
    client.next().await;
    client.send(call(1, "later")).await;
    let Client { reader, writer, serving, engine, .. } = client;
    drop((reader, writer));
    assert_eq!(
        tokio::time::timeout(PATIENCE, serving).await.expect("in time").expect("no panic").expect("no error"),
        PipeEnd::Closed
    );
    idle(&engine).await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_input_waits_a_quarter_of_a_second() {
    let mut client = Client::open();
    client.send(initialize("2025-11-25")).await;
    client.next().await;
    client.send(call(1, "never")).await;
    client.send(call(2, "later")).await;
    client.writer.take().expect("open").shutdown().await.expect("closes");
    let closed = tokio::time::Instant::now();
    assert_eq!(client.next().await.expect("a reply")["id"], 2);
    assert_eq!(client.next().await, None);
    assert_eq!(client.ended().await, PipeEnd::Closed);
    assert_eq!(closed.elapsed().as_millis() / 10, 25);
}

#[tokio::test]
async fn the_end_of_input_waits_for_no_answer_of_the_client() {
    let script = "tools: [{ name: asks, steps: [{ roots: { as: a } }, { reply: x }] }, { name: late, steps: [{ wait: 5ms }, { roots: { as: a } }, { reply: x }] }]";
    let mut client = Client::serving(script, PATIENCE);
    let mut hello = initialize("2025-11-25");
    hello["params"]["capabilities"] = json!({ "roots": {} });
    let greeting = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    for frame in [hello, greeting, call(1, "asks"), call(2, "late")] {
        client.send(frame).await;
    }
    client.next().await;
    assert_eq!(client.next().await.expect("a question")["method"], "roots/list");
    client.writer.take().expect("open").shutdown().await.expect("closes");
    let mut replies = Vec::new();
    while let Some(frame) = client.next().await {
        replies.extend((frame.get("result").is_some()).then_some(frame));
    }
    // Both end at the same time.
    replies.sort_by_key(|reply| reply["id"].as_i64());
    let texts = replies.iter().map(|reply| json!([reply["id"], reply["result"]["content"][0]["text"]]));
    let why = "The client can no longer answer roots/list";
    assert_eq!(texts.collect::<Vec<_>>(), [json!([1, why]), json!([2, why])]);
    assert_eq!(client.ended().await, PipeEnd::Closed);
}
