//! Ends an HTTP connection as a fault demands.

use std::{sync::Arc, time::Duration};

use super::{lifetime::ServerLifetime, reorder_gate::ReorderGate};
use crate::faults::{ResponsePart, Stop};
use rehearse_net::{Break, Line};

/// How long a reordered answer waits after the other one was sent on another connection.
const HEAD_START: Duration = Duration::from_millis(20);

/// Ends an answer before or after its last byte, as a fault demands.
#[derive(Clone)]
pub(super) struct ConnectionCloser {
    lifetime: ServerLifetime,
    reorder_gate: Arc<ReorderGate>,
    /// The connection, if the closer may act on it.
    line: Option<Line>,
}

impl ConnectionCloser {
    pub(super) fn new(
        lifetime: &ServerLifetime,
        reorder_gate: &Arc<ReorderGate>,
        line: Option<&Line>,
    ) -> ConnectionCloser {
        ConnectionCloser { lifetime: lifetime.clone(), reorder_gate: reorder_gate.clone(), line: line.cloned() }
    }

    /// The gate at which reordered answers wait.
    pub(super) fn reorder_gate(&self) -> &ReorderGate {
        &self.reorder_gate
    }

    /// Does what comes after the last byte of a stream. Returns when the stream may end in order.
    pub(super) async fn end_stream(&self, stop: Stop) {
        match stop {
            Stop::Finish | Stop::Close(_) => {}
            stop => self.end(stop).await,
        }
    }

    /// Ends an answer that cannot end in order. Returns only if the connection cannot be broken off.
    pub(super) async fn end(&self, stop: Stop) {
        let how = match stop {
            Stop::Finish => return,
            Stop::Hang => {
                self.lifetime.shutdown.stop.cancelled().await;
                Break::Close
            }
            Stop::Close(_) => Break::Close,
            Stop::Reset => Break::Reset,
            Stop::Exit(_) => Break::Hold,
        };
        self.prepare(stop);
        if let Some(line) = &self.line {
            line.break_here(how).await;
        }
    }

    /// Breaks the connection off as soon as the bytes that were handed over are sent.
    pub(super) fn break_off(&self, stop: Stop) {
        let how = match stop {
            Stop::Finish | Stop::Hang => return,
            Stop::Close(_) => Break::Close,
            Stop::Reset => Break::Reset,
            Stop::Exit(_) => Break::Hold,
        };
        self.prepare(stop);
        if let Some(line) = &self.line {
            line.break_off(how);
        }
    }

    /// A server exits once its last bytes are sent: a client that has read them all finds it closed.
    fn prepare(&self, stop: Stop) {
        let Stop::Exit(code) = stop else { return };
        let Some(line) = self.line.clone() else { return self.lifetime.exit(code) };
        let lifetime = self.lifetime.clone();
        self.lifetime.shutdown.tasks.spawn(async move {
            line.broken().await;
            lifetime.exit(code);
        });
    }
}

/// Lets the time pass that a part takes.
pub(super) async fn pause(closer: &ConnectionCloser, part: &ResponsePart) {
    let time = match part {
        ResponsePart::Wait(time) => *time,
        ResponsePart::Yield(limit) if closer.reorder_gate.wait_for_other(*limit).await => HEAD_START,
        _ => return,
    };
    tokio::time::sleep(time).await;
}
