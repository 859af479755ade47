//! The first connection attempts of a REPL.

use std::{collections::HashSet, sync::Arc};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The progress of the first connection attempts.
#[derive(Debug, Default)]
pub(super) struct InitialConnections {
    all_done: CancellationToken,
    /// The servers whose first attempt has ended, with or without success.
    done: watch::Sender<HashSet<Arc<str>>>,
}

impl InitialConnections {
    pub(super) fn mark_done(&self, server: Arc<str>) {
        self.done.send_modify(|done| {
            done.insert(server);
        });
    }

    pub(super) fn mark_all_done(&self) {
        self.all_done.cancel();
    }

    /// Waits until all first attempts have ended.
    pub(super) async fn wait_all(&self) {
        self.all_done.cancelled().await;
    }

    pub(super) fn are_done(&self) -> bool {
        self.all_done.is_cancelled()
    }

    /// The servers whose first attempt has ended, as it changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<HashSet<Arc<str>>> {
        self.done.subscribe()
    }
}
