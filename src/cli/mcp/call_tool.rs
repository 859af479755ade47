//! `rehearse mcp call-tool`: one call of a tool.

use std::{path::PathBuf, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::{
    arguments::Arguments,
    connection::{ConnectionArgs, PolicyArgs},
    content::{Saver, indented, print, print_json},
    list_tools::name_of,
    target::{Select, TargetArgs},
    visit::{Trouble, Visit, exit_of, visit_with},
};
use crate::{
    cli::{
        Exit, Failure, Format,
        ask::Person,
        style::{self, BAD, STRONG, printable},
    },
    client::{
        CallOptions, ToolOutcome,
        hub::{Discovery, RegisteredTool},
    },
    config::nearest,
};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp call-tool --server files --tool read --args '{\"path\": \"README.md\"}'
  rehearse mcp call-tool read path=README.md lines=5    typed by the tool's schema
  rehearse mcp call-tool search tags=a tags=b limit:=null query=@query.txt
  rehearse mcp call-tool --http http://127.0.0.1:8888/mcp echo @args.json
  rehearse mcp call-tool draw what=cat --output pictures/
  rehearse mcp call-tool book_table city=Paris --answer answers.yaml

Arguments: name=value is what the schema wants it to be, name:=JSON is JSON, name=@FILE is the text of a file; @FILE and - \
(standard input) are a JSON object with several. What is given later goes before what is given earlier.";

/// Call a tool, and print what it returns
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CallToolArgs {
    /// The tool, unless --tool names it, then its arguments
    #[arg(value_name = "TOOL | NAME=VALUE", allow_hyphen_values = false)]
    words: Vec<String>,
    /// The server of the tool; not needed if only one has it
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// The tool, by its own name or by the one that a model calls it by
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// The arguments as a JSON object, or @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Save images, sounds and other binary content in this file or folder
    #[arg(short, long, value_name = "FILE|FOLDER")]
    output: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// What programs are told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    server: &'a str,
    tool: &'a str,
    is_error: bool,
    /// As it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    saved: &'a [PathBuf],
}

/// The tool that is meant.
struct Meant {
    server: Arc<str>,
    /// The name that the server knows.
    tool: String,
    schema: Option<Box<RawValue>>,
}

pub(super) fn run(args: &CallToolArgs) -> Result<Exit, Failure> {
    let (tool, words) = match (&args.tool, args.words.split_first()) {
        (Some(tool), _) => (tool, &args.words[..]),
        (None, Some((tool, words))) => (tool, words),
        // The words of cpe.
        (None, None) => return Err(Failure::Usage("--tool is required".to_owned())),
    };
    let arguments = Arguments::read(args.args.as_deref(), words).map_err(Failure::Usage)?;
    let servers = args.target.servers(Select::of(args.server.as_deref()), args.connection.show_secrets)?;
    visit_with(
        Person::at_terminal(),
        &args.connection,
        &servers,
        |options| args.policy.apply(options),
        async |visit| {
            let found = visit.discover().await?;
            let meant = meant(visit, &found, tool)?;
            let arguments = arguments.typed(meant.schema.as_deref()).map_err(Failure::Usage)?;
            call(args, visit, &meant, arguments).await
        },
    )
}

async fn call(
    args: &CallToolArgs,
    visit: &Visit,
    meant: &Meant,
    arguments: Map<String, Value>,
) -> Result<Exit, Trouble> {
    let Meant { server, tool, .. } = meant;
    let timeout = visit.hub.member(server).ok().and_then(|member| member.tool_timeouts.get(tool).copied());
    let called = visit
        .request(server, async |session, options| {
            let limit = timeout.unwrap_or(session.timeouts().call);
            let call = async |options: CallOptions| session.call_tool(tool, Some(arguments.clone()), options).await;
            Person::in_time(visit.person.as_ref(), limit, options, call).await
        })
        .await?;
    let mut saver = Saver::new(args.output.as_deref(), tool);
    let (text, is_error) = match &called {
        Ok(outcome) => (shown(outcome, &mut saver)?, outcome.is_error),
        Err(failure) => {
            visit.tell_failure(failure);
            (String::new(), true)
        }
    };
    match args.format {
        Format::Human => {
            print(&text);
            if called.is_ok() && is_error {
                let tool = printable(tool);
                style::print(&format!("{BAD}error:{BAD:#} the tool {STRONG}{tool}{STRONG:#} reports that it failed\n"));
            }
        }
        Format::Json => print_json(&Report {
            server,
            tool,
            is_error,
            result: called.as_ref().ok().map(|outcome| &*outcome.raw),
            failure: called.as_ref().err().map(|failure| visit.failure_json(failure)),
            saved: &saver.saved,
        }),
    }
    Ok(match &called {
        Err(failure) => exit_of(failure),
        Ok(_) if is_error => Exit::Violation,
        Ok(_) => Exit::Success,
    })
}

/// The blocks one after another, and the structured content unless the text is that already.
pub(in crate::cli) fn shown(outcome: &ToolOutcome, saver: &mut Saver<'_>) -> Result<String, Failure> {
    let structured = outcome.structured_content.as_deref();
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    let is_said = |text: &str| structured.is_some_and(|raw| value(raw.get()) == value(text));
    let mut text = String::new();
    for content in &outcome.content {
        match content {
            crate::client::Content::Text { text, .. } if is_said(text) => {}
            content => text.push_str(&saver.block(content)?),
        }
    }
    if let Some(raw) = structured {
        text.push_str(&indented(raw));
        text.push('\n');
    }
    Ok(text)
}

/// Finds the tool of a name: one that is registered under it, else one that its server knows by it. Of one server, any
/// name goes: it is for the server to say that there is no such tool.
fn meant(visit: &Visit, found: &Discovery, name: &str) -> Result<Meant, Trouble> {
    let of = |tool: &RegisteredTool| Meant {
        server: tool.server.clone(),
        tool: tool.original.clone(),
        schema: Some(tool.input_schema.clone()),
    };
    if let Some(tool) = found.registry.get(name) {
        return Ok(of(tool));
    }
    let same: Vec<_> = found.registry.tools().iter().filter(|tool| tool.original == name).collect();
    let usage = |text: String| Trouble::Failure(Failure::Usage(text));
    match &same[..] {
        [tool] => return Ok(of(tool)),
        [] => {}
        several => {
            let names: Vec<_> = several.iter().map(|tool| &*tool.server).collect();
            return Err(usage(format!(
                "several servers have a tool {name:?}; say which with --server: {}",
                names.join(", ")
            )));
        }
    }
    for server in &visit.names {
        let member = visit.hub.member(server).map_err(super::visit::trouble)?;
        let listed = visit.hub.listed(server).map_err(super::visit::trouble)?;
        let is_listed = listed.iter().any(|definition| name_of(definition).as_deref() == Some(name));
        if is_listed && !member.filter.offers(member.policy, name) {
            return Err(usage(format!("the filter of server '{server}' leaves out the tool {name:?}")));
        }
    }
    let tools = found.registry.tools();
    let names: Vec<&str> =
        tools.iter().map(|tool| &*tool.original).chain(tools.iter().map(|tool| &*tool.name)).collect();
    let near = nearest(name, &names).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    match &visit.names[..] {
        [server] => {
            visit.note(&format!("server '{server}' lists no tool {name:?}{near}"));
            Ok(Meant { server: server.clone(), tool: name.to_owned(), schema: None })
        }
        _ if !found.unreachable.is_empty() => {
            Err(Failure::cannot(format!("no server that can be reached has a tool {name:?}{near}")).into())
        }
        _ => Err(usage(format!("no server has a tool {name:?}{near}"))),
    }
}
