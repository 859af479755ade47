//! Running one cell: its own mocks and sessions, one step after another.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future;
use serde_json::{Map, Value as Json, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Action, Cell, Expect, Observation, Options, Recorded, Scenario, Step,
    live::Live,
    observe::{self, Outcome, without_envelope},
    redact,
    result::{CellResult, Problem, Status, StepResult, TraceLine},
    step::ToolCall,
};
use crate::{
    client::{CallOptions, ConnectError, Failure, HeaderChange, Listing, Session, StderrLine},
    mock::template::{Data, ProcessEnvironment, Text},
    wire::{Direction, Era, Message, Version},
};

const RAW_TIMEOUT: Duration = Duration::from_secs(10);
const KEPT_STDERR: usize = 20;
const TRACE_LINES: usize = 200;
const TRACE_WIDTH: usize = 2000;

/// What came of a cell, snapshots still to be judged.
pub(super) struct Ran {
    pub(super) result: CellResult,
    pub(super) recorded: Vec<Recorded>,
}

/// Runs a cell. Whatever it started is gone when this returns, also if `cancel` ended it.
pub(super) async fn run(scenario: &Scenario, cell: Cell, options: &Options, cancel: &CancellationToken) -> Ran {
    let started = Instant::now();
    let (sink, mut stderr) = mpsc::unbounded_channel();
    let mut runner = Runner { scenario, cell, servers: Vec::new(), captured: Map::new(), recorded: Vec::new(), sink };
    let mut steps = Vec::new();
    let ended = match runner.start(options).await {
        Ok(()) => runner.steps(options, cancel, &mut steps).await,
        Err(why) => Err((Status::Error, why)),
    };
    let Runner { servers, recorded, sink, .. } = runner;
    future::join_all(servers.into_iter().map(Live::stop)).await;
    drop(sink);
    let mut lines = Vec::new();
    while let Ok(StderrLine { server, line }) = stderr.try_recv() {
        lines.push(format!("[{server}] {line}"));
    }
    lines.drain(..lines.len().saturating_sub(KEPT_STDERR));
    let failed = steps.iter().any(|step| step.status == Status::Failed);
    let (status, reason) = match ended {
        Ok(()) if failed => (Status::Failed, None),
        Ok(()) => (Status::Passed, None),
        Err((status, why)) => (status, Some(why)),
    };
    Ran { result: CellResult { cell, status, reason, duration: started.elapsed(), steps, stderr: lines }, recorded }
}

struct Runner<'a> {
    scenario: &'a Scenario,
    cell: Cell,
    servers: Vec<Live>,
    captured: Map<String, Json>,
    recorded: Vec<Recorded>,
    sink: mpsc::UnboundedSender<StderrLine>,
}

impl Runner<'_> {
    async fn start(&mut self, options: &Options) -> Result<(), String> {
        for spec in &self.scenario.servers {
            self.servers.push(Live::start(spec, self.cell.transport, options).await?);
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
            let ran = tokio::select! {
                ran = self.step(step, done.len()) => ran,
                () = cancel.cancelled() => return Err((Status::NotRun, "interrupted".into())),
            };
            let (problems, status) = match ran {
                Ok(Some(problems)) if problems.is_empty() => (problems, Status::Passed),
                Ok(Some(problems)) => (problems, Status::Failed),
                Ok(None) => (Vec::new(), Status::NotApplicable),
                Err(why) => return Err((Status::Error, format!("{} (line {}): {why}", step.title(), step.line))),
            };
            let trace = self.trace(&marks);
            let problem = |message| Problem { message, difference: None };
            done.push(StepResult {
                title: step.title(),
                line: step.line,
                status,
                duration: started.elapsed(),
                problems: problems.into_iter().map(problem).collect(),
                trace,
            });
            if status == Status::Failed && !options.keep_going {
                break;
            }
        }
        Ok(())
    }

    /// The problems of a step; `None` if it does not exist in this cell.
    async fn step(&mut self, step: &Step, index: usize) -> Result<Option<Vec<String>>, String> {
        if step.only.needs_version(self.cell.protocol)
            && let Err(failed) = self.connect(step.server).await?
        {
            return Ok(Some(Expect::judge(step.expect.as_ref(), &failed, false)));
        }
        let version = self.servers[step.server].session.as_ref().and_then(|session| session.info().version.known());
        if !step.only.holds(self.cell.transport, self.cell.protocol, version) {
            return Ok(None);
        }
        let observation = match &step.action {
            Action::Parallel(steps) => {
                let holds = |step: &&Step| step.only.holds(self.cell.transport, self.cell.protocol, version);
                let steps: Vec<_> = steps.iter().filter(holds).collect();
                for step in &steps {
                    if let Err(failed) = self.connect(step.server).await? {
                        return Ok(Some(Expect::judge(step.expect.as_ref(), &failed, false)));
                    }
                }
                return self.parallel(step, &steps, index).await.map(Some);
            }
            _ => match self.connect(step.server).await? {
                Ok(()) => self.observe(step).await?,
                Err(failed) => failed,
            },
        };
        let mut problems = Expect::judge(step.expect.as_ref(), &observation, step.snapshot.is_some());
        self.capture(step, &observation, &mut problems);
        self.record(step, index, observation.snapshot());
        Ok(Some(problems))
    }

    async fn parallel(&mut self, step: &Step, steps: &[&Step], index: usize) -> Result<Vec<String>, String> {
        let finished = std::sync::Mutex::new(Vec::new());
        let this = &*self;
        let run = async |position: usize, step: &Step| {
            let observation = this.perform(step).await;
            if let Ok(mut finished) = finished.lock() {
                finished.push(position);
            }
            observation
        };
        let observations = future::join_all(steps.iter().enumerate().map(|(position, step)| run(position, step))).await;
        let (mut problems, mut views) = (Vec::new(), Vec::new());
        for (position, (step, observation)) in steps.iter().zip(observations).enumerate() {
            let observation = observation?;
            let mut found = Expect::judge(step.expect.as_ref(), &observation, step.snapshot.is_some());
            self.capture(step, &observation, &mut found);
            problems.extend(found.into_iter().map(|problem| format!("[{position}] {}: {problem}", step.title())));
            views.push(observation.snapshot());
            self.record(step, index, observation.snapshot());
        }
        let order = finished.into_inner().unwrap_or_default();
        let view = json!({ "results": views, "finished": order });
        let observation = Observation::result(view.clone());
        problems.extend(Expect::judge(step.expect.as_ref(), &observation, step.snapshot.is_some()));
        self.record(step, index, view);
        Ok(problems)
    }

    /// Opens the session of a server. The inner error is what a step observes whose server cannot be connected to.
    async fn connect(&mut self, server: usize) -> Result<Result<(), Observation>, String> {
        let live = &mut self.servers[server];
        if live.session.is_some() {
            return Ok(Ok(()));
        }
        match Session::connect_with(&live.config, self.cell.protocol, Some(self.sink.clone())).await {
            Ok(session) => {
                live.session = Some(session);
                Ok(Ok(()))
            }
            Err(error @ (ConnectError::Spawn { .. } | ConnectError::Invalid(_))) => Err(error.to_string()),
            Err(ConnectError::Refused(error)) => {
                let outcome = Outcome::Failed {
                    kind: "connect".into(),
                    message: format!("the handshake was refused: {error}"),
                    error: serde_json::to_value(&error).ok(),
                };
                Ok(Err(Observation { outcome, notifications: Vec::new(), status: None }))
            }
            Err(error) => Ok(Err(Observation::failed("connect", error.to_string()))),
        }
    }

    fn session(&self, server: usize) -> Result<&Session, String> {
        self.servers[server].session.as_ref().ok_or_else(|| "the session is not open".to_owned())
    }

    /// Performs a step, and collects the notifications that came meanwhile.
    async fn observe(&self, step: &Step) -> Result<Observation, String> {
        let session = self.session(step.server)?;
        let from = session.tap().len();
        let mut observation = self.perform(step).await?;
        let mut token = None;
        for frame in session.tap().since(from) {
            match (frame.direction, frame.message()) {
                (Direction::ClientToServer, Ok(Message::Request(request))) => {
                    let params = request.params.and_then(|params| serde_json::from_str::<Json>(params.get()).ok());
                    token = params.and_then(|params| params.pointer("/_meta/progressToken").cloned());
                }
                (Direction::ServerToClient, Ok(Message::Notification(notification)))
                    if matches!(&*notification.method, "notifications/progress" | "notifications/message") =>
                {
                    let params = notification.params.map(|params| params.get());
                    let view = observe::notification(&notification.method, params, token.as_ref());
                    observation.notifications.push(view);
                }
                _ => {}
            }
        }
        Ok(observation)
    }

    async fn perform(&self, step: &Step) -> Result<Observation, String> {
        let session = self.session(step.server)?;
        let limit = step.timeout.unwrap_or(match step.action {
            Action::Discover | Action::ListResources | Action::ListPrompts => session.timeouts().list,
            _ => session.timeouts().call,
        });
        let options = CallOptions::within(limit);
        let listed = |member: &'static str, listing: Result<Listing, Failure>| {
            let items = |listing: Listing| {
                let items: Vec<Json> =
                    listing.items.iter().filter_map(|it| serde_json::from_str(it.get()).ok()).collect();
                json!({ member: items, "pages": listing.pages })
            };
            observed(listing.map(items))
        };
        Ok(match &step.action {
            Action::Connect => Observation::result(self.info(session)),
            Action::Discover => listed("tools", within(limit, session.list_tools()).await),
            Action::ListResources => listed("resources", within(limit, session.list_resources()).await),
            Action::ListPrompts => listed("prompts", within(limit, session.list_prompts()).await),
            Action::Call(call) => self.call(session, call, options).await?,
            Action::Cancel { call, after } => {
                let token = CancellationToken::new();
                let cancelling = async {
                    tokio::time::sleep(*after).await;
                    token.cancel();
                    future::pending::<()>().await;
                };
                let options = CallOptions { cancel: Some(token.clone()), ..options };
                tokio::select! {
                    observation = self.call(session, call, options) => observation?,
                    () = cancelling => Observation::failed("cancelled", "cancelled"),
                }
            }
            Action::ReadResource { uri } => {
                let uri = self.text(uri)?;
                observed_raw(session.read_resource(&uri, options).await)
            }
            Action::GetPrompt { name, args } => {
                let (name, args) = (self.text(name)?, self.arguments(args.as_ref())?);
                observed_raw(session.get_prompt(&name, args, options).await)
            }
            Action::Ping => observed(session.request("ping", None, options).await.map(|_| json!({}))),
            Action::Raw { frame, is_text, headers } => {
                self.raw(session, frame, *is_text, headers, step.timeout.unwrap_or(RAW_TIMEOUT)).await?
            }
            Action::Parallel(_) => return Err("steps in parallel cannot be nested".into()),
        })
    }

    /// What the server said of itself, in one shape for both eras.
    fn info(&self, session: &Session) -> Json {
        let info = session.info();
        let json = |raw: &serde_json::value::RawValue| serde_json::from_str::<Json>(raw.get()).unwrap_or_default();
        let mut view = json!({ "protocolVersion": info.version.to_string(), "capabilities": json(&info.capabilities) });
        if let Some(server) = &info.server_info {
            view["serverInfo"] = json(server);
        }
        if let Some(instructions) = &info.instructions {
            view["instructions"] = instructions.as_str().into();
        }
        view
    }

    async fn call(&self, session: &Session, call: &ToolCall, mut options: CallOptions) -> Result<Observation, String> {
        let (tool, args) = (self.text(&call.tool)?, self.arguments(call.args.as_ref())?);
        if let Some(level) = &call.log_level {
            match session.info().version.known().map(Version::era) {
                Some(Era::Modern) => {
                    let key = "io.modelcontextprotocol/logLevel".to_owned();
                    options.meta = Some(Map::from_iter([(key, level.as_str().into())]));
                }
                _ => {
                    let params = Map::from_iter([("level".to_owned(), level.as_str().into())]);
                    let set = session.request("logging/setLevel", Some(params), CallOptions::default()).await;
                    if let Err(failure) = set {
                        return Ok(Observation::failure(&failure));
                    }
                }
            }
        }
        Ok(match session.call_tool(&tool, args, options).await {
            Ok(outcome) => observed_raw(Ok(outcome.raw)),
            Err(failure) => Observation::failure(&failure),
        })
    }

    async fn raw(
        &self,
        session: &Session,
        frame: &Data,
        is_text: bool,
        headers: &[HeaderChange],
        timeout: Duration,
    ) -> Result<Observation, String> {
        let mut text = String::new();
        let written = self.scenario.templates.write_json(frame, &self.context(), &mut text);
        written.map_err(|error| error.to_string())?;
        let bytes = match is_text {
            true => serde_json::from_str::<String>(&text).map_err(|error| error.to_string())?,
            false => text,
        };
        let reply = match session.raw(Bytes::from(bytes), headers, timeout).await {
            Ok(reply) => reply,
            Err(failure) => return Ok(Observation::failure(&failure)),
        };
        let refused = reply.status.filter(|status| !(200..300).contains(status));
        let mut observation = match reply.answer.as_ref().map(crate::wire::Frame::message) {
            Some(Ok(Message::Response(response))) => match response.outcome {
                Ok(result) => observed_raw(Ok(result.to_owned())),
                Err(error) => Observation::failure(&Failure::Rpc(error)),
            },
            Some(_) => Observation::failed("malformed", "the answer is no response"),
            None => match refused {
                Some(status) => {
                    let body = String::from_utf8_lossy(&reply.body).into_owned();
                    Observation::failure(&Failure::Http { status, body })
                }
                None => Observation { outcome: Outcome::Silence, notifications: Vec::new(), status: None },
            },
        };
        observation.status = reply.status;
        Ok(observation)
    }

    fn context(&self) -> minijinja::Value {
        let captured = minijinja::Value::from(minijinja::value::Serde(&self.captured));
        let env = minijinja::Value::from_object(ProcessEnvironment);
        minijinja::context! { captured, env }
    }

    fn text(&self, text: &Text) -> Result<String, String> {
        self.scenario.templates.render(text, &self.context()).map_err(|error| error.to_string())
    }

    fn arguments(&self, data: Option<&Data>) -> Result<Option<Map<String, Json>>, String> {
        let Some(data) = data else { return Ok(None) };
        let mut text = String::new();
        self.scenario.templates.write_json(data, &self.context(), &mut text).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map(Some).map_err(|error| error.to_string())
    }

    fn capture(&mut self, step: &Step, observation: &Observation, problems: &mut Vec<String>) {
        let Outcome::Result(result) = &observation.outcome else { return };
        for (name, pointer) in &step.capture {
            match result.pointer(pointer) {
                Some(value) => {
                    self.captured.insert(name.clone(), value.clone());
                }
                None => problems.push(format!("capture {name}: the result has nothing at {pointer}")),
            }
        }
    }

    fn record(&mut self, step: &Step, index: usize, mut view: Json) {
        let Some(spec) = &step.snapshot else { return };
        let folder = self.scenario.path.parent().and_then(|folder| folder.canonicalize().ok());
        let folder = folder.map(|folder| (folder.display().to_string(), "[folder]"));
        redact::apply(&mut view, &self.scenario.redactions, folder.as_slice());
        view.sort_all_objects();
        let text = serde_json::to_string_pretty(&view).unwrap_or_default();
        self.recorded.push(Recorded { step: index, key: spec.key(self.cell), title: step.title(), text });
    }

    /// How much every session has seen so far.
    fn marks(&self) -> Vec<usize> {
        self.servers.iter().map(|live| live.session.as_ref().map_or(0, |session| session.tap().len())).collect()
    }

    fn trace(&self, marks: &[usize]) -> Vec<TraceLine> {
        let mut lines = Vec::new();
        for (live, from) in self.servers.iter().zip(marks) {
            for frame in live.session.iter().flat_map(|session| session.tap().since(*from)).take(TRACE_LINES) {
                let text = String::from_utf8_lossy(&frame.bytes);
                let frame_text = match text.char_indices().nth(TRACE_WIDTH) {
                    Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], frame.bytes.len()),
                    None => text.into_owned(),
                };
                let server = live.config.name.clone();
                lines.push(TraceLine { server, direction: frame.direction, at: frame.at, frame: frame_text });
            }
        }
        lines
    }
}

async fn within(limit: Duration, listing: impl Future<Output = Result<Listing, Failure>>) -> Result<Listing, Failure> {
    tokio::time::timeout(limit, listing).await.unwrap_or(Err(Failure::Timeout(limit)))
}

fn observed(result: Result<Json, Failure>) -> Observation {
    match result {
        Ok(result) => Observation::result(result),
        Err(failure) => Observation::failure(&failure),
    }
}

fn observed_raw(result: Result<Box<serde_json::value::RawValue>, Failure>) -> Observation {
    observed(result.map(|raw| without_envelope(serde_json::from_str(raw.get()).unwrap_or_default())))
}
