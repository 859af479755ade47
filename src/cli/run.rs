//! `rehearse run`: runs scenarios on every transport and protocol version.

mod models;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::{NonZeroU32, NonZeroUsize},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use clap::Args;
use indicatif::ProgressBar;
use parking_lot::Mutex;
use regex::Regex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::{
    models::ModelArgs,
    watch::{Outcome, WatchArgs, watch},
};
use super::{
    Exit, Failure,
    hosts_args::HostsArgs,
    job::Job,
    mcp::target::connection::duration,
    output,
    process_guard::{install_guard, runtime},
    profile::host_named,
    replay::{PreparedReplay, ReplayArgs},
    report::OutputArgs,
    secrets::Secrets,
    shard::ShardArgs,
    sinks::Sinks,
    spans::{OtlpArgs, random_trace},
    usage_hint::command_hint,
};
use mcp_rehearsal::builtin_scripts::BUILTIN_SCRIPTS;
use rehearse_check::judge_traffic;
use rehearse_protocol::trace_file::ConnectionInfo;
use rehearse_report::{Cell, Format, Layout, RunResult, ScenarioResult, Status, Verdict, summary::Results};
use rehearse_scenario::{
    self as scenario, Plan, RecordSink, RunEvent, RunOptions, Scenario, ScenarioError, Selection, ServerKind,
    ServerSpec, SnapshotMode, TrafficHooks, TrafficJudge, find_scenarios,
};
use rehearse_system::process::ReaperProcess;

const EXAMPLES: &str = "\
Examples:
  rehearse run                                  the scenarios in ./scenarios
  rehearse run scenarios/progress.yaml --trace  show the frames around failures
  rehearse run --filter '/http/' --filter '/ws/2026'
  rehearse run --update                         accept results that all cells agree on
  rehearse run --coverage --fail-under 80%      what of the server they use
  rehearse run --check                          also judge the traffic by the specification
  rehearse run evals --record-models answers    models play; in CI their recorded answers
  rehearse run --shard 1/4 --jobs 2             a quarter of the cells, for CI
  rehearse run --from-trace t.jsonl -- node s.js  replay a recording, and compare

A cell is one transport and one protocol version, such as http/2025-11-25. All cells of a scenario \
must give the same results, which are compared with one snapshot for each step.";

/// Run scenarios: snapshot tests of a server on all transports and versions
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_args(hide_servers))]
pub(super) struct RunArgs {
    /// Scenario files or folders [default: scenarios]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Run only cells whose id `scenario/transport/version` matches (repeatable)
    #[arg(short, long = "filter", value_name = "REGEX")]
    filters: Vec<Regex>,
    #[command(flatten)]
    part: ShardArgs,
    /// Print the selected cells and exit
    #[arg(long)]
    list: bool,
    /// Accept new results as snapshots if all cells agree
    #[arg(short, long)]
    update: bool,
    /// Run each cell this many times; a result that differs is a failure
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN, hide_default_value = true)]
    repeat: NonZeroU32,
    /// Start no further cell after the first failure
    #[arg(long)]
    fail_fast: bool,
    /// Run the remaining steps of a cell after a failure
    #[arg(long)]
    keep_going: bool,
    /// Number of cells that run at once [default: 16 per processor; 4 if a server is not a mock]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Seed for all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Timeout from the start of a server to the end of its handshake [default: from the scenario, or 30s]
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    start_timeout: Option<Duration>,
    /// Connect as this host does: with its name, capabilities, version, transports and time limits
    #[arg(long = "as", value_name = "HOST", hide_short_help = true)]
    host: Option<String>,
    /// Show the frames around each failure
    #[arg(short, long)]
    trace: bool,
    /// Check the traffic of each cell against the MCP specification; a violated MUST fails it
    #[arg(long)]
    check: bool,
    /// Show how much of the servers the scenarios use
    #[arg(long)]
    coverage: bool,
    /// With --coverage: fail if less than this was used, such as 80%
    #[arg(long, value_name = "PERCENT", value_parser = percent, hide_short_help = true)]
    #[arg(requires = "coverage", conflicts_with = "shard")]
    fail_under: Option<f64>,
    /// Write all traffic to this file as it happens
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    trace_file: Option<PathBuf>,
    #[command(flatten)]
    otlp: OtlpArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    hosts: HostsArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    replay: ReplayArgs,
}

/// A server is for replays only, of which `-h` has an example.
fn hide_servers(arg: clap::Arg) -> clap::Arg {
    let is_of_server = arg.get_help_heading() == Some("Servers");
    if is_of_server { arg.hide_short_help(true) } else { arg }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        match error {
            ScenarioError::Invalid(diagnostics) => Failure::Invalid(diagnostics),
            error @ (ScenarioError::Read { .. } | ScenarioError::SameName { .. }) => Failure::Usage(error.to_string()),
        }
    }
}

pub(super) fn run(args: RunArgs) -> Result<Exit, Failure> {
    args.output.check()?;
    if let Some(replay) = args.replay.prepare()? {
        return run_replay(&args, replay);
    }
    if !args.watch.is_set() {
        return run_scenarios(&args, None).map(|outcome| outcome.exit);
    }
    let written = args.output.paths().chain(args.trace_file.as_deref());
    watch(&args.watch, written, || find(&args.paths), |only| run_scenarios(&args, only))
}

/// Runs the scenarios below the paths, or only these files of them.
fn run_scenarios(args: &RunArgs, only: Option<&BTreeSet<PathBuf>>) -> Result<Outcome, Failure> {
    let durations = args.part.durations("run", |results| results.run.as_ref().map(RunResult::durations))?;
    let whole = Selection { filters: args.filters.clone(), ..Selection::default() };
    let mut scenarios = load(&args.paths, only)?;
    if let Some(limit) = args.start_timeout {
        scenarios
            .iter_mut()
            .flat_map(|scenario| &mut scenario.servers)
            .for_each(|server| server.set_start_timeout(limit));
    }
    let host = args.host.as_deref().map(host_named).transpose()?;
    for (scenario, host) in scenarios.iter_mut().zip(host.iter().cycle()) {
        scenario.set_host(host);
    }
    let shard = args.part.shard;
    let plan = Plan::new(scenarios, &Selection { filters: args.filters.clone(), shard, durations });
    // One of many parts may have nothing to do; its report says so.
    if plan.is_empty() && Plan::new(load(&args.paths, only)?, &whole).is_empty() {
        super::style::print("nothing was selected\n");
        return Ok(Outcome::without_run(Exit::NothingSelected));
    }
    if args.list {
        return list(&plan, args.output.format).map(|()| Outcome::without_run(Exit::Success));
    }
    let plays = plan.cells().any(|(scenario, ..)| scenario.has_evals());
    if plays && args.repeat.get() > 1 {
        return Err(Failure::Usage("--repeat: models play these scenarios; repeat a step with its `runs`".to_owned()));
    }
    let models = args.models.options(&plan)?;
    let earlier = args.models.earlier()?;
    let secrets: BTreeMap<_, _> = plan
        .cells()
        .map(|(scenario, ..)| (scenario.path.clone(), Secrets::from_scenario(scenario).remembered()))
        .collect();
    let sinks = Sinks::open(args.trace_file.as_deref(), &args.otlp)?;
    let started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
    let options = RunOptions {
        jobs: args.jobs.map_or_else(|| default_jobs(&plan), NonZeroUsize::get),
        mode: match (args.update, in_ci) {
            (true, _) => SnapshotMode::Update,
            (false, true) => SnapshotMode::Check,
            (false, false) => SnapshotMode::Pending,
        },
        fail_fast: args.fail_fast,
        keep_going: args.keep_going,
        repeat: args.repeat.get(),
        coverage: args.coverage,
        host,
        models,
        hosts: args.hosts.folder(),
        ..options(args, &sinks, &secrets)?
    };
    let done = block_on(execute(plan, options))?;
    let Some((mut result, interrupted)) = done? else {
        super::style::print("interrupted again: killed all servers; no report was written\n");
        return Ok(Outcome { is_interrupted: true, ..Outcome::without_run(Exit::CannotRun) });
    };
    (result.started_at, result.interrupted, result.shard) = (started_at, interrupted, shard);
    args.models.complete(&mut result, plays, earlier.as_ref());
    let has_failed = |scenario: &&ScenarioResult| {
        scenario.cells.iter().any(|cell| matches!(cell.status, Status::Failed | Status::Error))
    };
    let failed = result.scenarios.iter().filter(has_failed).map(|scenario| scenario.path.clone()).collect();
    let verdict = report(args, result)?;
    sinks.finish()?;
    let exit = if shard.is_some() && verdict == Verdict::NothingTested { Exit::Success } else { verdict.into() };
    Ok(Outcome { exit, failed, is_interrupted: interrupted })
}

/// Replays a recording against a server.
fn run_replay(args: &RunArgs, mut replay: PreparedReplay) -> Result<Exit, Failure> {
    if let Some(limit) = args.start_timeout {
        replay.server.resolved.config.timeouts.connect = limit;
    }
    let secrets = replay.paths().map(|path| (path, replay.server.resolved.secrets.clone())).collect();
    let sinks = Sinks::open(args.trace_file.as_deref(), &args.otlp)?;
    let started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let options = options(args, &sinks, &secrets)?;
    let cancel = CancellationToken::new();
    let done = block_on(async {
        let mut job = Job::start(cancel.clone(), "interrupted: stopping the server\n")?;
        job.run(Box::pin(replay.run(options, cancel.clone()))).await.transpose()
    })??;
    let Some(mut result) = done else { return Ok(Exit::CannotRun) };
    (result.started_at, result.interrupted) = (started_at, cancel.is_cancelled());
    let verdict = report(args, result)?;
    sinks.finish()?;
    Ok(verdict.into())
}

/// Runs work that starts servers under the guard of [`options`].
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    drop(runtime);
    ReaperProcess::dismiss();
    Ok(done)
}

/// The options that every kind of run has.
fn options(args: &RunArgs, sinks: &Sinks, secrets: &BTreeMap<PathBuf, Secrets>) -> Result<RunOptions, Failure> {
    Ok(RunOptions {
        builtin_scripts: BUILTIN_SCRIPTS,
        seed: args.seed,
        rehearse: install_guard()?,
        hooks: hooks(args, sinks, secrets),
        ..RunOptions::default()
    })
}

/// Writes the reports.
fn report(args: &RunArgs, mut result: RunResult) -> Result<Verdict, Failure> {
    if let Some(coverage) = &mut result.coverage {
        coverage.fail_under = args.fail_under;
    }
    let verdict = result.verdict();
    let results = Results { run: Some(result), ..Results::default() };
    let layout = Layout { width: super::style::width(), trace: args.trace, is_verbose: true, ..Layout::default() };
    args.output.write(results, &layout)?;
    Ok(verdict)
}

/// A percentage, with or without its sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    number.filter(|number| (0.0..=100.0).contains(number)).ok_or_else(|| "write a number up to 100, such as 80%".into())
}

/// What becomes of the traffic.
fn hooks(args: &RunArgs, sinks: &Sinks, secrets: &BTreeMap<PathBuf, Secrets>) -> TrafficHooks {
    let new_trace = sinks.spans.as_ref().map(|_| random_trace as fn() -> u128);
    let record_sink = (!sinks.is_empty()).then(|| -> RecordSink {
        let (sinks, secrets) = (sinks.clone(), secrets.clone());
        Arc::new(move |at, recorder| {
            let info = ConnectionInfo {
                protocol: at.asked(),
                scenario: Some((at.scenario.to_owned(), at.cell.to_string())),
                ..ConnectionInfo::new(at.server, at.cell.transport)
            };
            sinks.follow(&info, recorder, secrets.get(at.path).cloned().unwrap_or_default());
        })
    });
    let judge = args.check.then(|| -> TrafficJudge {
        Arc::new(|at, traces| judge_traffic(traces, at.asked(), at.cell.transport).violations)
    });
    TrafficHooks { record_sink, judge, new_trace }
}

/// The files below the paths, each once.
fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let default = [PathBuf::from("scenarios")];
    let paths = if paths.is_empty() { &default[..] } else { paths };
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for path in paths {
        let files = find_scenarios(path).map_err(|error| match path == Path::new("scenarios") {
            true if matches!(error, ScenarioError::Read { .. }) => {
                Failure::Usage(format!("{error}; name the scenarios to run, or write a first one with `rehearse init`"))
            }
            _ => match command_hint(&path.to_string_lossy()).filter(|_| !path.exists()) {
                Some(_) => Failure::Usage(format!(
                    "{error}; a scenario names the command of its server itself, and `rehearse check -- {} …` checks one",
                    path.display()
                )),
                None => error.into(),
            },
        })?;
        found.extend(files.into_iter().filter(|file| seen.insert(file.clone())));
    }
    Ok(found)
}

/// Every scenario below the paths, or only these files. If one of them is invalid, nothing runs.
fn load(paths: &[PathBuf], only: Option<&BTreeSet<PathBuf>>) -> Result<Vec<Scenario>, Failure> {
    let (mut scenarios, mut diagnostics) = (Vec::new(), Vec::new());
    for file in find(paths)?.iter().filter(|file| only.is_none_or(|only| only.contains(*file))) {
        match Scenario::load(file, BUILTIN_SCRIPTS) {
            Ok(scenario) => scenarios.push(scenario),
            Err(ScenarioError::Invalid(found)) => diagnostics.extend(found.0),
            Err(error) => return Err(error.into()),
        }
    }
    match diagnostics.is_empty() {
        true => Ok(scenarios),
        false => Err(Failure::Invalid(rehearse_document::Diagnostics(diagnostics))),
    }
}

fn list(plan: &Plan, format: Format) -> Result<(), Failure> {
    let line = |(scenario, cell, reason): (&Scenario, Cell, Option<&str>)| {
        let note = reason.map(|reason| format!("  ({reason})")).unwrap_or_default();
        format!("{}/{cell}{note}\n", scenario.name)
    };
    let entry = |(scenario, cell, reason): (&Scenario, Cell, Option<&str>)| json!({ "id": format!("{}/{cell}", scenario.name), "file": scenario.path, "notApplicable": reason });
    let (text, entries) = (plan.cells().map(line).collect::<String>(), plan.cells().map(entry).collect());
    output::write_list("--list", format, &text, &entries)
}

/// Cells mostly wait. Those of a mock need little memory; another command may need much, as one with a runtime of its own.
fn default_jobs(plan: &Plan) -> usize {
    let needs_targets = |server: &ServerSpec| matches!(server.kind, ServerKind::Targets(_));
    let per_processor = match plan.cells().any(|(scenario, ..)| scenario.servers.iter().any(needs_targets)) {
        true => 4,
        false => 16,
    };
    std::thread::available_parallelism().map_or(8, |processors| per_processor * processors.get())
}

/// The result and whether the run was interrupted; `None` after two interruptions.
async fn execute(plan: Plan, options: RunOptions) -> Result<Option<(RunResult, bool)>, Failure> {
    let cancel = CancellationToken::new();
    let mut job = Job::start(cancel.clone(), "interrupted: stopping the servers\n")?;
    let progress = Progress::new(plan.cells().filter(|(_, _, reason)| reason.is_none()).count());
    let running = scenario::run(plan, options, cancel.clone(), move |event| progress.show(&event));
    Ok(job.run(running).await.map(|result| (result, job.is_interrupted())))
}

/// The progress line on a terminal.
struct Progress {
    bar: ProgressBar,
    running: Mutex<Vec<String>>,
    failed: AtomicUsize,
}

impl Progress {
    fn new(cells: usize) -> Progress {
        let bar = super::style::progress("{bar:20} {pos}/{len} {prefix}{wide_msg}", Some(cells));
        Progress { bar, running: Mutex::default(), failed: AtomicUsize::new(0) }
    }

    fn show(&self, event: &RunEvent) {
        let mut running = self.running.lock();
        match event {
            RunEvent::Started { scenario, cell } => running.push(format!("{scenario}/{cell}")),
            RunEvent::Finished { scenario, cell, status, .. } => {
                let id = format!("{scenario}/{cell}");
                running.retain(|other| *other != id);
                self.bar.inc(1);
                if !matches!(status, Status::Passed) {
                    let failed = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
                    self.bar.set_prefix(format!("{failed} failed  "));
                }
            }
        }
        self.bar.set_message(running.join("  "));
    }
}
