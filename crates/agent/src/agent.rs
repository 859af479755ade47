//! The turn loop.

use std::{fmt, ops::AddAssign, sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use rehearse_hub::{Hub, projection::Projection};
use rehearse_llm::{
    final_answer::{Answer, AnswerError, AnswerSchema, extract},
    model::{
        Block, DeltaSink, GenerationOptions, Message, Model, Request, Response, StopReason, ToolCall, ToolResult, Usage,
    },
    xml::system_prompt,
};

use crate::{
    AgentError, Conversation, Event, EventSink, NativeTool, RunLabel, ToolFormat, ToolKind, Toolbox, code_mode,
    tool_format::{Requests, dialog_of},
};

/// How long cancelled tools may take to end.
const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// A model with its tools.
///
/// ```
/// use std::sync::Arc;
/// use rehearse_agent::{Agent, AgentOptions, Conversation, RunLabel};
/// use rehearse_document::Source;
/// use rehearse_hub::{Hub, HubOptions};
/// use rehearse_llm::model::{Block, Model, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = ScriptedModel::parse(&Source::new("model.yaml", "rules: [{ reply: Hello. }]"))?;
/// let hub = Hub::new([], HubOptions::default());
/// let agent = Agent::new(Arc::new(Model::Scripted(script)), hub, AgentOptions::default());
/// let label = RunLabel { agent: "greeter".into(), run_id: "1".into() };
/// let mut conversation = Conversation::default();
/// let run = agent.run(&mut conversation, vec![Block::text("Hi")], &label, &Default::default(), None).await?;
/// assert_eq!(run.answer.text, "Hello.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Agent {
    model: Arc<Model>,
    hub: Hub,
    native: Vec<NativeTool>,
    options: AgentOptions,
    sinks: Vec<Arc<dyn EventSink>>,
}

/// How an agent runs.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// The system prompt.
    pub system: Option<String>,
    /// How the model answers.
    pub generation: GenerationOptions,
    /// How often the model may answer in one run.
    pub max_turns: u32,
    /// How many tokens one run may take, input and output.
    pub max_tokens: Option<u64>,
    /// How many tokens one request may have, by an estimate: the oldest results of tools are shortened first. Results that a
    /// model without tool calls gets as messages of the user stay.
    pub max_context: Option<u64>,
    /// The order of the tool calls of one turn.
    pub order: CallOrder,
    /// The form of tool results for the model; `None` is that of the client that the server is configured for.
    pub projection: Option<Projection>,
    /// The schema of the answer: the model gets the tool `final_answer`, and a run ends with a call of it.
    pub answer: Option<Arc<AnswerSchema>>,
    /// How many wrong answers the model may correct.
    pub answer_retries: u32,
    /// The MCP tools that the model does not get, by their registered names.
    pub hidden: Vec<String>,
    /// How the model calls tools.
    pub format: ToolFormat,
}

/// The order of the tool calls of one turn. Results are always in the order of the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallOrder {
    /// One after another.
    #[default]
    Sequential,
    /// All at once.
    Parallel,
}

/// A run that ended with an answer.
#[derive(Clone, Debug)]
pub struct Run {
    pub answer: Answer,
    pub statistics: RunStatistics,
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStatistics {
    /// Answers of the model.
    pub turns: u32,
    pub tool_calls: u32,
    /// Tool calls with an error.
    pub failed_calls: u32,
    pub usage: Usage,
    pub time: Duration,
}

impl AddAssign for RunStatistics {
    fn add_assign(&mut self, other: RunStatistics) {
        self.turns += other.turns;
        self.tool_calls += other.tool_calls;
        self.failed_calls += other.failed_calls;
        self.usage += other.usage;
        self.time += other.time;
    }
}

/// Such as `2 turns, 1 tool call (1 failed), 120 + 30 tokens, 1.5 s`.
impl fmt::Display for RunStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunStatistics { turns, tool_calls, failed_calls, usage, time } = self;
        let plural = |count: u32| if count == 1 { "" } else { "s" };
        write!(f, "{turns} turn{}, {tool_calls} tool call{}", plural(*turns), plural(*tool_calls))?;
        if *failed_calls > 0 {
            write!(f, " ({failed_calls} failed)")?;
        }
        write!(
            f,
            ", {} input and {} output tokens, {:.1} s",
            usage.input_tokens,
            usage.output_tokens,
            time.as_secs_f64()
        )
    }
}

impl Default for AgentOptions {
    fn default() -> Self {
        AgentOptions {
            system: None,
            generation: GenerationOptions::default(),
            max_turns: 100,
            max_tokens: None,
            max_context: None,
            order: CallOrder::Sequential,
            projection: None,
            answer: None,
            answer_retries: 0,
            hidden: Vec::new(),
            format: ToolFormat::Native,
        }
    }
}

impl Agent {
    /// An agent without native tools and event sinks.
    pub fn new(model: Arc<Model>, hub: Hub, options: AgentOptions) -> Agent {
        Agent { model, hub, native: Vec::new(), options, sinks: Vec::new() }
    }

    /// Adds a native tool. It wins over an MCP tool of the same name.
    #[must_use]
    pub fn with_tool(mut self, tool: NativeTool) -> Agent {
        self.native.push(tool);
        self
    }

    /// Adds a sink for the events of all runs.
    #[must_use]
    pub fn with_sink(mut self, sink: Arc<dyn EventSink>) -> Agent {
        self.sinks.push(sink);
        self
    }

    /// Hides MCP tools from the model, by their registered names.
    #[must_use]
    pub fn without_tools(mut self, names: impl IntoIterator<Item = String>) -> Agent {
        self.options.hidden.extend(names);
        self
    }

    /// The servers of the agent.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    pub fn options(&self) -> &AgentOptions {
        &self.options
    }

    /// The tools as the model gets them now.
    pub fn toolbox(&self) -> Toolbox {
        let is_offered = |tool: &rehearse_hub::RegisteredTool| !self.options.hidden.contains(&tool.name);
        Toolbox::new(&self.native, &self.hub, is_offered, self.options.answer.as_deref())
    }

    /// Reports something that went wrong before a run.
    pub(crate) async fn warn(&self, label: &RunLabel, text: &str) {
        for sink in &self.sinks {
            // A warning ends nothing.
            let _ = sink.emit(label, Event::Warning(text)).await;
        }
    }

    /// Reports a run that failed before the model was asked. That error counts more than one of an event.
    pub(crate) async fn report_failure(&self, label: &RunLabel, prompt: Vec<Block>, error: &AgentError) {
        let (cancel, statistics) = (&CancellationToken::new(), RunStatistics::default());
        let turns = Turns { agent: self, label, cancel, statistics };
        let _ = turns.emit(Event::Started).await;
        let _ = turns.add(&mut Conversation::default(), Message::User { content: prompt }).await;
        let _ = turns.emit(Event::Ended { error: Some(&error.to_string()), statistics }).await;
    }

    /// Adds the prompt to the conversation and lets the model work until it has an answer. The hub must have discovered its
    /// tools. Whatever ends the run, the conversation has everything up to there.
    ///
    /// With `deltas`, the model streams.
    ///
    /// # Errors
    /// [`AgentError`]. An error of a tool is none: it goes back to the model.
    pub async fn run(
        &self,
        conversation: &mut Conversation,
        prompt: Vec<Block>,
        label: &RunLabel,
        cancel: &CancellationToken,
        deltas: Option<DeltaSink<'_>>,
    ) -> Result<Run, AgentError> {
        let started = Instant::now();
        let mut turns = Turns { agent: self, label, cancel, statistics: RunStatistics::default() };
        let done = match turns.emit(Event::Started).await {
            Ok(()) => Box::pin(turns.run(conversation, prompt, deltas)).await,
            Err(error) => Err(error),
        };
        let error = done.as_ref().err().map(ToString::to_string);
        turns.statistics.time = started.elapsed();
        let ended = Event::Ended { error: error.as_deref(), statistics: turns.statistics };
        if let Err(error) = turns.emit(ended).await {
            // The answer counts more than the event.
            let _ = turns.emit(Event::Warning(&error.to_string())).await;
        }
        done.map(|answer| Run { answer, statistics: turns.statistics })
    }
}

/// A run in progress.
struct Turns<'a> {
    agent: &'a Agent,
    label: &'a RunLabel,
    cancel: &'a CancellationToken,
    statistics: RunStatistics,
}

impl Turns<'_> {
    async fn run(
        &mut self,
        conversation: &mut Conversation,
        prompt: Vec<Block>,
        deltas: Option<DeltaSink<'_>>,
    ) -> Result<Answer, AgentError> {
        let options = &self.agent.options;
        if prompt.is_empty() {
            return Err(AgentError::EmptyInput);
        }
        for result in conversation.fill_gaps() {
            self.add(conversation, Message::ToolResult(result)).await?;
        }
        let start = conversation.messages.len();
        self.add(conversation, Message::User { content: prompt }).await?;
        let mut retries = options.answer_retries;
        while self.statistics.turns < options.max_turns {
            let toolbox = self.agent.toolbox();
            self.fit(conversation, &toolbox).await?;
            let response = self.generate(conversation, &toolbox, deltas).await?;
            if response.content.is_empty() {
                return Err(AgentError::EmptyResponse);
            }
            self.report(&response.content).await?;
            if response.stop == StopReason::MaxTokens {
                self.emit(Event::Warning("the answer of the model is cut off at its limit of tokens")).await?;
            }
            let message = Message::Assistant { content: response.content };
            let Requests { calls, errors } = options.format.requests(&message, &toolbox, self.statistics.tool_calls);
            let latest = dialog_of(&message, &calls);
            self.add(conversation, message).await?;
            let final_call = calls.iter().position(|call| toolbox.kind(&call.name) == Some(ToolKind::FinalAnswer));
            let (executed, rest) = calls.split_at(final_call.unwrap_or(calls.len()));
            let goes_on = final_call.is_none() && !(executed.is_empty() && errors.is_empty());
            self.call(conversation, &toolbox, executed, errors).await?;
            if goes_on {
                self.check_budget()?;
                continue;
            }
            // A structured answer is in the latest message; the last text may be in an earlier one.
            let dialog = if options.answer.is_some() { latest } else { conversation.dialog_from(start) };
            match extract(&dialog, options.answer.as_deref()) {
                Ok(answer) => return Ok(answer),
                Err(AnswerError::NoText { .. }) => return Ok(Answer::empty()),
                Err(error) if retries == 0 => return Err(error.into()),
                Err(error) => {
                    retries -= 1;
                    self.reject(conversation, rest, &error.to_string()).await?;
                }
            }
            self.check_budget()?;
        }
        Err(AgentError::TurnLimit(options.max_turns))
    }

    /// Shortens a conversation that is too long for the model.
    async fn fit(&self, conversation: &mut Conversation, toolbox: &Toolbox) -> Result<(), AgentError> {
        let options = &self.agent.options;
        let Some(limit) = options.max_context else { return Ok(()) };
        let text = match conversation.fit(limit, options.system.as_deref(), &toolbox.definitions()) {
            0 => return Ok(()),
            1 => "the oldest result of a tool was shortened".to_owned(),
            count => format!("the {count} oldest results of tools were shortened"),
        };
        self.emit(Event::Warning(&format!("{text}, to fit {limit} tokens of context"))).await
    }

    /// Asks the model for its next message.
    async fn generate(
        &mut self,
        conversation: &Conversation,
        toolbox: &Toolbox,
        deltas: Option<DeltaSink<'_>>,
    ) -> Result<Response, AgentError> {
        let options = &self.agent.options;
        let definitions = toolbox.definitions();
        let described;
        let (system, tools) = match options.format {
            ToolFormat::Native => (options.system.as_deref(), &definitions[..]),
            ToolFormat::Xml(xml) => {
                described = system_prompt(options.system.as_deref().unwrap_or_default(), &[], &definitions, &xml);
                (Some(described.as_str()), &[][..])
            }
        };
        let request = Request { system, messages: &conversation.messages, tools, options: &options.generation };
        let response = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(AgentError::Cancelled),
            response = self.agent.model.generate(&request, deltas) => response?,
        };
        self.statistics.turns += 1;
        self.statistics.usage += response.usage;
        Ok(response)
    }

    /// Calls tools and adds their results, in the order of the calls, and what is wrong with other requests.
    async fn call(
        &mut self,
        conversation: &mut Conversation,
        toolbox: &Toolbox,
        calls: &[ToolCall],
        errors: Vec<String>,
    ) -> Result<(), AgentError> {
        let AgentOptions { order, format, .. } = self.agent.options;
        let mut results = Vec::new();
        if order == CallOrder::Parallel {
            let this = &*self;
            let all = join_all(calls.iter().map(|call| this.call_one(toolbox, call))).await;
            results = all.into_iter().collect::<Result<Vec<_>, _>>()?;
            results.iter().for_each(|result| self.count(result));
        } else {
            for call in calls {
                let result = self.call_one(toolbox, call).await?;
                self.count(&result);
                match format {
                    // What is there stays if a later call ends the run.
                    ToolFormat::Native => self.add(conversation, Message::ToolResult(result)).await?,
                    ToolFormat::Xml(_) => results.push(result),
                }
            }
        }
        for message in format.messages(results, errors) {
            self.add(conversation, message).await?;
        }
        Ok(())
    }

    fn count(&mut self, result: &ToolResult) {
        self.statistics.tool_calls += 1;
        self.statistics.failed_calls += u32::from(result.is_error);
    }

    async fn call_one(&self, toolbox: &Toolbox, call: &ToolCall) -> Result<ToolResult, AgentError> {
        if self.cancel.is_cancelled() {
            return Err(AgentError::Cancelled);
        }
        let timeout = code_mode::timeout_of(&call.name, &call.arguments);
        self.emit(Event::ToolCall { call, timeout }).await?;
        let called = toolbox.call(&self.agent.hub, self.agent.options.projection, call, self.cancel);
        let given_up = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(CANCEL_GRACE).await;
        };
        let result = tokio::select! {
            biased;
            result = called => result,
            () = given_up => return Err(AgentError::Cancelled),
        };
        if self.cancel.is_cancelled() {
            return Err(AgentError::Cancelled);
        }
        let result = result?;
        self.emit(Event::ToolResult(&result)).await?;
        Ok(result)
    }

    /// Tells the model why its answer is wrong. Providers want a result for every call.
    async fn reject(&self, conversation: &mut Conversation, calls: &[ToolCall], error: &str) -> Result<(), AgentError> {
        if calls.is_empty() || self.agent.options.format != ToolFormat::Native {
            return self.add(conversation, Message::user(error)).await;
        }
        for (index, call) in calls.iter().enumerate() {
            let text = if index == 0 { error } else { "not executed: the call before it was to end the run" };
            let content = vec![Block::text(text)];
            let result = ToolResult { call_id: call.id.clone(), tool: call.name.clone(), content, is_error: true };
            self.add(conversation, Message::ToolResult(result)).await?;
        }
        Ok(())
    }

    /// Reports thoughts and texts. Tool calls are reported when they begin.
    async fn report(&self, content: &[Block]) -> Result<(), AgentError> {
        for block in content {
            match block {
                Block::Thinking { text, .. } => {
                    self.emit(Event::Thought { text, is_encrypted: text.is_empty() }).await?;
                }
                Block::Text { text } => self.emit(Event::Response(text)).await?,
                Block::ToolCall(_) | Block::Media(_) => {}
            }
        }
        Ok(())
    }

    fn check_budget(&self) -> Result<(), AgentError> {
        let used = self.statistics.usage.total();
        match self.agent.options.max_tokens {
            Some(limit) if used >= limit => Err(AgentError::Budget { limit, used }),
            _ => Ok(()),
        }
    }

    async fn add(&self, conversation: &mut Conversation, message: Message) -> Result<(), AgentError> {
        let added = self.emit(Event::Message(&message)).await;
        conversation.messages.push(message);
        for saved in self.agent.sinks.iter().filter_map(|sink| sink.take_saved(self.label)) {
            self.emit(Event::MessageSaved(&saved)).await?;
        }
        added
    }

    async fn emit(&self, event: Event<'_>) -> Result<(), AgentError> {
        let mut failed = Ok(());
        for sink in &self.agent.sinks {
            // Every sink gets every event.
            failed = failed.and(sink.emit(self.label, event).await);
        }
        failed.map_err(AgentError::Event)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("hub", &self.hub).field("options", &self.options).finish_non_exhaustive()
    }
}
