//! HTTP+SSE of 2024-11-05: a GET opens the stream, whose first event names the endpoint for POSTs.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, future, stream};
use http::{StatusCode, header};
use tokio::sync::mpsc;

use super::{
    connection::{Caller, Connection, ConnectionOutput},
    connection_closer::ConnectionCloser,
    http::{RequestHead, accepts, event_stream},
    http_exchange::{HttpExchange, session_of_query},
    http_faults,
    lifetime::ServerLifetime,
    server_state::ServerState,
    session::{unguessable_id, unknown_session},
};
use crate::{
    faults::{SendStep, SendSteps},
    journal::Refusal,
    script::{SseEndpoint, Token},
};
use rehearse_net::{Body, Request, Response};
use rehearse_protocol::{Era, Transport, sse::Event};

pub(super) fn open(
    state: Arc<ServerState>,
    head: &RequestHead,
    request: &Request,
    token: Option<Arc<Token>>,
) -> Response {
    if !state.engine.offers(Era::Legacy) {
        let why = "this server offers no protocol version with HTTP+SSE";
        return state.refuse(head, StatusCode::NOT_FOUND, Refusal::Negotiation, why);
    }
    if !state.lenient && !accepts(request.headers(), "text/event-stream") {
        let why = "the Accept header must list text/event-stream";
        return state.refuse(head, StatusCode::NOT_ACCEPTABLE, Refusal::Header, why);
    }
    let id = unguessable_id();
    state.note(head, Some(&id));
    if let Some(exchange) = request.extensions().get::<HttpExchange>() {
        exchange.trace().set_session(&id);
    }
    let (lifetime, caller) = (ServerLifetime::start(state.lifetime.started), Caller { token, headers: None });
    let (connection, frames) = Connection::open(
        state.engine.clone(),
        Transport::Sse,
        Some(&id),
        caller,
        lifetime,
        Some(state.lifetime.clone()),
    );
    let connection = Arc::new(connection);
    state.streams.insert(id.clone(), connection.clone());
    let policy = state.engine.http().sse;
    let url = origin(request, policy.endpoint) + "/messages?sessionId=" + &id;
    let endpoint = Event { event: Some("endpoint".into()), ..Event::message(url.into()) };
    let closer = state.closer(request.extensions().get());
    let open = OpenStream { state: state.clone(), id, connection };
    state.lifetime.shutdown.tasks.spawn(watch_for_exit(state.clone(), open.connection.clone()));
    let events_to_come = Events { open, frames, steps: SendSteps::complete(endpoint.encode()), closer };
    let later = stream::once(tokio::time::sleep(policy.delay)).filter_map(|()| future::ready(None));
    event_stream(Body::stream(later.chain(stream::unfold(events_to_come, next_bytes))))
}

/// What comes before the path of the endpoint.
fn origin(request: &Request, named: SseEndpoint) -> String {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "80"));
    match named {
        SseEndpoint::Relative => String::new(),
        SseEndpoint::Absolute => format!("http://{host}"),
        SseEndpoint::Foreign if name == "localhost" => format!("http://127.0.0.1:{port}"),
        SseEndpoint::Foreign => format!("http://localhost:{port}"),
    }
}

/// A stream with a connected client. When the client disconnects, its requests are cancelled.
struct OpenStream {
    state: Arc<ServerState>,
    id: String,
    connection: Arc<Connection>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.state.streams.remove(&self.id);
        let connection = self.connection.clone();
        self.state.lifetime.shutdown.tasks.spawn(async move { connection.cancel().await });
    }
}

/// The bytes of a stream that are not sent yet.
struct Events {
    open: OpenStream,
    frames: mpsc::Receiver<ConnectionOutput>,
    /// The steps of the current event.
    steps: SendSteps,
    closer: ConnectionCloser,
}

async fn next_bytes(mut events: Events) -> Option<(Bytes, Events)> {
    loop {
        for step in events.steps.by_ref() {
            match step {
                SendStep::Bytes(bytes) => return Some((bytes, events)),
                SendStep::Wait(time) => tokio::time::sleep(time).await,
                SendStep::Stop(stop) => {
                    // No sender may wait for room, because nothing more is sent.
                    events.frames.close();
                    while events.frames.try_recv().is_ok() {}
                    events.closer.end_stream(stop).await;
                    return None;
                }
            }
        }
        let event = |data| Event { event: Some("message".into()), ..Event::message(data) };
        events.steps = match events.next_output().await? {
            ConnectionOutput::Frame(frame) => SendSteps::complete(event(frame).encode()),
            ConnectionOutput::Packet(packet) => packet.event_steps(event, false),
            ConnectionOutput::Stop(stop) => SendSteps::new(Bytes::new(), stop),
        };
    }
}

impl Events {
    async fn next_output(&mut self) -> Option<ConnectionOutput> {
        let drained = async {
            self.open.state.lifetime.shutdown.stop.cancelled().await;
            self.open.connection.finish().await;
        };
        tokio::select! {
            biased;
            outgoing = self.frames.recv() => outgoing,
            () = drained => self.frames.try_recv().ok(),
        }
    }
}

async fn watch_for_exit(state: Arc<ServerState>, connection: Arc<Connection>) {
    tokio::select! {
        () = connection.closed() => {}
        () = state.lifetime.shutdown.kill.cancelled() => {}
    }
    if let Some(code) = connection.exit_code() {
        state.lifetime.exit(code);
    }
}

/// Takes a message for an open stream. The id of a stream does not identify the client, so the client must use the
/// token that opened the stream (2025-11-25, Security Best Practices: Session Hijacking).
pub(super) async fn post(
    state: Arc<ServerState>,
    head: &RequestHead,
    request: Request,
    token: Option<Arc<Token>>,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let id = session_of_query(query).map(str::to_owned);
    let streams = |id: &String| state.streams.get(id);
    let connection = id.as_ref().and_then(streams).filter(|it| it.belongs_to(token.as_deref()));
    let Some(connection) = connection else {
        let why = "no such stream: open one with GET /sse";
        return state.refuse(head, StatusCode::NOT_FOUND, unknown_session(id.as_deref().unwrap_or_default()), why);
    };
    match state.read_json(head, request).await {
        Ok((headers, bytes)) => {
            let poster = Caller { token, headers: Some(headers) };
            if let Some(refusal) = connection.receive(&bytes, Some(&poster)).await {
                return http_faults::refusal(refusal);
            }
            let mut response = Response::new(Body::whole("Accepted"));
            *response.status_mut() = state.engine.http().sse.status.unwrap_or(StatusCode::ACCEPTED);
            response
        }
        Err(refusal) => refusal,
    }
}
