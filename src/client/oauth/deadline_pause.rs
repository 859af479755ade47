//! Time in which a person was waited for.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Adds up the time in which a person was waited for, which counts for no deadline.
#[derive(Debug, Default)]
pub(super) struct DeadlinePause(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    before: Duration,
    since: Option<Instant>,
}

/// As long as it lives, a person is waited for.
#[derive(Debug)]
pub(super) struct PauseGuard<'a>(&'a DeadlinePause);

impl DeadlinePause {
    /// Flows come one after another, so there is one wait at a time.
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
