//! Work that the user may interrupt.

use std::pin::pin;

use tokio_util::sync::CancellationToken;

use super::{Failure, signals::Signals, style};

/// Why nothing is written after a second signal.
pub(super) const INTERRUPTED_AGAIN: &str = "interrupted again: no report was written";

/// Work that a first signal asks to stop, and that a second one gives up.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) signals: Signals,
    /// Cancelled by the first signal.
    stop: CancellationToken,
    /// What the first signal prints.
    message: &'static str,
}

impl Job {
    /// # Errors
    /// Signals cannot be handled.
    pub(super) fn start(stop: CancellationToken, message: &'static str) -> Result<Job, Failure> {
        Ok(Job { signals: Signals::install()?, stop, message })
    }

    /// Runs work, and `meanwhile` as long. The second signal drops both with all their processes: `None`.
    pub(super) async fn run_with<T>(
        &mut self,
        work: impl Future<Output = T>,
        meanwhile: impl Future<Output = ()>,
    ) -> Option<T> {
        let both = async {
            let mut work = pin!(work);
            tokio::select! {
                biased;
                () = meanwhile => work.await,
                done = &mut work => done,
            }
        };
        self.run(both).await
    }

    /// Runs work. The second signal drops it with all its processes: `None`.
    pub(super) async fn run<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Some(done),
                _ = self.signals.next() => {}
            }
            if self.stop.is_cancelled() {
                return None;
            }
            style::leave_line();
            style::print(self.message);
            self.stop.cancel();
        }
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.stop.is_cancelled()
    }
}
