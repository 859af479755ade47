//! Benchmarks of mocks, over every transport and in both eras.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{BenchCall, BenchOptions, BenchTarget, Extent, Threshold, bench_calls, bench_discovery, find_max_rate};
use rehearse_client::{Endpoint, ServerParams, Target, ToolPermission};
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer},
};
use rehearse_protocol::{List, Operation, Protocol, Transport, Version};
use rehearse_report::{
    Shard,
    bench::{Measure, TargetResult},
};
use tokio::test;

async fn start(script: &str) -> MockServer {
    let source = rehearse_document::Source::new("script.yaml", script);
    let script = Script::parse(&source).unwrap_or_else(|error| panic!("{error}"));
    let engine: Arc<Engine> = Engine::new(script, 1, Journal::default());
    MockServer::start(engine, ListenOptions::default()).await.expect("a free port")
}

fn target(server: &MockServer, transport: Transport) -> BenchTarget {
    let at = Endpoint { url: server.url(transport).unwrap_or_default(), headers: Vec::new() };
    let target = match transport {
        Transport::Sse => Target::Sse(at),
        Transport::Ws => Target::Ws(at),
        _ => Target::Http(at),
    };
    BenchTarget {
        name: "mock".to_owned(),
        described: "mock".to_owned(),
        params: ServerParams::new("mock", target),
        sink: None,
    }
}

/// Without a warm-up, with all tools.
fn options(requests: u64) -> BenchOptions {
    BenchOptions {
        extent: Extent::Requests(requests),
        warmup: Duration::ZERO,
        tools: ToolPermission { allowed: vec!["*".to_owned()], ..ToolPermission::default() },
        ..BenchOptions::default()
    }
}

async fn measured(server: &MockServer, calls: &[BenchCall], options: &BenchOptions) -> TargetResult {
    let run = bench_calls(&[target(server, Transport::Http)], calls, options).await;
    let result = run.targets.into_iter().next().expect("one target");
    assert_eq!(result.error, None);
    result
}

async fn of_tool(server: &MockServer, options: &BenchOptions) -> Measure {
    measured(server, &[], options).await.measures.swap_remove(0)
}

const ECHO: &str = r#"
tools:
  - name: echo
    annotations: { readOnlyHint: true }
    inputSchema: { type: object, properties: { text: { type: string } }, required: [text] }
    reply: "{{ args.text }}"
  - { name: delete, reply: gone }
resources: [{ uri: "a://b", name: b, reply: text }]
prompts: [{ name: greet, messages: [{ role: user, content: hi }] }]
"#;

#[test(flavor = "multi_thread")]
async fn every_subject_is_measured_over_every_transport_and_in_every_era() {
    let server = start(ECHO).await;
    for transport in [Transport::Http, Transport::Sse, Transport::Ws] {
        for version in [Version::LATEST_LEGACY, Version::LATEST].into_iter().filter(|it| transport.carries(*it)) {
            let mut requests = vec![
                Operation::call("echo", None),
                Operation::read("a://b"),
                Operation::get("greet", None),
                Operation::list(List::Tools),
            ];
            if version == Version::LATEST_LEGACY {
                requests.push(Operation::ping());
            }
            let calls: Vec<_> = requests.into_iter().map(|request| BenchCall { request, weight: 1 }).collect();
            let options = BenchOptions {
                connections: 2,
                in_flight: 3,
                protocol: Protocol::Exact(version),
                ..options(20 * calls.len() as u64)
            };
            let run = bench_calls(&[target(&server, transport)], &calls, &options).await;
            let result = &run.targets[0];
            assert_eq!((&result.error, result.version), (&None, Some(version)), "{transport}/{version}");
            for measure in &result.measures {
                let at = format!("{transport}/{version} {}: {:?}", measure.name, measure.errors);
                assert_eq!((measure.latency.count(), measure.failed(), measure.slices.len()), (20, 0, 10), "{at}");
                assert!(measure.latency.max() < Duration::from_secs(10), "{at}");
            }
        }
    }
}

#[test(flavor = "multi_thread")]
async fn a_tool_is_called_only_if_that_is_allowed() {
    let server = start(ECHO).await;
    let careful = BenchOptions { tools: ToolPermission::default(), ..options(10) };
    let result = measured(&server, &[], &careful).await;
    assert_eq!(result.measures.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["call echo"]);
    let delete = BenchCall { request: Operation::call("delete", None), weight: 1 };
    let refused = bench_calls(&[target(&server, Transport::Http)], &[delete], &careful).await;
    let error = refused.targets[0].error.as_deref().unwrap_or_default();
    assert!(error.contains("allow it with --allow-tool delete"), "{error}");
}

#[test(flavor = "multi_thread")]
async fn answers_that_are_none_have_no_latency() {
    let wrong = [
        ("tools: [{ name: x, reply: { error: no } }]", "isError"),
        ("tools: [{ name: x, reply: { rpcError: { code: -32000, message: no } } }]", "error -32000"),
        (
            "tools: [{ name: x, reply: a }]\nfaults: [{ on: { tool: x }, do: { wrong_id: other } }]",
            "an answer with another id",
        ),
        ("tools: [{ name: x, reply: a }]\nfaults: [{ on: { tool: x }, do: { status: 503 } }]", "HTTP 503"),
        ("tools: [{ name: x, reply: a }]\nfaults: [{ on: { tool: x }, do: reset }]", "connection reset"),
        ("tools: [{ name: x, reply: a }]\nfaults: [{ on: { tool: x }, do: hang }]", "no answer in time"),
    ];
    for (script, error) in wrong {
        let options = BenchOptions { timeout: Duration::from_millis(100), ..options(10) };
        let measure = of_tool(&start(script).await, &options).await;
        assert_eq!(measure.latency.count(), 0, "{script}");
        // Wine closes a connection that is to be reset.
        let found =
            measure.errors.get(error).or(measure.errors.get("the connection was closed").filter(|_| cfg!(windows)));
        assert_eq!(found, Some(&10), "{script}: {:?}", measure.errors);
        assert!((measure.error_share() - 1.0).abs() < 1e-9);
    }
}

#[test(flavor = "multi_thread")]
async fn a_server_that_refuses_with_429_is_left_alone_for_a_while() {
    let script = "tools: [{ name: x, reply: a }]\nfaults: [{ on: { tool: x, call: 3 }, do: { status: 429 } }]";
    let measure = of_tool(&start(script).await, &options(10)).await;
    assert_eq!((measure.throttled, measure.failed(), measure.latency.count()), (1, 0, 9));
    // The pause is a second without `Retry-After`, and is not part of a latency.
    assert!(measure.seconds > 1.0 && measure.latency.max() < Duration::from_secs(1));
}

#[test(flavor = "multi_thread")]
async fn as_many_requests_are_sent_as_asked_for_and_tools_take_turns() {
    let server = start(ECHO).await;
    for (requests, counts) in [(1, [1, 0]), (7, [4, 3]), (25, [13, 12])] {
        let result = measured(&server, &[], &options(requests)).await;
        assert_eq!(result.measures.iter().map(Measure::requests).collect::<Vec<_>>(), counts);
    }
}

#[test(flavor = "multi_thread")]
async fn no_more_is_sent_than_allowed() {
    let server = start(ECHO).await;
    let options = BenchOptions { max_total: Some(25), connections: 4, ..options(1_000) };
    let result = measured(&server, &[], &options).await;
    assert_eq!(result.measures.iter().map(Measure::requests).sum::<u64>(), 25);
}

/// One request of 200 makes the server stall for half a second. While it stalls, a closed loop sends nothing, and does not
/// see that all others would have waited.
#[test(flavor = "multi_thread")]
async fn an_open_loop_reports_the_stall_that_a_closed_loop_hides() {
    let script =
        "tools: [{ name: x, rules: [{ when: { call: { every: 200 } }, delay: 500ms, reply: a }, { reply: a }] }]";
    let closed = of_tool(&start(script).await, &options(400)).await;
    let open = of_tool(&start(script).await, &BenchOptions { rate: Some(400.0), ..options(400) }).await;
    assert_eq!((closed.latency.count(), open.latency.count()), (400, 400));
    let p75 = |measure: &Measure| measure.latency.percentile(75.0);
    assert!(p75(&open) > Duration::from_millis(100), "{:?}", p75(&open));
    assert!(p75(&closed) * 4 < p75(&open), "{:?} and {:?}", p75(&closed), p75(&open));
    assert!(open.late > 50 && closed.late == 0, "{} late", open.late);
}

#[test(flavor = "multi_thread")]
async fn the_machines_of_a_load_send_what_one_would() {
    let server = start("tools: [{ name: x, reply: a }]").await;
    let whole = BenchOptions { rate: Some(100.0), connections: 4, max_total: Some(20), ..options(7) };
    let shares = |whole: &BenchOptions| {
        let shards = (1..=3).filter_map(|index| Shard::new(index, 3));
        shards.map(|shard| whole.clone().share(shard).expect("enough for three")).collect::<Vec<_>>()
    };
    let divided = shares(&whole).into_iter().map(|it| (it.connections, it.extent, it.max_total));
    let requests = |connections, requests, most| (connections, Extent::Requests(requests), Some(most));
    assert_eq!(divided.collect::<Vec<_>>(), [requests(2, 3, 7), requests(1, 2, 7), requests(1, 2, 6)]);
    // Ten requests are due in a tenth of a second: the first of each machine after 0, 10 and 20 ms, the others 30 ms later.
    let whole = BenchOptions { extent: Extent::Duration(Duration::from_millis(100)), ..whole };
    let mut sent = Vec::new();
    for share in shares(&whole) {
        sent.push(of_tool(&server, &share).await.latency.count());
    }
    assert_eq!(sent, [4, 3, 3]);
    let few = BenchOptions { connections: 2, ..options(7) }.share(Shard { index: 1, count: 3 });
    let error = "--connections 2 is too little for 3 parts: each needs at least one";
    assert_eq!(few.map(|_| ()).map_err(|error| error.to_string()), Err(error.to_owned()));
}

#[test(flavor = "multi_thread")]
async fn a_machine_begins_when_the_others_do() {
    let server = start("tools: [{ name: x, reply: a }]").await;
    let begun = async |start_at: SystemTime| {
        let options = BenchOptions { start_at: Some(start_at), ..options(1) };
        let options = options.share(Shard { index: 1, count: 1 }).expect("one part");
        let run = bench_calls(&[target(&server, Transport::Http)], &[], &options).await;
        (run.shard.and_then(|shard| shard.began_at_ms).expect("a measurement"), run.warnings.join(" "))
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970");
    let soon = now.as_millis() as u64 + 300;
    assert!(begun(SystemTime::UNIX_EPOCH + Duration::from_millis(soon)).await.0 >= soon);
    let (_, warnings) = begun(SystemTime::now() - Duration::from_secs(10)).await;
    assert!(
        warnings.starts_with("part 1 of 1: it began to measure 10.") && warnings.contains(" after --start-at"),
        "{warnings}"
    );
}

/// A server that needs 20 ms for each request, one at a time, cannot answer 50 in a second.
#[test(flavor = "multi_thread")]
async fn the_highest_rate_is_below_what_the_server_can_answer() {
    let server = start("tools: [{ name: x, delay: 20ms, reply: a }]").await;
    let condition: Threshold = "p99 < 5s".parse().expect("a condition");
    let options = BenchOptions { extent: Extent::Duration(Duration::from_millis(500)), ..options(1) };
    let run = find_max_rate(&[target(&server, Transport::Http)], &[], &condition, &options).await;
    let result = &run.targets[0];
    let rate = result.max_rate.expect("a rate");
    assert!((10.0..52.0).contains(&rate), "{rate}");
    assert!(result.steps.iter().any(|step| !step.holds) && result.steps[0].holds);
}

#[test(flavor = "multi_thread")]
async fn a_discovery_has_all_pages_and_several_servers_are_discovered_at_once() {
    let server = start("pageSize: 2\ntools: [{ name: \"x{{ n }}\", repeat: 5, reply: a }]").await;
    let mut targets = [target(&server, Transport::Http), target(&server, Transport::Ws)];
    targets[1].name = "other".to_owned();
    let run = bench_discovery(&targets, &options(12)).await;
    let names: Vec<_> = run.targets.iter().map(|target| &*target.name).collect();
    assert_eq!(names, ["mock", "other", "all servers"]);
    for result in &run.targets {
        assert_eq!(result.error, None);
        for measure in &result.measures {
            assert_eq!((measure.latency.count(), measure.failed()), (12, 0), "{}: {:?}", measure.name, measure.errors);
        }
    }
    let [cold, warm] = &*run.targets[0].measures else { panic!("two measures") };
    assert_eq!((&*cold.name, &*warm.name, cold.slices.len()), ("connect and list", "list again", 6));
}

#[test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_reached_is_an_error_of_its_result() {
    let unreachable = Target::http("http://127.0.0.1:9/mcp");
    let params = ServerParams::new("gone", unreachable);
    let gone = BenchTarget { name: "gone".to_owned(), described: "gone".to_owned(), params, sink: None };
    let server = start(ECHO).await;
    let run = bench_calls(&[gone, target(&server, Transport::Http)], &[], &options(20)).await;
    assert!(run.targets[0].error.is_some() && run.targets[0].measures.is_empty());
    assert_eq!(run.targets[1].error, None);
    assert_eq!(run.targets[1].measures.iter().map(Measure::requests).sum::<u64>(), 20);
}
