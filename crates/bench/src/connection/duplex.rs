//! Requests over stdio, HTTP+SSE and WebSocket: many may be under way on one connection.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use rehearse_client::{ClientRecorder, ServerParams, Wire, WireError};
use rehearse_protocol::{Direction, Event, EventKind, Id, Message, ProcessEvent};
use tokio::{sync::oneshot, time::Instant};

use super::{Exchange, NoAnswer, OpenError};
use crate::request::PreparedRequest;

/// How many answers to pings wait for the next request.
const MOST_PONGS: usize = 64;

/// A connection that carries frames both ways.
pub(crate) struct DuplexConnection {
    wire: Wire,
    inbox: Arc<Inbox>,
}

/// Sends requests on the connection.
pub(crate) struct DuplexRequester {
    connection: Arc<DuplexConnection>,
}

/// What comes from the server.
#[derive(Default)]
struct Inbox {
    state: Mutex<InboxState>,
    /// The process of the server, or zero.
    process: AtomicU32,
}

#[derive(Default)]
struct InboxState {
    waiting: HashMap<u64, oneshot::Sender<Exchange>>,
    /// Requests that nothing waits for any more.
    expired: HashSet<u64>,
    /// Answers to pings of the server, which go out with the next request.
    pongs: Vec<Bytes>,
    /// How many answers belong to no request; each makes one request fail.
    strays: usize,
    /// Why the connection has ended.
    closed: Option<Arc<str>>,
}

impl DuplexConnection {
    pub(super) async fn open(params: &ServerParams) -> Result<DuplexConnection, OpenError> {
        let inbox = Arc::new(Inbox::default());
        let recorder = ClientRecorder::with_limit(1);
        let sink = inbox.clone();
        recorder.set_sink(Box::new(move |event: &Event| sink.take(event)));
        let wire = Wire::open(params, None, recorder).await?;
        Ok(DuplexConnection { wire, inbox })
    }

    pub(super) fn process(&self) -> Option<u32> {
        Some(self.inbox.process.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }

    pub(super) fn last_lines(&self) -> Vec<String> {
        self.wire.last_lines()
    }

    pub(super) async fn close(self) {
        self.wire.close().await;
    }
}

impl Inbox {
    fn take(&self, event: &Event) {
        match &event.kind {
            EventKind::Frame(frame) if frame.direction == Direction::ServerToClient => self.deliver(&frame.bytes),
            EventKind::Process(ProcessEvent::Started { pid }) => self.process.store(*pid, Ordering::Relaxed),
            EventKind::Closed(closed) => {
                let mut state = self.state.lock();
                state.closed = Some(closed.text.clone());
                state.waiting.clear();
            }
            _ => {}
        }
    }

    fn deliver(&self, bytes: &Bytes) {
        let now = Instant::now();
        let message = Message::parse(bytes);
        let mut state = self.state.lock();
        let id = match message {
            Ok(Message::Response(response)) => response.id,
            Ok(Message::Request(request)) if request.method == "ping" => {
                // A server that pings without end gets no more answers than these.
                if state.pongs.len() < MOST_PONGS {
                    let pong = serde_json::json!({ "jsonrpc": "2.0", "id": request.id, "result": {} });
                    state.pongs.push(pong.to_string().into());
                }
                return;
            }
            // Nothing that the server may ask for was declared.
            Ok(Message::Request(_) | Message::Notification(_)) => return,
            // A line that is no JSON is a log at the wrong place, which clients skip.
            Err(_) if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_err() => return,
            Err(_) => None,
        };
        let number = match id {
            Some(Id::Number(number)) => u64::try_from(number).ok(),
            _ => None,
        };
        match number.and_then(|number| state.waiting.remove(&number)) {
            // What waited may have given up.
            Some(waiter) => drop(waiter.send(Exchange { first_event: None, end: now, reply: bytes.clone() })),
            None if number.is_some_and(|number| state.expired.remove(&number)) => {}
            None => state.strays += 1,
        }
    }
}

impl DuplexRequester {
    pub(super) fn new(connection: Arc<DuplexConnection>) -> DuplexRequester {
        DuplexRequester { connection }
    }

    pub(super) async fn exchange(&mut self, request: &PreparedRequest<'_>) -> Result<Exchange, NoAnswer> {
        let DuplexConnection { inbox, wire } = &*self.connection;
        let (sender, answered) = oneshot::channel();
        let pongs = {
            let mut state = inbox.state.lock();
            if let Some(reason) = &state.closed {
                return Err(NoAnswer::Lost(reason.to_string()));
            }
            state.waiting.insert(request.id, sender);
            std::mem::take(&mut state.pongs)
        };
        // Removes the request if this future is dropped, as after a timeout.
        let _place = WaitingRequest { inbox, id: request.id };
        for pong in pongs {
            wire.send(None, pong).await.map_err(lost)?;
        }
        wire.send(None, request.body.clone()).await.map_err(lost)?;
        let Ok(exchange) = answered.await else {
            let closed = inbox.state.lock().closed.clone();
            return Err(NoAnswer::Lost(closed.map_or_else(|| "the connection ended".to_owned(), |it| it.to_string())));
        };
        let mut state = inbox.state.lock();
        if state.strays > 0 {
            state.strays -= 1;
            return Err(NoAnswer::Failed("an answer with an unknown id".to_owned()));
        }
        Ok(exchange)
    }

    pub(super) async fn notify(&mut self, bytes: Bytes) -> Result<(), NoAnswer> {
        self.connection.wire.send(None, bytes).await.map_err(lost)
    }
}

fn lost(error: WireError) -> NoAnswer {
    NoAnswer::Lost(error.to_string())
}

/// The place of a request among those that wait.
struct WaitingRequest<'i> {
    inbox: &'i Inbox,
    id: u64,
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.inbox.state.lock();
        if state.waiting.remove(&self.id).is_some() {
            state.expired.insert(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_without_end_are_answered_up_to_a_limit() {
        let inbox = Inbox::default();
        for id in 0..2 * MOST_PONGS {
            inbox.deliver(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).into());
        }
        let state = inbox.state.lock();
        assert_eq!((state.pongs.len(), state.strays, state.waiting.len()), (MOST_PONGS, 0, 0));
    }
}
