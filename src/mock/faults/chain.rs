//! Several faults, one after the other.

use super::{Fault, Item};
use crate::{mock::draws::Draws, wire::Id};

/// The faults that strike one answer.
#[derive(Debug)]
pub struct Chain {
    links: Vec<(Fault, Run)>,
    stopped: bool,
}

/// What a fault remembers of the answer that it strikes.
#[derive(Debug)]
pub struct Run {
    pub draws: Draws,
    /// The id of the request; `None` if a notification is struck.
    pub id: Option<Id>,
    /// How many notifications have passed.
    pub passed: u64,
    /// What is held back.
    pub held: Vec<Item>,
}

impl Run {
    pub fn new(id: Option<Id>, seed: u64) -> Run {
        Run { draws: Draws::new(seed), id, passed: 0, held: Vec::new() }
    }
}

impl Chain {
    /// Each fault with the seed that decides what is random in it.
    pub fn new(id: Option<&Id>, faults: impl IntoIterator<Item = (Fault, u64)>) -> Chain {
        let links = faults.into_iter().map(|(fault, seed)| (fault, Run::new(id.cloned(), seed)));
        Chain { links: links.collect(), stopped: false }
    }

    /// What goes out instead of `item`; nothing once a [`Item::Stop`] has gone out.
    pub fn push(&mut self, item: Item) -> Vec<Item> {
        let mut items = vec![item];
        for (fault, run) in &mut self.links {
            let mut changed = Vec::with_capacity(items.len());
            items.into_iter().for_each(|item| fault.apply(item, run, &mut changed));
            items = changed;
        }
        if self.stopped {
            return Vec::new();
        }
        if let Some(stop) = items.iter().position(|item| matches!(item, Item::Stop(_))) {
            items.truncate(stop + 1);
            self.stopped = true;
        }
        items
    }

    /// Whether the answer is given although the client gives it up.
    pub fn ignores_cancellation(&self) -> bool {
        self.links.iter().any(|(fault, _)| *fault == Fault::AfterCancel)
    }

    /// Whether an HTTP response of its own comes instead of the answer.
    pub fn refuses(&self) -> bool {
        self.links.iter().any(|(fault, _)| matches!(fault, Fault::Status(_)))
    }
}
