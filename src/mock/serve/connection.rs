//! A connection on which everything shares one channel: stdio, WebSocket, and a stream of HTTP+SSE.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::play::{ID_IN_USE, InFlight, Played, play};
use crate::{
    mock::{
        engine::{Engine, Event, Exchange, Incoming, Intake, Peer},
        journal::Handling,
    },
    transport::Transport,
    wire::{Id, RpcError, message},
};

/// How many frames may wait to be sent before answers are held back.
const BACKLOG: usize = 256;

/// One connection: frames in by [`Connection::receive`], frames out through the receiver of [`Connection::open`].
#[derive(Debug)]
pub(super) struct Connection {
    engine: Arc<Engine>,
    transport: Transport,
    started: Instant,
    peer: Arc<Peer>,
    in_flight: Arc<InFlight>,
    outgoing: mpsc::Sender<Bytes>,
    tasks: TaskTracker,
    closed: CancellationToken,
    died: Arc<OnceLock<u8>>,
}

impl Connection {
    pub(super) fn open(
        engine: Arc<Engine>,
        transport: Transport,
        started: Instant,
    ) -> (Connection, mpsc::Receiver<Bytes>) {
        let (outgoing, frames) = mpsc::channel(BACKLOG);
        let connection = Connection {
            engine,
            transport,
            started,
            peer: Arc::default(),
            in_flight: Arc::default(),
            outgoing,
            tasks: TaskTracker::new(),
            closed: CancellationToken::new(),
            died: Arc::default(),
        };
        (connection, frames)
    }

    /// Takes a frame from the client. Answers that take time are given later, out of order.
    pub(super) async fn receive(&self, bytes: &Bytes) {
        let incoming = Incoming { bytes, transport: self.transport, at: self.started.elapsed(), headers: None };
        self.take(self.engine.receive(&self.peer, incoming)).await;
    }

    async fn take(&self, intake: Intake) {
        match intake {
            Intake::Silent => {}
            Intake::Cancel(id) => self.in_flight.cancel(&id),
            Intake::Answer(answer) => self.send(answer.frame).await,
            Intake::Exchange(mut exchange) => match exchange.next_event() {
                Event::Finish(frame) => self.send(frame).await,
                first => self.start(exchange, first).await,
            },
            Intake::Batch(parts) => {
                for part in parts {
                    Box::pin(self.take(part)).await;
                }
            }
        }
    }

    async fn start(&self, exchange: Box<Exchange>, first: Event) {
        let id = exchange.id().clone();
        let Some(cancelled) = self.in_flight.enter(&id) else {
            return self.refuse(Some(&id), ID_IN_USE).await;
        };
        let (outgoing, in_flight, closed, died) =
            (self.outgoing.clone(), self.in_flight.clone(), self.closed.clone(), self.died.clone());
        self.tasks.spawn(async move {
            let playing = async {
                let mut played = std::pin::pin!(play(exchange, first));
                while let Some(played) = played.next().await {
                    match played {
                        Played::Frame(frame) => {
                            if outgoing.send(frame).await.is_err() {
                                break;
                            }
                        }
                        Played::Died(code) => {
                            let _ = died.set(code);
                            closed.cancel();
                        }
                    }
                }
            };
            tokio::select! {
                () = playing => {}
                () = cancelled.cancelled() => {}
                () = closed.cancelled() => {}
            }
            in_flight.leave(&id);
        });
    }

    /// Refuses what never reaches the engine, or what the engine could not know.
    pub(super) async fn refuse(&self, id: Option<&Id>, why: &str) {
        let handling = Handling::Refused(why.to_owned());
        self.engine.journal().record(self.started.elapsed(), self.transport, &[], handling);
        self.send(message::error(id, &RpcError::new(message::INVALID_REQUEST, why))).await;
    }

    async fn send(&self, frame: Bytes) {
        // The receiver is gone only if the client is.
        let _ = self.outgoing.send(frame).await;
    }

    /// Resolves when the script lets the server die.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// The exit code, if the script lets the server die.
    pub(super) fn died(&self) -> Option<u8> {
        self.died.get().copied()
    }

    /// Waits for the answers that are under way.
    pub(super) async fn finish(&self) {
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => {}
            () = self.closed.cancelled() => {}
        }
    }

    /// Cancels every answer that is under way and waits until it has stopped.
    pub(super) async fn cancel(&self) {
        self.closed.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}
