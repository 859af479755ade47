//! A connection with one channel for all messages: stdio, WebSocket, and a stream of HTTP+SSE.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use http::HeaderMap;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    connection_trace::ConnectionTrace,
    drive::{ID_IN_USE, InFlight, OutgoingEvent, ResponseStream, Started, drive, drive_subscription},
    faulty_response::FaultyResponse,
    lifetime::ServerLifetime,
    reorder_gate::ReorderGate,
};
use crate::{
    engine::{Decision, Engine, Exchange, FaultedDecision, Incoming, LegacySession, NotificationSink},
    faults::{FrameKind, Packet, ResponsePart, StatusResponse, Stop},
    journal::{CancelMark, Handling, Received, Refusal},
    script::{HttpResponseOptions, Token},
};
use rehearse_net::Shutdown;
use rehearse_protocol::{Direction, Id, RpcError, Transport, message};

/// How many frames may wait to be sent before answers are held back.
const BACKLOG: usize = 256;

/// The sender of an HTTP request that opened a connection or carried a frame.
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
    /// The id or the name in the journal.
    session: String,
    caller: Caller,
    legacy_session: Arc<LegacySession>,
    in_flight: Arc<InFlight>,
    outgoing: mpsc::Sender<ConnectionOutput>,
    reorder_gate: Arc<ReorderGate>,
    /// The lifetime of the connection.
    lifetime: ServerLifetime,
    /// The lifetime of the server; its tasks outlive a connection.
    server: ServerLifetime,
}

/// An output of a connection.
#[derive(Debug)]
pub(super) enum ConnectionOutput {
    Frame(Bytes),
    /// A frame changed by faults.
    Packet(Box<Packet>),
    /// The connection ends here.
    Stop(Stop),
}

impl ConnectionOutput {
    /// Records the part that is sent.
    pub(super) fn record(&self, trace: &ConnectionTrace) {
        let bytes = match self {
            ConnectionOutput::Frame(frame) => frame.clone(),
            ConnectionOutput::Packet(packet) => packet.sent(),
            ConnectionOutput::Stop(_) => return,
        };
        let is_cut_at_start =
            bytes.is_empty() && matches!(self, ConnectionOutput::Packet(packet) if packet.cut.is_some());
        if !is_cut_at_start {
            trace.record_frame(Direction::ServerToClient, bytes);
        }
    }
}

/// The handles with which an exchange reaches the client.
#[derive(Clone)]
struct Delivery {
    outgoing: mpsc::Sender<ConnectionOutput>,
    reorder_gate: Arc<ReorderGate>,
    lifetime: ServerLifetime,
    server: ServerLifetime,
}

impl Delivery {
    /// # Errors
    /// The client is gone.
    async fn deliver(&self, event: OutgoingEvent) -> Result<(), mpsc::error::SendError<ConnectionOutput>> {
        match event {
            OutgoingEvent::Frame(frame) => self.outgoing.send(ConnectionOutput::Frame(frame)).await,
            OutgoingEvent::Response(answer) => self.respond(ConnectionOutput::Frame(answer.frame)).await,
            OutgoingEvent::Disconnect(_) => Ok(()),
            OutgoingEvent::Detached(answer, exchange) => {
                self.server.spawn_background(exchange);
                self.respond(ConnectionOutput::Frame(answer.frame)).await
            }
            OutgoingEvent::Exit(code) => {
                self.lifetime.exit(code);
                Ok(())
            }
            OutgoingEvent::Part(part) => self.deliver_part(part).await,
        }
    }

    async fn respond(&self, outgoing: ConnectionOutput) -> Result<(), mpsc::error::SendError<ConnectionOutput>> {
        let sent = self.outgoing.send(outgoing).await;
        self.reorder_gate.notify_sent();
        sent
    }

    async fn deliver_part(&self, part: ResponsePart) -> Result<(), mpsc::error::SendError<ConnectionOutput>> {
        match part {
            // There is no head, and no way to resume.
            ResponsePart::Begin
            | ResponsePart::ContentType(_)
            | ResponsePart::Replace(_)
            | ResponsePart::Disconnect(_) => {}
            ResponsePart::Stop(Stop::Finish) => {}
            ResponsePart::Wait(time) => tokio::time::sleep(time).await,
            ResponsePart::Yield(limit) => drop(self.reorder_gate.wait_for_other(limit).await),
            ResponsePart::Packet(packet) if packet.kind == FrameKind::Response => {
                return self.respond(ConnectionOutput::Packet(Box::new(packet))).await;
            }
            ResponsePart::Packet(packet) => {
                return self.outgoing.send(ConnectionOutput::Packet(Box::new(packet))).await;
            }
            ResponsePart::Stop(Stop::Hang) => self.lifetime.shutdown.stop.cancelled().await,
            ResponsePart::Stop(stop) => return self.outgoing.send(ConnectionOutput::Stop(stop)).await,
        }
        Ok(())
    }
}

/// Notifications of a connection that belong to no request. A client that does not read loses them.
#[derive(Debug)]
struct UnsolicitedSink(mpsc::WeakSender<ConnectionOutput>);

impl NotificationSink for UnsolicitedSink {
    fn push(&self, frame: Bytes) {
        if let Some(outgoing) = self.0.upgrade() {
            let _ = outgoing.try_send(ConnectionOutput::Frame(frame));
        }
    }
}

impl Connection {
    /// Opens a connection of a `server`, or one that is a server by itself.
    pub(super) fn open(
        engine: Arc<Engine>,
        transport: Transport,
        session: Option<&str>,
        caller: Caller,
        lifetime: ServerLifetime,
        server: Option<ServerLifetime>,
    ) -> (Connection, mpsc::Receiver<ConnectionOutput>) {
        let (outgoing, frames) = mpsc::channel(BACKLOG);
        let session = session.map_or_else(|| engine.journal().connection(transport), str::to_owned);
        let connection = Connection {
            engine,
            transport,
            session,
            caller,
            legacy_session: Arc::default(),
            in_flight: Arc::default(),
            outgoing,
            reorder_gate: Arc::default(),
            server: server.unwrap_or_else(|| lifetime.clone()),
            lifetime,
        };
        connection.legacy_session.set_sink(Box::new(UnsolicitedSink(connection.outgoing.downgrade())));
        (connection, frames)
    }

    /// Whether this client opened the connection.
    pub(super) fn belongs_to(&self, token: Option<&Token>) -> bool {
        self.caller.token.as_deref().map(Token::principal) == token.map(Token::principal)
    }

    /// Takes a frame from the client. Delayed answers are sent later, out of order. Where a POST carried the frame,
    /// `poster` has sent it, and a fault may refuse it.
    pub(super) async fn receive(&self, bytes: &Bytes, poster: Option<&Caller>) -> Option<StatusResponse> {
        let Caller { token, headers } = poster.unwrap_or(&self.caller);
        let (at, transport) = (self.lifetime.started.elapsed(), self.transport);
        let (session, headers, token) = (Some(&*self.session), headers.as_ref(), token.as_deref());
        let incoming = Incoming { bytes, transport, at, session, headers, token, faults: &[] };
        self.take(self.engine.receive(&self.legacy_session, incoming)).await
    }

    async fn take(&self, decision: Decision) -> Option<StatusResponse> {
        match decision {
            Decision::Ignore => {}
            Decision::Cancel(id) => self.in_flight.cancel(&id),
            Decision::Respond(answer) => self.send(answer.frame).await,
            Decision::Exchange(exchange) => self.start(exchange).await,
            Decision::Subscribe(listen) => {
                let id = listen.id().clone();
                let stop = self.lifetime.shutdown.stop.clone();
                self.spawn(Some(id), CancelMark::default(), false, || drive_subscription(listen, stop)).await;
            }
            Decision::Faulted(faulty) => return Box::pin(self.apply_faults(*faulty)).await,
            Decision::Batch(parts) => {
                let mut refusal = None;
                for part in parts {
                    refusal = Box::pin(self.take(part)).await.or(refusal);
                }
                return refusal;
            }
        }
        None
    }

    /// Sends an immediate answer at once, and any other in a task.
    async fn start(&self, exchange: Box<Exchange>) {
        let (id, mark) = (exchange.id().clone(), exchange.cancel_mark());
        let stream = match drive(exchange, self.lifetime.started) {
            Started::Done(answer) => return self.send(answer.frame).await,
            Started::Detached(answer, exchange) => {
                self.server.spawn_background(exchange);
                return self.send(answer.frame).await;
            }
            Started::Streaming(stream) => stream,
        };
        self.spawn(Some(id), mark, false, || stream).await;
    }

    /// Sends an answer with faults.
    async fn apply_faults(&self, faulty: FaultedDecision) -> Option<StatusResponse> {
        if let Decision::Cancel(id) = &faulty.decision {
            self.in_flight.cancel(id);
        }
        let (server, stop) = (self.server.clone(), self.lifetime.shutdown.stop.clone());
        let http = HttpResponseOptions::default();
        let mut faulty_response =
            FaultyResponse::new(faulty, http, self.lifetime.started, stop, move |it| server.spawn_background(it));
        if faulty_response.refuses && self.transport == Transport::Sse {
            while let Some(part) = faulty_response.parts.next().await {
                match part {
                    ResponsePart::Replace(refusal) => return Some(refusal),
                    // The client has gone, or the connection ends.
                    part => drop(self.delivery().deliver_part(part).await),
                }
            }
            return None;
        }
        let (id, ignores) = (faulty_response.id.clone(), faulty_response.ignores_cancellation);
        let mark = faulty_response.cancel_mark.clone();
        self.spawn(id, mark, ignores, || faulty_response.into_stream()).await;
        None
    }

    /// Sends an answer in a task. An answer with an id can be cancelled, unless it ignores that.
    async fn spawn(
        &self,
        id: Option<Id>,
        mark: CancelMark,
        ignores_cancellation: bool,
        start: impl FnOnce() -> ResponseStream,
    ) {
        let cancelled = match &id {
            None => CancellationToken::new(),
            Some(id) => match self.in_flight.enter(id, mark) {
                Some(_) if ignores_cancellation => CancellationToken::new(),
                Some(cancelled) => cancelled,
                None => return self.refuse(Some(id), ID_IN_USE).await,
            },
        };
        let (delivery, mut stream) = (self.delivery(), start());
        let (in_flight, closed) = (self.in_flight.clone(), self.lifetime.shutdown.kill.clone());
        self.lifetime.shutdown.tasks.spawn(async move {
            let playing = async {
                while let Some(event) = stream.next().await {
                    if delivery.deliver(event).await.is_err() {
                        break;
                    }
                }
            };
            // A cancelled answer does nothing more, even if it could.
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
            reorder_gate: self.reorder_gate.clone(),
            lifetime: self.lifetime.clone(),
            server: self.server.clone(),
        }
    }

    /// Refuses a message that never reaches the engine, or for a reason that the engine does not know.
    pub(super) async fn refuse(&self, id: Option<&Id>, why: &str) {
        self.note_refusal(why);
        self.send(message::error(id, &RpcError::new(message::INVALID_REQUEST, why))).await;
    }

    /// Journals the refusal of something that cannot be answered.
    pub(super) fn note_refusal(&self, why: &str) {
        let (at, transport, session) = (self.lifetime.started.elapsed(), self.transport, Some(&*self.session));
        let received = Received { at, transport, session, request: &[], http: None, faults: &[] };
        self.engine.journal().add(received, Handling::refused(Refusal::Malformed, why), None, None);
    }

    async fn send(&self, frame: Bytes) {
        // The receiver is gone only if the client is.
        let _ = self.outgoing.send(ConnectionOutput::Frame(frame)).await;
        self.reorder_gate.notify_sent();
    }

    /// Waits until the script makes the server exit.
    pub(super) async fn closed(&self) {
        self.lifetime.shutdown.kill.cancelled().await;
    }

    /// The exit code, if the script makes the server exit.
    pub(super) fn exit_code(&self) -> Option<u8> {
        self.lifetime.exit_code()
    }

    /// The client sends nothing more: nothing needs to wait for its responses (2026-07-28, stdio: Shutdown).
    pub(super) fn close_input(&self) {
        self.legacy_session.close_input();
    }

    /// Ends subscriptions, and waits for the answers that are in progress.
    pub(super) async fn finish(&self) {
        let Shutdown { stop, kill, tasks } = &self.lifetime.shutdown;
        stop.cancel();
        tasks.close();
        tokio::select! {
            () = tasks.wait() => {}
            () = kill.cancelled() => {}
        }
    }

    /// Cancels every answer that is in progress and waits until it has stopped.
    pub(super) async fn cancel(&self) {
        self.lifetime.shutdown.kill.cancel();
        self.lifetime.shutdown.tasks.close();
        self.lifetime.shutdown.tasks.wait().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.lifetime.shutdown.kill.cancel();
    }
}
