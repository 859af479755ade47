//! Several faults, one after the other.

use super::{Fault, ResponsePart};
use rehearse_document::seeded_rng::SeededRng;
use rehearse_protocol::Id;

/// The faults that apply to one answer.
#[derive(Debug)]
pub struct Chain {
    links: Vec<(Fault, FaultState)>,
    stopped: bool,
}

/// The state of a fault during an answer.
#[derive(Debug)]
pub struct FaultState {
    /// The random numbers of the fault.
    pub rng: SeededRng,
    /// The id of the request; `None` for a notification.
    pub id: Option<Id>,
    /// How many notifications have passed.
    pub passed: u64,
    /// The parts that are held back.
    pub held: Vec<ResponsePart>,
}

impl FaultState {
    /// The state at the beginning of an answer.
    pub fn new(id: Option<Id>, seed: u64) -> FaultState {
        FaultState { rng: SeededRng::new(seed), id, passed: 0, held: Vec::new() }
    }
}

impl Chain {
    /// Each fault with the seed of its random numbers.
    pub fn new(id: Option<&Id>, faults: impl IntoIterator<Item = (Fault, u64)>) -> Chain {
        let links = faults.into_iter().map(|(fault, seed)| (fault, FaultState::new(id.cloned(), seed)));
        Chain { links: links.collect(), stopped: false }
    }

    /// The parts that replace `part`; none after a [`ResponsePart::Stop`].
    pub fn push(&mut self, part: ResponsePart) -> Vec<ResponsePart> {
        let mut parts = vec![part];
        for (fault, state) in &mut self.links {
            let mut changed = Vec::with_capacity(parts.len());
            parts.into_iter().for_each(|part| fault.apply(part, state, &mut changed));
            parts = changed;
        }
        if self.stopped {
            return Vec::new();
        }
        if let Some(stop) = parts.iter().position(|part| matches!(part, ResponsePart::Stop(_))) {
            parts.truncate(stop + 1);
            self.stopped = true;
        }
        parts
    }

    /// Whether the answer is sent although the client cancels it.
    pub fn ignores_cancellation(&self) -> bool {
        self.links.iter().any(|(fault, _)| matches!(fault, Fault::AfterCancel(_)))
    }

    /// Whether a separate HTTP response replaces the answer.
    pub fn refuses(&self) -> bool {
        self.links.iter().any(|(fault, _)| matches!(fault, Fault::Status(_)))
    }
}
