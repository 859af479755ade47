//! The decision of the engine about a frame.

use super::{exchange::Exchange, frames::ResponseFrame, subscription::PendingSubscription};
use crate::faults::Chain;
use rehearse_protocol::Id;

/// The decision about a frame.
#[derive(Debug)]
pub enum Decision {
    /// There is no answer.
    Ignore,
    /// The client cancelled this request.
    Cancel(Id),
    /// The response, at once.
    Respond(ResponseFrame),
    /// The answer takes several steps.
    Exchange(Box<Exchange>),
    /// The client listens for changes from here on.
    Subscribe(PendingSubscription),
    /// The answer, and the faults that apply to it.
    Faulted(Box<FaultedDecision>),
    /// One decision for every message of a batch (2025-03-26 only).
    Batch(Vec<Decision>),
}

/// A decision about a frame, and the faults that apply to it.
#[derive(Debug)]
pub struct FaultedDecision {
    /// The decision without faults.
    pub decision: Decision,
    /// The request that is answered; `None` for a notification.
    pub id: Option<Id>,
    /// The faults.
    pub chain: Chain,
}

impl Decision {
    /// The decision about a request that faults apply to.
    pub(super) fn with_faults(self, id: Option<Id>, chain: Chain) -> Decision {
        Decision::Faulted(Box::new(FaultedDecision { decision: self, id, chain }))
    }
}
