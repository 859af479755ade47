//! Keeps the traces of a server's connections, from the server's side.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use super::connection_trace::{ConnectionTrace, State};
use rehearse_protocol::{Closed, Trace, Transport};

/// How many traces a server keeps.
const MAX_TRACES: usize = 256;

/// The latest traces of a server: the last 256, and of each the last 4096 events, or fewer if they exceed 64 MiB.
#[derive(Debug, Default)]
pub struct ServerRecorder {
    traces: Mutex<VecDeque<Arc<ConnectionTrace>>>,
    /// The trace of what is about authorization, or is for another path than that of an endpoint.
    authorization: Mutex<Weak<ConnectionTrace>>,
}

impl ServerRecorder {
    /// Starts a trace; if there are too many, the oldest one is dropped.
    pub(super) fn open(&self, transport: Transport) -> Arc<ConnectionTrace> {
        let trace = Arc::new(ConnectionTrace::new(transport));
        let mut traces = self.traces.lock();
        if traces.len() >= MAX_TRACES {
            traces.pop_front();
        }
        traces.push_back(trace.clone());
        trace
    }

    /// The traces, the oldest first.
    pub fn traces(&self) -> Vec<Trace> {
        self.traces.lock().iter().map(|connection| connection.trace()).collect()
    }

    /// How many events were recorded.
    pub fn events(&self) -> usize {
        self.traces.lock().iter().map(|connection| connection.state.lock().trace.end()).sum()
    }

    /// Drops the traces of closed connections, and the events of open ones.
    pub fn reset(&self) {
        let mut traces = self.traces.lock();
        traces.retain(|connection| connection.state.lock().closed.is_none());
        traces.iter().for_each(|connection| connection.reset());
    }

    /// The trace of what is about authorization, or for another path.
    pub(super) fn authorization(&self) -> Arc<ConnectionTrace> {
        let mut authorization = self.authorization.lock();
        authorization.upgrade().unwrap_or_else(|| {
            let trace = self.open(Transport::Http);
            *authorization = Arc::downgrade(&trace);
            trace
        })
    }

    /// Ends all traces that are open.
    pub fn close(&self, closed: &Closed) {
        self.traces.lock().iter().for_each(|connection| connection.close(closed.clone()));
    }

    /// The trace of the client of streamable HTTP that came last, of those that are wanted.
    pub(super) fn latest(&self, is_wanted: impl Fn(&State) -> bool) -> Option<Arc<ConnectionTrace>> {
        let is_latest = |connection: &&Arc<ConnectionTrace>| {
            let state = connection.state.lock();
            connection.transport == Transport::Http && state.closed.is_none() && is_wanted(&state)
        };
        self.traces.lock().iter().rev().find(is_latest).cloned()
    }

    /// The trace of the session that was opened last, or of the last `initialize` that opened none.
    pub(super) fn latest_session(&self) -> Option<Arc<ConnectionTrace>> {
        self.latest(State::is_legacy)
    }

    /// Whether a session with this id was opened.
    pub(super) fn has_known(&self, id: &str) -> bool {
        self.traces.lock().iter().any(|connection| connection.state.lock().session.as_deref() == Some(id))
    }

    /// How many sessions were opened.
    pub(super) fn sessions(&self) -> usize {
        self.traces.lock().iter().filter(|connection| connection.state.lock().session.is_some()).count()
    }

    /// The trace of an open session.
    pub(super) fn session(&self, id: &str) -> Option<Arc<ConnectionTrace>> {
        let is_session = |connection: &&Arc<ConnectionTrace>| {
            let state = connection.state.lock();
            state.closed.is_none() && state.session.as_deref() == Some(id)
        };
        self.traces.lock().iter().find(is_session).cloned()
    }
}
