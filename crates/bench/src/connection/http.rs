//! Requests over streamable HTTP: each requester has a socket of its own, which it opens again when the server closes it.
//!
//! A `Wire` records what it sends. The same calls took 1.9 times as long with it, and 1.6 times with 32 at once (2026-12-01).

use std::{
    error::Error,
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{AUTHORIZATION, HOST, RETRY_AFTER},
};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
    rt::{Read, Write},
};
use hyper_util::rt::TokioIo;
use rehearse_client::{ConnectError, Endpoint};
use rehearse_net::{BodyError, read_body, tls};
use rehearse_protocol::{
    MAX_FRAME, Message, Version, http::is_event_stream, is_protocol_header, names::SESSION_HEADER, sse,
};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_rustls::TlsConnector;
use url::Url;

use super::{Exchange, NoAnswer, OpenError};
use crate::request::{PreparedRequest, exchange};

/// How long a stream may stay open after the response that it exists for.
const LINGER: Duration = Duration::from_millis(200);

/// A session over streamable HTTP, or what all requests of the modern era share.
pub(crate) struct HttpConnection {
    url: Url,
    /// Path and query.
    path: String,
    /// The headers of each request but those of the protocol.
    headers: HeaderMap,
    session: OnceLock<HeaderValue>,
    /// The header that names the version.
    version: HeaderMap,
}

/// A socket.
pub(crate) struct HttpRequester {
    connection: Arc<HttpConnection>,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl HttpConnection {
    pub(super) fn new(at: &Endpoint, version: Version) -> Result<HttpConnection, OpenError> {
        let invalid = |why: String| OpenError::Connect(ConnectError::Invalid(why));
        let url = Url::parse(&at.url).map_err(|error| invalid(format!("{:?} is not a URL: {error}", at.url)))?;
        let host = url.host_str().ok_or_else(|| invalid(format!("{:?} has no host", at.url)))?;
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| invalid(error.to_string()));
        let mut headers = HeaderMap::new();
        if let (user, Some(password)) = (url.username(), url.password()) {
            headers.insert(
                AUTHORIZATION,
                value(&format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}"))))?,
            );
        }
        for (name, text) in at.headers.iter().filter(|(name, _)| !is_protocol_header(name)) {
            let parsed = name.parse::<HeaderName>();
            let parsed = parsed.map_err(|_| invalid(format!("the header {name:?} has an invalid name")))?;
            headers.insert(parsed, value(text)?);
        }
        headers.insert(HOST, value(&host)?);
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        Ok(HttpConnection {
            url,
            path,
            headers,
            session: OnceLock::new(),
            version: exchange(version).session_headers(&Method::DELETE),
        })
    }

    fn request(&self, body: Bytes, protocol: &HeaderMap) -> Request<Full<Bytes>> {
        let mut headers = self.headers.clone();
        headers.extend(protocol.iter().map(|(name, value)| (name.clone(), value.clone())));
        if let Some(session) = self.session.get() {
            headers.insert(SESSION_HEADER, session.clone());
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.parse().unwrap_or_default();
        *request.headers_mut() = headers;
        request
    }

    /// Opens a socket.
    async fn connect(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = self.url.port_or_known_default().unwrap_or(80);
        let socket = TcpStream::connect((host, port)).await?;
        socket.set_nodelay(true)?;
        if self.url.scheme() != "https" {
            return begin(TokioIo::new(socket)).await;
        }
        let name = host.to_owned().try_into().map_err(io::Error::other)?;
        let stream = TlsConnector::from(tls::config()).connect(name, socket).await?;
        begin(TokioIo::new(stream)).await
    }

    /// Ends the session, if there is one (2025-11-25, Streamable HTTP: Session Management).
    pub(super) async fn end_session(&self) {
        if self.session.get().is_none() {
            return;
        }
        let mut request = self.request(Bytes::new(), &self.version);
        *request.method_mut() = Method::DELETE;
        let ending = async {
            let mut sender = self.connect().await.ok()?;
            sender.send_request(request).await.ok()
        };
        // A server may refuse it, or be gone.
        let _ = timeout(Duration::from_secs(2), ending).await;
    }
}

async fn begin<S>(stream: S) -> io::Result<SendRequest<Full<Bytes>>>
where
    S: Read + Write + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
    // It ends with its sender.
    tokio::spawn(connection);
    Ok(sender)
}

impl HttpRequester {
    pub(super) fn new(connection: Arc<HttpConnection>) -> HttpRequester {
        HttpRequester { connection, sender: None }
    }

    /// Sends a request on the socket, or on a new one if it is not open.
    async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>, NoAnswer> {
        if let Some(mut sender) = self.sender.take().filter(|sender| !sender.is_closed())
            && sender.ready().await.is_ok()
        {
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.sender = Some(sender);
                    return Ok(response);
                }
                // A server may close a socket that is idle at any time; then nothing was sent.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(broken(error.into_error())),
                },
            }
        }
        let opened = self.connection.connect().await;
        let mut sender = opened.map_err(|error| NoAnswer::Failed(format!("cannot connect: {error}")))?;
        let response = sender.send_request(request).await.map_err(broken)?;
        self.sender = Some(sender);
        Ok(response)
    }

    pub(super) async fn exchange(&mut self, request: &PreparedRequest<'_>) -> Result<Exchange, NoAnswer> {
        let http = self.connection.request(request.body.clone(), request.headers);
        let response = self.send(http).await?;
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            self.skip(response).await;
            return Err(NoAnswer::Throttled(wait.map(Duration::from_secs)));
        }
        if request.method == "initialize"
            && let Some(session) = response.headers().get(SESSION_HEADER)
        {
            let _ = self.connection.session.set(session.clone());
        }
        let status = response.status();
        if is_event_stream(response.headers()) && status.is_success() {
            return self.read_stream(response).await;
        }
        let reply = whole(response).await?;
        let end = Instant::now();
        match status.is_success() || Message::parse(&reply).is_ok() {
            true => Ok(Exchange { first_event: None, end, reply }),
            false => Err(NoAnswer::Failed(format!("HTTP {}", status.as_u16()))),
        }
    }

    /// Reads events up to the response.
    async fn read_stream(&mut self, response: Response<Incoming>) -> Result<Exchange, NoAnswer> {
        let mut body = response.into_body();
        let (mut decoder, mut events) = (sse::Decoder::default(), Vec::new());
        let mut first_event = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(broken)?;
            let Some(bytes) = frame.data_ref() else { continue };
            decoder.push(bytes, &mut events).map_err(|error| NoAnswer::Failed(error.to_string()))?;
            let now = Instant::now();
            // An event without data only has an id to resume at.
            for reply in events.drain(..).filter_map(|event| event.data).filter(|data| !data.is_empty()) {
                let first_event = *first_event.get_or_insert(now);
                let is_answer = matches!(Message::parse(&reply), Ok(Message::Response(_)) | Err(_));
                if !is_answer {
                    continue;
                }
                // The socket can be used again only after the end of the stream.
                let rest = async { while body.frame().await.is_some_and(|frame| frame.is_ok()) {} };
                if timeout(LINGER, rest).await.is_err() {
                    self.sender = None;
                }
                return Ok(Exchange { first_event: Some(first_event), end: now, reply });
            }
        }
        Err(NoAnswer::Failed("a stream that ended without the response".to_owned()))
    }

    /// Reads what is of no use, so that the socket can be used again.
    async fn skip(&mut self, response: Response<Incoming>) {
        if whole(response).await.is_err() {
            self.sender = None;
        }
    }

    pub(super) async fn notify(&mut self, bytes: Bytes, headers: &HeaderMap) -> Result<(), NoAnswer> {
        let request = self.connection.request(bytes, headers);
        let response = self.send(request).await?;
        let status = response.status();
        self.skip(response).await;
        match status.is_success() {
            true => Ok(()),
            false => Err(NoAnswer::Failed(format!("HTTP {}", status.as_u16()))),
        }
    }
}

async fn whole(response: Response<Incoming>) -> Result<Bytes, NoAnswer> {
    read_body(response.into_body(), MAX_FRAME).await.map_err(|error| match error {
        BodyError::Broken(error) => broken(error),
        _ => NoAnswer::Failed(format!("a response of more than {MAX_FRAME} bytes")),
    })
}

fn broken(error: hyper::Error) -> NoAnswer {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    NoAnswer::Failed(match cause {
        Some(cause) => cause.kind().to_string(),
        None if error.is_incomplete_message() || error.is_closed() => "the connection was closed".to_owned(),
        None if error.is_parse() => "a response that is not HTTP".to_owned(),
        None => error.to_string(),
    })
}
