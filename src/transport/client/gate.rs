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
pub struct Gate(Arc<Ask>);

type Ask = dyn Fn(Option<Refusal>) -> BoxFuture<'static, Result<Option<Pass>, String>> + Send + Sync;

/// With what a request goes.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    /// The value of `Authorization`, if there is one to send.
    pub header: Option<HeaderValue>,
    /// Which one it is, for whoever gave it.
    pub number: u64,
    accepted: Arc<AtomicBool>,
}

/// A request that was refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub pass: Pass,
    /// 401 or 403.
    pub status: StatusCode,
    /// Those of the response.
    pub headers: HeaderMap,
    /// The protocol version of the request, as far as it was said.
    pub version: Option<HeaderValue>,
}

impl Gate {
    pub fn new(
        ask: impl Fn(Option<Refusal>) -> BoxFuture<'static, Result<Option<Pass>, String>> + Send + Sync + 'static,
    ) -> Gate {
        Gate(Arc::new(ask))
    }

    /// What the next request goes with.
    ///
    /// # Errors
    /// Says why there is no authorization.
    pub(crate) async fn pass(&self) -> Result<Pass, String> {
        self.0(None).await.map(Option::unwrap_or_default)
    }

    /// With what to make the refused request again, if at all.
    ///
    /// # Errors
    /// Says why there is no authorization.
    pub(crate) async fn refused(&self, refusal: Refusal) -> Result<Option<Pass>, String> {
        self.0(Some(refusal)).await
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

impl Pass {
    /// `accepted` is shared by all passes with this header.
    pub fn new(header: Option<HeaderValue>, number: u64, accepted: Arc<AtomicBool>) -> Pass {
        Pass { header, number, accepted }
    }

    /// Notes that the server has let a request through with it.
    pub(crate) fn accept(&self) {
        self.accepted.store(true, Ordering::Relaxed);
    }
}
