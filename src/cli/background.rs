//! Threads that may be stuck in what they read or write.

use std::time::Duration;

use tokio::{runtime, sync::oneshot};

use super::signals::Signals;

/// A thread that ends by itself, or is left behind.
#[derive(Debug)]
pub(in crate::cli) struct BackgroundThread<T>(oneshot::Receiver<T>);

impl<T: Send + 'static> BackgroundThread<T> {
    pub(in crate::cli) fn start(work: impl FnOnce() -> T + Send + 'static) -> BackgroundThread<T> {
        let (sender, receiver) = oneshot::channel();
        // Whether somebody still waits for the end does not matter to the work.
        std::thread::spawn(move || drop(sender.send(work())));
        BackgroundThread(receiver)
    }

    /// The end. Whoever waits for it no longer leaves the thread behind. `None` if there is none, for it has panicked.
    pub(in crate::cli) async fn join(self) -> Option<T> {
        self.0.await.ok()
    }

    /// Waits for the end; `None` if it does not come within `patience` or before the next signal. Must be called
    /// outside of a tokio runtime.
    pub(in crate::cli) fn join_timeout(mut self, timeout: Duration) -> Option<T> {
        if let Ok(outcome) = self.0.try_recv() {
            return Some(outcome);
        }
        let runtime = runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(async {
            let mut signals = Signals::install().ok()?;
            tokio::select! {
                outcome = self.0 => outcome.ok(),
                _ = signals.next() => None,
                () = tokio::time::sleep(timeout) => None,
            }
        })
    }
}
