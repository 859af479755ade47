//! One HTTP request with its response, and the trace that it belongs to.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use futures_util::{StreamExt, future::ready, stream};
use http::Method;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::{
    connection_trace::{ConnectionTrace, HttpClient, ModernRequest, State},
    path,
    recorder::ServerRecorder,
    response_recorder::{Content, ResponseRecorder},
};
use rehearse_net::{Body, ConnectionHandle, Request, Response};
use rehearse_protocol::{
    Closed, Direction, Era, EventKind, Message, Transport, Version,
    http::{Asked, asked, is_event_stream},
    names::{SESSION_HEADER, VERSION_HEADER},
};

/// The traces of what came over a TCP connection.
#[derive(Debug, Default)]
struct TcpTraces {
    /// That of what belongs to no client.
    own: OnceLock<Arc<ConnectionTrace>>,
    /// That of the last client.
    last: Mutex<Option<Arc<ConnectionTrace>>>,
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
                    ResponseRecorder::new(trace, number, content, Some(bytes.len() as u64)).record(bytes);
                }
                Body::Whole(bytes)
            }
            Body::Stream(length, stream) => {
                let mut recorder = ResponseRecorder::new(trace, number, content, length);
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
    /// there never was such an id. Of several clients it may be any, and its session that of a mock before this one.
    fn wrong_session(&self, id: &str) -> Target {
        let is_session = |state: &State| state.session.is_some() && state.closed.is_none();
        let own = self.last().filter(|trace| is_session(&trace.state.lock()));
        let only = || self.recorder.latest(is_session).filter(|_| self.recorder.sessions() == 1);
        match own.or_else(only).filter(|_| !self.recorder.has_known(id)) {
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
