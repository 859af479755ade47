//! Routes HTTP requests to the transports.

use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode, header};

use super::{http::json, server_state::ServerState, sse, streamable, ws};
use crate::script::{Challenge, Token};
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
    let transport = transport(request.uri().path());
    // RFC 9112, 3.2; any other problem with it is a 403.
    if request.headers().get_all(header::HOST).iter().count() != 1 {
        return state.refuse(transport, StatusCode::BAD_REQUEST, "there must be one Host header");
    }
    if let Err(why) = state.hosts.check(request.headers(), request.uri()) {
        return state.refuse(transport, StatusCode::FORBIDDEN, &why);
    }
    if let Some(name) = request.uri().path().strip_prefix(WELL_KNOWN) {
        return state.well_known(&request, name);
    }
    let host = || request.headers().get(header::HOST).cloned();
    let resource = match transport {
        Transport::Sse => "/sse",
        Transport::Ws => "/ws",
        _ => "/mcp",
    };
    let (authorized, host) = state.engine.auth(|auth| (auth.authorize(request.headers()), host())).unzip();
    let mut response = match authorized.transpose() {
        Ok(token) => route(state, transport, request, token).await,
        Err(challenge) => {
            let status = StatusCode::from_u16(challenge.status).unwrap_or(StatusCode::UNAUTHORIZED);
            let mut response = state.refuse(transport, status, &challenge.reason());
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

async fn route(state: Arc<ServerState>, transport: Transport, request: Request, token: Option<Arc<Token>>) -> Response {
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/mcp") => streamable::post(state, request, token).await,
        (&Method::GET, "/mcp") => streamable::listen(&state, &request, token.as_deref()),
        (&Method::DELETE, "/mcp") => streamable::delete(&state, request.headers(), token.as_deref()),
        (_, "/mcp") => state.not_allowed(transport, "GET, POST, DELETE"),
        (&Method::GET, "/sse") => sse::open(state, &request, token),
        (_, "/sse") => state.not_allowed(transport, "GET"),
        (&Method::POST, "/messages") => sse::post(state, request, token).await,
        (_, "/messages") => state.not_allowed(transport, "POST"),
        (&Method::GET, "/ws") => ws::open(state, request, token),
        (_, "/ws") => state.not_allowed(transport, "GET"),
        (_, path) => {
            let why = format!("nothing is served at {path}; this mock serves /mcp, /sse and /ws");
            state.refuse(transport, StatusCode::NOT_FOUND, &why)
        }
    }
}

impl ServerState {
    /// The metadata of a protected resource, if the server requires tokens; any other name is a 404.
    fn well_known(&self, request: &Request, name: &str) -> Response {
        let refuse = |why: &str| self.refuse(Transport::Http, StatusCode::NOT_FOUND, why);
        let resource = name.strip_prefix("oauth-protected-resource");
        let Some(path) = resource.filter(|path| path.is_empty() || path.starts_with('/')) else {
            return refuse("this mock issues no tokens; `authorizationServers` in `auth` names a server that does");
        };
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let path = if path.is_empty() { "/mcp" } else { path };
        let metadata = self.engine.auth(|auth| auth.metadata(&format!("http://{host}"), path));
        match (metadata, request.method()) {
            (Some(metadata), &Method::GET) => json(StatusCode::OK, metadata.to_string().into()),
            (Some(_), _) => self.not_allowed(Transport::Http, "GET"),
            (None, _) => refuse("this server is open to everyone"),
        }
    }
}
