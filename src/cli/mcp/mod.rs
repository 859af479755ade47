//! `rehearse mcp`: talk to MCP servers, those of configs or any other. One file for each subcommand.
//!
//! [`target`] says which servers there are, [`hub_session`] holds the connections with them while a command works, and
//! [`content`] prints or saves what came.

mod args;
pub(in crate::cli) mod arguments;
pub(in crate::cli) mod auth;
mod authorization;
mod call_tool;
mod call_tool_args;
pub(in crate::cli) mod command_line_server;
mod complete;
pub(in crate::cli) mod connection;
pub(in crate::cli) mod content;
pub(in crate::cli) mod error;
pub(in crate::cli) mod get_prompt;
pub(in crate::cli) mod info;
mod json_tokens;
pub(in crate::cli) mod list_prompts;
pub(in crate::cli) mod list_resources;
mod list_servers;
pub(in crate::cli) mod list_tools;
pub(in crate::cli) mod listing;
mod model_message;
mod ping;
pub(in crate::cli) mod print;
pub(in crate::cli) mod projected_result;
pub(in crate::cli) mod read_resource;
mod server_log;
pub(in crate::cli) mod session;
mod status;
pub(in crate::cli) mod table;
pub(in crate::cli) mod target;
pub(in crate::cli) mod tool_call;
mod tool_format;
pub(in crate::cli) mod trace;

use clap::{Args, Subcommand};

use super::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp list-servers                           what the programs on this machine have
  rehearse mcp list-tools files --mcp-config .mcp.json
  rehearse mcp call-tool --stdio 'npx -y mcp-files' read path=README.md
  rehearse mcp read-resource --http https://example.com/mcp docs://index
  rehearse mcp status                                 reach for every server
  rehearse mcp auth web                               get a token for a server that wants one

Servers come from configs, which are found as `rehearse config show` finds them, or from one of --stdio, --http, --sse \
and --ws.

Exit codes:
  0  it worked
  1  the tool reports an error, or the server did not answer as it should
  2  wrong usage, or a config that is wrong
  3  a server cannot be reached or lets nobody in, or it was interrupted
  4  there are no servers, or a message asks for no tool";

/// Talk to MCP servers: list what they offer, call tools, read resources, get prompts
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    #[command(visible_alias = "ls-servers")]
    ListServers(list_servers::ListServersArgs),
    #[command(visible_alias = "debug")]
    Info(info::InfoArgs),
    #[command(visible_alias = "ls-tools")]
    ListTools(list_tools::ListToolsArgs),
    CallTool(call_tool_args::CallToolArgs),
    ListResources(list_resources::ListResourcesArgs),
    ListResourceTemplates(list_resources::ListResourceTemplatesArgs),
    ReadResource(read_resource::ReadResourceArgs),
    ListPrompts(list_prompts::ListPromptsArgs),
    GetPrompt(get_prompt::GetPromptArgs),
    Complete(complete::CompleteArgs),
    Status(status::StatusArgs),
    Ping(ping::PingArgs),
    Auth(auth::AuthArgs),
}

pub(super) fn run(args: &McpArgs) -> Result<Exit, Failure> {
    match &args.command {
        McpCommand::ListServers(args) => list_servers::run(args),
        McpCommand::Info(args) => info::run(args),
        McpCommand::ListTools(args) => list_tools::run(args),
        McpCommand::CallTool(args) => call_tool::run(args),
        McpCommand::ListResources(args) => list_resources::run(args),
        McpCommand::ListResourceTemplates(args) => list_resources::run_templates(args),
        McpCommand::ReadResource(args) => read_resource::run(args),
        McpCommand::ListPrompts(args) => list_prompts::run(args),
        McpCommand::GetPrompt(args) => get_prompt::run(args),
        McpCommand::Complete(args) => complete::run(args),
        McpCommand::Status(args) => status::run(args),
        McpCommand::Ping(args) => ping::run(args),
        McpCommand::Auth(args) => auth::run(args),
    }
}
