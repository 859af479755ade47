//! Streamable HTTP: stateless in the modern era, with sessions in the legacy one.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    http::{accepts, empty, events, json},
    play::{ID_IN_USE, Played, play},
    session::{Session, StreamKind, StreamLog},
};
use crate::{
    mock::{
        engine::{Event, Exchange, Incoming, Intake, SESSION_HEADER, VERSION_HEADER},
        journal::Handling,
    },
    transport::{
        Transport,
        server::{Body, Request, Response},
    },
    wire::{Era, Message, RpcError, Version, message, sse},
};

const LAST_EVENT_ID: &str = "last-event-id";

pub(super) async fn post(shared: Arc<Shared>, request: Request) -> Response {
    if !["application/json", "text/event-stream"].iter().all(|kind| accepts(request.headers(), kind)) {
        let why = "the Accept header must list application/json and text/event-stream";
        return shared.refuse(Transport::Http, StatusCode::NOT_ACCEPTABLE, why);
    }
    let (headers, bytes) = match shared.read_json(Transport::Http, request).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    let at = shared.started.elapsed();
    let incoming = Incoming { bytes: &bytes, transport: Transport::Http, at, headers: Some(&headers) };
    match Message::parse(&bytes) {
        Ok(message) if shared.engine.era_of(&message, Some(&headers)) == Era::Modern => {
            let intake = shared.engine.receive_modern(message, incoming);
            modern_response(&shared, intake)
        }
        Ok(message) if message.method() == Some("initialize") && !headers.contains_key(SESSION_HEADER) => {
            initialize(&shared, message, incoming)
        }
        parsed => {
            let id = parsed.as_ref().ok().and_then(|message| message.id().cloned());
            let refuse = |(status, why): (StatusCode, String)| {
                shared.refuse_message(Transport::Http, status, &bytes, id.as_ref(), &why)
            };
            match (shared.session(&headers), parsed) {
                (Ok(session), Ok(message)) => {
                    let intake = shared.engine.receive_legacy(&session.peer, message, incoming);
                    legacy_response(&shared, &session, intake)
                }
                (Ok(session), Err(error)) => {
                    let intake = shared.engine.receive_broken(&session.peer, error, incoming);
                    legacy_response(&shared, &session, intake)
                }
                (Err(_), Err(error)) => {
                    let intake = shared.engine.receive_broken(&Arc::default(), error, incoming);
                    modern_response(&shared, intake)
                }
                (Err(refusal), Ok(_)) => refuse(refusal),
            }
        }
    }
}

/// A legacy client opens the standalone stream, or resumes one that broke off.
pub(super) fn listen(shared: &Shared, headers: &HeaderMap) -> Response {
    let refuse = |status, why: &str| shared.refuse(Transport::Http, status, why);
    if !shared.engine.offers(Era::Legacy) || is_modern(headers) {
        return shared.not_allowed(Transport::Http, "POST");
    }
    if !accepts(headers, "text/event-stream") {
        return refuse(StatusCode::NOT_ACCEPTABLE, "the Accept header must list text/event-stream");
    }
    let session = match shared.session(headers) {
        Ok(session) => session,
        Err((status, why)) => return refuse(status, &why),
    };
    let resumed = headers.get(LAST_EVENT_ID).map(|id| id.to_str().ok().and_then(|id| session.resume(id)));
    match resumed {
        Some(None) => refuse(StatusCode::BAD_REQUEST, "the Last-Event-ID belongs to no stream of this session"),
        Some(Some((log, from))) => stream_response(shared, &session, log, from),
        None => stream_response(shared, &session, session.open_stream(StreamKind::Standalone), 0),
    }
}

/// A legacy client ends its session.
pub(super) fn delete(shared: &Shared, headers: &HeaderMap) -> Response {
    if !shared.engine.offers(Era::Legacy) || is_modern(headers) {
        return shared.not_allowed(Transport::Http, "POST");
    }
    match shared.session(headers) {
        Ok(_) => {
            let id = headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()).unwrap_or_default();
            shared.sessions.close(id);
            empty(StatusCode::NO_CONTENT)
        }
        Err((status, why)) => shared.refuse(Transport::Http, status, &why),
    }
}

/// The modern era has neither a standalone stream nor sessions to end (2026-07-28, Streamable HTTP: Earlier Streamable
/// HTTP Revisions).
fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION_HEADER).and_then(|value| value.to_str().ok()?.parse::<Version>().ok());
    version.is_some_and(|version| version.era() == Era::Modern)
}

impl Shared {
    /// The session that the headers name, if its version is the one that they say.
    fn session(&self, headers: &HeaderMap) -> Result<Arc<Session>, (StatusCode, String)> {
        let bad_request = |why: String| (StatusCode::BAD_REQUEST, why);
        let Some(id) = headers.get(SESSION_HEADER) else {
            return Err(bad_request("the Mcp-Session-Id header is missing: open a session with `initialize`".into()));
        };
        let session = id.to_str().ok().and_then(|id| self.sessions.get(id));
        let session = session.ok_or((StatusCode::NOT_FOUND, "there is no such session (any more)".to_owned()))?;
        if let (Some(header), Some(version)) = (headers.get(VERSION_HEADER), session.peer.version())
            && header.as_bytes() != version.as_str().as_bytes()
        {
            let header = String::from_utf8_lossy(header.as_bytes());
            return Err(bad_request(format!("MCP-Protocol-Version is {header}, but the session speaks {version}")));
        }
        Ok(session)
    }
}

fn initialize(shared: &Shared, message: Message<'_>, incoming: Incoming<'_>) -> Response {
    let peer = Arc::default();
    let intake = shared.engine.receive_legacy(&peer, message, incoming);
    let opened = peer.version().is_some();
    let mut response = simple_response(intake);
    if opened {
        let Some(id) = shared.sessions.open(peer).and_then(|id| HeaderValue::try_from(id).ok()) else {
            return shared.refuse(Transport::Http, StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open");
        };
        response.headers_mut().insert(SESSION_HEADER, id);
    }
    response
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The response to what needs no stream.
fn simple_response(intake: Intake) -> Response {
    match intake {
        Intake::Answer(answer) => json(status(answer.status), answer.frame),
        _ => empty(StatusCode::ACCEPTED),
    }
}

/// One JSON object if the answer is there at once; else a stream of the request's own, whose end by the client is the
/// cancellation of the request (2026-07-28, Streamable HTTP: Cancellation).
fn modern_response(shared: &Arc<Shared>, intake: Intake) -> Response {
    let Intake::Exchange(mut exchange) = intake else { return simple_response(intake) };
    match exchange.next_event() {
        Event::Finish(frame) => json(StatusCode::OK, frame),
        first => {
            let shared = shared.clone();
            let frames = play(exchange, first).filter_map(move |played| {
                future::ready(match played {
                    Played::Frame(frame) => Some(sse::Event::message(frame).encode()),
                    Played::Died(code) => {
                        shared.die(code);
                        None
                    }
                })
            });
            events(Body::stream(frames))
        }
    }
}

/// One JSON object if the answer is there at once; else a resumable stream. A lost connection cancels nothing
/// (2025-11-25, Transports: Sending Messages to the Server).
fn legacy_response(shared: &Arc<Shared>, session: &Arc<Session>, intake: Intake) -> Response {
    match intake {
        Intake::Cancel(id) => {
            session.in_flight.cancel(&id);
            empty(StatusCode::ACCEPTED)
        }
        Intake::Exchange(mut exchange) => match exchange.next_event() {
            Event::Finish(frame) => json(StatusCode::OK, frame),
            first => stream_exchanges(shared, session, Vec::new(), vec![(exchange, first)]),
        },
        Intake::Batch(parts) => batch_response(shared, session, parts),
        intake => simple_response(intake),
    }
}

fn batch_response(shared: &Arc<Shared>, session: &Arc<Session>, parts: Vec<Intake>) -> Response {
    let (mut ready, mut exchanges) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Intake::Answer(answer) => ready.push(answer.frame),
            Intake::Cancel(id) => session.in_flight.cancel(&id),
            Intake::Exchange(mut exchange) => match exchange.next_event() {
                Event::Finish(frame) => ready.push(frame),
                first => exchanges.push((exchange, first)),
            },
            Intake::Silent | Intake::Batch(_) => {}
        }
    }
    if ready.is_empty() && exchanges.is_empty() {
        return empty(StatusCode::ACCEPTED);
    }
    stream_exchanges(shared, session, ready, exchanges)
}

fn stream_exchanges(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    ready: Vec<Bytes>,
    exchanges: Vec<(Box<Exchange>, Event)>,
) -> Response {
    let log = session.open_stream(StreamKind::Request);
    ready.into_iter().for_each(|frame| log.push(frame));
    let answers = exchanges.into_iter().map(|(exchange, first)| {
        let id = exchange.id().clone();
        let (shared, session, log) = (shared.clone(), session.clone(), log.clone());
        async move {
            let Some(cancelled) = session.in_flight.enter(&id) else {
                let handling = Handling::Refused(ID_IN_USE.to_owned());
                shared.engine.journal().record(shared.started.elapsed(), Transport::Http, &[], handling);
                let error = RpcError::new(message::INVALID_REQUEST, ID_IN_USE);
                return log.push(message::error(Some(&id), &error));
            };
            tokio::select! {
                () = deliver(&shared, exchange, first, &log) => {}
                () = cancelled.cancelled() => {}
                () = session.ended.cancelled() => {}
                () = shared.shutdown.kill.cancelled() => {}
            }
            session.in_flight.leave(&id);
        }
    });
    let all = future::join_all(answers.collect::<Vec<_>>());
    let completed = log.clone();
    shared.shutdown.tasks.spawn(all.map(move |_| completed.complete()));
    stream_response(shared, session, log, 0)
}

async fn deliver(shared: &Shared, exchange: Box<Exchange>, first: Event, log: &StreamLog) {
    let mut played = std::pin::pin!(play(exchange, first));
    while let Some(played) = played.next().await {
        match played {
            Played::Frame(frame) => log.push(frame),
            Played::Died(code) => shared.die(code),
        }
    }
}

/// What is to come on a stream. A standalone one has no end of its own: it ends with the session or the server.
fn stream_response(shared: &Shared, session: &Session, log: Arc<StreamLog>, from: usize) -> Response {
    let stop = match log.kind {
        StreamKind::Request => CancellationToken::new(),
        StreamKind::Standalone => shared.shutdown.stop.clone(),
    };
    events(Body::stream(log.read(from, [session.ended.clone(), stop])))
}
