//! How long the answers of a server take.

use std::time::Duration;

/// How many of the last answers count.
const KEPT: usize = 64;

/// The times of the last answers.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    last: Vec<Duration>,
    next: usize,
}

impl Latencies {
    pub(super) fn add(&mut self, took: Duration) {
        match self.last.get_mut(self.next % KEPT) {
            Some(oldest) => *oldest = took,
            None => self.last.push(took),
        }
        self.next += 1;
    }

    /// The median; zero before the first answer.
    pub(super) fn usual(&self) -> Duration {
        let mut sorted = self.last.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }

    /// The longest.
    pub(super) fn longest(&self) -> Duration {
        self.last.iter().max().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_answer_is_not_the_usual_one_and_is_forgotten() {
        let (fast, slow) = (Duration::from_millis(2), Duration::from_secs(3));
        let mut latencies = Latencies::default();
        assert_eq!((latencies.usual(), latencies.longest()), (Duration::ZERO, Duration::ZERO));
        latencies.add(slow);
        (0..KEPT - 1).for_each(|_| latencies.add(fast));
        assert_eq!((latencies.usual(), latencies.longest()), (fast, slow));
        latencies.add(fast);
        assert_eq!(latencies.longest(), fast);
    }
}
