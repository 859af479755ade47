//! HTTP requests to one server: sent and recorded, with an authorization if the server wants one.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use reqwest::{
    Client, Method, Response, StatusCode, Url,
    header::{HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE},
};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use super::{Endpoint, OpenError, WireError, events::EventReader, headers::HeaderChange, web};
use crate::{
    oauth::{AuthHeader, AuthMiddleware, SsrfGuard},
    recorder::ClientRecorder,
    url::parse_url,
};
use rehearse_protocol::{
    Direction, EventKind, Frame, MessageHead, ParseError, Transport,
    http::{asked, is_event_stream, is_message},
};

/// Takes each frame of the server in order; where it returns a future, nothing is read before that has ended.
pub(crate) type FrameSink = Arc<dyn Fn(&Frame) -> Option<BoxFuture<'static, ()>> + Send + Sync>;

/// Where HTTP requests go.
pub(crate) struct HttpEndpoint {
    http: Mutex<Client>,
    url: Url,
    /// What limits where it connects to, if another server has named it.
    guard: Option<SsrfGuard>,
    headers: HeaderMap,
    auth: Option<AuthMiddleware>,
    transport: Transport,
    recorder: ClientRecorder,
    sink: Option<FrameSink>,
    /// Why the last request without a response has none.
    failure: Mutex<Option<String>>,
}

/// An HTTP request of a [`Wire`](crate::Wire).
#[derive(Clone, Debug, Default)]
pub struct WireRequest {
    /// The HTTP method.
    pub method: Method,
    /// A path that replaces that of the endpoint; `None` for the endpoint itself.
    pub path: Option<String>,
    /// The headers, in addition to those that are configured for the server, which they replace.
    pub headers: HeaderMap,
    /// Whether the names of the headers begin in upper case, over HTTP/1.1.
    pub has_title_case: bool,
    /// Whether it begins a TCP connection, as do those after it: none that is open is used again.
    pub is_fresh: bool,
    /// The body; it is recorded as a frame.
    pub body: Option<Bytes>,
    /// The case of a probe, recorded before the request.
    pub case: Option<Arc<str>>,
}

/// How a request is authorized, if the connection has an authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authorization {
    /// With the current token, and again with another one where the server refuses it.
    Negotiated,
    /// With the current token, once.
    Current,
}

/// An HTTP exchange that has begun. Dropping it ends it.
#[derive(Debug)]
pub struct WireExchange {
    /// The number of the exchange in the trace.
    pub number: u32,
    head: watch::Receiver<Option<ResponseHead>>,
    running: JoinHandle<Result<WireResponse, WireError>>,
}

/// Status and headers of a response.
#[derive(Clone, Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

/// A response that has ended.
#[derive(Debug)]
pub(crate) struct WireResponse {
    pub(crate) head: ResponseHead,
    pub(crate) body: ResponseBody,
    /// Why a redirect was not followed.
    pub(crate) redirection: Option<String>,
}

/// What a response brought.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    /// The frame that was recorded.
    Message(Bytes),
    Other(Bytes),
    Events(StreamEnd),
}

/// How an event stream ended.
#[derive(Debug, Default)]
pub(crate) struct StreamEnd {
    /// The last id of an event; an empty one takes back those before it.
    pub(crate) last_event: Option<String>,
    /// How long to wait before the stream is opened again.
    pub(crate) retry: Option<Duration>,
    pub(crate) has_events: bool,
    /// Whether a response was among the messages.
    pub(crate) has_response: bool,
    /// How it broke, unless it ended.
    pub(crate) broken: Option<String>,
}

impl HttpEndpoint {
    /// For requests to this URL; those of a WebSocket go to the same place over HTTP.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] if the URL or a header cannot be used.
    pub(crate) fn new(
        at: &Endpoint,
        transport: Transport,
        auth: Option<AuthMiddleware>,
        named_by: Option<&str>,
        recorder: ClientRecorder,
    ) -> Result<HttpEndpoint, OpenError> {
        let mut url = parse_url(&at.url, transport.schemes()).map_err(OpenError::Invalid)?;
        match url.scheme() {
            "ws" => drop(url.set_scheme("http")),
            "wss" => drop(url.set_scheme("https")),
            _ => {}
        }
        let guard = named_by.map(|server| SsrfGuard::of_named(server, &url)).transpose().map_err(OpenError::Invalid)?;
        let (http, headers) = (web::client(&url, guard.as_ref())?, web::header_map(&at.headers)?);
        let auth = web::auth_for(&headers, auth);
        let http = Mutex::new(http);
        let (sink, failure) = (None, Mutex::default());
        Ok(HttpEndpoint { http, url, guard, headers, auth, transport, recorder, sink, failure })
    }

    /// The same endpoint with the same TCP connections, for another record and without a sink.
    pub(crate) fn with_recorder(&self, recorder: ClientRecorder) -> HttpEndpoint {
        HttpEndpoint {
            http: Mutex::new(self.http.lock().clone()),
            url: self.url.clone(),
            guard: self.guard.clone(),
            headers: self.headers.clone(),
            auth: self.auth.clone(),
            transport: self.transport,
            recorder,
            sink: None,
            failure: Mutex::default(),
        }
    }

    /// Passes the frames of event streams to a sink.
    pub(crate) fn set_sink(&mut self, sink: FrameSink) {
        self.sink = Some(sink);
    }

    /// Why the last request without a response has none.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// Begins a request; its response is read to its end in a task, however long it takes.
    ///
    /// # Errors
    /// [`WireError::Invalid`] if TLS cannot be set up.
    pub(crate) fn begin(
        self: &Arc<Self>,
        request: WireRequest,
        authorization: Authorization,
    ) -> Result<WireExchange, WireError> {
        let number = self.recorder.new_exchange();
        if let Some(case) = request.case.clone() {
            self.recorder.note_in(Some(number), EventKind::Case(case));
        }
        let invalid = |error: OpenError| WireError::Invalid(error.to_string());
        if request.is_fresh {
            *self.http.lock() = web::client(&self.url, self.guard.as_ref()).map_err(invalid)?;
        }
        let http = match request.has_title_case {
            true => web::title_case_client(&self.url, self.guard.as_ref()).map_err(invalid)?,
            false => self.http.lock().clone(),
        };
        let (head_sender, head) = watch::channel(None);
        let this = Arc::clone(self);
        let running = tokio::spawn(async move {
            let sent = this.send(number, &http, &request, authorization).await;
            let response = sent.inspect_err(|error| *this.failure.lock() = Some(error.to_string()))?;
            let head = ResponseHead { status: response.status(), headers: response.headers().clone() };
            head_sender.send_replace(Some(head));
            this.read(response, &request).await
        });
        Ok(WireExchange { number, head, running })
    }

    async fn send(
        &self,
        number: u32,
        http: &Client,
        request: &WireRequest,
        authorization: Authorization,
    ) -> Result<Response, WireError> {
        let mut url = self.url.clone();
        if let Some(path) = &request.path {
            let (path, query) = path.split_once('?').map_or((path.as_str(), None), |(path, query)| (path, Some(query)));
            url.set_path(path);
            url.set_query(query);
        }
        let mut headers = self.headers.clone();
        for name in request.headers.keys() {
            headers.remove(name);
        }
        headers.extend(request.headers.clone());
        let auth = self.auth.as_ref().filter(|_| authorization == Authorization::Negotiated);
        let mut header = AuthHeader::default();
        if let (Some(current), Authorization::Current) = (&self.auth, authorization) {
            header = current.header().await?;
            header.insert_into(&mut headers, &request.method, &url);
        }
        let mut builder = http.request(request.method.clone(), url).headers(headers);
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        let response = web::send_in(number, http, auth, builder, &self.recorder, request.body.as_ref()).await?;
        header.read_response(response.headers());
        Ok(response)
    }

    /// Reads and records a response.
    ///
    /// # Errors
    /// [`WireError::Exchange`] if it broke, and [`WireError::Malformed`] if it is too long; an event stream that broke is no
    /// error.
    async fn read(&self, response: Response, request: &WireRequest) -> Result<WireResponse, WireError> {
        let (status, number) = (response.status(), web::exchange(&response));
        let (head, redirection) = (response.headers().clone(), web::redirection(&response));
        if is_event_stream(&head) && status.is_success() {
            let end = self.read_events(response, request.body.is_some() && self.sink.is_some()).await;
            let is_whole = end.broken.is_none();
            self.recorder.note_detail(number, || EventKind::HttpEnd { is_whole });
            return Ok(WireResponse {
                head: ResponseHead { status, headers: head },
                body: ResponseBody::Events(end),
                redirection,
            });
        }
        self.recorder.room(number).await;
        let body = match whole_body(response, self.recorder.largest()).await {
            Ok(body) => body,
            Err(error) => {
                self.recorder.note_detail(number, || EventKind::HttpEnd { is_whole: false });
                return Err(error);
            }
        };
        let sent = request.body.as_deref().unwrap_or_default();
        let is_frame = is_message(asked(self.transport, &request.method, sent), status, &head, &body);
        if is_frame {
            self.recorder.record_in(number, Direction::ServerToClient, body.clone());
        } else {
            self.recorder.note_body(number, body.clone());
        }
        self.recorder.note_detail(number, || EventKind::HttpEnd { is_whole: true });
        let body = if is_frame { ResponseBody::Message(body) } else { ResponseBody::Other(body) };
        Ok(WireResponse { head: ResponseHead { status, headers: head }, body, redirection })
    }

    /// Reads an event stream; a session takes no more from one after the response for which it was opened.
    async fn read_events(&self, response: Response, is_for_response: bool) -> StreamEnd {
        // A session needs the messages of a stream, a probe also how they came.
        let mut reader = EventReader::new(response, self.sink.is_none().then(|| self.recorder.clone()));
        let mut end = StreamEnd::default();
        loop {
            let event = match reader.next().await {
                Ok(Some(event)) => event,
                Ok(None) => return end,
                Err(why) => return StreamEnd { broken: Some(why.to_string()), ..end },
            };
            if is_for_response && end.has_response {
                continue;
            }
            end.has_events = true;
            end.last_event = event.id.clone().or(end.last_event);
            end.retry = event.retry.map(Duration::from_millis).or(end.retry);
            let Some(frame) = super::events::message(event) else { continue };
            let frame = self.recorder.record_in(reader.exchange(), Direction::ServerToClient, frame);
            end.has_response |= has_response(&frame);
            if let Some(taken) = self.sink.as_ref().and_then(|sink| sink(&frame)) {
                taken.await;
            }
            self.recorder.room(reader.exchange()).await;
        }
    }
}

impl ResponseHead {
    /// Whether the whole body is the answer, or refuses it.
    pub(crate) fn has_whole_body(&self) -> bool {
        !(self.status.is_success() && is_event_stream(&self.headers))
    }

    /// Whether it asks for an authorization (RFC 9110, 11.6.1).
    pub(crate) fn is_challenge(&self) -> bool {
        matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
            && self.headers.contains_key(WWW_AUTHENTICATE)
    }
}

impl ResponseBody {
    /// The bytes of a body that is no event stream.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            ResponseBody::Message(bytes) | ResponseBody::Other(bytes) => bytes,
            ResponseBody::Events(_) => Bytes::new(),
        }
    }
}

impl WireExchange {
    /// Waits until the response has ended or failed; false after the time limit, and the exchange goes on.
    pub async fn ended(&mut self, limit: Duration) -> bool {
        timeout(limit, &mut self.running).await.is_ok()
    }

    /// Whether the response has ended or failed.
    pub fn is_finished(&self) -> bool {
        self.running.is_finished()
    }

    /// The head of the response, as soon as it is there, and before anything of its body is.
    pub(crate) fn head_receiver(&self) -> watch::Receiver<Option<ResponseHead>> {
        self.head.clone()
    }

    /// Waits for the head of the response; `None` if none comes.
    pub(crate) async fn head(&mut self) -> Option<ResponseHead> {
        self.head.wait_for(Option::is_some).await.ok()?.clone()
    }

    /// The response, when it has ended.
    ///
    /// # Errors
    /// Why there is none, or why it is not whole.
    pub(crate) async fn response(mut self) -> Result<WireResponse, WireError> {
        (&mut self.running).await.unwrap_or(Err(WireError::Closed))
    }
}

impl Drop for WireExchange {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Changes headers as a caller wishes.
///
/// # Errors
/// [`WireError::Invalid`] for a header that cannot be sent.
pub(crate) fn change_headers(headers: &mut HeaderMap, changes: &[HeaderChange]) -> Result<(), WireError> {
    for (name, value) in changes {
        let invalid = || WireError::Invalid(format!("the header {name:?} has an invalid name or value"));
        let parsed = name.parse::<HeaderName>().map_err(|_| invalid())?;
        match value {
            Some(value) => drop(headers.insert(parsed, HeaderValue::from_str(value).map_err(|_| invalid())?)),
            None => drop(headers.remove(parsed)),
        }
    }
    Ok(())
}

/// Whether a frame is a response, or a batch with one.
fn has_response(frame: &Frame) -> bool {
    match frame.head() {
        Ok(MessageHead::Response { .. }) => true,
        Err(ParseError::Batch) => frame.parts().unwrap_or_default().iter().any(has_response),
        Err(error) => error.id().is_some(),
        Ok(_) => false,
    }
}

async fn whole_body(mut response: Response, largest: usize) -> Result<Bytes, WireError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| WireError::Exchange(web::describe(error)))? {
        if body.len() + chunk.len() > largest {
            return Err(WireError::Malformed(format!("a body of more than {largest} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_a_response_if_one_of_its_messages_is_one() {
        let frame = |text: &'static str| Frame::new(Direction::ServerToClient, Duration::ZERO, text.into());
        assert!(has_response(&frame(r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#)));
        assert!(!has_response(&frame(r#"[{"jsonrpc":"2.0","id":"s","method":"ping"}]"#)));
    }
}
