//! HTTP+SSE of 2024-11-05: a GET opens the stream, whose first event names the endpoint for POSTs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, StatusCode};
use tokio::sync::mpsc;

use super::{
    Shared,
    connection::Connection,
    http::{accepts, events},
    session::unguessable_id,
};
use crate::{
    mock::script::Token,
    transport::{
        Transport,
        server::{Body, Request, Response},
    },
    wire::{Era, sse::Event},
};

/// The open streams of a server.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<HashMap<String, Arc<Connection>>>);

pub(super) fn open(shared: Arc<Shared>, headers: &HeaderMap, token: Option<Arc<Token>>) -> Response {
    if !shared.engine.offers(Era::Legacy) {
        return shared.refuse(Transport::Sse, StatusCode::NOT_FOUND, "this server offers no version that has HTTP+SSE");
    }
    if !accepts(headers, "text/event-stream") {
        let why = "the Accept header must list text/event-stream";
        return shared.refuse(Transport::Sse, StatusCode::NOT_ACCEPTABLE, why);
    }
    let id = unguessable_id();
    let (connection, frames) = Connection::open(shared.engine.clone(), Transport::Sse, shared.started, token);
    let connection = Arc::new(connection);
    shared.streams.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), connection.clone());
    let endpoint =
        Event { event: Some("endpoint".into()), ..Event::message(format!("/messages?sessionId={id}").into()) };
    let open = OpenStream { shared: shared.clone(), id, connection };
    shared.shutdown.tasks.spawn(watch_for_death(shared.clone(), open.connection.clone()));
    events(Body::stream(stream::unfold((open, frames, Some(endpoint)), next_event)))
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
        self.shared.shutdown.tasks.spawn(async move { connection.cancel().await });
    }
}

type State = (OpenStream, mpsc::Receiver<Bytes>, Option<Event>);

async fn next_event((open, mut frames, endpoint): State) -> Option<(Bytes, State)> {
    let event = match endpoint {
        Some(event) => event,
        None => {
            let drained = async {
                open.shared.shutdown.stop.cancelled().await;
                open.connection.finish().await;
            };
            let frame = tokio::select! {
                biased;
                frame = frames.recv() => frame,
                () = drained => frames.try_recv().ok(),
            };
            Event { event: Some("message".into()), ..Event::message(frame?) }
        }
    };
    Some((event.encode(), (open, frames, None)))
}

async fn watch_for_death(shared: Arc<Shared>, connection: Arc<Connection>) {
    tokio::select! {
        () = connection.closed() => {}
        () = shared.shutdown.kill.cancelled() => {}
    }
    if let Some(code) = connection.died() {
        shared.die(code);
    }
}

pub(super) async fn post(shared: Arc<Shared>, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let id = query.split('&').find_map(|pair| pair.strip_prefix("sessionId=")).map(str::to_owned);
    let streams = |id: &String| shared.streams.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
    let Some(connection) = id.as_ref().and_then(streams) else {
        let why = "there is no such stream (any more): open one with GET /sse";
        return shared.refuse(Transport::Sse, StatusCode::NOT_FOUND, why);
    };
    match shared.read_json(Transport::Sse, request).await {
        Ok((_, bytes)) => {
            connection.receive(&bytes).await;
            let mut response = Response::new(Body::whole("Accepted"));
            *response.status_mut() = StatusCode::ACCEPTED;
            response
        }
        Err(refusal) => refusal,
    }
}
