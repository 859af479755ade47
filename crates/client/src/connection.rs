//! An open connection and what is said on it: all of a session that its handshake needs already.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::{Map, Value, value::RawValue};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    ConnectError, Exchange, Handshake, HandshakeStep, PeerInfo, ServerParams, StderrSink,
    deadline::Deadline,
    exchange::OutgoingRequest,
    handshake::HandshakeError,
    http_session::HttpSession,
    responder::{Responder, Stage},
    sender::MessageSender,
    sent_request::SentRequest,
};
use crate::{
    recorder::{AcceptUnsolicited, ClientRecorder, MatchedFrame, ResponseFilter, UnsolicitedFrame},
    transport::{FrameSink, OpenError, WireError},
    wire::{Channel, Wire},
};
use rehearse_protocol::{
    Frame, Id, LineSplitter, Message, MessageHead, ParseError, Protocol, RpcError, Transport, Version, message,
};

/// How long to read what a process still writes after the end of its standard input.
const DRAIN: Duration = Duration::from_millis(100);
/// How long to wait for the exit of a process that has closed its standard output.
pub(crate) const EXIT_PATIENCE: Duration = Duration::from_millis(500);
/// How long to wait for the stream on which a legacy server sends messages of its own. What it sends before may be lost,
/// but some servers answer the GET only when they have something to say.
const LISTENING: Duration = Duration::from_millis(500);
/// How long `server/discover` may go unanswered, whatever the limit of the whole handshake is.
const LONGEST_PROBE: Duration = Duration::from_millis(9900);
/// A process needs about this long to start.
const SHORTEST_PROBE: Duration = Duration::from_millis(500);

/// How long to wait for the answer to `server/discover`, so that enough time is left for `initialize`.
pub(crate) fn probe_timeout(connect: Duration) -> Duration {
    (connect / 2).clamp(SHORTEST_PROBE, LONGEST_PROBE)
}

/// An open connection.
pub(crate) struct Connection {
    pub(crate) wire: Wire,
    /// That of an attempt to open the connection, until it is the only one.
    recorder: ClientRecorder,
    pub(crate) exchange: Arc<Mutex<Exchange>>,
    pub(crate) sender: MessageSender,
    pub(crate) responder: Arc<Responder>,
    /// The next token for the progress of a request.
    progress_token: Mutex<u64>,
    /// Reads what a server sends of its own over streamable HTTP.
    listening: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Connection {
    /// Opens a connection, on which requests of the server are answered as soon as the handshake allows it.
    ///
    /// # Errors
    /// Any [`OpenError`].
    pub(crate) async fn open(
        params: &ServerParams,
        stderr: Option<StderrSink>,
        recorder: ClientRecorder,
    ) -> Result<Connection, OpenError> {
        let mut capabilities = params.capabilities.clone().unwrap_or_else(|| params.answers.capabilities());
        if !params.extensions.is_empty() {
            capabilities.insert("extensions".to_owned(), params.extensions.clone().into());
        }
        let mut exchange = Exchange::new(params.client_info.clone(), capabilities, Version::LATEST);
        exchange.set_trace(params.trace);
        let exchange = Arc::new(Mutex::new(exchange));
        let responder = Arc::new(Responder::new(params.answers.clone(), recorder.connection()));
        let mut wire = Wire::connect(params, stderr, LineSplitter::default(), true, recorder.clone()).await?;
        // The responder sends over the connection that the sink is a part of.
        let receiver = Arc::downgrade(&responder);
        let sink: FrameSink = Arc::new(move |frame: &Frame| {
            let (receiver, frame) = (receiver.upgrade().filter(|_| concerns_responder(frame))?, frame.clone());
            Some(async move { receiver.receive(&frame).await }.boxed())
        });
        wire.read_into(Some(sink));
        let sender = match wire.channel() {
            Channel::Frames(outgoing) => MessageSender::Frames(outgoing),
            Channel::Http(endpoint) => MessageSender::Http(Arc::new(HttpSession::new(endpoint, exchange.clone()))),
        };
        responder.send_over(sender.clone());
        let (progress_token, listening) = (Mutex::new(0), Mutex::default());
        Ok(Connection { wire, recorder, exchange, sender, responder, progress_token, listening })
    }

    pub(crate) fn recorder(&self) -> &ClientRecorder {
        &self.recorder
    }

    /// Makes this attempt the connection.
    pub(crate) fn select(&mut self) {
        self.recorder.select();
        self.recorder = self.recorder.connection();
    }

    /// Sends a request, which asks for its progress.
    pub(crate) fn send(
        &self,
        method: &str,
        params: Option<Map<String, Value>>,
        meta: Option<Map<String, Value>>,
    ) -> SentRequest {
        let mut meta = meta.unwrap_or_default();
        // Held until the request has its place: requests are sent in the order of their ids.
        let mut token = self.progress_token.lock();
        meta.insert("progressToken".to_owned(), (*token).into());
        *token += 1;
        let request = self.exchange.lock().request(method, params, Some(meta));
        self.transmit(method, request)
    }

    fn transmit(&self, method: &str, request: OutgoingRequest) -> SentRequest {
        let (from, cause) = (self.recorder.end(), self.responder.start_cause(method));
        let sending = self.sender.send(Some(method), request.bytes);
        SentRequest::new(request.id, from, sending, self.sender.clone(), cause)
    }

    /// Performs the handshake of the protocol; `target` is the server in messages.
    ///
    /// # Errors
    /// Any [`ConnectError`] that has to do with the answers of the server.
    pub(crate) async fn handshake(
        &self,
        protocol: Protocol,
        params: &ServerParams,
        target: &str,
    ) -> Result<PeerInfo, ConnectError> {
        let transport = params.target.transport();
        let (mut handshake, first) = Handshake::begin(protocol, transport == Transport::Sse, &mut self.exchange.lock());
        let mut next = first;
        // A `server/discover` without an answer: its id, and the first frame that can be the answer.
        let mut unanswered: Option<(Id, usize)> = None;
        let info = loop {
            if handshake.method() == "initialize" {
                self.responder.enter(Stage::Initializing);
            }
            let mut sent = self.transmit(handshake.method(), next);
            let patience = handshake.may_fall_back().then(|| probe_timeout(params.timeouts.connect));
            let answer = tokio::select! {
                biased;
                answer = self.answer(&mut sent, &mut unanswered) => answer,
                () = expiry(patience, params) => {
                    unanswered = Some((sent.id.clone(), sent.from));
                    next = handshake.fall_back(&mut self.exchange.lock());
                    continue;
                }
            };
            let is_unknown = |error: &Unanswered| match error {
                // A bare 4xx (2026-07-28, Streamable HTTP: Backward Compatibility).
                Unanswered::Wire(WireError::Status { status, .. }) => {
                    (400..500).contains(status) && !matches!(status, 401 | 403)
                }
                Unanswered::Unreadable(_) => true,
                _ => false,
            };
            let answer = match answer {
                Err(error) if handshake.may_fall_back() && is_unknown(&error) => {
                    next = handshake.fall_back(&mut self.exchange.lock());
                    continue;
                }
                Err(error) => return Err(error.into_connect(protocol, target, transport == Transport::Http)),
                Ok(answer) => answer,
            };
            if let Some((id, from)) = &unanswered
                && let Some(late) = self.recorder.find_response(*from, ResponseFilter::of(id))
                && let Ok(Message::Response(response)) = late.frame.message()
                && let Ok(result) = response.outcome
            {
                handshake.receive_late(result);
            }
            let answer = match &answer {
                Ok(result) => Ok(&**result),
                Err(error) => Err(HandshakeError::Refused(error.clone())),
            };
            let step = {
                let mut exchange = self.exchange.lock();
                if handshake.method() == "initialize"
                    && let Some(head) = sent.head()
                {
                    exchange.begin_session(&head.headers);
                }
                handshake.receive(answer, &mut exchange)
            };
            sent.finish();
            match step {
                HandshakeStep::Request(request) => next = request,
                HandshakeStep::Opened(info) => break *info,
                HandshakeStep::Failed(error) => return Err(ConnectError::from_handshake(error, protocol)),
            }
        };
        if handshake.method() == "initialize" {
            self.responder.enter(Stage::Open);
            let method = "notifications/initialized";
            let sent = self.sender.send(Some(method), message::bare_notification(method)).sent.await;
            let failed = |error| ConnectError::from_wire(error, protocol, target, transport == Transport::Http);
            sent.map_err(failed)?;
            self.listen(LISTENING).await;
        } else {
            self.responder.enter(Stage::Stateless);
        }
        Ok(info)
    }

    /// The answer to a request of the handshake.
    async fn answer(
        &self,
        sent: &mut SentRequest,
        unanswered: &mut Option<(Id, usize)>,
    ) -> Result<Result<Box<RawValue>, RpcError>, Unanswered> {
        let (id, mut from) = (sent.id.clone(), sent.from);
        loop {
            let wanted = ResponseFilter {
                unaddressed: true,
                unsolicited: AcceptUnsolicited::Responses,
                ..ResponseFilter::of(&id)
            };
            let arrival = tokio::select! {
                biased;
                arrival = self.recorder.wait_for_response(from, wanted) => match arrival {
                    Some(arrival) => arrival,
                    None => return Err(Unanswered::Closed(self.reason())),
                },
                sent = sent.sent() => return self.answer_in_body(&id, sent).await,
            };
            if sent.head().is_some_and(|head| head.has_whole_body()) {
                let sent = sent.sent().await;
                return self.answer_in_body(&id, sent).await;
            }
            let MatchedFrame { frame, index, unsolicited } = arrival;
            match unsolicited {
                // An error without an id answers the first request.
                Some(UnsolicitedFrame::ErrorWithoutId(_)) if self.is_open(unanswered) => {
                    *unanswered = None;
                    from = index + 1;
                }
                Some(UnsolicitedFrame::ErrorWithoutId(error)) => return Ok(Err(error)),
                Some(UnsolicitedFrame::UnknownId(other)) => {
                    let text = format!("the answer carries the id {other} instead of {id}");
                    return Err(Unanswered::Malformed(text));
                }
                Some(other) => return Err(Unanswered::Malformed(other.to_string())),
                None => return outcome(&frame.bytes),
            }
        }
    }

    /// Whether the request, if there is one, has no answer yet.
    fn is_open(&self, unanswered: &Option<(Id, usize)>) -> bool {
        let Some((id, from)) = unanswered else { return false };
        self.recorder.find_response(*from, ResponseFilter::of(id)).is_none()
    }

    /// The answer of a request whose HTTP response has ended, or that could not be sent.
    async fn answer_in_body(
        &self,
        id: &Id,
        sent: Result<Option<Bytes>, WireError>,
    ) -> Result<Result<Box<RawValue>, RpcError>, Unanswered> {
        let message = match sent {
            Ok(Some(message)) => message,
            Ok(None) => return Err(Unanswered::Closed("the stream ended before the answer".to_owned())),
            Err(error @ (WireError::Closed | WireError::Io(_) | WireError::Ws(_))) => {
                // Why it ended is known as soon as its end has been read.
                let _ = timeout(EXIT_PATIENCE, self.recorder.wait_for(self.recorder.end(), |_| false)).await;
                let reason = self.recorder.closed().map_or_else(|| error.to_string(), |closed| closed.to_string());
                return Err(Unanswered::Closed(reason));
            }
            Err(error) => return Err(Unanswered::Wire(error)),
        };
        match Message::parse(&message) {
            Ok(Message::Response(response)) if response.id.as_ref().is_some_and(|other| other != id) => {
                let other = response.id.map(|id| id.to_string()).unwrap_or_default();
                Err(Unanswered::Malformed(format!("the answer carries the id {other} instead of {id}")))
            }
            _ => outcome(&message),
        }
    }

    fn reason(&self) -> String {
        self.recorder.closed().map_or_else(|| "it closed the connection".to_owned(), |closed| closed.to_string())
    }

    /// Begins to read what the server sends of its own, if it is another stream than the responses; waits a little until
    /// that stream is open.
    pub(crate) async fn listen(&self, limit: Duration) {
        let Some(http) = self.sender.http().filter(|_| self.exchange.lock().session().is_some()) else { return };
        let (reading, waiting) = (http.clone(), http.clone());
        let task = tokio::spawn(async move { reading.listen().await });
        *self.listening.lock() = Some(AbortOnDropHandle::new(task));
        let _ = tokio::time::timeout(limit, waiting.listening()).await;
    }

    /// Ends the session and then the connection, without the process.
    pub(crate) async fn close(&mut self) {
        self.responder.finish().await;
        drop(self.listening.lock().take());
        if let Some(http) = self.sender.http() {
            http.end().await;
        }
        self.wire.close_link(DRAIN).await;
    }

    /// Adds the exit status and last output of the process to the error, and stops the process.
    pub(crate) async fn end(mut self, error: ConnectError, shutdown: &CancellationToken) -> ConnectError {
        let (child, output) = (self.wire.take_child(), self.recorder.wrong_output());
        // It keeps the standard input of the process open.
        drop(self);
        let Some(child) = child else { return error };
        let error = match error {
            ConnectError::Closed { detail, .. } => {
                let (status, stderr) = child.exit_details(EXIT_PATIENCE).await;
                let status = status.map(|status| format!("; the process ended with {status}")).unwrap_or_default();
                ConnectError::Closed { detail: format!("{detail}{status}"), output, stderr }
            }
            error => error,
        };
        child.stop(shutdown).await;
        error
    }
}

/// Why a request of the handshake has no answer.
#[derive(Debug)]
enum Unanswered {
    Closed(String),
    /// The answer is there, but is no message.
    Unreadable(String),
    Malformed(String),
    Wire(WireError),
}

impl Unanswered {
    fn into_connect(self, protocol: Protocol, target: &str, is_streamable: bool) -> ConnectError {
        match self {
            Unanswered::Closed(detail) => ConnectError::Closed { detail, output: None, stderr: Vec::new() },
            Unanswered::Unreadable(what) | Unanswered::Malformed(what) => ConnectError::Malformed(what),
            Unanswered::Wire(error) => ConnectError::from_wire(error, protocol, target, is_streamable),
        }
    }
}

/// Result or error of a response.
fn outcome(bytes: &Bytes) -> Result<Result<Box<RawValue>, RpcError>, Unanswered> {
    match Message::parse(bytes) {
        Ok(Message::Response(response)) => Ok(response.outcome.map(ToOwned::to_owned)),
        Ok(_) => Err(Unanswered::Malformed("the body is not a response".to_owned())),
        Err(error) => Err(Unanswered::Unreadable(error.to_string())),
    }
}

/// Ends after the time; never if there is none. The time in which a user authorizes the client does not count.
async fn expiry(patience: Option<Duration>, params: &ServerParams) {
    match patience {
        Some(patience) => Deadline::from_now(patience, params.authorizer.as_ref()).wait().await,
        None => std::future::pending().await,
    }
}

/// Whether a frame of the server is a request, or cancels one.
fn concerns_responder(frame: &Frame) -> bool {
    match frame.head() {
        Ok(MessageHead::Request { .. }) => true,
        Ok(MessageHead::Notification { method }) => **method == *"notifications/cancelled",
        Ok(MessageHead::Response { .. }) => false,
        Err(error) => *error == ParseError::Batch,
    }
}
