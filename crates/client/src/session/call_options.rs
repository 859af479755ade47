//! Options of a request.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// How to make one request.
///
/// Every request carries a `progressToken`, which cannot be omitted. Read progress and log
/// notifications of a request, and the token in the request itself, from [`Session::recorder`](crate::Session::recorder).
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// Replaces the session's timeout. Progress does not extend it.
    pub timeout: Option<Duration>,
    /// Cancels the request.
    pub cancel: Option<CancellationToken>,
    /// More members for the request's `_meta`; on a modern session they take precedence over its own.
    pub meta: Option<Map<String, Value>>,
}

impl CallOptions {
    /// Options with this timeout only.
    pub fn with_timeout(timeout: Duration) -> Self {
        CallOptions { timeout: Some(timeout), ..CallOptions::default() }
    }

    /// Ends when the caller cancels the request; never if there is no token for that.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        wait_cancelled(self.cancel.clone())
    }
}

pub(crate) async fn wait_cancelled(token: Option<CancellationToken>) {
    match token {
        Some(token) => token.cancelled_owned().await,
        None => std::future::pending().await,
    }
}
