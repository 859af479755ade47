//! A file from the web, for the prompt of an agent.

use std::time::Duration;

use rehearse_net::http_client::{HttpError, builder, is_loopback};
use reqwest::{StatusCode, header::USER_AGENT, redirect};

use super::url::parse_url;

/// Why there is no content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// It is no http(s) URL.
    #[error("{0}")]
    Url(String),
    /// The connection broke, or the time is over.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The HTTP status is another than success.
    #[error("HTTP {}: {}", .0.as_u16(), .0.canonical_reason().unwrap_or("no reason given"))]
    Status(StatusCode),
}

/// The content at an http(s) URL; `None` if it is larger than `max_size` bytes. Redirects are followed.
///
/// # Errors
/// Why there is no content: the connection, the status, or the time limit.
pub async fn download(url: &str, limit: Duration, max_size: usize) -> Result<Option<Vec<u8>>, DownloadError> {
    let url = parse_url(url, &["http", "https"]).map_err(DownloadError::Url)?;
    let builder = builder(is_loopback(&url)).redirect(redirect::Policy::limited(5)).timeout(limit);
    let client = builder.build().map_err(HttpError::from)?;
    let agent = concat!("rehearse/", env!("CARGO_PKG_VERSION"));
    let mut response = client.get(url).header(USER_AGENT, agent).send().await.map_err(HttpError::from)?;
    let status = response.status();
    if !status.is_success() {
        return Err(DownloadError::Status(status));
    }
    let mut content = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(HttpError::from)? {
        if content.len() + chunk.len() > max_size {
            return Ok(None);
        }
        content.extend_from_slice(&chunk);
    }
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use rehearse_testing::{HttpServer, reply};

    use super::*;

    #[tokio::test]
    async fn a_download_has_a_largest_size_and_only_success_is_content() {
        let server = HttpServer::start(|seen| async move {
            let is_ours = seen.header("user-agent").is_some_and(|agent| agent.starts_with("rehearse/"));
            reply(if is_ours { 200 } else { 403 }, "text/plain", "12345")
        })
        .await;
        let limit = Duration::from_secs(20);
        assert_eq!(download(&server.url, limit, 5).await.expect("content"), Some(b"12345".to_vec()));
        assert_eq!(download(&server.url, limit, 4).await.expect("content"), None);
        let missing = HttpServer::start(|_| async { reply(404, "text/plain", "") }).await;
        assert_eq!(download(&missing.url, limit, 4).await.expect_err("missing").to_string(), "HTTP 404: Not Found");
        assert!(download("ftp://h/", limit, 4).await.is_err());
    }
}
