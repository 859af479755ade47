//! A connection on which everything shares one channel: stdio, WebSocket, and a stream of HTTP+SSE.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use bytes::Bytes;
use futures_util::StreamExt;
use http::HeaderMap;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    afflict::{Afflicted, Overtaking},
    play::{Beginning, ID_IN_USE, InFlight, Played, Way, play, play_in_background, play_listen},
};
use crate::{
    mock::{
        engine::{Engine, Exchange, Faulty, Incoming, Intake, Outlet, Peer},
        faults::{Item, Kind, Packet, Refusal, Stop},
        journal::Handling,
        script::Token,
    },
    transport::Transport,
    wire::{Id, RpcError, message},
};

/// How many frames may wait to be sent before answers are held back.
const BACKLOG: usize = 256;

/// What a client has said when it connected.
#[derive(Debug, Default)]
pub(super) struct Opening {
    pub(super) token: Option<Arc<Token>>,
    pub(super) headers: Option<HeaderMap>,
}

/// One connection: frames in by [`Connection::receive`], frames out through the receiver of [`Connection::open`].
#[derive(Debug)]
pub(super) struct Connection {
    engine: Arc<Engine>,
    transport: Transport,
    started: Instant,
    opening: Opening,
    peer: Arc<Peer>,
    in_flight: Arc<InFlight>,
    outgoing: mpsc::Sender<Outgoing>,
    overtaking: Arc<Overtaking>,
    tasks: TaskTracker,
    /// What has no end of its own ends.
    ending: CancellationToken,
    /// Everything ends.
    closed: CancellationToken,
    died: Arc<OnceLock<u8>>,
}

/// What a connection sends.
#[derive(Debug)]
pub(super) enum Outgoing {
    Frame(Bytes),
    /// A frame that faults have changed.
    Packet(Box<Packet>),
    /// The connection ends here.
    Stop(Stop),
}

/// What an exchange of a connection needs to reach the client.
#[derive(Clone)]
struct Delivery {
    outgoing: mpsc::Sender<Outgoing>,
    overtaking: Arc<Overtaking>,
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
    async fn deliver(&self, played: Played) -> Result<(), mpsc::error::SendError<Outgoing>> {
        match played {
            Played::Frame(frame) => self.outgoing.send(Outgoing::Frame(frame)).await,
            Played::Response(answer) => self.respond(Outgoing::Frame(answer.frame)).await,
            Played::Disconnect(_) => Ok(()),
            Played::Detached(answer, exchange) => {
                self.detach(exchange);
                self.respond(Outgoing::Frame(answer.frame)).await
            }
            Played::Died(code) => {
                let _ = self.died.set(code);
                self.closed.cancel();
                Ok(())
            }
            Played::Faulty(item) => self.deliver_item(item).await,
        }
    }

    async fn respond(&self, outgoing: Outgoing) -> Result<(), mpsc::error::SendError<Outgoing>> {
        let sent = self.outgoing.send(outgoing).await;
        self.overtaking.answered();
        sent
    }

    async fn deliver_item(&self, item: Item) -> Result<(), mpsc::error::SendError<Outgoing>> {
        match item {
            // There is no head, and no way to resume.
            Item::Begin | Item::ContentType(_) | Item::Refuse(_) | Item::Disconnect(_) => {}
            Item::Stop(Stop::Finish) => {}
            Item::Wait(time) => tokio::time::sleep(time).await,
            Item::GiveWay(limit) => drop(self.overtaking.give_way(limit).await),
            Item::Packet(packet) if packet.kind == Kind::Response => {
                return self.respond(Outgoing::Packet(Box::new(packet))).await;
            }
            Item::Packet(packet) => return self.outgoing.send(Outgoing::Packet(Box::new(packet))).await,
            Item::Stop(Stop::Hang) => self.ending.cancelled().await,
            Item::Stop(stop) => return self.outgoing.send(Outgoing::Stop(stop)).await,
        }
        Ok(())
    }
}

/// Notifications of a connection that belong to no request. A client that does not read loses them.
#[derive(Debug)]
struct Unasked(mpsc::WeakSender<Outgoing>);

impl Outlet for Unasked {
    fn push(&self, frame: Bytes) {
        if let Some(outgoing) = self.0.upgrade() {
            let _ = outgoing.try_send(Outgoing::Frame(frame));
        }
    }
}

impl Connection {
    pub(super) fn open(
        engine: Arc<Engine>,
        transport: Transport,
        started: Instant,
        opening: Opening,
    ) -> (Connection, mpsc::Receiver<Outgoing>) {
        let (outgoing, frames) = mpsc::channel(BACKLOG);
        let connection = Connection {
            engine,
            transport,
            started,
            opening,
            peer: Arc::default(),
            in_flight: Arc::default(),
            outgoing,
            overtaking: Arc::default(),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
            closed: CancellationToken::new(),
            died: Arc::default(),
        };
        connection.peer.set_outlet(Box::new(Unasked(connection.outgoing.downgrade())));
        (connection, frames)
    }

    /// Takes a frame from the client. Answers that take time are given later, out of order. Where a POST carried the
    /// frame, `headers` are its, and a fault may refuse it.
    pub(super) async fn receive(&self, bytes: &Bytes, headers: Option<&HeaderMap>) -> Option<Refusal> {
        let (at, token) = (self.started.elapsed(), self.opening.token.as_deref());
        let headers = headers.or(self.opening.headers.as_ref());
        let incoming = Incoming { bytes, transport: self.transport, at, headers, token };
        self.take(self.engine.receive(&self.peer, incoming)).await
    }

    async fn take(&self, intake: Intake) -> Option<Refusal> {
        match intake {
            Intake::Silent => {}
            Intake::Cancel(id) => self.in_flight.cancel(&id),
            Intake::Answer(answer) => self.send(answer.frame).await,
            Intake::Exchange(exchange) => self.start(exchange).await,
            Intake::Listen(listen) => {
                let id = listen.id().clone();
                self.spawn(Some(id), false, || play_listen(listen, self.ending.clone())).await;
            }
            Intake::Faulty(faulty) => return Box::pin(self.afflict(*faulty)).await,
            Intake::Batch(parts) => {
                let mut refusal = None;
                for part in parts {
                    refusal = Box::pin(self.take(part)).await.or(refusal);
                }
                return refusal;
            }
        }
        None
    }

    /// What needs no waiting is sent at once; the rest by a task.
    async fn start(&self, exchange: Box<Exchange>) {
        let id = exchange.id().clone();
        let way = match play(exchange, self.started) {
            Beginning::Response(answer) => return self.send(answer.frame).await,
            Beginning::Detached(answer, exchange) => {
                self.delivery().detach(exchange);
                return self.send(answer.frame).await;
            }
            Beginning::Under(way) => way,
        };
        self.spawn(Some(id), false, || way).await;
    }

    /// Gives an answer that faults strike.
    async fn afflict(&self, faulty: Faulty) -> Option<Refusal> {
        if let Intake::Cancel(id) = &faulty.intake {
            self.in_flight.cancel(id);
        }
        let delivery = self.delivery();
        let mut afflicted = Afflicted::new(faulty, self.started, self.ending.clone(), move |it| delivery.detach(it));
        if afflicted.refuses && self.transport == Transport::Sse {
            while let Some(item) = afflicted.items.next().await {
                match item {
                    Item::Refuse(refusal) => return Some(refusal),
                    // The client has gone, or the connection ends.
                    item => drop(self.delivery().deliver_item(item).await),
                }
            }
            return None;
        }
        let (id, ignores) = (afflicted.id.clone(), afflicted.ignores_cancellation);
        self.spawn(id, ignores, || afflicted.into_way()).await;
        None
    }

    /// Gives an answer in a task. One with an id can be cancelled, unless it ignores that.
    async fn spawn(&self, id: Option<Id>, ignores_cancellation: bool, way: impl FnOnce() -> Way) {
        let cancelled = match &id {
            None => CancellationToken::new(),
            Some(id) => match self.in_flight.enter(id) {
                Some(_) if ignores_cancellation => CancellationToken::new(),
                Some(cancelled) => cancelled,
                None => return self.refuse(Some(id), ID_IN_USE).await,
            },
        };
        let (delivery, mut way) = (self.delivery(), way());
        let (in_flight, closed) = (self.in_flight.clone(), self.closed.clone());
        self.tasks.spawn(async move {
            let playing = async {
                while let Some(played) = way.next().await {
                    if delivery.deliver(played).await.is_err() {
                        break;
                    }
                }
            };
            // Whoever was cancelled does nothing more, even if it could.
            tokio::select! {
                biased;
                () = cancelled.cancelled() => {}
                () = closed.cancelled() => {}
                () = playing => {}
            }
            if let Some(id) = id {
                in_flight.leave(&id);
            }
        });
    }

    fn delivery(&self) -> Delivery {
        Delivery {
            outgoing: self.outgoing.clone(),
            overtaking: self.overtaking.clone(),
            started: self.started,
            closed: self.closed.clone(),
            ending: self.ending.clone(),
            died: self.died.clone(),
            tasks: self.tasks.clone(),
        }
    }

    /// Refuses what never reaches the engine, or what the engine could not know.
    pub(super) async fn refuse(&self, id: Option<&Id>, why: &str) {
        let handling = Handling::Refused(why.to_owned());
        self.engine.journal().record(self.started.elapsed(), self.transport, &[], handling);
        self.send(message::error(id, &RpcError::new(message::INVALID_REQUEST, why))).await;
    }

    async fn send(&self, frame: Bytes) {
        // The receiver is gone only if the client is.
        let _ = self.outgoing.send(Outgoing::Frame(frame)).await;
        self.overtaking.answered();
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
