//! A connection on which everything shares one channel: stdio, WebSocket, and a stream of HTTP+SSE.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use http::HeaderMap;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    afflict::{Afflicted, Overtaking},
    life::Life,
    play::{Beginning, ID_IN_USE, InFlight, Played, Way, play, play_listen},
};
use crate::{
    mock::{
        engine::{Engine, Exchange, Faulty, Incoming, Intake, Outlet, Peer},
        faults::{Item, Kind, Packet, Refusal, Stop},
        journal::Handling,
        script::Token,
    },
    transport::{Transport, server::Shutdown},
    wire::{Id, RpcError, message},
};

/// How many frames may wait to be sent before answers are held back.
const BACKLOG: usize = 256;

/// Who has sent an HTTP request: one that opened a connection, or one that carried a frame.
#[derive(Debug, Default)]
pub(super) struct Caller {
    pub(super) token: Option<Arc<Token>>,
    pub(super) headers: Option<HeaderMap>,
}

/// One connection: frames in by [`Connection::receive`], frames out through the receiver of [`Connection::open`].
#[derive(Debug)]
pub(super) struct Connection {
    engine: Arc<Engine>,
    transport: Transport,
    caller: Caller,
    peer: Arc<Peer>,
    in_flight: Arc<InFlight>,
    outgoing: mpsc::Sender<Outgoing>,
    overtaking: Arc<Overtaking>,
    /// That of the connection.
    life: Life,
    /// That of the server, whose tasks outlive a connection.
    server: Life,
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
    life: Life,
    server: Life,
}

impl Delivery {
    /// # Errors
    /// The client is gone.
    async fn deliver(&self, played: Played) -> Result<(), mpsc::error::SendError<Outgoing>> {
        match played {
            Played::Frame(frame) => self.outgoing.send(Outgoing::Frame(frame)).await,
            Played::Response(answer) => self.respond(Outgoing::Frame(answer.frame)).await,
            Played::Disconnect(_) => Ok(()),
            Played::Detached(answer, exchange) => {
                self.server.carry_on(exchange);
                self.respond(Outgoing::Frame(answer.frame)).await
            }
            Played::Died(code) => {
                self.life.die(code);
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
            Item::Stop(Stop::Hang) => self.life.shutdown.stop.cancelled().await,
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
    /// Opens a connection of a `server`, or one that is a server by itself.
    pub(super) fn open(
        engine: Arc<Engine>,
        transport: Transport,
        caller: Caller,
        life: Life,
        server: Option<Life>,
    ) -> (Connection, mpsc::Receiver<Outgoing>) {
        let (outgoing, frames) = mpsc::channel(BACKLOG);
        let connection = Connection {
            engine,
            transport,
            caller,
            peer: Arc::default(),
            in_flight: Arc::default(),
            outgoing,
            overtaking: Arc::default(),
            server: server.unwrap_or_else(|| life.clone()),
            life,
        };
        connection.peer.set_outlet(Box::new(Unasked(connection.outgoing.downgrade())));
        (connection, frames)
    }

    /// Whether it is this client that opened the connection.
    pub(super) fn belongs_to(&self, token: Option<&Token>) -> bool {
        self.caller.token.as_deref().map(Token::principal) == token.map(Token::principal)
    }

    /// Takes a frame from the client. Answers that take time are given later, out of order. Where a POST carried the
    /// frame, `poster` has sent it, and a fault may refuse it.
    pub(super) async fn receive(&self, bytes: &Bytes, poster: Option<&Caller>) -> Option<Refusal> {
        let Caller { token, headers } = poster.unwrap_or(&self.caller);
        let (at, transport) = (self.life.started.elapsed(), self.transport);
        let incoming =
            Incoming { bytes, transport, at, headers: headers.as_ref(), token: token.as_deref(), faults: &[] };
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
                self.spawn(Some(id), false, || play_listen(listen, self.life.shutdown.stop.clone())).await;
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
        let way = match play(exchange, self.life.started) {
            Beginning::Response(answer) => return self.send(answer.frame).await,
            Beginning::Detached(answer, exchange) => {
                self.server.carry_on(exchange);
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
        let (server, stop) = (self.server.clone(), self.life.shutdown.stop.clone());
        let mut afflicted = Afflicted::new(faulty, self.life.started, stop, move |it| server.carry_on(it));
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
        let (in_flight, closed) = (self.in_flight.clone(), self.life.shutdown.kill.clone());
        self.life.shutdown.tasks.spawn(async move {
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
            life: self.life.clone(),
            server: self.server.clone(),
        }
    }

    /// Refuses what never reaches the engine, or what the engine could not know.
    pub(super) async fn refuse(&self, id: Option<&Id>, why: &str) {
        let handling = Handling::Refused(why.to_owned());
        self.engine.journal().record(self.life.started.elapsed(), self.transport, &[], handling);
        self.send(message::error(id, &RpcError::new(message::INVALID_REQUEST, why))).await;
    }

    async fn send(&self, frame: Bytes) {
        // The receiver is gone only if the client is.
        let _ = self.outgoing.send(Outgoing::Frame(frame)).await;
        self.overtaking.answered();
    }

    /// Resolves when the script lets the server die.
    pub(super) async fn closed(&self) {
        self.life.shutdown.kill.cancelled().await;
    }

    /// The exit code, if the script lets the server die.
    pub(super) fn died(&self) -> Option<u8> {
        self.life.died()
    }

    /// The client sends nothing more, so that what waits for its answers need not (2026-07-28, stdio: Shutdown).
    pub(super) fn falls_silent(&self) {
        self.peer.falls_silent();
    }

    /// Ends what has no end of its own, and waits for the answers that are under way.
    pub(super) async fn finish(&self) {
        let Shutdown { stop, kill, tasks } = &self.life.shutdown;
        stop.cancel();
        tasks.close();
        tokio::select! {
            () = tasks.wait() => {}
            () = kill.cancelled() => {}
        }
    }

    /// Cancels every answer that is under way and waits until it has stopped.
    pub(super) async fn cancel(&self) {
        self.life.shutdown.kill.cancel();
        self.life.shutdown.tasks.close();
        self.life.shutdown.tasks.wait().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.life.shutdown.kill.cancel();
    }
}
