//! Running a command against a mock.

use std::{
    net::SocketAddr,
    os::unix::process::ExitStatusExt,
    process::{Command, ExitStatus},
    time::Duration,
};

use rustix::process::Signal;
use tokio_util::sync::CancellationToken;

use super::{
    announcement,
    exec_environment::ExecEnvironment,
    relay,
    server::{Mock, cannot_listen, runtime_failure, start_admin},
    terminal::Terminal,
};
use crate::cli::{Exit, Failure, process_guard::install_guard, signals::Signals, style};
use rehearse_client::{ProcessChange, ProcessHandle, ReaperProcess};
use rehearse_mock::{
    admin::AdminServer,
    serve::{ListenOptions, MockServer},
};

/// How long what the command has left may take to end.
const LEFT: Duration = Duration::from_secs(2);

impl Mock<'_> {
    /// Serves on the network, and over stdio by relays, as long as the command runs; and ends with its code.
    pub(super) async fn exec(self, address: SocketAddr) -> Result<Exit, Failure> {
        let mut signals = Signals::install().map_err(runtime_failure)?;
        let listen =
            ListenOptions { address, allowed_hosts: self.args.allowed_hosts.clone(), ..ListenOptions::default() };
        let server = MockServer::start(self.engine.clone(), listen).await;
        let server = server.map_err(|error| cannot_listen(address, "--listen :0", &error))?;
        install_guard()?;
        let (stage, listener) = ExecEnvironment::create(&server)?;
        let stop = CancellationToken::new();
        let relays = tokio::spawn(relay::serve(listener, server.pipes(), stop.clone()));
        self.console.say(announcement::line(&server, self.seed));
        let admin = start_admin(self.args, &self.engine, server.started()).await?;
        let ended = match self.start(&stage, &server, admin.as_ref()) {
            Ok(job) => self.attend(job, &server, &mut signals).await,
            Err(failure) => Err(failure),
        };
        stop.cancel();
        let _ = tokio::time::timeout(LEFT, relays).await;
        server.stop(Duration::ZERO).await;
        drop(stage);
        ReaperProcess::dismiss();
        ended.map(exit)
    }

    fn start(
        &self,
        stage: &ExecEnvironment,
        server: &MockServer,
        admin: Option<&AdminServer>,
    ) -> Result<ProcessHandle, Failure> {
        let (program, args) = self.args.command.split_first().ok_or_else(|| Failure::Usage("no command".into()))?;
        let mut command = Command::new(program);
        command.args(args).envs(stage.variables(server).map_err(runtime_failure)?);
        if let Some(admin) = admin {
            command.env("REHEARSE_ADMIN_URL", admin.url()).env("REHEARSE_ADMIN_TOKEN", admin.token());
        }
        ProcessHandle::start(command)
            .map_err(|error| Failure::cannot(format!("cannot run {}: {error}", program.display())))
    }

    /// Waits for the end of the command; passes on the signals, and the terminal if there is one.
    async fn attend(
        &self,
        mut job: ProcessHandle,
        server: &MockServer,
        signals: &mut Signals,
    ) -> Result<ExitStatus, Failure> {
        let terminal = Terminal::foreground();
        if let Some(terminal) = &terminal {
            terminal.lend(job.group());
            // It may have been stopped for what it read or set before.
            job.signal(Signal::CONT);
        }
        let mut died = std::pin::pin!(async {
            let code = server.wait_exit().await;
            let doubtful = style::DOUBTFUL;
            self.console.say(format!("{doubtful}the script ended the server{doubtful:#} (exit {code})\n"));
            std::future::pending().await
        });
        let status = loop {
            tokio::select! {
                change = job.change() => match (change, &terminal) {
                    (Ok(ProcessChange::Ended(status)), _) => break Ok(status),
                    (Ok(ProcessChange::Stopped(signal)), Some(terminal)) => {
                        if !terminal.was_missing(signal, job.group()) {
                            terminal.suspend(job.group());
                        }
                        job.signal(Signal::CONT);
                    }
                    (Ok(ProcessChange::Stopped(_)), None) => {}
                    (Err(error), _) => break Err(Failure::cannot(format!("the command is lost: {error}"))),
                },
                signal = signals.next() => job.signal(signal),
                () = died.as_mut() => {}
            }
        };
        job.finish(LEFT).await;
        if let Some(terminal) = &terminal {
            terminal.take_back();
        }
        status
    }
}

/// The exit code of the command as a shell reports it.
fn exit(status: ExitStatus) -> Exit {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    match code.map(u8::try_from) {
        Some(Ok(0)) => Exit::Success,
        Some(Ok(code)) => Exit::Command(code),
        _ => Exit::Command(1),
    }
}
