//! The legacy client at the other end of a connection or session.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, AtomicU8, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use futures_channel::oneshot;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use super::input_response::InputResponse;
use crate::script::LogLevel;
use rehearse_protocol::{Id, Response, RpcError, Version, message::INTERNAL_ERROR};

/// How many resources a client can subscribe to at a time.
pub(super) const MAX_URIS: usize = 1024;

/// Receives the frames that respond to no request of the client. Pushing never waits; a slow client may lose frames.
pub trait NotificationSink: fmt::Debug + Send + Sync {
    /// Sends a frame, or drops it if the client is too slow.
    fn push(&self, frame: Bytes);
}

/// The state of one legacy connection or session. Modern requests need none.
#[derive(Debug, Default)]
pub struct LegacySession {
    /// The latest handshake.
    handshake: ArcSwapOption<Handshake>,
    log_level: AtomicU8,
    sink: OnceLock<Box<dyn NotificationSink>>,
    /// Whether there is no session, so that the client cannot respond to requests.
    is_stateless: bool,
    initialized: Mutex<InitializeState>,
    subscriptions: Mutex<HashSet<String>>,
    questions: AtomicI64,
    pending: Mutex<PendingRequests>,
}

#[derive(Debug)]
struct Handshake {
    version: Version,
    capabilities: Json,
}

/// The requests to which the client has not responded yet.
#[derive(Debug, Default)]
struct PendingRequests {
    /// Those of calls that have ended are here too, because late responses are not wrong.
    open: HashMap<i64, oneshot::Sender<InputResponse>>,
    /// No more responses will come.
    is_over: bool,
}

/// Whether `notifications/initialized` has arrived, and the exchanges that wait for it.
#[derive(Debug, Default)]
struct InitializeState {
    is_complete: bool,
    /// Whether it has ever arrived.
    was_complete: bool,
    awaited: Vec<oneshot::Sender<()>>,
}

impl LegacySession {
    /// A client without a session.
    pub fn stateless(version: Version) -> LegacySession {
        LegacySession {
            handshake: Some(Arc::new(Handshake { version, capabilities: json!({}) })).into(),
            is_stateless: true,
            ..LegacySession::default()
        }
    }

    /// The version that was negotiated, once the handshake was answered.
    pub fn version(&self) -> Option<Version> {
        self.handshake.load().as_ref().map(|handshake| handshake.version)
    }

    /// Sends notifications that belong to no request to `sink` from now on.
    pub fn set_sink(&self, sink: Box<dyn NotificationSink>) {
        let _ = self.sink.set(sink);
    }

    /// Begins a session, which replaces an earlier one. Calls in progress continue.
    pub(super) fn initialize(&self, version: Version, capabilities: Json) {
        self.handshake.store(Some(Arc::new(Handshake { version, capabilities })));
        self.set_log_level(LogLevel::LEAST);
        self.subscriptions.lock().clear();
        self.initialized.lock().is_complete = false;
    }

    /// Takes `notifications/initialized`; `true` if it comes after a handshake and for the first time.
    pub(super) fn mark_initialized(&self) -> bool {
        if self.is_stateless || self.version().is_none() {
            return false;
        }
        let mut initialized = self.initialized.lock();
        initialized.awaited.clear();
        initialized.is_complete = true;
        !std::mem::replace(&mut initialized.was_complete, true)
    }

    /// Resolves when the server may send requests to the client; `None` if it already may (2025-11-25, Lifecycle:
    /// Initialization).
    pub(super) fn wait_initialized(&self) -> Option<oneshot::Receiver<()>> {
        let mut initialized = self.initialized.lock();
        // A client that has closed its input fails when input is requested.
        if initialized.is_complete || self.pending.lock().is_over {
            return None;
        }
        initialized.awaited.retain(|sender| !sender.is_canceled());
        let (sender, receiver) = oneshot::channel();
        initialized.awaited.push(sender);
        Some(receiver)
    }

    pub(super) fn is_stateless(&self) -> bool {
        self.is_stateless
    }

    /// The declared capabilities of the client.
    pub(super) fn capabilities(&self) -> Json {
        self.handshake.load().as_ref().map(|handshake| handshake.capabilities.clone()).unwrap_or_default()
    }

    pub(super) fn log_level(&self) -> LogLevel {
        LogLevel::from_u8(self.log_level.load(Ordering::Relaxed))
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        self.log_level.store(level.as_u8(), Ordering::Relaxed);
    }

    /// # Errors
    /// The client has subscribed to too many resources.
    pub(super) fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        let mut subscriptions = self.subscriptions.lock();
        if subscriptions.len() >= MAX_URIS && !subscriptions.contains(uri) {
            return Err(RpcError::new(INTERNAL_ERROR, format!("no more than {MAX_URIS} resources at a time")));
        }
        subscriptions.insert(uri.to_owned());
        Ok(())
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        self.subscriptions.lock().remove(uri);
    }

    pub(super) fn has_subscribed(&self, uri: &str) -> bool {
        self.subscriptions.lock().contains(uri)
    }

    /// Sends a notification that belongs to no request.
    pub(super) fn push(&self, frame: Bytes) {
        if let Some(sink) = self.sink.get() {
            sink.push(frame);
        }
    }

    /// The id of a new request, and the receiver of its response.
    pub(super) fn register_request(&self) -> (Id, oneshot::Receiver<InputResponse>) {
        let id = self.questions.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        let mut asked = self.pending.lock();
        if !asked.is_over {
            asked.open.insert(id, sender);
        }
        (Id::from(id), receiver)
    }

    /// The client sends nothing more: exchanges stop waiting for its responses.
    pub fn close_input(&self) {
        *self.pending.lock() = PendingRequests { open: HashMap::new(), is_over: true };
        self.initialized.lock().awaited.clear();
    }

    /// Takes a client's response; `false` if it has responded already, or no request has this id.
    pub(super) fn accept_response(&self, response: &Response<'_>) -> bool {
        let Some(Id::Number(id)) = response.id else { return false };
        let Ok(id) = i64::try_from(id) else { return false };
        let Some(sender) = self.pending.lock().open.remove(&id) else { return false };
        let parse = |result: &serde_json::value::RawValue| {
            serde_json::from_str(result.get()).map_err(|error| RpcError::new(0, error.to_string()))
        };
        let answer = match &response.outcome {
            Ok(result) => parse(result),
            Err(error) => Err(error.clone()),
        };
        // The call may have ended without it.
        let _ = sender.send(answer);
        true
    }
}
