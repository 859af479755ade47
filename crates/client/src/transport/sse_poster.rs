//! The POSTs of HTTP with SSE.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::{
    Client, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
};

use super::{WireError, web};
use crate::{oauth::AuthMiddleware, recorder::ClientRecorder};

/// Sends frames by POST to the endpoint that the server named.
#[derive(Clone)]
pub(crate) struct Poster {
    pub(super) recorder: ClientRecorder,
    pub(super) http: Client,
    pub(super) endpoint: Url,
    pub(super) headers: Arc<HeaderMap>,
    pub(super) auth: Option<AuthMiddleware>,
}

impl Poster {
    /// Delivers one frame and returns the HTTP status.
    ///
    /// # Errors
    /// [`WireError::Status`] if the server does not accept the frame, [`WireError::Exchange`] if it cannot be reached,
    /// and [`WireError::Unauthorized`].
    pub(crate) async fn post(self, bytes: Bytes) -> Result<u16, WireError> {
        let request = self.http.post(self.endpoint).headers((*self.headers).clone());
        // This replaces a configured header.
        let own = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let request = request.headers(own).body(bytes.clone());
        let response = web::send(&self.http, self.auth.as_ref(), request, &self.recorder, Some(&bytes)).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(status.as_u16());
        }
        let body = web::error_text(response, &self.recorder).await;
        Err(WireError::Status { status: status.as_u16(), body })
    }
}
