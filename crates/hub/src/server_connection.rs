//! The connection to one server of a hub.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use rand::RngExt;
use serde_json::value::RawValue;
use tokio::sync::{RwLock, RwLockReadGuard};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    HubServer,
    item_lists::ItemLists,
    options::HubOptions,
    status::{ConnectionState, ServerStatus},
};
use rehearse_client::{
    CallOptions, ClientRecorder, ConnectError, ConnectOptions, Failure, PeerVersion, Session, UnsolicitedFrame,
    UnsolicitedPolicy,
};
use rehearse_protocol::{Era, List, Transport};

/// How many frames of a session are kept.
const FRAMES: usize = 10_000;

/// A server of a hub and its session, if there is one.
#[derive(Debug)]
pub(super) struct ServerConnection {
    pub(super) name: Arc<str>,
    /// Replaced by a config change that needs no new connection.
    member: Mutex<Arc<HubServer>>,
    /// Calls hold it for reading, so that the session stays open.
    session: RwLock<Option<OpenSession>>,
    stop: CancellationToken,
    /// Cancels the connection attempt or the calls of the open session.
    calls: Mutex<CancellationToken>,
    status: Mutex<ServerStatus>,
    /// The last list of tools.
    listing: Mutex<Arc<Listing>>,
    /// The other items that it lists.
    items: Mutex<ItemLists>,
    /// Unsolicited responses that arrived while the session was closed.
    late: Mutex<Vec<UnsolicitedFrame>>,
    /// Old sessions that are being closed. The tracker is closed, so that `wait` returns when they are.
    closing: TaskTracker,
}

/// The tools that a server lists.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Verbatim.
    pub(super) tools: Vec<Box<RawValue>>,
    /// Whether calls mirror parameters in headers (2026-07-28, Streamable HTTP).
    pub(super) mirrors: bool,
}

/// An open session, and the token that cancels its calls.
#[derive(Debug)]
pub(super) struct OpenSession {
    pub(super) session: Session,
    pub(super) calls: CancellationToken,
    /// Whether the server has not answered a health check.
    pub(super) is_hung: AtomicBool,
}

/// Resets the state if a connection attempt is dropped.
struct ConnectingState<'s>(&'s ServerConnection);

impl Drop for ConnectingState<'_> {
    fn drop(&mut self) {
        let mut status = self.0.status.lock();
        if status.state == ConnectionState::Connecting {
            *status = ServerStatus::new(ConnectionState::NotConnected);
        }
    }
}

impl ServerConnection {
    /// A server without a connection; `stop` ends all its connections.
    pub(super) fn new(member: HubServer, stop: CancellationToken) -> ServerConnection {
        let state = if member.is_enabled { ConnectionState::NotConnected } else { ConnectionState::Disabled };
        let closing = TaskTracker::new();
        closing.close();
        ServerConnection {
            stop,
            name: member.config.name.as_str().into(),
            member: Mutex::new(Arc::new(member)),
            session: RwLock::new(None),
            calls: Mutex::default(),
            status: Mutex::new(ServerStatus::new(state)),
            listing: Mutex::default(),
            items: Mutex::default(),
            late: Mutex::default(),
            closing,
        }
    }

    pub(super) fn member(&self) -> Arc<HubServer> {
        self.member.lock().clone()
    }

    /// Replaces the configuration without a new connection.
    pub(super) fn set_server(&self, member: HubServer) {
        *self.member.lock() = Arc::new(member);
    }

    pub(super) fn status(&self) -> ServerStatus {
        let status = self.status.lock().clone();
        let items = self.items.lock();
        let count = |kind| items.last(kind).map(|listing| listing.items.len());
        ServerStatus { resources: count(List::Resources), prompts: count(List::Prompts), ..status }
    }

    pub(super) fn items(&self) -> MutexGuard<'_, ItemLists> {
        self.items.lock()
    }

    pub(super) fn listing(&self) -> Arc<Listing> {
        self.listing.lock().clone()
    }

    /// The open session, and whether it is new. Connects if necessary.
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
                // Closing a hung session may take long: do not wait for it.
                Some(OpenSession { session, is_hung, .. }) if is_hung.load(Ordering::Relaxed) => {
                    drop(self.closing.spawn(session.close()));
                }
                Some(OpenSession { session, .. }) => drop(session.close().await),
                None => {}
            }
            *connection = Some(self.open(options).await?);
        }
        Ok((connection.downgrade(), is_new))
    }

    /// The session, if one is open.
    pub(super) async fn open_session(&self) -> RwLockReadGuard<'_, Option<OpenSession>> {
        self.session.read().await
    }

    /// As [`Self::open_session`], without waiting.
    pub(super) fn try_open_session(&self) -> Option<RwLockReadGuard<'_, Option<OpenSession>>> {
        self.session.try_read().ok()
    }

    async fn open(&self, options: &HubOptions) -> Result<OpenSession, Arc<ConnectError>> {
        self.set(ConnectionState::Connecting, None);
        let _attempt = ConnectingState(self);
        let calls = self.stop.child_token();
        *self.calls.lock() = calls.clone();
        match Box::pin(self.connect_with_retries(options, &calls)).await {
            Ok(session) if calls.is_cancelled() => {
                session.close().await;
                Err(Arc::new(ConnectError::Cancelled))
            }
            Ok(session) => {
                // Many servers log to standard output; they are usable nevertheless.
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

    /// Connects with the retries of the options, until `given_up` is cancelled.
    async fn connect_with_retries(
        &self,
        options: &HubOptions,
        given_up: &CancellationToken,
    ) -> Result<Session, ConnectError> {
        let member = self.member();
        let protocol = member.protocol.unwrap_or(options.protocol);
        let mut pauses = options.retry.pauses();
        loop {
            let (stderr, mut recorder) = (options.stderr.clone(), ClientRecorder::with_limit(FRAMES));
            if let Some(records) = &options.record_sink {
                recorder = recorder.with_details();
                records(&self.name, &recorder);
                let (records, name) = (records.clone(), self.name.clone());
                recorder.on_another(move |another| records(&name, another));
            }
            let all_stderr = options.all_stderr;
            let connect = ConnectOptions { stderr, all_stderr, recorder, cancel: given_up.clone() };
            let connecting = Session::connect_with(&member.config, protocol, connect);
            let error = match Box::pin(connecting).await {
                Ok(session) => match &session.info().version {
                    PeerVersion::Known(_) => return Ok(session),
                    // A client that does not support the version must disconnect (2025-11-25, Lifecycle: Version Negotiation).
                    PeerVersion::Unknown(version) => {
                        let supported = vec![version.clone()];
                        session.close().await;
                        ConnectError::Version { protocol, supported }
                    }
                },
                Err(error) => error,
            };
            match pauses.next().filter(|_| is_retryable(&error)) {
                Some(pause) => {
                    let pause = with_jitter(pause);
                    if let Some(sink) = &options.retry_sink {
                        sink(&self.name, &error, pause);
                    }
                    if given_up.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                        return Err(ConnectError::Cancelled);
                    }
                }
                None => return Err(error),
            }
        }
    }

    /// Lists the tools of an open session. Pages before a failure are kept.
    pub(super) async fn list(&self, live: &OpenSession) -> Option<Failure> {
        let (listing, failure) = if live.session.info().declares("tools") {
            let options = CallOptions { cancel: Some(live.calls.clone()), ..CallOptions::default() };
            match live.session.list_partial(List::Tools, usize::MAX, options).await {
                (_, Some(Failure::Cancelled)) => return Some(Failure::Cancelled),
                listed => listed,
            }
        } else {
            Default::default()
        };
        self.status.lock().tools = Some(listing.items.len());
        let is_modern = live.session.info().version.era() == Era::Modern;
        let mirrors = is_modern && self.member().config.target.transport() == Transport::Http;
        *self.listing.lock() = Arc::new(Listing { tools: listing.items, mirrors });
        failure
    }

    /// Cancels the calls and closes the session.
    pub(super) async fn disconnect(&self, state: ConnectionState) {
        self.calls.lock().cancel();
        let live = self.session.write().await.take();
        *self.listing.lock() = Arc::default();
        self.set(state, None);
        if let Some(OpenSession { session, .. }) = live {
            let (_, late) = session.close_and_collect().await;
            // Log output during the shutdown is ignored.
            let answers = late.into_iter().filter(|stray| {
                matches!(stray, UnsolicitedFrame::DuplicateResponse(_) | UnsolicitedFrame::UnknownId(_))
            });
            self.late.lock().extend(answers);
        }
        self.closing.wait().await;
    }

    /// Takes the unsolicited responses that arrived while the session was closed.
    pub(super) fn late(&self) -> Vec<UnsolicitedFrame> {
        std::mem::take(&mut self.late.lock())
    }

    /// Marks the connection with this recorder as lost. Returns false if there is a newer connection.
    pub(super) async fn mark_disconnected(&self, recorder: &ClientRecorder, why: &str) -> bool {
        let session = self.session.read().await;
        let is_this = session.as_ref().is_some_and(|live| live.session.recorder().is_same_as(recorder));
        if is_this {
            self.set(ConnectionState::Failed, Some(why.into()));
        }
        is_this
    }

    pub(super) fn set(&self, state: ConnectionState, last_error: Option<Arc<str>>) {
        let mut status = self.status.lock();
        let tools = status.tools.filter(|_| state == ConnectionState::Connected);
        *status = ServerStatus { last_error, tools, ..ServerStatus::new(state) };
        if state != ConnectionState::Connected {
            self.items.lock().clear();
        }
    }
}

/// Whether another attempt to connect may succeed.
pub fn is_retryable(error: &ConnectError) -> bool {
    let error = error.last();
    // A retry would ask the user to authorize the client again.
    let is_unauthorized = matches!(error, ConnectError::Unauthorized { .. });
    let is_wrong =
        matches!(error, ConnectError::NotApplicable { .. } | ConnectError::Invalid(_) | ConnectError::Version { .. });
    !is_wrong && !is_unauthorized && !matches!(error, ConnectError::Cancelled)
}

/// Adds jitter, so that clients do not reconnect at the same time.
fn with_jitter(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.5..=1.0))
}
