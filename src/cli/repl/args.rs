//! The arguments of `rehearse repl`.

use std::time::Duration;

use crate::cli::{
    mcp::target::{
        TargetArgs,
        connection::{CallArgs, ConnectionArgs, PolicyArgs, duration},
    },
    terminal_user::ApprovalChoice,
};

const EXAMPLES: &str = "\
Examples:
  rehearse repl                                      the servers of your MCP clients
  rehearse repl --mcp-config .mcp.json --debug
  rehearse repl -- npx -y mcp-files
  printf 'status\\ncall echo text=hi\\n' | rehearse repl --mcp-config .mcp.json --yes

Type `help` for the commands. Edited config files are reloaded. Servers come from config files (see `rehearse config \
show`) or from -- COMMAND, --stdio, --http, --sse or --ws.

Exit codes:
  0  success
  1  a command from a pipe failed
  2  wrong usage, or a config with mistakes
  3  interrupted, or a required server cannot be reached";

/// Talk to MCP servers interactively
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplArgs {
    /// Connect to a server only when a command needs it
    #[arg(long)]
    pub(super) lazy: bool,
    /// Print all frames from the start, as the command `debug on`
    #[arg(long)]
    pub(super) debug: bool,
    /// Allow every call without asking, as --approve always
    #[arg(short, long)]
    pub(super) yes: bool,
    /// How to approve calls: ask, always or never [default: the client's]
    #[arg(long, hide_possible_values = true, value_name = "WHO", value_enum, conflicts_with = "yes")]
    pub(super) approve: Option<ApprovalChoice>,
    /// How often to try to reconnect a server; above 0, lost calls of read-only tools are repeated [default: 6]
    #[arg(long, hide_short_help = true, value_name = "NUMBER", default_value_t = 6, hide_default_value = true)]
    pub(super) retries: usize,
    /// Reuse results of read-only tools for this time [default: never]
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = duration)]
    pub(super) result_ttl: Option<Duration>,
    /// Interval of health checks [default: never]
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = duration)]
    pub(super) health: Option<Duration>,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
    #[command(flatten)]
    pub(super) policy: PolicyArgs,
    #[command(flatten)]
    pub(super) calls: CallArgs,
}
