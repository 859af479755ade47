//! Streamable HTTP: stateless in the modern era, with sessions in the legacy one.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode};

use super::{
    http::{accepts, empty},
    server_state::ServerState,
    session::Session,
    session_http::{session_response, stream_response},
    stateless::stateless_response,
};
use crate::{
    engine::{Incoming, LegacySession, SESSION_HEADER, VERSION_HEADER},
    script::Token,
};
use rehearse_net::{Body, ConnectionHandle, Request, Response};
use rehearse_protocol::{Era, Message, Transport, Version};

const LAST_EVENT_ID: &str = "last-event-id";

pub(super) async fn post(state: Arc<ServerState>, request: Request, token: Option<Arc<Token>>) -> Response {
    let connection = request.extensions().get().cloned();
    let response = receive(&state, request, token.as_deref(), connection.as_ref()).await;
    if matches!(response.body(), Body::Whole(_)) {
        state.reorder_gate.notify_sent();
    }
    response
}

async fn receive(
    state: &Arc<ServerState>,
    request: Request,
    token: Option<&Token>,
    connection: Option<&ConnectionHandle>,
) -> Response {
    if !["application/json", "text/event-stream"].iter().all(|kind| accepts(request.headers(), kind)) {
        let why = "the Accept header must list application/json and text/event-stream";
        return state.refuse(Transport::Http, StatusCode::NOT_ACCEPTABLE, why);
    }
    let (headers, bytes) = match state.read_json(Transport::Http, request).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    let at = state.lifetime.started.elapsed();
    let headers = &headers;
    let incoming =
        Incoming { bytes: &bytes, transport: Transport::Http, at, headers: Some(headers), token, faults: &[] };
    match Message::parse(&bytes) {
        Ok(message) if state.engine.era_of(&message, Some(headers)) == Era::Modern => {
            let decision = state.engine.receive_modern(message, incoming);
            stateless_response(state, decision, connection).await
        }
        parsed if !state.engine.http().sessions => {
            let is_handshake = parsed.as_ref().is_ok_and(|message| message.method() == Some("initialize"));
            let legacy_session = match state.stateless_peer(headers) {
                _ if is_handshake => Arc::default(),
                Ok(legacy_session) => Arc::new(legacy_session),
                Err((status, why)) => {
                    let id = parsed.as_ref().ok().and_then(Message::id);
                    return state.refuse_message(Transport::Http, status, &bytes, id, &why);
                }
            };
            let decision = match parsed {
                Ok(message) => state.engine.receive_legacy(&legacy_session, message, incoming),
                Err(error) => state.engine.receive_broken(&legacy_session, error, incoming),
            };
            stateless_response(state, decision, connection).await
        }
        Ok(message) if message.method() == Some("initialize") && !headers.contains_key(SESSION_HEADER) => {
            initialize(state, message, incoming, connection).await
        }
        parsed => {
            let id = parsed.as_ref().ok().and_then(|message| message.id().cloned());
            let refuse = |(status, why): (StatusCode, String)| {
                state.refuse_message(Transport::Http, status, &bytes, id.as_ref(), &why)
            };
            match (state.session(headers, token), parsed) {
                (Ok(session), Ok(message)) => {
                    let decision = state.engine.receive_legacy(&session.legacy_session, message, incoming);
                    session_response(state, &session, decision, connection).await
                }
                (Ok(session), Err(error)) => {
                    let decision = state.engine.receive_broken(&session.legacy_session, error, incoming);
                    session_response(state, &session, decision, connection).await
                }
                (Err(_), Err(error)) => {
                    let decision = state.engine.receive_broken(&Arc::default(), error, incoming);
                    stateless_response(state, decision, connection).await
                }
                (Err(refusal), Ok(_)) => refuse(refusal),
            }
        }
    }
}

/// A legacy client opens the standalone stream, or resumes one that was disconnected.
pub(super) fn listen(state: &Arc<ServerState>, request: &Request, token: Option<&Token>) -> Response {
    let headers = request.headers();
    let refuse = |status, why: &str| state.refuse(Transport::Http, status, why);
    if !has_sessions(state, headers) {
        return state.not_allowed(Transport::Http, "POST");
    }
    if !accepts(headers, "text/event-stream") {
        return refuse(StatusCode::NOT_ACCEPTABLE, "the Accept header must list text/event-stream");
    }
    let session = match state.session(headers, token) {
        Ok(session) => session,
        Err((status, why)) => return refuse(status, &why),
    };
    let closer = state.closer(request.extensions().get());
    let resumed = headers.get(LAST_EVENT_ID).map(|id| id.to_str().ok().and_then(|id| session.resume(id)));
    match resumed {
        Some(None) => refuse(StatusCode::BAD_REQUEST, "the Last-Event-ID belongs to no stream of this session"),
        Some(Some((log, from))) => stream_response(state, &session, log, from, closer),
        None => stream_response(state, &session, session.open_standalone(state.engine.http().answer), 0, closer),
    }
}

/// A legacy client ends its session.
pub(super) fn delete(state: &ServerState, headers: &HeaderMap, token: Option<&Token>) -> Response {
    if !has_sessions(state, headers) {
        return state.not_allowed(Transport::Http, "POST");
    }
    match state.session(headers, token) {
        Ok(_) => {
            let id = headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()).unwrap_or_default();
            state.sessions.close(id);
            empty(StatusCode::NO_CONTENT)
        }
        Err((status, why)) => state.refuse(Transport::Http, status, &why),
    }
}

/// Whether there can be a session for a request.
fn has_sessions(state: &ServerState, headers: &HeaderMap) -> bool {
    state.engine.offers(Era::Legacy) && state.engine.http().sessions && !is_modern(headers)
}

/// The modern era has neither a standalone stream nor sessions to end (2026-07-28, Streamable HTTP: Earlier Streamable
/// HTTP Revisions).
fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION_HEADER).and_then(|value| value.to_str().ok()?.parse::<Version>().ok());
    version.is_some_and(|version| version.era() == Era::Modern)
}

impl ServerState {
    /// The session that the headers name, if its version is the one that they say. Its id does not identify the client
    /// that sends it: only the client that opened a session can use it (2025-11-25, Security Best Practices: Session
    /// Hijacking).
    fn session(&self, headers: &HeaderMap, token: Option<&Token>) -> Result<Arc<Session>, (StatusCode, String)> {
        let bad_request = |why: String| (StatusCode::BAD_REQUEST, why);
        let Some(id) = headers.get(SESSION_HEADER) else {
            return Err(bad_request("the Mcp-Session-Id header is missing: open a session with `initialize`".into()));
        };
        let session = id.to_str().ok().and_then(|id| self.sessions.get(id)).filter(|it| it.belongs_to(token));
        let session =
            session.ok_or((StatusCode::NOT_FOUND, "no such session: it has ended, or never existed".to_owned()))?;
        self.offered_version(headers).map(|_| session)
    }

    /// The version that the headers name. The negotiated one should be sent, but only one that is not offered must be
    /// refused (2025-11-25, Transports: Protocol Version Header).
    fn offered_version(&self, headers: &HeaderMap) -> Result<Option<Version>, (StatusCode, String)> {
        let Some(header) = headers.get(VERSION_HEADER) else { return Ok(None) };
        let version = header.to_str().ok().and_then(|text| text.parse::<Version>().ok());
        if let Some(version) = version.filter(|version| self.engine.offers_version(*version)) {
            return Ok(Some(version));
        }
        let header = String::from_utf8_lossy(header.as_bytes());
        Err((StatusCode::BAD_REQUEST, format!("MCP-Protocol-Version {header} is not offered")))
    }

    /// The legacy client of a request without a session. One that names no version speaks 2025-03-26 (2025-11-25,
    /// Transports: Protocol Version Header), or the latest that is offered if that is not.
    fn stateless_peer(&self, headers: &HeaderMap) -> Result<LegacySession, (StatusCode, String)> {
        let named = self.offered_version(headers)?.filter(|version| version.era() == Era::Legacy);
        let offered = self.engine.versions().into_iter();
        let offered = offered.filter(|version| version.era() == Era::Legacy && Transport::Http.carries(*version));
        let assumed = || offered.max_by_key(|version| (*version == Version::V2025_03_26, *version));
        Ok(named.or_else(assumed).map_or_else(LegacySession::default, LegacySession::stateless))
    }
}

async fn initialize(
    state: &Arc<ServerState>,
    message: Message<'_>,
    incoming: Incoming<'_>,
    connection: Option<&ConnectionHandle>,
) -> Response {
    let (legacy_session, token) = (Arc::default(), incoming.token);
    let decision = state.engine.receive_legacy(&legacy_session, message, incoming);
    let opened = legacy_session.version().is_some();
    let mut response = stateless_response(state, decision, connection).await;
    if opened && response.status().is_success() {
        let Some(id) = state.sessions.open(legacy_session, token).and_then(|id| HeaderValue::try_from(id).ok()) else {
            return state.refuse(Transport::Http, StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open");
        };
        response.headers_mut().insert(SESSION_HEADER, id);
    }
    response
}
