//! A relay for HTTP: what the recorded client sends goes on over a [`Wire`], and what its recorder sees comes back.

use std::{collections::HashMap, future::poll_fn, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, StatusCode, header};
use hyper::body::Body as _;
use parking_lot::Mutex;
use tokio::{net::TcpListener, sync::mpsc};

use super::KEPT_EVENTS;
use crate::cli::{
    Exit, Failure,
    secrets::Secrets,
    signals::Signals,
    style::{self, printable},
    trace_file::TraceFileWriter,
};
use rehearse_client::{Endpoint, ServerParams, Target, TraceRecorder, Wire, WireExchange, WireRequest};
use rehearse_net::{Body, ConnectionLimit, HostPolicy, Request, Response, Shutdown, accept};
use rehearse_protocol::{Closed, Direction, Event, EventKind, MAX_FRAME, Transport, trace_file::ConnectionInfo};

const SESSION: &str = "mcp-session-id";
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

/// Serves until a signal arrives.
///
/// # Errors
/// It cannot listen, or the URL is invalid.
pub(super) async fn serve(
    address: SocketAddr,
    url: &str,
    file: &TraceFileWriter,
    show_secrets: bool,
) -> Result<Exit, Failure> {
    let mut signals = Signals::install().map_err(|error| Failure::cannot(format!("cannot handle signals: {error}")))?;
    let target = Target::Http(Endpoint { url: url.to_owned(), headers: Vec::new() });
    target.check().map_err(|error| Failure::Usage(error.to_string()))?;
    let cannot = |error| Failure::cannot(format!("cannot listen on {address}: {error}"));
    let listener = TcpListener::bind(address).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let secrets = (!show_secrets).then(|| Secrets::from_target(&target));
    let uri: http::Uri = url.parse().map_err(|error| Failure::Usage(format!("{url:?} is not a URL: {error}")))?;
    let relay = Arc::new(Relay {
        file: file.clone(),
        secrets,
        params: ServerParams::new(uri.host().unwrap_or("server"), target),
        hosts: HostPolicy::new(address.ip(), []),
        wires: Mutex::default(),
    });
    style::print(&format!("{} is recorded at http://{address}{}\n", printable(&relay.params.name), uri.path()));
    let shutdown = Shutdown::default();
    let served = relay.clone();
    let service = move |request: Request, _: &_| {
        let relay = served.clone();
        async move { relay.answer(request).await }
    };
    let accepting = tokio::spawn(accept(listener, ConnectionLimit::default(), shutdown.clone(), service));
    signals.next().await;
    shutdown.end(GRACE).await;
    let _ = accepting.await;
    relay
        .wires
        .lock()
        .all
        .iter()
        .for_each(|wire| wire.wire.recorder().close(Closed::by_limit("the recorder was ended")));
    Ok(Exit::Success)
}

struct Relay {
    file: TraceFileWriter,
    secrets: Option<Secrets>,
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
            return refusal(StatusCode::FORBIDDEN, &reason);
        }
        let (head, body) = request.into_parts();
        let Some(body) = whole(body).await else {
            return refusal(StatusCode::BAD_REQUEST, "the body broke off, or is too large");
        };
        let session = head.headers.get(SESSION).and_then(|id| id.to_str().ok());
        let wire = match self.wire(session, &body).await {
            Ok(wire) => wire,
            Err(error) => return refusal(StatusCode::BAD_GATEWAY, &error),
        };
        let mut headers = head.headers;
        OWN_HEADERS.iter().for_each(|name| drop(headers.remove(name)));
        let path = head.uri.path_and_query().map(ToString::to_string);
        let body = (!body.is_empty()).then_some(body);
        let request = WireRequest { method: head.method, path, headers, body, ..WireRequest::default() };
        match wire.wire.exchange(request) {
            Ok(exchange) => self.response(wire, exchange).await,
            Err(error) => refusal(StatusCode::BAD_GATEWAY, &error),
        }
    }

    /// The connection that a request belongs to.
    async fn wire(&self, session: Option<&str>, body: &[u8]) -> Result<Arc<RecordedWire>, String> {
        let is_initialize =
            serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|it| it["method"] == "initialize");
        {
            let wires = self.wires.lock();
            let known = session.and_then(|id| wires.sessions.get(id)).or(wires.latest.as_ref());
            if let Some(known) = known.filter(|_| !is_initialize) {
                return Ok(known.clone());
            }
        }
        let recorder = TraceRecorder::with_limit(KEPT_EVENTS);
        let info = ConnectionInfo::new(self.params.name.clone(), Transport::Http);
        let write = self.file.connection(&info, self.secrets.clone());
        let exchanges: Arc<Exchanges> = Arc::default();
        let pending = exchanges.clone();
        recorder.set_sink(Box::new(move |event| {
            write(event);
            forward(&pending, event);
        }));
        let wire = Wire::open(&self.params, None, recorder).await.map_err(|error| error.to_string())?;
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
        if let Some(id) = headers.get(SESSION).and_then(|id| id.to_str().ok()) {
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
        let media_type = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
        exchange.is_stream = media_type.starts_with("text/event-stream");
    }
    // The bytes of an event stream are there as they came, besides its frames.
    if !(exchange.is_stream && event.frame().is_some()) {
        let _ = exchange.parts.send(part);
    }
}

/// The whole body, unless it is too large or breaks off.
async fn whole(mut body: hyper::body::Incoming) -> Option<Bytes> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(data) = frame.ok()?.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > MAX_FRAME {
            return None;
        }
    }
    Some(bytes.freeze())
}

fn refusal(status: StatusCode, reason: &str) -> Response {
    let mut response = Response::new(Body::whole(format!("{reason}\n")));
    *response.status_mut() = status;
    response
}
