//! The open HTTP+SSE streams of a server.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use super::connection::Connection;

/// The open streams of a server.
#[derive(Debug, Default)]
pub(super) struct SseStreams(Mutex<HashMap<String, Arc<Connection>>>);

impl SseStreams {
    pub(super) fn insert(&self, id: String, connection: Arc<Connection>) {
        self.0.lock().insert(id, connection);
    }

    pub(super) fn remove(&self, id: &str) {
        self.0.lock().remove(id);
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Connection>> {
        self.0.lock().get(id).cloned()
    }
}
