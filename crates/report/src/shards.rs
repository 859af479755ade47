//! The parts of a run that several machines share.

use serde::{Deserialize, Serialize};

/// One of several equal parts of the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Its number, from 1.
    pub index: usize,
    /// The number of parts.
    pub count: usize,
}

/// What a merged result has of a run in so many parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedShards {
    /// The number of parts.
    pub count: usize,
    /// The numbers of those whose results are missing.
    pub missing: Vec<usize>,
}

impl From<Shard> for MergedShards {
    fn from(Shard { index, count }: Shard) -> MergedShards {
        MergedShards { count, missing: (1..=count).filter(|it| *it != index).collect() }
    }
}

impl MergedShards {
    /// Adds what another result has.
    pub(crate) fn merge(all: &mut Vec<MergedShards>, other: MergedShards) {
        match all.iter_mut().find(|known| known.count == other.count) {
            Some(known) => known.missing.retain(|index| other.missing.contains(index)),
            None => all.push(other),
        }
    }

    /// Which parts are missing, as a sentence; `None` if none is.
    pub(crate) fn sentence(&self) -> Option<String> {
        let numbers: Vec<_> = self.missing.iter().map(ToString::to_string).collect();
        let (parts, are) = match &self.missing[..] {
            [] => return None,
            [_] => ("part", "is"),
            _ => ("parts", "are"),
        };
        Some(format!("{parts} {} of {} {are} missing", numbers.join(", "), self.count))
    }
}
