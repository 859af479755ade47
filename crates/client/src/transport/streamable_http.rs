//! Streamable HTTP: rmcp's worker over an [`HttpClient`].

use std::sync::Arc;

use rmcp::transport::{
    common::client_side_sse::NeverRetry,
    streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpClientWorker},
};

use super::{HttpLink, Link, OpenConnection, OpenError, RawSender, auth::AuthMiddleware, http::HttpClient, web};
use crate::recorder::TraceRecorder;

const CONCURRENT_POSTS: usize = 1024;

/// Prepares a connection; streamable HTTP sends nothing before the first message.
///
/// # Errors
/// [`OpenError::Invalid`] if the URL or a header cannot be used.
pub(crate) fn open(
    url: &str,
    headers: &[(String, String)],
    auth: Option<AuthMiddleware>,
    recorder: TraceRecorder,
) -> Result<OpenConnection, OpenError> {
    let url = web::parse_url(url, &["http", "https"])?;
    let (http, headers) = (web::client(&url)?, web::header_map(headers)?);
    let auth = web::auth_for(&headers, auth);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .reinit_on_expired_session(false)
        .max_concurrent_requests(CONCURRENT_POSTS);
    config.retry_config = Arc::new(NeverRetry::default());
    let client = HttpClient::new(http, url, headers, auth, recorder);
    let worker = StreamableHttpClientWorker::new(client.clone(), config);
    let raw = RawSender::Http(client.clone());
    Ok(OpenConnection { link: Link::Http(HttpLink { worker, client }), raw, child: None })
}
