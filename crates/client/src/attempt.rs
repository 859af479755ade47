//! The attempts to open a session with one server.
//!
//! A legacy server may not survive `server/discover`, or leave all requests after it unanswered. Over stdio such a server
//! gets a second process that begins with `initialize` (2026-07-28, stdio: Backward Compatibility).

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::{Either, join, select};
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    CommandSpec, ConnectError, PeerInfo, ServerParams, StderrSink, Target,
    handshake::{self, Running},
    probe::probe_timeout,
};
use crate::{
    recorder::TraceRecorder,
    transport::{self as client, Child, Link, OpenConnection, OpenError, RawSender},
};
use rehearse_protocol::{Direction, EventKind, Frame, Message, Protocol, Version};

/// The protocol of the second process.
const LEGACY: Protocol = Protocol::Exact(Version::LATEST_LEGACY);

/// How long a process may leave the client without a response before the second process is started.
const SILENCE: Duration = Duration::from_secs(2);

/// How long to wait for the exit of a process that has closed its standard output.
const EXIT_PATIENCE: Duration = Duration::from_millis(500);

/// The result of a handshake.
pub(super) type HandshakeResult = Result<(Running, PeerInfo), ConnectError>;

/// An open connection before the end of its handshake.
pub(super) struct Attempt {
    recorder: TraceRecorder,
    pub(super) raw: RawSender,
    pub(super) child: Option<Child>,
}

/// The attempts to open a session: one, or two for a stdio server of an unknown era.
pub(super) struct Attempts<'a> {
    config: &'a ServerParams,
    target: &'a str,
    stderr: Option<StderrSink>,
    first: Attempt,
    second: Option<Attempt>,
}

/// Which attempt has a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptNumber {
    First,
    Second,
}

impl Attempt {
    async fn open(
        config: &ServerParams,
        stderr: Option<StderrSink>,
        recorder: TraceRecorder,
    ) -> Result<(Attempt, Link), OpenError> {
        let auth = || config.authorizer.as_ref().map(super::oauth::Authorizer::middleware);
        let trace = recorder.clone();
        let opened = match &config.target {
            Target::Stdio(spec) => {
                client::stdio::open(spec, &config.name, stderr, recorder, rehearse_protocol::LineSplitter::default())
            }
            Target::Http(at) => client::streamable_http::open(&at.url, &at.headers, auth(), recorder),
            Target::Sse(at) => client::sse::open(&at.url, &at.headers, auth(), recorder).await,
            Target::Ws(at) => client::ws::open(&at.url, &at.headers, auth(), recorder).await,
            Target::Memory(address) => client::memory::open(address, recorder),
        };
        let OpenConnection { link, raw, child } = opened?;
        trace.note(EventKind::Opened(config.target.transport()));
        Ok((Attempt { recorder: trace, raw, child }, link))
    }

    /// Adds the exit status and last output of the process to the error, and stops the process.
    pub(super) async fn end(self, error: ConnectError, shutdown: &CancellationToken) -> ConnectError {
        // It keeps the standard input of the process open.
        drop(self.raw);
        let Some(child) = self.child else { return error };
        let error = match error {
            ConnectError::Closed { detail, .. } => {
                let (status, stderr) = child.exit_details(EXIT_PATIENCE).await;
                let status = status.map(|status| format!("; the process ended with {status}")).unwrap_or_default();
                ConnectError::Closed { detail: format!("{detail}{status}"), stderr }
            }
            error => error,
        };
        child.stop(shutdown).await;
        error
    }

    /// Stops the process at once: without a session it has nothing to finish.
    async fn stop(self) {
        let Attempt { recorder, raw, child } = self;
        recorder.abandon();
        drop(raw);
        stop_now(child).await;
    }
}

impl<'a> Attempts<'a> {
    /// Opens the connection of the first attempt.
    pub(super) async fn open(
        config: &'a ServerParams,
        target: &'a str,
        stderr: Option<StderrSink>,
        recorder: &TraceRecorder,
    ) -> Result<(Attempts<'a>, Link), OpenError> {
        let recorder = match config.target {
            Target::Stdio(_) => recorder.attempt(),
            _ => recorder.clone(),
        };
        let (first, link) = Attempt::open(config, stderr.clone(), recorder).await?;
        Ok((Attempts { config, target, stderr, first, second: None }, link))
    }

    /// Performs the handshake on the link of the first attempt.
    pub(super) async fn shake_hands(&mut self, link: Link, protocol: Protocol) -> (AttemptNumber, HandshakeResult) {
        let command = match &self.config.target {
            Target::Stdio(spec) if protocol == Protocol::Auto => spec,
            _ => return (AttemptNumber::First, self.perform(&self.first, link, protocol).await),
        };
        if is_legacy(command) {
            let handshake = self.perform(&self.first, link, LEGACY).await;
            if handshake.is_err() {
                // The server may have been replaced by another one.
                legacy_commands().remove(&key(command));
            }
            return (AttemptNumber::First, handshake);
        }
        let (number, handshake) = Box::pin(self.probe(link)).await;
        if number == AttemptNumber::Second && handshake.is_ok() {
            legacy_commands().insert(key(command));
        }
        (number, handshake)
    }

    async fn perform(&self, attempt: &Attempt, link: Link, protocol: Protocol) -> HandshakeResult {
        Box::pin(handshake::perform(&attempt.recorder, link, protocol, self.config, self.target)).await
    }

    /// Begins with `server/discover`. If the process ends or is silent, starts a second one that begins with
    /// `initialize`; the first one that opens a session is used.
    async fn probe(&mut self, link: Link) -> (AttemptNumber, HandshakeResult) {
        let (config, target, recorder) = (self.config, self.target, self.first.recorder.clone());
        let mut probing = Box::pin(handshake::perform(&recorder, link, Protocol::Auto, config, target));
        let limit = SILENCE.min(probe_timeout(config.timeouts.connect));
        let is_dead = tokio::select! {
            biased;
            handshake = &mut probing => match handshake {
                Err(ConnectError::Closed { .. }) => true,
                handshake => return (AttemptNumber::First, handshake),
            },
            () = silence(&recorder, limit) => false,
        };
        if is_dead && let Some(child) = self.first.child.take() {
            // Two processes of some servers cannot run at once.
            child.exit_details(EXIT_PATIENCE).await;
            stop_now(Some(child)).await;
        }
        let opened = Attempt::open(config, self.stderr.clone(), recorder.connection().attempt()).await;
        let (second, link) = match opened {
            Ok((attempt, link)) => (self.second.insert(attempt), link),
            Err(_) if !is_dead => return (AttemptNumber::First, probing.await),
            Err(error) => return (AttemptNumber::First, Err(ConnectError::from_open(error, target))),
        };
        let initializing = Box::pin(handshake::perform(&second.recorder, link, LEGACY, config, target));
        if is_dead {
            return (AttemptNumber::Second, initializing.await);
        }
        let (probed, initialized) = match select(probing, initializing).await {
            Either::Left((handshake @ Ok(_), _)) => return (AttemptNumber::First, handshake),
            Either::Right((handshake @ Ok(_), _)) => return (AttemptNumber::Second, handshake),
            Either::Left((probed, initializing)) => (probed, initializing.await),
            Either::Right((initialized, probing)) => (probing.await, initialized),
        };
        match probed {
            Err(ConnectError::Closed { .. }) => (AttemptNumber::Second, initialized),
            Err(_) if initialized.is_ok() => (AttemptNumber::Second, initialized),
            probed => (AttemptNumber::First, probed),
        }
    }

    /// Whether a second process was started.
    pub(super) fn has_second(&self) -> bool {
        self.second.is_some()
    }

    /// The last lines that the processes wrote to their standard error.
    pub(super) fn last_lines(&self) -> Vec<String> {
        let lines = |attempt: &Attempt| attempt.child.as_ref().map(Child::last_lines).unwrap_or_default();
        let second = self.second.as_ref().map(lines).unwrap_or_default();
        if second.is_empty() { lines(&self.first) } else { second }
    }

    /// Makes one attempt the connection, and stops the process of the other one in a task.
    pub(super) fn select(self, number: AttemptNumber) -> (Attempt, Option<JoinHandle<()>>) {
        let (selected, other) = match (number, self.second) {
            (AttemptNumber::Second, Some(second)) => (second, Some(self.first)),
            (_, second) => (self.first, second),
        };
        selected.recorder.select();
        (selected, other.map(|other| tokio::spawn(other.stop())))
    }

    /// Stops all processes.
    pub(super) async fn stop(self) {
        join(self.first.stop(), async {
            if let Some(second) = self.second {
                second.stop().await;
            }
        })
        .await;
    }
}

/// Waits until the server has sent no response for this long.
async fn silence(recorder: &TraceRecorder, limit: Duration) {
    let is_response = |frame: &Frame| {
        frame.direction == Direction::ServerToClient && matches!(frame.message(), Ok(Message::Response(_)))
    };
    let mut from = 0;
    while let Ok(response) = timeout(limit, recorder.wait_for(from, is_response)).await {
        match response {
            Some((index, _)) => from = index + 1,
            None => std::future::pending().await,
        }
    }
}

async fn stop_now(child: Option<Child>) {
    if let Some(child) = child {
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        child.stop(&shutdown).await;
    }
}

/// A server command: program, arguments, variables and folder.
type CommandKey = (String, Vec<String>, BTreeMap<String, String>, Option<PathBuf>);

/// The commands that were reached by a second process.
fn legacy_commands() -> MutexGuard<'static, HashSet<CommandKey>> {
    static COMMANDS: LazyLock<Mutex<HashSet<CommandKey>>> = LazyLock::new(Mutex::default);
    COMMANDS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(command: &CommandSpec) -> CommandKey {
    (command.program.clone(), command.args.clone(), command.env.clone(), command.cwd.clone())
}

fn is_legacy(command: &CommandSpec) -> bool {
    legacy_commands().contains(&key(command))
}
