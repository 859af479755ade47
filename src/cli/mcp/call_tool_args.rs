//! The arguments of `rehearse mcp call-tool`.

use std::{num::NonZeroUsize, path::PathBuf};

use super::{
    args::{CommonArgs, ContentArgs},
    connection::{CallArgs, PolicyArgs},
    server_log::LEVELS,
};
use crate::cli::{Format, terminal_user::ApprovalChoice};
use rehearse_hub::projection::Projection;

const EXAMPLES: &str = "\
Examples:
  rehearse mcp call-tool --server files --tool read --args '{\"path\": \"README.md\"}'
  rehearse mcp call-tool read path=README.md lines=5
  rehearse mcp call-tool search tags=a tags=b limit:=null query=@query.txt
  rehearse mcp call-tool --http http://127.0.0.1:8888/mcp echo @args.json
  rehearse mcp call-tool book_table city=Paris --answer answers.yaml

Arguments: name=value is converted to the type in the schema, name:=JSON is JSON, name=@FILE is the text of a file; {…}, \
@FILE and - (standard input) are a JSON object with several arguments. Later arguments replace earlier ones.";

/// The arguments for a single call.
const SINGLE: &[&str] = &["words", "tool", "args"];

/// Call a tool and print its result
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("server", |it| it.help("The server of the tool; optional if only one has it")))]
pub(super) struct CallToolArgs {
    /// The tool (unless --tool is used) and its arguments
    #[arg(value_name = "TOOL | NAME=VALUE", allow_hyphen_values = false)]
    pub(super) words: Vec<String>,
    #[command(flatten)]
    pub(super) content: ContentArgs,
    /// The tool
    #[arg(long, value_name = "NAME")]
    pub(super) tool: Option<String>,
    /// The arguments: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    pub(super) args: Option<String>,
    /// Print the result as a client passes it to its model: canonical, cpe, code_agent, mcpilot or engine
    #[arg(long = "as", hide_short_help = true, value_name = "FORM", conflicts_with_all = ["format", "json", "output"])]
    pub(super) form: Option<Projection>,
    /// Run the XML tool calls in a model's message: a file, or - for standard input
    #[arg(long, value_name = "FILE", hide_short_help = true, conflicts_with_all = SINGLE)]
    pub(super) xml: Option<PathBuf>,
    /// With --xml: the maximum number of calls [default: 1]
    #[arg(long, hide_short_help = true, value_name = "NUMBER", requires = "xml", conflicts_with_all = SINGLE)]
    pub(super) max_calls: Option<NonZeroUsize>,
    /// With --xml: how to approve calls that the config does not allow: ask, always or never
    #[arg(long, hide_short_help = true, hide_possible_values = true, value_name = "WHO", value_enum, default_value_t = ApprovalChoice::Always, requires = "xml", conflicts_with_all = SINGLE)]
    pub(super) approve: ApprovalChoice,
    /// Request log messages of at least this level, from debug to emergency
    #[arg(long, hide_short_help = true, hide_possible_values = true, value_name = "LEVEL", value_parser = LEVELS, conflicts_with = "xml")]
    pub(super) log_level: Option<String>,
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(flatten)]
    pub(super) policy: PolicyArgs,
    #[command(flatten)]
    pub(super) calls: CallArgs,
}

impl CallToolArgs {
    /// Whether results are printed as JSON.
    pub(super) fn is_json_output(&self) -> bool {
        self.form.is_some() || self.common.format() == Format::Json
    }
}
