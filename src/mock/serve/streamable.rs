//! Streamable HTTP: stateless in the modern era, with sessions in the legacy one.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode};

use super::{
    Shared,
    faulty::Ender,
    http::{accepts, empty},
    in_session::{session_response, stream_response},
    lone::lone_response,
    session::Session,
};
use crate::{
    mock::{
        engine::{Incoming, Peer, SESSION_HEADER, VERSION_HEADER},
        script::Token,
    },
    transport::{
        Transport,
        server::{Body, Line, Request, Response},
    },
    wire::{Era, Message, Version},
};

const LAST_EVENT_ID: &str = "last-event-id";

pub(super) async fn post(shared: Arc<Shared>, request: Request, token: Option<Arc<Token>>) -> Response {
    let line = request.extensions().get().cloned();
    let response = receive(&shared, request, token.as_deref(), line.as_ref()).await;
    if matches!(response.body(), Body::Whole(_)) {
        shared.overtaking.answered();
    }
    response
}

async fn receive(shared: &Arc<Shared>, request: Request, token: Option<&Token>, line: Option<&Line>) -> Response {
    if !["application/json", "text/event-stream"].iter().all(|kind| accepts(request.headers(), kind)) {
        let why = "the Accept header must list application/json and text/event-stream";
        return shared.refuse(Transport::Http, StatusCode::NOT_ACCEPTABLE, why);
    }
    let (headers, bytes) = match shared.read_json(Transport::Http, request).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    let at = shared.life.started.elapsed();
    let headers = &headers;
    let incoming =
        Incoming { bytes: &bytes, transport: Transport::Http, at, headers: Some(headers), token, faults: &[] };
    match Message::parse(&bytes) {
        Ok(message) if shared.engine.era_of(&message, Some(headers)) == Era::Modern => {
            let intake = shared.engine.receive_modern(message, incoming);
            lone_response(shared, intake, line).await
        }
        parsed if !shared.engine.http().sessions => {
            let is_handshake = parsed.as_ref().is_ok_and(|message| message.method() == Some("initialize"));
            let peer = match shared.stateless_peer(headers) {
                _ if is_handshake => Arc::default(),
                Ok(peer) => Arc::new(peer),
                Err((status, why)) => {
                    let id = parsed.as_ref().ok().and_then(Message::id);
                    return shared.refuse_message(Transport::Http, status, &bytes, id, &why);
                }
            };
            let intake = match parsed {
                Ok(message) => shared.engine.receive_legacy(&peer, message, incoming),
                Err(error) => shared.engine.receive_broken(&peer, error, incoming),
            };
            lone_response(shared, intake, line).await
        }
        Ok(message) if message.method() == Some("initialize") && !headers.contains_key(SESSION_HEADER) => {
            initialize(shared, message, incoming, line).await
        }
        parsed => {
            let id = parsed.as_ref().ok().and_then(|message| message.id().cloned());
            let refuse = |(status, why): (StatusCode, String)| {
                shared.refuse_message(Transport::Http, status, &bytes, id.as_ref(), &why)
            };
            match (shared.session(headers, token), parsed) {
                (Ok(session), Ok(message)) => {
                    let intake = shared.engine.receive_legacy(&session.peer, message, incoming);
                    session_response(shared, &session, intake, line).await
                }
                (Ok(session), Err(error)) => {
                    let intake = shared.engine.receive_broken(&session.peer, error, incoming);
                    session_response(shared, &session, intake, line).await
                }
                (Err(_), Err(error)) => {
                    let intake = shared.engine.receive_broken(&Arc::default(), error, incoming);
                    lone_response(shared, intake, line).await
                }
                (Err(refusal), Ok(_)) => refuse(refusal),
            }
        }
    }
}

/// A legacy client opens the standalone stream, or resumes one that broke off.
pub(super) fn listen(shared: &Arc<Shared>, request: &Request, token: Option<&Token>) -> Response {
    let headers = request.headers();
    let refuse = |status, why: &str| shared.refuse(Transport::Http, status, why);
    if !has_sessions(shared, headers) {
        return shared.not_allowed(Transport::Http, "POST");
    }
    if !accepts(headers, "text/event-stream") {
        return refuse(StatusCode::NOT_ACCEPTABLE, "the Accept header must list text/event-stream");
    }
    let session = match shared.session(headers, token) {
        Ok(session) => session,
        Err((status, why)) => return refuse(status, &why),
    };
    let ender = Ender::new(shared, request.extensions().get());
    let resumed = headers.get(LAST_EVENT_ID).map(|id| id.to_str().ok().and_then(|id| session.resume(id)));
    match resumed {
        Some(None) => refuse(StatusCode::BAD_REQUEST, "the Last-Event-ID belongs to no stream of this session"),
        Some(Some((log, from))) => stream_response(shared, &session, log, from, ender),
        None => stream_response(shared, &session, session.open_standalone(shared.engine.http().answer), 0, ender),
    }
}

/// A legacy client ends its session.
pub(super) fn delete(shared: &Shared, headers: &HeaderMap, token: Option<&Token>) -> Response {
    if !has_sessions(shared, headers) {
        return shared.not_allowed(Transport::Http, "POST");
    }
    match shared.session(headers, token) {
        Ok(_) => {
            let id = headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()).unwrap_or_default();
            shared.sessions.close(id);
            empty(StatusCode::NO_CONTENT)
        }
        Err((status, why)) => shared.refuse(Transport::Http, status, &why),
    }
}

/// Whether there can be a session for a request.
fn has_sessions(shared: &Shared, headers: &HeaderMap) -> bool {
    shared.engine.offers(Era::Legacy) && shared.engine.http().sessions && !is_modern(headers)
}

/// The modern era has neither a standalone stream nor sessions to end (2026-07-28, Streamable HTTP: Earlier Streamable
/// HTTP Revisions).
fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION_HEADER).and_then(|value| value.to_str().ok()?.parse::<Version>().ok());
    version.is_some_and(|version| version.era() == Era::Modern)
}

impl Shared {
    /// The session that the headers name, if its version is the one that they say. Its id shows nothing about who sends
    /// it: for anyone but the client that opened it there is no such session (2025-11-25, Security Best Practices:
    /// Session Hijacking).
    fn session(&self, headers: &HeaderMap, token: Option<&Token>) -> Result<Arc<Session>, (StatusCode, String)> {
        let bad_request = |why: String| (StatusCode::BAD_REQUEST, why);
        let Some(id) = headers.get(SESSION_HEADER) else {
            return Err(bad_request("the Mcp-Session-Id header is missing: open a session with `initialize`".into()));
        };
        let session = id.to_str().ok().and_then(|id| self.sessions.get(id)).filter(|it| it.belongs_to(token));
        let session = session.ok_or((StatusCode::NOT_FOUND, "there is no such session (any more)".to_owned()))?;
        self.offered_version(headers).map(|_| session)
    }

    /// The version that the headers name. The negotiated one should be sent, but only one that is not offered must be
    /// refused (2025-11-25, Transports: Protocol Version Header).
    fn offered_version(&self, headers: &HeaderMap) -> Result<Option<Version>, (StatusCode, String)> {
        let Some(header) = headers.get(VERSION_HEADER) else { return Ok(None) };
        let version = header.to_str().ok().and_then(|text| text.parse::<Version>().ok());
        let is_offered = |version: &Version| Transport::Http.carries(*version) && self.engine.offers_version(*version);
        if let Some(version) = version.filter(is_offered) {
            return Ok(Some(version));
        }
        let header = String::from_utf8_lossy(header.as_bytes());
        Err((StatusCode::BAD_REQUEST, format!("MCP-Protocol-Version {header} is not offered")))
    }

    /// The legacy client of a request without a session. One that names no version speaks 2025-03-26 (2025-11-25,
    /// Transports: Protocol Version Header), or the latest that is offered if that is not.
    fn stateless_peer(&self, headers: &HeaderMap) -> Result<Peer, (StatusCode, String)> {
        let named = self.offered_version(headers)?.filter(|version| version.era() == Era::Legacy);
        let offered = self.engine.versions().into_iter();
        let offered = offered.filter(|version| version.era() == Era::Legacy && Transport::Http.carries(*version));
        let assumed = || offered.max_by_key(|version| (*version == Version::V2025_03_26, *version));
        Ok(named.or_else(assumed).map_or_else(Peer::default, Peer::stateless))
    }
}

async fn initialize(
    shared: &Arc<Shared>,
    message: Message<'_>,
    incoming: Incoming<'_>,
    line: Option<&Line>,
) -> Response {
    let (peer, token) = (Arc::default(), incoming.token);
    let intake = shared.engine.receive_legacy(&peer, message, incoming);
    let opened = peer.version().is_some();
    let mut response = lone_response(shared, intake, line).await;
    if opened && response.status().is_success() {
        let Some(id) = shared.sessions.open(peer, token).and_then(|id| HeaderValue::try_from(id).ok()) else {
            return shared.refuse(Transport::Http, StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open");
        };
        response.headers_mut().insert(SESSION_HEADER, id);
    }
    response
}
