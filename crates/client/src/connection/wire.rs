//! A connection without a session: it sends any bytes and any HTTP request, and records all that comes back.

use std::{process::ExitStatus, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    task::{JoinHandle, coop::consume_budget},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    exchange::ConnectError,
    recorder::ClientRecorder,
    server_params::{ServerParams, Target},
    transport::{
        Authorization, Child, FrameSink, HttpEndpoint, Incoming, Link, OpenError, Outgoing, StderrSink, WireError,
        WireExchange, WireRequest, memory, sse, stdio, ws,
    },
};
use rehearse_protocol::{Closed, ClosedHow, Direction, EventKind, Frame, LineSplitter, ProcessEvent, Transport};

/// How long to wait for the close frame of a WebSocket.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to read what a process writes after the end of its standard input.
const DRAIN: Duration = Duration::from_secs(5);

/// A connection to a server, without a handshake. Nothing is retried, added or left out.
///
/// Over streamable HTTP nothing is connected until the first [`Wire::exchange`]; over everything else [`Wire::send`]
/// sends frames, and what the server sends is recorded as it comes.
pub struct Wire {
    recorder: ClientRecorder,
    transport: Transport,
    link: WireLink,
    child: Option<Child>,
    /// How long the close frame of a WebSocket may take.
    close_timeout: Duration,
    shutdown: CancellationToken,
}

enum WireLink {
    /// HTTP+SSE and WebSocket have HTTP requests beside the connection.
    Frames(Box<Frames>, Option<Arc<HttpEndpoint>>),
    Http(Arc<HttpEndpoint>),
}

/// How the messages of a connection are sent.
pub(crate) enum Channel {
    Frames(Outgoing),
    Http(Arc<HttpEndpoint>),
}

/// The frames of a connection on which they flow freely both ways.
struct Frames {
    outgoing: Outgoing,
    /// Until they are read.
    incoming: Option<Incoming>,
    /// Reads to the end, and says how that was.
    reading: Option<JoinHandle<Closed>>,
    /// Cancelled when the client ends the connection.
    closing: CancellationToken,
}

impl Wire {
    /// Connects: starts the process, or opens the stream of HTTP+SSE or the WebSocket. Everything is recorded in detail.
    ///
    /// # Errors
    /// The server cannot be started or reached; never what it answers to a message.
    pub async fn open(
        params: &ServerParams,
        stderr: Option<StderrSink>,
        recorder: ClientRecorder,
    ) -> Result<Wire, ConnectError> {
        let splitter = LineSplitter::new(recorder.largest()).with_blank_lines();
        let opened = Wire::connect(params, stderr, splitter, false, recorder.with_details()).await;
        let mut wire = opened.map_err(|error| ConnectError::from_open(error, &params.target.to_string()))?;
        wire.read_into(None);
        Ok(wire)
    }

    /// As [`Wire::open`], but reads nothing before [`Wire::read_into`]. A session has no HTTP requests beside its connection.
    ///
    /// # Errors
    /// Any [`OpenError`].
    pub(crate) async fn connect(
        params: &ServerParams,
        stderr: Option<StderrSink>,
        splitter: LineSplitter,
        is_session: bool,
        recorder: ClientRecorder,
    ) -> Result<Wire, OpenError> {
        let auth = || params.authorizer.as_ref().map(crate::oauth::Authorizer::middleware);
        let (transport, shutdown) = (params.target.transport(), params.shutdown.clone());
        let named_by = params.named_by.as_deref();
        let endpoint = |at| HttpEndpoint::new(at, transport, auth(), named_by, recorder.clone()).map(Arc::new);
        // Only probes send requests beside a connection.
        let beside = |at| (!is_session).then(|| endpoint(at)).transpose();
        let (link, endpoint) = match &params.target {
            Target::Stdio(spec) => (stdio::open(spec, &params.name, stderr, recorder.clone(), splitter)?, None),
            Target::Memory(address) => (memory::open(address, recorder.clone())?, None),
            Target::Sse(at) => {
                let link = sse::open(&at.url, &at.headers, auth(), recorder.clone()).await?;
                (link, beside(at)?)
            }
            Target::Ws(at) => {
                let link = ws::open(&at.url, &at.headers, auth(), recorder.clone()).await?;
                (link, beside(at)?)
            }
            Target::Http(at) => {
                let link = WireLink::Http(endpoint(at)?);
                recorder.note(EventKind::Opened(transport));
                return Ok(Wire { recorder, transport, link, child: None, close_timeout: CLOSE_TIMEOUT, shutdown });
            }
        };
        recorder.note(EventKind::Opened(transport));
        let Link { incoming, outgoing, child } = link;
        let closing = CancellationToken::new();
        let frames = Frames { outgoing, incoming: Some(incoming), reading: None, closing };
        let link = WireLink::Frames(Box::new(frames), endpoint);
        Ok(Wire { recorder, transport, link, child, close_timeout: CLOSE_TIMEOUT, shutdown })
    }

    /// Whether the server has read some of what was sent to it; true where that cannot be known.
    pub(crate) fn is_input_read(&self) -> bool {
        match &self.link {
            WireLink::Frames(frames, _) => frames.outgoing.is_read(),
            WireLink::Http(_) => true,
        }
    }

    /// Begins to read, and passes each frame of the server to the sink after it is recorded. Must be called before the
    /// first request.
    pub(crate) fn read_into(&mut self, sink: Option<FrameSink>) {
        let frames = match (&mut self.link, &sink) {
            (WireLink::Frames(frames, _), _) => frames,
            (WireLink::Http(endpoint), Some(sink)) => {
                return Arc::get_mut(endpoint).map_or((), |endpoint| endpoint.set_sink(sink.clone()));
            }
            (WireLink::Http(_), None) => return,
        };
        let Some(mut incoming) = frames.incoming.take() else { return };
        let (recorder, closing) = (self.recorder.clone(), frames.closing.clone());
        frames.reading = Some(tokio::spawn(async move {
            loop {
                let frame = match incoming.next().await {
                    Ok(frame) => frame,
                    Err(closed) => {
                        if !closing.is_cancelled() {
                            recorder.close(closed.clone());
                        }
                        return closed;
                    }
                };
                let frame = recorder.record_in(incoming.exchange(), Direction::ServerToClient, frame);
                if let Some(taken) = sink.as_ref().and_then(|sink| sink(&frame)) {
                    taken.await;
                }
                recorder.room(incoming.exchange()).await;
                // Endless output must not block senders and the shutdown.
                consume_budget().await;
                if recorder.is_full() {
                    // What is not kept is not read either.
                    closing.cancelled().await;
                    return Closed::by_limit("the server sent more than is kept");
                }
            }
        }));
    }

    /// The recorder of the connection.
    pub fn recorder(&self) -> &ClientRecorder {
        &self.recorder
    }

    /// Whether messages are HTTP requests: [`Wire::exchange`] instead of [`Wire::send`].
    pub fn is_http(&self) -> bool {
        matches!(self.link, WireLink::Http(_))
    }

    /// Another connection over streamable HTTP to the same server, with a record of its own. Both use the same TCP
    /// connections. `None` over other transports.
    pub fn another(&self, recorder: ClientRecorder) -> Option<Wire> {
        self.another_over(self.transport, recorder)
    }

    /// As [`Wire::another`], for requests that belong to a connection of another transport with HTTP.
    pub fn another_over(&self, transport: Transport, recorder: ClientRecorder) -> Option<Wire> {
        let WireLink::Http(endpoint) = &self.link else { return None };
        let recorder = recorder.with_details();
        let link = WireLink::Http(Arc::new(endpoint.with_recorder(recorder.clone())));
        recorder.note(EventKind::Opened(transport));
        Some(Wire {
            recorder,
            transport,
            link,
            child: None,
            close_timeout: self.close_timeout,
            shutdown: self.shutdown.clone(),
        })
    }

    /// How messages are sent.
    pub(crate) fn channel(&self) -> Channel {
        match &self.link {
            WireLink::Frames(frames, _) => Channel::Frames(frames.outgoing.clone()),
            WireLink::Http(endpoint) => Channel::Http(endpoint.clone()),
        }
    }

    fn endpoint(&self) -> Option<&Arc<HttpEndpoint>> {
        match &self.link {
            WireLink::Frames(_, endpoint) => endpoint.as_ref(),
            WireLink::Http(endpoint) => Some(endpoint),
        }
    }

    fn frames(&self) -> Result<&Outgoing, WireError> {
        match &self.link {
            WireLink::Frames(frames, _) => Ok(&frames.outgoing),
            WireLink::Http(_) => {
                Err(WireError::Invalid("streamable HTTP has no frames outside of requests".to_owned()))
            }
        }
    }

    pub(crate) fn child(&self) -> Option<&Child> {
        self.child.as_ref()
    }

    /// The process of the server, which the connection then no longer owns.
    pub(crate) fn take_child(&mut self) -> Option<Child> {
        self.child.take()
    }

    /// Sends the bytes as one frame; over HTTP+SSE as one POST.
    ///
    /// # Errors
    /// Why it could not be sent. A status that refuses a POST is no error.
    pub async fn send(&self, case: Option<Arc<str>>, bytes: Bytes) -> Result<(), WireError> {
        let outgoing = self.frames()?;
        if let Some(case) = case {
            self.recorder.note(EventKind::Case(case));
        }
        match outgoing.send(bytes).await {
            Ok(_) | Err(WireError::Status { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Records a case that cannot be sent, because the connection has ended.
    pub fn note_unsent(&self, case: Arc<str>) {
        self.recorder.note(EventKind::Case(case));
    }

    /// Sends frames over a pipe, each as a case, with one write; with a pause, in two halves of the bytes.
    ///
    /// # Errors
    /// Why it could not be sent; also on other transports.
    pub async fn send_joined(&self, frames: Vec<(Arc<str>, Bytes)>, pause: Option<Duration>) -> Result<(), WireError> {
        self.frames()?.write_joined(frames, pause).await
    }

    /// Begins an HTTP request; its response is read to its end in a task, however long it takes. Over HTTP+SSE and
    /// WebSocket it is one of its own, beside the connection.
    ///
    /// # Errors
    /// [`WireError::Invalid`] if the transport has no HTTP.
    pub fn exchange(&self, request: WireRequest) -> Result<WireExchange, WireError> {
        let no_http = || WireError::Invalid("a pipe has no HTTP requests".to_owned());
        self.endpoint().ok_or_else(no_http)?.begin(request, Authorization::Negotiated)
    }

    /// The first frame from index `from` on that the predicate accepts; `None` after the time limit or at the end of the
    /// connection.
    pub async fn wait_for(
        &self,
        from: usize,
        limit: Duration,
        mut accepts: impl FnMut(&Frame) -> bool,
    ) -> Option<Frame> {
        let waiting = self.recorder.wait_for(from, |frame| accepts(frame));
        timeout(limit, waiting).await.ok().flatten().map(|(_, frame)| frame)
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.recorder.closed().is_some()
    }

    /// Why the last HTTP request without a response has none: no connection, or one that broke.
    pub fn failure(&self) -> Option<String> {
        self.endpoint()?.failure()
    }

    /// The last lines of the standard error of the server's process.
    pub fn last_lines(&self) -> Vec<String> {
        self.child.as_ref().map(Child::last_lines).unwrap_or_default()
    }

    /// Closes the standard input or the connection, records what still comes, and stops the process. Returns its exit
    /// status.
    pub async fn close(mut self) -> Option<ExitStatus> {
        let Some(child) = self.child.take() else {
            self.close_link(DRAIN).await;
            return None;
        };
        self.recorder.note(EventKind::Process(ProcessEvent::InputClosed));
        let shutdown = self.shutdown.clone();
        let (status, ()) = tokio::join!(child.stop(&shutdown), self.close_link(DRAIN));
        status
    }

    /// How long the process may take to exit after the end of its input, and again after SIGTERM; and how long a WebSocket
    /// may take to close.
    pub fn set_exit_grace(&mut self, grace: Duration) {
        self.close_timeout = grace;
        if let Some(child) = &mut self.child {
            child.set_exit_grace(grace);
        }
    }

    /// Ends the connection, but not the process: closes its standard input, and reads for this long what it still writes.
    pub(crate) async fn close_link(&mut self, drain: Duration) {
        let mut how = ClosedHow::Clean;
        let mut text = "the session was closed".to_owned();
        if let WireLink::Frames(frames, _) = &mut self.link
            && let Frames { outgoing, reading: Some(reading), closing, .. } = &mut **frames
        {
            closing.cancel();
            outgoing.close_input().await;
            match self.transport {
                Transport::Stdio => drop(timeout(drain, &mut *reading).await),
                Transport::Ws => {
                    let why = match timeout(self.close_timeout, &mut *reading).await {
                        Ok(Ok(closed)) if closed.how == ClosedHow::Clean => None,
                        Ok(Ok(closed)) => Some(closed.text),
                        Ok(Err(_)) | Err(_) => Some("no close frame came".into()),
                    };
                    if let Some(why) = why {
                        how = ClosedHow::NoCloseFrame;
                        text = format!("the session was closed, but not the WebSocket: {why}");
                    }
                }
                Transport::Memory | Transport::Sse | Transport::Http => {}
            }
            reading.abort();
        }
        self.recorder.close(Closed::by_client(text).with(how));
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }
}
