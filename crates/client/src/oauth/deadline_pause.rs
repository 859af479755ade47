//! Measures the time in which a user is asked.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The total time in which a user was asked, which extends deadlines.
#[derive(Debug, Default)]
pub(super) struct DeadlinePause(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    before: Duration,
    since: Option<Instant>,
}

/// While it lives, a user is being asked.
#[derive(Debug)]
pub(super) struct PauseGuard<'a>(&'a DeadlinePause);

impl DeadlinePause {
    /// Flows do not overlap, so there is one wait at a time.
    pub(super) fn start(&self) -> PauseGuard<'_> {
        self.state().since = Some(Instant::now());
        PauseGuard(self)
    }

    /// The whole time so far.
    pub(super) fn total(&self) -> Duration {
        let state = self.state();
        state.before + state.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if let Some(since) = state.since.take() {
            state.before += since.elapsed();
        }
    }
}
