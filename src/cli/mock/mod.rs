//! `rehearse mock`: serves a script over stdio, or over all network transports on one port.

mod announcement;
mod args;
mod catalogue;
mod console;
mod exec;
mod exec_environment;
mod journal_writer;
mod relay;
pub(in crate::cli) mod script_watcher;
mod stdio;
mod terminal;
mod verification;

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

pub(super) use args::MockArgs;
pub(super) use relay::{RelayArgs, relay};
use tokio::runtime;
use tokio_util::sync::CancellationToken;

use self::{console::Console, script_watcher::ScriptWatcher};
use super::{Exit, Failure, Format, signals::Signals};
use crate::{
    builtin_scripts::BUILTIN_SCRIPTS,
    mock::{
        admin::AdminServer,
        engine::{Engine, Seed},
        journal::Journal,
        script::Script,
        serve::{ListenOptions, MockServer, PipeEnd, serve_pipe},
    },
    transport::Transport,
};

/// How long answers that are under way may still take after a signal, and the journal after them.
const GRACE: Duration = Duration::from_secs(5);
/// How long the end may take without a word.
const STOP_NOTICE_DELAY: Duration = Duration::from_millis(200);
/// How long stderr may take at the end. Who reads it at all has read it by then.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves until the client closes its end or a signal comes. Once it serves, nothing waits for a stderr that nobody
/// reads.
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
    if args.validate {
        return Ok(catalogue::validate(&args.scripts, args.format));
    }
    if args.exec && args.command.is_empty() {
        return Err(Failure::Usage(
            "--exec needs a command, after `--`: rehearse mock SCRIPT --exec -- npm test".into(),
        ));
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
    let (console, printer) = Console::open();
    let exit = serve(&args, script, watch, journal, &console).unwrap_or_else(|failure| {
        console.say(failure.text());
        failure.exit()
    });
    drop(console);
    printer.join_timeout(STDERR_TIMEOUT);
    Ok(exit)
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
    let engine = Engine::new(script, seed, Journal::new(sender));
    let mock = Mock { args, seed: seed.number(), engine: engine.clone(), watch, console };
    let several_threads = || runtime::Builder::new_multi_thread().enable_all().build().map_err(runtime_failure);
    let exit = match args.listen {
        _ if args.exec => {
            let address = args.listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
            several_threads()?.block_on(mock.exec(address))
        }
        Some(address) => several_threads()?.block_on(mock.listen(address)),
        None => {
            // One thread, for the sake of a fast start.
            let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(runtime_failure)?;
            let exit = runtime.block_on(mock.stdio());
            // A thread that reads a terminal never returns.
            runtime.shutdown_background();
            exit
        }
    };
    let exit = exit.map(|exit| match (verification::report(&engine, args.verify, console), exit) {
        (false, Exit::Success | Exit::Scripted(_)) if args.verify || args.exec => Exit::Violation,
        (_, exit) => exit,
    });
    drop(engine);
    let followed = follower.map_or(Ok(()), |follower| follower.finish(GRACE));
    exit.and_then(|exit| followed.map(|()| exit))
}

fn runtime_failure(error: std::io::Error) -> Failure {
    Failure::cannot(format!("cannot start: {error}"))
}

/// A mock that is about to be served.
struct Mock<'a> {
    args: &'a MockArgs,
    seed: u64,
    engine: Arc<Engine>,
    watch: Option<ScriptWatcher>,
    console: &'a Console,
}

impl Mock<'_> {
    async fn stdio(self) -> Result<Exit, Failure> {
        let Mock { args, seed, engine, watch, console } = self;
        let mut signals = Signals::install().map_err(runtime_failure)?;
        let (stop, started) = (CancellationToken::new(), Instant::now());
        let admin = start_admin(args, &engine, started).await?;
        console.say(announcement::stdio(&engine, &args.scripts[0], seed, admin.as_ref()));
        let (mut input, mut output) = (stdio::Input::open(), stdio::Output::open());
        let second_signal = async {
            signals.next().await;
            console.leave_line();
            stop.cancel();
            tokio::select! {
                _ = signals.next() => {}
                () = say_stopping(console) => {}
            }
        };
        let ended = tokio::select! {
            ended = serve_pipe(engine.clone(), Transport::Stdio, &mut input, &mut output, stop.clone(), GRACE) => ended,
            () = stdio::nobody_reads() => Ok(PipeEnd::Closed),
            () = second_signal => Ok(PipeEnd::Stopped),
            () = script_watcher::follow(watch, &engine, started, console) => Ok(PipeEnd::Stopped),
        };
        input.restore();
        output.restore();
        match ended {
            Ok(PipeEnd::Closed | PipeEnd::Stopped) => Ok(Exit::Success),
            Ok(PipeEnd::Exited(code)) => Ok(Exit::Scripted(code)),
            Err(error) => Err(Failure::cannot(format!("cannot read stdin: {error}"))),
        }
    }

    async fn listen(self, address: SocketAddr) -> Result<Exit, Failure> {
        let Mock { args, seed, engine, watch, console } = self;
        let mut signals = Signals::install().map_err(runtime_failure)?;
        let listen = ListenOptions { address, allowed_hosts: args.allowed_hosts.clone() };
        let server = MockServer::start(engine.clone(), listen)
            .await
            .map_err(|error| cannot_listen(address, "--listen :0", &error))?;
        let started = server.started();
        let admin = start_admin(args, &engine, started).await?;
        console.say(announcement::network(&server, seed, admin.as_ref()));
        if args.format == Format::Json {
            announcement::as_json(&server, seed, admin.as_ref())?;
        }
        tokio::select! {
            code = server.wait_exit() => {
                server.stop(Duration::ZERO).await;
                return Ok(Exit::Scripted(code));
            }
            _ = signals.next() => console.leave_line(),
            () = script_watcher::follow(watch, &engine, started, console) => {}
        }
        tokio::select! {
            () = server.stop(GRACE) => {}
            _ = signals.next() => {}
            () = say_stopping(console) => {}
        }
        Ok(Exit::Success)
    }
}

async fn start_admin(args: &MockArgs, engine: &Arc<Engine>, started: Instant) -> Result<Option<AdminServer>, Failure> {
    let Some(address) = args.admin else { return Ok(None) };
    let admin = AdminServer::start(engine.clone(), started, address).await;
    admin.map(Some).map_err(|error| cannot_listen(address, "--admin", &error))
}

/// Says why it takes longer, if it does. Never returns.
async fn say_stopping(console: &Console) {
    tokio::time::sleep(STOP_NOTICE_DELAY).await;
    console.say("stopping: responses in progress have 5 s (Ctrl-C to force)\n");
    std::future::pending().await
}

/// Why nothing listens there; `free` are the arguments that take a free port.
fn cannot_listen(address: SocketAddr, free: &str, error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            let failure = Failure::cannot(format!("cannot listen on {address}: the port is in use"));
            failure.hint(format!("stop the process that uses it, or use a free port with `{free}`"))
        }
        _ => Failure::cannot(format!("cannot listen on {address}: {error}")),
    }
}
