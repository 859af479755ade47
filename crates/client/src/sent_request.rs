//! A request that has been sent.

use std::time::Duration;

use rmcp::{RoleClient, service::RequestHandle};
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

use rehearse_protocol::Id;

/// How long to wait until a cancellation is sent. It is queued by then, and is sent even without the wait.
const CANCELLATION: Duration = Duration::from_millis(500);

/// A request without an answer so far.
pub(super) struct SentRequest {
    pub(super) handle: RequestHandle<RoleClient>,
    pub(super) id: Id,
    /// The index of the first frame that can be its answer.
    pub(super) from: usize,
    pub(super) _active: Option<DropGuard>,
}

impl SentRequest {
    /// Cancels the request at the server.
    pub(super) async fn abandon(self, reason: &str) {
        let _ = timeout(CANCELLATION, self.handle.cancel(Some(reason.to_owned()))).await;
    }
}
