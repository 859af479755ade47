//! How long it takes until a client knows the tools of a server.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use rehearse_client::ServerParams;
use rehearse_protocol::{List, Operation, Version};
use rehearse_report::bench::{BenchResult, Load, Measure, ProcessUsage, Slice, TargetResult};
use serde_json::{Value, json};
use tokio::time::{error::Elapsed, timeout};

use crate::{
    BenchSink,
    connection::{Connection, NoAnswer, OpenError, Requester, result},
    options::{BenchOptions, BenchTarget, Extent},
    request::RequestTemplate,
    run::{SLICES, close, empty_result, empty_run},
    survey::survey,
};

/// The measure of a server that is not started or connected yet.
const COLD: &str = "connect and list";
/// The measure of an open session.
const WARM: &str = "list again";
/// The name of the result of all servers together.
const ALL: &str = "all servers";
/// How often a server is discovered, of an extent in seconds, at most.
const MOST_ROUNDS: u64 = 1_000_000;

/// A server that can be discovered.
struct Server<'t> {
    target: &'t BenchTarget,
    version: Version,
    cold: Samples,
    warm: Samples,
}

/// Measures the discovery of servers: from the start of the process or the connection to the last page of `tools/list`;
/// and the list once more on the open session. Of several servers also all one after the other, and all at once.
pub async fn bench_discovery(targets: &[BenchTarget], options: &BenchOptions) -> BenchResult {
    let mut run = empty_run(targets, Load::Discovery);
    let mut servers = Vec::new();
    for (target, result) in targets.iter().zip(&mut run.targets) {
        options.progress.begin(format!("{}: connecting", target.name));
        match survey(&target.params, options.protocol).await {
            Ok(survey) => {
                result.version = Some(survey.version);
                let (cold, warm) = (Samples::named(COLD), Samples::named(WARM));
                servers.push(Some(Server { target, version: survey.version, cold, warm }));
            }
            Err(error) => {
                result.error = Some(error.to_string());
                servers.push(None);
            }
        }
    }
    let is_several = servers.iter().flatten().count() > 1;
    let (mut in_turn, mut at_once) = (Samples::named("one after the other"), Samples::named("all at once"));
    let (rounds, limit) = match options.extent {
        Extent::Requests(rounds) => (rounds, None),
        Extent::Duration(limit) => (MOST_ROUNDS, Some(limit)),
    };
    let (begun, warmup) = (Instant::now(), u64::from(!options.warmup.is_zero()));
    for round in 0..rounds + warmup {
        if options.stop.is_cancelled() || limit.is_some_and(|limit| round > warmup && begun.elapsed() >= limit) {
            break;
        }
        options.progress.begin(format!("round {}", round + 1));
        let mut sum = Duration::ZERO;
        for (server, result) in servers.iter_mut().zip(&mut run.targets) {
            let Some(server) = server else { continue };
            let discovered = server.discover(options).await;
            options.progress.add_one();
            if round < warmup {
                continue;
            }
            sum += server.record(discovered, result);
        }
        if !is_several {
            continue;
        }
        let started = Instant::now();
        let all = join_all(servers.iter().flatten().map(|server| server.discover(options))).await;
        // Without the time in which processes end.
        let last = all.iter().flatten().map(|it| it.listed).max().unwrap_or(started);
        if round >= warmup && all.iter().all(Result::is_ok) {
            in_turn.times.push(sum);
            at_once.times.push(last - started);
        }
    }
    for (server, result) in servers.into_iter().zip(&mut run.targets) {
        let Some(Server { cold, warm, .. }) = server else { continue };
        result.measures = vec![cold.into_measure(), warm.into_measure()];
    }
    if let (true, Some(first)) = (is_several, targets.first()) {
        let all = TargetResult {
            name: ALL.to_owned(),
            target: format!("{} servers", targets.len()),
            measures: vec![in_turn.into_measure(), at_once.into_measure()],
            ..empty_result(first)
        };
        run.targets.push(all);
    }
    run.interrupted = options.stop.is_cancelled();
    run
}

/// Why a discovery has no times.
#[derive(Debug, thiserror::Error)]
enum DiscoveryError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    #[error("no answer in time")]
    Timeout(#[from] Elapsed),
    #[error("a list without `tools`")]
    NoTools,
    #[error("{0} tools, then {1}")]
    Changed(usize, usize),
}

/// One discovery.
struct Discovery {
    cold: Duration,
    warm: Duration,
    listed: Instant,
    process: Option<ProcessUsage>,
}

impl Server<'_> {
    async fn discover(&self, options: &BenchOptions) -> Result<Discovery, DiscoveryError> {
        let params: &ServerParams = &self.target.params;
        let begun = Instant::now();
        let connection = Connection::open(params, self.version).await?;
        let (mut requester, sink) = (connection.requester(), self.target.sink.as_ref());
        let listed = list(&mut requester, self.version, options.timeout, sink).await;
        let cold = begun.elapsed();
        let listed_at = Instant::now();
        let counts = match listed {
            Ok(first) => list(&mut requester, self.version, options.timeout, sink).await.map(|second| (first, second)),
            Err(error) => Err(error),
        };
        let warm = listed_at.elapsed();
        drop(requester);
        let process = close(vec![connection]).await;
        match counts? {
            (first, second) if first == second => Ok(Discovery { cold, warm, listed: listed_at, process }),
            (first, second) => Err(DiscoveryError::Changed(first, second)),
        }
    }

    /// Adds a discovery. Returns how long it took.
    fn record(&mut self, discovered: Result<Discovery, DiscoveryError>, result: &mut TargetResult) -> Duration {
        match discovered {
            Ok(Discovery { cold, warm, process, .. }) => {
                self.cold.times.push(cold);
                self.warm.times.push(warm);
                if let Some(process) = process {
                    let sum = result.process.get_or_insert_default();
                    sum.processes += process.processes;
                    sum.cpu_seconds += process.cpu_seconds;
                    sum.peak_memory = sum.peak_memory.max(process.peak_memory);
                }
                cold
            }
            Err(error) => {
                *self.cold.errors.entry(error.to_string()).or_default() += 1;
                Duration::ZERO
            }
        }
    }
}

/// Times before they become a measure.
struct Samples {
    name: &'static str,
    times: Vec<Duration>,
    errors: BTreeMap<String, u64>,
}

impl Samples {
    fn named(name: &'static str) -> Samples {
        Samples { name, times: Vec::new(), errors: BTreeMap::new() }
    }

    fn into_measure(self) -> Measure {
        let mut measure = Measure { errors: self.errors, ..Measure::named(self.name) };
        for times in self.times.chunks(self.times.len().div_ceil(SLICES).max(1)) {
            let mut slice = Slice { seconds: times.iter().sum::<Duration>().as_secs_f64(), ..Slice::default() };
            times.iter().for_each(|time| slice.latency.record(*time));
            measure.seconds += slice.seconds;
            measure.latency.merge(&slice.latency);
            measure.slices.push(slice);
        }
        measure
    }
}

/// Lists all pages of the tools. Returns how many tools there are.
async fn list(
    requester: &mut Requester,
    version: Version,
    limit: Duration,
    sink: Option<&BenchSink>,
) -> Result<usize, DiscoveryError> {
    let mut count = 0;
    let mut cursor = Value::Null;
    for page in 0.. {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let template = RequestTemplate::new(Operation::new(List::Tools.method(), params), version);
        let request = template.request(1_000 + page);
        let exchange = timeout(limit, requester.exchange(&request, sink)).await??;
        let listed = result(&exchange.reply)?;
        count += listed["tools"].as_array().ok_or(DiscoveryError::NoTools)?.len();
        match &listed["nextCursor"] {
            Value::String(next) if cursor != **next => cursor = next.clone().into(),
            _ => break,
        }
    }
    Ok(count)
}
