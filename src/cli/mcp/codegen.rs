//! `rehearse codegen`: typed functions for the tools of a server.

use std::{
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use super::{
    args::CommonArgs,
    error::CommandError,
    print::{print, text_of},
    session::run_session,
};
use crate::cli::{Exit, Failure, Format, output};
use rehearse_code_mode::{Tool, codegen::Language};
use rehearse_hub::RegisteredTool;

const EXAMPLES: &str = "\
Examples:
  rehearse codegen files --lang typescript --out src/files.ts
  rehearse codegen --lang go --out tools/tools.go -- npx -y mcp-files

In TypeScript, `tools(client)` has one typed function for each tool; `client` is the `Client` of the official SDK. In Go, \
`Tools{Session: session}` has them; `session` is the `*mcp.ClientSession` of the official SDK.

Exit codes:
  0  the functions of all tools are written
  1  the tools cannot be listed
  2  wrong usage, or a config with mistakes
  3  the server cannot be reached, or the file cannot be written; or interrupted
  4  no servers are configured";

/// Write typed functions for the tools of a server
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("format", |it| it.hide(true)), mut_arg("json", |it| it.hide(true)))]
pub(in crate::cli) struct CodegenArgs {
    /// The server; optional if there is only one
    server: Option<String>,
    /// The language: typescript or go
    #[arg(long, value_name = "LANGUAGE", value_enum, hide_possible_values = true)]
    lang: Lang,
    /// Write to this file, and make its folder [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Lang {
    #[value(alias = "ts")]
    Typescript,
    Go,
}

/// What a definition has besides its name.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    input_schema: Value,
    output_schema: Option<Value>,
}

pub(in crate::cli) fn run(args: &CodegenArgs) -> Result<Exit, Failure> {
    if args.common.format() == Format::Json {
        return Err(Failure::Usage("`rehearse codegen` writes source text; it has no JSON output".to_owned()));
    }
    let servers = args.common.one(args.server.as_deref(), "SERVER")?;
    let language = match args.lang {
        Lang::Typescript => Language::TypeScript,
        Lang::Go => Language::Go,
    };
    run_session(&args.common, &servers, async |hub_session| {
        let found = hub_session.discover().await?;
        hub_session.print_notices(&found.registry.notices);
        // A part of the tools would look like all of them.
        if let Some((server, failure)) = found.incomplete.first() {
            return Err(CommandError::Listing(format!("cannot list the tools of {server}: {failure}")));
        }
        let tools: Vec<_> = found.registry.tools().iter().filter_map(|tool| tool_of(tool)).collect();
        let text = language.bindings(&tools);
        match &args.out {
            Some(path) => write(path, &text)?,
            None if io::stdout().is_terminal() => print(&text_of(&text))?,
            None => output::write(text.as_bytes())?,
        }
        Ok(Exit::Success)
    })
}

/// Writes the file, in a new folder if there is none.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot = |error| Failure::cannot(format!("cannot write {}: {error}", path.display()));
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(cannot)?;
    output::write_file(path, text.as_bytes())
}

/// The tool under its name on the server; the registry has only tools with valid definitions.
fn tool_of(tool: &RegisteredTool) -> Option<Tool> {
    let Definition { input_schema, output_schema } = serde_json::from_str(tool.definition.get()).ok()?;
    let (name, description) = (tool.original.clone(), tool.description.clone());
    Some(Tool { name, description, input_schema, output_schema })
}
