//! A conversation with a model in the REPL.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{
    ReplArgs,
    shell::{Shell, locked},
};
use crate::cli::{Exit, Failure, mcp::print::print_unchecked, style, style::printable};
use rehearse_agent::{
    Agent, AgentOptions, Conversation, EmitFuture, Event, EventSink, ModelAccess, ModelSpec, RunLabel, RunStatistics,
    ToolFormat,
    store::{ConversationSink, ConversationStore, FILE_NAME, StoreError},
    subagent_events::{ADDRESS_VARIABLE, EventKind, EventListener, EventRecord, Form},
    system_prompt::{PromptValues, load},
    transcript,
};
use rehearse_client::Target;
use rehearse_client_configs::Machine;
use rehearse_hub::{HubServer, projection::Projection};
use rehearse_llm::{
    model::{Block, Delta, Model},
    xml,
};

const EXAMPLES: &str = "\
Examples:
  rehearse chat --model scripted:model.yaml --mcp-config .mcp.json
  rehearse chat --model anthropic:claude-sonnet-4-5 --stdio 'npx -y mcp-files'
  rehearse chat --model openai:gpt-5 --base-url http://127.0.0.1:8889
  echo 'What can you do?' | rehearse chat --model scripted:model.yaml

A line is a message to the model; a line that begins with `/` is a command of `rehearse repl`, such as /status.
The key is in ANTHROPIC_API_KEY or OPENAI_API_KEY, or in the variable that --api-key-env names.";

/// How long a request to the model may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Talk to a model that uses the tools of MCP servers
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ChatArgs {
    /// The model: anthropic:ID, openai:ID, responses:ID or scripted:FILE
    #[arg(long, value_name = "MODEL")]
    model: ModelSpec,
    /// The URL of the API [default: that of the provider]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The variable that has the key
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    api_key_env: Option<String>,
    /// A file with the system prompt, a MiniJinja template
    #[arg(long, value_name = "FILE")]
    system_prompt: Option<PathBuf>,
    /// How often the model may answer one message
    #[arg(long, value_name = "NUMBER", default_value_t = 100, hide_short_help = true)]
    max_turns: u32,
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
    /// Print the arguments and results of subagents, too [default: if CPE_VERBOSE_SUBAGENT is 1 or true]
    #[arg(long, hide_short_help = true)]
    verbose_subagent: bool,
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
    form: Form,
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
        let store = ConversationStore::open(&args.conversations).map_err(cannot)?;
        let warn = |error: &StoreError| style::warn(&format!("the conversation cannot be saved: {error}"));
        let sink = ConversationSink::of_session(store, args.resume.clone(), warn);
        let messages = messages.into_iter().map(|stored| stored.message).collect();
        Ok(SavedConversation { conversation: Conversation { messages }, sink: Some(Arc::new(sink)) })
    }
}

/// Runs the REPL with a conversation.
///
/// # Errors
/// The model cannot be used; otherwise as [`super::run`].
pub(crate) fn run(args: ChatArgs) -> Result<Exit, Failure> {
    let saved = SavedConversation::open(&args)?;
    let ChatArgs {
        model, base_url, api_key_env, system_prompt, max_turns, tool_format, verbose_subagent, repl, ..
    } = args;
    let variables = Machine::here().variables;
    let access = ModelAccess {
        base_url: base_url.as_deref(),
        key_variable: api_key_env.as_deref(),
        variables: &variables,
        timeout: REQUEST_TIMEOUT,
    };
    let model = model.to_model(&access).map_err(|error| Failure::Usage(error.to_string()))?;
    let values = PromptValues { env: variables.clone(), ..PromptValues::default() };
    let system = system_prompt.map(|path| load(&path, &values)).transpose();
    let system = system.map_err(|error| Failure::Usage(error.to_string()))?;
    let (format, projection) = match tool_format {
        ToolFormatArg::Native => (ToolFormat::Native, Projection::Cpe),
        ToolFormatArg::Xml => (ToolFormat::Xml(xml::Options::default()), Projection::Mcpilot),
    };
    let options = AgentOptions { system, max_turns, format, projection, ..AgentOptions::default() };
    let is_verbose = variables.get("CPE_VERBOSE_SUBAGENT").is_some_and(|value| matches!(value.as_str(), "1" | "true"));
    let form = if verbose_subagent || is_verbose { Form::Verbose } else { Form::Concise };
    let SavedConversation { conversation, sink } = saved;
    let conversation = tokio::sync::Mutex::new(conversation);
    let chat =
        Chat { model: Arc::new(model), options, form, address: None, conversation, sink, statistics: Arc::default() };
    super::run_with(repl, Some(chat))
}

impl Chat {
    /// Prints what the model took.
    pub(super) fn print_usage(&self) {
        print_unchecked(&format!("Model: {}\n", locked(&self.statistics)));
    }

    /// Says how to continue a saved conversation.
    pub(super) fn print_end(&self) {
        if let Some(id) = self.sink.as_ref().and_then(|sink| sink.last()) {
            style::print(&format!("saved: `rehearse chat --resume {id}` continues this conversation\n"));
        }
    }

    /// Listens for the events of subagents and prints them; `None` if they go to the parent of this process.
    ///
    /// # Errors
    /// No port can be bound.
    pub(super) async fn listen(&mut self) -> Result<Option<EventListener>, Failure> {
        if std::env::var_os(ADDRESS_VARIABLE).is_some_and(|address| !address.is_empty()) {
            return Ok(None);
        }
        let (form, runs) = (self.form, Mutex::new(HashSet::new()));
        let listener = EventListener::start(move |record| print_event(&record, form, &runs)).await;
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

    /// Sends a message and prints what happens: the answer on stdout, everything else on stderr. Returns whether there is
    /// an answer.
    pub(super) async fn say(&self, shell: &Shell, text: &str, cancel: &CancellationToken) -> bool {
        let agent = Agent::new(self.model.clone(), shell.hub.clone(), self.options.clone());
        let mut agent = agent.with_sink(Arc::new(TranscriptPrinter(self.statistics.clone())));
        if let Some(sink) = &self.sink {
            agent = agent.with_sink(sink.clone());
        }
        let label = RunLabel { agent: "chat".into(), run_id: "chat".into() };
        let mut conversation = self.conversation.lock().await;
        let print = |delta| {
            if let Delta::Text(text) = delta {
                print_unchecked(&printable_text(&text));
            }
        };
        let prompt = vec![Block::text(text)];
        let done = Box::pin(agent.run(&mut conversation, prompt, &label, cancel, Some(&print))).await;
        match done {
            Ok(_) => true,
            Err(error) => {
                shell.error(&error.to_string());
                false
            }
        }
    }
}

/// Prints an event of a subagent, with the id of its run if several run.
fn print_event(record: &EventRecord, form: Form, runs: &Mutex<HashSet<String>>) {
    let mut runs = locked(runs);
    match record.kind {
        EventKind::SubagentStart => drop(runs.insert(record.subagent_run_id.clone())),
        EventKind::SubagentEnd => drop(runs.remove(&record.subagent_run_id)),
        _ => {}
    }
    if let Some(text) = record.text(form, runs.len() > 1) {
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
            *locked(&self.0) += statistics;
        }
        if let Some(text) = transcript::text(&event) {
            style::print(&format!("{}\n", printable_text(text.trim_end())));
        }
        Box::pin(async { Ok(()) })
    }
}
