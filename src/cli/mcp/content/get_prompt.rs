//! `rehearse mcp get-prompt`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Saver, print_result};
use crate::cli::{
    Exit, Failure, Format,
    mcp::{
        args::{CommonArgs, ContentArgs},
        arguments::Arguments,
        error::CommandError,
        list::listing::request_item,
        print::text_of,
        session::{HubSession, run_session},
    },
    style::{STRONG, printable},
};
use rehearse_client::{self as client, Content, Session};
use rehearse_protocol::List;

const EXAMPLES: &str = "\
Examples:
  rehearse mcp get-prompt review language=rust code=@src/main.rs --server review
  rehearse mcp get-prompt --stdio 'npx -y mcp-prompts' greeting name=Ada --format json";

/// A prompt with its arguments, and what becomes of its messages.
#[derive(Debug, clap::Args)]
pub(crate) struct PromptArgs {
    /// The prompt
    pub(crate) name: String,
    /// The arguments: NAME=VALUE, NAME=@FILE, a JSON object, @FILE, or - for standard input
    #[arg(value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// The arguments: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    #[command(flatten)]
    content: ContentArgs,
}

/// Get a prompt and print its messages
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GetPromptArgs {
    #[command(flatten)]
    prompt: PromptArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// 2025-11-25, Prompts: Getting a Prompt.
#[derive(Deserialize)]
struct Prompt {
    description: Option<String>,
    messages: Vec<Message>,
}

impl Prompt {
    /// Parses the result of a request.
    ///
    /// # Errors
    /// The result is invalid.
    fn parse(result: &RawValue) -> Result<Prompt, client::Failure> {
        let parsed = serde_json::from_str(result.get());
        parsed.map_err(|error| client::Failure::Malformed(format!("invalid prompt: {error}")))
    }

    /// The messages as text. Binary content is saved or described.
    ///
    /// # Errors
    /// A file cannot be written.
    fn text(&self, saver: &mut Saver<'_>) -> Result<String, Failure> {
        let about = self.description.as_ref().map(|description| format!("{}\n\n", printable(description)));
        let shown = self.messages.iter().map(|Message { role, content }| {
            let block = match Content::parse(content.clone()) {
                Ok(content) => saver.block(&content)?,
                Err(_) => text_of(content.get()),
            };
            Ok(format!("{STRONG}## {}{STRONG:#}\n{block}", printable(role)))
        });
        Ok(about.unwrap_or_default() + &shown.collect::<Result<Vec<_>, Failure>>()?.join("\n"))
    }
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: Box<RawValue>,
}

pub(crate) fn run(args: &GetPromptArgs) -> Result<Exit, Failure> {
    let arguments = args.prompt.arguments()?;
    let servers = args.common.one(args.prompt.server(), "--server")?;
    run_session(&args.common, &servers, async |hub_session| {
        args.prompt.get(hub_session, arguments, args.common.format()).await
    })
}

impl PromptArgs {
    pub(crate) fn server(&self) -> Option<&str> {
        self.content.server.as_deref()
    }

    /// Reads the arguments of the prompt, some of them from files or standard input.
    ///
    /// # Errors
    /// An argument is wrong, or cannot be read.
    pub(crate) fn arguments(&self) -> Result<Arguments, Failure> {
        Arguments::read(self.args.as_deref(), &self.arguments)
    }

    /// Whether standard input is an argument.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.args.iter().chain(&self.arguments).any(|word| word == "-")
    }

    /// Gets the prompt of the only server of the session, and prints its messages.
    ///
    /// # Errors
    /// An argument is not a string; the request failed, or something cannot be written.
    pub(crate) async fn get(
        &self,
        hub_session: &HubSession,
        arguments: Arguments,
        format: Format,
    ) -> Result<Exit, CommandError> {
        let arguments = arguments.texts()?;
        let arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
        let get = async |session: &Session, options| session.get_prompt(&self.name, arguments.clone(), options).await;
        let got = request_item(hub_session, (List::Prompts, &self.name), get, Prompt::parse).await?;
        let saver = Saver::new(self.content.output.as_deref(), &self.name);
        print_result(hub_session, format, &hub_session.names[0], &got, saver, Prompt::text).await
    }
}
