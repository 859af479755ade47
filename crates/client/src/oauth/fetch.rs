//! The HTTP requests of an authorization, limited in time and size.

use std::{
    error::Error,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::{
    AuthError, Challenge, Secret, SigningKey,
    dpop::{self, PROOF},
    ssrf_guard::{BlockedAddress, SsrfGuard},
};
use crate::recorder::ClientRecorder;
use rehearse_net::http_client::{builder, describe, display_url, is_loopback};
use rehearse_protocol::{Closed, Direction, Era, EventKind, Version};

/// Replaces secrets in what is recorded.
const MASK: &str = "***";
const LIMIT: Duration = Duration::from_secs(30);
const MAX_BODY: usize = 1 << 20;
const MAX_REDIRECTS: usize = 3;
const MAX_STEPS: usize = 8;
/// How many entries are recorded.
const KEPT: usize = 1000;
/// Form parameters that are recorded; all others may be secret.
const PLAIN: [&str; 10] = [
    "audience",
    "client_assertion_type",
    "client_id",
    "grant_type",
    "redirect_uri",
    "requested_token_type",
    "resource",
    "scope",
    "subject_token_type",
    "token_type_hint",
];
/// The media types of an MCP server.
const MCP_TYPES: &str = "application/json, text/event-stream";
const SESSION: &str = "mcp-session-id";

/// The HTTP client of one authorizer. It does not follow redirects by itself, and connects only where the SSRF guard
/// allows it.
#[derive(Debug)]
pub(super) struct Fetcher {
    ssrf_guard: SsrfGuard,
    near: OnceLock<Client>,
    far: OnceLock<Client>,
    /// Records the requests.
    recorder: ClientRecorder,
}

/// How the location of metadata is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetadataLocation {
    /// The server names it, so there must be metadata.
    Stated,
    /// A well-known location, where there may be none.
    WellKnown,
}

impl Fetcher {
    pub(super) fn new(ssrf_guard: SsrfGuard) -> Fetcher {
        Fetcher { ssrf_guard, near: OnceLock::new(), far: OnceLock::new(), recorder: ClientRecorder::with_limit(KEPT) }
    }

    /// The recorder of the requests from now on, without secrets.
    pub(super) fn recorder(&self) -> ClientRecorder {
        self.recorder.clone().with_details()
    }

    /// A JSON document; `None` if a well-known location has none. Redirects are followed within the origin.
    ///
    /// # Errors
    /// [`AuthError::Unreachable`], [`AuthError::Internal`], [`AuthError::Http`] and [`AuthError::Malformed`].
    pub(super) async fn metadata<T: DeserializeOwned>(
        &self,
        url: &Url,
        location: MetadataLocation,
        version: Option<&HeaderValue>,
        what: &'static str,
    ) -> Result<Option<T>, AuthError> {
        let mut at = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.client(&at)?.get(at.clone()).header(ACCEPT, "application/json");
            if let Some(version) = version {
                // Servers may answer in the form of this version (2025-03-26, Server Metadata Discovery Headers).
                request = request.header("mcp-protocol-version", version);
            }
            let response = self.send(request, &at, None).await?;
            let status = response.status();
            if status.is_redirection() {
                match target(&response, &at).filter(|next| next.origin() == at.origin()) {
                    Some(next) => at = next,
                    None => return Err(http(&at, status)),
                }
                continue;
            }
            if status == StatusCode::OK {
                let body = body(response, &at).await?;
                let read = serde_json::from_slice(&body);
                self.recorder.note_body(None, body);
                return match (read, location) {
                    (Ok(document), _) => Ok(Some(document)),
                    (Err(_), MetadataLocation::WellKnown) => Ok(None),
                    (Err(_), MetadataLocation::Stated) => Err(AuthError::Malformed { url: url_text(&at), what }),
                };
            }
            return match (status.is_client_error(), location) {
                (true, MetadataLocation::WellKnown) => Ok(None),
                _ => Err(http(&at, status)),
            };
        }
        Err(http(url, StatusCode::LOOP_DETECTED))
    }

    /// The challenge of the server to a request without a token; `None` if there is none. First to a GET, which has no
    /// side effects; then to the first requests of a session, of all protocol versions.
    pub(super) async fn challenge(&self, server: &Url) -> Option<Challenge> {
        let client = self.client(server).ok()?;
        let request = client.get(server.clone()).header(ACCEPT, MCP_TYPES);
        if let Some(challenge) = challenge_of(&self.send(request, server, None).await.ok()?) {
            return Some(challenge);
        }
        for (version, method, params) in first_requests() {
            let body = json!({ "jsonrpc": "2.0", "id": 0, "method": method, "params": params });
            let mut request = client.post(server.clone()).header(ACCEPT, MCP_TYPES).json(&body);
            if version.era() == Era::Modern {
                request = request.header("mcp-protocol-version", version.as_str()).header("mcp-method", method);
            }
            let response = self.send(request, server, Some(body.to_string())).await.ok()?;
            let session = response.headers().get(SESSION).cloned();
            if let Some(session) = session.filter(|_| response.status().is_success()) {
                // This session is not used.
                let _ = self.send(client.delete(server.clone()).header(SESSION, session), server, None).await;
            }
            if response.status() == StatusCode::UNAUTHORIZED {
                return challenge_of(&response);
            }
        }
        None
    }

    /// Sends a form, and returns the status and body of the answer. With a `key` its possession is proven; if the
    /// server wants a nonce for that, the form is sent again (RFC 9449, sections 5 and 8).
    ///
    /// # Errors
    /// [`AuthError::Unreachable`] and [`AuthError::Malformed`]; [`AuthError::Invalid`] if the key cannot be used.
    pub(super) async fn post_form(
        &self,
        url: &Url,
        form: &[(&'static str, String)],
        authorization: Option<HeaderValue>,
        key: Option<&Secret>,
    ) -> Result<(StatusCode, Bytes), AuthError> {
        let text = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let mut request = self.client(url)?.post(url.clone()).header(ACCEPT, "application/json");
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(text);
        let shown_body = form.iter().map(|(name, value)| {
            let value = if PLAIN.contains(name) { value } else { MASK };
            format!("{name}={value}")
        });
        let shown_body = shown_body.collect::<Vec<_>>().join("&");
        let Some(key) = key else { return self.answer(self.send(request, url, Some(shown_body)).await?, url).await };
        let unreadable = || AuthError::Invalid("the key of the token cannot be read".to_owned());
        let key = SigningKey::from_base64(key.reveal()).ok_or_else(unreadable)?;
        let mut nonce = None;
        loop {
            let proof = dpop::proof(&key, &Method::POST, url, None, nonce.as_deref())?;
            let request = request.try_clone().ok_or_else(unreadable)?.header(PROOF, proof);
            let response = self.send(request, url, Some(shown_body.clone())).await?;
            let next = dpop::nonce_of(response.headers()).filter(|_| nonce.is_none());
            let (status, body) = self.answer(response, url).await?;
            if next.is_none() || !is_nonce_wanted(status, &body) {
                return Ok((status, body));
            }
            nonce = next;
        }
    }

    /// Sends a JSON document, and returns the status and body of the answer.
    ///
    /// # Errors
    /// [`AuthError::Unreachable`] and [`AuthError::Malformed`].
    pub(super) async fn post_json(&self, url: &Url, document: &Value) -> Result<(StatusCode, Bytes), AuthError> {
        let request = self.client(url)?.post(url.clone()).header(ACCEPT, "application/json").json(document);
        self.answer(self.send(request, url, Some(document.to_string())).await?, url).await
    }

    /// Follows the redirects of an authorization server without user interaction, to the first URL that is `wanted`.
    ///
    /// # Errors
    /// [`AuthError::InteractionRequired`] if there is no such redirect, so that a user is needed.
    pub(super) async fn follow_redirects(&self, url: &Url, wanted: impl Fn(&Url) -> bool) -> Result<Url, AuthError> {
        let mut at = url.clone();
        for _ in 0..MAX_STEPS {
            let response = self.send(self.client(&at)?.get(at.clone()), &at, None).await?;
            match (response.status().is_redirection(), target(&response, &at)) {
                (true, Some(next)) if wanted(&next) => return Ok(next),
                (true, Some(next)) if next.origin() == at.origin() => at = next,
                _ if response.status().is_success() => return Err(AuthError::InteractionRequired),
                _ => return Err(http(&at, response.status())),
            }
        }
        Err(AuthError::InteractionRequired)
    }

    fn client(&self, url: &Url) -> Result<&Client, AuthError> {
        let is_near = is_loopback(url);
        let slot = if is_near { &self.near } else { &self.far };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let builder = builder(is_near).timeout(LIMIT);
        let builder = builder.dns_resolver(Arc::new(self.ssrf_guard.clone()));
        let client = builder.build().map_err(|error| AuthError::Invalid(describe(error)))?;
        Ok(slot.get_or_init(|| client))
    }

    /// Sends a request; `shown_body` is the recorded body. Queries may contain codes, so they are not recorded.
    async fn send(
        &self,
        request: RequestBuilder,
        url: &Url,
        shown_body: Option<String>,
    ) -> Result<Response, AuthError> {
        let (client, request) = request.build_split();
        let request = request.map_err(|error| unreachable(url, error))?;
        self.recorder.note_detail(None, || {
            let (method, headers) = (request.method().clone(), request.headers().clone());
            EventKind::HttpRequest { method, target: url_text(url), headers }
        });
        if let Some(shown_body) = shown_body {
            self.recorder.note_detail(None, || EventKind::HttpBody {
                direction: Direction::ClientToServer,
                bytes: shown_body.into(),
            });
        }
        let response = client.execute(request).await.map_err(|error| unreachable(url, error))?;
        self.recorder.note_detail(None, || {
            let mut headers = response.headers().clone();
            let to = target(&response, url).and_then(|to| HeaderValue::from_str(&url_text(&to)).ok());
            if let Some(location) = headers.get_mut(LOCATION) {
                *location = to.unwrap_or_else(|| HeaderValue::from_static(MASK));
            }
            EventKind::HttpResponse { status: response.status(), headers }
        });
        Ok(response)
    }

    /// The status and body of a response, which is recorded only if it is a refusal.
    async fn answer(&self, response: Response, url: &Url) -> Result<(StatusCode, Bytes), AuthError> {
        let status = response.status();
        let body = body(response, url).await?;
        if !status.is_success() {
            self.recorder.note_body(None, body.clone());
        }
        Ok((status, body))
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.recorder.close(Closed::by_client("the authorizer is gone"));
    }
}

/// The first request of a session in each era.
fn first_requests() -> [(Version, &'static str, Value); 2] {
    let who = json!({ "name": "rehearse", "version": env!("CARGO_PKG_VERSION") });
    let meta = |name: &str| format!("io.modelcontextprotocol/{name}");
    let modern = json!({ "_meta": {
        (meta("protocolVersion")): Version::LATEST.as_str(),
        (meta("clientInfo")): &who,
        (meta("clientCapabilities")): {},
    } });
    let legacy = json!({ "protocolVersion": Version::LATEST_LEGACY.as_str(), "capabilities": {}, "clientInfo": &who });
    [(Version::LATEST, "server/discover", modern), (Version::LATEST_LEGACY, "initialize", legacy)]
}

fn is_nonce_wanted(status: StatusCode, body: &[u8]) -> bool {
    let error = serde_json::from_slice(body).ok().and_then(|body: Value| body["error"].as_str().map(str::to_owned));
    status.is_client_error() && error.as_deref() == Some(dpop::NONCE_WANTED)
}

fn challenge_of(response: &Response) -> Option<Challenge> {
    (response.status() == StatusCode::UNAUTHORIZED).then(|| Challenge::from_headers(response.headers())).flatten()
}

async fn body(mut response: Response, url: &Url) -> Result<Bytes, AuthError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(url, error))? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(AuthError::Malformed { url: url_text(url), what: "a small document" });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.into())
}

fn target(response: &Response, url: &Url) -> Option<Url> {
    url.join(response.headers().get(LOCATION)?.to_str().ok()?).ok()
}

fn unreachable(url: &Url, error: reqwest::Error) -> AuthError {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    match causes.into_iter().any(|cause| cause.is::<BlockedAddress>()) {
        true => AuthError::Internal { url: url_text(url) },
        false => AuthError::Unreachable { url: url_text(url), detail: describe(error) },
    }
}

fn http(url: &Url, status: StatusCode) -> AuthError {
    AuthError::Http { url: url_text(url), status: status.as_u16() }
}

fn url_text(url: &Url) -> String {
    display_url(url.as_str())
}
