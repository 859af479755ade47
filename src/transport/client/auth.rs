//! Who decides with which authorization an HTTP request goes, and what to do when the server refuses it.
//!
//! A transport knows nothing of OAuth: it asks its gate before each request, and again after a 401 or 403.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::BoxFuture;
use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderValue},
};

/// Asked for a pass before a request, and with a refusal after one that was refused.
///
/// Of the answers `Ok(None)` means that nothing can be done about this refusal, and an error says why there is no
/// authorization.
#[derive(Clone)]
pub struct AuthMiddleware(Arc<Callback>);

type Callback = dyn Fn(Option<RefusedRequest>) -> BoxFuture<'static, Result<Option<AuthHeader>, String>> + Send + Sync;

/// With what a request goes.
#[derive(Clone, Debug, Default)]
pub struct AuthHeader {
    /// The value of `Authorization`, if there is one to send.
    pub value: Option<HeaderValue>,
    /// Which one it is, for whoever gave it.
    pub generation: u64,
    accepted: Arc<AtomicBool>,
}

/// A request that was refused.
#[derive(Clone, Debug)]
pub struct RefusedRequest {
    pub header: AuthHeader,
    /// 401 or 403.
    pub status: StatusCode,
    /// Those of the response.
    pub headers: HeaderMap,
    /// The protocol version of the request, as far as it was said.
    pub version: Option<HeaderValue>,
}

impl AuthMiddleware {
    pub fn new(
        ask: impl Fn(Option<RefusedRequest>) -> BoxFuture<'static, Result<Option<AuthHeader>, String>>
        + Send
        + Sync
        + 'static,
    ) -> AuthMiddleware {
        AuthMiddleware(Arc::new(ask))
    }

    /// What the next request goes with.
    ///
    /// # Errors
    /// Says why there is no authorization.
    pub(crate) async fn header(&self) -> Result<AuthHeader, String> {
        self.0(None).await.map(Option::unwrap_or_default)
    }

    /// With what to make the refused request again, if at all.
    ///
    /// # Errors
    /// Says why there is no authorization.
    pub(crate) async fn header_after_refusal(&self, refusal: RefusedRequest) -> Result<Option<AuthHeader>, String> {
        self.0(Some(refusal)).await
    }
}

impl fmt::Debug for AuthMiddleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthMiddleware")
    }
}

impl AuthHeader {
    /// `accepted` is shared by all passes with this header.
    pub fn new(value: Option<HeaderValue>, generation: u64, accepted: Arc<AtomicBool>) -> AuthHeader {
        AuthHeader { value, generation, accepted }
    }

    /// Notes that the server has let a request through with it.
    pub(crate) fn mark_accepted(&self) {
        self.accepted.store(true, Ordering::Relaxed);
    }
}
