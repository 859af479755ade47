//! A live connection with one server.

use std::{
    fmt,
    process::ExitStatus,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{RoleClient, service::Peer};
use tokio_util::sync::CancellationToken;

use super::{
    Answers, ConnectError, Failure, PeerInfo, Protocol, ServerParams, StderrSink, Target, Timeouts,
    deadline::Deadline,
    handler::Handler,
    handshake::{self, Running},
    oauth::Authorizer,
    subscription::Subscription,
    unsolicited_tracker::UnsolicitedTracker,
};
use crate::transport::{
    TraceRecorder, Transport, UnsolicitedFrame,
    client::{self, Child, OpenConnection, OpenError, RawSender},
};

/// rmcp gives handlers 2 s to finish, and the DELETE of a session 5 s.
const CLOSE: Duration = Duration::from_secs(8);
const EXIT_PATIENCE: Duration = Duration::from_millis(500);

/// A session with one server, usable from many tasks at once. Dropping it kills the server's process, if there is one;
/// [`Session::close`] takes leave.
pub struct Session {
    name: String,
    running: Running,
    recorder: TraceRecorder,
    sender: RawSender,
    child: Option<Child>,
    info: PeerInfo,
    timeouts: Timeouts,
    authorizer: Option<Authorizer>,
    answers: Answers,
    shutdown: CancellationToken,
    /// The least severe log messages that every request of a modern session asks for.
    log_level: Mutex<Option<String>>,
    subscriptions: Mutex<Vec<Subscription>>,
    unsolicited: Mutex<UnsolicitedTracker>,
}

impl Session {
    /// Starts or dials the server and shakes hands, within `timeouts.connect`.
    ///
    /// # Errors
    /// [`ConnectError`] says how far it came. Nothing is left running.
    pub async fn connect(config: &ServerParams, protocol: Protocol) -> Result<Session, ConnectError> {
        Session::connect_with(config, protocol, None, TraceRecorder::new()).await
    }

    /// As [`Session::connect`], and hands on what the server's process writes to its standard error. The recorder, which must be
    /// new, has what went over the wire also if there is no session in the end.
    ///
    /// # Errors
    /// As [`Session::connect`].
    pub async fn connect_with(
        config: &ServerParams,
        protocol: Protocol,
        stderr: Option<StderrSink>,
        recorder: TraceRecorder,
    ) -> Result<Session, ConnectError> {
        Session::connect_unless(&CancellationToken::new(), config, protocol, stderr, recorder).await
    }

    /// As [`Session::connect_with`], until whoever wanted the session cancels `given_up`. To drop the attempt instead kills
    /// the server's process; so it has the time to terminate.
    ///
    /// # Errors
    /// As [`Session::connect`], and [`ConnectError::Cancelled`].
    pub async fn connect_unless(
        given_up: &CancellationToken,
        config: &ServerParams,
        protocol: Protocol,
        stderr: Option<StderrSink>,
        recorder: TraceRecorder,
    ) -> Result<Session, ConnectError> {
        let transport = config.target.transport();
        if !protocol.is_carried_by(transport) {
            return Err(ConnectError::NotApplicable { transport, protocol });
        }
        let (deadline, target) =
            (Deadline::after(config.timeouts.connect, config.authorizer.as_ref()), describe(&config.target));
        let is_newest_first = protocol == Protocol::Auto && transport != Transport::Sse;
        let late = |stderr| ConnectError::Timeout { after: config.timeouts.connect, is_newest_first, stderr };
        let opened = tokio::select! {
            biased;
            () = given_up.cancelled() => return Err(ConnectError::Cancelled),
            opened = Box::pin(open(config, stderr, recorder.clone())) => opened,
            () = deadline.wait() => return Err(late(Vec::new())),
        };
        let opened = opened.map_err(|error| ConnectError::from_open(error, &target))?;
        let OpenConnection { link, raw, child } = opened;
        let shaking = handshake::perform(&recorder, link, protocol, config, &target);
        let shaken = tokio::select! {
            biased;
            shaken = Box::pin(shaking) => Some(shaken),
            () = given_up.cancelled() => None,
            () = deadline.wait() => None,
        };
        let (running, info) = match shaken {
            Some(Ok(shaken)) => shaken,
            Some(Err(error)) => {
                // As long as it lives the process's standard input is open.
                drop(raw);
                return Err(add_exit_details(error, child, &config.shutdown).await);
            }
            None => {
                drop(raw);
                let lines = child.as_ref().map(Child::last_lines).unwrap_or_default();
                if let Some(child) = child {
                    // There is nothing that it could have to finish.
                    let shutdown = CancellationToken::new();
                    shutdown.cancel();
                    child.stop(&shutdown).await;
                }
                return Err(if given_up.is_cancelled() { ConnectError::Cancelled } else { late(lines) });
            }
        };
        let (name, timeouts, authorizer) = (config.name.clone(), config.timeouts, config.authorizer.clone());
        let (answers, shutdown) = (config.answers.clone(), config.shutdown.clone());
        let (log_level, subscriptions, unsolicited) =
            (Mutex::default(), Mutex::default(), Mutex::new(UnsolicitedTracker::after(&recorder)));
        let session = Session {
            name,
            running,
            recorder,
            sender: raw,
            child,
            info,
            timeouts,
            authorizer,
            answers,
            shutdown,
            log_level,
            subscriptions,
            unsolicited,
        };
        Ok(session)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the server said about itself.
    pub fn info(&self) -> &PeerInfo {
        &self.info
    }

    /// Everything that went over the connection.
    pub fn recorder(&self) -> &TraceRecorder {
        &self.recorder
    }

    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Whether the server does not know the session any more: over streamable HTTP it has answered a request with 404. A
    /// client must then begin a new one (2025-11-25, Streamable HTTP: Session Management), which a session does not do
    /// by itself.
    pub fn is_lost(&self) -> bool {
        self.sender.is_lost()
    }

    /// Whether the request that failed so was refused because the session is lost, and has done nothing.
    pub(super) fn is_lost_by(&self, failure: &Failure) -> bool {
        self.is_lost() && matches!(failure, Failure::Http { status: 404, .. } | Failure::Rpc(_))
    }

    /// What the session answers when the server asks.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Takes leave: ends the HTTP session, closes the socket, or closes the process's standard input and stops the
    /// process if need be. Returns the exit status of the process. Takes at most 8 s and the process's
    /// [`StopGrace`](super::StopGrace); less once there is [haste](ServerParams::haste).
    pub async fn close(self) -> Option<ExitStatus> {
        self.leave().await.0
    }

    /// As [`Session::close`], with the [unsolicited frames](Session::take_unsolicited) that came until then.
    pub(super) async fn leave(mut self) -> (Option<ExitStatus>, Vec<UnsolicitedFrame>) {
        let shutdown = self.shutdown.clone();
        let closing = self.running.close_with_timeout(CLOSE);
        if shutdown.is_cancelled() {
            // Whoever is in haste from the beginning takes leave all the same.
            let _ = closing.await;
        } else {
            let _ = shutdown.run_until_cancelled(closing).await;
        }
        self.recorder.close("the session was closed");
        let status = match self.child.take() {
            Some(child) => child.stop(&shutdown).await,
            None => None,
        };
        (status, self.take_unsolicited())
    }

    /// So long from now; time in which a person is asked to authorize the client does not count.
    pub(super) fn deadline(&self, limit: Duration) -> Deadline<'_> {
        Deadline::after(limit, self.authorizer.as_ref())
    }

    pub(super) fn log_level(&self) -> MutexGuard<'_, Option<String>> {
        self.log_level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn subscriptions(&self) -> MutexGuard<'_, Vec<Subscription>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn unsolicited_tracker(&self) -> MutexGuard<'_, UnsolicitedTracker> {
        self.unsolicited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.running.peer()
    }

    pub(super) fn handler(&self) -> &Handler {
        self.running.service()
    }

    pub(super) fn sender(&self) -> &RawSender {
        &self.sender
    }

    pub(super) fn child(&self) -> Option<&Child> {
        self.child.as_ref()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.name).field("info", &self.info).finish_non_exhaustive()
    }
}

async fn open(
    config: &ServerParams,
    stderr: Option<StderrSink>,
    recorder: TraceRecorder,
) -> Result<OpenConnection, OpenError> {
    let auth = || config.authorizer.as_ref().map(Authorizer::middleware);
    match &config.target {
        Target::Stdio(spec) => client::stdio::open(spec, &config.name, stderr, recorder),
        Target::Http(at) => client::http::open(&at.url, &at.headers, auth(), recorder),
        Target::Sse(at) => client::sse::open(&at.url, &at.headers, auth(), recorder).await,
        Target::Ws(at) => client::ws::open(&at.url, &at.headers, auth(), recorder).await,
        Target::Memory(address) => client::memory::open(address, recorder),
    }
}

fn describe(target: &Target) -> String {
    match target {
        Target::Stdio(spec) => spec.program.clone(),
        Target::Http(at) | Target::Sse(at) | Target::Ws(at) => client::web::display_url(&at.url),
        Target::Memory(_) => "the server in this process".to_owned(),
    }
}

/// Adds what the process left behind, and stops it.
async fn add_exit_details(error: ConnectError, child: Option<Child>, shutdown: &CancellationToken) -> ConnectError {
    let Some(child) = child else { return error };
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
