//! The parts of a run that several machines share.

use std::{cmp::Reverse, fmt, str::FromStr, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of several parts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shard {
    /// Its number, from 1.
    pub index: usize,
    /// The number of parts.
    pub count: usize,
}

/// The text is not a shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a shard: write i/n with 1 ≤ i ≤ n, for example 1/4")]
pub struct InvalidShard(String);

impl FromStr for Shard {
    type Err = InvalidShard;

    fn from_str(text: &str) -> Result<Shard, InvalidShard> {
        let numbers = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        let shard = numbers.and_then(|(index, count)| Shard::new(index, count));
        shard.ok_or_else(|| InvalidShard(text.to_owned()))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {} of {}", self.index, self.count)
    }
}

impl Shard {
    /// `None` if there is no such part.
    pub fn new(index: usize, count: usize) -> Option<Shard> {
        (1..=count).contains(&index).then_some(Shard { index, count })
    }

    /// Which of these items it has. The longest comes first, and each goes to the part that has least to do. An item
    /// whose duration is not known counts as the median; if none is known, the parts take turns.
    pub fn selects(self, durations: &[Option<Duration>]) -> Vec<bool> {
        let mut known: Vec<_> = durations.iter().flatten().copied().collect();
        known.sort_unstable();
        let median = known.get(known.len() / 2).copied().unwrap_or_default();
        let mut items: Vec<_> = durations.iter().map(|duration| duration.unwrap_or(median)).enumerate().collect();
        items.sort_by_key(|(_, duration)| Reverse(*duration));
        let mut parts = vec![(Duration::ZERO, 0); self.count.min(items.len())];
        let mut selected = vec![false; items.len()];
        for (item, duration) in items {
            let Some((at, part)) = parts.iter_mut().enumerate().min_by_key(|(_, part)| **part) else { break };
            *part = (part.0 + duration, part.1 + 1);
            selected[item] = at + 1 == self.index;
        }
        selected
    }
}

/// What a merged result has of a run in so many parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the part of each item, which is in exactly one.
    fn parts(durations: &[Option<u64>], count: usize) -> Vec<usize> {
        let durations: Vec<_> = durations.iter().map(|it| it.map(Duration::from_millis)).collect();
        let mut parts = vec![0; durations.len()];
        for shard in (1..=count).filter_map(|index| Shard::new(index, count)) {
            let selected = shard.selects(&durations).into_iter();
            parts
                .iter_mut()
                .zip(selected)
                .for_each(|(part, is_selected)| *part += shard.index * usize::from(is_selected));
        }
        parts
    }

    #[test]
    fn a_shard_is_written_as_a_fraction() {
        assert_eq!("2/3".parse(), Ok(Shard { index: 2, count: 3 }));
        for text in ["0/3", "4/3", "1", "a/b", "1/0"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    #[test]
    fn parts_take_turns_if_no_duration_is_known() {
        assert_eq!(parts(&[None; 5], 2), [1, 2, 1, 2, 1]);
        assert_eq!(parts(&[None; 2], 4), [1, 2]);
        assert_eq!(parts(&[Some(0); 3], 2), [1, 2, 1]);
    }

    #[test]
    fn parts_are_equally_long_if_durations_are_known() {
        assert_eq!(parts(&[Some(1), Some(1), Some(9), Some(1), Some(6), Some(1)], 2), [2, 2, 1, 2, 2, 1]);
        // What is new counts as the median, which is 4.
        assert_eq!(parts(&[Some(8), None, Some(1), Some(4)], 2), [1, 2, 1, 2]);
    }
}
