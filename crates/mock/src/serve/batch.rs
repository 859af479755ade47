//! The parts of a batch (2025-03-26, Basic: Batching).

use std::sync::Arc;

use bytes::Bytes;

use super::{
    drive::{Pending, Started, drive},
    http_faults::start_faulty,
    server_state::ServerState,
};
use crate::engine::Decision;
use rehearse_protocol::Id;

/// The answers to a batch so far.
pub(super) struct Batch {
    pub(super) ready: Vec<Bytes>,
    pub(super) pending: Vec<Pending>,
    /// The cancelled requests, which may be in the same batch.
    pub(super) cancelled: Vec<Id>,
}

impl Batch {
    /// Starts every part.
    pub(super) fn begin(state: &Arc<ServerState>, parts: Vec<Decision>) -> Batch {
        let mut batch = Batch { ready: Vec::new(), pending: Vec::new(), cancelled: Vec::new() };
        for part in parts {
            match part {
                Decision::Respond(answer) => batch.ready.push(answer.frame),
                Decision::Cancel(id) => batch.cancelled.push(id),
                Decision::Exchange(exchange) => {
                    let (id, cancel_mark) = (exchange.id().clone(), exchange.cancel_mark());
                    match drive(exchange, state.lifetime.started) {
                        // Tasks are of the modern era, which has no batches.
                        Started::Done(answer) | Started::Detached(answer, _) => batch.ready.push(answer.frame),
                        Started::Streaming(events) => {
                            batch.pending.push(Pending { id, events, cancel_mark, ignores_cancellation: false });
                        }
                    }
                }
                Decision::Faulted(faulty) => {
                    let faulty_response = start_faulty(state, *faulty);
                    let ignores_cancellation = faulty_response.ignores_cancellation;
                    // A notification has no answer in a batch to which a fault could apply.
                    let cancel_mark = faulty_response.cancel_mark.clone();
                    batch.pending.extend(faulty_response.id.clone().map(|id| {
                        let events = faulty_response.into_stream();
                        Pending { id, events, cancel_mark, ignores_cancellation }
                    }));
                }
                Decision::Ignore | Decision::Subscribe(_) | Decision::Batch(_) => {}
            }
        }
        batch
    }
}
