//! The arguments of `rehearse mcp call-tool`.

use std::{num::NonZeroUsize, path::PathBuf};

use super::{
    args::{CommonArgs, ContentArgs},
    connection::PolicyArgs,
    server_log::LEVELS,
};
use crate::{
    cli::{Format, terminal_user::ApprovalChoice},
    client::projection::Projection,
};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp call-tool --server files --tool read --args '{\"path\": \"README.md\"}'
  rehearse mcp call-tool read path=README.md lines=5    typed by the tool's schema
  rehearse mcp call-tool search tags=a tags=b limit:=null query=@query.txt
  rehearse mcp call-tool --http http://127.0.0.1:8888/mcp echo @args.json
  rehearse mcp call-tool draw what=cat --output pictures/
  rehearse mcp call-tool read path=README.md --as cpe    as cpe hands it to its model
  rehearse mcp call-tool book_table city=Paris --answer answers.yaml
  rehearse mcp call-tool --xml message.txt              what a model wrote that knows `list-tools --for xml`

Arguments: name=value is what the schema wants it to be, name:=JSON is JSON, name=@FILE is the text of a file; {…}, @FILE \
and - (standard input) are a JSON object with several. What is given later goes before what is given earlier.";

/// The arguments that say which one call to make.
const SINGLE: &[&str] = &["words", "tool", "args"];

/// Call a tool, and print what it returns
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("server", |it| it.help("The server of the tool; not needed if only one has it")))]
pub(super) struct CallToolArgs {
    /// The tool, unless --tool names it, then its arguments
    #[arg(value_name = "TOOL | NAME=VALUE", allow_hyphen_values = false)]
    pub(super) words: Vec<String>,
    #[command(flatten)]
    pub(super) content: ContentArgs,
    /// The tool, by its own name or by the one that a model calls it by
    #[arg(long, value_name = "NAME")]
    pub(super) tool: Option<String>,
    /// The arguments as a JSON object, or @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    pub(super) args: Option<String>,
    /// Print what another program hands to its model: canonical, cpe, code_agent, mcpilot or engine
    #[arg(long = "as", value_name = "FORM", conflicts_with_all = ["format", "json", "output"])]
    pub(super) form: Option<Projection>,
    /// Call what a model asks for in this message of text, which is a file or -
    #[arg(long, value_name = "FILE", conflicts_with_all = SINGLE)]
    pub(super) xml: Option<PathBuf>,
    /// With --xml: how many calls the message may have [default: 1]
    #[arg(long, value_name = "NUMBER", requires = "xml", conflicts_with_all = SINGLE)]
    pub(super) max_calls: Option<NonZeroUsize>,
    /// With --xml: who allows calls that the config does not
    #[arg(long, value_name = "WHO", value_enum, default_value_t = ApprovalChoice::Always, requires = "xml", conflicts_with_all = SINGLE)]
    pub(super) approve: ApprovalChoice,
    /// Ask for log messages as bad as this or worse, from debug to emergency; those that come are shown anyway
    #[arg(long, value_name = "LEVEL", value_parser = LEVELS, conflicts_with = "xml")]
    pub(super) log_level: Option<String>,
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(flatten)]
    pub(super) policy: PolicyArgs,
}

impl CallToolArgs {
    /// Whether results are printed as JSON.
    pub(super) fn is_for_programs(&self) -> bool {
        self.form.is_some() || self.common.format() == Format::Json
    }
}
