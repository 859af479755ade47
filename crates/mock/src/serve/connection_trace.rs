//! The trace of one connection, or of one client of streamable HTTP.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;

use rehearse_protocol::{
    Closed, Direction, Event, EventKind, Frame, Message, Trace, Transport,
    names::{META_CLIENT_INFO, META_VERSION},
};

/// How many events a trace keeps.
const MAX_EVENTS: usize = 4096;
/// How many ids of requests without a session are remembered.
const MAX_IDS: usize = 1024;

/// The trace of one connection, or of one client of streamable HTTP: of a session, of what follows an `initialize` that
/// opens none, or of the requests of 2026-07-28. A client may use a new connection for each request.
#[derive(Debug)]
pub(super) struct ConnectionTrace {
    pub(super) transport: Transport,
    opened: Instant,
    pub(super) state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) trace: Trace,
    /// The id by which requests on other connections belong to the trace.
    pub(super) session: Option<String>,
    /// By what else they do.
    client: Option<HttpClient>,
    /// How many HTTP exchanges the trace has.
    exchanges: u32,
    /// Separate from the trace: the rest of an answer may be recorded after the end.
    pub(super) closed: Option<(Duration, Closed)>,
    /// How many TCP connections a client without a session has, and how the last of them ended while it has none.
    connections: usize,
    pub(super) idle: Option<(Duration, Closed)>,
}

/// A client of streamable HTTP without a session.
#[derive(Debug)]
pub(super) enum HttpClient {
    /// It has sent `initialize`, and gets no session.
    Legacy,
    /// It has sent requests of 2026-07-28.
    Modern {
        /// What it says of itself.
        info: String,
        /// The ids of its requests, each with the request if that has not succeeded yet.
        ids: HashMap<String, Option<Bytes>>,
    },
}

impl State {
    /// Whether it is of a client that has sent `initialize`.
    pub(super) fn is_legacy(&self) -> bool {
        self.session.is_some() || matches!(self.client, Some(HttpClient::Legacy))
    }

    /// Whether it is of a client without a session.
    pub(super) fn is_without_session(&self) -> bool {
        self.session.is_none() && self.client.is_some()
    }

    /// Whether a request of 2026-07-28 is of this client. On another connection it is not if it looks for the server
    /// anew, or has the id of another request: then it is of another process.
    pub(super) fn has_sent(&self, request: &ModernRequest, is_same_connection: bool) -> bool {
        let Some(HttpClient::Modern { info, ids }) = &self.client else { return false };
        let is_again = || {
            let known = request.id.as_ref().and_then(|id| ids.get(id));
            !request.is_first && known.is_none_or(|known| known.as_ref() == Some(&request.bytes))
        };
        // A client need not say who it is.
        (request.info == "null" || *info == request.info) && (is_same_connection || is_again())
    }
}

/// A message of 2026-07-28 without a session.
pub(super) struct ModernRequest {
    pub(super) info: String,
    pub(super) id: Option<String>,
    pub(super) bytes: Bytes,
    /// Whether a client begins with it.
    is_first: bool,
}

impl ModernRequest {
    /// Reads a message; `None` if it is of another era. `is_legacy` says whether one that only its metadata make modern
    /// belongs to an older session.
    pub(super) fn new(message: &Message<'_>, bytes: &Bytes, is_named: bool, is_legacy: bool) -> Option<ModernRequest> {
        let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
        let meta = &value["params"]["_meta"];
        let is_first = message.method() == Some("server/discover");
        let is_modern = is_named || (!is_legacy && (is_first || meta.get(META_VERSION).is_some()));
        is_modern.then(|| ModernRequest {
            info: meta[META_CLIENT_INFO].to_string(),
            id: message.id().map(|_| value["id"].to_string()),
            bytes: bytes.clone(),
            is_first,
        })
    }
}

impl ConnectionTrace {
    /// A trace that begins now.
    pub(super) fn new(transport: Transport) -> ConnectionTrace {
        let state = State {
            trace: Trace::bounded(MAX_EVENTS),
            session: None,
            client: None,
            exchanges: 0,
            closed: None,
            connections: 0,
            idle: None,
        };
        let trace = ConnectionTrace { transport, opened: Instant::now(), state: Mutex::new(state) };
        trace.record(EventKind::Opened(transport));
        trace
    }

    /// Drops the events.
    pub(super) fn reset(&self) {
        self.state.lock().trace = Trace::bounded(MAX_EVENTS);
        self.record(EventKind::Opened(self.transport));
    }

    /// Adds an event that is not a frame.
    pub(super) fn record(&self, kind: EventKind) {
        self.record_in(None, kind);
    }

    /// As [`ConnectionTrace::record`], for an event of an HTTP exchange.
    pub(super) fn record_in(&self, exchange: Option<u32>, kind: EventKind) {
        let mut state = self.state.lock();
        // Within the lock, so that times are in the order of the events.
        let at = self.opened.elapsed();
        state.trace.push_event(Event { at, exchange, kind });
    }

    /// Adds a frame that is about to be sent or has just been received.
    pub(super) fn record_frame(&self, direction: Direction, bytes: Bytes) {
        self.record_frame_in(None, direction, bytes);
    }

    pub(super) fn record_frame_in(&self, exchange: Option<u32>, direction: Direction, bytes: Bytes) {
        let mut state = self.state.lock();
        let at = self.opened.elapsed();
        state.trace.push_event(Event { at, exchange, kind: EventKind::Frame(Frame::new(direction, at, bytes)) });
    }

    /// A number for a new exchange.
    pub(super) fn new_exchange(&self) -> u32 {
        let mut state = self.state.lock();
        state.exchanges += 1;
        state.exchanges - 1
    }

    /// Ends the trace. Only the first end is kept.
    pub(super) fn close(&self, closed: Closed) {
        self.state.lock().closed.get_or_insert_with(|| (self.opened.elapsed(), closed));
    }

    /// Its client has come on another TCP connection.
    pub(super) fn join(&self) {
        let mut state = self.state.lock();
        state.connections += 1;
        state.idle = None;
    }

    /// Such a connection has ended. The client may come again.
    pub(super) fn leave(&self, closed: Closed) {
        let mut state = self.state.lock();
        state.connections = state.connections.saturating_sub(1);
        if state.connections == 0 && state.is_without_session() {
            state.idle = Some((self.opened.elapsed(), closed));
        }
    }

    /// Adds requests of this client, whatever connection they come on.
    pub(super) fn set_client(&self, client: HttpClient) {
        self.state.lock().client = Some(client);
    }

    /// Remembers the id of a request of 2026-07-28, with the request if it may come again.
    pub(super) fn note_id(&self, id: &str, request: Option<Bytes>) {
        if let Some(HttpClient::Modern { ids, .. }) = &mut self.state.lock().client {
            if ids.len() >= MAX_IDS {
                ids.clear();
            }
            ids.insert(id.to_owned(), request);
        }
    }

    /// Adds requests that name this session, whatever connection they come on.
    pub(super) fn set_session(&self, id: &str) {
        self.state.lock().session = Some(id.to_owned());
    }

    pub(super) fn trace(&self) -> Trace {
        let state = self.state.lock();
        let mut trace = state.trace.clone();
        if let Some((at, closed)) = state.closed.as_ref().or(state.idle.as_ref()) {
            let last = trace.events().next_back().map_or(*at, |event| event.at);
            trace.push(last.max(*at), EventKind::Closed(closed.clone()));
        }
        trace
    }
}
