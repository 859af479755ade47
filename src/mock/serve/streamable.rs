//! Streamable HTTP: stateless in the modern era, with sessions in the legacy one.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future, stream};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    afflict::Afflicted,
    faulty::{Ender, Shape, pause, respond_with_events, set_content_type, shape},
    http::{accepts, empty, events, json},
    play::{Beginning, ID_IN_USE, Played, Way, play, play_listen},
    session::{Session, StreamKind, StreamLog},
};
use crate::{
    mock::{
        engine::{Answer, Faulty, Incoming, Intake, Peer, SESSION_HEADER, VERSION_HEADER},
        faults::{Item, Kind, Stop},
        journal::Handling,
        script::{Form, HttpAnswer, Token},
    },
    transport::{
        Transport,
        server::{Body, Line, Request, Response},
    },
    wire::{Era, Id, Message, RpcError, Version, message, sse},
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
    let at = shared.started.elapsed();
    let headers = &headers;
    let incoming = Incoming { bytes: &bytes, transport: Transport::Http, at, headers: Some(headers), token };
    match Message::parse(&bytes) {
        Ok(message) if shared.engine.era_of(&message, Some(headers)) == Era::Modern => {
            let intake = shared.engine.receive_modern(message, incoming);
            lone_response(shared, intake, line).await
        }
        Ok(message) if !shared.engine.http().sessions => {
            let peer = match (message.method(), shared.offered_version(headers)) {
                (Some("initialize"), _) => Arc::default(),
                (_, Ok(())) => Arc::new(Peer::stateless(claimed_version(headers))),
                (_, Err((status, why))) => {
                    return shared.refuse_message(Transport::Http, status, &bytes, message.id(), &why);
                }
            };
            let intake = shared.engine.receive_legacy(&peer, message, incoming);
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
            match (shared.session(headers), parsed) {
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
pub(super) fn listen(shared: &Arc<Shared>, request: &Request) -> Response {
    let headers = request.headers();
    let refuse = |status, why: &str| shared.refuse(Transport::Http, status, why);
    if !has_sessions(shared, headers) {
        return shared.not_allowed(Transport::Http, "POST");
    }
    if !accepts(headers, "text/event-stream") {
        return refuse(StatusCode::NOT_ACCEPTABLE, "the Accept header must list text/event-stream");
    }
    let session = match shared.session(headers) {
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
pub(super) fn delete(shared: &Shared, headers: &HeaderMap) -> Response {
    if !has_sessions(shared, headers) {
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

/// The version of a request without a session; one that says nothing is of 2025-03-26 (2025-11-25, Transports:
/// Protocol Version Header).
fn claimed_version(headers: &HeaderMap) -> Version {
    let version = headers.get(VERSION_HEADER).and_then(|value| value.to_str().ok()?.parse::<Version>().ok());
    version.filter(|version| version.era() == Era::Legacy).unwrap_or(Version::V2025_03_26)
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
    /// The session that the headers name, if its version is the one that they say.
    fn session(&self, headers: &HeaderMap) -> Result<Arc<Session>, (StatusCode, String)> {
        let bad_request = |why: String| (StatusCode::BAD_REQUEST, why);
        let Some(id) = headers.get(SESSION_HEADER) else {
            return Err(bad_request("the Mcp-Session-Id header is missing: open a session with `initialize`".into()));
        };
        let session = id.to_str().ok().and_then(|id| self.sessions.get(id));
        let session = session.ok_or((StatusCode::NOT_FOUND, "there is no such session (any more)".to_owned()))?;
        self.offered_version(headers).map(|()| session)
    }

    /// The negotiated version should be sent, but only one that is not offered must be refused (2025-11-25, Transports:
    /// Protocol Version Header).
    fn offered_version(&self, headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
        let Some(header) = headers.get(VERSION_HEADER) else { return Ok(()) };
        let version = header.to_str().ok().and_then(|text| text.parse::<Version>().ok());
        if version.is_some_and(|version| self.engine.offers_version(version)) {
            return Ok(());
        }
        let header = String::from_utf8_lossy(header.as_bytes());
        Err((StatusCode::BAD_REQUEST, format!("MCP-Protocol-Version {header} is not offered")))
    }
}

async fn initialize(
    shared: &Arc<Shared>,
    message: Message<'_>,
    incoming: Incoming<'_>,
    line: Option<&Line>,
) -> Response {
    let peer = Arc::default();
    let intake = shared.engine.receive_legacy(&peer, message, incoming);
    let opened = peer.version().is_some();
    let mut response = lone_response(shared, intake, line).await;
    if opened && response.status().is_success() {
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
        Intake::Answer(answer) => whole(answer),
        _ => empty(StatusCode::ACCEPTED),
    }
}

fn whole(answer: Answer) -> Response {
    let mut response = json(status(answer.status), answer.frame);
    if let Some(challenge) = answer.challenge {
        response.extensions_mut().insert(challenge);
    }
    response
}

/// The response to a request that stands alone: one JSON object if the answer is there at once; else a stream of the
/// request's own, whose end by the client is the cancellation of the request (2026-07-28, Streamable HTTP:
/// Cancellation).
async fn lone_response(shared: &Arc<Shared>, intake: Intake, line: Option<&Line>) -> Response {
    let exchange = match intake {
        Intake::Exchange(exchange) => exchange,
        Intake::Listen(listen) => {
            return event_response(shared, play_listen(listen, shared.shutdown.stop.clone()));
        }
        Intake::Faulty(faulty) => {
            let ender = Ender::new(shared, line);
            return match Box::pin(shape(&ender, afflicted(shared, *faulty))).await {
                Shape::Response(response) => response,
                Shape::Events(items, content_type) => respond_with_events(ender, items, content_type.as_deref()),
            };
        }
        intake => return simple_response(intake),
    };
    let form = exchange.http().form();
    let mut played = match play(exchange, shared.started) {
        Beginning::Response(answer) if form != Form::Sse || answer.status != 200 => return whole(answer),
        Beginning::Response(answer) => stream::iter([Played::Response(answer)]).boxed(),
        Beginning::Detached(answer, exchange) => {
            shared.spawn_background(exchange);
            return whole(answer);
        }
        Beginning::Under(way) => way,
    };
    if form == Form::Json {
        while let Some(played) = played.next().await {
            match played {
                Played::Response(answer) => return whole(answer),
                Played::Detached(answer, exchange) => {
                    shared.spawn_background(exchange);
                    return whole(answer);
                }
                Played::Died(code) => shared.die(code),
                Played::Frame(_) | Played::Disconnect(_) | Played::Faulty(_) => {}
            }
        }
        return empty(StatusCode::INTERNAL_SERVER_ERROR);
    }
    event_response(shared, played)
}

fn afflicted(shared: &Arc<Shared>, faulty: Faulty) -> Afflicted {
    let background = shared.clone();
    let detach = move |exchange| background.spawn_background(exchange);
    Afflicted::new(faulty, shared.started, shared.shutdown.stop.clone(), detach)
}

/// A stream of the request's own.
fn event_response(shared: &Arc<Shared>, played: Way) -> Response {
    let shared = shared.clone();
    let frames = played.filter_map(move |played| {
        future::ready(match played {
            Played::Frame(frame) => Some(sse::Event::message(frame).encode()),
            Played::Response(answer) => {
                shared.overtaking.answered();
                Some(sse::Event::message(answer.frame).encode())
            }
            Played::Detached(answer, exchange) => {
                shared.spawn_background(exchange);
                shared.overtaking.answered();
                Some(sse::Event::message(answer.frame).encode())
            }
            // A chain of faults is played by `respond_with_events`.
            Played::Disconnect(_) | Played::Faulty(_) => None,
            Played::Died(code) => {
                shared.die(code);
                None
            }
        })
    });
    events(Body::stream(frames))
}

/// One JSON object if the answer is there at once; else a resumable stream. A lost connection cancels nothing
/// (2025-11-25, Transports: Sending Messages to the Server).
async fn session_response(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    intake: Intake,
    line: Option<&Line>,
) -> Response {
    match intake {
        Intake::Cancel(id) => {
            session.in_flight.cancel(&id);
            empty(StatusCode::ACCEPTED)
        }
        Intake::Exchange(exchange) => match exchange.http().form() {
            Form::Json => lone_response(shared, Intake::Exchange(exchange), line).await,
            form => {
                let (id, http) = (exchange.id().clone(), exchange.http());
                let played = match play(exchange, shared.started) {
                    Beginning::Response(answer) if form == Form::Auto || answer.status != 200 => return whole(answer),
                    Beginning::Response(answer) => stream::iter([Played::Response(answer)]).boxed(),
                    // Tasks are of the modern era, which has no sessions.
                    Beginning::Detached(answer, _) => return whole(answer),
                    Beginning::Under(way) => way,
                };
                let pending = Pending { id, played, ignores_cancellation: false };
                stream_answers(shared, session, http, Vec::new(), vec![pending], line)
            }
        },
        Intake::Faulty(faulty) => Box::pin(faulty_session_response(shared, session, *faulty, line)).await,
        Intake::Batch(parts) => batch_response(shared, session, parts, line),
        intake => simple_response(intake),
    }
}

async fn faulty_session_response(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    faulty: Faulty,
    line: Option<&Line>,
) -> Response {
    if let Intake::Cancel(id) = &faulty.intake {
        session.in_flight.cancel(id);
    }
    let (afflicted, ender) = (afflicted(shared, faulty), Ender::new(shared, line));
    let (http, ignores_cancellation) = (afflicted.http, afflicted.ignores_cancellation);
    let Some(id) = afflicted.id.clone() else {
        return match shape(&ender, afflicted).await {
            Shape::Response(response) => response,
            Shape::Events(..) => empty(StatusCode::ACCEPTED),
        };
    };
    let Some(cancelled) = session.in_flight.enter(&id) else {
        return json(StatusCode::OK, refuse_id(shared, &id));
    };
    // The client may close the connection at any time.
    let in_flight = session.in_flight.leaving(&id);
    let shaped = tokio::select! {
        biased;
        () = cancelled.cancelled(), if !ignores_cancellation => None,
        () = session.ended.cancelled() => None,
        shaped = shape(&ender, afflicted) => Some(shaped),
    };
    drop(in_flight);
    match shaped {
        None => events(Body::stream(stream::empty())),
        Some(Shape::Response(response)) => response,
        Some(Shape::Events(items, content_type)) => {
            let played = items.map(Played::Faulty).boxed();
            let pending = Pending { id, played, ignores_cancellation };
            let mut response = stream_answers(shared, session, http, Vec::new(), vec![pending], line);
            set_content_type(&mut response, content_type.as_deref());
            response
        }
    }
}

/// An answer that is not there yet.
struct Pending {
    id: Id,
    played: Way,
    ignores_cancellation: bool,
}

/// The error for a request whose id belongs to another one.
fn refuse_id(shared: &Shared, id: &Id) -> Bytes {
    let handling = Handling::Refused(ID_IN_USE.to_owned());
    shared.engine.journal().record(shared.started.elapsed(), Transport::Http, &[], handling);
    message::error(Some(id), &RpcError::new(message::INVALID_REQUEST, ID_IN_USE))
}

fn batch_response(shared: &Arc<Shared>, session: &Arc<Session>, parts: Vec<Intake>, line: Option<&Line>) -> Response {
    let (mut ready, mut pending, mut cancelled) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match part {
            Intake::Answer(answer) => ready.push(answer.frame),
            Intake::Cancel(id) => cancelled.push(id),
            Intake::Exchange(exchange) => {
                let id = exchange.id().clone();
                match play(exchange, shared.started) {
                    Beginning::Response(answer) | Beginning::Detached(answer, _) => ready.push(answer.frame),
                    Beginning::Under(played) => pending.push(Pending { id, played, ignores_cancellation: false }),
                }
            }
            Intake::Faulty(faulty) => {
                let afflicted = afflicted(shared, *faulty);
                let ignores_cancellation = afflicted.ignores_cancellation;
                // What has no answer has nothing in a batch that a fault could strike.
                pending.extend(afflicted.id.clone().map(|id| {
                    let played = afflicted.into_way();
                    Pending { id, played, ignores_cancellation }
                }));
            }
            Intake::Silent | Intake::Listen(_) | Intake::Batch(_) => {}
        }
    }
    let response = match ready.is_empty() && pending.is_empty() {
        true => empty(StatusCode::ACCEPTED),
        false => stream_answers(shared, session, shared.engine.http().answer, ready, pending, line),
    };
    // What is cancelled may have come in the same batch.
    cancelled.iter().for_each(|id| session.in_flight.cancel(id));
    response
}

fn stream_answers(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    http: HttpAnswer,
    ready: Vec<Bytes>,
    pending: Vec<Pending>,
    line: Option<&Line>,
) -> Response {
    let ender = Ender::new(shared, line);
    let log = session.open_stream(StreamKind::Request, http);
    ready.into_iter().for_each(|frame| log.push(frame));
    let answers = pending.into_iter().map(|Pending { id, played, ignores_cancellation }| {
        let (shared, session, log, ender) = (shared.clone(), session.clone(), log.clone(), ender.clone());
        // Entered before anyone can know of the request, so that no cancellation misses it.
        let entered = session.in_flight.enter(&id);
        async move {
            let Some(cancelled) = entered else {
                return log.push(refuse_id(&shared, &id));
            };
            tokio::select! {
                biased;
                () = cancelled.cancelled(), if !ignores_cancellation => {}
                () = session.ended.cancelled() => {}
                () = shared.shutdown.kill.cancelled() => {}
                () = deliver(&shared, played, &log, &ender) => {}
            }
            session.in_flight.leave(&id);
        }
    });
    let all = future::join_all(answers.collect::<Vec<_>>());
    let completed = log.clone();
    shared.shutdown.tasks.spawn(all.map(move |_| completed.complete()));
    stream_response(shared, session, log, 0, ender)
}

async fn deliver(shared: &Shared, mut played: Way, log: &StreamLog, ender: &Ender) {
    while let Some(played) = played.next().await {
        match played {
            Played::Frame(frame) => log.push(frame),
            Played::Response(answer) | Played::Detached(answer, _) => {
                log.push(answer.frame);
                shared.overtaking.answered();
            }
            Played::Disconnect(retry) => log.cut(retry),
            Played::Died(code) => shared.die(code),
            Played::Faulty(item) => deliver_item(shared, item, log, ender).await,
        }
    }
}

async fn deliver_item(shared: &Shared, item: Item, log: &StreamLog, ender: &Ender) {
    let stop = match &item {
        Item::Packet(packet) => {
            log.push_packet(packet);
            if packet.kind == Kind::Response {
                shared.overtaking.answered();
            }
            packet.cut.map(|(_, stop)| stop)
        }
        Item::Disconnect(retry) => {
            log.cut(*retry);
            None
        }
        Item::Stop(Stop::Finish) => None,
        Item::Stop(stop) => {
            log.stop(*stop);
            Some(*stop)
        }
        item => {
            pause(ender, item).await;
            None
        }
    };
    if stop == Some(Stop::Hang) {
        shared.shutdown.stop.cancelled().await;
    }
}

/// What is to come on a stream. A standalone one has no end of its own: it ends with the session or the server.
fn stream_response(shared: &Shared, session: &Session, log: Arc<StreamLog>, from: usize, ender: Ender) -> Response {
    let stop = match log.kind {
        StreamKind::Request => CancellationToken::new(),
        StreamKind::Standalone => shared.shutdown.stop.clone(),
    };
    events(Body::stream(log.read(from, [session.ended.clone(), stop], ender)))
}
