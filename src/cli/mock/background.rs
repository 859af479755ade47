//! Threads that may be stuck in what they write to.

use std::time::Duration;

use tokio::{runtime, sync::oneshot};

use crate::cli::signals::Signals;

/// A thread that ends by itself, or is left behind.
#[derive(Debug)]
pub(super) struct Background<T>(oneshot::Receiver<T>);

impl<T: Send + 'static> Background<T> {
    pub(super) fn start(work: impl FnOnce() -> T + Send + 'static) -> Background<T> {
        let (sender, receiver) = oneshot::channel();
        // Whether somebody still waits for the end does not matter to the work.
        std::thread::spawn(move || drop(sender.send(work())));
        Background(receiver)
    }

    /// Waits for the end; `None` if it does not come within `patience` or before the next signal. Must be called
    /// outside of a tokio runtime.
    pub(super) fn end(mut self, patience: Duration) -> Option<T> {
        if let Ok(outcome) = self.0.try_recv() {
            return Some(outcome);
        }
        let runtime = runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(async {
            let mut signals = Signals::install().ok()?;
            tokio::select! {
                outcome = self.0 => outcome.ok(),
                _ = signals.next() => None,
                () = tokio::time::sleep(patience) => None,
            }
        })
    }
}
