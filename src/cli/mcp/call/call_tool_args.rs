//! The arguments of `rehearse mcp call-tool`.

use std::{num::NonZeroUsize, path::PathBuf};

use crate::cli::{
    Failure, Format,
    mcp::{
        args::{CommonArgs, ContentArgs},
        arguments::Arguments,
        print::server_log::LEVELS,
        target::connection::{CallArgs, PolicyArgs},
    },
    terminal_user::ApprovalChoice,
};
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

/// A call, and what becomes of its result.
#[derive(Debug, clap::Args)]
pub(crate) struct ToolCallArgs {
    /// The tool (unless --tool is used) and its arguments
    #[arg(value_name = "TOOL | NAME=VALUE", allow_hyphen_values = false)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) content: ContentArgs,
    /// The tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// The arguments: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Print the result as a client passes it to its model: canonical, cpe, code_agent, mcpilot or engine
    #[arg(long = "as", hide_short_help = true, value_name = "FORM", conflicts_with = "output")]
    pub(crate) form: Option<Projection>,
    /// Request log messages of at least this level, from debug to emergency
    #[arg(long, hide_short_help = true, hide_possible_values = true, value_name = "LEVEL", value_parser = LEVELS)]
    pub(crate) log_level: Option<String>,
}

impl ToolCallArgs {
    /// The tool and the words of its arguments.
    ///
    /// # Errors
    /// No tool is named.
    fn split(&self) -> Result<(&str, &[String]), Failure> {
        match (&self.tool, self.words.split_first()) {
            (Some(tool), _) => Ok((tool, &self.words)),
            (None, Some((tool, words))) if !tool.contains('=') && !tool.starts_with('{') => Ok((tool, words)),
            (None, _) => Err(Failure::Usage(
                "--tool is required, or the name of the tool before its arguments, as `rehearse mcp list-tools` shows it"
                    .to_owned(),
            )),
        }
    }

    /// # Errors
    /// No tool is named.
    pub(crate) fn tool(&self) -> Result<&str, Failure> {
        self.split().map(|(tool, _)| tool)
    }

    pub(crate) fn server(&self) -> Option<&str> {
        self.content.server.as_deref()
    }

    /// Reads the arguments of the tool, some of them from files or standard input.
    ///
    /// # Errors
    /// An argument is wrong, or cannot be read.
    pub(crate) fn arguments(&self) -> Result<Arguments, Failure> {
        let (_, words) = self.split()?;
        Arguments::read(self.args.as_deref(), words)
    }

    /// Whether standard input is an argument.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.args.iter().chain(&self.words).any(|word| word == "-")
    }
}

/// Call a tool and print its result
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("server", |it| it.help("The server of the tool; optional if only one has it")))]
#[command(mut_arg("form", |it| it.conflicts_with_all(["format", "json"])))]
pub(crate) struct CallToolArgs {
    #[command(flatten)]
    pub(crate) call: ToolCallArgs,
    /// Run the XML tool calls in a model's message: a file, or - for standard input
    #[arg(long, value_name = "FILE", hide_short_help = true, conflicts_with_all = SINGLE, conflicts_with = "log_level")]
    pub(crate) xml: Option<PathBuf>,
    /// With --xml: the maximum number of calls [default: 1]
    #[arg(long, hide_short_help = true, value_name = "NUMBER", requires = "xml", conflicts_with_all = SINGLE)]
    pub(crate) max_calls: Option<NonZeroUsize>,
    /// With --xml: how to approve calls that the config does not allow: ask, always or never
    #[arg(long, hide_short_help = true, hide_possible_values = true, value_name = "WHO", value_enum, default_value_t = ApprovalChoice::Always, requires = "xml", conflicts_with_all = SINGLE)]
    pub(crate) approve: ApprovalChoice,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) calls: CallArgs,
}

impl CallToolArgs {
    /// Whether results are printed as JSON.
    pub(crate) fn is_json_output(&self) -> bool {
        self.call.form.is_some() || self.common.format() == Format::Json
    }
}
