//! `rehearse conversation`: what the file `.cpeconvo` has.

mod list;
mod markdown;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
};

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::{Exit, Failure, Format, output};
use rehearse_agent::store::{ConversationStore, ConversationSummary, FILE_NAME, StoreError, StoredMessage};
use rehearse_llm::model::Message;
use rehearse_report::text::printable_lines;

const EXAMPLES: &str = "\
Examples:
  rehearse conversation list
  rehearse conversation print a1B2c3
  rehearse conversation export a1B2c3 --format json > conversation.json

A conversation ends with the message that you name: `print` and `export` show that message and all before it.
The file is a SQLite database, the same as that of cpe.";

/// Show the conversations that agents have saved
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ConversationArgs {
    #[command(subcommand)]
    command: ConversationCommand,
}

#[derive(Debug, Subcommand)]
enum ConversationCommand {
    /// List all messages as a tree, the latest conversation first
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Print a conversation as Markdown
    #[command(visible_aliases = ["show", "view"])]
    Print(MessageArgs),
    /// Write a conversation for other programs
    Export(ExportArgs),
}

#[derive(Debug, Args)]
struct FileArgs {
    /// The file with the conversations
    #[arg(long, value_name = "PATH", default_value = FILE_NAME)]
    file: PathBuf,
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    file: FileArgs,
    /// Output format: human, or json for one entry per conversation
    #[arg(long, value_enum, default_value_t = Format::Human, hide_possible_values = true)]
    format: Format,
}

#[derive(Debug, Args)]
struct MessageArgs {
    /// The id of its last message
    id: String,
    #[command(flatten)]
    file: FileArgs,
}

#[derive(Debug, Args)]
struct ExportArgs {
    #[command(flatten)]
    message: MessageArgs,
    /// Output format: json
    #[arg(long, value_enum, default_value_t = ExportFormat::Json, hide_possible_values = true)]
    format: ExportFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportFormat {
    Json,
}

#[derive(Serialize)]
struct Listing {
    conversations: Vec<ConversationSummary>,
}

#[derive(Serialize)]
struct Export<'a> {
    messages: &'a [StoredMessage],
    statistics: Json,
}

/// # Errors
/// There is no such file or message; or the file cannot be read.
pub(super) fn run(args: &ConversationArgs) -> Result<Exit, Failure> {
    match &args.command {
        ConversationCommand::List(args) => {
            let messages = ConversationStore::read(&args.file.file).and_then(|store| store.list()).map_err(failure)?;
            match args.format {
                Format::Human => output::write_styled(list::tree(&messages).as_bytes())?,
                Format::Json => write_json(&Listing { conversations: ConversationSummary::of_messages(&messages) })?,
            }
        }
        ConversationCommand::Print(args) => {
            let text = markdown::conversation(&load(args)?);
            match io::stdout().is_terminal() {
                true => output::write(printable_lines(&text).map(|line| line + "\n").collect::<String>().as_bytes())?,
                false => output::write(text.as_bytes())?,
            }
        }
        ConversationCommand::Export(ExportArgs { message, format: ExportFormat::Json }) => {
            let messages = load(message)?;
            let count = |is: fn(&Message) -> bool| messages.iter().filter(|stored| is(&stored.message)).count();
            let statistics = json!({
                "turns": count(|message| matches!(message, Message::Assistant { .. })),
                "toolCalls": count(|message| matches!(message, Message::ToolResult(_))),
                "failedCalls": count(|message| matches!(message, Message::ToolResult(result) if result.is_error)),
            });
            write_json(&Export { messages: &messages, statistics })?;
        }
    }
    Ok(Exit::Success)
}

fn load(args: &MessageArgs) -> Result<Vec<StoredMessage>, Failure> {
    ConversationStore::read(&args.file.file).and_then(|store| store.load(&args.id)).map_err(failure)
}

fn write_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    output::write(format!("{text}\n").as_bytes())
}

fn failure(error: StoreError) -> Failure {
    match error {
        StoreError::NoFile(_) => Failure::Usage(format!("{error}\n--file names another one")),
        StoreError::NoMessage { .. } => Failure::Usage(format!("{error}\n`rehearse conversation list` shows all")),
        StoreError::Sqlite { .. } => Failure::cannot(error.to_string()),
    }
}
