//! `rehearse mock`: serves a script over stdio, or over all network transports on one port.

pub(super) mod announcement;
mod args;
mod catalogue;
mod client_check;
pub(super) mod console;
pub(super) mod exec;
mod from_trace;
mod journal_writer;
mod relay;
mod script_watcher;
pub(super) mod server;
mod verification;

use std::{fs::File, net::Ipv4Addr};

pub(super) use args::{MockArgs, parse_address};
pub(super) use relay::{RelayArgs, relay};
use tokio::runtime;

use self::{
    client_check::ClientCheck,
    console::Console,
    script_watcher::ScriptWatcher,
    server::{GRACE, Mock, runtime_failure},
};
use super::{Exit, Failure, Format, usage_hint::quoted_command};
use mcp_rehearsal::builtin_scripts::BUILTIN_SCRIPTS;
use rehearse_mock::{
    engine::{Engine, Seed},
    journal::Journal,
    script::Script,
};

/// Serves until the client closes the connection or a signal arrives. An unread stderr does not block it.
///
/// # Errors
/// The script has mistakes, or the journal cannot be opened.
pub(super) fn run(args: MockArgs) -> Result<Exit, Failure> {
    if args.faults {
        return Ok(catalogue::faults(args.format));
    }
    if args.list {
        return Ok(catalogue::list(args.format));
    }
    if let Some(path) = &args.from_trace {
        return from_trace::print_script(path);
    }
    if args.validate {
        return Ok(catalogue::validate(&args.scripts, args.format));
    }
    if args.exec && args.command.is_empty() {
        return Err(Failure::Usage(
            "--exec needs a command, after `--`: rehearse mock SCRIPT --exec -- npm test".into(),
        ));
    }
    if let Some(wrong) = quoted_command(&args.command) {
        return Err(Failure::Usage(wrong));
    }
    let [path] = &args.scripts[..] else {
        return Err(Failure::Usage("only one script can be served; only `--validate` takes several".into()));
    };
    if args.format == Format::Json && (args.exec || args.listen.is_none()) {
        let hint = if args.exec { "with --exec use the REHEARSE_* variables" } else { "add `--listen :0`" };
        return Err(Failure::Usage(format!("--format json needs --listen, --list, --faults or --validate: {hint}")));
    }
    let (script, watch) = match args.watch {
        true => ScriptWatcher::load(path).map(|(script, watch)| (script, Some(watch)))?,
        false => (Script::load(path, BUILTIN_SCRIPTS)?, None),
    };
    let journal = args
        .journal
        .as_deref()
        .map(|path| journal_writer::open(path, args.listen.is_none() && !args.exec))
        .transpose()?;
    Ok(Console::run(|console| serve(&args, script, watch, journal, console)))
}

fn serve(
    args: &MockArgs,
    script: Script,
    watch: Option<ScriptWatcher>,
    journal: Option<File>,
    console: &Console,
) -> Result<Exit, Failure> {
    let (sender, follower) = journal_writer::start(journal, args.verbose.then(|| console.clone())).unzip();
    let seed = args.seed.map_or_else(Seed::random, Seed::from);
    let check = args.check.then(|| ClientCheck::new(sender.clone()));
    let engine = Engine::new(script, seed, Journal::new(sender));
    let mock = Mock { args, seed: seed.number(), engine: engine.clone(), watch, check: check.as_ref(), console };
    let is_network = args.exec || args.listen.is_some();
    // One thread is enough for stdio, and starts faster.
    let mut builder =
        if is_network { runtime::Builder::new_multi_thread() } else { runtime::Builder::new_current_thread() };
    let runtime = builder.enable_all().build().map_err(runtime_failure)?;
    let exit = match args.listen {
        _ if args.exec => runtime.block_on(mock.exec(args.listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into()))),
        Some(address) => runtime.block_on(mock.listen(address)),
        None => runtime.block_on(mock.stdio()),
    };
    // A thread that reads a terminal never returns, and one that renders a template may take long.
    runtime.shutdown_background();
    let exit = exit.map(|exit| {
        let is_verified = verification::report(&engine, args.verify, console);
        let is_conformant = check.as_ref().is_none_or(|check| check.conclude(&engine, console));
        match exit {
            Exit::Success | Exit::Scripted(_) if (args.verify || args.exec) && !(is_verified && is_conformant) => {
                Exit::Violation
            }
            exit => exit,
        }
    });
    drop((engine, check));
    let followed = follower.map_or(Ok(()), |follower| follower.finish(GRACE, args.journal.as_deref()));
    exit.and_then(|exit| followed.map(|()| exit))
}
