//! An open connection and what is said on it: all of a session that its handshake needs already.

pub(crate) mod attempt;
pub(crate) mod deadline;
mod held_stderr;
mod http_session;
mod responder;
pub(crate) mod sender;
pub(crate) mod sent_request;
pub(crate) mod subscription;
mod wire;

pub use subscription::SubscriptionFilter;
pub use wire::Wire;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::{Map, Value, value::RawValue};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use self::{
    deadline::Deadline,
    http_session::HttpSession,
    responder::{Responder, Stage},
    sender::MessageSender,
    sent_request::SentRequest,
    wire::Channel,
};
use super::{
    exchange::{
        ConnectError, Exchange, Handshake, HandshakeStep, OutgoingRequest, PeerInfo, handshake::HandshakeError,
    },
    recorder::{AcceptUnsolicited, ClientRecorder, MatchedFrame, ResponseFilter},
    server_params::ServerParams,
    transport::{FrameSink, OpenError, ResponseHead, StderrSink, WireError},
};
use rehearse_protocol::{
    Frame, Id, LineSplitter, Message, MessageHead, ParseError, Protocol, Transport, Version, message,
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
        let responder = Arc::new(Responder::new(params.answers.clone(), recorder.clone()));
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
                limit = expiry(patience, params) => {
                    unanswered = Some((sent.id.clone(), sent.from));
                    Err(Unanswered::Handshake(HandshakeError::Silent(limit)))
                }
            };
            let head = sent.head();
            let answer = match answer {
                // On this connection nothing can follow.
                Err(Unanswered::Closed(detail)) if self.sender.http().is_none() => {
                    return Err(closed(detail).after(handshake.refusal()));
                }
                Err(error) => Err(error.into_handshake(protocol, target, head.as_ref())),
                Ok(result) => Ok(result),
            };
            if let Some((id, from)) = &unanswered
                && let Some(late) = self.recorder.find_response(*from, ResponseFilter::of(id))
                && let Ok(Message::Response(response)) = late.frame.message()
                && let Ok(result) = response.outcome
            {
                handshake.receive_late(result);
            }
            let step = {
                let mut exchange = self.exchange.lock();
                if handshake.method() == "initialize"
                    && let Some(head) = &head
                {
                    exchange.begin_session(&head.headers);
                }
                handshake.receive(answer, &mut exchange)
            };
            sent.finish();
            match step {
                HandshakeStep::Request(request) => next = request,
                HandshakeStep::Opened(info) => break *info,
                HandshakeStep::Failed(error) => {
                    let error = ConnectError::from_handshake(error, protocol);
                    return Err(error.after(handshake.refusal()));
                }
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
    ) -> Result<Box<RawValue>, Unanswered> {
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
            // An answer that names no request is that of the first one.
            if unsolicited.is_some() && self.is_open(unanswered) {
                *unanswered = None;
                from = index + 1;
                continue;
            }
            return outcome(&frame.bytes, &id);
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
    ) -> Result<Box<RawValue>, Unanswered> {
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
        outcome(&message, id)
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
    pub(crate) async fn end(mut self, mut error: ConnectError, shutdown: &CancellationToken) -> ConnectError {
        let (child, output) = (self.wire.take_child(), self.recorder.wrong_output());
        // It keeps the standard input of the process open.
        drop(self);
        let Some(child) = child else { return error };
        if let ConnectError::Closed { detail, output: line, stderr: lines } = error.last_mut() {
            let (status, stderr) = child.exit_details(EXIT_PATIENCE).await;
            if let Some(status) = status {
                detail.push_str(&format!("; the process ended with {status}"));
            }
            (*line, *lines) = (output, stderr);
        }
        child.stop(shutdown).await;
        error
    }
}

/// Why a request of the handshake has no result.
#[derive(Debug)]
enum Unanswered {
    Closed(String),
    Wire(WireError),
    Handshake(HandshakeError),
}

impl Unanswered {
    fn into_handshake(self, protocol: Protocol, target: &str, head: Option<&ResponseHead>) -> HandshakeError {
        match self {
            Unanswered::Closed(detail) => HandshakeError::Unanswered(Box::new(closed(detail))),
            Unanswered::Handshake(error) => error,
            Unanswered::Wire(error) => {
                let is_unasked = matches!(error, WireError::Unauthorized(_) | WireError::Invalid(_))
                    || head.is_some_and(ResponseHead::is_challenge);
                let error = Box::new(ConnectError::from_wire(error, protocol, target, head.is_some()));
                if is_unasked { HandshakeError::Unasked(error) } else { HandshakeError::Unanswered(error) }
            }
        }
    }
}

fn closed(detail: String) -> ConnectError {
    ConnectError::Closed { detail, output: None, stderr: Vec::new() }
}

/// The result of a response. Its errors belong to the request even if they carry another id, as those of some SDKs do
/// that refuse an HTTP request before they read it.
fn outcome(bytes: &Bytes, id: &Id) -> Result<Box<RawValue>, Unanswered> {
    let error = match Message::parse(bytes) {
        Ok(Message::Response(response)) => match (response.outcome, response.id) {
            (Err(error), _) => HandshakeError::Refused(error),
            (Ok(_), Some(other)) if other != *id => {
                HandshakeError::Malformed(format!("the answer carries the id {other} instead of {id}"))
            }
            (Ok(result), _) => return Ok(result.to_owned()),
        },
        Ok(_) => HandshakeError::Malformed("the body is not a response".to_owned()),
        Err(error) => HandshakeError::Malformed(error.to_string()),
    };
    Err(Unanswered::Handshake(error))
}

/// Ends after the time, which it returns; never if there is none. The time in which a user authorizes the client does not
/// count.
async fn expiry(patience: Option<Duration>, params: &ServerParams) -> Duration {
    let Some(patience) = patience else { return std::future::pending().await };
    Deadline::from_now(patience, params.authorizer.as_ref()).wait().await;
    patience
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
