//! `rehearse repl`: typed commands for all servers of a config.
//!
//! ```text
//! terminal ─ editor ─┐                                   ┌─ events: changes are printed above the prompt
//!                    ├─ line ─ command ─> shell ─ hub ───┤
//! pipe ──────────────┘                                   └─ watch: edited configs are reloaded
//! ```
//!
//! [`command`] and [`complete`] do no IO. [`shell`] holds the hub and runs commands. The same task polls the background
//! work, so that it ends with the commands.

mod args;
mod backoff;
mod call;
mod chat;
mod command;
mod complete;
mod config_watch;
mod content_commands;
mod debug_switch;
mod editor;
mod error;
mod history;
mod hub_events;
mod initial_connections;
mod input;
mod server_commands;
mod shell;
mod startup;

use std::sync::Arc;

use futures_util::FutureExt;

pub(super) use self::{
    args::ReplArgs,
    chat::{ChatArgs, run as chat},
};
use self::{chat::Chat, input::Input, shell::Shell};
use super::{
    Exit, Failure,
    job::Job,
    mcp::{
        session::INTERRUPTED,
        target::{Files, Server, print_no_servers},
    },
    process_guard::block_on_guarded,
    terminal_user::TerminalUser,
};
use rehearse_client::AnswerScript;

pub(super) fn run(args: ReplArgs) -> Result<Exit, Failure> {
    run_with(args, None)
}

/// Runs the REPL, with a conversation if there is one. A conversation needs no servers.
fn run_with(args: ReplArgs, chat: Option<Chat>) -> Result<Exit, Failure> {
    let (servers, files) = args.target.read(None, args.connection.show_secrets)?;
    if servers.is_empty() && chat.is_none() {
        print_no_servers();
    }
    let answers = args.connection.answer_script()?;
    block_on_guarded(run_shell(args, servers, files, answers, chat))
}

async fn run_shell(
    args: ReplArgs,
    servers: Vec<Server>,
    files: Files,
    answers: AnswerScript,
    mut chat: Option<Chat>,
) -> Result<Exit, Failure> {
    let person = TerminalUser::detect();
    let events = match &mut chat {
        Some(chat) => chat.start().await?,
        None => None,
    };
    let shell = Arc::new(Shell::new(args, servers, files, answers, person.clone(), chat)?);
    let mut job = Job::start(shell.shutdown.clone(), INTERRUPTED)?;
    let mut input = match &person {
        Some(person) => {
            let prompt = if shell.chat.is_some() { "chat> " } else { "mcp> " };
            Input::terminal(person.keyboard().clone(), editor::editor(&shell, person.keyboard()), prompt)
        }
        None if shell.chat.is_some() => Input::piped_message(),
        None => Input::piped(),
    };
    let mut connecting = Box::pin(shell.connect_all()).fuse();
    let exit = tokio::select! {
        exit = Box::pin(input::run_commands(&shell, &mut input, &mut job.signals)) => exit,
        exit = &mut connecting => exit,
        never = Box::pin(hub_events::watch_hub(&shell)) => match never {},
        never = Box::pin(config_watch::watch_configs(&shell)) => match never {},
    };
    // This restores the terminal.
    input.close().await;
    let closing = async {
        let mut close = std::pin::pin!(shell.close());
        // Pending connection attempts are closed as well.
        tokio::select! {
            () = &mut close => {}
            _ = &mut connecting => close.await,
        }
    };
    job.run(closing).await;
    shell.chat.iter().for_each(Chat::print_end);
    if let Some(events) = events {
        events.stop().await;
    }
    Ok(if job.is_interrupted() { Exit::CannotRun } else { exit })
}
