//! `rehearse repl`: all servers of a config at once, and commands typed for them.
//!
//! ```text
//! terminal ─ editor ─┐                                   ┌─ follow: changes are printed above the prompt
//!                    ├─ line ─ command ─> shell ─ hub ───┤
//! pipe ──────────────┘                                   └─ watch: edited configs are taken over
//! ```
//!
//! [`command`] and [`complete`] are pure. [`shell`] holds the hub and does what a command asks for; what goes on beside
//! the commands is polled by the same task, so that nothing of it is left when the commands end.

mod args;
mod backoff;
mod call;
mod command;
mod complete;
mod config_watch;
mod content_commands;
mod debug_switch;
mod editor;
mod history;
mod hub_events;
mod initial_connections;
mod input;
mod server_commands;
mod shell;
mod startup;

use std::sync::Arc;

use futures_util::FutureExt;

pub(super) use self::args::ReplArgs;
use self::{input::Input, shell::Shell};
use super::{
    Exit, Failure,
    mcp::target::{Files, Server, print_no_servers},
    output,
    process_guard::block_on_guarded,
    signals::Signals,
    terminal_user::TerminalUser,
};
use rehearse_client::AnswerScript;

pub(super) fn run(args: ReplArgs) -> Result<Exit, Failure> {
    let (servers, files) = args.target.read(None, args.connection.show_secrets)?;
    if servers.is_empty() {
        print_no_servers();
        return Ok(Exit::NothingSelected);
    }
    let answers = args.connection.script()?;
    block_on_guarded(talk(args, servers, files, answers))
}

async fn talk(args: ReplArgs, servers: Vec<Server>, files: Files, answers: AnswerScript) -> Result<Exit, Failure> {
    let mut signals = Signals::install().map_err(|error| Failure::cannot(format!("cannot handle signals: {error}")))?;
    let person = TerminalUser::at_terminal();
    let shell = Arc::new(Shell::new(args, servers, files, answers, person.clone())?);
    let mut input = match &person {
        Some(person) => Input::terminal(person.keyboard().clone(), editor::editor(&shell, person.keyboard())),
        None => Input::piped(),
    };
    let mut connecting = Box::pin(shell.connect_all()).fuse();
    let exit = tokio::select! {
        exit = Box::pin(input::commands(&shell, &mut input, &mut signals)) => exit,
        exit = &mut connecting => exit,
        never = Box::pin(hub_events::events(&shell)) => match never {},
        never = Box::pin(config_watch::configs(&shell)) => match never {},
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
    signals.run_until_signal(&shell.shutdown, input::INTERRUPTED, leaving).await;
    output::check_writes()?;
    Ok(if shell.shutdown.is_cancelled() { Exit::CannotRun } else { exit })
}
