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
    script::{Challenge, Token},
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

pub(super) async fn handle(state: Arc<ServerState>, request: Request) -> Response {
    let head = RequestHead::new(transport(request.uri().path()), &request);
    let transport = head.transport;
    // RFC 9112, 3.2; any other problem with it is a 403.
    if request.headers().get_all(header::HOST).iter().count() != 1 {
        return state.refuse(&head, StatusCode::BAD_REQUEST, Refusal::Header, "there must be one Host header");
    }
    if let Err(why) = state.hosts.check(request.headers(), request.uri()) {
        return state.refuse(&head, StatusCode::FORBIDDEN, Refusal::Header, why);
    }
    if let Some(name) = request.uri().path().strip_prefix(WELL_KNOWN) {
        return state.well_known(&head, &request, name);
    }
    let host = || request.headers().get(header::HOST).cloned();
    let resource = match transport {
        Transport::Sse => "/sse",
        Transport::Ws => "/ws",
        _ => "/mcp",
    };
    let (authorized, host) = state.engine.auth(|auth| (auth.authorize(request.headers()), host())).unzip();
    let mut response = match authorized.transpose() {
        Ok(token) => route(state, head, request, token).await,
        Err(challenge) => {
            let status = StatusCode::from_u16(challenge.status).unwrap_or(StatusCode::UNAUTHORIZED);
            let mut response = state.refuse(&head, status, Refusal::Challenge, challenge.reason());
            response.extensions_mut().insert(challenge);
            response
        }
    };
    if let Some(challenge) = response.extensions_mut().remove::<Challenge>() {
        let host = host.flatten();
        let host = host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default();
        if let Ok(value) = HeaderValue::try_from(challenge.header(&format!("http://{host}{METADATA_PATH}{resource}"))) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
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
    /// The metadata of a protected resource, if the server requires tokens; any other name is a 404.
    fn well_known(&self, head: &RequestHead, request: &Request, name: &str) -> Response {
        let refuse = |why: &str| self.refuse(head, StatusCode::NOT_FOUND, Refusal::Optional, why);
        let resource = name.strip_prefix("oauth-protected-resource");
        let Some(path) = resource.filter(|path| path.is_empty() || path.starts_with('/')) else {
            return refuse("this mock issues no tokens; `authorizationServers` in `auth` names a server that does");
        };
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let path = if path.is_empty() { "/mcp" } else { path };
        let metadata = self.engine.auth(|auth| auth.metadata(&format!("http://{host}"), path));
        match (metadata, request.method()) {
            (Some(metadata), &Method::GET) => json(StatusCode::OK, metadata.to_string().into()),
            (Some(_), _) => self.not_allowed(head, Refusal::Malformed, "GET"),
            (None, _) => refuse("this server is open to everyone"),
        }
    }
}
