//! A server's process: started in a group of its own, listened to on stderr, and stopped without leaving anyone behind.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};

use super::OpenError;
use crate::{transport::LineReader, wire::LineSplitter};

const KEPT_LINES: usize = 20;
const LONGEST_LINE: usize = 64 << 10;
const SIGTERM: i32 = 15;

/// A command that serves MCP on its standard streams.
#[derive(Clone, Debug, Default)]
pub struct CommandSpec {
    pub program: String,
    pub args: Vec<String>,
    /// Added to the environment that is inherited.
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
    pub grace: StopGrace,
}

/// How long each step of stopping a process may take (2026-07-28, stdio: Shutdown).
#[derive(Clone, Copy, Debug)]
pub struct StopGrace {
    /// From closing its standard input to SIGTERM.
    pub exit: Duration,
    /// From SIGTERM to SIGKILL.
    pub terminate: Duration,
    /// From SIGKILL until we no longer wait.
    pub kill: Duration,
}

impl Default for StopGrace {
    fn default() -> Self {
        StopGrace { exit: Duration::from_secs(2), terminate: Duration::from_secs(2), kill: Duration::from_secs(1) }
    }
}

/// A line that a server wrote to its standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StderrLine {
    /// The name of the server.
    pub server: Arc<str>,
    pub line: String,
}

/// Receives what servers write to their standard error, as it comes.
pub type StderrSink = mpsc::UnboundedSender<StderrLine>;

/// The streams of a process that has just been started.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

/// A running server process and its group. Dropping it kills the whole group.
#[derive(Debug)]
pub struct Child {
    process: tokio::sync::Mutex<Box<dyn ChildWrapper>>,
    grace: StopGrace,
    stderr: Arc<Mutex<VecDeque<String>>>,
    listener: JoinHandle<()>,
    silent: watch::Receiver<bool>,
    stopped: bool,
}

impl Child {
    /// Starts the process; must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`OpenError::Spawn`] if the command cannot be started.
    pub(crate) fn spawn(spec: &CommandSpec, name: &str, sink: Option<StderrSink>) -> Result<(Child, Pipes), OpenError> {
        let failed = |source| OpenError::Spawn { program: spec.program.clone(), source };
        let mut command = Command::new(&spec.program);
        command.args(&spec.args).envs(&spec.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(cwd) = &spec.cwd {
            if !cwd.is_dir() {
                return Err(failed(io::Error::other(format!("{} is not a directory", cwd.display()))));
            }
            command.current_dir(cwd);
        }
        let mut process =
            CommandWrap::from(command).wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn().map_err(failed)?;
        let streams = (process.stdin().take(), process.stdout().take(), process.stderr().take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(failed(io::Error::other("its standard streams are missing")));
        };
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let (done, silent) = watch::channel(false);
        let listener = tokio::spawn(listen(stderr, kept.clone(), name.into(), sink, done));
        let process = tokio::sync::Mutex::new(process);
        let child = Child { process, grace: spec.grace, stderr: kept, listener, silent, stopped: false };
        Ok((child, Pipes { stdin, stdout }))
    }

    /// The last lines of standard error, oldest first.
    pub fn last_lines(&self) -> Vec<String> {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// How the process ended, if it ends within `patience`, and what it said last on standard error.
    pub async fn obituary(&self, patience: Duration) -> (Option<ExitStatus>, Vec<String>) {
        let mut silent = self.silent.clone();
        let status = timeout(patience, async {
            let status = self.process.lock().await.inner_mut().wait().await.ok();
            let _ = silent.wait_for(|silent| *silent).await;
            status
        })
        .await;
        let status = match status {
            Ok(status) => status,
            Err(_) => self.process.try_lock().ok().and_then(|mut process| process.inner_mut().try_wait().ok()?),
        };
        (status, self.last_lines())
    }

    /// Waits for the process to exit by itself, for its standard input is closed already; then asks its group to
    /// terminate; then kills it. What is left of the group when the process has exited is ended as well. Returns the
    /// exit status of the process itself, and ends within the sum of its [`StopGrace`].
    pub async fn stop(mut self) -> Option<ExitStatus> {
        let (grace, process) = (self.grace, self.process.get_mut());
        let mut status = exited(process.as_mut(), grace.exit).await;
        if process.signal(SIGTERM).is_ok() {
            match status {
                None => status = exited(process.as_mut(), grace.terminate).await,
                Some(_) => drop(timeout(grace.terminate, self.silent.wait_for(|silent| *silent)).await),
            }
        }
        if process.start_kill().is_ok() && status.is_none() {
            status = exited(process.as_mut(), grace.kill).await;
        }
        self.stopped = true;
        if timeout(grace.kill, &mut self.listener).await.is_err() {
            self.listener.abort();
        }
        status
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.stopped {
            let _ = self.process.get_mut().start_kill();
            self.listener.abort();
        }
    }
}

/// Waits for the process itself. Waiting for the whole group, as the wrapper does, would wait for processes that are
/// no children of ours.
async fn exited(process: &mut dyn ChildWrapper, patience: Duration) -> Option<ExitStatus> {
    timeout(patience, process.inner_mut().wait()).await.ok()?.ok()
}

async fn listen(
    stderr: ChildStderr,
    kept: Arc<Mutex<VecDeque<String>>>,
    server: Arc<str>,
    sink: Option<StderrSink>,
    done: watch::Sender<bool>,
) {
    let mut reader = LineReader::with_splitter(stderr, LineSplitter::new(LONGEST_LINE));
    while let Ok(Some(line)) = reader.next().await {
        let line = match line {
            Ok(line) => String::from_utf8_lossy(&line).into_owned(),
            Err(too_long) => format!("({too_long})"),
        };
        if let Some(sink) = &sink {
            let _ = sink.send(StderrLine { server: server.clone(), line: line.clone() });
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
    done.send_replace(true);
}
