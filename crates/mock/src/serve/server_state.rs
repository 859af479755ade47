//! The state that all connections of a server share.

use std::sync::Arc;

use super::{
    connection_closer::ConnectionCloser, issued::Issued, lifetime::ServerLifetime, recorder::ServerRecorder,
    reorder_gate::ReorderGate, session::Sessions, sse_streams::SseStreams,
};
use crate::engine::Engine;
use rehearse_net::{ConnectionHandle, HostPolicy};

/// The state of a server.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) engine: Arc<Engine>,
    pub(super) lifetime: ServerLifetime,
    pub(super) hosts: HostPolicy,
    pub(super) sessions: Sessions,
    pub(super) streams: SseStreams,
    pub(super) reorder_gate: Arc<ReorderGate>,
    /// What the mock has issued as an authorization server.
    pub(super) issued: Issued,
    /// Whether missing and wrong headers are ignored.
    pub(super) lenient: bool,
    /// If traces are recorded.
    pub(super) recorder: Option<Arc<ServerRecorder>>,
}

impl ServerState {
    /// Ends an answer on this connection as faults demand.
    pub(super) fn closer(&self, connection: Option<&ConnectionHandle>) -> ConnectionCloser {
        ConnectionCloser::new(&self.lifetime, &self.reorder_gate, connection)
    }
}
