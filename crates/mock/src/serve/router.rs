//! Routes HTTP requests to the transports.

use std::sync::Arc;

use http::{Method, StatusCode, header};

use super::{
    authorization::{Access, challenged, origin},
    http::RequestHead,
    path,
    server_state::ServerState,
    sse, streamable, ws,
};
use crate::{
    journal::Refusal,
    script::{Challenge, Token},
};
use rehearse_net::{Request, Response};

pub(super) async fn handle(state: Arc<ServerState>, request: Request, access: Access) -> Response {
    let head = RequestHead::new(path::transport(request.uri().path()), &request);
    let transport = head.transport;
    // RFC 9112, 3.2; any other problem with it is a 403.
    if request.headers().get_all(header::HOST).iter().count() != 1 {
        return state.refuse(&head, StatusCode::BAD_REQUEST, Refusal::Header, "there must be one Host header");
    }
    if let Err(why) = state.hosts.check(request.headers(), request.uri()) {
        return state.refuse(&head, StatusCode::FORBIDDEN, Refusal::Header, why.to_string());
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
