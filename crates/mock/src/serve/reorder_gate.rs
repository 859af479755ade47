//! Answers that wait until another one has been sent.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::sync::Notify;

/// Makes answers wait until another one has been sent.
#[derive(Debug, Default)]
pub(super) struct ReorderGate {
    waiting: AtomicUsize,
    answered: Notify,
}

impl ReorderGate {
    /// An answer has been sent.
    pub(super) fn notify_sent(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.answered.notify_waiters();
        }
    }

    /// Waits until another answer has been sent; `false` if none is within the limit.
    pub(super) async fn wait_for_other(&self, limit: Duration) -> bool {
        struct Waits<'a>(&'a AtomicUsize);
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(&self.waiting);
        tokio::time::timeout(limit, self.answered.notified()).await.is_ok()
    }
}
