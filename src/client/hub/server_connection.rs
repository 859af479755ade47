//! One server of a hub, and the session with it while there is one.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rand::RngExt;
use serde_json::value::RawValue;
use tokio::sync::{RwLock, RwLockReadGuard};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    HubServer,
    options::HubOptions,
    status::{ConnectionState, ServerStatus},
};
use crate::{
    client::{CallOptions, ConnectError, ConnectOptions, Failure, PeerVersion, Session, UnsolicitedPolicy},
    transport::{TraceRecorder, Transport, UnsolicitedFrame},
    wire::Era,
};

/// How many frames of a session are kept: enough for what waits for one of them.
const FRAMES: usize = 10_000;

/// A server of a hub.
#[derive(Debug)]
pub(super) struct ServerConnection {
    pub(super) name: Arc<str>,
    /// Replaced when the config changes in what needs no new connection.
    member: Mutex<Arc<HubServer>>,
    /// Calls hold it for reading, so that nobody closes the session under them.
    session: RwLock<Option<OpenSession>>,
    stop: CancellationToken,
    /// Cancels the attempt to connect, or what goes on over the session that is open.
    calls: Mutex<CancellationToken>,
    status: Mutex<ServerStatus>,
    /// What the server lists; kept from one listing to the next.
    listing: Mutex<Arc<Listing>>,
    /// Answers to nothing that came when the server was left.
    late: Mutex<Vec<UnsolicitedFrame>>,
    /// Leaves that are being taken beside a newer session. It is closed, so that one can wait for those that there are.
    leaving: TaskTracker,
}

/// The tools that a server lists.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// As they came.
    pub(super) tools: Vec<Box<RawValue>>,
    /// Whether calls of them repeat parameters in headers (2026-07-28, Streamable HTTP).
    pub(super) mirrors: bool,
}

/// A session, and the token that ends what goes on over it.
#[derive(Debug)]
pub(super) struct OpenSession {
    pub(super) session: Session,
    pub(super) calls: CancellationToken,
    /// Whether the server has left unanswered whether it lives.
    pub(super) is_hung: AtomicBool,
}

/// Makes of an attempt that nobody waits for any more one that was not made.
struct ConnectingState<'s>(&'s ServerConnection);

impl Drop for ConnectingState<'_> {
    fn drop(&mut self) {
        let mut status = self.0.lock_status();
        if status.state == ConnectionState::Connecting {
            *status = ServerStatus::new(ConnectionState::NotConnected);
        }
    }
}

impl ServerConnection {
    /// A server that is not connected to; `stop` ends everything about it.
    pub(super) fn new(member: HubServer, stop: CancellationToken) -> ServerConnection {
        let state = if member.is_enabled { ConnectionState::NotConnected } else { ConnectionState::Disabled };
        let leaving = TaskTracker::new();
        leaving.close();
        ServerConnection {
            stop,
            name: member.config.name.as_str().into(),
            member: Mutex::new(Arc::new(member)),
            session: RwLock::new(None),
            calls: Mutex::default(),
            status: Mutex::new(ServerStatus::new(state)),
            listing: Mutex::default(),
            late: Mutex::default(),
            leaving,
        }
    }

    pub(super) fn member(&self) -> Arc<HubServer> {
        locked(&self.member).clone()
    }

    /// Replaces what is said about the server, as long as its connection stays what it is.
    pub(super) fn set_server(&self, member: HubServer) {
        *locked(&self.member) = Arc::new(member);
    }

    pub(super) fn status(&self) -> ServerStatus {
        self.lock_status().clone()
    }

    pub(super) fn listing(&self) -> Arc<Listing> {
        locked(&self.listing).clone()
    }

    /// The session, connected to if there is none or it broke; and whether it was.
    ///
    /// # Errors
    /// [`ConnectError`] of the last attempt.
    pub(super) async fn session(
        &self,
        options: &HubOptions,
    ) -> Result<(RwLockReadGuard<'_, Option<OpenSession>>, bool), Arc<ConnectError>> {
        let is_usable = |session: &Session| session.recorder().closed().is_none() && !session.is_lost();
        let is_open = |live: &Option<OpenSession>| live.as_ref().is_some_and(|live| is_usable(&live.session));
        let open = self.session.read().await;
        if is_open(&open) {
            return Ok((open, false));
        }
        drop(open);
        let mut connection = self.session.write().await;
        let is_new = !is_open(&connection);
        if is_new {
            match connection.take() {
                // It may take all the time that it is given, and there is no reason to wait for that.
                Some(OpenSession { session, is_hung, .. }) if is_hung.load(Ordering::Relaxed) => {
                    drop(self.leaving.spawn(session.close()));
                }
                Some(OpenSession { session, .. }) => drop(session.close().await),
                None => {}
            }
            *connection = Some(self.open(options).await?);
        }
        Ok((connection.downgrade(), is_new))
    }

    /// The session, if there is one that is open.
    pub(super) async fn open_session(&self) -> RwLockReadGuard<'_, Option<OpenSession>> {
        self.session.read().await
    }

    /// The same, unless somebody opens or closes one.
    pub(super) fn try_open_session(&self) -> Option<RwLockReadGuard<'_, Option<OpenSession>>> {
        self.session.try_read().ok()
    }

    async fn open(&self, options: &HubOptions) -> Result<OpenSession, Arc<ConnectError>> {
        self.set(ConnectionState::Connecting, None);
        let _attempt = ConnectingState(self);
        let calls = self.stop.child_token();
        *locked(&self.calls) = calls.clone();
        match Box::pin(self.attempt(options, &calls)).await {
            Ok(session) if calls.is_cancelled() => {
                session.close().await;
                Err(Arc::new(ConnectError::Cancelled))
            }
            Ok(session) => {
                // Many servers log to their standard output, and are of use all the same.
                session.set_unsolicited_policy(UnsolicitedPolicy::IgnoreOutput);
                self.set(ConnectionState::Connected, None);
                Ok(OpenSession { session, calls, is_hung: AtomicBool::default() })
            }
            Err(ConnectError::Cancelled) => Err(Arc::new(ConnectError::Cancelled)),
            Err(error) => {
                self.set(ConnectionState::Failed, Some(error.to_string().into()));
                Err(Arc::new(error))
            }
        }
    }

    /// Connects, as often as the options say, and until it is given up.
    async fn attempt(&self, options: &HubOptions, given_up: &CancellationToken) -> Result<Session, ConnectError> {
        let member = self.member();
        let protocol = member.protocol.unwrap_or(options.protocol);
        let mut pauses = options.retry.pauses();
        loop {
            let (stderr, mut recorder) = (options.stderr.clone(), TraceRecorder::with_limit(FRAMES));
            if let Some(records) = &options.record_sink {
                recorder = recorder.with_details();
                records(&self.name, &recorder);
            }
            let connect = ConnectOptions { stderr, recorder, cancel: given_up.clone() };
            let connecting = Session::connect_with(&member.config, protocol, connect);
            let error = match Box::pin(connecting).await {
                Ok(session) => match &session.info().version {
                    PeerVersion::Known(_) => return Ok(session),
                    // Who does not support it must leave (2025-11-25, Lifecycle: Version Negotiation).
                    PeerVersion::Unknown(version) => {
                        let supported = vec![version.clone()];
                        session.close().await;
                        ConnectError::Version { protocol, supported }
                    }
                },
                Err(error) => error,
            };
            match pauses.next().filter(|_| may_pass(&error)) {
                Some(pause) => {
                    let pause = shortened(pause);
                    if let Some(told) = &options.retry_sink {
                        told(&self.name, &error, pause);
                    }
                    if given_up.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                        return Err(ConnectError::Cancelled);
                    }
                }
                None => return Err(error),
            }
        }
    }

    /// Lists the tools of an open session; what came before a failure is kept. A server that declares no tools has none.
    pub(super) async fn list(&self, live: &OpenSession) -> Option<Failure> {
        let (listing, failure) = if live.session.info().declares("tools") {
            let options = CallOptions { cancel: Some(live.calls.clone()), ..CallOptions::default() };
            match live.session.list_tools_partial(options).await {
                (_, Some(Failure::Cancelled)) => return Some(Failure::Cancelled),
                listed => listed,
            }
        } else {
            Default::default()
        };
        self.lock_status().tools = Some(listing.items.len());
        let is_modern = live.session.info().version.era() == Era::Modern;
        let mirrors = is_modern && self.member().config.target.transport() == Transport::Http;
        *locked(&self.listing) = Arc::new(Listing { tools: listing.items, mirrors });
        failure
    }

    /// Ends the calls under way and takes leave of the server.
    pub(super) async fn disconnect(&self, state: ConnectionState) {
        locked(&self.calls).cancel();
        let live = self.session.write().await.take();
        *locked(&self.listing) = Arc::default();
        self.set(state, None);
        if let Some(OpenSession { session, .. }) = live {
            let (_, late) = session.close_and_collect().await;
            // What a server logs on its way out disturbs nobody any more.
            let answers = late.into_iter().filter(|stray| {
                matches!(stray, UnsolicitedFrame::DuplicateResponse(_) | UnsolicitedFrame::UnknownId(_))
            });
            locked(&self.late).extend(answers);
        }
        self.leaving.wait().await;
    }

    /// Answers that belonged to nothing and came when the server was left, since this was last asked.
    pub(super) fn late(&self) -> Vec<UnsolicitedFrame> {
        std::mem::take(&mut locked(&self.late))
    }

    /// The connection with this record broke. False if there is another by now.
    pub(super) async fn mark_disconnected(&self, recorder: &TraceRecorder, why: &str) -> bool {
        let session = self.session.read().await;
        let is_this = session.as_ref().is_some_and(|live| live.session.recorder().is_same_as(recorder));
        if is_this {
            self.set(ConnectionState::Failed, Some(why.into()));
        }
        is_this
    }

    pub(super) fn set(&self, state: ConnectionState, last_error: Option<Arc<str>>) {
        let mut status = self.lock_status();
        let tools = status.tools.filter(|_| state == ConnectionState::Connected);
        *status = ServerStatus { last_error, tools, ..ServerStatus::new(state) };
    }

    fn lock_status(&self) -> MutexGuard<'_, ServerStatus> {
        locked(&self.status)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether another attempt may go better.
fn may_pass(error: &ConnectError) -> bool {
    // Somebody would be asked to authorize the client again.
    let is_unauthorized = matches!(error, ConnectError::Unauthorized { .. });
    let is_wrong =
        matches!(error, ConnectError::NotApplicable { .. } | ConnectError::Invalid(_) | ConnectError::Version { .. });
    !is_wrong && !is_unauthorized && !matches!(error, ConnectError::Cancelled)
}

/// By up to half, so that clients which failed together do not come back together.
fn shortened(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.5..=1.0))
}
