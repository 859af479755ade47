//! Records the traces of a server's connections, from the server's side.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, OnceLock, Weak},
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, future::ready, stream};
use http::{HeaderMap, Method, StatusCode};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::path;
use rehearse_net::{Body, ConnectionHandle, Request, Response};
use rehearse_protocol::{
    Closed, Direction, Era, Event, EventKind, Frame, Message, Trace, Transport, Version,
    http::{Asked, asked, is_event_stream, is_message},
    names::{META_CLIENT_INFO, META_VERSION, SESSION_HEADER, VERSION_HEADER},
    sse::{self, Decoder},
};

/// How many traces a server keeps.
pub(super) const MAX_TRACES: usize = 256;
/// How many events a trace keeps.
pub(super) const MAX_EVENTS: usize = 4096;
/// How many ids of requests without a session are remembered.
const MAX_IDS: usize = 1024;

/// The latest traces of a server: the last 256, and of each the last 4096 events, or fewer if they exceed 64 MiB.
#[derive(Debug, Default)]
pub struct ServerRecorder {
    traces: Mutex<VecDeque<Arc<ConnectionTrace>>>,
    /// The trace of what is about authorization, or is for another path than that of an endpoint.
    authorization: Mutex<Weak<ConnectionTrace>>,
}

/// The trace of one connection, or of one client of streamable HTTP: of a session, of what follows an `initialize` that
/// opens none, or of the requests of 2026-07-28. A client may use a new connection for each request.
#[derive(Debug)]
pub(super) struct ConnectionTrace {
    transport: Transport,
    opened: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    trace: Trace,
    /// The id by which requests on other connections belong to the trace.
    session: Option<String>,
    /// By what else they do.
    client: Option<HttpClient>,
    /// How many HTTP exchanges the trace has.
    exchanges: u32,
    /// Separate from the trace: the rest of an answer may be recorded after the end.
    closed: Option<(Duration, Closed)>,
    /// How many TCP connections a client without a session has, and how the last of them ended while it has none.
    connections: usize,
    idle: Option<(Duration, Closed)>,
}

/// A client of streamable HTTP without a session.
#[derive(Debug)]
enum HttpClient {
    /// It has sent `initialize`, and gets no session.
    Legacy,
    /// It has sent requests of 2026-07-28.
    Modern {
        /// What it says of itself.
        info: String,
        /// The ids of its requests, each with the request if that has not succeeded yet.
        ids: HashMap<String, Option<Bytes>>,
    },
}

/// The traces of what came over a TCP connection.
#[derive(Debug, Default)]
struct TcpTraces {
    /// That of what belongs to no client.
    own: OnceLock<Arc<ConnectionTrace>>,
    /// That of the last client.
    last: Mutex<Option<Arc<ConnectionTrace>>>,
}

impl ServerRecorder {
    /// Starts a trace; if there are too many, the oldest one is dropped.
    pub(super) fn open(&self, transport: Transport) -> Arc<ConnectionTrace> {
        let trace = Arc::new(ConnectionTrace {
            transport,
            opened: Instant::now(),
            state: Mutex::new(State {
                trace: Trace::bounded(MAX_EVENTS),
                session: None,
                client: None,
                exchanges: 0,
                closed: None,
                connections: 0,
                idle: None,
            }),
        });
        trace.record(EventKind::Opened(transport));
        let mut traces = self.traces.lock();
        if traces.len() >= MAX_TRACES {
            traces.pop_front();
        }
        traces.push_back(trace.clone());
        trace
    }

    /// The traces, the oldest first.
    pub fn traces(&self) -> Vec<Trace> {
        self.traces.lock().iter().map(|connection| connection.trace()).collect()
    }

    /// How many events were recorded.
    pub fn events(&self) -> usize {
        self.traces.lock().iter().map(|connection| connection.state.lock().trace.end()).sum()
    }

    /// Drops the traces of closed connections, and the events of open ones.
    pub fn reset(&self) {
        let mut traces = self.traces.lock();
        traces.retain(|connection| connection.state.lock().closed.is_none());
        for connection in traces.iter() {
            connection.state.lock().trace = Trace::bounded(MAX_EVENTS);
            connection.record(EventKind::Opened(connection.transport));
        }
    }

    /// The trace of what is about authorization, or for another path.
    fn authorization(&self) -> Arc<ConnectionTrace> {
        let mut authorization = self.authorization.lock();
        authorization.upgrade().unwrap_or_else(|| {
            let trace = self.open(Transport::Http);
            *authorization = Arc::downgrade(&trace);
            trace
        })
    }

    /// Ends all traces that are open.
    pub fn close(&self, closed: &Closed) {
        self.traces.lock().iter().for_each(|connection| connection.close(closed.clone()));
    }

    /// The trace of the client of streamable HTTP that came last, of those that are wanted.
    fn latest(&self, is_wanted: impl Fn(&State) -> bool) -> Option<Arc<ConnectionTrace>> {
        let is_latest = |connection: &&Arc<ConnectionTrace>| {
            let state = connection.state.lock();
            connection.transport == Transport::Http && state.closed.is_none() && is_wanted(&state)
        };
        self.traces.lock().iter().rev().find(is_latest).cloned()
    }

    /// The trace of the session that was opened last, or of the last `initialize` that opened none.
    fn latest_session(&self) -> Option<Arc<ConnectionTrace>> {
        self.latest(State::is_legacy)
    }

    /// Whether a session with this id was opened.
    fn has_known(&self, id: &str) -> bool {
        self.traces.lock().iter().any(|connection| connection.state.lock().session.as_deref() == Some(id))
    }

    /// The trace of an open session.
    fn session(&self, id: &str) -> Option<Arc<ConnectionTrace>> {
        let is_session = |connection: &&Arc<ConnectionTrace>| {
            let state = connection.state.lock();
            state.closed.is_none() && state.session.as_deref() == Some(id)
        };
        self.traces.lock().iter().find(is_session).cloned()
    }
}

impl State {
    /// Whether it is of a client that has sent `initialize`.
    fn is_legacy(&self) -> bool {
        self.session.is_some() || matches!(self.client, Some(HttpClient::Legacy))
    }

    /// Whether it is of a client without a session.
    fn is_without_session(&self) -> bool {
        self.session.is_none() && self.client.is_some()
    }

    /// Whether a request of 2026-07-28 is of this client. On another connection it is not if it looks for the server
    /// anew, or has the id of another request: then it is of another process.
    fn has_sent(&self, request: &ModernRequest, is_same_connection: bool) -> bool {
        let Some(HttpClient::Modern { info, ids }) = &self.client else { return false };
        let is_again = || {
            let known = request.id.as_ref().and_then(|id| ids.get(id));
            !request.is_first && known.is_none_or(|known| known.as_ref() == Some(&request.bytes))
        };
        // A client need not say who it is.
        (request.info == "null" || *info == request.info) && (is_same_connection || is_again())
    }
}

/// A message of 2026-07-28 without a session.
struct ModernRequest {
    info: String,
    id: Option<String>,
    bytes: Bytes,
    /// Whether a client begins with it.
    is_first: bool,
}

impl ModernRequest {
    /// Reads a message; `None` if it is of another era. `is_legacy` says whether one that only its metadata make modern
    /// belongs to an older session.
    fn new(message: &Message<'_>, bytes: &Bytes, is_named: bool, is_legacy: bool) -> Option<ModernRequest> {
        let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
        let meta = &value["params"]["_meta"];
        let is_first = message.method() == Some("server/discover");
        let is_modern = is_named || (!is_legacy && (is_first || meta.get(META_VERSION).is_some()));
        is_modern.then(|| ModernRequest {
            info: meta[META_CLIENT_INFO].to_string(),
            id: message.id().map(|_| value["id"].to_string()),
            bytes: bytes.clone(),
            is_first,
        })
    }
}

impl ConnectionTrace {
    /// Adds an event that is not a frame.
    fn record(&self, kind: EventKind) {
        self.record_in(None, kind);
    }

    /// As [`ConnectionTrace::record`], for an event of an HTTP exchange.
    fn record_in(&self, exchange: Option<u32>, kind: EventKind) {
        let mut state = self.state.lock();
        // Within the lock, so that times are in the order of the events.
        let at = self.opened.elapsed();
        state.trace.push_event(Event { at, exchange, kind });
    }

    /// Adds a frame that is about to be sent or has just been received.
    pub(super) fn record_frame(&self, direction: Direction, bytes: Bytes) {
        self.record_frame_in(None, direction, bytes);
    }

    fn record_frame_in(&self, exchange: Option<u32>, direction: Direction, bytes: Bytes) {
        let mut state = self.state.lock();
        let at = self.opened.elapsed();
        state.trace.push_event(Event { at, exchange, kind: EventKind::Frame(Frame::new(direction, at, bytes)) });
    }

    /// A number for a new exchange.
    fn new_exchange(&self) -> u32 {
        let mut state = self.state.lock();
        state.exchanges += 1;
        state.exchanges - 1
    }

    /// Ends the trace. Only the first end is kept.
    pub(super) fn close(&self, closed: Closed) {
        self.state.lock().closed.get_or_insert_with(|| (self.opened.elapsed(), closed));
    }

    /// Its client has come on another TCP connection.
    fn join(&self) {
        let mut state = self.state.lock();
        state.connections += 1;
        state.idle = None;
    }

    /// Such a connection has ended. The client may come again.
    fn leave(&self, closed: Closed) {
        let mut state = self.state.lock();
        state.connections = state.connections.saturating_sub(1);
        if state.connections == 0 && state.is_without_session() {
            state.idle = Some((self.opened.elapsed(), closed));
        }
    }

    /// Adds requests of this client, whatever connection they come on.
    fn set_client(&self, client: HttpClient) {
        self.state.lock().client = Some(client);
    }

    /// Remembers the id of a request of 2026-07-28, with the request if it may come again.
    fn note_id(&self, id: &str, request: Option<Bytes>) {
        if let Some(HttpClient::Modern { ids, .. }) = &mut self.state.lock().client {
            if ids.len() >= MAX_IDS {
                ids.clear();
            }
            ids.insert(id.to_owned(), request);
        }
    }

    /// Adds requests that name this session, whatever connection they come on.
    pub(super) fn set_session(&self, id: &str) {
        self.state.lock().session = Some(id.to_owned());
    }

    fn trace(&self) -> Trace {
        let state = self.state.lock();
        let mut trace = state.trace.clone();
        if let Some((at, closed)) = state.closed.as_ref().or(state.idle.as_ref()) {
            let last = trace.events().next_back().map_or(*at, |event| event.at);
            trace.push(last.max(*at), EventKind::Closed(closed.clone()));
        }
        trace
    }
}

/// One HTTP request and its response. It is an extension of the request.
#[derive(Clone, Debug)]
pub(super) struct HttpExchange(Arc<Exchange>);

#[derive(Debug)]
struct Exchange {
    recorder: Arc<ServerRecorder>,
    transport: Transport,
    handle: ConnectionHandle,
    tasks: TaskTracker,
    method: Method,
    /// Whether it may belong to a session that it does not name.
    is_lenient: bool,
    /// Whether the server gives no sessions.
    is_stateless: bool,
    /// Whether it names 2026-07-28.
    is_modern: bool,
    /// The id of a request of 2026-07-28.
    id: OnceLock<String>,
    target: Mutex<Target>,
    /// Its number in the trace, once that is decided.
    number: OnceLock<u32>,
    /// What the request asks for.
    asked: OnceLock<Asked>,
}

/// The trace that an exchange belongs to.
#[derive(Debug)]
enum Target {
    /// Only the body shows whether it opens a session; the head waits for it.
    Undecided(EventKind),
    Connection(Arc<ConnectionTrace>),
    Session(Arc<ConnectionTrace>),
    /// That of a session which `initialize` is about to open.
    NewSession(Arc<ConnectionTrace>),
}

impl HttpExchange {
    /// Records the head of a request. `opens_sessions` says whether `initialize` opens a session on this transport,
    /// `is_lenient` whether a message that names no session belongs to the latest one.
    pub(super) fn begin(
        recorder: &Arc<ServerRecorder>,
        tasks: &TaskTracker,
        request: &Request,
        handle: &ConnectionHandle,
        transport: Transport,
        opens_sessions: bool,
        is_lenient: bool,
    ) -> HttpExchange {
        let session = match transport {
            Transport::Http => request.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok()),
            _ => request.uri().query().and_then(session_of_query),
        };
        let mut exchange = Exchange::new(recorder, tasks, request, handle, transport);
        (exchange.is_lenient, exchange.is_stateless) = (is_lenient, !opens_sessions);
        let is_endpoint = path::path(transport).is_some_and(|path| path == request.uri().path());
        if let Some(trace) = session.and_then(|id| recorder.session(id)) {
            exchange.target_trace(|| Target::Session(trace));
        } else if transport != Transport::Http {
            exchange.target_trace(|| Target::Connection(exchange.connection()));
        } else if !is_endpoint {
            exchange.target_trace(|| Target::Connection(recorder.authorization()));
        } else if let Some(id) = session.filter(|_| opens_sessions) {
            exchange.target_trace(|| exchange.wrong_session(id));
        } else if request.method() != Method::POST {
            exchange.target_trace(|| exchange.without_session());
        }
        HttpExchange(Arc::new(exchange))
    }

    /// Records the head of a request that is about authorization.
    pub(super) fn of_authorization(
        recorder: &Arc<ServerRecorder>,
        tasks: &TaskTracker,
        request: &Request,
        handle: &ConnectionHandle,
    ) -> HttpExchange {
        let exchange = Exchange::new(recorder, tasks, request, handle, Transport::Http);
        exchange.target_trace(|| Target::Connection(recorder.authorization()));
        HttpExchange(Arc::new(exchange))
    }

    /// The trace that the exchange belongs to.
    pub(super) fn trace(&self) -> Arc<ConnectionTrace> {
        self.0.target_trace(|| Target::Connection(self.0.connection()))
    }

    /// Records the body of a request that must be a message.
    pub(super) fn record_body(&self, bytes: &Bytes) {
        let _ = self.0.asked.set(asked(self.0.transport, &self.0.method, bytes));
        let trace = self.0.target_trace(|| self.0.target_of(bytes));
        trace.record_frame_in(self.0.number(), Direction::ClientToServer, bytes.clone());
    }

    /// Records the body of a request that is not a message.
    pub(super) fn record_other_body(&self, bytes: &Bytes) {
        let kind = EventKind::HttpBody { direction: Direction::ClientToServer, bytes: bytes.clone() };
        self.trace().record_in(self.0.number(), kind);
    }

    /// Records the head of the response, and its body as it is sent.
    pub(super) fn respond(&self, response: Response) -> Response {
        let trace = self.trace();
        let (status, headers) = (response.status(), response.headers().clone());
        match &*self.0.target.lock() {
            Target::NewSession(trace) => {
                if let Some(id) = headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()) {
                    trace.set_session(id);
                }
            }
            Target::Session(trace) if status.is_success() && self.0.id.get().is_some() => {
                trace.note_id(self.0.id.get().map(String::as_str).unwrap_or_default(), None);
            }
            Target::Session(trace) if self.0.method == Method::DELETE && status.is_success() => {
                trace.close(Closed::by_client("the client ended the session"));
            }
            _ => {}
        }
        let content = match is_event_stream(&headers) {
            true => Content::Events,
            false => Content::Whole {
                asked: self.0.asked.get().copied().unwrap_or_default(),
                status,
                headers: headers.clone(),
            },
        };
        let number = self.0.number();
        trace.record_in(number, EventKind::HttpResponse { status, headers });
        response.map(|body| match body {
            Body::Whole(bytes) => {
                if let Some(bytes) = &bytes {
                    BodyRecorder::new(trace, number, content, Some(bytes.len() as u64)).record(bytes);
                }
                Body::Whole(bytes)
            }
            Body::Stream(length, stream) => {
                let mut recorder = BodyRecorder::new(trace, number, content, length);
                recorder.is_open = true;
                let ends = stream.map(Some).chain(stream::once(ready(None)));
                let recorded = ends.filter_map(move |bytes| {
                    match &bytes {
                        Some(bytes) => recorder.record(bytes),
                        None => recorder.is_open = false,
                    }
                    ready(bytes)
                });
                Body::Stream(length, recorded.boxed())
            }
        })
    }
}

impl Exchange {
    fn new(
        recorder: &Arc<ServerRecorder>,
        tasks: &TaskTracker,
        request: &Request,
        handle: &ConnectionHandle,
        transport: Transport,
    ) -> Exchange {
        let method = request.method().clone();
        let head = EventKind::HttpRequest {
            method: method.clone(),
            target: request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
            headers: request.headers().clone(),
        };
        Exchange {
            recorder: recorder.clone(),
            transport,
            handle: handle.clone(),
            tasks: tasks.clone(),
            method,
            is_lenient: false,
            is_stateless: false,
            is_modern: request
                .headers()
                .get(VERSION_HEADER)
                .and_then(|version| version.to_str().ok()?.parse::<Version>().ok())
                .is_some_and(|version| version.era() == Era::Modern),
            id: OnceLock::new(),
            target: Mutex::new(Target::Undecided(head)),
            number: OnceLock::new(),
            asked: OnceLock::new(),
        }
    }

    /// The trace of the exchange; `target` decides it on the first call.
    fn target_trace(&self, target: impl FnOnce() -> Target) -> Arc<ConnectionTrace> {
        let mut current = self.target.lock();
        if matches!(*current, Target::Undecided(_)) {
            let before = std::mem::replace(&mut *current, target());
            if let (Some(trace), Target::Undecided(head)) = (current.trace(), before) {
                let number = *self.number.get_or_init(|| trace.new_exchange());
                trace.record_in(Some(number), head);
            }
        }
        current.trace().cloned().unwrap_or_else(|| self.connection())
    }

    fn number(&self) -> Option<u32> {
        self.number.get().copied()
    }

    /// The trace of a message without a session.
    fn target_of(&self, bytes: &Bytes) -> Target {
        let message = Message::parse(bytes);
        if message.as_ref().is_ok_and(|message| message.method() == Some("initialize")) {
            let trace = self.recorder.open(self.transport);
            if self.is_stateless {
                trace.set_client(HttpClient::Legacy);
            }
            self.remember(&trace);
            return Target::NewSession(trace);
        }
        let own = || self.last().filter(|trace| trace.state.lock().is_without_session());
        let latest = || self.recorder.latest_session().filter(|_| self.is_lenient || self.is_stateless);
        let is_legacy = || own().or_else(latest).is_some_and(|trace| trace.state.lock().is_legacy());
        let modern = message.as_ref().ok().and_then(|it| ModernRequest::new(it, bytes, self.is_modern, is_legacy()));
        if let Some(request) = modern {
            return Target::Session(self.modern(request));
        }
        let legacy = own().filter(|trace| trace.state.lock().is_legacy());
        // One that has no connection any more has left, as far as is known.
        let only = || self.recorder.latest(|state| state.is_without_session() && state.idle.is_none());
        let only = || only().filter(|_| self.recorder.latest_session().is_none());
        match legacy.or_else(latest).or_else(own).or_else(only) {
            Some(trace) => Target::Session(trace),
            None => Target::Connection(self.connection()),
        }
    }

    /// The trace of a client of 2026-07-28.
    fn modern(&self, request: ModernRequest) -> Arc<ConnectionTrace> {
        let own = self.last().filter(|trace| trace.state.lock().has_sent(&request, true));
        let trace = own.or_else(|| self.recorder.latest(|state| state.has_sent(&request, false)));
        let ModernRequest { info, id, bytes, .. } = request;
        let trace = trace.unwrap_or_else(|| {
            let trace = self.recorder.open(self.transport);
            trace.set_client(HttpClient::Modern { info, ids: HashMap::new() });
            trace
        });
        if let Some(id) = id {
            trace.note_id(&id, Some(bytes));
            let _ = self.id.set(id);
        }
        self.remember(&trace);
        trace
    }

    /// The trace of a GET or another method without a session.
    fn without_session(&self) -> Target {
        let own = self.last().filter(|trace| trace.state.lock().is_without_session());
        match own.or_else(|| self.recorder.latest(State::is_without_session)) {
            Some(trace) => Target::Session(trace),
            None => Target::Connection(self.connection()),
        }
    }

    /// The trace of a request with the id of no session that is open: that of the client whose session it should be, if
    /// there never was such an id.
    fn wrong_session(&self, id: &str) -> Target {
        let is_session = |state: &State| state.session.is_some() && state.closed.is_none();
        let own = self.last().filter(|trace| is_session(&trace.state.lock()));
        match own.or_else(|| self.recorder.latest(is_session)).filter(|_| !self.recorder.has_known(id)) {
            Some(trace) => Target::Session(trace),
            None => Target::Connection(self.connection()),
        }
    }

    /// The trace of the last client on the TCP connection.
    fn last(&self) -> Option<Arc<ConnectionTrace>> {
        let last = self.handle.data(TcpTraces::default)?.last.lock().clone();
        last.filter(|trace| trace.state.lock().closed.is_none())
    }

    fn remember(&self, trace: &Arc<ConnectionTrace>) {
        let Some(traces) = self.handle.data(TcpTraces::default) else { return };
        let before = traces.last.lock().replace(trace.clone());
        if before.is_none_or(|before| !Arc::ptr_eq(&before, trace)) {
            trace.join();
            let trace = trace.clone();
            self.at_end(move |closed| trace.leave(closed));
        }
    }

    /// Runs this when the TCP connection has ended.
    fn at_end(&self, run: impl FnOnce(Closed) + Send + 'static) {
        let handle = self.handle.clone();
        let end = async move {
            handle.closed().await;
            run(match handle.is_disconnected() {
                true => Closed::by_server("the server broke off the connection").broken(),
                false => Closed::by_client("the connection was closed"),
            });
        };
        // The exchange may be dropped with the runtime.
        if let Ok(runtime) = Handle::try_current() {
            self.tasks.spawn_on(end, &runtime);
        }
    }

    /// The trace of the TCP connection.
    fn connection(&self) -> Arc<ConnectionTrace> {
        let open = || {
            let trace = self.recorder.open(self.transport);
            let closing = trace.clone();
            self.at_end(move |closed| closing.close(closed));
            trace
        };
        let traces = self.handle.data(TcpTraces::default);
        traces.map_or_else(|| self.recorder.open(self.transport), |it| it.own.get_or_init(open).clone())
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // A request that was aborted before its body was complete.
        self.target_trace(|| Target::Connection(self.connection()));
        if let Target::NewSession(trace) = &*self.target.lock()
            && !trace.state.lock().is_legacy()
        {
            trace.close(Closed::by_client("no session was opened"));
        }
    }
}

impl Target {
    fn trace(&self) -> Option<&Arc<ConnectionTrace>> {
        match self {
            Target::Undecided(_) => None,
            Target::Connection(trace) | Target::Session(trace) | Target::NewSession(trace) => Some(trace),
        }
    }
}

/// The id that names a stream of HTTP+SSE.
pub(super) fn session_of_query(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("sessionId="))
}

/// The content of a response body.
#[derive(Debug)]
enum Content {
    /// Server-sent events, each a frame.
    Events,
    /// A frame, if the whole is a message.
    Whole { asked: Asked, status: StatusCode, headers: HeaderMap },
}

/// Records a response body while it is sent. A body that is dropped is recorded as far as it was sent.
struct BodyRecorder {
    trace: Arc<ConnectionTrace>,
    exchange: Option<u32>,
    content: Content,
    /// How many bytes the head announces.
    length: Option<u64>,
    events: Decoder,
    /// The bytes of the whole that were sent.
    sent: BytesMut,
    /// Whether it is a stream that goes on.
    is_open: bool,
}

impl BodyRecorder {
    fn new(trace: Arc<ConnectionTrace>, exchange: Option<u32>, content: Content, length: Option<u64>) -> BodyRecorder {
        BodyRecorder {
            trace,
            exchange,
            content,
            length,
            events: Decoder::new(usize::MAX),
            sent: BytesMut::new(),
            is_open: false,
        }
    }

    fn record(&mut self, bytes: &Bytes) {
        match self.content {
            Content::Events => self.record_events(bytes),
            Content::Whole { .. } => {
                self.sent.extend_from_slice(bytes);
                // Before the client has it all: it may look at the trace at once.
                if self.length.is_some_and(|length| self.sent.len() as u64 >= length) {
                    self.record_whole();
                }
            }
        }
    }

    fn record_events(&mut self, bytes: &[u8]) {
        let mut events = Vec::new();
        // Nothing is too large for the decoder.
        let _ = self.events.push(bytes, &mut events);
        for event in events {
            match event {
                sse::Event { event: Some(ref kind), .. } if !matches!(&**kind, "" | "message") => {
                    self.record_other(event.encode());
                }
                sse::Event { id, retry, data, .. } => {
                    if id.is_some() || retry.is_some() {
                        self.record_other(sse::Event { id, retry, ..sse::Event::default() }.encode());
                    }
                    if let Some(data) = data.filter(|data| !data.is_empty()) {
                        self.trace.record_frame_in(self.exchange, Direction::ServerToClient, data);
                    }
                }
            }
        }
    }

    fn record_whole(&mut self) {
        let bytes = self.sent.split().freeze();
        match &self.content {
            Content::Whole { asked, status, headers } if is_message(*asked, *status, headers, &bytes) => {
                self.trace.record_frame_in(self.exchange, Direction::ServerToClient, bytes);
            }
            _ if bytes.is_empty() => {}
            _ => self.record_other(bytes),
        }
    }

    fn record_other(&self, bytes: Bytes) {
        let kind = EventKind::HttpBody { direction: Direction::ServerToClient, bytes };
        self.trace.record_in(self.exchange, kind);
    }
}

impl Drop for BodyRecorder {
    fn drop(&mut self) {
        match self.content {
            // The missing end of an event that was cut off.
            Content::Events => self.record_events(b"\n\n"),
            Content::Whole { .. } => self.record_whole(),
        }
        if self.is_open {
            self.trace.record_in(self.exchange, EventKind::HttpEnd { is_whole: false });
        }
    }
}
