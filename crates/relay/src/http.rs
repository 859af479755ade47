//! A relay for HTTP: what the client sends goes on over a [`Wire`], and what its recorder sees comes back.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, StatusCode, header};
use rehearse_client::{ClientRecorder, Endpoint, ServerParams, Target, Wire, WireExchange, WireRequest};
use rehearse_net::{Body, BodyError, ConnectionLimit, HostPolicy, Request, Response, Shutdown, accept, read_live_body};
use rehearse_protocol::{
    Closed, MAX_FRAME, Transport, http::is_event_stream, names::SESSION_HEADER, trace_file::ConnectionInfo,
};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    EventSinks, KEPT_EVENTS, RelayError,
    exchange::{ExchangeSink, Exchanges, Part, Parts},
    sessions::{RecordedWire, Sessions},
};

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
/// How large the first event of a stream of HTTP with SSE may be.
const MAX_FIRST_EVENT: usize = 16 << 10;
/// How long the body of a request may pause.
const STALLED: Duration = Duration::from_secs(30);
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
    /// Listens for clients of the server at this URL, over streamable HTTP or HTTP with SSE.
    ///
    /// # Errors
    /// It cannot listen, or the URL is invalid.
    pub async fn start(
        address: SocketAddr,
        url: &str,
        transport: Transport,
        sinks: Arc<EventSinks>,
    ) -> Result<HttpRelay, RelayError> {
        let target = Target::Http(Endpoint { url: url.to_owned(), headers: Vec::new() });
        target.check()?;
        let cannot = |source| RelayError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let uri: http::Uri = url.parse().map_err(|source| RelayError::Url { url: url.to_owned(), source })?;
        let params = ServerParams::new(uri.host().unwrap_or("server"), target);
        let relay = Arc::new(Relay {
            sinks,
            server: Wire::open(&params, None, ClientRecorder::with_limit(KEPT_EVENTS)).await?,
            name: params.name,
            origin: format!(
                "{}://{}",
                uri.scheme_str().unwrap_or("http"),
                uri.authority().map_or("", |it| it.as_str())
            ),
            transport,
            hosts: HostPolicy::new(address.ip(), []),
            sessions: Sessions::default(),
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
        &self.relay.name
    }

    /// Ends all connections.
    pub async fn stop(self) {
        self.shutdown.end(GRACE).await;
        let _ = self.accepting.await;
        self.relay.sessions.close(&Closed::by_limit("the recorder was ended"));
    }
}

struct Relay {
    sinks: Arc<EventSinks>,
    /// Has the TCP connections of all sessions, and sends nothing itself.
    server: Wire,
    name: String,
    /// Scheme and authority of the server.
    origin: String,
    transport: Transport,
    hosts: HostPolicy,
    sessions: Sessions,
}

impl Relay {
    async fn answer(&self, request: Request) -> Response {
        if let Err(reason) = self.hosts.check(request.headers(), request.uri()) {
            return refusal(StatusCode::FORBIDDEN, &reason.to_string());
        }
        let (head, body) = request.into_parts();
        let body = match read_live_body(body, MAX_FRAME, STALLED).await {
            Ok(body) => body,
            Err(BodyError::Stalled(_)) => return refusal(StatusCode::REQUEST_TIMEOUT, "the body stalls"),
            Err(_) => return refusal(StatusCode::BAD_REQUEST, "the body broke off, or is too large"),
        };
        let session = match self.transport {
            Transport::Sse => head.uri.path_and_query().map(http::uri::PathAndQuery::as_str),
            _ => head.headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()),
        };
        // With SSE the stream comes first, and the answers to all requests are in it.
        let opens = match self.transport {
            Transport::Sse => head.method == Method::GET,
            _ => serde_json::from_slice::<serde_json::Value>(&body).is_ok_and(|it| it["method"] == "initialize"),
        };
        let Some(wire) = self.wire(session, opens) else {
            return refusal(StatusCode::BAD_GATEWAY, "the server is not one over HTTP");
        };
        wire.wire.recorder().room(None).await;
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

    /// The connection that a request belongs to; a new one, if the request opens it.
    fn wire(&self, session: Option<&str>, opens: bool) -> Option<Arc<RecordedWire>> {
        let latest = || self.sessions.find(None).filter(|_| self.transport == Transport::Sse);
        if let Some(known) = self.sessions.find(session).or_else(latest).filter(|_| !opens) {
            return Some(known);
        }
        let recorder = ClientRecorder::with_limit(KEPT_EVENTS);
        let write = (self.sinks)(&ConnectionInfo::new(self.name.clone(), self.transport));
        let exchanges: Arc<Exchanges> = Arc::default();
        recorder.set_sink(Box::new(ExchangeSink { write, exchanges: exchanges.clone() }));
        let wire = Arc::new(RecordedWire { wire: self.server.another_over(self.transport, recorder)?, exchanges });
        match session.filter(|_| !opens) {
            Some(id) => self.sessions.insert(id, wire.clone()),
            None => self.sessions.set_latest(wire.clone()),
        }
        Some(wire)
    }

    /// The response of the server, as it comes.
    async fn response(&self, wire: Arc<RecordedWire>, mut exchange: WireExchange) -> Response {
        let Some(mut parts) = Parts::take(&wire.exchanges, exchange.number) else {
            return refusal(StatusCode::BAD_GATEWAY, "the exchange has ended");
        };
        let head = tokio::select! {
            biased;
            part = parts.next() => part,
            _ = exchange.ended(FOREVER) => parts.try_next(),
        };
        let Some(Part::Head(status, mut headers)) = head else {
            return refusal(StatusCode::BAD_GATEWAY, "the server cannot be reached");
        };
        if let Some(id) = headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()) {
            self.sessions.insert(id, wire.clone());
        }
        OWN_HEADERS.iter().for_each(|name| drop(headers.remove(name)));
        let is_stream = self.transport == Transport::Sse && status.is_success() && is_event_stream(&headers);
        let first = if is_stream { Some(self.endpoint_event(&mut parts, &wire).await) } else { None };
        // If the client gives the body up, so does the relay.
        let relayed = (parts, exchange, wire);
        let body = stream::unfold(relayed, |mut relayed| async {
            match relayed.0.next().await? {
                Part::Bytes(bytes) => Some((bytes, relayed)),
                Part::Head(..) | Part::End => None,
            }
        });
        let body = stream::iter(first).chain(body);
        let mut response = Response::new(Body::stream(body));
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        response
    }

    /// The beginning of a stream, up to the event that names where its messages go, which belong to this connection
    /// (2024-11-05, HTTP with SSE). It names the relay if it names the server.
    async fn endpoint_event(&self, parts: &mut Parts, wire: &Arc<RecordedWire>) -> Bytes {
        let mut begun = Vec::new();
        while begun.len() < MAX_FIRST_EVENT && !ends_event(&begun) {
            match parts.next().await {
                Some(Part::Bytes(bytes)) => begun.extend_from_slice(&bytes),
                Some(Part::Head(..) | Part::End) | None => break,
            }
        }
        let Ok(text) = std::str::from_utf8(&begun) else { return begun.into() };
        let text = text.replace(&format!("data: {}/", self.origin), "data: /");
        let named = text.lines().find_map(|line| line.strip_prefix("data:")).map(str::trim);
        if let Some(path) = named.filter(|path| path.starts_with('/')) {
            self.sessions.insert(path, wire.clone());
        }
        text.into()
    }
}

/// Whether bytes have the end of an event that is no comment.
fn ends_event(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    text.split_inclusive("\n\n").any(|event| event.ends_with("\n\n") && event.contains("data:"))
}

fn refusal(status: StatusCode, reason: &str) -> Response {
    let mut response = Response::new(Body::whole(format!("{reason}\n")));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use std::{
        net::Ipv4Addr,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;

    /// A server that gives each `initialize` a session; counts its connections.
    async fn server() -> (SocketAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("binds");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let (counted, sessions) = (connections.clone(), Arc::new(AtomicUsize::new(0)));
        let service = move |_: Request, _: &_| {
            let number = sessions.fetch_add(1, Ordering::Relaxed);
            async move {
                let mut response = Response::new(Body::whole("{}"));
                let id = http::HeaderValue::from_str(&format!("session-{number}")).expect("ASCII");
                response.headers_mut().insert(SESSION_HEADER, id);
                response
            }
        };
        // Passes each connection on, so that it can be counted.
        let inner = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("binds");
        let behind = inner.local_addr().expect("an address");
        tokio::spawn(accept(inner, ConnectionLimit::default(), Shutdown::default(), service));
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let mut far = TcpStream::connect(behind).await.expect("connects");
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
            }
        });
        (address, connections)
    }

    #[tokio::test]
    async fn all_sessions_share_the_connections_to_the_server() {
        let (server, connections) = server().await;
        let opened = Arc::new(AtomicUsize::new(0));
        let counted = opened.clone();
        let sinks = Arc::new(move |_: &ConnectionInfo| -> Box<dyn rehearse_client::EventSink> {
            counted.fetch_add(1, Ordering::Relaxed);
            Box::new(|_: &rehearse_protocol::Event| {})
        });
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let relay =
            HttpRelay::start(any, &format!("http://{server}/mcp"), Transport::Http, sinks).await.expect("starts");
        for _ in 0..5 {
            let mut client = TcpStream::connect(relay.address).await.expect("connects");
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
            let head = format!("POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close", relay.address);
            let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            client.write_all(request.as_bytes()).await.expect("sends");
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.expect("UTF-8");
            assert!(answer.contains("session-"), "{answer}");
        }
        relay.stop().await;
        assert_eq!(opened.load(Ordering::Relaxed), 5);
        assert!(connections.load(Ordering::Relaxed) < 5, "{connections:?}");
    }
}
