//! How much a server may have asked that is not answered yet.
//!
//! A server that asks and does not read would fill the memory with answers that wait to be written. So nothing is read
//! from it while too many do, and in the end it waits as well.

use std::sync::Arc;

use tokio::sync::watch;

/// How many requests of a server may be open.
const MOST: usize = 256;

/// The open requests of one server. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Backlog(watch::Sender<usize>);

/// A request that is open as long as a clone of this lives.
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
        // The sender that it would miss is here.
        let _ = self.0.subscribe().wait_for(|open| *open < MOST).await;
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}
