//! Requests whose results are cached as long as the server allows (2026-07-28, Caching).

use std::sync::Arc;

use serde_json::{Map, Value, value::RawValue};

use super::{Hub, HubServer};
use rehearse_client::{CallOptions, Failure, PageSource, Session, oauth::Authorizer};
use rehearse_protocol::Operation;

/// A session with a cache. A change notification, a call of a tool that is not read-only, or another authorization
/// invalidates the cache. Use the [`Session`] for requests without the cache.
#[derive(Clone, Copy, Debug)]
pub struct CachingSession<'s> {
    pub(super) hub: &'s Hub,
    pub(super) session: &'s Session,
}

impl Hub {
    /// Adds the cache to a session of [`Hub::with_session`] or [`Hub::request`]. Results are cached only with a
    /// [`result_ttl`](super::HubOptions::result_ttl) and a TTL from the server.
    pub fn caching_session<'s>(&'s self, session: &'s Session) -> CachingSession<'s> {
        CachingSession { hub: self, session }
    }
}

impl CachingSession<'_> {
    /// As [`Session::read_resource`]. A result that needed client input is not cached.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn read_resource(&self, uri: &str, options: CallOptions) -> Result<Box<RawValue>, Failure> {
        let Operation { method, params } = Operation::read(uri);
        self.request(&method, Some(params), options).await
    }

    /// The cached result, or that of the server.
    async fn request(
        &self,
        method: &str,
        params: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, Failure> {
        let (results, name) = (&self.hub.0.results, Arc::from(self.session.name()));
        let now = || self.hub.server(&name).map(|member| authorization(&member)).unwrap_or_default();
        let asked = results.key(&name, method, params.as_ref(), now());
        if let Some(result) = results.get(&asked) {
            return Ok(result);
        }
        let last = self.session.request_until_final(method, params, options).await?;
        let is_plain = last.is_plain;
        let result = last.complete(method)?;
        if is_plain {
            results.put(asked, &result, now());
        }
        Ok(result)
    }
}

impl PageSource for CachingSession<'_> {
    async fn fetch_page(
        &self,
        method: &str,
        params: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, Failure> {
        self.request(method, params, options).await
    }
}

/// A number that identifies the current token of a server.
pub(super) fn authorization(member: &HubServer) -> u64 {
    member.config.authorizer.as_ref().map(Authorizer::generation).unwrap_or_default()
}
