//! HTTP+SSE of 2024-11-05: a GET opens the stream, whose first event names the endpoint for POSTs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use tokio::sync::mpsc;

use super::{
    Shared,
    connection::{Caller, Connection, Outgoing},
    faulty::{self, Ender, event_bytes},
    http::{accepts, events},
    life::Life,
    session::unguessable_id,
};
use crate::{
    mock::{
        faults::{Step, Steps},
        script::Token,
    },
    transport::{
        Transport,
        server::{Body, Request, Response},
    },
    wire::{Era, sse::Event},
};

/// The open streams of a server.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<HashMap<String, Arc<Connection>>>);

pub(super) fn open(shared: Arc<Shared>, request: &Request, token: Option<Arc<Token>>) -> Response {
    if !shared.engine.offers(Era::Legacy) {
        return shared.refuse(Transport::Sse, StatusCode::NOT_FOUND, "this server offers no version that has HTTP+SSE");
    }
    if !accepts(request.headers(), "text/event-stream") {
        let why = "the Accept header must list text/event-stream";
        return shared.refuse(Transport::Sse, StatusCode::NOT_ACCEPTABLE, why);
    }
    let id = unguessable_id();
    let (life, caller) = (Life::begin(shared.life.started), Caller { token, headers: None });
    let (connection, frames) =
        Connection::open(shared.engine.clone(), Transport::Sse, caller, life, Some(shared.life.clone()));
    let connection = Arc::new(connection);
    shared.streams.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), connection.clone());
    let endpoint =
        Event { event: Some("endpoint".into()), ..Event::message(format!("/messages?sessionId={id}").into()) };
    let ender = Ender::new(&shared, request.extensions().get());
    let open = OpenStream { shared: shared.clone(), id, connection };
    shared.life.shutdown.tasks.spawn(watch_for_death(shared.clone(), open.connection.clone()));
    let events_to_come = Events { open, frames, steps: Steps::whole(endpoint.encode()), ender };
    events(Body::stream(stream::unfold(events_to_come, next_bytes)))
}

/// A stream whose client is there. When it goes, everything it asked for is cancelled.
struct OpenStream {
    shared: Arc<Shared>,
    id: String,
    connection: Arc<Connection>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.shared.streams.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
        let connection = self.connection.clone();
        self.shared.life.shutdown.tasks.spawn(async move { connection.cancel().await });
    }
}

/// The bytes of a stream that are still to come.
struct Events {
    open: OpenStream,
    frames: mpsc::Receiver<Outgoing>,
    /// Those of the event that is being sent.
    steps: Steps,
    ender: Ender,
}

async fn next_bytes(mut events: Events) -> Option<(Bytes, Events)> {
    loop {
        for step in events.steps.by_ref() {
            match step {
                Step::Bytes(bytes) => return Some((bytes, events)),
                Step::Wait(time) => tokio::time::sleep(time).await,
                Step::Stop(stop) => {
                    // Nobody is to wait for room behind what is never sent.
                    events.frames.close();
                    while events.frames.try_recv().is_ok() {}
                    events.ender.end_stream(stop).await;
                    return None;
                }
            }
        }
        let encode = |data| Event { event: Some("message".into()), ..Event::message(data) }.encode();
        events.steps = match events.next_outgoing().await? {
            Outgoing::Frame(frame) => Steps::whole(encode(frame)),
            Outgoing::Packet(packet) => packet.steps(|data, is_whole| event_bytes(encode(data), is_whole)),
            Outgoing::Stop(stop) => Steps::new(Bytes::new(), stop),
        };
    }
}

impl Events {
    async fn next_outgoing(&mut self) -> Option<Outgoing> {
        let drained = async {
            self.open.shared.life.shutdown.stop.cancelled().await;
            self.open.connection.finish().await;
        };
        tokio::select! {
            biased;
            outgoing = self.frames.recv() => outgoing,
            () = drained => self.frames.try_recv().ok(),
        }
    }
}

async fn watch_for_death(shared: Arc<Shared>, connection: Arc<Connection>) {
    tokio::select! {
        () = connection.closed() => {}
        () = shared.life.shutdown.kill.cancelled() => {}
    }
    if let Some(code) = connection.died() {
        shared.life.die(code);
    }
}

/// Takes a message for an open stream. The id of a stream shows nothing about who sends it, so who opened the stream must
/// show the same token again; for anyone else there is no such stream (2025-11-25, Security Best Practices: Session
/// Hijacking).
pub(super) async fn post(shared: Arc<Shared>, request: Request, token: Option<Arc<Token>>) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let id = query.split('&').find_map(|pair| pair.strip_prefix("sessionId=")).map(str::to_owned);
    let streams = |id: &String| shared.streams.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
    let connection = id.as_ref().and_then(streams).filter(|it| it.belongs_to(token.as_deref()));
    let Some(connection) = connection else {
        let why = "there is no such stream (any more): open one with GET /sse";
        return shared.refuse(Transport::Sse, StatusCode::NOT_FOUND, why);
    };
    match shared.read_json(Transport::Sse, request).await {
        Ok((headers, bytes)) => {
            let poster = Caller { token, headers: Some(headers) };
            if let Some(refusal) = connection.receive(&bytes, Some(&poster)).await {
                return faulty::refusal(refusal);
            }
            let mut response = Response::new(Body::whole("Accepted"));
            *response.status_mut() = StatusCode::ACCEPTED;
            response
        }
        Err(refusal) => refusal,
    }
}
