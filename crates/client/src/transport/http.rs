//! The HTTP client of streamable HTTP, which records the bytes, below rmcp's worker, which speaks the protocol.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream, stream::BoxStream};
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::Sse;
use tokio::sync::watch;

use super::{
    LinkError,
    auth::AuthMiddleware,
    events::{EventReader, message},
    headers::{HeaderChange, mirrored},
    probe::{limit_probe, probe_id},
    resume::{EventStream, Resumption},
    web,
};
use crate::recorder::TraceRecorder;
use rehearse_protocol::{Direction, Era, MAX_FRAME, Version, message::split_batch};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The HTTP client of one connection. Clones share its state.
#[derive(Clone)]
pub(crate) struct HttpClient(Arc<Shared>);

struct Shared {
    http: Client,
    url: Url,
    headers: HeaderMap,
    auth: Option<AuthMiddleware>,
    recorder: TraceRecorder,
    state: Mutex<State>,
    /// Whether the server has answered the GET for its own messages.
    listening: watch::Sender<bool>,
    /// Whether the server has answered that it does not know the session.
    lost: AtomicBool,
    /// How long a `server/discover` may take, if `initialize` is to follow.
    probe_limit: OnceLock<Duration>,
}

#[derive(Default)]
struct State {
    session: Option<Arc<str>>,
    version: Option<HeaderValue>,
    rejected: Option<(u16, String)>,
}

impl HttpClient {
    pub(super) fn new(
        http: Client,
        url: Url,
        headers: HeaderMap,
        auth: Option<AuthMiddleware>,
        recorder: TraceRecorder,
    ) -> HttpClient {
        let (state, listening) = (Mutex::default(), watch::Sender::new(false));
        let (lost, probe_limit) = (AtomicBool::default(), OnceLock::new());
        HttpClient(Arc::new(Shared { http, url, headers, auth, recorder, state, listening, lost, probe_limit }))
    }

    /// The HTTP status and body that rejected the last POST, a `server/discover`, if rmcp got them as a JSON-RPC error
    /// that the server did not send.
    pub(crate) fn rejected(&self) -> Option<(u16, String)> {
        self.state().rejected.clone()
    }

    /// Whether the server has refused a request because it no longer knows the session.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// From now on a `server/discover` without an answer within this time, without that of a user authorization, is
    /// [`unanswered`](super::probe::unanswered).
    pub(crate) fn limit_probe(&self, limit: Duration) {
        let _ = self.0.probe_limit.set(limit);
    }

    /// Sends the bytes as they are with the session, version and authorization in use, the mirrored headers of a modern
    /// message, and the changes of the caller. It is never repeated.
    ///
    /// # Errors
    /// [`LinkError::Invalid`] for a header that cannot be sent, [`LinkError::Exchange`] if there is no answer, and
    /// [`LinkError::Unauthorized`].
    pub(crate) async fn post_raw(&self, bytes: Bytes, changes: &[HeaderChange]) -> Result<RawResponse, LinkError> {
        let mut headers = HeaderMap::new();
        {
            let state = self.state();
            if let Some(session) = state.session.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
                headers.insert(SESSION, session);
            }
            if let Some(version) = &state.version {
                headers.insert(VERSION, version.clone());
                if is_modern(version) {
                    headers.extend(mirrored(&bytes));
                }
            }
        }
        let mut headers = self.with_configured(post_headers(headers));
        self.authorize(&mut headers).await?;
        for (name, value) in changes {
            let invalid = || LinkError::Invalid(format!("the header {name:?} has an invalid name or value"));
            let parsed = name.parse::<HeaderName>().map_err(|_| invalid())?;
            match value {
                Some(value) => {
                    headers.insert(parsed, HeaderValue::from_str(value).map_err(|_| invalid())?);
                }
                None => drop(headers.remove(parsed)),
            }
        }
        let request = self.0.http.post(self.0.url.clone()).headers(headers);
        self.post(request, bytes, None)
            .await
            .map(|response| RawResponse { response, recorder: self.0.recorder.clone() })
    }

    async fn post(
        &self,
        request: RequestBuilder,
        bytes: Bytes,
        auth: Option<&AuthMiddleware>,
    ) -> Result<Response, LinkError> {
        web::send(&self.0.http, auth, request.body(bytes.clone()), &self.0.recorder, Some(&bytes)).await
    }

    /// Adds the authorization in use to a request that is not repeated.
    async fn authorize(&self, headers: &mut HeaderMap) -> Result<(), LinkError> {
        if let Some(auth) = &self.0.auth {
            web::insert_auth(headers, &auth.header().await.map_err(LinkError::Unauthorized)?);
        }
        Ok(())
    }

    fn request(&self, method: Method, headers: HeaderMap) -> RequestBuilder {
        self.0.http.request(method, self.0.url.clone()).headers(self.with_configured(headers))
    }

    /// The configured headers; those of the protocol take precedence.
    fn with_configured(&self, protocol: HeaderMap) -> HeaderMap {
        let mut headers = self.0.headers.clone();
        headers.extend(protocol);
        headers
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events for rmcp, without the ids and times with which it would resume the stream itself. rmcp knows no
    /// batches: each part of one is an event.
    fn events(&self, response: Response, resumption: Resumption) -> BoxStream<'static, Result<Sse, SseError>> {
        let recorder = self.0.recorder.clone();
        let events = EventStream::new(self.clone(), response, resumption);
        stream::unfold(events, move |mut events| {
            let recorder = recorder.clone();
            async move {
                let next = events.next().await?;
                let exchange = events.exchange();
                let items = match next {
                    Ok(event) => {
                        let kind = event.event.clone();
                        let parts = message(event).map_or_else(
                            || vec![None],
                            |data| {
                                recorder.record_in(exchange, Direction::ServerToClient, data.clone());
                                let parts = split_batch(&data).unwrap_or_else(|_| vec![data]);
                                parts.iter().map(|part| Some(String::from_utf8_lossy(part).into_owned())).collect()
                            },
                        );
                        let event = |data| Ok(Sse { event: kind.clone(), data, id: None, retry: None });
                        parts.into_iter().map(event).collect()
                    }
                    Err(broken) => vec![Err(SseError::Body(broken.into()))],
                };
                Some((stream::iter(items), events))
            }
        })
        .flatten()
        .boxed()
    }

    /// Opens an event stream with these headers of the protocol.
    ///
    /// # Errors
    /// [`LinkError::Exchange`] if there is no answer, and [`LinkError::Unauthorized`].
    pub(crate) async fn get(&self, mut headers: HeaderMap, last_event: Option<&str>) -> Result<Response, LinkError> {
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(last_event) = last_event.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert("last-event-id", last_event);
        }
        let request = self.request(Method::GET, headers);
        web::send(&self.0.http, self.0.auth.as_ref(), request, &self.0.recorder, None).await
    }

    /// Waits until the server has answered the GET for its own messages; ends at once without a session.
    pub(crate) async fn listening(&self) {
        if self.state().session.is_some() {
            let _ = self.0.listening.subscribe().wait_for(|listening| *listening).await;
        }
    }

    async fn refusal(
        &self,
        message: &ClientJsonRpcMessage,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, LinkError> {
        let (status, session, redirection) = (response.status(), session_id(&response), web::redirection(&response));
        let exchange = web::exchange(&response);
        let body = Bytes::from(web::error_body(response).await);
        let text = redirection.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned());
        let error = match serde_json::from_slice(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
            _ => None,
        };
        match error {
            Some(_) => self.0.recorder.record_in(exchange, Direction::ServerToClient, body),
            None => web::note_body(&self.0.recorder, exchange, body),
        }
        let refused = LinkError::Status { status: status.as_u16(), body: text.clone() };
        let ClientJsonRpcMessage::Request(request) = message else { return Err(refused) };
        if status == StatusCode::NOT_FOUND && self.state().session.is_some() {
            self.0.lost.store(true, Ordering::Relaxed);
        }
        let unauthorized = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
        // A server that rejects every POST says nothing about the handshake.
        let is_elsewhere = status == StatusCode::METHOD_NOT_ALLOWED
            && (probe || matches!(request.request, ClientRequest::InitializeRequest(_)));
        let error = match error {
            Some(error) if !unauthorized && !is_elsewhere => error,
            // rmcp falls back to `initialize` on a JSON-RPC error alone, and knows the rule for a bare 4xx only in
            // its own HTTP client (2026-07-28, Streamable HTTP: Backward Compatibility).
            _ if probe && status.is_client_error() && !unauthorized => {
                self.state().rejected = Some((status.as_u16(), text));
                ErrorData::invalid_request(format!("HTTP {status}"), None)
            }
            _ => return Err(refused),
        };
        Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, Some(request.id.clone())), session))
    }

    /// Posts a message of rmcp and reads what is no event stream, each exchange within the limit, if there is one.
    async fn post_message_within(
        &self,
        limit: Option<Duration>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<LinkError>> {
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let mut headers: HeaderMap = headers.into_iter().collect();
        insert_session(&mut headers, session.as_deref());
        let version = headers.get(&VERSION).cloned();
        let mut to_resume = HeaderMap::new();
        insert_session(&mut to_resume, session.as_deref());
        to_resume.extend(version.clone().map(|version| (VERSION, version)));
        let is_modern = version.as_ref().is_some_and(is_modern);
        *self.state() = State { session, version, rejected: None };
        let mut request = self.request(Method::POST, post_headers(headers));
        if let Some(limit) = limit {
            request = request.timeout(limit);
        }
        let response = self.post(request, body, self.0.auth.as_ref()).await.map_err(StreamableHttpError::Client)?;
        match response.status() {
            status @ (StatusCode::ACCEPTED | StatusCode::NO_CONTENT) => match message {
                // Nothing can come of it any more (2025-11-25, Streamable HTTP: Sending Messages to the Server).
                ClientJsonRpcMessage::Request(_) => {
                    let text = format!("HTTP {} without an answer to the request", status.as_u16());
                    Err(StreamableHttpError::Client(LinkError::Malformed(text)))
                }
                _ => Ok(StreamableHttpPostResponse::Accepted),
            },
            status if !status.is_success() => {
                self.refusal(&message, response).await.map_err(StreamableHttpError::Client)
            }
            _ if web::media_type(&response) == "text/event-stream" => {
                let session = session_id(&response);
                insert_session(&mut to_resume, session.as_deref());
                let resumption = if is_modern { Resumption::Never } else { Resumption::OfResponse(to_resume) };
                Ok(StreamableHttpPostResponse::Sse(self.events(response, resumption), session))
            }
            status => {
                let (session, media_type) = (session_id(&response), web::media_type(&response));
                let exchange = web::exchange(&response);
                let body = whole_body(response).await.map_err(StreamableHttpError::Client)?;
                if body.is_empty() && !matches!(message, ClientJsonRpcMessage::Request(_)) {
                    return Ok(StreamableHttpPostResponse::Accepted);
                }
                if media_type != "application/json" {
                    web::note_body(&self.0.recorder, exchange, body);
                    let text = format!("HTTP {} with a body of type {media_type:?}", status.as_u16());
                    return Err(StreamableHttpError::Client(LinkError::Malformed(text)));
                }
                self.0.recorder.record_in(exchange, Direction::ServerToClient, body.clone());
                let answer = answer_to(&message, &body).map_err(StreamableHttpError::Client)?;
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
        }
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = LinkError;

    /// An expired session (404) is an error with its status and body like any other: rmcp's `SessionExpired` would
    /// only start a new session, which must not happen behind the back of a test.
    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<LinkError>> {
        let (Some(limit), Some(probe)) = (self.0.probe_limit.get().copied(), probe_id(&message)) else {
            return self.post_message_within(None, message, session, headers).await;
        };
        let posting = self.post_message_within(Some(limit), message, session, headers);
        limit_probe(limit, probe, posting).await
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session: Arc<str>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<LinkError>> {
        let mut headers: HeaderMap = headers.into_iter().collect();
        insert_session(&mut headers, Some(&session));
        // A user is not asked only to close a session.
        self.authorize(&mut headers).await.map_err(StreamableHttpError::Client)?;
        let request = self.request(Method::DELETE, headers);
        let response = web::send(&self.0.http, None, request, &self.0.recorder, None).await;
        match response.map_err(StreamableHttpError::Client)?.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportDeleteSession),
            status if status.is_success() => Ok(()),
            status => {
                let refused = LinkError::Status { status: status.as_u16(), body: String::new() };
                Err(StreamableHttpError::Client(refused))
            }
        }
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<LinkError>> {
        let mut headers: HeaderMap = headers.into_iter().collect();
        insert_session(&mut headers, session.as_deref());
        let response = self.get(headers.clone(), last_event.as_deref()).await;
        self.0.listening.send_replace(true);
        let response = response.map_err(StreamableHttpError::Client)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => {
                let body = web::error_text(response, &self.0.recorder).await;
                Err(StreamableHttpError::Client(LinkError::Status { status: status.as_u16(), body }))
            }
            _ => match web::media_type(&response) {
                media_type if media_type == "text/event-stream" => {
                    Ok(self.events(response, Resumption::OfSession(headers)))
                }
                media_type => Err(StreamableHttpError::UnexpectedContentType(Some(media_type))),
            },
        }
    }
}

/// The response to a raw POST, of which only the head has been read.
pub(crate) struct RawResponse {
    response: Response,
    recorder: TraceRecorder,
}

impl RawResponse {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Reads the rest and records its frames. Also returns a body that is not an event stream.
    pub(crate) async fn finish(self) -> Bytes {
        let exchange = web::exchange(&self.response);
        if web::media_type(&self.response) == "text/event-stream" {
            let mut events = EventReader::new(self.response);
            while let Ok(frame) = events.next_message().await {
                self.recorder.record_in(exchange, Direction::ServerToClient, frame);
            }
            return Bytes::new();
        }
        let media_type = web::media_type(&self.response);
        let body = whole_body(self.response).await.unwrap_or_default();
        if media_type != "application/json" {
            web::note_body(&self.recorder, exchange, body.clone());
        } else if !body.is_empty() {
            self.recorder.record_in(exchange, Direction::ServerToClient, body.clone());
        }
        body
    }
}

fn is_modern(version: &HeaderValue) -> bool {
    let version = version.to_str().ok().and_then(|text| text.parse::<Version>().ok());
    version.is_some_and(|version| version.era() == Era::Modern)
}

fn post_headers(mut headers: HeaderMap) -> HeaderMap {
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
}

fn insert_session(headers: &mut HeaderMap, session: Option<&str>) {
    if let Some(session) = session.and_then(|id| HeaderValue::from_str(id).ok()) {
        headers.insert(SESSION, session);
    }
}

fn session_id(response: &Response) -> Option<String> {
    response.headers().get(&SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned)
}

pub(crate) async fn whole_body(mut response: Response) -> Result<Bytes, LinkError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| LinkError::Exchange(web::describe(error)))? {
        if body.len() + chunk.len() > MAX_FRAME {
            return Err(LinkError::Malformed(format!("a body of more than {MAX_FRAME} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// A JSON body must answer the request of its exchange.
fn answer_to(message: &ClientJsonRpcMessage, body: &[u8]) -> Result<ServerJsonRpcMessage, LinkError> {
    let answer: ServerJsonRpcMessage = serde_json::from_slice(body)
        .map_err(|error| LinkError::Malformed(format!("the body is not a message: {error}")))?;
    let ClientJsonRpcMessage::Request(request) = message else { return Ok(answer) };
    let other = |id: &RequestId| {
        LinkError::Malformed(format!("the body answers request {id} instead of request {}", request.id))
    };
    match answer {
        ServerJsonRpcMessage::Error(error) if error.id.is_none() => {
            Ok(ServerJsonRpcMessage::error(error.error, Some(request.id.clone())))
        }
        ServerJsonRpcMessage::Response(answer) if answer.id != request.id => Err(other(&answer.id)),
        ServerJsonRpcMessage::Error(answer) if answer.id.as_ref() != Some(&request.id) => {
            Err(other(answer.id.as_ref().unwrap_or(&request.id)))
        }
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => {
            Err(LinkError::Malformed("the body is not a response".to_owned()))
        }
        answer => Ok(answer),
    }
}
