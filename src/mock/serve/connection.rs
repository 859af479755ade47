//! A connection on which everything shares one channel: stdio, WebSocket, and a stream of HTTP+SSE.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::play::{Beginning, ID_IN_USE, InFlight, Played, play, play_in_background};
use crate::{
    mock::{
        engine::{Engine, Exchange, Incoming, Intake, Listen, Outlet, Peer},
        journal::Handling,
        script::Token,
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
    token: Option<Arc<Token>>,
    peer: Arc<Peer>,
    in_flight: Arc<InFlight>,
    outgoing: mpsc::Sender<Bytes>,
    tasks: TaskTracker,
    /// What has no end of its own ends.
    ending: CancellationToken,
    /// Everything ends.
    closed: CancellationToken,
    died: Arc<OnceLock<u8>>,
}

/// What an exchange of a connection needs to reach the client.
struct Delivery {
    outgoing: mpsc::Sender<Bytes>,
    started: Instant,
    ending: CancellationToken,
    closed: CancellationToken,
    died: Arc<OnceLock<u8>>,
    tasks: TaskTracker,
}

impl Delivery {
    /// Plays a task, until the connection ends.
    fn detach(&self, exchange: Box<Exchange>) {
        let (started, ending, closed, died) =
            (self.started, self.ending.clone(), self.closed.clone(), self.died.clone());
        self.tasks.spawn(async move {
            let code = tokio::select! {
                code = play_in_background(exchange, started) => code,
                () = ending.cancelled() => None,
                () = closed.cancelled() => None,
            };
            if let Some(code) = code {
                let _ = died.set(code);
                closed.cancel();
            }
        });
    }

    /// # Errors
    /// The client is gone.
    async fn deliver(&self, played: Played) -> Result<(), mpsc::error::SendError<Bytes>> {
        match played {
            Played::Frame(frame) => self.outgoing.send(frame).await,
            Played::Response(answer) => self.outgoing.send(answer.frame).await,
            Played::Disconnect(_) => Ok(()),
            Played::Detached(answer, exchange) => {
                self.detach(exchange);
                self.outgoing.send(answer.frame).await
            }
            Played::Died(code) => {
                let _ = self.died.set(code);
                self.closed.cancel();
                Ok(())
            }
        }
    }
}

/// Notifications of a connection that belong to no request. A client that does not read loses them.
#[derive(Debug)]
struct Unasked(mpsc::WeakSender<Bytes>);

impl Outlet for Unasked {
    fn push(&self, frame: Bytes) {
        if let Some(outgoing) = self.0.upgrade() {
            let _ = outgoing.try_send(frame);
        }
    }
}

/// Notifications of one subscription.
#[derive(Debug)]
pub(super) struct Notices(pub(super) mpsc::UnboundedSender<Bytes>);

impl Outlet for Notices {
    fn push(&self, frame: Bytes) {
        // The receiver is gone only if the subscription is.
        let _ = self.0.send(frame);
    }
}

impl Connection {
    /// `token` is what the client has shown when it connected.
    pub(super) fn open(
        engine: Arc<Engine>,
        transport: Transport,
        started: Instant,
        token: Option<Arc<Token>>,
    ) -> (Connection, mpsc::Receiver<Bytes>) {
        let (outgoing, frames) = mpsc::channel(BACKLOG);
        let connection = Connection {
            engine,
            transport,
            started,
            token,
            peer: Arc::default(),
            in_flight: Arc::default(),
            outgoing,
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
            closed: CancellationToken::new(),
            died: Arc::default(),
        };
        connection.peer.set_outlet(Box::new(Unasked(connection.outgoing.downgrade())));
        (connection, frames)
    }

    /// Takes a frame from the client. Answers that take time are given later, out of order.
    pub(super) async fn receive(&self, bytes: &Bytes) {
        let (at, token) = (self.started.elapsed(), self.token.as_deref());
        let incoming = Incoming { bytes, transport: self.transport, at, headers: None, token };
        self.take(self.engine.receive(&self.peer, incoming)).await;
    }

    async fn take(&self, intake: Intake) {
        match intake {
            Intake::Silent => {}
            Intake::Cancel(id) => self.in_flight.cancel(&id),
            Intake::Answer(answer) => self.send(answer.frame).await,
            Intake::Exchange(exchange) => self.start(exchange).await,
            Intake::Listen(listen) => self.listen(listen).await,
            Intake::Batch(parts) => {
                for part in parts {
                    Box::pin(self.take(part)).await;
                }
            }
        }
    }

    /// What needs no waiting is sent at once; the rest by a task.
    async fn start(&self, exchange: Box<Exchange>) {
        let id = exchange.id().clone();
        let mut played = match play(exchange, self.started) {
            Beginning::Response(answer) => return self.send(answer.frame).await,
            Beginning::Detached(answer, exchange) => {
                self.delivery().detach(exchange);
                return self.send(answer.frame).await;
            }
            Beginning::Under(way) => way,
        };
        let Some(cancelled) = self.in_flight.enter(&id) else {
            return self.refuse(Some(&id), ID_IN_USE).await;
        };
        let delivery = self.delivery();
        let (in_flight, closed) = (self.in_flight.clone(), self.closed.clone());
        self.tasks.spawn(async move {
            let playing = async {
                while let Some(played) = played.next().await {
                    if delivery.deliver(played).await.is_err() {
                        break;
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

    fn delivery(&self) -> Delivery {
        Delivery {
            outgoing: self.outgoing.clone(),
            started: self.started,
            closed: self.closed.clone(),
            ending: self.ending.clone(),
            died: self.died.clone(),
            tasks: self.tasks.clone(),
        }
    }

    /// Tells the client of changes until it cancels, or until the connection ends.
    async fn listen(&self, listen: Listen) {
        let id = listen.id().clone();
        let Some(cancelled) = self.in_flight.enter(&id) else {
            return self.refuse(Some(&id), ID_IN_USE).await;
        };
        let (sender, mut notices) = mpsc::unbounded_channel();
        let subscription = listen.open(Box::new(Notices(sender)));
        let (outgoing, in_flight) = (self.outgoing.clone(), self.in_flight.clone());
        let (closed, ending) = (self.closed.clone(), self.ending.clone());
        self.tasks.spawn(async move {
            loop {
                let frame = tokio::select! {
                    biased;
                    () = cancelled.cancelled() => break,
                    () = closed.cancelled() => break,
                    frame = notices.recv() => frame,
                    () = ending.cancelled() => {
                        let _ = outgoing.send(subscription.closing()).await;
                        break;
                    }
                };
                let Some(frame) = frame else { break };
                if outgoing.send(frame).await.is_err() {
                    break;
                }
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

    /// Ends what has no end of its own, and waits for the answers that are under way.
    pub(super) async fn finish(&self) {
        self.ending.cancel();
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
