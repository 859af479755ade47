//! Running one cell: its own mocks and sessions, one step after another.

use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    sync::Arc,
    time::Instant,
};

use futures_util::{StreamExt, future, stream::FuturesUnordered};
use serde_json::{Map, Value as Json, json, value::RawValue};
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

use super::{
    CellServer, RecordedSnapshot, RunOptions, TrafficHooks,
    connections::Connections,
    error::{StartError, StepError},
    evaluation::Evaluation,
    running_server::RunningServer,
};
use crate::{
    coverage::Usage,
    file::{Action, Expectations, Scenario, Step},
    snapshot::{
        Observation,
        observation::StepOutcome,
        redaction::{self, RunValue, UsedRules},
    },
};
use rehearse_client::{
    Answers, ConnectError, ConnectOptions, LastLines, Session, StderrLine, StderrSink, UnsolicitedFrame,
    UnsolicitedPolicy,
};
use rehearse_protocol::{Protocol, Trace, Version};
use rehearse_report::{Cell, CellResult, CellViolation, Difference, Problem, Status, StepResult, check::CheckVerdict};

/// The result of a cell before its snapshots are compared.
pub(crate) struct CellRun {
    pub(crate) result: CellResult,
    pub(crate) recorded: Vec<RecordedSnapshot>,
    pub(crate) redacted: UsedRules,
    /// What of the servers it has used, if that is asked for.
    pub(crate) usage: Usage,
}

impl CellRun {
    /// Adds the results of the same cell in another run. A snapshot that differs fails its step.
    fn repeat(&mut self, again: CellRun) {
        if again.result.status != Status::Passed {
            *self = again;
            return;
        }
        for recorded in &mut self.recorded {
            let other = again.recorded.iter().find(|it| (it.step, &it.key) == (recorded.step, &recorded.key));
            let Some(other) = other.filter(|it| it.text != recorded.text && recorded.is_stable) else { continue };
            recorded.is_stable = false;
            let difference = Difference { expected: recorded.text.clone(), actual: other.text.clone() };
            let rules = difference.pointers().iter().map(|at| format!("{{ at: {at} }}")).collect::<Vec<_>>().join(", ");
            let message = format!(
                "the result is not the same each time; if that is right, add this to the scenario:\n  redact: [{rules}]"
            );
            self.result.status = Status::Failed;
            if let Some(step) = self.result.steps.get_mut(recorded.step) {
                step.status = Status::Failed;
                step.problems.push(Problem { difference: Some(difference), ..Problem::new(message) });
            }
        }
    }

    /// A cell of which no step ran.
    pub(crate) fn without_steps(result: CellResult) -> CellRun {
        CellRun { result, recorded: Vec::new(), redacted: UsedRules::new(), usage: Usage::default() }
    }
}

/// Runs a cell as often as the options say, until it fails. Everything that it started has ended when this returns, even
/// after `cancel`.
pub(crate) async fn run(scenario: &Scenario, cell: Cell, options: &RunOptions, cancel: &CancellationToken) -> CellRun {
    let mut run = run_once(scenario, cell, options, cancel).await;
    for _ in 1..options.repeat {
        if run.result.status != Status::Passed {
            break;
        }
        run.repeat(run_once(scenario, cell, options, cancel).await);
    }
    run
}

async fn run_once(scenario: &Scenario, cell: Cell, options: &RunOptions, cancel: &CancellationToken) -> CellRun {
    let started = Instant::now();
    let stderr = LastLines::default();
    let sink: StderrSink = Arc::new({
        let stderr = stderr.clone();
        move |StderrLine { server, line }| stderr.push(format!("[{server}] {line}"))
    });
    let mut runner = CellRunner {
        scenario,
        cell,
        servers: Vec::new(),
        captured: Map::new(),
        expects_unsolicited: false,
        recorded: Vec::new(),
        redacted: vec![false; scenario.redactions.len()],
        known: known_values(scenario),
        sink,
        tools: AsyncMutex::default(),
        negotiated: None,
        options,
        host_traffic: Vec::new(),
        connections: Connections::new(scenario, cell, &options.hooks),
    };
    let mut steps = Vec::new();
    let ended = match runner.start(options, cancel).await {
        Ok(()) => runner.steps(options, cancel, &mut steps).await,
        Err(why) => Err((Status::Error, why.to_string())),
    };
    let CellRunner { servers, recorded, redacted, negotiated, connections, host_traffic, .. } = runner;
    let negotiated = negotiated.filter(|_| cell.protocol == Protocol::Auto).map(|version| version.to_string());
    future::join_all(servers.into_iter().map(|server| server.stop(cancel))).await;
    let mut usage = Usage::default();
    let traffic: Vec<_> = connections.traces().into_iter().chain(host_traffic).collect();
    if options.coverage {
        traffic.iter().for_each(|(server, traces)| usage.add(server, traces));
    }
    let violations = violations(scenario, cell, &options.hooks, &traffic);
    let failed = steps.iter().any(|step| step.status == Status::Failed)
        || violations.iter().any(|found| found.check.verdict == CheckVerdict::Fail);
    let (status, reason) = match ended {
        Ok(()) if failed => (Status::Failed, None),
        Ok(()) if steps.iter().all(|step| step.status == Status::NotApplicable) => {
            let models = if scenario.has_evals() { ", or none of its models plays" } else { "" };
            (Status::NotApplicable, Some(format!("`only` excludes every step in this cell{models}")))
        }
        Ok(()) => (Status::Passed, None),
        Err((status, why)) => (status, Some(why)),
    };
    CellRun {
        result: CellResult {
            cell,
            status,
            negotiated,
            reason,
            duration: started.elapsed(),
            steps,
            stderr: stderr.to_vec(),
            violations,
        },
        recorded,
        redacted,
        usage,
    }
}

/// The violated checks in the traffic with each server.
fn violations(
    scenario: &Scenario,
    cell: Cell,
    hooks: &TrafficHooks,
    traffic: &[(String, Vec<Trace>)],
) -> Vec<CellViolation> {
    let Some(judge) = &hooks.judge else { return Vec::new() };
    let mut found = Vec::new();
    for (server, traces) in traffic {
        let at = CellServer { scenario: &scenario.name, path: &scenario.path, cell, server };
        let checks = judge(at, traces).into_iter();
        found.extend(checks.map(|check| CellViolation { server: server.clone(), check }));
    }
    found
}

pub(crate) struct CellRunner<'a> {
    pub(crate) scenario: &'a Scenario,
    cell: Cell,
    pub(crate) servers: Vec<RunningServer>,
    pub(crate) captured: Map<String, Json>,
    /// Whether the current step expects unsolicited frames.
    expects_unsolicited: bool,
    recorded: Vec<RecordedSnapshot>,
    redacted: UsedRules,
    known: Vec<RunValue>,
    sink: StderrSink,
    /// The tools of each server, once its schemas are needed.
    pub(crate) tools: AsyncMutex<HashMap<String, Vec<Box<RawValue>>>>,
    /// The version of the first session.
    negotiated: Option<Version>,
    pub(crate) options: &'a RunOptions,
    /// What passed between hosts and servers.
    host_traffic: Vec<(String, Vec<Trace>)>,
    pub(crate) connections: Connections,
}

impl CellRunner<'_> {
    async fn start(&mut self, options: &RunOptions, shutdown: &CancellationToken) -> Result<(), StartError> {
        for (index, spec) in self.scenario.servers.iter().enumerate() {
            let answers = Answers::from_script(self.scenario.answers.clone(), self.scenario.questions(index));
            let (stderr, connections) = (self.sink.clone(), &self.connections);
            let started =
                RunningServer::start((index, spec), answers, self.cell, options, stderr, connections, shutdown).await?;
            self.servers.push(started);
        }
        Ok(())
    }

    /// Runs the steps until one fails. A failure that is not a missed expectation is an error.
    async fn steps(
        &mut self,
        options: &RunOptions,
        cancel: &CancellationToken,
        done: &mut Vec<StepResult>,
    ) -> Result<(), (Status, String)> {
        let scenario = self.scenario;
        for step in &scenario.steps {
            let started = Instant::now();
            let marks = self.connections.marks();
            self.expects_unsolicited = step.expect.as_ref().is_some_and(Expectations::expects_unsolicited);
            let mut ran = tokio::select! {
                ran = self.step(step, done.len()) => ran,
                () = cancel.cancelled() => return Err((Status::NotRun, "interrupted".into())),
            };
            if let Ok(Some(evaluation)) = &mut ran {
                let strays = Expectations::check_unsolicited(step.expect.as_ref(), &self.take_unsolicited_frames());
                evaluation.problems.extend(strays);
            }
            let error = ran.as_ref().ok().and_then(|ran| ran.as_ref()?.error());
            let (Evaluation { problems, models }, status) = match ran {
                Ok(Some(evaluation)) if error.is_some() && evaluation.problems.is_empty() => {
                    (evaluation, Status::Error)
                }
                Ok(Some(evaluation)) if evaluation.problems.is_empty() => (evaluation, Status::Passed),
                Ok(Some(evaluation)) => (evaluation, Status::Failed),
                Ok(None) => (Evaluation::default(), Status::NotApplicable),
                // A value that a failed step did not capture is missing here.
                Err(why) if done.iter().any(|step| step.status == Status::Failed) => {
                    (vec![why.to_string()].into(), Status::Failed)
                }
                Err(why) => return Err((Status::Error, format!("{} (line {}): {why}", step.title(), step.line))),
            };
            let trace = self.connections.lines(&marks);
            done.push(StepResult {
                title: step.title(),
                line: step.line,
                source: step.source.clone(),
                status,
                duration: started.elapsed(),
                problems: problems.into_iter().map(Problem::new).collect(),
                models,
                trace,
            });
            if let Some(why) = error {
                return Err((Status::Error, format!("{} (line {}): {why}", step.title(), step.line)));
            }
            if status == Status::Failed && !options.keep_going {
                break;
            }
        }
        // Frames that came after the last step count as its own.
        let late = Expectations::check_unsolicited(None, &self.take_unsolicited_frames());
        if let Some(last) =
            done.iter_mut().rfind(|step| step.status != Status::NotApplicable).filter(|_| !late.is_empty())
        {
            last.status = Status::Failed;
            last.problems.extend(late.into_iter().map(Problem::new));
        }
        Ok(())
    }

    /// The unsolicited frames of all servers since the last call.
    fn take_unsolicited_frames(&self) -> Vec<UnsolicitedFrame> {
        let of_hub = |live: &RunningServer| live.hub.take_unsolicited().into_iter().map(|(_, frame)| frame);
        let of_session = |live: &RunningServer| live.session.as_ref().map(Session::take_unsolicited);
        let all = self.servers.iter();
        all.flat_map(|live| of_session(live).unwrap_or_default().into_iter().chain(of_hub(live))).collect()
    }

    /// The problems of a step, and what models have done in it; `None` if `only` excludes it in this cell, or none of its
    /// models may play.
    async fn step(&mut self, step: &Step, index: usize) -> Result<Option<Evaluation>, StepError> {
        let unknown = step.with_parallel().find(|step| step.only.needs_version(self.cell.protocol));
        if let Some(unknown) = unknown
            && let Err(failed) = self.connect(unknown).await?
        {
            return Ok(Some(Expectations::check(step.expect.as_ref(), &failed).into()));
        }
        if !self.is_in_cell(step) {
            return Ok(None);
        }
        if let Action::Parallel(steps) = &step.action {
            let steps: Vec<_> = steps.iter().filter(|step| self.is_in_cell(step)).collect();
            return Ok(Some(self.parallel(step, &steps, index).await?.into()));
        }
        let observation = match &step.action {
            Action::FinalAnswer(answer) => self.final_answer(answer)?,
            Action::Host(host) => {
                let (observation, traces) = self.host(step, host).await?;
                self.host_traffic.push((self.scenario.servers[step.server].name.clone(), traces));
                observation
            }
            _ => match self.connect(step).await? {
                Ok(()) if step.action.eval().is_some() => {
                    let _overlay = self.overlay(step, step.server);
                    return self.evaluate(step, &self.options.models).await;
                }
                Ok(()) => self.observe(step).await?,
                Err(failed) => failed,
            },
        };
        let is_error = observation.is_error();
        let mut problems = self.check(step, index, observation);
        if is_error && !problems.is_empty() {
            problems.extend(self.unlisted(step).await);
        }
        Ok(Some(problems.into()))
    }

    fn is_in_cell(&self, step: &Step) -> bool {
        step.only.holds(self.cell.transport, self.cell.protocol, self.version(step))
    }

    pub(crate) fn version(&self, step: &Step) -> Option<Version> {
        self.servers.get(step.server)?.version
    }

    /// Checks an observation against the expectations. If they hold, the result is captured and recorded.
    fn check(&mut self, step: &Step, index: usize, mut observation: Observation) -> Vec<String> {
        let mut problems = Expectations::check(step.expect.as_ref(), &observation);
        self.capture(step, &observation, &mut problems);
        if problems.is_empty() {
            self.record(step, index, &mut observation);
        }
        problems
    }

    async fn parallel(&mut self, step: &Step, steps: &[&Step], index: usize) -> Result<Vec<String>, StepError> {
        let mut unreachable = Vec::new();
        for step in steps {
            unreachable.push(self.connect(step).await?.err());
        }
        let this = &*self;
        let servers: BTreeSet<_> = steps.iter().map(|step| step.server).collect();
        let _overlays: Vec<_> = servers.into_iter().map(|server| this.overlay(step, server)).collect();
        let run = async |position: usize, step: &Step, unreachable: Option<Observation>| match unreachable {
            Some(failed) => (position, Ok(failed)),
            None => (position, this.run_within_limit(step).await),
        };
        let running = steps.iter().zip(unreachable).enumerate();
        let running = running.map(|(position, (step, unreachable))| run(position, step, unreachable));
        // Futures are polled in the order in which they are woken, so they finish in the order of their responses.
        let mut finished: Vec<_> = running.collect::<FuturesUnordered<_>>().collect().await;
        let order: Vec<_> = finished.iter().map(|(position, _)| *position).collect();
        finished.sort_by_key(|(position, _)| *position);
        let (mut problems, mut views) = (Vec::new(), Vec::new());
        for ((position, observation), step) in finished.into_iter().zip(steps) {
            let observation = observation?;
            views.push(observation.snapshot(false));
            let is_error = observation.is_error();
            let mut found = self.check(step, index, observation);
            if is_error && !found.is_empty() {
                found.extend(self.unlisted(step).await);
            }
            problems.extend(found.into_iter().map(|problem| format!("[{position}] {}: {problem}", step.title())));
        }
        let mut observation = Observation::result(json!({ "results": views, "finished": order }));
        problems.extend(Expectations::check(step.expect.as_ref(), &observation));
        if problems.is_empty() {
            self.record(step, index, &mut observation);
        }
        Ok(problems)
    }

    /// Opens the session of a step's server. The inner error is the observation of the step if that fails.
    async fn connect(&mut self, step: &Step) -> Result<Result<(), Observation>, StepError> {
        // A step that expects unsolicited output does not fail because of it.
        let ignored =
            if self.expects_unsolicited { UnsolicitedPolicy::IgnoreAll } else { UnsolicitedPolicy::FailOnAny };
        let live = self.servers.get_mut(step.server).ok_or(StepError::NoServer)?;
        if live.uses_hub(&step.action) {
            let discovered = live.discover(step, self.cell.protocol).await;
            self.negotiated = self.negotiated.or(live.version);
            return Ok(discovered);
        }
        if let Some(session) = &live.session {
            session.set_unsolicited_policy(ignored);
            return Ok(Ok(()));
        }
        let mut config = live.config.clone().ok_or(StepError::NoSessionOfConfig)?;
        if let (Action::Connect, Some(limit)) = (&step.action, step.timeout) {
            config.timeouts.connect = limit;
        }
        let recorder = self.connections.recorder(step.server, &config.name);
        let options = ConnectOptions { stderr: Some(self.sink.clone()), recorder, ..ConnectOptions::default() };
        match Session::connect_with(&config, self.cell.protocol, options).await {
            Ok(session) => {
                if let (Protocol::Exact(requested), Some(version)) =
                    (self.cell.protocol, session.info().version.known())
                    && requested != version
                {
                    session.close().await;
                    return Ok(Err(Observation::other_version(requested, version)));
                }
                live.version = session.info().version.known();
                self.negotiated = self.negotiated.or(live.version);
                session.set_unsolicited_policy(ignored);
                live.session = Some(session);
                Ok(Ok(()))
            }
            Err(error @ (ConnectError::Spawn { .. } | ConnectError::Invalid(_))) => Err(error.into()),
            Err(error) => Ok(Err(Observation::from_connect_error(error))),
        }
    }

    fn capture(&mut self, step: &Step, observation: &Observation, problems: &mut Vec<String>) {
        for (name, pointer) in &step.capture {
            let value = match &observation.outcome {
                StepOutcome::Result(result) => result.pointer(pointer),
                StepOutcome::Silence | StepOutcome::Failed { .. } => None,
            };
            match value {
                Some(value) => {
                    self.captured.insert(name.clone(), value.clone());
                }
                None => problems.push(format!("capture {name}: the result has no value at {pointer}")),
            }
        }
    }

    fn record(&mut self, step: &Step, index: usize, observation: &mut Observation) {
        let Some(spec) = &step.snapshot else { return };
        if let StepOutcome::Result(result) = &mut observation.outcome {
            redaction::apply_at(result, &self.scenario.redactions, &mut self.redacted);
        }
        let shows_client_requests = step.expect.as_ref().is_some_and(Expectations::has_client_requests);
        let view = observation.snapshot(shows_client_requests);
        let text = redaction::snapshot_text(view, &self.scenario.redactions, &self.known, &mut self.redacted);
        let key = spec.key(self.cell, self.version(step));
        let is_surface = matches!(step.action, Action::Discover { strict: false });
        let title = step.header();
        self.recorded.push(RecordedSnapshot { step: index, key, title, text, is_surface, is_stable: true });
    }
}

/// Values that no snapshot may contain: folders of this machine, and environment variables and headers of the servers.
pub(crate) fn known_values(scenario: &Scenario) -> Vec<RunValue> {
    let mut known: Vec<_> = scenario
        .servers
        .iter()
        .flat_map(|server| server.secrets())
        .map(|(name, value)| RunValue::Secret(value, format!("[{name}]")))
        .collect();
    let folder =
        |path: PathBuf, with| path.canonicalize().ok().map(|path| RunValue::Folder(path.display().to_string(), with));
    let own =
        scenario.path.parent().map(|folder| if folder.as_os_str().is_empty() { ".".into() } else { folder.to_owned() });
    known.extend(own.and_then(|path| folder(path, "[folder]")));
    known.extend(std::env::current_dir().ok().and_then(|path| folder(path, "[cwd]")));
    known.extend(std::env::home_dir().and_then(|path| folder(path, "[home]")));
    known.extend(folder(std::env::temp_dir(), "[tmp]"));
    // The longest first: a folder is replaced before its parents. Short paths such as `/` would match everywhere.
    known.retain(|known| !matches!(known, RunValue::Folder(path, _) if path.len() < 4));
    known.sort_by_key(|known| {
        std::cmp::Reverse(match known {
            RunValue::Folder(text, _) | RunValue::Secret(text, _) => text.len(),
        })
    });
    known
}
