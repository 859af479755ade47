//! Bytes that are on their way to something that may be slow.

use tokio::sync::watch;

/// How many bytes wait. Who adds some waits first until there is room for more.
#[derive(Debug)]
pub struct Backlog {
    bytes: watch::Sender<usize>,
    limit: usize,
}

impl Backlog {
    /// There is room while fewer bytes wait.
    pub fn new(limit: usize) -> Backlog {
        Backlog { bytes: watch::Sender::new(0), limit }
    }

    /// So many bytes more wait, also where there is no room.
    pub fn add(&self, bytes: usize) {
        self.bytes.send_modify(|waiting| *waiting += bytes);
    }

    /// So many of them wait no longer.
    pub fn remove(&self, bytes: usize) {
        self.bytes.send_modify(|waiting| *waiting = waiting.saturating_sub(bytes));
    }

    /// Waits until there is room. Cancel-safe.
    pub async fn room(&self) {
        // The sender is in `self`.
        let _ = self.bytes.subscribe().wait_for(|waiting| *waiting < self.limit).await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn there_is_room_when_enough_bytes_are_gone() {
        let backlog = Backlog::new(10);
        backlog.add(9);
        assert!(backlog.room().now_or_never().is_some());
        backlog.add(20);
        let mut room = pin!(backlog.room());
        assert!(room.as_mut().now_or_never().is_none());
        backlog.remove(19);
        assert!(room.as_mut().now_or_never().is_none());
        backlog.remove(1);
        room.await;
    }
}
