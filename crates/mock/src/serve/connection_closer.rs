//! Ends an HTTP connection for a fault.

use std::{sync::Arc, time::Duration};

use super::{lifetime::ServerLifetime, reorder_gate::ReorderGate};
use crate::faults::{ResponsePart, Stop};
use rehearse_net::{ConnectionHandle, Disconnect};

/// How long a reordered answer waits after the other one was sent on another connection.
const HEAD_START: Duration = Duration::from_millis(20);

/// Ends an answer before or after its last byte, for a fault.
#[derive(Clone)]
pub(super) struct ConnectionCloser {
    lifetime: ServerLifetime,
    reorder_gate: Arc<ReorderGate>,
    /// The connection, if the closer may act on it.
    connection: Option<ConnectionHandle>,
}

impl ConnectionCloser {
    pub(super) fn new(
        lifetime: &ServerLifetime,
        reorder_gate: &Arc<ReorderGate>,
        connection: Option<&ConnectionHandle>,
    ) -> ConnectionCloser {
        ConnectionCloser {
            lifetime: lifetime.clone(),
            reorder_gate: reorder_gate.clone(),
            connection: connection.cloned(),
        }
    }

    /// The gate at which reordered answers wait.
    pub(super) fn reorder_gate(&self) -> &ReorderGate {
        &self.reorder_gate
    }

    /// Ends a stream after its last byte. Returns when the stream may end normally.
    pub(super) async fn end_stream(&self, stop: Stop) {
        match stop {
            Stop::Finish | Stop::Close(_) => {}
            stop => self.end(stop).await,
        }
    }

    /// Ends an answer that cannot end normally. Returns only if the connection cannot be closed.
    pub(super) async fn end(&self, stop: Stop) {
        let how = match stop {
            Stop::Finish => return,
            Stop::Hang => {
                self.lifetime.shutdown.stop.cancelled().await;
                Disconnect::Close
            }
            Stop::Close(_) => Disconnect::Close,
            Stop::Reset => Disconnect::Reset,
            Stop::Exit(_) => Disconnect::Hold,
        };
        self.prepare(stop);
        if let Some(connection) = &self.connection {
            connection.disconnect_and_wait(how).await;
        }
    }

    /// Closes the connection when the pending bytes are sent.
    pub(super) fn disconnect(&self, stop: Stop) {
        let how = match stop {
            Stop::Finish | Stop::Hang => return,
            Stop::Close(_) => Disconnect::Close,
            Stop::Reset => Disconnect::Reset,
            Stop::Exit(_) => Disconnect::Hold,
        };
        self.prepare(stop);
        if let Some(connection) = &self.connection {
            connection.disconnect(how);
        }
    }

    /// A server exits once its last bytes are sent: a client that has read them all finds it closed.
    fn prepare(&self, stop: Stop) {
        let Stop::Exit(code) = stop else { return };
        let Some(connection) = self.connection.clone() else { return self.lifetime.exit(code) };
        let lifetime = self.lifetime.clone();
        self.lifetime.shutdown.tasks.spawn(async move {
            connection.closed().await;
            lifetime.exit(code);
        });
    }
}

/// Waits for the time that a part takes.
pub(super) async fn pause(closer: &ConnectionCloser, part: &ResponsePart) {
    let time = match part {
        ResponsePart::Wait(time) => *time,
        ResponsePart::Yield(limit) if closer.reorder_gate.wait_for_other(*limit).await => HEAD_START,
        _ => return,
    };
    tokio::time::sleep(time).await;
}
