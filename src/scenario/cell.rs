//! Running one cell: its own mocks and sessions, one step after another.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Instant};

use futures_util::{StreamExt, future, stream::FuturesUnordered};
use serde_json::{Map, Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::{
    Action, Expect, Observation, Options, Recorded, Scenario, Step,
    live::Live,
    observe::Outcome,
    redact::{self, Known, Used},
};
use crate::{
    client::{Answers, ConnectError, Ignored, LastLines, Session, StderrLine, StderrSink},
    report::{Cell, CellResult, Problem, Status, StepResult, TraceLine},
    transport::{Stray, Tap},
    wire::Version,
};

const TRACE_LINES: usize = 200;
const TRACE_WIDTH: usize = 2000;

/// What came of a cell, snapshots still to be judged.
pub(super) struct Ran {
    pub(super) result: CellResult,
    pub(super) recorded: Vec<Recorded>,
    pub(super) redacted: Used,
}

impl Ran {
    /// Nothing was done.
    pub(super) fn idle(result: CellResult) -> Ran {
        Ran { result, recorded: Vec::new(), redacted: Used::new() }
    }
}

/// Runs a cell. Whatever it started is gone when this returns, also if `cancel` ended it.
pub(super) async fn run(scenario: &Scenario, cell: Cell, options: &Options, cancel: &CancellationToken) -> Ran {
    let started = Instant::now();
    let stderr = LastLines::default();
    let sink: StderrSink = Arc::new({
        let stderr = stderr.clone();
        move |StderrLine { server, line }| stderr.push(format!("[{server}] {line}"))
    });
    let mut runner = Runner {
        scenario,
        cell,
        servers: Vec::new(),
        captured: Map::new(),
        is_noisy: false,
        recorded: Vec::new(),
        redacted: vec![false; scenario.redactions.len()],
        known: known(scenario),
        sink,
    };
    let mut steps = Vec::new();
    let ended = match runner.start(options, cancel).await {
        Ok(()) => runner.steps(options, cancel, &mut steps).await,
        Err(why) => Err((Status::Error, why)),
    };
    let Runner { servers, recorded, redacted, .. } = runner;
    future::join_all(servers.into_iter().map(Live::stop)).await;
    let failed = steps.iter().any(|step| step.status == Status::Failed);
    let (status, reason) = match ended {
        Ok(()) if failed => (Status::Failed, None),
        Ok(()) if steps.iter().all(|step| step.status == Status::NotApplicable) => {
            (Status::NotApplicable, Some("no step of the scenario exists in this cell".into()))
        }
        Ok(()) => (Status::Passed, None),
        Err((status, why)) => (status, Some(why)),
    };
    Ran {
        result: CellResult { cell, status, reason, duration: started.elapsed(), steps, stderr: stderr.to_vec() },
        recorded,
        redacted,
    }
}

pub(super) struct Runner<'a> {
    pub(super) scenario: &'a Scenario,
    cell: Cell,
    pub(super) servers: Vec<Live>,
    pub(super) captured: Map<String, Json>,
    /// Whether the present step expects frames that belong to nothing.
    is_noisy: bool,
    recorded: Vec<Recorded>,
    redacted: Used,
    known: Vec<Known>,
    sink: StderrSink,
}

impl Runner<'_> {
    async fn start(&mut self, options: &Options, haste: &CancellationToken) -> Result<(), String> {
        for (index, spec) in self.scenario.servers.iter().enumerate() {
            let answers = Answers::scripted(self.scenario.answers.clone(), self.scenario.questions(index));
            self.servers.push(Live::start(spec, answers, self.cell.transport, options, haste).await?);
        }
        Ok(())
    }

    /// Runs the steps until one fails. What fails us, and not an expectation, is an error.
    async fn steps(
        &mut self,
        options: &Options,
        cancel: &CancellationToken,
        done: &mut Vec<StepResult>,
    ) -> Result<(), (Status, String)> {
        let scenario = self.scenario;
        for step in &scenario.steps {
            let started = Instant::now();
            let marks = self.marks();
            self.is_noisy = step.expect.as_ref().is_some_and(Expect::has_noise);
            let mut ran = tokio::select! {
                ran = self.step(step, done.len()) => ran,
                () = cancel.cancelled() => return Err((Status::NotRun, "interrupted".into())),
            };
            if let Ok(Some(problems)) = &mut ran {
                problems.extend(Expect::judge_noise(step.expect.as_ref(), &self.strays()));
            }
            let (problems, status) = match ran {
                Ok(Some(problems)) if problems.is_empty() => (problems, Status::Passed),
                Ok(Some(problems)) => (problems, Status::Failed),
                Ok(None) => (Vec::new(), Status::NotApplicable),
                // What an earlier step did not bring is missing here because of its failure.
                Err(why) if done.iter().any(|step| step.status == Status::Failed) => (vec![why], Status::Failed),
                Err(why) => return Err((Status::Error, format!("{} (line {}): {why}", step.title(), step.line))),
            };
            let trace = self.trace(&marks);
            done.push(StepResult {
                title: step.title(),
                line: step.line,
                status,
                duration: started.elapsed(),
                problems: problems.into_iter().map(Problem::new).collect(),
                trace,
            });
            if status == Status::Failed && !options.keep_going {
                break;
            }
        }
        // What came after the end of the last step is not lost.
        let late = Expect::judge_noise(None, &self.strays());
        if let Some(last) =
            done.iter_mut().rfind(|step| step.status != Status::NotApplicable).filter(|_| !late.is_empty())
        {
            last.status = Status::Failed;
            last.problems.extend(late.into_iter().map(Problem::new));
        }
        Ok(())
    }

    /// What has come from the servers since the last call and belongs to nothing.
    fn strays(&self) -> Vec<Stray> {
        self.servers.iter().filter_map(|live| live.session.as_ref()).flat_map(Session::strays).collect()
    }

    /// The problems of a step; `None` if it does not exist in this cell.
    async fn step(&mut self, step: &Step, index: usize) -> Result<Option<Vec<String>>, String> {
        let unknown = step.with_parallel().find(|step| step.only.needs_version(self.cell.protocol));
        if let Some(unknown) = unknown
            && let Err(failed) = self.connect(unknown).await?
        {
            return Ok(Some(Expect::judge(step.expect.as_ref(), &failed)));
        }
        if !self.exists(step) {
            return Ok(None);
        }
        if let Action::Parallel(steps) = &step.action {
            let steps: Vec<_> = steps.iter().filter(|step| self.exists(step)).collect();
            return self.parallel(step, &steps, index).await.map(Some);
        }
        let observation = match &step.action {
            Action::FinalAnswer(answer) => self.final_answer(answer)?,
            _ => match self.connect(step).await? {
                Ok(()) => self.observe(step).await?,
                Err(failed) => failed,
            },
        };
        Ok(Some(self.judge(step, index, observation)))
    }

    fn exists(&self, step: &Step) -> bool {
        step.only.holds(self.cell.transport, self.cell.protocol, self.version(step))
    }

    fn version(&self, step: &Step) -> Option<Version> {
        let session = self.servers.get(step.server)?.session.as_ref()?;
        session.info().version.known()
    }

    /// The problems of what a step brought. What is as expected is captured and recorded.
    fn judge(&mut self, step: &Step, index: usize, mut observation: Observation) -> Vec<String> {
        let mut problems = Expect::judge(step.expect.as_ref(), &observation);
        self.capture(step, &observation, &mut problems);
        if problems.is_empty() {
            self.record(step, index, &mut observation);
        }
        problems
    }

    async fn parallel(&mut self, step: &Step, steps: &[&Step], index: usize) -> Result<Vec<String>, String> {
        let mut unreachable = Vec::new();
        for step in steps {
            unreachable.push(self.connect(step).await?.err());
        }
        let this = &*self;
        let servers: BTreeSet<_> = steps.iter().map(|step| step.server).collect();
        let _overlays: Vec<_> = servers.into_iter().map(|server| this.overlay(step, server)).collect();
        let run = async |position: usize, step: &Step, unreachable: Option<Observation>| match unreachable {
            Some(failed) => (position, Ok(failed)),
            None => (position, this.perform(step).await),
        };
        let running = steps.iter().zip(unreachable).enumerate();
        let running = running.map(|(position, (step, unreachable))| run(position, step, unreachable));
        // Whoever is woken first is looked at first: so they finish in the order of their answers.
        let mut finished: Vec<_> = running.collect::<FuturesUnordered<_>>().collect().await;
        let order: Vec<_> = finished.iter().map(|(position, _)| *position).collect();
        finished.sort_by_key(|(position, _)| *position);
        let (mut problems, mut views) = (Vec::new(), Vec::new());
        for ((position, observation), step) in finished.into_iter().zip(steps) {
            let observation = observation?;
            views.push(observation.snapshot(false));
            let found = self.judge(step, index, observation);
            problems.extend(found.into_iter().map(|problem| format!("[{position}] {}: {problem}", step.title())));
        }
        let mut observation = Observation::result(json!({ "results": views, "finished": order }));
        problems.extend(Expect::judge(step.expect.as_ref(), &observation));
        if problems.is_empty() {
            self.record(step, index, &mut observation);
        }
        Ok(problems)
    }

    /// Opens the session of a step's server. The inner error is what the step observes if that fails.
    async fn connect(&mut self, step: &Step) -> Result<Result<(), Observation>, String> {
        // Where a step expects noise, everything that is some is passed over.
        let ignored = if self.is_noisy { Ignored::Everything } else { Ignored::Nothing };
        let live = self.servers.get_mut(step.server).ok_or("there is no server whose version could be known")?;
        if let Some(session) = &live.session {
            session.ignore(ignored);
            return Ok(Ok(()));
        }
        let mut config = live.config.clone();
        if let (Action::Connect, Some(limit)) = (&step.action, step.timeout) {
            config.timeouts.connect = limit;
        }
        let tap = live.tap.insert(Tap::new()).clone();
        match Session::connect_with(&config, self.cell.protocol, Some(self.sink.clone()), tap).await {
            Ok(session) => {
                session.ignore(ignored);
                live.session = Some(session);
                Ok(Ok(()))
            }
            Err(error @ (ConnectError::Spawn { .. } | ConnectError::Invalid(_))) => Err(error.to_string()),
            Err(error) => {
                let how = if error.may_be_older() { ", as `matrix: { protocol: [2025-11-25] }` does" } else { "" };
                let outcome = Outcome::Failed {
                    kind: "connect".into(),
                    message: format!("{error}{how}"),
                    error: match error {
                        ConnectError::Refused { error, .. } => serde_json::to_value(&error).ok(),
                        _ => None,
                    },
                };
                Ok(Err(Observation::new(outcome)))
            }
        }
    }

    fn capture(&mut self, step: &Step, observation: &Observation, problems: &mut Vec<String>) {
        for (name, pointer) in &step.capture {
            let value = match &observation.outcome {
                Outcome::Result(result) => result.pointer(pointer),
                Outcome::Silence | Outcome::Failed { .. } => None,
            };
            match value {
                Some(value) => {
                    self.captured.insert(name.clone(), value.clone());
                }
                None => problems.push(format!("capture {name}: the result has nothing at {pointer}")),
            }
        }
    }

    fn record(&mut self, step: &Step, index: usize, observation: &mut Observation) {
        let Some(spec) = &step.snapshot else { return };
        if let Outcome::Result(result) = &mut observation.outcome {
            redact::apply_at(result, &self.scenario.redactions, &mut self.redacted);
        }
        let shows_asked = step.expect.as_ref().is_some_and(Expect::has_asked);
        let mut view = observation.snapshot(shows_asked);
        redact::apply(&mut view, &self.scenario.redactions, &self.known, &mut self.redacted);
        view.sort_all_objects();
        let text = serde_json::to_string_pretty(&view).unwrap_or_default();
        let key = spec.key(self.cell, self.version(step));
        self.recorded.push(Recorded { step: index, key, title: step.title(), text });
    }

    /// How much has gone over every connection so far.
    fn marks(&self) -> Vec<Option<(Tap, usize)>> {
        let mark = |tap: &Tap| (tap.clone(), tap.len());
        self.servers.iter().map(|live| live.tap.as_ref().map(mark)).collect()
    }

    /// The last frames since the marks.
    fn trace(&self, marks: &[Option<(Tap, usize)>]) -> Vec<TraceLine> {
        let mut lines = Vec::new();
        for (live, mark) in self.servers.iter().zip(marks) {
            let Some(tap) = &live.tap else { continue };
            let from = mark.as_ref().filter(|(marked, _)| marked.is(tap)).map_or(0, |(_, from)| *from);
            let frames = tap.since(from);
            let left_out = frames.len().saturating_sub(TRACE_LINES);
            for (index, frame) in frames.into_iter().enumerate().skip(left_out) {
                let text = String::from_utf8_lossy(&frame.bytes);
                let mut frame_text = match text.char_indices().nth(TRACE_WIDTH) {
                    Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], frame.bytes.len()),
                    None => text.into_owned(),
                };
                if index == left_out && left_out > 0 {
                    frame_text = format!("(after {left_out} more frames) {frame_text}");
                }
                let server = live.config.name.clone();
                lines.push(TraceLine { server, direction: frame.direction, at: frame.at, frame: frame_text });
            }
        }
        lines
    }
}

/// What no snapshot of the scenario may contain: folders of this machine, and values that were given to the servers.
fn known(scenario: &Scenario) -> Vec<Known> {
    let mut known: Vec<_> = scenario
        .servers
        .iter()
        .flat_map(|server| server.secrets())
        .map(|(name, value)| Known::Secret(value, format!("[{name}]")))
        .collect();
    let folder =
        |path: PathBuf, with| path.canonicalize().ok().map(|path| Known::Folder(path.display().to_string(), with));
    let own =
        scenario.path.parent().map(|folder| if folder.as_os_str().is_empty() { ".".into() } else { folder.to_owned() });
    known.extend(own.and_then(|path| folder(path, "[folder]")));
    known.extend(std::env::current_dir().ok().and_then(|path| folder(path, "[cwd]")));
    known.extend(std::env::home_dir().and_then(|path| folder(path, "[home]")));
    known.extend(folder(std::env::temp_dir(), "[tmp]"));
    // The longest first, so that a folder is not named by one around it; the root is everywhere.
    known.retain(|known| !matches!(known, Known::Folder(path, _) if path.len() < 4));
    known.sort_by_key(|known| {
        std::cmp::Reverse(match known {
            Known::Folder(text, _) | Known::Secret(text, _) => text.len(),
        })
    });
    known
}
