use super::*;

fn cancel(id: i64) -> String {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }).to_string()
}

/// The output after these frames, on each transport that has one connection for all messages.
async fn on_shared_connections(faults: &str, frames: impl Fn(&str) -> Vec<String>) -> [String; 3] {
    let engine = || engine(faults);
    [
        stdio(engine(), &frames(MODERN)).await,
        sse(engine(), &frames("2024-11-05")).await,
        ws(engine(), &frames(MODERN)).await,
    ]
}

#[tokio::test]
async fn an_answer_may_come_although_it_was_cancelled() {
    let cancelled = |version: &str| vec![call(version, 1, "late"), cancel(1), call(version, 2, "now")];
    let faults = |chain: &str| format!("  - {{ on: {{ call: 1, tool: late }}, do: [{chain}] }}");
    let (delayed, ignoring) = (faults("{ delay: 10s }"), faults("{ delay: 20ms }, after_cancel"));
    assert_eq!(
        on_shared_connections(&delayed, cancelled).await,
        ["R2/", "data: R2//", "[text]R2 [close 1001]"],
        "it is conformant without the fault"
    );
    assert_eq!(
        on_shared_connections(&ignoring, cancelled).await,
        ["R2/N/R1/", "data: R2//data: N//data: R1//", "[text]R2 [text]N [text]R1 [close 1001]"]
    );
    let frames = [call("2025-11-25", 1, "late"), cancel(1)];
    let primed = "200 event-stream: id: 0-0/data: //";
    assert_eq!(session(engine(&delayed), &frames).await, "200 event-stream: ");
    assert_eq!(session(engine(&ignoring), &frames).await, format!("{primed}id: 0-1/data: N//id: 0-2/data: R1//"));
}

#[tokio::test]
async fn an_answer_may_come_after_the_next_one_or_when_its_time_is_up() {
    let faults = "  - { on: { call: 1, method: tools/call }, do: { reorder: after_next } }";
    let calls = |version: &str| vec![call(version, 1, "now"), call(version, 2, "late")];
    assert_eq!(
        on_shared_connections(faults, calls).await,
        ["N/R2/R1/", "data: N//data: R2//data: R1//", "[text]N [text]R2 [text]R1 [close 1001]"]
    );
    let alone = |version: &str| vec![call(version, 1, "now")];
    let limited = "  - { on: { method: tools/call }, do: { reorder: { response: after_next, limit: 2ms } } }";
    assert_eq!(on_shared_connections(limited, alone).await, ["R1/", "data: R1//", "[text]R1 [close 1001]"]);
}

#[tokio::test]
async fn over_http_an_answer_waits_for_one_on_another_connection() {
    let server = start(engine("  - { on: { call: 1, method: tools/call }, do: { reorder: after_next } }")).await;
    let mut streams = Vec::new();
    for received in 1..=2 {
        let mut stream = connect(&server).await;
        stream.write_all(modern_post("now").as_bytes()).await.expect("writes");
        streams.push(stream);
        journalled(&server, received).await;
    }
    let [first, second] = &mut streams[..] else { panic!("two streams") };
    let mut order = Vec::new();
    let (mut ahead, mut behind) = ([0], [0]);
    while order.len() < 2 {
        tokio::select! {
            biased;
            read = first.read_exact(&mut behind), if !order.contains(&1) => order.extend(read.map(|_| 1)),
            read = second.read_exact(&mut ahead), if !order.contains(&2) => order.extend(read.map(|_| 2)),
        }
    }
    assert_eq!(order, [2, 1]);
}

#[tokio::test]
async fn a_client_that_resumes_a_stream_gets_what_was_cut_off() {
    let server = start(on_call("{ close: { after: 9 } }")).await;
    let (mut stream, id) = open_session(&server, "2025-11-25").await;
    let session = ("mcp-session-id", id.as_str());
    stream.write_all(post("/mcp", &[session], &call("2025-11-25", 1, "late")).as_bytes()).await.expect("writes");
    let broken = read_until(&mut stream, "0\r\n\r\n").await;
    assert!(response(&broken, "end").ends_with(r#"data: N//id: 0-2/data: {"jsonrpc"#));
    let get = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nmcp-session-id: {id}\r\nLast-Event-ID: 0-1\r\n\r\n"
    );
    stream.write_all(get.as_bytes()).await.expect("writes");
    let resumed = read_until(&mut stream, "0\r\n\r\n").await;
    assert_eq!(response(&resumed, "end"), "200 event-stream: id: 0-2/data: R1//");
    in_time(server.stop(PATIENCE)).await;
}

#[tokio::test]
async fn a_hanging_answer_holds_up_no_other_and_can_be_cancelled() {
    let faults = "  - { on: { call: 1, method: tools/call }, do: hang }";
    let frames =
        |version: &str| vec![call(version, 1, "now"), call(version, 2, "now"), cancel(1), call(version, 1, "now")];
    // Immediate answers are sent in the order of the requests, but a cancelled one frees its id when its task has
    // ended.
    let [stdio, sse, ws] = on_shared_connections(faults, frames).await;
    for seen in [stdio, sse, ws] {
        assert!(seen.contains("R2") && !seen.contains("error"), "{seen}");
        assert_eq!(seen.matches("R1").count(), 1, "{seen}");
    }
}

#[tokio::test]
async fn a_hang_inside_a_line_blocks_all_later_frames() {
    let (near, far) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(far);
    let engine = engine("  - { on: { call: 1, method: tools/call }, do: { hang: { after: 9 } } }");
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve_pipe(engine, Transport::Stdio, reader, writer, stop, PATIENCE));
    let (mut reader, mut writer) = tokio::io::split(near);
    writer.write_all((call(MODERN, 1, "now") + "\n").as_bytes()).await.expect("writes");
    in_time(reader.read_exact(&mut [0; 9])).await.expect("reads");
    writer.write_all((call(MODERN, 2, "now") + "\n").as_bytes()).await.expect("writes");
    writer.shutdown().await.expect("closes");
    assert_eq!(read_all(&mut reader).await, (Vec::new(), "end"));
    assert_eq!(in_time(serving).await.expect("no panic").expect("no error"), PipeEnd::Closed);
}

#[tokio::test]
async fn the_form_of_an_answer_is_kept_where_it_can_be() {
    let engine = |form: &str, fault: &str| {
        let text =
            format!("server: {{ name: t }}\nhttp: {{ answers: {form} }}\ntools:{TOOLS}faults: [{{ do: {fault} }}]");
        let script = Script::parse(&Source::new("s", text)).unwrap_or_else(|error| panic!("{error}"));
        Engine::new(script, 1, Journal::default())
    };
    for (form, fault, tool, seen) in [
        ("json", "duplicate", "now", "200 json: R1/R1"),
        ("json", "{ noise: boo }", "late", "200 json: boo/R1"),
        ("json", "drop", "late", "200 json:"),
        ("json", "[duplicate, { close: { after: 9 } }]", "now", r#"200 json: {"jsonrpc~"#),
        ("sse", "{ delay: 1ms }", "now", "200 event-stream: data: R1//"),
        ("sse", "{ close: { after: 9 } }", "now", r#"200 event-stream: data: {"jsonrpc"#),
    ] {
        assert_eq!(http(engine(form, fault), tool).await.trim_end(), seen, "{form} {fault}");
    }
    let frames = [call("2025-11-25", 1, "now")];
    let seen = session(engine("sse", "{ truncate: { after: 9 } }"), &frames).await;
    assert_eq!(seen, r#"200 event-stream: id: 0-0/data: //id: 0-1/data: {"jsonrpc//"#);
}

#[tokio::test]
async fn what_comes_before_a_pause_is_sent_before_it() {
    let server = start(engine("  - { do: { noise: { text: boo, pause: 1m } } }")).await;
    let mut stream = connect(&server).await;
    stream.write_all(modern_post("now").as_bytes()).await.expect("writes");
    let mut seen = String::new();
    while !seen.contains("data: boo") {
        let mut bytes = [0; 1024];
        let length = in_time(stream.read(&mut bytes)).await.expect("reads");
        assert_ne!(length, 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..length]));
    }
    in_time(server.stop(Duration::ZERO)).await;
}

#[tokio::test]
async fn a_status_other_than_200_stays_with_a_json_answer() {
    let unknown = modern_post("now").replace("tools/call", "nopes/call");
    let server = start(engine("  - { do: { delay: 1ms } }")).await;
    let mut stream = connect(&server).await;
    let seen = exchange(&mut stream, &unknown).await;
    assert!(seen.starts_with("HTTP/1.1 404 ") && seen.contains("-32601"), "{seen}");
    in_time(server.stop(PATIENCE)).await;
}

#[tokio::test]
async fn an_id_is_free_again_when_the_client_has_gone_before_the_answer() {
    let server = start(engine("  - { on: { call: 1, method: tools/call }, do: hang }")).await;
    let (mut stream, id) = open_session(&server, "2025-11-25").await;
    let call = post("/mcp", &[("mcp-session-id", &id)], &call("2025-11-25", 1, "now"));
    stream.write_all(call.as_bytes()).await.expect("writes");
    journalled(&server, 2).await;
    drop(stream);
    let answered = async { while !exchange(&mut connect(&server).await, &call).await.ends_with(r#"{"r":1}}"#) {} };
    in_time(answered).await;
    in_time(server.stop(PATIENCE)).await;
}

#[tokio::test]
async fn a_challenge_stays_with_a_faulty_answer() {
    let text = "auth: { tokens: [{ token: good, scopes: [a] }] }\ntools: [{ name: now, scopes: [b], reply: x }]\nfaults: [{ do: { delay: 1ms } }]";
    let script = Script::parse(&Source::new("s", text)).unwrap_or_else(|error| panic!("{error}"));
    let server = start(Engine::new(script, 1, Journal::default())).await;
    let request = modern_post("now").replace("Host: localhost", "Host: localhost\r\nAuthorization: Bearer good");
    let seen = exchange(&mut connect(&server).await, &request).await;
    assert!(seen.starts_with("HTTP/1.1 403 ") && seen.contains("www-authenticate: Bearer error"), "{seen}");
    in_time(server.stop(PATIENCE)).await;
}

#[tokio::test]
async fn a_fault_can_hit_a_handshake_and_a_notification() {
    let faults = "  - { on: { method: initialize, call: 1 }, do: { status: 503 } }
  - { on: { method: notifications/initialized }, do: { status: { code: 500, text: oh } } }";
    let server = start(engine(faults)).await;
    let mut stream = connect(&server).await;
    let refused = exchange(&mut stream, &post("/mcp", &[], &initialize("2025-11-25"))).await;
    assert!(refused.starts_with("HTTP/1.1 503 ") && !refused.contains("mcp-session-id"), "{refused}");
    let (mut stream, id) = open_session(&server, "2025-11-25").await;
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let seen = exchange(&mut stream, &post("/mcp", &[("mcp-session-id", &id)], &initialized)).await;
    assert!(seen.starts_with("HTTP/1.1 500 ") && seen.ends_with("\r\n\r\noh"), "{seen}");
    in_time(server.stop(PATIENCE)).await;
    let hanging = "  - { on: { method: notifications/initialized }, do: [hang] }";
    let frames = [initialized, call(MODERN, 1, "now")];
    assert_eq!(stdio(engine(hanging), &frames).await, "R1/", "what is not answered cannot hang");
}

#[tokio::test]
async fn a_fault_can_hit_a_subscription() {
    let text = "tools: [{ name: a, reply: x }]\ncapabilities: { tools: { listChanged: true } }\nfaults: [{ on: { method: subscriptions/listen }, do: FAULT }]";
    let listen = request(MODERN, 1, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let engine = |fault: &str| {
        let script = Script::parse(&Source::new("s", text.replace("FAULT", fault)));
        Engine::new(script.unwrap_or_else(|error| panic!("{error}")), 1, Journal::default())
    };
    let methods = |seen: &str| seen.matches("\"method\"").count();
    let plain = stdio(engine("{ delay: 1ms }"), std::slice::from_ref(&listen)).await;
    // The acknowledgement, and the announcement of the end.
    assert!(methods(&plain) == 2 && plain.contains("\"result\""), "{plain}");
    let lost = stdio(engine("{ drop: notifications }"), std::slice::from_ref(&listen)).await;
    assert!(methods(&lost) == 0 && lost.contains("\"result\""), "{lost}");
    assert_eq!(stdio(engine("{ exit: 9 }"), std::slice::from_ref(&listen)).await, " Exited(9)");
    assert_eq!(ws(engine("{ close: { code: 4000 } }"), &[listen]).await, "[close 4000]");
}

#[tokio::test]
async fn faults_hit_the_answers_of_a_batch_one_by_one() {
    let server = start(engine("  - { on: { tool: late }, do: duplicate }")).await;
    let (mut stream, id) = open_session(&server, "2025-03-26").await;
    let batch = format!("[{},{}]", call("2025-03-26", 1, "late"), call("2025-03-26", 2, "now"));
    stream.write_all(post("/mcp", &[("mcp-session-id", &id)], &batch).as_bytes()).await.expect("writes");
    let seen = response(&read_until(&mut stream, "0\r\n\r\n").await, "end");
    let data: Vec<_> = seen.split("data: ").skip(1).map(|it| it.split('/').next().unwrap_or_default()).collect();
    assert_eq!(data, ["R2", "N", "R1", "R1"]);
    in_time(server.stop(PATIENCE)).await;
}

#[tokio::test]
async fn everything_before_the_break_has_been_sent_however_much_it_is() {
    const LARGE: usize = 6_000_000;
    for tool in ["now", "late"] {
        let faults = format!("[{{ oversize: 9MB }}, {{ exit: {{ code: 3, after: {LARGE} }} }}]");
        let server = start(on_call(&faults)).await;
        let mut stream = connect(&server).await;
        stream.write_all(modern_post(tool).as_bytes()).await.expect("writes");
        let (bytes, end) = read_all(&mut stream).await;
        let spaces = bytes.iter().filter(|byte| **byte == b' ').count();
        assert_eq!((end, (LARGE - 100..LARGE).contains(&spaces)), ("end", true), "{spaces}");
        assert_eq!(in_time(server.wait_exit()).await, 3);
        assert!(TcpStream::connect(server.address()).await.is_err(), "nothing listens any more");
    }
}

#[tokio::test]
async fn a_connection_that_dies_takes_all_others_along() {
    let server = start(engine("  - { on: { tool: now }, do: exit }\n  - { on: { tool: late }, do: hang }")).await;
    let mut waiting = connect(&server).await;
    waiting.write_all(modern_post("late").as_bytes()).await.expect("writes");
    journalled(&server, 1).await;
    let mut stream = connect(&server).await;
    stream.write_all(modern_post("now").as_bytes()).await.expect("writes");
    let seen = tokio::join!(read_all(&mut stream), read_all(&mut waiting));
    assert_eq!(seen, ((Vec::new(), "end"), (Vec::new(), "end")));
    assert_eq!(in_time(server.wait_exit()).await, 1);
}

#[tokio::test(start_paused = true)]
async fn bytes_drip_in_their_time() {
    let (near, far) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(far);
    let engine = on_call("{ drip: { bytes: 10, every: 100ms } }");
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve_pipe(engine, Transport::Stdio, reader, writer, stop, PATIENCE));
    let (mut reader, mut writer) = tokio::io::split(near);
    writer.write_all((call(MODERN, 1, "now") + "\n").as_bytes()).await.expect("writes");
    let start = tokio::time::Instant::now();
    let (mut pieces, mut piece) = (Vec::new(), [0; 64]);
    while pieces.iter().map(|(_, length)| length).sum::<usize>() < r#"{"jsonrpc":"2.0","id":1,"result":{"r":1}}"#.len()
    {
        let length = reader.read(&mut piece).await.expect("reads");
        pieces.push((start.elapsed().as_millis(), length));
    }
    assert_eq!(
        pieces,
        [(0, 10), (101, 10), (202, 10), (303, 10), (404, 2)].map(|(at, length)| (at - at % 100, length))
    );
    writer.shutdown().await.expect("closes");
    serving.await.expect("no panic").expect("no error");
}

#[tokio::test]
async fn a_task_continues_although_its_first_answer_was_faulty() {
    let text = "tools: [{ name: now, steps: [{ task: {} }, { wait: 1ms }, { set: { done: true } }, { reply: x }] }]\nstate: { done: false }\nfaults: [{ on: { tool: now }, do: duplicate }]";
    let script = Script::parse(&Source::new("s", text)).unwrap_or_else(|error| panic!("{error}"));
    let engine = Engine::new(script, 1, Journal::default());
    let tasks = r#""clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let call = call(MODERN, 1, "now").replace(
        r#""io.modelcontextprotocol/clientCapabilities":{}"#,
        &format!("\"io.modelcontextprotocol/{}", &tasks[1..]),
    );
    let server = start(engine).await;
    let request =
        post("/mcp", &[("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "now")], &call);
    let mut stream = connect(&server).await;
    stream.write_all(request.as_bytes()).await.expect("writes");
    let seen = read_until(&mut stream, "0\r\n\r\n").await;
    assert_eq!(String::from_utf8_lossy(&seen).matches("taskId").count(), 2, "{}", String::from_utf8_lossy(&seen));
    let done = async {
        while server.engine().state().get()["done"] != true {
            tokio::task::yield_now().await;
        }
    };
    in_time(done).await;
    in_time(server.stop(PATIENCE)).await;
}
