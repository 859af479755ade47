//! `rehearse mcp complete`: argument completion.

use serde::Deserialize;

use super::{Saver, print_result};
use crate::cli::{
    Exit, Failure, Format,
    mcp::{args::CommonArgs, arguments::Arguments, session::run_session},
    style::{self, DIM, printable},
};
use rehearse_client::{self as client, CompletionReference};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp complete --prompt review language py --server review
  rehearse mcp complete --resource 'file:///{path}' path src/ --stdio 'npx -y mcp-files'
  rehearse mcp complete --prompt review framework fl --context language=python";

/// Complete the value of a prompt or resource template argument
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompleteArgs {
    /// The argument
    argument: String,
    /// The start of its value
    #[arg(default_value = "")]
    value: String,
    /// The prompt of the argument
    #[arg(long, value_name = "NAME", required_unless_present = "resource", conflicts_with = "resource")]
    prompt: Option<String>,
    /// The resource template of the argument
    #[arg(long, value_name = "URI")]
    resource: Option<String>,
    /// The value of another argument (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    context: Vec<String>,
    /// The server; optional if there is only one
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// 2025-11-25, Completion: Completion Results.
#[derive(Deserialize)]
struct Completed {
    completion: Completion,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Completion {
    values: Vec<String>,
    total: Option<u64>,
    #[serde(default)]
    has_more: bool,
}

pub(crate) fn run(args: &CompleteArgs) -> Result<Exit, Failure> {
    let context = Arguments::read(None, &args.context).and_then(Arguments::texts)?;
    let context = Some(context).filter(|context| !context.is_empty());
    let servers = args.common.one(args.server.as_deref(), "--server")?;
    let reference = match (&args.prompt, &args.resource) {
        (_, Some(uri)) => CompletionReference::Resource(uri),
        (prompt, None) => CompletionReference::Prompt(prompt.as_deref().unwrap_or_default()),
    };
    run_session(&args.common, &servers, async |hub_session| {
        let server = &hub_session.names[0];
        let completed = hub_session.request(server, async |session, options| {
            session.complete(reference, &args.argument, &args.value, context.clone(), options).await
        });
        let completed = completed.await?.and_then(|result| {
            let parsed = serde_json::from_str::<Completed>(result.get());
            let parsed = parsed.map_err(|error| client::Failure::Malformed(format!("invalid completion: {error}")))?;
            Ok((result, parsed.completion))
        });
        let shown = |Completion { values, .. }: &Completion, _: &mut Saver<'_>| {
            Ok(values.iter().map(|value| format!("{}\n", printable(value))).collect())
        };
        let exit =
            print_result(hub_session, args.common.format(), server, &completed, Saver::new(None, ""), shown).await?;
        if let (Format::Human, Ok((_, completion))) = (args.common.format(), &completed) {
            print_remaining(completion);
        }
        Ok(exit)
    })
}

/// Prints how many values the server has omitted.
fn print_remaining(Completion { values, total, has_more }: &Completion) {
    let more = total.map(|total| total.saturating_sub(values.len() as u64)).filter(|more| *more > 0);
    match more {
        Some(more) => style::print(&format!("{DIM}… and {more} more{DIM:#}\n")),
        None if *has_more => style::print(&format!("{DIM}… and more{DIM:#}\n")),
        None => {}
    }
}
