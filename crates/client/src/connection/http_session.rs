//! Streamable HTTP as a session uses it: a POST for each message, streams that go on over many connections, and the end
//! of the session.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};

use crate::{
    exchange::Exchange,
    transport::{
        Authorization, HeaderChange, HttpEndpoint, ResponseBody, StreamEnd, WireError, WireExchange, WireRequest,
        WireResponse, change_headers,
    },
};
use rehearse_protocol::{
    Era, Message,
    http::{JSON, media_type},
    names::LAST_EVENT_HEADER,
};

const LAST_EVENT: HeaderName = HeaderName::from_static(LAST_EVENT_HEADER);
/// Between connections without events, if the server sets no time.
const PAUSE: Duration = Duration::from_millis(500);
/// How long the end of a session may take.
const END: Duration = Duration::from_secs(5);
/// How much of the body of a refusal is quoted.
const MAX_QUOTE: usize = 64 << 10;

/// The HTTP side of one session.
pub(crate) struct HttpSession {
    endpoint: Arc<HttpEndpoint>,
    exchange: Arc<Mutex<Exchange>>,
    /// Whether the server has refused a request because it no longer knows the session.
    is_lost: AtomicBool,
    /// Whether the server has answered the GET for its own messages.
    is_listening: watch::Sender<bool>,
}

impl HttpSession {
    pub(crate) fn new(endpoint: Arc<HttpEndpoint>, exchange: Arc<Mutex<Exchange>>) -> HttpSession {
        HttpSession { endpoint, exchange, is_lost: AtomicBool::new(false), is_listening: watch::Sender::new(false) }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    pub(crate) fn era(&self) -> Era {
        self.exchange.lock().version().era()
    }

    /// Posts a message, with these changes of its headers.
    ///
    /// # Errors
    /// [`WireError::Invalid`] for a header that cannot be sent.
    pub(crate) fn begin_post(
        &self,
        body: Bytes,
        changes: &[HeaderChange],
        authorization: Authorization,
    ) -> Result<WireExchange, WireError> {
        let method = Message::parse(&body).ok().and_then(|message| message.method().map(str::to_owned));
        let mut headers = self.exchange.lock().headers(method.as_deref(), &body);
        change_headers(&mut headers, changes)?;
        let request = WireRequest { method: Method::POST, headers, body: Some(body), ..WireRequest::default() };
        self.endpoint.begin(request, authorization)
    }

    /// Reads the response to a message with this method to the end; a stream that ends too early is opened again
    /// (2025-11-25, Streamable HTTP: Resumability and Redelivery). `Ok` is the message in the body, if it is no stream.
    ///
    /// # Errors
    /// [`WireError::Status`] for a status without an answer, [`WireError::Malformed`] if there cannot be an answer any more,
    /// and why the response broke or did not come.
    pub(crate) async fn finish_post(
        &self,
        method: Option<&str>,
        exchange: WireExchange,
    ) -> Result<Option<Bytes>, WireError> {
        let is_request = method.is_some_and(|method| !method.starts_with("notifications/"));
        let WireResponse { head, body, redirection } = exchange.response().await?;
        let status = head.status;
        match body {
            // Nothing can come of it any more (2025-11-25, Streamable HTTP: Sending Messages to the Server).
            _ if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) => match is_request {
                true => {
                    let text = format!("HTTP {} without an answer to the request", status.as_u16());
                    Err(WireError::Malformed(text))
                }
                false => Ok(None),
            },
            body if !status.is_success() => self.refused(status, body, redirection, method),
            ResponseBody::Events(end) => self.resume(end).await.map(|()| None),
            ResponseBody::Message(message) if media_type(&head.headers) == JSON => Ok(Some(message)),
            ResponseBody::Other(body) if body.is_empty() && !is_request => Ok(None),
            _ => {
                let media_type = media_type(&head.headers);
                let hint = match media_type == "text/html" {
                    true => "; is it the URL of an MCP server? its path is often /mcp",
                    false => "",
                };
                let text = format!("HTTP {} with a body of type {media_type:?}{hint}", status.as_u16());
                Err(WireError::Malformed(text))
            }
        }
    }

    fn refused(
        &self,
        status: StatusCode,
        body: ResponseBody,
        redirection: Option<String>,
        method: Option<&str>,
    ) -> Result<Option<Bytes>, WireError> {
        if status == StatusCode::NOT_FOUND && self.exchange.lock().session().is_some() {
            self.is_lost.store(true, Ordering::Relaxed);
        }
        let is_unauthorized = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        // A server that rejects every POST says nothing about the handshake.
        let is_elsewhere =
            status == StatusCode::METHOD_NOT_ALLOWED && matches!(method, Some("initialize" | "server/discover"));
        let bytes = match body {
            ResponseBody::Message(message) if !is_unauthorized && !is_elsewhere && is_error(&message) => {
                return Ok(Some(message));
            }
            body => body.into_bytes(),
        };
        let quote = || String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_QUOTE)]).into_owned();
        Err(WireError::Status { status: status.as_u16(), body: redirection.unwrap_or_else(quote) })
    }

    /// Goes on reading the stream of a request until its response has come, if the server gives its events ids. 2026-07-28
    /// has no resumption.
    async fn resume(&self, mut end: StreamEnd) -> Result<(), WireError> {
        let is_modern = self.era() == Era::Modern;
        while !is_modern && !end.has_response && end.last_event().is_some() {
            tokio::time::sleep(end.pause()).await;
            match self.get(end.last_event()).await {
                Some(next) => end = next.after(end),
                None => break,
            }
        }
        match end.broken.filter(|_| !end.has_response) {
            Some(why) => Err(WireError::Exchange(why)),
            None => Ok(()),
        }
    }

    /// Reads the stream for what the server sends of its own, as long as the session lasts; ends at once if the server has
    /// none.
    pub(crate) async fn listen(&self) {
        let mut end = StreamEnd { has_events: true, ..StreamEnd::default() };
        while let Some(next) = self.get(end.last_event()).await {
            end = next.after(end);
            tokio::time::sleep(end.pause()).await;
        }
    }

    /// Waits until the server has answered the GET of [`HttpSession::listen`].
    pub(crate) async fn listening(&self) {
        let _ = self.is_listening.subscribe().wait_for(|is_listening| *is_listening).await;
    }

    /// Opens an event stream, and reads it to its end; `None` if the server has none.
    async fn get(&self, last_event: Option<&str>) -> Option<StreamEnd> {
        let mut headers = self.exchange.lock().session_headers(&Method::GET);
        headers.extend(last_event.and_then(|id| Some((LAST_EVENT, HeaderValue::from_str(id).ok()?))));
        let request = WireRequest { method: Method::GET, headers, ..WireRequest::default() };
        let exchange = self.endpoint.begin(request, Authorization::Negotiated);
        let head = match exchange {
            Ok(mut exchange) => exchange.head().await.map(|head| (head, exchange)),
            Err(_) => None,
        };
        self.is_listening.send_replace(true);
        let (_, exchange) = head.filter(|(head, _)| head.status == StatusCode::OK)?;
        match exchange.response().await.ok()?.body {
            ResponseBody::Events(end) => Some(end),
            _ => None,
        }
    }

    /// Ends the session at the server (2025-11-25, Streamable HTTP: Session Management). A user is not asked for an
    /// authorization only for that.
    pub(crate) async fn end(&self) {
        let headers = {
            let exchange = self.exchange.lock();
            if exchange.session().is_none() {
                return;
            }
            exchange.session_headers(&Method::DELETE)
        };
        let request = WireRequest { method: Method::DELETE, headers, ..WireRequest::default() };
        if let Ok(exchange) = self.endpoint.begin(request, Authorization::Current) {
            // A server may refuse it, or be gone.
            let _ = timeout(END, exchange.response()).await;
        }
    }
}

impl StreamEnd {
    fn last_event(&self) -> Option<&str> {
        self.last_event.as_deref().filter(|id| !id.is_empty())
    }

    fn pause(&self) -> Duration {
        self.retry.unwrap_or(if self.has_events { Duration::ZERO } else { PAUSE })
    }

    /// The end of a stream that continues another one.
    fn after(self, before: StreamEnd) -> StreamEnd {
        let (last_event, retry) = (self.last_event.or(before.last_event), self.retry.or(before.retry));
        StreamEnd { last_event, retry, ..self }
    }
}

/// Whether the message is an error response.
fn is_error(message: &[u8]) -> bool {
    matches!(Message::parse(message), Ok(Message::Response(response)) if response.outcome.is_err())
}
