//! The status of a server.

use std::{fmt, sync::Arc, time::SystemTime};

/// The status of a server.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// The state of its connection.
    pub state: ConnectionState,
    /// When the state was entered.
    pub since: SystemTime,
    /// Why the last attempt failed or the connection was lost; cleared by a success.
    pub last_error: Option<Arc<str>>,
    /// The number of tools that it lists, including those that cannot be called.
    pub tools: Option<usize>,
    /// The number of resources that it lists, if it was asked.
    pub resources: Option<usize>,
    /// The number of prompts that it lists, if it was asked.
    pub prompts: Option<usize>,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// Not connected yet, or disconnected by the user.
    NotConnected,
    /// Connecting.
    Connecting,
    /// The handshake is done.
    Connected,
    /// The server cannot be reached, or the connection was lost.
    Failed,
    /// The server is disabled.
    Disabled,
}

impl ServerStatus {
    pub(super) fn new(state: ConnectionState) -> ServerStatus {
        ServerStatus { state, since: SystemTime::now(), last_error: None, tools: None, resources: None, prompts: None }
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
