//! The connections of a recording over HTTP: one for each session, and one for requests without a session.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use rehearse_client::Wire;
use rehearse_protocol::Closed;

use crate::exchange::Exchanges;

/// How many sessions are followed at a time.
const MAX_SESSIONS: usize = 1000;

/// A connection of the trace.
pub(crate) struct RecordedWire {
    pub(crate) wire: Wire,
    pub(crate) exchanges: Arc<Exchanges>,
}

impl Drop for RecordedWire {
    fn drop(&mut self) {
        self.wire.recorder().close(Closed::by_limit("the recorder no longer follows the session"));
    }
}

/// The connections that may have more requests.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<State>);

#[derive(Default)]
struct State {
    sessions: HashMap<String, Session>,
    /// Of the latest request without a session.
    latest: Option<Arc<RecordedWire>>,
    /// How often a session was used.
    uses: u64,
}

struct Session {
    wire: Arc<RecordedWire>,
    used: u64,
}

impl Sessions {
    /// The connection of a session, or of the requests without one.
    pub(crate) fn find(&self, id: Option<&str>) -> Option<Arc<RecordedWire>> {
        let mut state = self.0.lock();
        let Some(id) = id else { return state.latest.clone() };
        state.uses += 1;
        let used = state.uses;
        let session = state.sessions.get_mut(id)?;
        session.used = used;
        Some(session.wire.clone())
    }

    /// Later requests without a session belong to this connection.
    pub(crate) fn set_latest(&self, wire: Arc<RecordedWire>) {
        // The one before may end with this.
        let before = self.0.lock().latest.replace(wire);
        drop(before);
    }

    /// Later requests of this session belong to this connection. Of too many sessions, the one that was not used for the
    /// longest time is forgotten.
    pub(crate) fn insert(&self, id: &str, wire: Arc<RecordedWire>) {
        let mut state = self.0.lock();
        state.uses += 1;
        let session = Session { wire, used: state.uses };
        let before = state.sessions.insert(id.to_owned(), session);
        let is_full = state.sessions.len() > MAX_SESSIONS;
        let oldest = state.sessions.iter().min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone());
        let oldest = oldest.filter(|_| is_full).and_then(|id| state.sessions.remove(&id));
        drop(state);
        drop((before, oldest));
    }

    /// Ends all connections.
    pub(crate) fn close(&self, closed: &Closed) {
        let State { sessions, latest, .. } = std::mem::take(&mut *self.0.lock());
        for wire in sessions.into_values().map(|session| session.wire).chain(latest) {
            wire.wire.recorder().close(closed.clone());
        }
    }
}
