//! Threads that may block forever in a read or write.

use std::time::Duration;

use tokio::{runtime, sync::oneshot};

use super::signals::Signals;

/// A thread that may be abandoned.
#[derive(Debug)]
pub(crate) struct BackgroundThread<T>(oneshot::Receiver<T>);

impl<T: Send + 'static> BackgroundThread<T> {
    pub(crate) fn start(work: impl FnOnce() -> T + Send + 'static) -> BackgroundThread<T> {
        let (sender, receiver) = oneshot::channel();
        // The receiver may be gone.
        std::thread::spawn(move || drop(sender.send(work())));
        BackgroundThread(receiver)
    }

    /// Waits for the thread; `None` if it panicked.
    pub(crate) async fn join(self) -> Option<T> {
        self.0.await.ok()
    }

    /// Waits for the thread; `None` after the timeout or the next signal. Must be called outside of a tokio runtime.
    pub(crate) fn join_timeout(mut self, timeout: Duration) -> Option<T> {
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
