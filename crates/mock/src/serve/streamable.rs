//! Streamable HTTP: stateless in the modern era, with sessions in the legacy one.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::{
    http::{HttpRefusal, RequestHead, accepts, empty},
    server_state::ServerState,
    session::{Session, unguessable_id, unknown_session},
    session_http::{session_response, stream_response},
    stateless::stateless_response,
};
use crate::{
    engine::{Incoming, LegacySession},
    journal::Refusal,
    script::Token,
};
use rehearse_net::{Body, ConnectionHandle, Request, Response};
use rehearse_protocol::{
    Era, Message, Transport, Version,
    names::{LAST_EVENT_HEADER, SESSION_HEADER, VERSION_HEADER},
};

/// What an id of a session may have besides letters and digits.
const ODD: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

pub(super) async fn post(
    state: Arc<ServerState>,
    head: RequestHead,
    request: Request,
    token: Option<Arc<Token>>,
) -> Response {
    let connection = request.extensions().get().cloned();
    let response = receive(&state, &head, request, token.as_deref(), connection.as_ref()).await;
    if matches!(response.body(), Body::Whole(_)) {
        state.reorder_gate.notify_sent();
    }
    response
}

async fn receive(
    state: &Arc<ServerState>,
    head: &RequestHead,
    request: Request,
    token: Option<&Token>,
    connection: Option<&ConnectionHandle>,
) -> Response {
    let accepts_both = || ["application/json", "text/event-stream"].iter().all(|kind| accepts(request.headers(), kind));
    if !state.lenient && !accepts_both() {
        let why = "the Accept header must list application/json and text/event-stream";
        return state.refuse(head, StatusCode::NOT_ACCEPTABLE, Refusal::Header, why);
    }
    let (headers, bytes) = match state.read_json(head, request).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    let at = state.lifetime.started.elapsed();
    let headers = &headers;
    let incoming = Incoming {
        bytes: &bytes,
        transport: Transport::Http,
        at,
        session: head.session(),
        headers: (!state.lenient).then_some(headers),
        token,
        faults: &[],
    };
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
                Err(refused) => {
                    let id = parsed.as_ref().ok().and_then(Message::id);
                    return state.refuse_message(head, &bytes, id, refused);
                }
            };
            let decision = match parsed {
                Ok(message) => state.engine.receive_legacy(&legacy_session, message, incoming),
                Err(error) => state.engine.receive_broken(&legacy_session, error, incoming),
            };
            stateless_response(state, decision, connection).await
        }
        Ok(message) if message.method() == Some("initialize") && !headers.contains_key(SESSION_HEADER) => {
            initialize(state, head, message, incoming, connection).await
        }
        parsed => {
            let id = parsed.as_ref().ok().and_then(|message| message.id().cloned());
            match (state.session(&Method::POST, headers, token), parsed) {
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
                (Err(refused), Ok(message)) => {
                    // The client may find out the era of the server.
                    let is_probe = is_modern(headers) || message.method() == Some("server/discover");
                    let faulted = || state.engine.refuse_probe(&message, &refused.why, incoming);
                    if let Some(decision) = is_probe.then(faulted).flatten() {
                        return stateless_response(state, decision, connection).await;
                    }
                    let refusal = if is_probe { Refusal::Negotiation } else { refused.refusal };
                    state.refuse_message(head, &bytes, id.as_ref(), HttpRefusal { refusal, ..refused })
                }
            }
        }
    }
}

/// A legacy client opens the standalone stream, or resumes one that was disconnected.
pub(super) fn listen(
    state: &Arc<ServerState>,
    head: &RequestHead,
    request: &Request,
    token: Option<&Token>,
) -> Response {
    let headers = request.headers();
    let refuse = |status, refusal, why: &str| state.refuse(head, status, refusal, why);
    if let Some(status) = state.engine.http().get {
        return refuse(status, Refusal::Optional, "the script refuses each GET");
    }
    if !has_sessions(state, headers) {
        return state.not_allowed(head, Refusal::Optional, "POST");
    }
    if !state.lenient && !accepts(headers, "text/event-stream") {
        return refuse(StatusCode::NOT_ACCEPTABLE, Refusal::Header, "the Accept header must list text/event-stream");
    }
    let session = match state.session(request.method(), headers, token) {
        Ok(session) => session,
        Err(refused) => return state.refuse_message(head, &Bytes::new(), None, refused),
    };
    let closer = state.closer(request.extensions().get());
    let resumed = headers.get(LAST_EVENT_HEADER).map(|id| id.to_str().ok().and_then(|id| session.resume(id)));
    match resumed {
        // The mock keeps only the latest streams.
        Some(None) => {
            let why = "the Last-Event-ID belongs to no stream of this session";
            refuse(StatusCode::BAD_REQUEST, Refusal::Expired, why)
        }
        Some(Some((log, from))) => {
            state.note(head, head.session());
            stream_response(state, &session, log, from, closer)
        }
        None => {
            state.note(head, head.session());
            stream_response(state, &session, session.open_standalone(state.engine.http().answer), 0, closer)
        }
    }
}

/// A legacy client ends its session.
pub(super) fn delete(state: &ServerState, head: &RequestHead, headers: &HeaderMap, token: Option<&Token>) -> Response {
    if let Some(status) = state.engine.http().delete {
        return state.refuse(head, status, Refusal::Optional, "the script refuses each DELETE");
    }
    if !has_sessions(state, headers) {
        return state.not_allowed(head, Refusal::Optional, "POST");
    }
    match state.session(&Method::DELETE, headers, token) {
        Ok(_) => {
            state.note(head, head.session());
            state.sessions.close(head.session().unwrap_or_default());
            empty(StatusCode::NO_CONTENT)
        }
        Err(refused) => state.refuse_message(head, &Bytes::new(), None, refused),
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
    fn session(
        &self,
        method: &Method,
        headers: &HeaderMap,
        token: Option<&Token>,
    ) -> Result<Arc<Session>, HttpRefusal> {
        let Some(id) = headers.get(SESSION_HEADER) else {
            let is_message = method == Method::POST;
            if let Some(session) = self.sessions.latest().filter(|_| self.lenient && is_message) {
                return Ok(session);
            }
            let why = "the Mcp-Session-Id header is missing: open a session with `initialize`";
            return Err(HttpRefusal::new(StatusCode::BAD_REQUEST, Refusal::Session, why));
        };
        let id = id.to_str().unwrap_or_default();
        let session = self.sessions.get(id).filter(|it| it.belongs_to(token)).ok_or_else(|| {
            let why = "no such session: it has ended, or never existed";
            HttpRefusal::new(StatusCode::NOT_FOUND, unknown_session(id), why)
        })?;
        self.offered_version(headers).map(|_| session)
    }

    /// The version that the headers name. The negotiated one should be sent, but only one that is not offered must be
    /// refused (2025-11-25, Transports: Protocol Version Header).
    fn offered_version(&self, headers: &HeaderMap) -> Result<Option<Version>, HttpRefusal> {
        let Some(header) = headers.get(VERSION_HEADER) else { return Ok(None) };
        let version = header.to_str().ok().and_then(|text| text.parse::<Version>().ok());
        let version = version.filter(|version| self.engine.offers_version(*version));
        if self.lenient || version.is_some() {
            return Ok(version);
        }
        let header = String::from_utf8_lossy(header.as_bytes());
        let why = format!("MCP-Protocol-Version {header} is not offered");
        Err(HttpRefusal::new(StatusCode::BAD_REQUEST, Refusal::Header, why))
    }

    /// The legacy client of a request without a session. One that names no version speaks 2025-03-26 (2025-11-25,
    /// Transports: Protocol Version Header), or the latest that is offered if that is not. One that names a modern version
    /// speaks none.
    fn stateless_peer(&self, headers: &HeaderMap) -> Result<LegacySession, HttpRefusal> {
        let named = self.offered_version(headers)?;
        if named.is_some_and(|version| version.era() == Era::Modern) {
            return Ok(LegacySession::default());
        }
        let offered = self.engine.versions().into_iter();
        let offered = offered.filter(|version| version.era() == Era::Legacy && Transport::Http.carries(*version));
        let assumed = || offered.max_by_key(|version| (*version == Version::V2025_03_26, *version));
        Ok(named.or_else(assumed).map_or_else(LegacySession::default, LegacySession::stateless))
    }
}

async fn initialize(
    state: &Arc<ServerState>,
    head: &RequestHead,
    message: Message<'_>,
    incoming: Incoming<'_>,
    connection: Option<&ConnectionHandle>,
) -> Response {
    let odd = if state.engine.http().odd_ids { ODD } else { "" };
    let (legacy_session, token, id) = (Arc::default(), incoming.token, unguessable_id() + odd);
    let incoming = Incoming { session: Some(&id), ..incoming };
    let decision = state.engine.receive_legacy(&legacy_session, message, incoming);
    let opened = legacy_session.version().is_some();
    let mut response = stateless_response(state, decision, connection).await;
    if opened && response.status().is_success() {
        let is_open = state.sessions.open(&id, legacy_session, token);
        let Some(id) = HeaderValue::try_from(id).ok().filter(|_| is_open) else {
            let why = "too many sessions are open";
            return state.refuse(head, StatusCode::SERVICE_UNAVAILABLE, Refusal::Limit, why);
        };
        response.headers_mut().insert(SESSION_HEADER, id);
    }
    response
}
