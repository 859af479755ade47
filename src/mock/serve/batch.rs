//! The parts of a batch (2025-03-26, Basic: Batching).

use std::sync::Arc;

use bytes::Bytes;

use super::{
    Shared,
    faulty::afflicted,
    play::{Beginning, Pending, play},
};
use crate::{mock::engine::Intake, wire::Id};

/// What came of a batch so far.
pub(super) struct Batch {
    pub(super) ready: Vec<Bytes>,
    pub(super) pending: Vec<Pending>,
    /// What is cancelled; it may have come in the same batch.
    pub(super) cancelled: Vec<Id>,
}

impl Batch {
    /// Begins to play every part.
    pub(super) fn begin(shared: &Arc<Shared>, parts: Vec<Intake>) -> Batch {
        let mut batch = Batch { ready: Vec::new(), pending: Vec::new(), cancelled: Vec::new() };
        for part in parts {
            match part {
                Intake::Answer(answer) => batch.ready.push(answer.frame),
                Intake::Cancel(id) => batch.cancelled.push(id),
                Intake::Exchange(exchange) => {
                    let id = exchange.id().clone();
                    match play(exchange, shared.life.started) {
                        // Tasks are of the modern era, which has no batches.
                        Beginning::Response(answer) | Beginning::Detached(answer, _) => batch.ready.push(answer.frame),
                        Beginning::Under(played) => {
                            batch.pending.push(Pending { id, played, ignores_cancellation: false });
                        }
                    }
                }
                Intake::Faulty(faulty) => {
                    let afflicted = afflicted(shared, *faulty);
                    let ignores_cancellation = afflicted.ignores_cancellation;
                    // What has no answer has nothing in a batch that a fault could strike.
                    batch.pending.extend(afflicted.id.clone().map(|id| {
                        let played = afflicted.into_way();
                        Pending { id, played, ignores_cancellation }
                    }));
                }
                Intake::Silent | Intake::Listen(_) | Intake::Batch(_) => {}
            }
        }
        batch
    }
}
