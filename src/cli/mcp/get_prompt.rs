//! `rehearse mcp get-prompt`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    args::{CommonArgs, ContentArgs},
    arguments::Arguments,
    content::{Saver, print_result},
    list_prompts::PROMPTS,
    listing::suggest,
    print::text_of,
    session::run_session,
};
use crate::cli::{
    Exit, Failure,
    style::{STRONG, printable},
    usage_hint::wrong_arguments,
};
use rehearse_client::{self as client, Content, Session};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp get-prompt review language=rust code=@src/main.rs --server review
  rehearse mcp get-prompt --stdio 'npx -y mcp-prompts' greeting name=Ada --format json";

/// Get a prompt and print its messages
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct GetPromptArgs {
    /// The prompt
    name: String,
    /// The arguments: NAME=VALUE, NAME=@FILE, a JSON object, @FILE, or - for standard input
    #[arg(value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// The arguments: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    #[command(flatten)]
    content: ContentArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// 2025-11-25, Prompts: Getting a Prompt.
#[derive(Deserialize)]
pub(crate) struct Prompt {
    description: Option<String>,
    messages: Vec<Message>,
}

impl Prompt {
    /// Parses the result of a request.
    ///
    /// # Errors
    /// The result is invalid.
    pub(crate) fn parse(result: &RawValue) -> Result<Prompt, client::Failure> {
        let parsed = serde_json::from_str(result.get());
        parsed.map_err(|error| client::Failure::Malformed(format!("invalid prompt: {error}")))
    }

    /// The messages as text. Binary content is saved or described.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn text(&self, saver: &mut Saver<'_>) -> Result<String, Failure> {
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

pub(super) fn run(args: &GetPromptArgs) -> Result<Exit, Failure> {
    let arguments = Arguments::read(args.args.as_deref(), &args.arguments)
        .map_err(|wrong| Failure::Usage(wrong_arguments(wrong, &args.arguments)))?;
    let arguments = arguments.texts().map_err(Failure::Usage)?;
    let servers = args.common.one(args.content.server.as_deref(), "--server")?;
    run_session(&args.common, &servers, async |hub_session| {
        let server = &hub_session.names[0];
        let arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
        let get = async |session: &Session, options| session.get_prompt(&args.name, arguments.clone(), options).await;
        let got = hub_session.request(server, get);
        let got = got.await?.and_then(|result| Prompt::parse(&result).map(|parsed| (result, parsed)));
        if let Err(failure) = &got {
            suggest(hub_session, server, failure, &PROMPTS, &args.name).await;
        }
        let saver = Saver::new(args.content.output.as_deref(), &args.name);
        print_result(hub_session, args.common.format(), server, &got, saver, Prompt::text).await
    })
}
