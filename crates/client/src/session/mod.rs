//! A live connection with one server.

mod call;
mod call_options;
mod list;
mod raw;
mod request;
mod rounds;
pub mod skill;
mod subscribe;
mod task;
mod unsolicited;

pub use call::{CompletionReference, example_operation};
pub use call_options::CallOptions;
pub use list::{Listing, PageSource};
pub use raw::RawReply;
pub use rounds::FinalResult;
pub use task::TaskRun;

use std::{
    fmt,
    process::ExitStatus,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    connection::{Connection, attempt::Attempts, deadline::Deadline, subscription::Subscription},
    exchange::{Answers, ConnectError, PeerInfo},
    oauth::Authorizer,
    recorder::{ClientRecorder, UnsolicitedFrame, unsolicited_tracker::UnsolicitedTracker},
    result::Failure,
    server_params::{ServerParams, Timeouts},
    transport::{Child, StderrSink},
};
use rehearse_protocol::{Closed, Protocol, Transport};

/// Answers that are being sent have 2 s, and the DELETE of a session 5 s.
const CLOSE: Duration = Duration::from_secs(8);
/// How long each step of closing takes if the server did not answer in time.
const OVERDUE_CLOSE: Duration = Duration::from_millis(250);

/// A session with one server, which many tasks can use at once. Dropping it kills the server's process, if there is one;
/// [`Session::close`] lets it exit.
///
/// ```
/// use rehearse_client::{CallOptions, CommandSpec, ServerParams, Session, Target};
/// use rehearse_protocol::Protocol;
/// # use rehearse_protocol::Version;
/// # let script = r#"read initialize
/// # echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
/// # read initialized; read call
/// # echo '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"sunny"}]}}'
/// # read end"#;
/// # let args = vec!["-c".to_owned(), script.to_owned()];
/// # let command = CommandSpec { program: "sh".to_owned(), args, ..CommandSpec::default() };
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let protocol = Protocol::Exact(Version::V2025_11_25);
///
/// let params = ServerParams::new("weather", Target::Stdio(command));
/// let session = Session::connect(&params, protocol).await?;
/// let outcome = session.call_tool("forecast", None, CallOptions::default()).await?;
/// assert_eq!(outcome.text(), "sunny");
/// session.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    name: String,
    connection: Connection,
    recorder: ClientRecorder,
    /// Stops the process of another attempt.
    abandoned: Option<AbortOnDropHandle<()>>,
    info: PeerInfo,
    timeouts: Timeouts,
    authorizer: Option<Authorizer>,
    answers: Answers,
    shutdown: CancellationToken,
    /// The minimum log level, which every request of a modern session contains.
    log_level: Mutex<Option<String>>,
    subscriptions: Mutex<Vec<Subscription>>,
    unsolicited: Mutex<UnsolicitedTracker>,
    /// Whether the server did not answer the last request in time.
    is_overdue: AtomicBool,
}

/// Options of [`Session::connect_with`].
#[derive(Clone, Default)]
pub struct ConnectOptions {
    /// Receives each line that the server's process writes to its standard error. Until the handshake has an answer, lines
    /// are held back for up to a second.
    pub stderr: Option<StderrSink>,
    /// Whether `stderr` gets every line at once: also those of a process that did not survive `server/discover`, and the
    /// error of an older SDK about it.
    pub all_stderr: bool,
    /// Records the connection, even if no session is opened; it must be new. A second process of a server has another recorder:
    /// [`ClientRecorder::on_another`] sees it.
    pub recorder: ClientRecorder,
    /// Cancels the attempt, so that the server's process has time to terminate. Dropping the attempt kills the process.
    pub cancel: CancellationToken,
}

impl Session {
    /// Starts the server's command or connects to its URL, and performs the handshake, within `timeouts.connect`.
    ///
    /// # Errors
    /// [`ConnectError`] says which step failed. No process is left running.
    pub async fn connect(config: &ServerParams, protocol: Protocol) -> Result<Session, ConnectError> {
        Session::connect_with(config, protocol, ConnectOptions::default()).await
    }

    /// As [`Session::connect`], with options.
    ///
    /// # Errors
    /// As [`Session::connect`], and [`ConnectError::Cancelled`].
    pub async fn connect_with(
        config: &ServerParams,
        protocol: Protocol,
        options: ConnectOptions,
    ) -> Result<Session, ConnectError> {
        let ConnectOptions { stderr, all_stderr, recorder, cancel } = options;
        let transport = config.target.transport();
        if !protocol.can_connect_over(transport) {
            return Err(ConnectError::NotApplicable { transport, protocol });
        }
        let (deadline, target) =
            (Deadline::from_now(config.timeouts.connect, config.authorizer.as_ref()), config.target.to_string());
        let is_process = transport == Transport::Stdio;
        let late = |is_newest_first, stderr| ConnectError::Timeout {
            after: config.timeouts.connect,
            is_process,
            is_newest_first: is_newest_first && protocol == Protocol::Auto && transport != Transport::Sse,
            output: is_process.then(|| recorder.wrong_output()).flatten(),
            stderr,
        };
        let opened = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ConnectError::Cancelled),
            opened = Box::pin(Attempts::open((config, &target), protocol, (stderr, all_stderr), &recorder)) => opened,
            () = deadline.wait() => return Err(late(true, Vec::new())),
        };
        let mut attempts = opened.map_err(|error| ConnectError::from_open(error, &target))?;
        let answered = tokio::select! {
            biased;
            answered = Box::pin(attempts.handshake(protocol)) => Some(answered),
            () = cancel.cancelled() => None,
            () = deadline.wait() => None,
        };
        let Some((number, handshake)) = answered else {
            let (number, lines) = attempts.last_lines();
            attempts.release_stderr(number, None);
            let error = late(!attempts.has_second(), lines);
            attempts.stop().await;
            return Err(if cancel.is_cancelled() { ConnectError::Cancelled } else { error });
        };
        attempts.release_stderr(number, Some(&handshake));
        let (connection, abandoned) = attempts.select(number);
        let info = match handshake {
            Ok(info) => info,
            Err(error) => {
                let error = connection.end(error, &config.shutdown).await;
                if let Some(abandoned) = abandoned {
                    let _ = abandoned.await;
                }
                return Err(error);
            }
        };
        let (abandoned, recorder) = (abandoned.map(AbortOnDropHandle::new), connection.recorder().clone());
        let (name, timeouts, authorizer) = (config.name.clone(), config.timeouts, config.authorizer.clone());
        let (answers, shutdown) = (config.answers.clone(), config.shutdown.clone());
        let (log_level, subscriptions, unsolicited) =
            (Mutex::default(), Mutex::default(), Mutex::new(UnsolicitedTracker::from_handshake(&recorder)));
        let session = Session {
            name,
            connection,
            recorder,
            abandoned,
            info,
            timeouts,
            authorizer,
            answers,
            shutdown,
            log_level,
            subscriptions,
            unsolicited,
            is_overdue: AtomicBool::new(false),
        };
        Ok(session)
    }

    /// The name that [`ServerParams`] gave the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the server reported about itself in the handshake.
    pub fn info(&self) -> &PeerInfo {
        &self.info
    }

    /// Everything that went over the connection.
    pub fn recorder(&self) -> &ClientRecorder {
        &self.recorder
    }

    /// The default timeouts of its requests.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Whether the server no longer knows the session: over streamable HTTP it answered a request with 404. The caller must
    /// then open a new one (2025-11-25, Streamable HTTP: Session Management).
    pub fn is_lost(&self) -> bool {
        self.connection.sender.http().is_some_and(|http| http.is_lost())
    }

    /// Whether a request failed with this because the server no longer knows the session. Such a request has had no
    /// effect, so that it may be repeated in a new session.
    pub fn is_lost_by(&self, failure: &Failure) -> bool {
        self.is_lost() && matches!(failure, Failure::Http { status: 404, .. } | Failure::Rpc(_))
    }

    /// What the session answers when the server asks.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Ends the HTTP session, closes the socket, or closes the process's standard input and then stops the process if it
    /// does not exit. Returns the exit status of the process. Takes at most 8 s and the process's
    /// [`StopGrace`](super::StopGrace); less after [`ServerParams::shutdown`], or if the server is
    /// [overdue](Session::set_overdue).
    pub async fn close(self) -> Option<ExitStatus> {
        self.close_and_collect().await.0
    }

    /// As [`Session::close`], and returns the [unsolicited frames](Session::take_unsolicited) up to the end as well.
    pub async fn close_and_collect(mut self) -> (Option<ExitStatus>, Vec<UnsolicitedFrame>) {
        let is_overdue = self.is_overdue.load(Ordering::Relaxed);
        let shutdown = self.shutdown.child_token();
        let child = self.connection.wire.take_child();
        let closing = timeout(if is_overdue { OVERDUE_CLOSE } else { CLOSE }, self.connection.close());
        if shutdown.is_cancelled() {
            // A session that is closed during the shutdown still ends properly.
            let _ = closing.await;
        } else {
            let _ = shutdown.run_until_cancelled(closing).await;
        }
        self.recorder.close(Closed::by_client("the session was closed"));
        let status = match child {
            Some(child) if is_overdue => {
                let mut stopping = std::pin::pin!(child.stop(&shutdown));
                match timeout(OVERDUE_CLOSE, &mut stopping).await {
                    Ok(status) => status,
                    Err(_) => {
                        shutdown.cancel();
                        stopping.await
                    }
                }
            }
            Some(child) => child.stop(&shutdown).await,
            None => None,
        };
        if let Some(abandoned) = self.abandoned.take() {
            let _ = abandoned.await;
        }
        (status, self.take_unsolicited())
    }

    /// Sets whether the server is overdue: it then gets little time to exit when the session is closed. A timeout of a
    /// request sets it, an answer resets it.
    pub fn set_overdue(&self, is_overdue: bool) {
        self.is_overdue.store(is_overdue, Ordering::Relaxed);
    }

    /// A deadline `limit` from now, which user interaction for an authorization extends.
    pub(super) fn deadline(&self, limit: Duration) -> Deadline<'_> {
        Deadline::from_now(limit, self.authorizer.as_ref())
    }

    pub(super) fn log_level(&self) -> MutexGuard<'_, Option<String>> {
        self.log_level.lock()
    }

    pub(super) fn subscriptions(&self) -> MutexGuard<'_, Vec<Subscription>> {
        self.subscriptions.lock()
    }

    pub(super) fn unsolicited_tracker(&self) -> MutexGuard<'_, UnsolicitedTracker> {
        self.unsolicited.lock()
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn child(&self) -> Option<&Child> {
        self.connection.wire.child()
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions").field("recorder", &self.recorder).finish_non_exhaustive()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.name).field("info", &self.info).finish_non_exhaustive()
    }
}
