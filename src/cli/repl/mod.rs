//! `rehearse repl`: all servers of a config at once, and commands typed for them.
//!
//! ```text
//! terminal ─ editor ─┐                                   ┌─ follow: what changes is told above the prompt
//!                    ├─ line ─ command ─> shell ─ hub ───┤
//! pipe ──────────────┘                                   └─ watch: edited configs are taken over
//! ```
//!
//! [`command`] and [`complete`] are pure. [`shell`] holds the hub and does what a command asks for; what goes on beside
//! the commands is polled by the same task, so that nothing of it is left when the commands end.

mod call;
mod command;
mod complete;
mod editor;
mod follow;
mod history;
mod input;
mod offers;
mod servers;
mod settle;
mod shell;
mod switch;
mod watch;

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt;

use self::{input::Input, shell::Shell};
use super::{
    Exit, Failure,
    ask::{Approve, Person},
    guarded::with_servers,
    mcp::{
        connection::{ConnectionArgs, PolicyArgs, duration},
        target::{Files, Server, TargetArgs, tell_no_servers},
    },
    output,
    signals::Signals,
};
use crate::client::AnswerScript;

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
pub(super) struct ReplArgs {
    /// Connect to a server only when something needs it
    #[arg(long)]
    lazy: bool,
    /// Show the wire from the beginning, as the command debug on does
    #[arg(long)]
    debug: bool,
    /// Allow every call without asking, as --approve always does
    #[arg(short, long)]
    yes: bool,
    /// Who allows calls that the config does not [default: as the program of the config]
    #[arg(long, value_name = "WHO", value_enum, conflicts_with = "yes")]
    approve: Option<Approve>,
    /// How long a result of a tool that only reads stands for the next call with the same arguments [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    result_ttl: Option<Duration>,
    /// How often a server is asked whether it still answers [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    health: Option<Duration>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(super) fn run(args: ReplArgs) -> Result<Exit, Failure> {
    let (servers, files) = args.target.read(None, args.connection.show_secrets)?;
    if servers.is_empty() {
        tell_no_servers();
        return Ok(Exit::NothingSelected);
    }
    let answers = args.connection.script()?;
    with_servers(talk(args, servers, files, answers))
}

async fn talk(args: ReplArgs, servers: Vec<Server>, files: Files, answers: AnswerScript) -> Result<Exit, Failure> {
    let mut signals =
        Signals::install().map_err(|error| Failure::cannot(format!("signals cannot be handled: {error}")))?;
    let person = Person::at_terminal();
    let shell = Arc::new(Shell::new(args, servers, files, answers, person.clone())?);
    let mut input = match &person {
        Some(person) => Input::terminal(person.keyboard().clone(), editor::editor(&shell, person.keyboard())),
        None => Input::piped(),
    };
    let mut connecting = Box::pin(shell.connect_all()).fuse();
    let exit = tokio::select! {
        exit = Box::pin(input::commands(&shell, &mut input, &mut signals)) => exit,
        exit = &mut connecting => exit,
        never = Box::pin(follow::events(&shell)) => match never {},
        never = Box::pin(watch::configs(&shell)) => match never {},
    };
    // A keyboard that nobody reads any more gives the terminal back.
    input.close().await;
    let leaving = async {
        let mut closing = std::pin::pin!(shell.close());
        // A server that is still connected to takes its leave as well.
        tokio::select! {
            () = &mut closing => {}
            _ = &mut connecting => closing.await,
        }
    };
    signals.hasten(&shell.shutdown, input::INTERRUPTED, leaving).await;
    output::nothing_lost()?;
    Ok(if shell.shutdown.is_cancelled() { Exit::CannotRun } else { exit })
}
