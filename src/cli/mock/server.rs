//! Serving a mock over stdio or over the network.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use super::{
    announcement,
    args::MockArgs,
    client_check::ClientCheck,
    console::Console,
    script_watcher::{self, ScriptWatcher},
};
use crate::cli::{
    Exit, Failure, Format, output,
    signals::{Signals, limit_shutdown},
};
use rehearse_mock::{
    admin::AdminServer,
    engine::Engine,
    serve::{ListenOptions, MockServer, PipeEnd, PipeServer},
};
use rehearse_protocol::Transport;
use rehearse_system::stdio;

/// How long responses in progress may take after a signal, and writing the journal after that.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// How long the end of the process may take after a signal: twice the grace period, and the time to end.
pub(crate) const SHUTDOWN_LIMIT: Duration = Duration::from_secs(15);
/// How long stopping may take before a message is printed.
const STOP_NOTICE_DELAY: Duration = Duration::from_millis(200);
pub(crate) fn runtime_failure(error: std::io::Error) -> Failure {
    Failure::cannot(format!("cannot start: {error}"))
}

/// A mock that is about to be served.
pub(super) struct Mock<'a> {
    pub(super) args: &'a MockArgs,
    pub(super) seed: u64,
    pub(super) engine: Arc<Engine>,
    pub(super) watch: Option<ScriptWatcher>,
    pub(super) check: Option<&'a ClientCheck>,
    pub(super) console: &'a Console,
}

impl Mock<'_> {
    pub(super) async fn stdio(self) -> Result<Exit, Failure> {
        let mut signals = Signals::install()?;
        let started = Instant::now();
        let admin = self.start_admin(started).await?;
        let Mock { args, seed, engine, watch, check, console } = self;
        console.print(announcement::stdio(&engine, &args.scripts[0], seed, admin.as_ref()));
        let pipes = PipeServer::new(engine.clone()).record_traces(check.map(ClientCheck::recorder));
        let watched = async {
            tokio::join!(script_watcher::watch(watch, &engine, started, console), watch_clients(check, &engine));
        };
        serve_stdio(&pipes, GRACE, &CancellationToken::new(), &mut signals, console, watched).await
    }

    pub(super) async fn listen(self, address: SocketAddr) -> Result<Exit, Failure> {
        let mut signals = Signals::install()?;
        let server = self.start_server(address).await?;
        let started = server.started();
        let admin = self.start_admin(started).await?;
        let Mock { args, seed, engine, watch, check, console } = self;
        console.print(announcement::network(&server, seed, admin.as_ref()));
        if args.format == Format::Json {
            announcement::print_json(&server, seed, admin.as_ref())?;
        }
        tokio::select! {
            code = server.wait_exit() => {
                server.stop(Duration::ZERO).await;
                return Ok(Exit::Scripted(code));
            }
            _ = signals.next() => {
                limit_shutdown(SHUTDOWN_LIMIT);
                console.leave_line();
            }
            () = script_watcher::watch(watch, &engine, started, console) => {}
            () = watch_clients(check, &engine) => {}
        }
        tokio::select! {
            () = server.stop(GRACE) => {}
            _ = signals.next() => {}
            () = print_stopping(console) => {}
        }
        Ok(Exit::Success)
    }

    pub(super) async fn start_server(&self, address: SocketAddr) -> Result<MockServer, Failure> {
        let listen = ListenOptions {
            address,
            allowed_hosts: self.args.allowed_hosts.clone(),
            max_connections: self.args.max_connections,
            lenient: false,
            recorder: self.check.map(ClientCheck::recorder),
        };
        let server = MockServer::start(self.engine.clone(), listen).await;
        server.map_err(|error| Failure::listen(address, "--listen :0", &error))
    }

    pub(super) async fn start_admin(&self, started: Instant) -> Result<Option<AdminServer>, Failure> {
        let Some(address) = self.args.admin else { return Ok(None) };
        let recorder = self.check.map(ClientCheck::recorder);
        let admin = AdminServer::start(self.engine.clone(), recorder, started, address).await;
        admin.map(Some).map_err(|error| Failure::listen(address, "--admin", &error))
    }
}

/// Reports what the clients violate. Never returns.
pub(super) async fn watch_clients(check: Option<&ClientCheck>, engine: &Engine) {
    match check {
        Some(check) => check.watch(engine).await,
        None => std::future::pending().await,
    }
}

/// Serves over the standard streams until one of them ends, a signal arrives or `watched` ends. Responses in progress have
/// the time `grace` after a signal, which cancels `stop`.
pub(crate) async fn serve_stdio(
    pipes: &PipeServer,
    grace: Duration,
    stop: &CancellationToken,
    signals: &mut Signals,
    console: &Console,
    watched: impl Future<Output = ()>,
) -> Result<Exit, Failure> {
    let (mut input, mut output) = (stdio::Input::open(), stdio::Output::open(output::remember));
    let second_signal = async {
        signals.next().await;
        limit_shutdown(SHUTDOWN_LIMIT);
        console.leave_line();
        stop.cancel();
        tokio::select! {
            _ = signals.next() => {}
            () = print_stopping(console), if !grace.is_zero() => {}
        }
    };
    let ended = tokio::select! {
        ended = pipes.serve(Transport::Stdio, &mut input, &mut output, stop.clone(), grace) => ended,
        () = stdio::stdout_closed() => Ok(PipeEnd::Closed),
        () = second_signal => Ok(PipeEnd::Stopped),
        () = watched => Ok(PipeEnd::Stopped),
    };
    pipes.end().await;
    input.restore();
    output.restore();
    match ended {
        Ok(PipeEnd::Closed | PipeEnd::Stopped) => Ok(Exit::Success),
        Ok(PipeEnd::Exited(code)) => Ok(Exit::Scripted(code)),
        Err(error) => Err(Failure::cannot(format!("cannot read stdin: {error}"))),
    }
}

/// Prints a message if stopping takes longer. Never returns.
async fn print_stopping(console: &Console) {
    tokio::time::sleep(STOP_NOTICE_DELAY).await;
    console.print("stopping: responses in progress have 5 s (Ctrl-C to force)\n");
    std::future::pending().await
}
