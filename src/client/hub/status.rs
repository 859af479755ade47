//! How it stands with one server of a hub.

use std::{fmt, sync::Arc, time::SystemTime};

/// How it stands with a server.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    pub state: ConnectionState,
    /// Since when.
    pub since: SystemTime,
    /// Why the last attempt failed, or the connection broke. Another success makes it forgotten.
    pub last_error: Option<Arc<str>>,
    /// How many tools it lists, once it has; how many of them can be called, the registry knows.
    pub tools: Option<usize>,
}

/// Whether a server can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// Nobody has needed it yet, or somebody has disconnected it.
    NotConnected,
    Connecting,
    /// The handshake is done.
    Connected,
    /// It could not be reached, or the connection broke.
    Failed,
    /// It is switched off, and not connected to.
    Disabled,
}

impl ServerStatus {
    pub(super) fn new(state: ConnectionState) -> ServerStatus {
        ServerStatus { state, since: SystemTime::now(), last_error: None, tools: None }
    }
}

impl fmt::Display for ConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ConnectionState::NotConnected => "Not connected",
            ConnectionState::Connecting => "Connecting",
            ConnectionState::Connected => "Connected",
            ConnectionState::Failed => "Failed",
            ConnectionState::Disabled => "Disabled",
        })
    }
}
