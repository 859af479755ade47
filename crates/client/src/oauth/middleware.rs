//! The authorization of HTTP requests, as the transports see it.
//!
//! A transport knows nothing of OAuth but its error: it asks the middleware for a header before each request, and again
//! after a 401 or 403.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::BoxFuture;
use reqwest::{
    Method, StatusCode, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};

use crate::oauth::{AuthError, PROOF, Prover};

/// Returns the header for a request, or for its repetition after a refusal.
///
/// `Ok(None)` means that an authorization cannot fix the refusal; an error says why there is none.
#[derive(Clone)]
pub(crate) struct AuthMiddleware(Arc<Callback>);

type Callback =
    dyn Fn(Option<RefusedRequest>) -> BoxFuture<'static, Result<Option<AuthHeader>, AuthError>> + Send + Sync;

/// The `Authorization` header of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuthHeader {
    /// The value; `None` sends no header.
    value: Option<HeaderValue>,
    /// Makes the proofs for a token that is bound to a key.
    prover: Option<Arc<Prover>>,
    /// Identifies the token for the authorizer that issued the header.
    pub generation: u64,
    accepted: Arc<AtomicBool>,
}

/// A request that the server refused.
#[derive(Clone, Debug)]
pub(crate) struct RefusedRequest {
    pub header: AuthHeader,
    /// 401 or 403.
    pub status: StatusCode,
    /// The headers of the response.
    pub headers: HeaderMap,
    /// The protocol version of the request, if it had one.
    pub version: Option<HeaderValue>,
}

impl AuthMiddleware {
    pub(crate) fn new(
        ask: impl Fn(Option<RefusedRequest>) -> BoxFuture<'static, Result<Option<AuthHeader>, AuthError>>
        + Send
        + Sync
        + 'static,
    ) -> AuthMiddleware {
        AuthMiddleware(Arc::new(ask))
    }

    /// The header of the next request.
    ///
    /// # Errors
    /// Says why there is no authorization.
    pub(crate) async fn header(&self) -> Result<AuthHeader, AuthError> {
        self.0(None).await.map(Option::unwrap_or_default)
    }

    /// The header for another attempt; `None` if there is none to try.
    ///
    /// # Errors
    /// Says why there is no authorization.
    pub(crate) async fn header_after_refusal(&self, refusal: RefusedRequest) -> Result<Option<AuthHeader>, AuthError> {
        self.0(Some(refusal)).await
    }
}

impl fmt::Debug for AuthMiddleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthMiddleware")
    }
}

impl AuthHeader {
    /// `accepted` is shared by all headers with this token.
    pub(crate) fn new(
        value: Option<HeaderValue>,
        prover: Option<Arc<Prover>>,
        generation: u64,
        accepted: Arc<AtomicBool>,
    ) -> AuthHeader {
        AuthHeader { value, prover, generation, accepted }
    }

    /// Whether the token is bound to a key.
    pub(crate) fn is_bound(&self) -> bool {
        self.prover.is_some()
    }

    /// Puts the authorization of one request into its headers.
    pub(crate) fn insert_into(&self, headers: &mut HeaderMap, method: &Method, url: &Url) {
        if let Some(value) = &self.value {
            headers.insert(AUTHORIZATION, value.clone());
        }
        if let Some(proof) = self.prover.as_ref().and_then(|prover| prover.proof(method, url)) {
            headers.insert(PROOF, proof);
        }
    }

    /// Takes from a response what the next request needs.
    pub(crate) fn read_response(&self, headers: &HeaderMap) {
        if let Some(prover) = &self.prover {
            prover.keep_nonce(headers);
        }
    }

    /// Notes that the server accepted a request with it.
    pub(crate) fn mark_accepted(&self) {
        self.accepted.store(true, Ordering::Relaxed);
    }
}
