//! Who is let in, and the endpoints of the mock as a protected resource and as an authorization server.

use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Value as Json, json};
use url::Url;

use super::{
    http::{RequestHead, empty, json, read},
    http_exchange::HttpExchange,
    issued::{Issued, NumberedIssuer, Params},
    path,
    proof::ProofContext,
    server_state::ServerState,
};
use crate::{
    journal::Refusal,
    script::{Auth, Challenge, Dpop, INVALID_TOKEN, Issuer, NONCE_WANTED, Token},
};
use rehearse_net::{Request, Response};
use rehearse_protocol::Transport;

/// The path of the metadata of a protected resource (RFC 9728, section 3).
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
/// Public metadata of a server (RFC 8615, section 3).
const WELL_KNOWN: &str = "/.well-known/";

/// The header in which a server gives a nonce (RFC 9449, section 8.1).
const NONCE_HEADER: &str = "dpop-nonce";
/// The nonces of the mock as an authorization server, and as a protected resource.
const ISSUER_NONCE: &str = "nonce-of-the-issuer";
const SERVER_NONCE: &str = "nonce-of-the-server";

/// Whether a request is let in.
#[derive(Debug)]
pub(super) enum Access {
    /// The server requires no tokens.
    Open,
    /// It is about authorization, and needs no token.
    Public,
    Granted(Arc<Token>),
    Refused(Challenge),
}

impl ServerState {
    /// Whether a request is let in. Each one with a token that the mock has issued uses it once.
    pub(super) fn access(&self, request: &Request) -> Access {
        let path = request.uri().path();
        let has_own = |auth: &Auth| auth.issuer().is_some_and(|issuer| issuer.is_about(path));
        if path.starts_with(WELL_KNOWN) || self.engine.auth(has_own) == Some(true) {
            return Access::Public;
        }
        let authorized = self
            .engine
            .auth(|auth| auth.authorize(request.headers(), |token| use_token(&self.issued, auth, token, request)));
        match authorized {
            None => Access::Open,
            Some(Ok(token)) => Access::Granted(token),
            Some(Err(challenge)) => Access::Refused(challenge),
        }
    }

    /// Metadata, and the endpoints of the mock as an authorization server; any other name is a 404.
    pub(super) async fn about_authorization(&self, head: &RequestHead, request: Request) -> Response {
        let refuse = |why: &str| self.refuse(head, StatusCode::NOT_FOUND, Refusal::Optional, why);
        let (path, origin) = (request.uri().path().to_owned(), origin(&request));
        let issuer = self.engine.auth(|auth| auth.issuer().cloned()).flatten();
        if let Some(issuer) = &issuer {
            if issuer.missing.contains(&path) {
                return refuse("there is nothing here");
            }
            if let Some((number, endpoint)) = issuer.endpoint(&path) {
                return self.issue(head, request, issuer, number, endpoint).await;
            }
        }
        let is_get = request.method() == Method::GET;
        let described = issuer.as_ref().and_then(|issuer| Some((issuer, issuer.described_at(&path)?)));
        let metadata = match path.strip_prefix(METADATA_PATH).filter(|path| path.is_empty() || path.starts_with('/')) {
            Some(resource) => {
                let resource = if resource.is_empty() { "/mcp" } else { resource };
                let issuer = issuer.as_ref().map_or("", |issuer| self.issued.current(issuer));
                self.engine.auth(|auth| auth.metadata(&origin, resource, issuer))
            }
            None => match described {
                Some((issuer, (at, is_openid))) => {
                    let scopes = self.engine.auth(|auth| auth.scopes().to_vec()).unwrap_or_default();
                    Some(issuer.metadata(&origin, at, &scopes, is_openid))
                }
                None if issuer.is_some() => return refuse("there is nothing here"),
                None => {
                    return refuse(
                        "this mock issues no tokens; `authorizationServers` in `auth` names a server that does",
                    );
                }
            },
        };
        match metadata {
            Some(metadata) if is_get => json(StatusCode::OK, metadata.to_string().into()),
            Some(_) => self.not_allowed(head, Refusal::Malformed, "GET"),
            None => refuse("this server is open to everyone"),
        }
    }

    /// The answer of an endpoint of an issuer.
    async fn issue(
        &self,
        head: &RequestHead,
        request: Request,
        issuer: &Issuer,
        number: usize,
        endpoint: &str,
    ) -> Response {
        let is_get = request.method() == Method::GET;
        if is_get != (endpoint == "authorize") || !(is_get || request.method() == Method::POST) {
            let allowed = if endpoint == "authorize" { "GET" } else { "POST" };
            return self.not_allowed(head, Refusal::Malformed, allowed);
        }
        self.note(head, None);
        let origin = origin(&request);
        let url = format!("{origin}{}", request.uri().path());
        let nonce = (issuer.dpop == Dpop::Nonce).then_some(ISSUER_NONCE);
        let place = NumberedIssuer { issuer, number, origin: &origin };
        let (parts, body) = request.into_parts();
        if is_get {
            let params = Params::parse(parts.uri.query().unwrap_or_default().as_bytes());
            return match place.authorize(&self.issued, &params) {
                Ok(location) => redirect(&location),
                Err(why) => {
                    answer(StatusCode::BAD_REQUEST, &json!({ "error": "invalid_request", "error_description": why }))
                }
            };
        }
        let body = match read(body).await {
            Ok(body) => body,
            Err((status, why)) => {
                return answer(status, &json!({ "error": "invalid_request", "error_description": why }));
            }
        };
        if let Some(exchange) = parts.extensions.get::<HttpExchange>() {
            exchange.record_other_body(&body);
        }
        let scopes = self.engine.auth(|auth| auth.scopes().to_vec()).unwrap_or_default();
        let issued = match endpoint {
            "register" => place.register(&self.issued, &body).map(|client| (StatusCode::CREATED, client)),
            "revoke" => {
                place.revoke(&self.issued, &parts.headers, &Params::parse(&body)).map(|()| (StatusCode::OK, json!({})))
            }
            _ => {
                let proof = ProofContext { method: &parts.method, url: &url, token: None, nonce };
                let issued = place.token(&self.issued, &parts.headers, &Params::parse(&body), &scopes, &proof);
                issued.map(|token| (StatusCode::OK, token))
            }
        };
        match issued {
            Ok((status, issued)) => answer(status, &issued),
            Err((status, error)) => {
                let mut response = answer(status, &json!({ "error": error }));
                // Only a client that has shown itself with this header needs the challenge (RFC 6749, section 5.2).
                if status == StatusCode::UNAUTHORIZED && parts.headers.contains_key(header::AUTHORIZATION) {
                    let challenge = HeaderValue::from_static("Basic realm=\"the mock\"");
                    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
                }
                if error == NONCE_WANTED {
                    response.headers_mut().insert(NONCE_HEADER, HeaderValue::from_static(ISSUER_NONCE));
                }
                response
            }
        }
    }
}

/// The issued token of a request, if it is still good, and comes with the proof that it needs.
fn use_token(issued: &Issued, auth: &Auth, token: &str, request: &Request) -> Result<Arc<Token>, &'static str> {
    let issuer = auth.issuer().ok_or(INVALID_TOKEN)?;
    let url = format!("{}{}", origin(request), request.uri().path());
    let nonce = (issuer.dpop == Dpop::Nonce).then_some(SERVER_NONCE);
    let proof = ProofContext { method: request.method(), url: &url, token: Some(token), nonce };
    issued.use_token(token, issuer, |key| issued.check_proof(request.headers(), &proof, key))
}

/// The origin by which a client reaches the mock.
pub(super) fn origin(request: &Request) -> String {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    format!("http://{host}")
}

/// A response with a challenge.
pub(super) fn challenged(
    mut response: Response,
    challenge: &Challenge,
    origin: &str,
    transport: Transport,
) -> Response {
    let resource = path::path(transport).unwrap_or_default();
    let text = challenge.header(origin, &format!("{METADATA_PATH}{resource}"));
    if let Ok(value) = HeaderValue::try_from(text)
        && !value.is_empty()
    {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
    if challenge.wants_nonce() {
        response.headers_mut().insert(NONCE_HEADER, HeaderValue::from_static(SERVER_NONCE));
    }
    response
}

fn answer(status: StatusCode, value: &Json) -> Response {
    let mut response = json(status, value.to_string().into());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn redirect(location: &Url) -> Response {
    let mut response = empty(StatusCode::FOUND);
    if let Ok(value) = HeaderValue::from_str(location.as_str()) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}
