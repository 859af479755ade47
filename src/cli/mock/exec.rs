//! `--exec`: runs a command against a mock.

use std::{convert::Infallible, net::SocketAddr, process::ExitStatus, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{
    announcement,
    server::{Mock, watch_clients},
};
use crate::cli::{
    Exit, Failure,
    process_guard::{self, install_guard},
    signals::Signals,
    style,
};
use rehearse_check::client::{ClientEnvironment, serve_relays};
use rehearse_mock::{admin::AdminServer, serve::MockServer};
use rehearse_system::{
    Signal,
    process::{ProcessChange, ProcessGroup, ReaperProcess, exit_signal},
    program,
    terminal::Terminal,
};

/// How long processes that the command left behind may take to end.
const LEFTOVER_TIMEOUT: Duration = Duration::from_secs(2);

impl Mock<'_> {
    /// Serves over the network, and over stdio through relays, while the command runs. Returns the exit code of the command.
    pub(super) async fn exec(self, address: SocketAddr) -> Result<Exit, Failure> {
        let mut signals = Signals::install()?;
        let server = self.start_server(address).await?;
        install_guard()?;
        let (environment, listener) = ClientEnvironment::create(&server)?;
        let stop = CancellationToken::new();
        let relays = tokio::spawn(serve_relays(listener, server.pipes(), stop.clone()));
        self.console.print(announcement::line(&server, self.seed));
        let admin = self.start_admin(server.started()).await?;
        let ended = match self.start(&environment, &server, admin.as_ref()) {
            Ok(job) => {
                let exit = async {
                    let code = server.wait_exit().await;
                    let doubtful = style::DOUBTFUL;
                    self.console.print(format!("{doubtful}the script ended the server{doubtful:#} (exit {code})\n"));
                };
                let exit = async {
                    tokio::join!(exit, watch_clients(self.check, &self.engine));
                    std::future::pending().await
                };
                wait_for_command(job, &mut signals, exit).await
            }
            Err(failure) => Err(failure),
        };
        stop.cancel();
        let _ = tokio::time::timeout(LEFTOVER_TIMEOUT, relays).await;
        server.stop(Duration::ZERO).await;
        drop(environment);
        ReaperProcess::dismiss();
        ended.map(exit_of)
    }

    fn start(
        &self,
        environment: &ClientEnvironment,
        server: &MockServer,
        admin: Option<&AdminServer>,
    ) -> Result<ProcessGroup, Failure> {
        let (program, args) = self.args.command.split_first().ok_or_else(|| Failure::Usage("no command".into()))?;
        let mut command = program::command(program, None);
        let rehearse = process_guard::program()?;
        command.args(args).envs(environment.variables(server, Some(&rehearse)));
        if let Some(admin) = admin {
            command.env("REHEARSE_ADMIN_URL", admin.url()).env("REHEARSE_ADMIN_TOKEN", admin.token());
        }
        ProcessGroup::start_interactive(command.into())
            .map_err(|error| Failure::cannot(format!("cannot run {}: {error}", program.display())))
    }
}

/// Waits for the command. Forwards signals to it, and lends it the terminal. `meanwhile` runs as long.
pub(in crate::cli) async fn wait_for_command(
    mut job: ProcessGroup,
    signals: &mut Signals,
    meanwhile: impl Future<Output = Infallible>,
) -> Result<ExitStatus, Failure> {
    let terminal = Terminal::foreground();
    if let Some(terminal) = &terminal {
        terminal.lend(&job);
        // The command may have been stopped because it used the terminal before.
        job.signal(Signal::Continue);
    }
    let mut meanwhile = std::pin::pin!(meanwhile);
    let status = loop {
        tokio::select! {
            change = job.change() => match (change, &terminal) {
                (Ok(ProcessChange::Ended(status)), _) => break Ok(status),
                (Ok(ProcessChange::Stopped { uses_terminal }), Some(terminal)) => {
                    // It may have used the terminal before it was lent.
                    if !(uses_terminal && terminal.is_lent_to(&job)) {
                        terminal.suspend(&job);
                    }
                    job.signal(Signal::Continue);
                }
                (Ok(ProcessChange::Stopped { .. }), None) => {}
                (Err(error), _) => break Err(Failure::cannot(format!("cannot wait for the command: {error}"))),
            },
            signal = signals.next() => drop(job.signal(signal)),
            never = meanwhile.as_mut() => match never {},
        }
    };
    job.finish(LEFTOVER_TIMEOUT).await;
    if let Some(terminal) = &terminal {
        terminal.take_back();
    }
    status
}

/// The exit code of the command as a shell reports it.
pub(in crate::cli) fn exit_of(status: ExitStatus) -> Exit {
    let code = status.code().or(exit_signal(status).map(|signal| 128 + signal));
    match code.map(u8::try_from) {
        Some(Ok(0)) => Exit::Success,
        Some(Ok(code)) => Exit::Command(code),
        _ => Exit::Command(1),
    }
}
