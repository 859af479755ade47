//! Limits how many requests of a server are open.
//!
//! The answers to a server that makes requests and does not read would fill the memory. So nothing is read from it
//! while too many are open.

use std::sync::Arc;

use tokio::sync::watch;

/// How many requests of a server may be open.
const MOST: usize = 256;

/// The number of open requests of one server, shared by all clones.
#[derive(Clone, Debug)]
pub(super) struct Backlog(watch::Sender<usize>);

/// A request that is open while a clone of this lives.
#[derive(Clone, Debug)]
pub(super) struct OpenRequest(#[expect(dead_code, reason = "it is there to be dropped")] Arc<OpenCount>);

#[derive(Debug)]
struct OpenCount(watch::Sender<usize>);

impl Backlog {
    pub(super) fn new() -> Backlog {
        Backlog(watch::Sender::new(0))
    }

    pub(super) fn open(&self) -> OpenRequest {
        self.0.send_modify(|open| *open += 1);
        OpenRequest(Arc::new(OpenCount(self.0.clone())))
    }

    /// Ends when there is room for one more. Cancel-safe.
    pub(super) async fn wait_for_room(&self) {
        // It fails only if the sender is gone, which `self` holds.
        let _ = self.0.subscribe().wait_for(|open| *open < MOST).await;
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}
