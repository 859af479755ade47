//! `rehearse bench`: how fast servers are discovered and answer.

mod mix;
mod progress;

use std::{num::NonZeroUsize, path::PathBuf, time::Duration, time::SystemTime};

use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    Exit, Failure,
    job::{INTERRUPTED_AGAIN, Job},
    mcp::target::{
        Server, TargetsArgs,
        connection::{SessionArgs, duration, pause},
        print_no_servers,
    },
    process_guard::{block_on_guarded, program},
    report::OutputArgs,
    secrets::Secrets,
    shard,
    spans::{OtlpArgs, SpanExporter, random_trace},
    style,
    tool_permission_args::ToolPermissionArgs,
};
use rehearse_bench::{
    BenchCall, BenchOptions, BenchSink, BenchTarget, Extent, Threshold, bench_calls, bench_discovery, compare,
    find_max_rate, judge,
};
use rehearse_check::target_text;
use rehearse_client::{CommandSpec, ServerParams, Target};
use rehearse_document::text::utf8;
use rehearse_protocol::{List, Operation, Protocol, Transport, trace_file::ConnectionInfo};
use rehearse_report::{
    Layout, Shard,
    bench::{BenchResult, FORMAT, readable},
    summary::Results,
};

const EXAMPLES: &str = "\
Examples:
  rehearse bench discovery -- node server.js              from the start of the process to its tools
  rehearse bench call --http URL --tool search            one call after the other for 10 seconds
  rehearse bench call files --rate 200 --fail-if 'p99 > 50ms'
  rehearse bench call --http URL --find-max 'p99 < 50ms'  the highest rate that holds";

/// Measure how fast servers are discovered and answer
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(super) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    Discovery(Box<DiscoveryArgs>),
    Call(Box<CallArgs>),
}

const DISCOVERY_EXAMPLES: &str = "\
Examples:
  rehearse bench discovery -- node server.js
  rehearse bench discovery --mcp-config .mcp.json           each server, and all together
  rehearse bench discovery files --requests 50 --fail-if 'p90 > 800ms'
  rehearse bench discovery --stdio 'rehearse mock basic' --copies 20

A discovery begins with the start of the process or the connection, and ends with the last page of tools/list. \
Then the list is requested once more on the open session.";

/// Measure the time from the start of a server to the list of its tools
#[derive(Debug, Args)]
#[command(after_help = DISCOVERY_EXAMPLES)]
struct DiscoveryArgs {
    /// Discover this many copies of each server
    #[arg(long, value_name = "N", default_value = "1", hide_default_value = true)]
    copies: NonZeroUsize,
    #[command(flatten)]
    common: CommonArgs,
}

const CALL_EXAMPLES: &str = "\
Examples:
  rehearse bench call --http URL                              all tools with readOnlyHint in turn
  rehearse bench call files --tool read --tool-args 'read={\"path\": \"a.txt\"}' --in-flight 8
  rehearse bench call --http URL --rate 500 --duration 1m     500 per second, at fixed times
  rehearse bench call --http URL_A --http URL_B --tool echo   two servers in turns, compared
  rehearse bench call files --format json --output base.json
  rehearse bench call files --against base.json               exit code 1 if it has become slower
  rehearse bench call --http URL --find-max 'p99 < 50ms'
  rehearse bench call --http URL --rate 5000 --shard 2/5 --report part-2.json

Without --rate each request follows an answer (closed loop): while the server is slow, fewer are sent, and \
the latencies look better than those of users. With --rate requests are due at fixed times (open loop), and a \
latency begins when its request was due.

With --shard 2/5, this machine sends a fifth of the load, 1000 requests per second. `rehearse report` merges the \
results of all five.

Conditions are on p50, p99.9, mean, max, rate, errors and late: 'p99 > 50ms', 'errors > 0.1%'. With --against, \
`base` is the same figure of that result, and only conditions count: 'p95 > base*1.15'.

Exit codes:
  0  measured    1  a condition of --fail-if is true, or the server has become slower than --against
  2  wrong usage    3  a server cannot be measured; or interrupted    4  there are no servers";

/// Measure the latency of calls, resources, prompts and pings
#[derive(Debug, Args)]
#[command(after_help = "`--help` has examples and the conditions of --fail-if.", after_long_help = CALL_EXAMPLES)]
struct CallArgs {
    /// Call this tool (repeatable) [default: each tool with readOnlyHint]
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Read this resource (repeatable)
    #[arg(long = "resource", value_name = "URI", hide_short_help = true)]
    resources: Vec<String>,
    /// Get this prompt (repeatable)
    #[arg(long = "prompt", value_name = "NAME", hide_short_help = true)]
    prompts: Vec<String>,
    /// Request tools/list
    #[arg(long, hide_short_help = true)]
    list_tools: bool,
    /// Send pings (not in 2026-07-28)
    #[arg(long)]
    ping: bool,
    /// Send the calls of a scenario, each as often as the scenario has it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tools", "resources", "prompts", "ping", "list_tools"])]
    scenario: Option<PathBuf>,
    /// Connections or sessions to each server [default: 1, or one for each part of --shard]
    #[arg(long, value_name = "N")]
    connections: Option<NonZeroUsize>,
    /// Requests at once on each connection
    #[arg(long, value_name = "N", default_value = "1")]
    in_flight: NonZeroUsize,
    /// Requests per second to send, even if the server is slower
    #[arg(long, value_name = "N", value_parser = rate)]
    rate: Option<f64>,
    /// Raise the rate until this is false, in steps of --duration (2s)
    #[arg(long, value_name = "CONDITION", conflicts_with_all = ["requests", "fail_if", "against"])]
    find_max: Option<Threshold>,
    /// Send at most this many requests to each server
    #[arg(long, value_name = "N", hide_short_help = true)]
    max_total: Option<u64>,
    /// Send only the share of one of N machines that load one server together; `auto` asks the CI system
    #[arg(long, value_name = "I/N", value_parser = shard::parse, conflicts_with_all = ["find_max", "against"])]
    shard: Option<Shard>,
    /// Begin to measure at this time in UTC, such as 2026-11-27T14:00:00Z
    #[arg(long, value_name = "TIME", hide_short_help = true, requires = "shard", value_parser = future)]
    start_at: Option<SystemTime>,
    #[command(flatten)]
    permission: ToolPermissionArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// How long one request may take, unless the user says more.
const LONGEST_REQUEST: Duration = Duration::from_secs(10);

/// What both benchmarks have.
#[derive(Debug, Args)]
#[command(mut_arg("protocol", |it| it.hide_short_help(true)))]
#[command(mut_arg("timeout", |it| it.help("How long one request may take [default: 10s]").hide_short_help(true)))]
struct CommonArgs {
    /// Servers of a config [default: all enabled servers]
    #[arg(value_name = "SERVER")]
    servers: Vec<String>,
    /// Start a mock with this script as a server on stdio (repeatable)
    #[arg(long = "script", value_name = "SCRIPT", hide_short_help = true, conflicts_with_all = ["servers", "mcp_config", "config", "dialect"])]
    scripts: Vec<String>,
    /// How long to measure [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "requests")]
    duration: Option<Duration>,
    /// How many requests to each server, instead of a duration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// How long to send requests before measuring; `discovery` connects once instead
    #[arg(long, value_name = "DURATION", hide_short_help = true, value_parser = pause, default_value = "1s")]
    warmup: Duration,
    /// Fail if this is true of any measure (repeatable)
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Threshold>,
    /// Fail if a server is slower than in this result of --format json
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    otlp: OtlpArgs,
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    target: TargetsArgs,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= 1e6);
    rate.ok_or_else(|| "not a number of requests per second".to_owned())
}

/// A time that has not passed: what begins later than the other parts is not measured with them.
fn future(text: &str) -> Result<SystemTime, String> {
    let time = humantime::parse_rfc3339(text);
    let time = time.map_err(|_| "not a time in UTC, such as 2026-11-27T14:00:00Z".to_owned())?;
    let passed = time.elapsed().map(|passed| format!("it passed {} ago", readable(passed)));
    passed.map_or(Ok(time), Err)
}

pub(super) fn run(args: &BenchArgs) -> Result<Exit, Failure> {
    match &args.command {
        BenchCommand::Discovery(args) => args.run(),
        BenchCommand::Call(args) => args.run(),
    }
}

impl DiscoveryArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let options = self.common.options();
        self.common.measure(&options, async |targets| {
            let each = targets.iter().flat_map(|target| {
                let copies = self.copies.get();
                (1..=copies).map(move |number| match copies {
                    1 => target.clone(),
                    _ => BenchTarget { name: format!("{} {number}", target.name), ..target.clone() },
                })
            });
            bench_discovery(&each.collect::<Vec<_>>(), &options).await
        })
    }
}

impl CallArgs {
    fn run(&self) -> Result<Exit, Failure> {
        let calls = self.calls()?;
        let connections = self.connections.map(NonZeroUsize::get);
        let mut options = BenchOptions {
            connections: connections.or(self.shard.map(|shard| shard.count)).unwrap_or(1),
            in_flight: self.in_flight.get(),
            rate: self.rate,
            max_total: self.max_total,
            start_at: self.start_at,
            tools: self.permission.permission(),
            ..self.common.options()
        };
        if self.find_max.as_ref().is_some_and(Threshold::has_base) {
            return Err(Failure::Usage(
                "--find-max takes no condition with `base`: write a bound such as 50ms".to_owned(),
            ));
        }
        if self.find_max.is_some() && self.common.duration.is_none() {
            options.extent = Extent::Duration(Duration::from_secs(2));
        }
        if let Some(shard) = self.shard {
            options = options.share(shard).map_err(|error| Failure::Usage(error.to_string()))?;
        }
        self.common.measure(&options, async |targets| match &self.find_max {
            Some(condition) => find_max_rate(targets, &calls, condition, &options).await,
            None => bench_calls(targets, &calls, &options).await,
        })
    }

    /// What to send; nothing for each tool that may be called.
    ///
    /// # Errors
    /// The scenario has mistakes, or nothing that can be sent.
    fn calls(&self) -> Result<Vec<BenchCall>, Failure> {
        if let Some(path) = &self.scenario {
            return mix::read(path);
        }
        let permission = self.permission.permission();
        let tools = self
            .tools
            .iter()
            .map(|name| Operation::call(name, permission.given(name).and_then(Value::as_object).cloned()));
        let resources = self.resources.iter().map(|uri| Operation::read(uri));
        let prompts = self.prompts.iter().map(|name| Operation::get(name, Some(Map::new())));
        let lists = self.list_tools.then(|| Operation::list(List::Tools));
        let pings = self.ping.then(Operation::ping);
        let requests = tools.chain(resources).chain(prompts).chain(lists).chain(pings);
        Ok(requests.map(|request| BenchCall { request, weight: 1 }).collect())
    }
}

impl CommonArgs {
    fn options(&self) -> BenchOptions {
        let duration = self.duration.unwrap_or(Duration::from_secs(10));
        BenchOptions {
            protocol: self.session.protocol.unwrap_or(Protocol::Auto),
            extent: self.requests.map_or(Extent::Duration(duration), Extent::Requests),
            warmup: self.warmup,
            timeout: self.session.timeout.unwrap_or(LONGEST_REQUEST),
            ..BenchOptions::default()
        }
    }

    /// Measures the servers, judges and reports.
    ///
    /// # Errors
    /// A server or a file cannot be read, or the report cannot be written.
    fn measure(
        &self,
        options: &BenchOptions,
        bench: impl AsyncFnOnce(&[BenchTarget]) -> BenchResult,
    ) -> Result<Exit, Failure> {
        self.output.check()?;
        let base = self.against.as_deref().map(read_result).transpose()?;
        if let Some(condition) = self.fail_if.iter().find(|condition| condition.has_base() && base.is_none()) {
            let hint = "a former result of --format json";
            return Err(Failure::Usage(format!("--fail-if '{condition}' needs --against FILE, {hint}")));
        }
        let servers = match self.scripts.is_empty() {
            true => self.target.selected(&self.servers)?,
            false if self.target.is_described() => self.target.selected(&[])?,
            false => Vec::new(),
        };
        let mut targets: Vec<_> = servers.iter().map(|server| bench_target(server, &options.stop)).collect();
        targets.extend(self.mocks(&options.stop)?);
        if let Some(limit) = self.session.start_timeout {
            targets.iter_mut().for_each(|target| target.params.timeouts.connect = limit);
        }
        if targets.is_empty() {
            print_no_servers();
            return Ok(Exit::NothingSelected);
        }
        if options.shard.is_some() {
            self.check_shared(&targets)?;
        }
        name_apart(&mut targets);
        let secrets = servers.iter().fold(Secrets::default(), |all, server| all.merge(&server.resolved.secrets));
        let spans = self.otlp.exporter()?;
        for (target, spans) in targets.iter_mut().zip(spans.iter().cycle()) {
            let info = ConnectionInfo::new(&*target.name, target.params.target.transport());
            target.params.trace = Some(random_trace());
            target.sink = Some(BenchSink::new(spans.connection(&info, secrets.clone(), false)));
        }
        let started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let mut result = block_on_guarded(watched(options, bench(&targets)))?;
        drop(targets);
        spans.iter().for_each(SpanExporter::finish);
        result.started_at = started_at;
        compare(&mut result, base.as_ref().map(|(name, base)| (&**name, base)));
        judge(&self.fail_if, base.as_ref().map(|(_, base)| base), &mut result);
        let verdict = result.verdict;
        let results = Results { bench: Some(result), ..Results::default() };
        self.output.write(results, &Layout { width: style::width(), is_verbose: true, ..Layout::default() })?;
        Ok(verdict.into())
    }

    /// # Errors
    /// The machines of `--shard` would not load one server, or judge the whole load by their parts.
    fn check_shared(&self, targets: &[BenchTarget]) -> Result<(), Failure> {
        let wrong = match targets {
            _ if !self.fail_if.is_empty() => "--fail-if is about the whole load: give it to `rehearse report`",
            [target] if target.params.target.transport() == Transport::Stdio => {
                "--shard is for one server that all machines reach, and a command is another server on each of them"
            }
            [_] => return Ok(()),
            _ => "--shard is for one server: with several, the machines would not load the same one at the same time",
        };
        Err(Failure::Usage(wrong.to_owned()))
    }

    /// Mocks with the scripts that were asked for, as servers on stdio.
    fn mocks(&self, stop: &CancellationToken) -> Result<Vec<BenchTarget>, Failure> {
        let rehearse = program()?;
        let mock = |script: &String| {
            let command = CommandSpec {
                program: rehearse.display().to_string(),
                args: vec!["mock".to_owned(), script.clone()],
                ..CommandSpec::default()
            };
            let mut params = ServerParams::new(script, Target::Stdio(command));
            params.shutdown = stop.clone();
            BenchTarget { name: script.clone(), described: format!("rehearse mock {script}"), params, sink: None }
        };
        Ok(self.scripts.iter().map(mock).collect())
    }
}

/// The name of a file, and its result.
///
/// # Errors
/// It is not the result of a benchmark.
fn read_result(path: &std::path::Path) -> Result<(String, BenchResult), Failure> {
    let text = std::fs::read(path)
        .and_then(utf8)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
    let result: BenchResult = serde_json::from_str(&text).map_err(|error| {
        Failure::Usage(format!("{} is not a result of `rehearse bench --format json`: {error}", path.display()))
    })?;
    match result.format {
        FORMAT => Ok((path.display().to_string(), result)),
        other => Err(Failure::Usage(format!("{} has format {other}; this version reads {FORMAT}", path.display()))),
    }
}

fn bench_target(server: &Server, stop: &CancellationToken) -> BenchTarget {
    let mut params = server.resolved.config.clone();
    params.shutdown = stop.clone();
    let described = server.resolved.secrets.hidden(&target_text(&server.resolved.config.target));
    BenchTarget { name: server.name().to_owned(), described, params, sink: None }
}

/// Servers of one name get a number: results and bases are found by it.
fn name_apart(targets: &mut [BenchTarget]) {
    let names: Vec<_> = targets.iter().map(|target| target.name.clone()).collect();
    for (at, target) in targets.iter_mut().enumerate() {
        let number = names[..=at].iter().filter(|name| **name == names[at]).count();
        if names.iter().filter(|name| **name == names[at]).count() > 1 {
            target.name = format!("{} {number}", names[at]);
        }
    }
}

/// Runs a benchmark with a line about it; the first signal ends it with what has been measured.
///
/// # Errors
/// Signals cannot be handled.
async fn watched(options: &BenchOptions, bench: impl Future<Output = BenchResult>) -> Result<BenchResult, Failure> {
    let mut job = Job::start(options.stop.clone(), "interrupted: this is what was measured\n")?;
    let result = job.run_with(bench, progress::show(&options.progress)).await;
    result.ok_or_else(|| Failure::cannot(INTERRUPTED_AGAIN))
}
