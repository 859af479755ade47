//! A relay for HTTP: what the client sends goes on over a [`Wire`], and what its recorder sees comes back.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, StatusCode, header};
use parking_lot::Mutex;
use rehearse_client::{ClientRecorder, ConnectError, Endpoint, ServerParams, Target, Wire, WireExchange, WireRequest};
use rehearse_net::{Body, ConnectionLimit, HostPolicy, Request, Response, Shutdown, accept, read_body};
use rehearse_protocol::{
    Closed, Direction, Event, EventKind, MAX_FRAME, Transport, http::is_event_stream, names::SESSION_HEADER,
    trace_file::ConnectionInfo,
};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

use crate::{EventSinks, KEPT_EVENTS, RelayError};

/// Headers about a connection; a compressed body could not be recorded.
const OWN_HEADERS: [header::HeaderName; 6] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::ACCEPT_ENCODING,
    header::UPGRADE,
];
/// How long the end of an exchange is waited for: an event stream may stay open.
const FOREVER: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long requests in progress may take at the end.
const GRACE: Duration = Duration::from_millis(200);

/// A relay between clients over streamable HTTP and a server.
pub struct HttpRelay {
    address: SocketAddr,
    path: String,
    relay: Arc<Relay>,
    shutdown: Shutdown,
    accepting: JoinHandle<()>,
}

impl HttpRelay {
    /// Listens for clients of the server at this URL.
    ///
    /// # Errors
    /// It cannot listen, or the URL is invalid.
    pub async fn start(address: SocketAddr, url: &str, sinks: Arc<EventSinks>) -> Result<HttpRelay, RelayError> {
        let target = Target::Http(Endpoint { url: url.to_owned(), headers: Vec::new() });
        target.check()?;
        let cannot = |source| RelayError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let uri: http::Uri = url.parse().map_err(|source| RelayError::Url { url: url.to_owned(), source })?;
        let relay = Arc::new(Relay {
            sinks,
            params: ServerParams::new(uri.host().unwrap_or("server"), target),
            hosts: HostPolicy::new(address.ip(), []),
            wires: Mutex::default(),
        });
        let shutdown = Shutdown::default();
        let served = relay.clone();
        let service = move |request: Request, _: &_| {
            let relay = served.clone();
            async move { relay.answer(request).await }
        };
        let accepting = tokio::spawn(accept(listener, ConnectionLimit::default(), shutdown.clone(), service));
        Ok(HttpRelay { address, path: uri.path().to_owned(), relay, shutdown, accepting })
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    /// The name of the server: its host.
    pub fn server(&self) -> &str {
        &self.relay.params.name
    }

    /// Ends all connections.
    pub async fn stop(self) {
        self.shutdown.end(GRACE).await;
        let _ = self.accepting.await;
        for wire in &self.relay.wires.lock().all {
            wire.wire.recorder().close(Closed::by_limit("the recorder was ended"));
        }
    }
}

struct Relay {
    sinks: Arc<EventSinks>,
    params: ServerParams,
    hosts: HostPolicy,
    wires: Mutex<Wires>,
}

/// A connection of the trace for each session, and one for requests without a session.
#[derive(Default)]
struct Wires {
    sessions: HashMap<String, Arc<RecordedWire>>,
    latest: Option<Arc<RecordedWire>>,
    all: Vec<Arc<RecordedWire>>,
}

struct RecordedWire {
    wire: Wire,
    exchanges: Arc<Exchanges>,
}

/// The exchanges in progress, by number. Either side may come first.
type Exchanges = Mutex<HashMap<u32, Exchange>>;

struct Exchange {
    parts: mpsc::UnboundedSender<Part>,
    /// Until the relay takes it.
    received: Option<mpsc::UnboundedReceiver<Part>>,
    is_stream: bool,
}

/// A part of a response.
enum Part {
    Head(StatusCode, HeaderMap),
    Bytes(Bytes),
    End,
}

impl Default for Exchange {
    fn default() -> Self {
        let (parts, received) = mpsc::unbounded_channel();
        Exchange { parts, received: Some(received), is_stream: false }
    }
}

impl Relay {
    async fn answer(&self, request: Request) -> Response {
        if let Err(reason) = self.hosts.check(request.headers(), request.uri()) {
            return refusal(StatusCode::FORBIDDEN, &reason.to_string());
        }
        let (head, body) = request.into_parts();
        let Ok(body) = read_body(body, MAX_FRAME).await else {
            return refusal(StatusCode::BAD_REQUEST, "the body broke off, or is too large");
        };
        let session = head.headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok());
        let wire = match self.wire(session, &body).await {
            Ok(wire) => wire,
            Err(error) => return refusal(StatusCode::BAD_GATEWAY, &error.to_string()),
        };
        let mut headers = head.headers;
        OWN_HEADERS.iter().for_each(|name| drop(headers.remove(name)));
        let path = head.uri.path_and_query().map(ToString::to_string);
        let body = (!body.is_empty()).then_some(body);
        let request = WireRequest { method: head.method, path, headers, body, ..WireRequest::default() };
        match wire.wire.exchange(request) {
            Ok(exchange) => self.response(wire, exchange).await,
            Err(error) => refusal(StatusCode::BAD_GATEWAY, &error.to_string()),
        }
    }

    /// The connection that a request belongs to.
    async fn wire(&self, session: Option<&str>, body: &[u8]) -> Result<Arc<RecordedWire>, ConnectError> {
        let is_initialize =
            serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|it| it["method"] == "initialize");
        {
            let wires = self.wires.lock();
            let known = session.and_then(|id| wires.sessions.get(id)).or(wires.latest.as_ref());
            if let Some(known) = known.filter(|_| !is_initialize) {
                return Ok(known.clone());
            }
        }
        let recorder = ClientRecorder::with_limit(KEPT_EVENTS);
        let info = ConnectionInfo::new(self.params.name.clone(), Transport::Http);
        let write = (self.sinks)(&info);
        let exchanges: Arc<Exchanges> = Arc::default();
        let pending = exchanges.clone();
        recorder.set_sink(Box::new(move |event| {
            write(event);
            forward(&pending, event);
        }));
        let wire = Wire::open(&self.params, None, recorder).await?;
        let wire = Arc::new(RecordedWire { wire, exchanges });
        let mut wires = self.wires.lock();
        wires.latest = Some(wire.clone());
        wires.all.push(wire.clone());
        Ok(wire)
    }

    /// The response of the server, as it comes.
    async fn response(&self, wire: Arc<RecordedWire>, mut exchange: WireExchange) -> Response {
        let number = exchange.number;
        let received = wire.exchanges.lock().entry(number).or_default().received.take();
        let Some(mut parts) = received else { return refusal(StatusCode::BAD_GATEWAY, "the exchange has ended") };
        let head = tokio::select! {
            biased;
            part = parts.recv() => part,
            _ = exchange.ended(FOREVER) => parts.try_recv().ok(),
        };
        let Some(Part::Head(status, mut headers)) = head else {
            return refusal(StatusCode::BAD_GATEWAY, "the server cannot be reached");
        };
        if let Some(id) = headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()) {
            self.wires.lock().sessions.insert(id.to_owned(), wire.clone());
        }
        OWN_HEADERS.iter().for_each(|name| drop(headers.remove(name)));
        let relayed = RelayedBody { wire, _exchange: exchange, parts, number };
        let body = stream::unfold(relayed, |mut relayed| async {
            match relayed.parts.recv().await? {
                Part::Bytes(bytes) => Some((bytes, relayed)),
                Part::Head(..) | Part::End => None,
            }
        });
        let mut response = Response::new(Body::stream(body));
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        response
    }
}

/// A body that is being relayed. If the client gives it up, so does the relay.
struct RelayedBody {
    wire: Arc<RecordedWire>,
    _exchange: WireExchange,
    parts: mpsc::UnboundedReceiver<Part>,
    number: u32,
}

impl Drop for RelayedBody {
    fn drop(&mut self) {
        self.wire.exchanges.lock().remove(&self.number);
    }
}

/// Passes an event on to the exchange that it belongs to.
fn forward(exchanges: &Exchanges, event: &Event) {
    let part = match &event.kind {
        EventKind::HttpResponse { status, headers } => Part::Head(*status, headers.clone()),
        EventKind::HttpBody { direction: Direction::ServerToClient, bytes } => Part::Bytes(bytes.clone()),
        EventKind::Frame(frame) if frame.direction == Direction::ServerToClient => Part::Bytes(frame.bytes.clone()),
        EventKind::HttpEnd { .. } => Part::End,
        _ => return,
    };
    let Some(number) = event.exchange else { return };
    let mut exchanges = exchanges.lock();
    let exchange = exchanges.entry(number).or_default();
    if let Part::Head(_, headers) = &part {
        exchange.is_stream = is_event_stream(headers);
    }
    // The bytes of an event stream are there as they came, besides its frames.
    if !(exchange.is_stream && event.frame().is_some()) {
        let _ = exchange.parts.send(part);
    }
}

fn refusal(status: StatusCode, reason: &str) -> Response {
    let mut response = Response::new(Body::whole(format!("{reason}\n")));
    *response.status_mut() = status;
    response
}
