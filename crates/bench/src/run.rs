//! A benchmark of requests to one or more servers, in turns.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use rehearse_report::{
    Shard, Verdict,
    bench::{BenchResult, BenchShard, FORMAT, Latencies, Load, Measure, ProcessUsage, TargetResult, readable},
};
use rehearse_system::usage::{of_group, own_seconds};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    connection::Connection,
    load::{Loader, Measured},
    max_rate,
    operation::Mix,
    options::{BenchCall, BenchOptions, BenchTarget, Extent},
    survey::{SurveyError, survey},
    threshold::Threshold,
    usage::machine,
};

/// Into how many parts the time of each target is divided. In a closed loop targets take turns: A B A B.
pub(crate) const SLICES: usize = 10;
/// How much later than planned requests may become due, before the figures are doubtful.
const LAG: Duration = Duration::from_millis(1);
/// How much later than `start_at` a machine may begin, before the figures are doubtful.
const LATE_START: Duration = Duration::from_millis(100);
/// The share of all processors that this process may use.
const SHARE: f64 = 0.5;

/// A server that is ready to be measured.
struct Server {
    connections: Vec<Connection>,
    loader: Loader,
    measures: Vec<Measure>,
}

/// Measures requests: these, or calls of each tool that may be called. A server that cannot be measured has an error
/// in its result. The result is not judged yet.
pub async fn bench_calls(targets: &[BenchTarget], calls: &[BenchCall], options: &BenchOptions) -> BenchResult {
    let mut run = empty_run(targets, options.load());
    let mut servers = Vec::new();
    for (target, result) in targets.iter().zip(&mut run.targets) {
        servers.push(Box::pin(prepare(target, calls, options, result)).await);
    }
    if let (true, Some(start)) = (servers.iter().any(Option::is_some), options.start_at) {
        wait_until(start, &options.stop).await;
        let late = start.elapsed().ok().filter(|late| *late > LATE_START);
        run.warnings.extend(late.map(|late| format!("it began to measure {} after --start-at", readable(late))));
    }
    let began_at = servers.iter().flatten().next().map(|_| SystemTime::now());
    let mut lag = Latencies::default();
    let (begun, own) = (Instant::now(), own_seconds());
    let turns = if options.rate.is_some() { 1 } else { SLICES };
    for turn in 0..turns {
        for (server, target) in servers.iter_mut().zip(targets) {
            let Some(server) = server else { continue };
            if server.loader.is_over() {
                continue;
            }
            options.progress.begin(match turns {
                1 => target.name.clone(),
                _ => format!("{}, {} of {turns}", target.name, turn + 1),
            });
            let (extent, parts) = (options.extent.part(turn, turns), SLICES / turns);
            let Measured { measures, lag: later } = server.loader.run(extent, options.rate, parts).await;
            later.iter().for_each(|later| lag.merge(later));
            for (sum, measure) in server.measures.iter_mut().zip(&measures) {
                sum.merge(measure);
            }
        }
    }
    run.warnings.extend(saturation(begun, own, &lag));
    for (server, result) in servers.into_iter().zip(&mut run.targets) {
        let Some(Server { connections, loader, measures }) = server else { continue };
        result.measures = measures;
        drop(loader);
        result.process = close(connections).await;
    }
    if let Some((shard, _)) = options.shard {
        run.shard = Some(bench_shard(shard, began_at, &run.targets));
        run.warnings.iter_mut().for_each(|warning| *warning = format!("{shard}: {warning}"));
    }
    run.interrupted = options.stop.is_cancelled();
    run
}

/// The part that this machine was, and when it measured.
fn bench_shard(shard: Shard, began_at: Option<SystemTime>, targets: &[TargetResult]) -> BenchShard {
    let since = began_at.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let began_at_ms = since.and_then(|since| u64::try_from(since.as_millis()).ok());
    let seconds = targets.iter().flat_map(|target| &target.measures).map(|measure| measure.seconds).fold(0.0, f64::max);
    BenchShard { shard, began_at_ms, seconds }
}

/// Searches the highest rate at which a condition holds, for each target.
pub async fn find_max_rate(
    targets: &[BenchTarget],
    calls: &[BenchCall],
    condition: &Threshold,
    options: &BenchOptions,
) -> BenchResult {
    let mut run = empty_run(targets, options.load());
    for (target, result) in targets.iter().zip(&mut run.targets) {
        let Some(mut server) = Box::pin(prepare(target, calls, options, result)).await else { continue };
        let (begun, own) = (Instant::now(), own_seconds());
        let lag = max_rate::search(&target.name, &mut server.loader, condition, options, result).await;
        run.warnings.extend(saturation(begun, own, &lag).map(|warning| format!("{}: {warning}", target.name)));
        drop(server.loader);
        result.process = close(server.connections).await;
    }
    run.interrupted = options.stop.is_cancelled();
    run
}

pub(crate) fn empty_run(targets: &[BenchTarget], load: Load) -> BenchResult {
    BenchResult {
        format: FORMAT,
        started_at: String::new(),
        rehearse: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine(),
        load,
        shard: None,
        shards: Vec::new(),
        interrupted: false,
        targets: targets.iter().map(empty_result).collect(),
        thresholds: Vec::new(),
        comparisons: Vec::new(),
        warnings: Vec::new(),
        verdict: Verdict::default(),
    }
}

pub(crate) fn empty_result(target: &BenchTarget) -> TargetResult {
    TargetResult {
        name: target.name.clone(),
        target: target.described.clone(),
        transport: target.params.target.transport(),
        version: None,
        error: None,
        measures: Vec::new(),
        process: None,
        steps: Vec::new(),
        max_rate: None,
    }
}

/// Looks at a server, connects and warms up. Its result says why it cannot be measured.
async fn prepare(
    target: &BenchTarget,
    calls: &[BenchCall],
    options: &BenchOptions,
    result: &mut TargetResult,
) -> Option<Server> {
    options.progress.begin(format!("{}: connecting", target.name));
    let prepared = Box::pin(async {
        let survey = survey(&target.params, options.protocol).await?;
        result.version = Some(survey.version);
        let operations = survey.operations(calls, options)?;
        let mut connections = Vec::new();
        for _ in 0..options.connections {
            let opened = Connection::open(&target.params, survey.version).await;
            match opened {
                Ok(connection) => connections.push(connection),
                Err(error) => {
                    close(connections).await;
                    return Err(SurveyError::from(error));
                }
            }
        }
        Ok((connections, operations))
    });
    let (connections, operations) = match options.stop.run_until_cancelled(prepared).await? {
        Ok(prepared) => prepared,
        Err(error) => {
            result.error = Some(error.to_string());
            return None;
        }
    };
    let mix = Arc::new(Mix::new(operations));
    let measures = mix.operations.iter().map(|it| Measure::named(&it.title)).collect();
    let mut loader = Loader::new(&connections, mix, target.sink.clone(), options);
    if let Some(warmup) = options.start_at.and_then(|start| start.checked_sub(options.warmup)) {
        options.progress.begin(format!("{}: waiting", target.name));
        wait_until(warmup, &options.stop).await;
    }
    if !options.warmup.is_zero() {
        options.progress.begin(format!("{}: warming up", target.name));
        loader.run(Extent::Duration(options.warmup), options.rate, 1).await;
    }
    Some(Server { connections, loader, measures })
}

/// Waits for a time of this machine's clock.
async fn wait_until(time: SystemTime, stop: &CancellationToken) {
    if let Ok(rest) = time.duration_since(SystemTime::now()) {
        stop.run_until_cancelled(sleep(rest)).await;
    }
}

/// Ends the connections. Returns what their processes have used.
pub(crate) async fn close(connections: Vec<Connection>) -> Option<ProcessUsage> {
    let mut sum: Option<ProcessUsage> = None;
    for connection in connections {
        if let Some(usage) = connection.process().and_then(of_group) {
            let sum = sum.get_or_insert_default();
            sum.processes += 1;
            sum.cpu_seconds += usage.cpu_seconds;
            sum.peak_memory = sum.peak_memory.max(usage.peak_memory);
        }
        connection.close().await;
    }
    sum
}

/// Whether this process itself was the limit.
fn saturation(begun: Instant, own: Option<f64>, lag: &Latencies) -> Option<String> {
    let processors = std::thread::available_parallelism().map_or(1.0, |count| usize::from(count) as f64);
    let used = own_seconds().zip(own).map(|(after, before)| after - before);
    let share = used.map(|used| used / begun.elapsed().as_secs_f64() / processors);
    if lag.percentile(99.0) > LAG {
        let lag = readable(lag.percentile(99.0));
        return Some(format!("rehearse itself was late: it sent requests up to {lag} (p99) after their time"));
    }
    let share = share.filter(|share| *share > SHARE)?;
    Some(format!(
        "rehearse itself used {:.0} % of the machine's processors: the server may be faster than measured",
        100.0 * share
    ))
}
