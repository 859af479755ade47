//! When a request is sent again.

use std::time::Duration;

use crate::model::ModelError;

/// How often a request is sent again after an error that may pass: a busy provider (408, 409, 429, 5xx), a broken
/// connection, or no answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often at most; 0 for never.
    pub retries: u32,
    /// The time before the second try, unless the provider names one (`retry-after`). It doubles with each try.
    pub first_wait: Duration,
    /// The longest time between two tries. If the provider wants a longer one, its error is the result.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    /// Three tries, with half a second before the second.
    fn default() -> Self {
        RetryPolicy { retries: 2, first_wait: Duration::from_millis(500), max_wait: Duration::from_secs(60) }
    }
}

impl RetryPolicy {
    /// Never sends a request again.
    pub const NEVER: RetryPolicy = RetryPolicy { retries: 0, first_wait: Duration::ZERO, max_wait: Duration::ZERO };

    pub(super) async fn run<T, F: Future<Output = Result<T, ModelError>>>(
        &self,
        attempt: impl Fn() -> F,
        may_retry: impl Fn() -> bool,
        on_retry: impl Fn(&ModelError, Duration),
    ) -> Result<T, ModelError> {
        let mut wait = self.first_wait;
        let mut left = self.retries;
        let mut first = None;
        loop {
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let asked = match &error {
                ModelError::Rejected { retry_after, .. } => retry_after.filter(|it| !it.is_zero()),
                _ => None,
            };
            let pause = asked.unwrap_or(wait.min(self.max_wait));
            if left == 0 || pause > self.max_wait || !error.is_temporary() || !may_retry() {
                return Err(error.after(first.as_ref()));
            }
            on_retry(&error, pause);
            first.get_or_insert(error);
            tokio::time::sleep(pause).await;
            left -= 1;
            wait = wait.saturating_mul(2);
        }
    }
}
