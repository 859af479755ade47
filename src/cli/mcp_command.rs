//! `rehearse mcp`: one command for each thing that an MCP client does.

use rehearse_protocol::List;

use clap::{Args, Subcommand};

use super::{
    Exit, Failure,
    mcp::{
        app, auth,
        call::{call_tool, call_tool_args},
        content::{complete, get_prompt, read_resource},
        info,
        list::{list_servers, list_tools, listing},
        ping, status,
    },
    serve,
};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp list-servers                           the servers of your MCP clients
  rehearse mcp list-tools files --mcp-config .mcp.json
  rehearse mcp call-tool read path=README.md -- npx -y mcp-files
  rehearse mcp read-resource --http https://example.com/mcp docs://index
  rehearse mcp auth web                               get an OAuth token for a server

Servers come from config files (see `rehearse config show`), -- COMMAND, --http, --sse or --ws.

Exit codes:
  0  success
  1  the tool reported an error, or the request failed
  2  wrong usage, or a config with mistakes
  3  a server cannot be reached or requires authorization; or interrupted
  4  no servers are configured, or a message has no tool call";

/// Talk to MCP servers: list and call tools, read resources, get prompts
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    #[command(visible_alias = "ls-servers", alias = "servers")]
    ListServers(list_servers::ListServersArgs),
    #[command(visible_alias = "debug")]
    Info(info::InfoArgs),
    #[command(visible_alias = "ls-tools", alias = "tools")]
    ListTools(list_tools::ListToolsArgs),
    #[command(alias = "call")]
    CallTool(call_tool_args::CallToolArgs),
    App(app::AppArgs),
    /// List the resources of one or all servers
    #[command(alias = "resources", after_help = listing::RESOURCE_EXAMPLES)]
    ListResources(listing::ListingArgs),
    /// List the resource templates of one or all servers
    #[command(after_help = listing::TEMPLATE_EXAMPLES)]
    ListResourceTemplates(listing::ListingArgs),
    ReadResource(read_resource::ReadResourceArgs),
    /// List the prompts of one or all servers
    #[command(alias = "prompts", after_help = listing::PROMPT_EXAMPLES)]
    ListPrompts(listing::ListingArgs),
    GetPrompt(get_prompt::GetPromptArgs),
    Complete(complete::CompleteArgs),
    Status(status::StatusArgs),
    Ping(ping::PingArgs),
    Auth(auth::AuthArgs),
    Serve(serve::ServeArgs),
}

pub(super) fn run(args: &McpArgs) -> Result<Exit, Failure> {
    match &args.command {
        McpCommand::ListServers(args) => list_servers::run(args),
        McpCommand::Info(args) => info::run(args),
        McpCommand::ListTools(args) => list_tools::run(args),
        McpCommand::CallTool(args) => call_tool::run(args),
        McpCommand::App(args) => app::run(args),
        McpCommand::ListResources(args) => listing::run(args, List::Resources),
        McpCommand::ListResourceTemplates(args) => listing::run(args, List::ResourceTemplates),
        McpCommand::ReadResource(args) => read_resource::run(args),
        McpCommand::ListPrompts(args) => listing::run(args, List::Prompts),
        McpCommand::GetPrompt(args) => get_prompt::run(args),
        McpCommand::Complete(args) => complete::run(args),
        McpCommand::Status(args) => status::run(args),
        McpCommand::Ping(args) => ping::run(args),
        McpCommand::Auth(args) => auth::run(args),
        McpCommand::Serve(args) => serve::run(args),
    }
}
