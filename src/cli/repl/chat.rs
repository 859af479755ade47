//! A conversation with a model in the REPL.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::ReplArgs;
use crate::cli::{
    Exit, Failure,
    agent_config::{code_mode, read_agent},
    mcp::print::{print_unchecked, prose::first_sentence},
    style::{self, printable},
};
use rehearse_agent::{
    Agent, AgentOptions, CodeMode, Conversation, EmitFuture, Event, EventSink, ModelAccess, ModelApi, ModelSpec,
    RunLabel, RunStatistics, ToolFormat, resource_tools,
    setup::{AgentSetup, SetupContext},
    store::{ConversationSink, ConversationStore, FILE_NAME, StoreError},
    subagent_events::{ADDRESS_VARIABLE, EventKind, EventListener, EventRecord, Form},
    system_prompt::{PromptValues, load},
    transcript,
};
use rehearse_client::Target;
use rehearse_client_configs::{Machine, agent::CodeModeConfig};
use rehearse_hub::{Hub, HubServer, projection::Projection};
use rehearse_llm::{
    model::{Block, Delta, Model},
    xml,
};

const EXAMPLES: &str = "\
Examples:
  rehearse chat --model scripted:model.yaml --mcp-config .mcp.json
  rehearse chat --mcp-config agent.cpe.yaml --model fast       # a `ref` of its `models`
  rehearse chat --model anthropic:claude-sonnet-4-5 -- npx -y mcp-files
  rehearse chat --model openai:gpt-5 --base-url http://127.0.0.1:8889
  echo 'What can you do?' | rehearse chat --model scripted:model.yaml

A line is a message to the model; one that begins with `/` is a command, such as /help. Alt-Enter \
begins another line, and a pasted text is one message. From a pipe, the whole input is one message.
The key is in ANTHROPIC_API_KEY or OPENAI_API_KEY, or in the variable that --api-key-env names.";

/// How long a request to the model may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Talk to a model that uses the tools of MCP servers
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ChatArgs {
    /// anthropic:ID, openai:ID, responses:ID, scripted:FILE, or a `ref` of the config [default: its `defaults.model`]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// URL of the API [default: ANTHROPIC_BASE_URL or OPENAI_BASE_URL]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The environment variable with the API key
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    api_key_env: Option<String>,
    /// A file with the system prompt, a MiniJinja template
    #[arg(long, value_name = "FILE")]
    system_prompt: Option<PathBuf>,
    /// How often the model may answer one message [default: 100]
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    max_turns: Option<u32>,
    /// Shorten the oldest results of tools to fit in about so many tokens
    #[arg(long, value_name = "TOKENS", hide_short_help = true, value_parser = clap::value_parser!(u64).range(1..))]
    max_context: Option<u64>,
    /// Save the conversation, for --resume and `rehearse conversation`
    #[arg(long)]
    save: bool,
    /// Continue the saved conversation that ends with this message
    #[arg(long, value_name = "ID")]
    resume: Option<String>,
    /// The file with the saved conversations
    #[arg(long, value_name = "PATH", default_value = FILE_NAME, hide_short_help = true)]
    conversations: PathBuf,
    /// How the model calls tools: native, or xml for a model that can only write text
    #[arg(long, value_name = "HOW", value_enum, default_value_t, hide_possible_values = true, hide_short_help = true)]
    tool_format: ToolFormatArg,
    /// Print the arguments and results of subagents, too
    #[arg(long, hide_short_help = true)]
    verbose_subagent: bool,
    /// Print ids of runs in lines about subagents [default: if several run]
    #[arg(long, hide_short_help = true)]
    show_run_id: bool,
    #[command(flatten)]
    repl: ReplArgs,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum ToolFormatArg {
    #[default]
    Native,
    Xml,
}

/// The conversation of a REPL.
pub(super) struct Chat {
    model: Arc<Model>,
    options: AgentOptions,
    /// How the config wants code mode, and the code mode of this machine.
    wanted: Option<CodeModeConfig>,
    code_mode: Option<CodeMode>,
    form: Form,
    /// Whether each line about a subagent has the id of its run, even if only one runs.
    shows_run_id: bool,
    /// Where subagents send their events.
    address: Option<String>,
    conversation: tokio::sync::Mutex<Conversation>,
    sink: Option<Arc<ConversationSink>>,
    /// What all answers took.
    statistics: Arc<Mutex<RunStatistics>>,
}

/// The conversation to begin with, and what saves it.
struct SavedConversation {
    conversation: Conversation,
    sink: Option<Arc<ConversationSink>>,
}

impl SavedConversation {
    /// # Errors
    /// The file cannot be used, or has no such message.
    fn open(args: &ChatArgs) -> Result<SavedConversation, Failure> {
        if !args.save && args.resume.is_none() {
            return Ok(SavedConversation { conversation: Conversation::default(), sink: None });
        }
        let cannot = |error: StoreError| Failure::Usage(error.to_string());
        let messages = match &args.resume {
            Some(id) => {
                ConversationStore::read(&args.conversations).and_then(|store| store.load(id)).map_err(cannot)?
            }
            None => Vec::new(),
        };
        if let Some(last) = messages.last() {
            let count = messages.len();
            let text = printable(&first_sentence(&last.message.text())).into_owned();
            style::print(&format!("continuing {count} messages; the last: {text}\n"));
        }
        let store = ConversationStore::open(&args.conversations).map_err(cannot)?;
        let warn = |error: &StoreError| style::warn(&format!("the conversation cannot be saved: {error}"));
        let sink = ConversationSink::of_session(store, args.resume.clone(), warn);
        let messages = messages.into_iter().map(|stored| stored.message).collect();
        Ok(SavedConversation { conversation: Conversation { messages }, sink: Some(Arc::new(sink)) })
    }
}

/// What answers, and how.
struct ChosenModel {
    model: Arc<Model>,
    options: AgentOptions,
    code_mode: Option<CodeModeConfig>,
}

impl ChosenModel {
    /// The model of `--model TYPE:ID`, or that of the config.
    ///
    /// # Errors
    /// There is no such model, or it cannot be used.
    fn of(args: &ChatArgs, variables: &BTreeMap<String, String>) -> Result<ChosenModel, Failure> {
        let spec = args.model.as_deref().map(str::parse::<ModelSpec>);
        match (spec, args.repl.target.named_file()) {
            (Some(Ok(spec)), _) => ChosenModel::of_spec(&spec, args, variables),
            (_, Some(path)) => ChosenModel::of_config(path, args, variables),
            (Some(Err(error)), None) => Err(Failure::Usage(error.to_string())),
            (None, None) => Err(Failure::Usage(
                "no model is chosen: use --model TYPE:ID, or --mcp-config with a config that has `models`".to_owned(),
            )),
        }
    }

    fn of_spec(
        spec: &ModelSpec,
        args: &ChatArgs,
        variables: &BTreeMap<String, String>,
    ) -> Result<ChosenModel, Failure> {
        if spec.api == ModelApi::Scripted {
            refuse_access(args)?;
        }
        let access = ModelAccess {
            base_url: args.base_url.as_deref(),
            key_variable: args.api_key_env.as_deref(),
            variables,
            timeout: REQUEST_TIMEOUT,
        };
        let model = spec.to_model(&access).map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(ChosenModel { model: Arc::new(model), options: AgentOptions::default(), code_mode: None })
    }

    fn of_config(path: &Path, args: &ChatArgs, variables: &BTreeMap<String, String>) -> Result<ChosenModel, Failure> {
        refuse_access(args)?;
        let name = args.model.as_deref();
        let (source, config) = read_agent(path)?;
        let context = SetupContext { folder: path.parent().unwrap_or(Path::new("")), variables, model: name };
        let setup = AgentSetup::new(&config, &context);
        let setup = setup.map_err(|problems| Failure::Invalid(problems.in_source(&source)))?;
        if let Ok(model) = config.model(name) {
            let text = format!("{} ({}:{})", model.reference.value, model.api.value, model.id.value);
            style::print(&format!("model: {}\n", printable(&text)));
        }
        // A conversation has texts as answers, also with the model of a subagent.
        let options = AgentOptions { answer: None, ..setup.options };
        Ok(ChosenModel { model: setup.model, options, code_mode: config.code_mode_of(name).cloned() })
    }
}

/// # Errors
/// There is an option for the access to a provider.
fn refuse_access(args: &ChatArgs) -> Result<(), Failure> {
    if args.base_url.is_some() || args.api_key_env.is_some() {
        let why = "--base-url and --api-key-env need a --model of a provider, such as openai:ID";
        return Err(Failure::Usage(why.to_owned()));
    }
    Ok(())
}

/// Runs the REPL with a conversation.
///
/// # Errors
/// The model cannot be used; otherwise as [`super::run`].
pub(crate) fn run(args: ChatArgs) -> Result<Exit, Failure> {
    let saved = SavedConversation::open(&args)?;
    let variables = Machine::here().variables;
    let ChosenModel { model, options, code_mode } = ChosenModel::of(&args, &variables)?;
    let ChatArgs { system_prompt, max_turns, max_context, tool_format, verbose_subagent, show_run_id, repl, .. } = args;
    let values = PromptValues { env: variables.clone(), ..PromptValues::default() };
    let system = system_prompt.map(|path| load(&path, &values)).transpose();
    let system = system.map_err(|error| Failure::Usage(error.to_string()))?;
    let (format, projection) = match tool_format {
        ToolFormatArg::Native => (ToolFormat::Native, options.projection),
        ToolFormatArg::Xml => (ToolFormat::Xml(xml::Options::default()), Some(Projection::Mcpilot)),
    };
    let (system, max_turns) = (system.or(options.system), max_turns.unwrap_or(options.max_turns));
    let max_context = max_context.or(options.max_context);
    let options = AgentOptions { system, max_turns, max_context, format, projection, ..options };
    let is_verbose = variables.get("CPE_VERBOSE_SUBAGENT").is_some_and(|value| matches!(value.as_str(), "1" | "true"));
    let form = if verbose_subagent || is_verbose { Form::Verbose } else { Form::Concise };
    let SavedConversation { conversation, sink } = saved;
    let conversation = tokio::sync::Mutex::new(conversation);
    let chat = Chat {
        model,
        options,
        wanted: code_mode,
        code_mode: None,
        form,
        shows_run_id: show_run_id,
        address: None,
        conversation,
        sink,
        statistics: Arc::default(),
    };
    super::run_with(repl, Some(chat))
}

impl Chat {
    /// Prints what the model took.
    pub(super) fn print_usage(&self) {
        print_unchecked(&format!("Model: {}\n", self.statistics.lock()));
    }

    /// Says how to continue a saved conversation.
    pub(super) fn print_end(&self) {
        if let Some(id) = self.sink.as_ref().and_then(|sink| sink.last()) {
            style::print(&format!("saved: `rehearse chat --resume {id}` continues this conversation\n"));
        }
    }

    /// Finds the engine of code mode. Listens for the events of subagents and prints them; `None` if they go to the parent
    /// of this process.
    ///
    /// # Errors
    /// No port can be bound, or there is no engine and code mode is wanted.
    pub(super) async fn start(&mut self) -> Result<Option<EventListener>, Failure> {
        self.code_mode = code_mode(self.wanted.as_ref()).await?;
        let shows_run_id = self.shows_run_id;
        if std::env::var_os(ADDRESS_VARIABLE).is_some_and(|address| !address.is_empty()) {
            return Ok(None);
        }
        let (form, runs) = (self.form, Mutex::new(HashSet::new()));
        let listener = EventListener::start(move |record| print_event(&record, form, shows_run_id, &runs)).await;
        let listener =
            listener.map_err(|error| Failure::cannot(format!("cannot listen for events of subagents: {error}")))?;
        self.address = Some(listener.url().to_owned());
        Ok(Some(listener))
    }

    /// Tells the processes of servers where to send events. Nothing in a config takes precedence.
    pub(super) fn inject_address(&self, members: &mut [HubServer]) {
        let Some(address) = &self.address else { return };
        for member in members {
            if let Target::Stdio(command) = &mut member.config.target {
                command.env.insert(ADDRESS_VARIABLE.to_owned(), address.clone());
            }
        }
    }

    /// Sends a message and prints what happens: the answer on stdout, everything else on stderr.
    ///
    /// # Errors
    /// There is no answer, for this reason.
    pub(super) async fn say(&self, hub: &Hub, text: &str, cancel: &CancellationToken) -> Result<(), String> {
        let agent = Agent::new(self.model.clone(), hub.clone(), self.options.clone());
        let mut agent = agent.with_sink(Arc::new(TranscriptPrinter(self.statistics.clone())));
        if let Some(code_mode) = &self.code_mode {
            let members = hub.status().into_iter().filter_map(|(name, _)| hub.server(&name).ok());
            let members: Vec<_> = members.map(|member| HubServer::clone(&member)).collect();
            agent = code_mode.apply(agent, &members, hub.options()).map_err(|error| error.to_string())?;
        }
        for tool in resource_tools(hub).await {
            agent = agent.with_tool(tool);
        }
        if let Some(sink) = &self.sink {
            agent = agent.with_sink(sink.clone());
        }
        let label = RunLabel { agent: "chat".into(), run_id: "chat".into() };
        let mut conversation = self.conversation.lock().await;
        let print = |delta| match delta {
            Delta::Text(text) => print_unchecked(&printable_text(&text)),
            Delta::Thinking(_) => {}
            Delta::Retry { error, wait } => {
                style::warn(&format!("{error}; asking again in {:.1} s", wait.as_secs_f64()));
            }
        };
        let prompt = vec![Block::text(text)];
        let done = Box::pin(agent.run(&mut conversation, prompt, &label, cancel, Some(&print))).await;
        done.map(drop).map_err(|error| error.to_string())
    }
}

/// Prints an event of a subagent, with the id of its run if that is wanted or several run.
fn print_event(record: &EventRecord, form: Form, shows_run_id: bool, runs: &Mutex<HashSet<String>>) {
    let mut runs = runs.lock();
    match record.kind {
        EventKind::SubagentStart => drop(runs.insert(record.subagent_run_id.clone())),
        EventKind::SubagentEnd => drop(runs.remove(&record.subagent_run_id)),
        _ => {}
    }
    if let Some(text) = record.text(form, shows_run_id || runs.len() > 1) {
        style::print(&format!("{}\n", printable_text(text.trim_end())));
    }
}

/// The text without control characters that change the terminal.
fn printable_text(text: &str) -> String {
    text.split('\n').map(|line| printable(line).to_string()).collect::<Vec<_>>().join("\n")
}

/// Prints tool calls, results and thoughts, and adds up what the runs took.
struct TranscriptPrinter(Arc<Mutex<RunStatistics>>);

impl EventSink for TranscriptPrinter {
    fn emit<'a>(&'a self, _: &'a RunLabel, event: Event<'a>) -> EmitFuture<'a> {
        // Its pieces are printed already.
        if let Event::Response(_) = event {
            print_unchecked("\n");
        }
        if let Event::Ended { statistics, .. } = event {
            *self.0.lock() += statistics;
        }
        if let Some(text) = transcript::text(&event) {
            style::print(&format!("{}\n", printable_text(text.trim_end())));
        }
        Box::pin(async { Ok(()) })
    }
}
