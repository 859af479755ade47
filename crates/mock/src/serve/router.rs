//! Routes HTTP requests to the transports.

use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode, header};

use super::{
    http::{RequestHead, json},
    server_state::ServerState,
    sse, streamable, ws,
};
use crate::{
    journal::Refusal,
    script::{Auth, Challenge, Token},
};
use rehearse_net::{Request, Response};
use rehearse_protocol::Transport;

/// The path of the metadata of a protected resource (RFC 9728, section 3).
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
/// Public metadata of a server (RFC 8615, section 3).
const WELL_KNOWN: &str = "/.well-known/";

/// The transport that a path belongs to.
pub(super) fn transport(path: &str) -> Transport {
    match path {
        "/sse" | "/messages" => Transport::Sse,
        "/ws" => Transport::Ws,
        _ => Transport::Http,
    }
}

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

pub(super) async fn handle(state: Arc<ServerState>, request: Request, access: Access) -> Response {
    let head = RequestHead::new(transport(request.uri().path()), &request);
    let transport = head.transport;
    // RFC 9112, 3.2; any other problem with it is a 403.
    if request.headers().get_all(header::HOST).iter().count() != 1 {
        return state.refuse(&head, StatusCode::BAD_REQUEST, Refusal::Header, "there must be one Host header");
    }
    if let Err(why) = state.hosts.check(request.headers(), request.uri()) {
        return state.refuse(&head, StatusCode::FORBIDDEN, Refusal::Header, why);
    }
    let token = match access {
        Access::Public => return state.about_authorization(&head, request).await,
        Access::Refused(challenge) => {
            let status = StatusCode::from_u16(challenge.status).unwrap_or(StatusCode::UNAUTHORIZED);
            let origin = origin(&request);
            state.record_refused(request).await;
            let response = state.refuse(&head, status, Refusal::Challenge, challenge.reason());
            return challenged(response, &challenge, &origin, transport);
        }
        Access::Granted(token) => Some(token),
        Access::Open => None,
    };
    let origin = token.as_ref().map(|_| origin(&request));
    let mut response = route(state, head, request, token).await;
    match response.extensions_mut().remove::<Challenge>() {
        Some(challenge) => challenged(response, &challenge, &origin.unwrap_or_default(), transport),
        None => response,
    }
}

/// The origin by which a client reaches the mock.
pub(super) fn origin(request: &Request) -> String {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    format!("http://{host}")
}

/// A response with a challenge.
fn challenged(mut response: Response, challenge: &Challenge, origin: &str, transport: Transport) -> Response {
    let resource = match transport {
        Transport::Sse => "/sse",
        Transport::Ws => "/ws",
        _ => "/mcp",
    };
    let text = challenge.header(origin, &format!("{METADATA_PATH}{resource}"));
    if let Ok(value) = HeaderValue::try_from(text)
        && !value.is_empty()
    {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
    response
}

async fn route(state: Arc<ServerState>, head: RequestHead, request: Request, token: Option<Arc<Token>>) -> Response {
    let not_allowed = |refusal, allowed| state.not_allowed(&head, refusal, allowed);
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/mcp") => streamable::post(state, head, request, token).await,
        (&Method::GET, "/mcp") => streamable::listen(&state, &head, &request, token.as_deref()),
        (&Method::DELETE, "/mcp") => streamable::delete(&state, &head, request.headers(), token.as_deref()),
        (_, "/mcp") => not_allowed(Refusal::Malformed, "GET, POST, DELETE"),
        (&Method::GET, "/sse") => sse::open(state, &head, &request, token),
        // A client may try streamable HTTP first (2025-11-25, Transports: Backwards Compatibility).
        (_, "/sse") => not_allowed(Refusal::Negotiation, "GET"),
        (&Method::POST, "/messages") => sse::post(state, &head, request, token).await,
        (_, "/messages") => not_allowed(Refusal::Malformed, "POST"),
        (&Method::GET, "/ws") => ws::open(state, &head, request, token),
        (_, "/ws") => not_allowed(Refusal::Malformed, "GET"),
        (_, path) => {
            let why = format!("nothing is served at {path}; this mock serves /mcp, /sse and /ws");
            // After a challenge a client may look for an authorization server here.
            let refusal = if state.engine.auth(|_| ()).is_some() { Refusal::Challenge } else { Refusal::Malformed };
            state.refuse(&head, StatusCode::NOT_FOUND, refusal, why)
        }
    }
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
            .auth(|auth| auth.authorize(request.headers(), |token| self.issued.use_token(token, auth.issuer()?)));
        match authorized {
            None => Access::Open,
            Some(Ok(token)) => Access::Granted(token),
            Some(Err(challenge)) => Access::Refused(challenge),
        }
    }

    /// Metadata, and the endpoints of the mock as an authorization server; any other name is a 404.
    async fn about_authorization(&self, head: &RequestHead, request: Request) -> Response {
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
}
