//! Many requests at once on one connection, of both eras, with ids that are used again and cancellations in between.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use crate::engine::Engine;
use crate::journal::Journal;
use crate::script::Script;
use crate::serve::PipeEnd;
use crate::serve::serve_pipe;
use proptest::prelude::*;
use rehearse_document::Source;
use rehearse_protocol::Transport;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

/// Each answers with the number of the call.
const SCRIPT: &str = r#"
tools:
  - { name: now, reply: { text: "{{ args.n }}" } }
  - { name: soon, delay: 1ms, reply: { text: "{{ args.n }}" } }
  - { name: late, delay: 7ms, reply: { text: "{{ args.n }}" } }
  - name: reports
    steps:
      - { progress: { progress: 1 } }
      - { wait: 2ms }
      - { progress: { progress: 2 } }
      - { wait: 2ms }
      - { reply: { text: "{{ args.n }}" } }
"#;
const TOOLS: [&str; 4] = ["now", "soon", "late", "reports"];

#[derive(Debug, Clone)]
enum Move {
    Call { id: u8, tool: usize, modern: bool },
    Cancel(u8),
    Wait(u8),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        6 => (0..12u8, 0..TOOLS.len(), any::<bool>()).prop_map(|(id, tool, modern)| Move::Call { id, tool, modern }),
        1 => (0..12u8).prop_map(Move::Cancel),
        1 => (0..5u8).prop_map(Move::Wait),
    ];
    prop::collection::vec(one, 1..60)
}

fn call(id: u8, tool: &str, number: usize, modern: bool) -> Json {
    let mut params = json!({ "name": tool, "arguments": { "n": number }, "_meta": { "progressToken": number } });
    if modern {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// Everything that the server writes to its end.
async fn play(moves: &[Move]) -> Vec<Json> {
    let script = Script::parse(&Source::new("s", SCRIPT)).unwrap_or_else(|error| panic!("{error}"));
    let engine = Engine::new(script, 1, Journal::default());
    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(far);
    let patience = Duration::from_secs(60);
    let serving =
        tokio::spawn(serve_pipe(engine.clone(), Transport::Memory, reader, writer, CancellationToken::new(), patience));
    let (reader, mut writer) = tokio::io::split(near);
    let reading = tokio::spawn(async move {
        let (mut lines, mut frames) = (BufReader::new(reader).lines(), Vec::new());
        while let Some(line) = lines.next_line().await.expect("reads") {
            frames.push(serde_json::from_str::<Json>(&line).expect("JSON"));
        }
        frames
    });
    let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
    let mut frames = vec![json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": client })];
    for (number, it) in moves.iter().enumerate() {
        frames.push(match it {
            Move::Call { id, tool, modern } => call(*id, TOOLS[*tool], number, *modern),
            Move::Cancel(id) => {
                json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
            }
            Move::Wait(time) => {
                for frame in frames.drain(..) {
                    writer.write_all(format!("{frame}\n").as_bytes()).await.expect("writes");
                }
                tokio::time::sleep(Duration::from_millis((*time).into())).await;
                continue;
            }
        });
    }
    for frame in frames {
        writer.write_all(format!("{frame}\n").as_bytes()).await.expect("writes");
    }
    writer.shutdown().await.expect("closes");
    assert_eq!(serving.await.expect("no panic").expect("no error"), PipeEnd::Closed);
    assert_eq!(engine.in_flight(), 0);
    reading.await.expect("no panic")
}

proptest! {
    #![proptest_config(crate::tests::config(64))]

    #[test]
    fn every_request_is_answered_once_unless_it_was_cancelled(moves in moves()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let frames = runtime.expect("a runtime").block_on(play(&moves));
        prop_assert_eq!(&frames[0]["id"], "hello");
        let (mut answers, mut done, mut progress) = (HashMap::new(), HashSet::new(), HashMap::new());
        for frame in &frames[1..] {
            if frame["method"] == "notifications/progress" {
                let number = frame["params"]["progressToken"].as_u64().expect("a token");
                prop_assert!(!done.contains(&number), "progress after the answer: {}", frame);
                let now = frame["params"]["progress"].as_u64().expect("a number");
                prop_assert!(progress.insert(number, now) < Some(now), "{}", frame);
                continue;
            }
            let id = u8::try_from(frame["id"].as_u64().expect("an id")).expect("one of ours");
            *answers.entry(id).or_insert(0) += 1;
            if let Some(text) = frame["result"]["content"][0]["text"].as_str() {
                let number: u64 = text.parse().expect("a number");
                prop_assert!(done.insert(number), "answered twice: {}", frame);
                let Move::Call { id: asked, .. } = moves[usize::try_from(number).expect("small")] else {
                    return Err(TestCaseError::fail("an answer without a request"));
                };
                prop_assert_eq!(asked, id);
            } else {
                prop_assert_eq!(&frame["error"]["code"], -32_600, "the id is in use");
            }
        }
        for id in 0..12 {
            let asked = moves.iter().filter(|it| matches!(it, Move::Call { id: it, .. } if *it == id)).count();
            let cancelled = moves.iter().filter(|it| matches!(it, Move::Cancel(it) if *it == id)).count();
            let answered = answers.get(&id).copied().unwrap_or(0);
            let few = asked.saturating_sub(cancelled);
            prop_assert!((few..=asked).contains(&answered), "{} of {} with id {}", answered, asked, id);
        }
    }
}
