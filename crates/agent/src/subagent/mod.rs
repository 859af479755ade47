//! A subagent as an MCP server: one tool, and each call of it is a run of the agent.
//!
//! ```text
//! tools/call {prompt, inputs} ──> Subagent ──> Hub (fresh) ──> Agent::run ──> answer ──> result
//!          ^                                                      │
//!          └── notifications/message, notifications/progress <── events
//! ```
//!
//! A run has its own connections to the servers of the config. It runs in its own task, so that it can clean up when the
//! client cancels the call or goes away: the model's request is dropped, the servers' requests are cancelled, and the
//! servers are stopped.

mod arguments;
mod notifications;

use std::{sync::Arc, time::Duration};

use serde_json::{json, value::RawValue};
use tokio::sync::{Semaphore, broadcast::error::RecvError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{arguments::RunArguments, notifications::CallNotifications};
use crate::{
    Agent, AgentError, AgentOptions, CodeMode, Conversation, EventSink, NativeTool, Run, RunLabel,
    inputs::{self, InputSources},
    setup::AgentSetup,
};
use rehearse_document::Diagnostics;
use rehearse_hub::{Event, Hub, HubOptions, HubServer, Notice};
use rehearse_llm::{final_answer::AnswerSchema, model::Block};
use rehearse_mock::{HandlerCall, MockServer, MockServerBuilder, Tool};

/// What a subagent is.
#[derive(Clone)]
pub struct SubagentSpec {
    /// The name of the tool.
    pub name: String,
    /// The description of the tool.
    pub description: String,
    /// The schema of the answer.
    pub answer: Option<Arc<AnswerSchema>>,
    /// Makes the model and the options of each run.
    pub setup: MakeSetup,
    pub native_tools: Vec<NativeTool>,
    /// Programs call the tools of the servers, not the model itself.
    pub code_mode: Option<CodeMode>,
    /// The servers of each run.
    pub servers: Vec<HubServer>,
    pub hub: HubOptions,
    /// The time limit of a run.
    pub timeout: Option<Duration>,
    /// The inputs that a caller may name.
    pub inputs: InputSources,
    /// How many runs there may be at once; a further call is refused.
    pub max_runs: usize,
    /// Get the events of all runs.
    pub sinks: Vec<Arc<dyn EventSink>>,
    /// Whether the tool says that it has the argument `runId`, with which callers name the run.
    pub takes_run_id: bool,
}

/// Makes the parts of an agent, or returns those that were made at the start.
pub type MakeSetup = Arc<dyn Fn() -> Result<AgentSetup, Diagnostics> + Send + Sync>;

/// A subagent that is served.
pub struct Subagent {
    spec: SubagentSpec,
    runs: TaskTracker,
    free: Arc<Semaphore>,
    stop: CancellationToken,
}

/// Why a run failed, as the caller reads it.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("{0}")]
    Argument(String),
    #[error("{0}")]
    Setup(Diagnostics),
    #[error("failed to read input files [{}]: {error}", .inputs.join(" "))]
    Inputs { inputs: Vec<String>, error: inputs::InputError },
    #[error("execution cancelled or timed out: subagent {name:?} had {limit:?}")]
    TimedOut { name: String, limit: Duration },
    #[error("execution cancelled or timed out: {0}")]
    Cancelled(AgentError),
    #[error("subagent {name:?} execution failed: {error}")]
    Failed { name: String, error: AgentError },
    /// The text of the answer's error is part of the format.
    #[error("{0}")]
    Answer(AgentError),
}

impl Subagent {
    pub fn new(spec: SubagentSpec) -> Arc<Subagent> {
        let free = Arc::new(Semaphore::new(spec.max_runs.min(Semaphore::MAX_PERMITS)));
        Arc::new(Subagent { spec, runs: TaskTracker::new(), free, stop: CancellationToken::new() })
    }

    /// The name of the tool.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The server with its one tool, ready to be served over any transport.
    pub fn server(self: &Arc<Self>) -> MockServerBuilder {
        let spec = &self.spec;
        // A run checks its arguments, because it takes more than the schema lists.
        let mut tool = Tool::new(&spec.name)
            .description(&spec.description)
            .input_schema(arguments::input_schema(spec.takes_run_id))
            .set("unchecked", true);
        if let Some(answer) = &spec.answer {
            tool = tool.set("outputSchema", answer.json().clone());
        }
        let this = self.clone();
        let tool = tool.handle(move |call| {
            let this = this.clone();
            async move { Ok::<_, rehearse_protocol::RpcError>(this.answer(call).await) }
        });
        let server = json!({ "name": "cpe", "title": "CPE MCP Server", "version": env!("CARGO_PKG_VERSION") });
        MockServer::builder()
            .set("server", server)
            .set("capabilities", json!({ "tools": {}, "logging": {} }))
            .tool(tool)
            .verify_on_drop(false)
    }

    /// Cancels all runs and waits until their servers are stopped.
    pub async fn close(&self) {
        self.stop.cancel();
        self.runs.close();
        self.runs.wait().await;
    }

    /// The result of a call. Dropping the future cancels the run, which then cleans up by itself.
    async fn answer(self: Arc<Self>, call: HandlerCall) -> Box<RawValue> {
        let Ok(place) = self.free.clone().try_acquire_owned() else {
            let runs = match self.spec.max_runs {
                1 => "1 run is".to_owned(),
                count => format!("{count} runs are"),
            };
            return tool_error(&format!(
                "Subagent execution failed: {runs} in progress, which is as many as the server allows"
            ));
        };
        let cancel = self.stop.child_token();
        let _cancelled_on_drop = cancel.clone().drop_guard();
        let this = self.clone();
        let run = self.runs.spawn(async move {
            let _place = place;
            Box::pin(this.run(call, &cancel)).await
        });
        match run.await {
            Ok(Ok(run)) => run.answer.to_tool_result(),
            Ok(Err(error)) => tool_error(&format!("Subagent execution failed: {error}")),
            Err(panic) => {
                let panic = panic.try_into_panic().ok();
                let text = panic.as_ref().and_then(|panic| {
                    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                    text.or_else(|| panic.downcast_ref::<String>().cloned())
                });
                tool_error(&format!("Subagent execution panicked: {}", text.unwrap_or_default()))
            }
        }
    }

    async fn run(&self, call: HandlerCall, cancel: &CancellationToken) -> Result<Run, RunError> {
        let spec = &self.spec;
        let arguments = RunArguments::read(call.arguments()).map_err(RunError::Argument)?;
        let label = RunLabel {
            agent: spec.name.strip_suffix("-subagent").unwrap_or(&spec.name).into(),
            run_id: arguments.run_id.clone().unwrap_or_else(new_run_id).into(),
        };
        let read = inputs::read_all(&arguments.inputs, &spec.inputs);
        let read = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(RunError::Cancelled(AgentError::Cancelled)),
            read = read => read,
        };
        let read = read.map_err(|error| RunError::Inputs { inputs: arguments.inputs.clone(), error })?;
        let mut prompt = vec![Block::text(arguments.prompt)];
        prompt.extend(read);
        let AgentSetup { model, options } = (spec.setup)().map_err(RunError::Setup)?;
        let hub = Hub::new(spec.servers.clone(), spec.hub.clone());
        let options = AgentOptions { answer: spec.answer.clone(), ..options };
        let mut agent = Agent::new(model, hub.clone(), options);
        for tool in &spec.native_tools {
            agent = agent.with_tool(tool.clone());
        }
        let notifications = Arc::new(CallNotifications::new(call, &spec.name));
        agent = agent.with_sink(notifications);
        for sink in &spec.sinks {
            agent = agent.with_sink(sink.clone());
        }
        let cancel = cancel.child_token();
        let mut run = Box::pin(run_in(spec, agent, &label, prompt, &cancel));
        let limit = spec.timeout.unwrap_or(Duration::MAX);
        let done = match tokio::time::timeout(limit, &mut run).await {
            Ok(done) => done.map_err(|error| match error {
                error @ AgentError::Cancelled => RunError::Cancelled(error),
                error @ AgentError::Answer(_) => RunError::Answer(error),
                error => RunError::Failed { name: spec.name.clone(), error },
            }),
            Err(_) => {
                cancel.cancel();
                // It reports its end.
                let _ = run.await;
                Err(RunError::TimedOut { name: spec.name.clone(), limit })
            }
        };
        hub.close().await;
        done
    }
}

/// Connects to the servers and runs the agent.
async fn run_in(
    spec: &SubagentSpec,
    agent: Agent,
    label: &RunLabel,
    prompt: Vec<Block>,
    cancel: &CancellationToken,
) -> Result<Run, AgentError> {
    match connect(spec, agent.clone(), label, cancel).await {
        Ok(agent) => {
            let mut events = agent.hub().events();
            let report_rerouted = async {
                loop {
                    match events.recv().await {
                        Ok(Event::Rerouted(rerouted)) => agent.warn(label, &rerouted.to_string()).await,
                        Err(RecvError::Closed) => std::future::pending().await,
                        Ok(_) | Err(RecvError::Lagged(_)) => {}
                    }
                }
            };
            let mut conversation = Conversation::default();
            tokio::select! {
                biased;
                never = report_rerouted => never,
                done = agent.run(&mut conversation, prompt, label, cancel, None) => done,
            }
        }
        Err(error) => {
            agent.report_failure(label, prompt, &error).await;
            Err(error)
        }
    }
}

/// The agent with its tools.
async fn connect(
    spec: &SubagentSpec,
    mut agent: Agent,
    label: &RunLabel,
    cancel: &CancellationToken,
) -> Result<Agent, AgentError> {
    let discovered = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(AgentError::Cancelled),
        discovered = agent.hub().discover() => discovered.map_err(AgentError::Hub),
    };
    let discovery = discovered?;
    if let Some(failure) = discovery.total_failure() {
        return Err(AgentError::Tools(failure));
    }
    if let Some(code_mode) = &spec.code_mode {
        agent = code_mode.apply(agent, &spec.servers, &spec.hub)?;
    }
    let mut warnings: Vec<_> = discovery
        .unreachable
        .iter()
        .map(|(server, error)| format!("MCP server '{server}' unavailable: {error}"))
        .collect();
    warnings.extend(discovery.listing_failures());
    let notices = discovery.registry.notices.iter().filter(|notice| !matches!(notice, Notice::Filtered { .. }));
    warnings.extend(notices.map(ToString::to_string));
    warnings.extend(agent.toolbox().dropped().iter().map(|tool| {
        format!(
            "skipping MCP tool name '{}' in server '{}' (a tool of the agent has that name)",
            tool.name, tool.server
        )
    }));
    for warning in &warnings {
        agent.warn(label, warning).await;
    }
    Ok(agent)
}

/// The result of a tool that failed.
fn tool_error(text: &str) -> Box<RawValue> {
    let result = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    serde_json::value::to_raw_value(&result).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Eight random letters and digits.
fn new_run_id() -> String {
    use rand::RngExt as _;
    let mut random = rand::rng();
    (0..8).map(|_| char::from(random.sample(rand::distr::Alphanumeric))).collect()
}
