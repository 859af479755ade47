//! The backoff between reconnection attempts.

use std::time::Duration;

use tokio::time::Instant;

/// The pauses before each reconnection attempt.
const PAUSES: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];
/// A connection that lasts this long resets the backoff.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// The reconnection attempts to one server.
#[derive(Debug, Default)]
pub(super) struct ReconnectBackoff {
    attempts: usize,
    pub(super) reconnected_at: Option<Instant>,
}

impl ReconnectBackoff {
    /// The pause before the next of so many attempts; `None` if all are used up.
    pub(super) fn pause(&mut self, most: usize) -> Option<Duration> {
        if self.reconnected_at.take().is_some_and(|reconnected_at| reconnected_at.elapsed() >= STABLE_AFTER) {
            self.attempts = 0;
        }
        let pause = PAUSES.get(self.attempts).or(PAUSES.last()).copied().filter(|_| self.attempts < most);
        self.attempts += 1;
        pause
    }

    /// Counts a failed first connection as an attempt.
    pub(super) fn count_first(&mut self) {
        self.attempts = self.attempts.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_server_that_disconnects_again_soon_uses_up_its_attempts() {
        let mut backoffs = ReconnectBackoff::default();
        let reconnected_at = |backoffs: &mut ReconnectBackoff| {
            let pause = backoffs.pause(6);
            backoffs.reconnected_at = Some(Instant::now());
            pause.map(|pause| pause.as_secs())
        };
        let soon: Vec<_> = (0..8).map(|_| reconnected_at(&mut backoffs)).collect();
        assert_eq!(soon, [Some(0), Some(1), Some(2), Some(4), Some(8), Some(16), None, None]);
        tokio::time::advance(STABLE_AFTER).await;
        assert_eq!((reconnected_at(&mut backoffs), reconnected_at(&mut backoffs)), (Some(0), Some(1)));
        backoffs.reconnected_at = None;
        tokio::time::advance(STABLE_AFTER).await;
        assert_eq!(backoffs.pause(6).map(|pause| pause.as_secs()), Some(2), "the backoff is reset");
    }

    #[test]
    fn a_first_connection_that_failed_is_an_attempt_and_the_last_pause_is_repeated() {
        let mut backoffs = ReconnectBackoff::default();
        backoffs.count_first();
        let pauses: Vec<_> = (0..8).map(|_| backoffs.pause(7).map(|pause| pause.as_secs())).collect();
        assert_eq!(pauses, [Some(1), Some(2), Some(4), Some(8), Some(16), Some(16), None, None]);
        assert_eq!(ReconnectBackoff::default().pause(0), None);
    }
}
