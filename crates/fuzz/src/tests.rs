//! Whole runs against a server in memory; the clock stands still.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    time::{Instant, sleep},
};

use tokio_util::sync::CancellationToken;

use crate::{FuzzOptions, fuzz};
use rehearse_client::{ServerParams, Target};
use rehearse_protocol::{Protocol, Version};
use rehearse_report::fuzz::{FuzzResult, Oracle};

/// After so many calls the server, or the way to it, changes.
const USUAL: usize = 20;

/// How long the answer to a call takes: by the number of the call and by its arguments.
type Delay = fn(usize, &Json) -> Duration;

async fn serve(stream: DuplexStream, calls: Arc<AtomicUsize>, delay: Delay, tools: Json) -> Option<()> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await.ok()? {
        let asked: Json = serde_json::from_str(&line).ok()?;
        let result = match asked["method"].as_str()? {
            "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "slow", "version": "1" } }),
            "tools/list" => json!({ "tools": tools }),
            "tools/call" => {
                let number = calls.fetch_add(1, Ordering::Relaxed);
                sleep(delay(number, &asked["params"]["arguments"])).await;
                json!({ "content": [{ "type": "text", "text": "fine" }] })
            }
            _ => continue,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
        writer.write_all(format!("{answer}\n").as_bytes()).await.ok()?;
    }
    None
}

async fn run(delay: Delay, names: &[&str], options: FuzzOptions) -> FuzzResult {
    let tool = |name: &&str| {
        json!({ "name": name, "annotations": { "readOnlyHint": true, "destructiveHint": true },
            "inputSchema": { "type": "object", "properties": { "n": { "type": "integer", "minimum": 0, "maximum": 9 } } } })
    };
    let tools: Json = names.iter().map(tool).collect();
    let (address, mut listener) = rehearse_net::pipe::listen();
    let calls = Arc::new(AtomicUsize::new(0));
    let serving = tokio::spawn(async move {
        while let Some(stream) = listener.accept().await {
            tokio::spawn(serve(stream, calls.clone(), delay, tools.clone()));
        }
    });
    let options = FuzzOptions { protocol: Protocol::Exact(Version::V2025_11_25), ..options };
    let run = fuzz(&ServerParams::new("server", Target::Memory(address)), &options).await.expect("a server");
    serving.abort();
    run.result
}

/// The inputs of hangs.
async fn hangs(delay: Delay) -> Vec<Json> {
    let options = FuzzOptions { only: vec!["a".to_owned()], cases: Some(60), ..FuzzOptions::default() };
    let bugs = run(delay, &["a"], options).await.bugs.into_iter();
    bugs.filter(|bug| bug.oracle == Oracle::Hang).map(|bug| bug.arguments).collect()
}

#[tokio::test(start_paused = true)]
async fn a_way_that_becomes_slower_or_is_cut_is_no_hang_and_a_hang_is_one() {
    let slower: Delay = |number, _| match number.checked_sub(USUAL) {
        None => Duration::from_millis(5),
        Some(more) => Duration::from_secs(5 + 2 * more.min(20) as u64),
    };
    assert_eq!(hangs(slower).await, [Json::Null; 0]);
    // One call is answered between two times in which none is.
    let cut: Delay = |number, _| match number {
        ..USUAL => Duration::from_millis(5),
        _ if number == USUAL + 1 => Duration::from_millis(5),
        _ => Duration::from_hours(1),
    };
    assert_eq!(hangs(cut).await, [Json::Null; 0]);
    let hang: Delay = |_, input| if input["n"] == 9 { Duration::from_hours(1) } else { Duration::from_millis(5) };
    assert_eq!(hangs(hang).await, [json!({ "n": 9 })]);
}

#[tokio::test(start_paused = true)]
async fn each_tool_has_its_time_and_only_those_that_are_named_have_some() {
    let names = ["get_one", "get_two", "other"];
    let only = vec!["get_*".to_owned()];
    let options = FuzzOptions { only, max_time: Some(Duration::from_secs(5)), ..FuzzOptions::default() };
    let begun = Instant::now();
    let result = run(|_, _| Duration::from_secs(1), &names, options).await;
    let cases: Vec<_> = result.targets.iter().map(|it| (it.target.name.as_str(), it.cases)).collect();
    assert_eq!(cases, [("get_one", 5), ("get_two", 5)]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_time_is_for_as_many_tools_as_it_can_be() {
    let names: Vec<_> = (0..1_000).map(|number| format!("tool{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let options = FuzzOptions { budget: Duration::from_secs(10), ..FuzzOptions::default() };
    let mut result = run(|_, _| Duration::from_millis(50), &names, options).await;
    let tried = result.targets.iter().filter(|it| it.cases > 0).count();
    assert!((150..=200).contains(&tried), "{tried}");
    result.decide(false);
    assert_eq!(result.verdict, rehearse_report::Verdict::Incomplete);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_stopped_waits_for_no_answer() {
    let silent: Delay = |number, _| if number < USUAL { Duration::from_millis(5) } else { Duration::from_hours(1) };
    let hours = |count| Duration::from_hours(count);
    let stop = CancellationToken::new();
    let options =
        FuzzOptions { stop: stop.clone(), timeout: Some(hours(1)), budget: hours(2), ..FuzzOptions::default() };
    tokio::spawn(async move {
        sleep(Duration::from_secs(5)).await;
        stop.cancel();
    });
    let result = run(silent, &["a"], options).await;
    assert!(result.cases > USUAL && result.duration < Duration::from_secs(6), "{:?}", result.duration);
}
