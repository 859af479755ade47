//! Calls the tools, and finds the smallest input of each bug.

use std::{collections::HashSet, time::Duration};

use serde_json::Value as Json;
use tokio::{sync::mpsc::UnboundedSender, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    input::{Inputs, inputs, members},
    oracle::{Expected, Wrong, judge},
    shrink::smaller,
};
use rehearse_client::{
    CallOptions, ClientRecorder, ConnectError, ConnectOptions, Failure, ServerParams, Session, ToolOutcome,
    ToolPermission,
};
use rehearse_document::json_schema::{self, Validator};
use rehearse_protocol::Protocol;
use rehearse_report::fuzz::{FuzzBug, FuzzedTool, Oracle};

/// How long a call may take at least before it counts as a hang.
const SHORTEST_LIMIT: Duration = Duration::from_secs(2);
/// How long a call may take before a usual one was answered; then it is no hang, because all may be slow.
const FIRST_LIMIT: Duration = Duration::from_secs(10);
/// After how many calls without an answer a tool gets no more of them.
const MOST_UNANSWERED: usize = 10;
/// How many times the usual time a call may take.
const FACTOR: u32 = 50;
/// How many calls one shrinking may take: of what is answered at once, and of what ends the connection or hangs.
const SHRINKS: usize = 600;
const SLOW_SHRINKS: usize = 60;
/// How many times as long a hang may take when it is confirmed.
const PATIENCE: u32 = 3;
/// How long one shrinking may take.
const LONGEST_SHRINK: Duration = Duration::from_secs(20);
/// How many calls of a tool are made before the next tool has its turn.
const TURN: usize = 50;
/// How many events of a connection are kept.
const EVENTS: usize = 500;
/// How many bugs of one tool are kept.
const MOST_BUGS: usize = 20;
/// How often a server may fail to start again.
const MOST_STARTS: usize = 3;

/// What is fuzzed, and for how long.
#[derive(Clone, Debug)]
pub struct FuzzOptions {
    /// Which tools may be called, and with which arguments they are known to work.
    pub tools: ToolPermission,
    /// The seed of the random inputs.
    pub seed: u64,
    /// How long the run may take.
    pub budget: Duration,
    /// How many inputs each tool gets at most.
    pub cases: Option<usize>,
    /// Whether texts are sent that programs often mishandle.
    pub is_hostile: bool,
    /// The version that the client asks for.
    pub protocol: Protocol,
    /// Gets the progress.
    pub events: Option<UnboundedSender<FuzzEvent>>,
    /// Ends the run.
    pub stop: CancellationToken,
}

/// The progress of a run.
#[derive(Clone, Debug)]
pub enum FuzzEvent {
    /// So many inputs were sent in all.
    Sent(usize),
    /// A bug was found.
    Found(Oracle, String),
}

/// What has come of a run.
#[derive(Debug)]
pub struct FuzzRun {
    /// The name and version that the server gives itself.
    pub server: Option<String>,
    /// The version that was negotiated.
    pub version: String,
    /// Each tool.
    pub tools: Vec<FuzzedTool>,
    /// The bugs, worst first.
    pub bugs: Vec<FuzzBug>,
    /// How many inputs were sent, without those of shrinking.
    pub cases: usize,
    /// Why the run ended before its time.
    pub error: Option<String>,
}

/// A tool that would be called.
#[derive(Debug)]
pub struct PlannedTool {
    /// Its name.
    pub name: String,
    /// Its input schema.
    pub schema: Json,
    /// Why it is not called.
    pub reason: Option<&'static str>,
}

/// The tools of a server, and which of them may be called.
///
/// # Errors
/// The server cannot be reached, or does not list its tools.
pub async fn plan(params: &ServerParams, options: &FuzzOptions) -> Result<Vec<PlannedTool>, String> {
    let session = connect(params, options).await.map_err(|error| error.to_string())?;
    let definitions = list(&session).await;
    session.close().await;
    Ok(definitions?.iter().map(|definition| planned(definition, options)).collect())
}

fn planned(definition: &Json, options: &FuzzOptions) -> PlannedTool {
    let is_open = definition["annotations"]["openWorldHint"] == true;
    let why = if is_open { "it is annotated with openWorldHint" } else { "it is not annotated with readOnlyHint" };
    let reason = (!options.tools.allows(definition)).then_some(why);
    PlannedTool { name: name(definition), schema: definition["inputSchema"].clone(), reason }
}

/// Opens a session that keeps only the latest events, because a run has many.
async fn connect(params: &ServerParams, options: &FuzzOptions) -> Result<Session, ConnectError> {
    let kept = ConnectOptions { recorder: ClientRecorder::with_limit(EVENTS), ..ConnectOptions::default() };
    Session::connect_with(params, options.protocol, kept).await
}

async fn list(session: &Session) -> Result<Vec<Json>, String> {
    let listing = session.list_tools(CallOptions::default()).await;
    let listing = listing.map_err(|failure| format!("its tools cannot be listed: {failure}"))?;
    Ok(listing.items.iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect())
}

fn name(definition: &Json) -> String {
    definition["name"].as_str().unwrap_or_default().to_owned()
}

/// Fuzzes the tools of a server. A server that ends is started again.
///
/// # Errors
/// The server cannot be reached, or does not list its tools.
pub async fn fuzz(params: &ServerParams, options: &FuzzOptions) -> Result<FuzzRun, String> {
    let session = connect(params, options).await.map_err(|error| error.to_string())?;
    let definitions = list(&session).await?;
    let info = session.info();
    let own = info.server_info.as_ref().and_then(|it| serde_json::from_str::<Json>(it.get()).ok()).unwrap_or_default();
    let own_name = own["name"].as_str().map(|name| format!("{name} {}", own["version"].as_str().unwrap_or_default()));
    let (server, version) = (own_name, info.version.to_string());
    let mut target = Target { params, options, session: Some(session), failed_starts: 0 };
    let mut run = FuzzRun { server, version, tools: Vec::new(), bugs: Vec::new(), cases: 0, error: None };
    let ends = Instant::now() + options.budget;
    let mut tools: Vec<_> = definitions.iter().map(|definition| Tool::new(definition, options)).collect();
    while !tools.iter().all(Tool::is_done) && Instant::now() < ends && !options.stop.is_cancelled() {
        for tool in tools.iter_mut().filter(|tool| !tool.is_done()) {
            for _ in 0..TURN {
                if tool.is_done() || Instant::now() >= ends || options.stop.is_cancelled() {
                    break;
                }
                run.cases += 1;
                let Some(found) = tool.next(&mut target).await else { continue };
                options.send(FuzzEvent::Found(found.oracle, found.tool.clone()));
                run.bugs.push(found);
            }
            options.send(FuzzEvent::Sent(run.cases));
            if target.is_gone() {
                run.error = Some("the server does not start any more".to_owned());
                break;
            }
        }
        if run.error.is_some() {
            break;
        }
    }
    run.tools = tools.into_iter().map(Tool::finish).collect();
    run.bugs.sort_by(|one, other| (one.oracle, &one.tool).cmp(&(other.oracle, &other.tool)));
    target.close().await;
    Ok(run)
}

impl FuzzOptions {
    fn send(&self, event: FuzzEvent) {
        if let Some(events) = &self.events {
            // The receiver may be gone.
            let _ = events.send(event);
        }
    }
}

/// The server, which is started again when it has ended.
struct Target<'t> {
    params: &'t ServerParams,
    options: &'t FuzzOptions,
    session: Option<Session>,
    failed_starts: usize,
}

impl Target<'_> {
    fn is_gone(&self) -> bool {
        self.failed_starts >= MOST_STARTS
    }

    /// Calls a tool over a connection that is open. `None` if there is none any more. After a call without an answer the
    /// next one has a new connection.
    async fn call(&mut self, tool: &str, arguments: &Json, limit: Duration) -> Option<Result<ToolOutcome, Failure>> {
        if self.session.as_ref().is_none_or(Session::is_lost) {
            self.restart().await.ok()?;
        }
        let session = self.session.as_ref()?;
        let outcome = session.call_tool(tool, Some(members(arguments)), CallOptions::with_timeout(limit)).await;
        if matches!(outcome, Err(Failure::Disconnected { .. } | Failure::Timeout(_))) {
            self.close().await;
        }
        Some(outcome)
    }

    async fn close(&mut self) {
        if let Some(session) = self.session.take() {
            // A server that is busy gets no time to end by itself.
            session.set_overdue(true);
            session.close().await;
        }
    }

    /// Opens a new connection.
    async fn restart(&mut self) -> Result<(), ConnectError> {
        self.close().await;
        let opened = connect(self.params, self.options).await;
        self.failed_starts = if opened.is_ok() { 0 } else { self.failed_starts + 1 };
        self.session = Some(opened?);
        Ok(())
    }
}

/// A tool with its inputs.
struct Tool<'t> {
    name: String,
    inputs: Option<Inputs<'t>>,
    output: Option<Validator>,
    reason: Option<&'static str>,
    /// Arguments that were answered at once, and how long the slowest of the usual calls took.
    good: Option<Json>,
    usual: Duration,
    known: HashSet<(Oracle, String)>,
    accepted: usize,
    refused: usize,
    cases: usize,
    /// How many calls had no answer.
    unanswered: usize,
    most: usize,
}

impl<'t> Tool<'t> {
    fn new(definition: &'t Json, options: &FuzzOptions) -> Tool<'t> {
        let planned = planned(definition, options);
        let example = options.tools.arguments.iter().find(|(tool, _)| *tool == planned.name).map(|(_, it)| it);
        let inputs = || inputs(&definition["inputSchema"], example, options.seed, options.is_hostile);
        Tool {
            inputs: planned.reason.is_none().then(inputs),
            name: planned.name,
            output: definition.get("outputSchema").and_then(|schema| json_schema::compile(schema).ok()),
            reason: planned.reason,
            good: None,
            usual: Duration::ZERO,
            known: HashSet::new(),
            accepted: 0,
            refused: 0,
            cases: 0,
            unanswered: 0,
            most: options.cases.unwrap_or(usize::MAX),
        }
    }

    fn is_done(&self) -> bool {
        self.inputs.is_none()
            || self.cases >= self.most
            || self.known.len() >= MOST_BUGS
            || self.unanswered >= MOST_UNANSWERED
    }

    /// How long a call may take. Before the usual time is known, only the patience of the client counts.
    fn limit(&self) -> Duration {
        if self.good.is_some() { (self.usual * FACTOR).max(SHORTEST_LIMIT) } else { FIRST_LIMIT }
    }

    /// What is wrong with the outcome of these arguments.
    fn judge(&self, arguments: &Json, outcome: &Result<ToolOutcome, Failure>, limit: Duration) -> Option<Wrong> {
        let is_valid = self.inputs.as_ref().and_then(|inputs| inputs.is_valid(arguments));
        let sent = arguments.to_string();
        let wrong = judge(outcome, &Expected { is_valid, output: self.output.as_ref(), limit, sent: &sent });
        wrong.filter(|wrong| wrong.oracle != Oracle::Hang || self.good.is_some())
    }

    /// Sends the next input. Returns the bug that it has shown, if it is a new one and happens again.
    async fn next(&mut self, target: &mut Target<'_>) -> Option<FuzzBug> {
        let (kind, arguments) = self.inputs.as_mut()?.next()?;
        self.cases += 1;
        let (limit, begun) = (self.limit(), Instant::now());
        let outcome = target.call(&self.name, &arguments, limit).await?;
        let took = begun.elapsed();
        self.unanswered += usize::from(matches!(outcome, Err(Failure::Disconnected { .. } | Failure::Timeout(_))));
        let is_valid = self.inputs.as_ref().and_then(|inputs| inputs.is_valid(&arguments)) != Some(false);
        match &outcome {
            Ok(outcome) if is_valid && !outcome.is_error => {
                self.accepted += 1;
                self.usual = self.usual.max(took);
                self.good.get_or_insert_with(|| arguments.clone());
            }
            _ if is_valid => self.refused += 1,
            _ => {}
        }
        let wrong = self.judge(&arguments, &outcome, limit)?;
        if !self.known.insert((wrong.oracle, wrong.shape.clone())) {
            return None;
        }
        let is_slow = matches!(wrong.oracle, Oracle::Crash | Oracle::Hang);
        // What does not happen again on a new connection is no bug that anyone could find.
        let again = self.again(target, &arguments, &wrong, limit).await?;
        let (arguments, wrong) = self.shrink(target, arguments, again, is_slow, limit).await;
        let is_valid = self.inputs.as_ref().and_then(|inputs| inputs.is_valid(&arguments));
        Some(FuzzBug {
            oracle: wrong.oracle,
            tool: self.name.clone(),
            arguments,
            message: wrong.message,
            is_valid,
            kind,
        })
    }

    /// Sends the arguments on a new connection, and a call that is known to work before a hang. `None` if it is not wrong
    /// in the same way.
    async fn again(&self, target: &mut Target<'_>, arguments: &Json, wrong: &Wrong, limit: Duration) -> Option<Wrong> {
        target.restart().await.ok()?;
        // A machine that was busy for a moment makes no hang.
        let limit = if wrong.oracle == Oracle::Hang { limit * PATIENCE } else { limit };
        if let (Oracle::Hang, Some(good)) = (wrong.oracle, &self.good) {
            target.call(&self.name, good, limit).await?.ok()?;
        }
        let outcome = target.call(&self.name, arguments, limit).await?;
        let again = self.judge(arguments, &outcome, limit);
        again.filter(|again| again.oracle == wrong.oracle)
    }

    /// The smallest arguments that are wrong in the same way.
    async fn shrink(
        &mut self,
        target: &mut Target<'_>,
        mut arguments: Json,
        mut wrong: Wrong,
        is_slow: bool,
        limit: Duration,
    ) -> (Json, Wrong) {
        let mut left = if is_slow { SLOW_SHRINKS } else { SHRINKS };
        let is_valid = |tool: &Self, it: &Json| tool.inputs.as_ref().and_then(|inputs| inputs.is_valid(it));
        let (was_valid, begun) = (is_valid(self, &arguments), Instant::now());
        'smaller: loop {
            for candidate in smaller(&arguments) {
                // A smaller input of another kind is another bug.
                if is_valid(self, &candidate) != was_valid {
                    continue;
                }
                if left == 0 || begun.elapsed() > LONGEST_SHRINK || target.options.stop.is_cancelled() {
                    break 'smaller;
                }
                left -= 1;
                let Some(outcome) = target.call(&self.name, &candidate, limit).await else { break 'smaller };
                let found = self.judge(&candidate, &outcome, limit);
                if let Some(found) = found.filter(|found| found.oracle == wrong.oracle) {
                    self.known.insert((found.oracle, found.shape.clone()));
                    (arguments, wrong) = (candidate, found);
                    continue 'smaller;
                }
            }
            break;
        }
        (arguments, wrong)
    }

    fn finish(self) -> FuzzedTool {
        let reason = match self.reason {
            Some(reason) => Some(reason.to_owned()),
            None if self.cases == 0 => Some("the time was over before its turn".to_owned()),
            None if self.accepted == 0 && self.unanswered > 0 => Some("it answered no valid input in time".to_owned()),
            None if self.accepted == 0 => {
                Some("it refused every valid input; --tool-args NAME=JSON names one that works".to_owned())
            }
            None if self.unanswered >= MOST_UNANSWERED => {
                Some(format!("{MOST_UNANSWERED} calls had no answer, so it got no more of them"))
            }
            None => None,
        };
        let Tool { name, cases, accepted, refused, .. } = self;
        FuzzedTool { name, cases, accepted, refused, reason }
    }
}
