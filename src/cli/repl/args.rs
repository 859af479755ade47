//! The arguments of `rehearse repl`.

use std::time::Duration;

use crate::cli::{
    mcp::{
        connection::{ConnectionArgs, PolicyArgs, duration},
        target::TargetArgs,
    },
    terminal_user::ApprovalChoice,
};

const EXAMPLES: &str = "\
Examples:
  rehearse repl                                      the servers that the programs on this machine have
  rehearse repl --mcp-config .mcp.json --debug
  rehearse repl --stdio 'npx -y mcp-files'
  printf 'status\\ncall echo text=hi\\n' | rehearse repl --mcp-config .mcp.json --yes

Type help for the commands. Edited config files are taken over. Servers come from configs, which are found as \
`rehearse config show` finds them, or from one of --stdio, --http, --sse and --ws.

Exit codes:
  0  it was ended; of a pipe, every command did what it should
  1  a command of a pipe failed
  2  wrong usage, or a config that is wrong
  3  it was interrupted, or a server cannot be reached that has to be
  4  there are no servers";

/// Talk to all servers at a prompt: see how it stands with them, call tools, switch them on and off
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct ReplArgs {
    /// Connect to a server only when something needs it
    #[arg(long)]
    pub(super) lazy: bool,
    /// Show the wire from the beginning, as the command debug on does
    #[arg(long)]
    pub(super) debug: bool,
    /// Allow every call without asking, as --approve always does
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Who allows calls that the config does not [default: as the program of the config]
    #[arg(long, value_name = "WHO", value_enum, conflicts_with = "yes")]
    pub(super) approve: Option<ApprovalChoice>,
    /// How long a result of a tool that only reads stands for the next call with the same arguments [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) result_ttl: Option<Duration>,
    /// How often a server is asked whether it still answers [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) health: Option<Duration>,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
    #[command(flatten)]
    pub(super) policy: PolicyArgs,
}
