//! The attempts to open a session with one server.
//!
//! A legacy server may not survive `server/discover`, or leave all requests after it unanswered. Over stdio such a server
//! gets a second process that begins with `initialize` (2026-07-28, stdio: Backward Compatibility).

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    sync::LazyLock,
    time::Duration,
};

use futures_util::future::{Either, join, select};
use parking_lot::{Mutex, MutexGuard};
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{Connection, EXIT_PATIENCE, held_stderr::HeldStderr, probe_timeout};
use crate::{
    exchange::{ConnectError, PeerInfo},
    recorder::{ClientRecorder, SeeAnother},
    server_params::{ServerParams, Target},
    transport::{Child, CommandSpec, OpenError, StderrSink},
};
use rehearse_protocol::{Closed, Direction, Era, Frame, MessageHead, Protocol, Version};

/// The protocol of the second process.
const LEGACY: Protocol = Protocol::Exact(Version::LATEST_LEGACY);

/// How long a process may leave the client without a response before the second process is started.
const SILENCE: Duration = Duration::from_secs(2);

/// The result of a handshake.
pub(crate) type HandshakeResult = Result<PeerInfo, ConnectError>;

/// The attempts to open a session: one, or two for a stdio server of an unknown era.
pub(crate) struct Attempts<'a> {
    config: &'a ServerParams,
    target: &'a str,
    stderr: Option<StderrSink>,
    /// The standard error of the processes, if it is held back.
    held: Vec<HeldStderr>,
    first: Connection,
    second: Option<Connection>,
    /// Sees the recorder of the second process.
    see_another: Option<SeeAnother>,
}

/// Which attempt has a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptNumber {
    First,
    Second,
}

impl<'a> Attempts<'a> {
    /// Opens the connection of the first attempt. What a refused probe causes goes to the sink only if `is_whole`.
    pub(crate) async fn open(
        (config, target): (&'a ServerParams, &'a str),
        protocol: Protocol,
        (stderr, is_whole): (Option<StderrSink>, bool),
        recorder: &ClientRecorder,
    ) -> Result<Attempts<'a>, OpenError> {
        let is_probed = match &config.target {
            Target::Stdio(command) => protocol == Protocol::Auto && !is_legacy(command),
            _ => false,
        };
        let held: Vec<_> = stderr.iter().filter(|_| is_probed && !is_whole).cloned().map(HeldStderr::new).collect();
        let sink = held.first().map(HeldStderr::sink).or_else(|| stderr.clone());
        let first = Connection::open(config, sink, recorder.clone()).await?;
        let see_another = recorder.take_see_another();
        Ok(Attempts { config, target, stderr, held, first, second: None, see_another })
    }

    /// Performs the handshake on the connection of the first attempt.
    pub(crate) async fn handshake(&mut self, protocol: Protocol) -> (AttemptNumber, HandshakeResult) {
        let command = match &self.config.target {
            Target::Stdio(spec) if protocol == Protocol::Auto => spec,
            _ => match self.perform(protocol).await {
                Err(error @ ConnectError::Closed { .. }) if protocol == Protocol::Auto && may_reopen(self.config) => {
                    let recorder = self.first.recorder().another(self.see_another.take());
                    let second = Connection::open(self.config, self.stderr.clone(), recorder).await;
                    return reopened(&mut self.second, second, error, (self.config, self.target)).await;
                }
                handshake => return (AttemptNumber::First, handshake),
            },
        };
        if is_legacy(command) {
            let handshake = self.perform(LEGACY).await;
            if handshake.is_err() {
                // The server may have been replaced by another one.
                legacy_commands().remove(&key(command));
            }
            return (AttemptNumber::First, handshake);
        }
        let (number, handshake) = Box::pin(self.probe()).await;
        if handshake.as_ref().is_ok_and(is_of_legacy_server) {
            legacy_commands().insert(key(command));
        }
        (number, handshake)
    }

    async fn perform(&self, protocol: Protocol) -> HandshakeResult {
        Box::pin(self.first.handshake(protocol, self.config, self.target)).await
    }

    /// Begins with `server/discover`. If the process ends or is silent, starts a second one that begins with
    /// `initialize`; the first one that opens a session is used.
    async fn probe(&mut self) -> (AttemptNumber, HandshakeResult) {
        let Attempts { config, target, stderr, held, first, second, see_another } = self;
        let (config, recorder) = (*config, first.recorder().clone());
        let mut open = || {
            let sink = stderr.clone().map(|sink| match held.is_empty() {
                true => sink,
                false => {
                    let second = HeldStderr::new(sink);
                    held.push(second.clone());
                    second.sink()
                }
            });
            Connection::open(config, sink, recorder.another(see_another.take()))
        };
        let mut probing = Box::pin(first.handshake(Protocol::Auto, config, target));
        let limit = SILENCE.min(probe_timeout(config.timeouts.connect));
        let ended = tokio::select! {
            biased;
            handshake = &mut probing => match handshake {
                // A process that has not read the probe did not end because of it.
                Err(error @ ConnectError::Closed { .. }) if first.wire.is_input_read() => Some(error),
                handshake => return (AttemptNumber::First, handshake),
            },
            () = silence(&recorder, limit) => None,
        };
        if let Some(error) = ended {
            drop(probing);
            if let Some(child) = first.wire.take_child() {
                // Two processes of some servers cannot run at once.
                child.exit_details(EXIT_PATIENCE).await;
                stop_now(Some(child)).await;
            }
            return reopened(second, open().await, error, (config, target)).await;
        }
        let second = match open().await {
            Ok(connection) => second.insert(connection),
            Err(_) => return (AttemptNumber::First, probing.await),
        };
        let initializing = Box::pin(second.handshake(LEGACY, config, target));
        let (probed, initialized) = match select(probing, initializing).await {
            Either::Left((handshake @ Ok(_), _)) => return (AttemptNumber::First, handshake),
            Either::Right((handshake @ Ok(_), _)) => return (AttemptNumber::Second, handshake),
            Either::Left((probed, initializing)) => (probed, initializing.await),
            Either::Right((initialized, probing)) => (probing.await, initialized),
        };
        match probed {
            Err(error @ ConnectError::Closed { .. }) => {
                let discover = error.to_string();
                (AttemptNumber::Second, initialized.map_err(|error| error.after(Some(&discover))))
            }
            Err(_) if initialized.is_ok() => (AttemptNumber::Second, initialized),
            probed => (AttemptNumber::First, probed),
        }
    }

    /// Whether a second process was started.
    pub(crate) fn has_second(&self) -> bool {
        self.second.is_some()
    }

    /// The attempt whose process has written more to its standard error lately, and the last lines of it.
    pub(crate) fn last_lines(&self) -> (AttemptNumber, Vec<String>) {
        let second = self.second.as_ref().map(|second| second.wire.last_lines()).unwrap_or_default();
        match second.is_empty() {
            true => (AttemptNumber::First, self.first.wire.last_lines()),
            false => (AttemptNumber::Second, second),
        }
    }

    /// Passes the standard error of one attempt on, and drops that of the other one.
    pub(crate) fn release_stderr(&self, number: AttemptNumber, handshake: Option<&HandshakeResult>) {
        let selected = if number == AttemptNumber::Second { self.held.last() } else { self.held.first() };
        let is_refused = matches!(handshake, Some(Ok(info)) if is_of_legacy_server(info));
        self.held.iter().for_each(|held| match selected.is_some_and(|selected| selected.is_same_as(held)) {
            true => held.release(is_refused),
            false => held.discard(),
        });
    }

    /// Makes one attempt the connection, and stops the process of the other one in a task.
    pub(crate) fn select(self, number: AttemptNumber) -> (Connection, Option<JoinHandle<()>>) {
        let (selected, other) = match (number, self.second) {
            (AttemptNumber::Second, Some(second)) => (second, Some(self.first)),
            (_, second) => (self.first, second),
        };
        (selected, other.map(|other| tokio::spawn(abandon(other))))
    }

    /// Stops all processes.
    pub(crate) async fn stop(self) {
        join(abandon(self.first), async {
            if let Some(second) = self.second {
                abandon(second).await;
            }
        })
        .await;
    }
}

/// Begins with `initialize` on a second connection, after the first one has ended.
async fn reopened(
    second: &mut Option<Connection>,
    opened: Result<Connection, OpenError>,
    ended: ConnectError,
    (config, target): (&ServerParams, &str),
) -> (AttemptNumber, HandshakeResult) {
    let discover = ended.to_string();
    let second = match opened {
        Ok(connection) => second.insert(connection),
        Err(error) => {
            let error = ConnectError::from_open(error, target).after(Some(&discover));
            return (AttemptNumber::First, Err(error));
        }
    };
    let handshake = Box::pin(second.handshake(LEGACY, config, target)).await;
    (AttemptNumber::Second, handshake.map_err(|error| error.after(Some(&discover))))
}

/// Whether the server can be asked again on a connection of its own, if it ends the first one.
fn may_reopen(config: &ServerParams) -> bool {
    matches!(config.target, Target::Stdio(_) | Target::Ws(_) | Target::Memory(_))
}

/// Ends an attempt, and stops its process at once: without a session it has nothing to finish.
async fn abandon(mut attempt: Connection) {
    attempt.recorder().close(Closed::by_client("the process was not used"));
    let child = attempt.wire.take_child();
    drop(attempt);
    stop_now(child).await;
}

/// Waits until the server has sent no response for this long.
async fn silence(recorder: &ClientRecorder, limit: Duration) {
    let is_response = |frame: &Frame| {
        frame.direction == Direction::ServerToClient && matches!(frame.head(), Ok(MessageHead::Response { .. }))
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

fn is_of_legacy_server(info: &PeerInfo) -> bool {
    info.version.known().is_none_or(|version| version.era() == Era::Legacy)
}

/// A server command: program, arguments, variables and folder.
type CommandKey = (String, Vec<String>, BTreeMap<String, String>, Option<PathBuf>);

/// The commands whose servers speak a legacy version.
fn legacy_commands() -> MutexGuard<'static, HashSet<CommandKey>> {
    static COMMANDS: LazyLock<Mutex<HashSet<CommandKey>>> = LazyLock::new(Mutex::default);
    COMMANDS.lock()
}

fn key(command: &CommandSpec) -> CommandKey {
    (command.program.clone(), command.args.clone(), command.env.clone(), command.cwd.clone())
}

fn is_legacy(command: &CommandSpec) -> bool {
    legacy_commands().contains(&key(command))
}
