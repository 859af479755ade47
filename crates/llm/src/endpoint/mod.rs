//! [`ModelEndpoint`]: a scripted model behind the APIs of providers, for agents of any make.
//!
//! | request | answer |
//! | --- | --- |
//! | `POST /v1/messages` | a message, whole or as events |
//! | `POST /v1/chat/completions` | a chat completion, whole or as events |
//! | `POST /v1/responses` | a response, whole or as events |
//! | `POST /v1/messages/count_tokens` | an estimate |
//! | `GET /v1/models` | the model of the script |
//! | `POST /v1beta/models/M:generateContent`, `M:streamGenerateContent` | contents, whole or as events or a list |
//! | `POST /v1beta/models/M:countTokens` | an estimate |
//! | `GET /v1beta/models` | the model of the script |
//!
//! The first five work without `/v1` too. Any key is accepted.

mod answer;
mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;
mod question;

use std::{
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;

use self::answer::Answer;
pub use self::question::{OfferedTool, Question};
use crate::{
    api::error_type,
    model::{
        Block, GenerationOptions, ModelError, Response as ModelResponse, ScriptedModel, StopReason, Usage, text_of,
    },
};
use rehearse_document::json_schema::{
    View,
    example::{self, Filler},
};
use rehearse_net::{
    Body, ConnectionHandle, ConnectionLimit, Disconnect, HostPolicy, Request, Response, Shutdown, accept,
};
use rehearse_protocol::{MAX_FRAME, sse::Event};

/// How long a request may take to arrive.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// What the smallest answer to a schema has.
const FILLER: Filler = Filler { text: "ok", number: 1.0, is_short: true, flag: false, any: "ok" };

/// A scripted model that listens for requests. Dropping it ends it at once.
#[derive(Debug)]
pub struct ModelEndpoint {
    address: SocketAddr,
    shutdown: Shutdown,
}

/// Where a [`ModelEndpoint`] listens.
pub struct EndpointOptions {
    /// Port 0 selects a free port.
    pub address: SocketAddr,
    /// More host names that clients may use in `Host` and `Origin`.
    pub allowed_hosts: Vec<String>,
    /// Is called with one line for each request that has been answered.
    pub log: Box<dyn Fn(String) + Send + Sync>,
    /// Is called with each question before it is answered.
    pub asked: Box<dyn Fn(&Question) + Send + Sync>,
}

struct State {
    model: ScriptedModel,
    hosts: HostPolicy,
    log: Box<dyn Fn(String) + Send + Sync>,
    asked: Box<dyn Fn(&Question) + Send + Sync>,
    /// How many questions were answered.
    count: AtomicU64,
}

/// The form of requests, answers and errors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Api {
    Anthropic,
    OpenAiChat,
    OpenAiResponses,
    Gemini,
}

/// What a client wants.
enum Action<'p> {
    Ask(GeminiPath<'p>),
    CountTokens,
    Models,
}

/// What a path of the Gemini API says; the other APIs say it in the body.
#[derive(Clone, Copy, Default)]
struct GeminiPath<'p> {
    model: &'p str,
    is_streamed: bool,
    /// A stream is events, not a list.
    with_events: bool,
}

/// Why a request has no answer.
enum Refusal {
    Status {
        status: u16,
        message: String,
        retry_after: Option<Duration>,
    },
    /// The script breaks the connection.
    Disconnect(String),
}

impl Default for EndpointOptions {
    /// A free port on 127.0.0.1.
    fn default() -> Self {
        let address = ([127, 0, 0, 1], 0).into();
        EndpointOptions { address, allowed_hosts: Vec::new(), log: Box::new(|_| {}), asked: Box::new(|_| {}) }
    }
}

impl ModelEndpoint {
    /// Binds the address and starts to serve.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn start(model: ScriptedModel, options: EndpointOptions) -> io::Result<ModelEndpoint> {
        let listener = TcpListener::bind(options.address).await?;
        let (address, shutdown) = (listener.local_addr()?, Shutdown::default());
        let hosts = HostPolicy::new(address.ip(), options.allowed_hosts);
        let state = Arc::new(State { model, hosts, log: options.log, asked: options.asked, count: AtomicU64::new(0) });
        let service = move |request: Request, connection: &ConnectionHandle| {
            let (state, connection) = (state.clone(), connection.clone());
            async move { state.respond(request, &connection).await }
        };
        shutdown.tasks.spawn(accept(listener, ConnectionLimit::default(), shutdown.clone(), service));
        Ok(ModelEndpoint { address, shutdown })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL, without a version and a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends the endpoint: it accepts nothing new, and answers in progress may finish within `grace`.
    pub async fn stop(self, grace: Duration) {
        self.shutdown.end(grace).await;
    }
}

impl Drop for ModelEndpoint {
    fn drop(&mut self) {
        self.shutdown.stop.cancel();
        self.shutdown.kill.cancel();
    }
}

impl State {
    async fn respond(&self, request: Request, connection: &ConnectionHandle) -> Response {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let path = uri.path();
        let (api, action) = route(&method, path, uri.query().unwrap_or_default());
        let answered = match (self.hosts.check(request.headers(), request.uri()), action) {
            (Err(why), _) => Err(Refusal::new(403, why.to_string())),
            (Ok(()), Some(Action::Ask(path))) => self.ask(api, path, request).await,
            (Ok(()), Some(Action::CountTokens)) => count_tokens(api, request).await,
            (Ok(()), Some(Action::Models)) => Ok((self.models(api), "the list of models".to_owned())),
            (Ok(()), None) => {
                Err(Refusal::new(404, format!("nothing is served at {method} {path}; see `rehearse model --help`")))
            }
        };
        let (mut response, note) = match answered {
            Ok(answered) => answered,
            Err(Refusal::Disconnect(why)) => {
                (self.log)(format!("{method} {path}: connection closed: {why}"));
                connection.disconnect_and_wait(Disconnect::Reset).await
            }
            Err(Refusal::Status { status, message, retry_after }) => {
                let mut response = json_response(&error_body(api, status, &message));
                *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                for (name, value) in retry_after.map(retry_headers).into_iter().flatten() {
                    response.headers_mut().insert(name, value.into());
                }
                (response, message)
            }
        };
        let id = self.count.load(Ordering::Relaxed);
        let name = if api == Api::Anthropic { "request-id" } else { "x-request-id" };
        if let Ok(id) = HeaderValue::try_from(format!("req_{id}")) {
            response.headers_mut().insert(HeaderName::from_static(name), id);
        }
        (self.log)(format!("{method} {path}: {} {note}", response.status().as_u16()));
        response
    }

    /// Asks the model. Also returns a note for the log.
    async fn ask(&self, api: Api, path: GeminiPath<'_>, request: Request) -> Result<(Response, String), Refusal> {
        let body = read_body(request).await?;
        let question = match api {
            Api::Anthropic => anthropic::read(&body),
            Api::OpenAiChat => openai_chat::read(&body),
            Api::OpenAiResponses => openai_responses::read(&body),
            Api::Gemini => gemini::read(&body, path.model, path.is_streamed),
        };
        let question = question.map_err(|why| Refusal::new(400, why.to_string()))?;
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        (self.asked)(&question);
        let (tools, options) = (question.definitions(), GenerationOptions::default());
        let answered = self.model.generate(&question.request(&tools, &options), None).await;
        let response = match &question.answer_schema {
            Some(schema) if tools.is_empty() => in_json(answered, schema)?,
            _ => answered?,
        };
        let answer = Answer { number, question: &question, response: &response };
        let note = answer.note();
        let response = match (api, question.is_streamed) {
            (Api::Anthropic, false) => json_response(&anthropic::write(&answer)),
            (Api::Anthropic, true) => event_response(anthropic::events(&answer)),
            (Api::OpenAiChat, false) => json_response(&openai_chat::write(&answer)),
            (Api::OpenAiChat, true) => event_response(openai_chat::events(&answer)),
            (Api::OpenAiResponses, false) => json_response(&openai_responses::write(&answer)),
            (Api::OpenAiResponses, true) => event_response(openai_responses::events(&answer)),
            (Api::Gemini, false) => json_response(&gemini::write(&answer)),
            (Api::Gemini, true) if path.with_events => event_response(gemini::events(&answer)),
            (Api::Gemini, true) => json_response(&gemini::events(&answer).into()),
        };
        Ok((response, note))
    }

    /// The list of models; that of Anthropic and OpenAI has the members of both.
    fn models(&self, api: Api) -> Response {
        let (name, then) = (self.model.name(), "1970-01-01T00:00:00Z");
        if api == Api::Gemini {
            return json_response(&gemini::models(name));
        }
        let model = json!({
            "id": name, "type": "model", "display_name": name, "created_at": then,
            "object": "model", "created": 0, "owned_by": "rehearse",
        });
        let list = json!({ "object": "list", "data": [model], "has_more": false, "first_id": name, "last_id": name });
        json_response(&list)
    }
}

fn route<'p>(method: &Method, path: &'p str, query: &str) -> (Api, Option<Action<'p>>) {
    let is_post = method == Method::POST;
    let gemini = path.rsplit_once("/models/").and_then(|(_, operation)| operation.rsplit_once(':'));
    if let Some((model, operation)) = gemini {
        let with_events = query.split('&').any(|parameter| parameter == "alt=sse");
        let action = match operation {
            "generateContent" => Some(Action::Ask(GeminiPath { model, ..GeminiPath::default() })),
            "streamGenerateContent" => Some(Action::Ask(GeminiPath { model, is_streamed: true, with_events })),
            "countTokens" => Some(Action::CountTokens),
            _ => None,
        };
        return (Api::Gemini, action.filter(|_| is_post));
    }
    if path.starts_with("/v1beta/") {
        let is_list = path == "/v1beta/models" && method == Method::GET;
        return (Api::Gemini, is_list.then_some(Action::Models));
    }
    let ask = || Some(Action::Ask(GeminiPath::default())).filter(|_| is_post);
    match path.strip_prefix("/v1").unwrap_or(path) {
        "/messages" => (Api::Anthropic, ask()),
        "/messages/count_tokens" => (Api::Anthropic, is_post.then_some(Action::CountTokens)),
        "/chat/completions" => (Api::OpenAiChat, ask()),
        "/responses" => (Api::OpenAiResponses, ask()),
        "/models" => (Api::OpenAiChat, (method == Method::GET).then_some(Action::Models)),
        _ => (Api::OpenAiChat, None),
    }
}

/// The answer, or the smallest one that the schema allows, if the script has none in JSON.
fn in_json(answered: Result<ModelResponse, ModelError>, schema: &Json) -> Result<ModelResponse, ModelError> {
    let content = || vec![Block::text(example::value(View::new(schema), &FILLER).to_string())];
    let is_json = |response: &ModelResponse| serde_json::from_str::<Json>(&text_of(&response.content)).is_ok();
    match answered {
        Ok(response) if !is_json(&response) => Ok(ModelResponse { content: content(), ..response }),
        Err(ModelError::NoRule { .. }) => {
            Ok(ModelResponse { content: content(), stop: StopReason::EndTurn, usage: Usage::default() })
        }
        answered => answered,
    }
}

async fn read_body(request: Request) -> Result<Json, Refusal> {
    let body = rehearse_net::read_body(request.into_body(), MAX_FRAME);
    let body =
        tokio::time::timeout(REQUEST_TIMEOUT, body).await.map_err(|_| Refusal::new(408, "the request is slow"))?;
    let body = body.map_err(|_| Refusal::new(413, format!("the request is cut, or larger than {MAX_FRAME} bytes")))?;
    serde_json::from_slice(&body).map_err(|error| Refusal::new(400, format!("the request is not JSON: {error}")))
}

/// Estimates the tokens of a request, as one for four bytes.
async fn count_tokens(api: Api, request: Request) -> Result<(Response, String), Refusal> {
    let tokens = read_body(request).await?.to_string().len().div_ceil(4);
    let member = if api == Api::Gemini { "totalTokens" } else { "input_tokens" };
    Ok((json_response(&json!({ member: tokens })), format!("{tokens} tokens")))
}

impl Refusal {
    fn new(status: u16, message: impl Into<String>) -> Refusal {
        Refusal::Status { status, message: message.into(), retry_after: None }
    }
}

impl From<ModelError> for Refusal {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Rejected { status, message, retry_after, .. } => {
                Refusal::Status { status, message, retry_after }
            }
            ModelError::Unreachable { why, .. } => Refusal::Disconnect(why),
            // A mistake in the script: clients do not repeat a request after this status.
            other => Refusal::new(400, other.to_string()),
        }
    }
}

fn error_body(api: Api, status: u16, message: &str) -> Json {
    match api {
        Api::Anthropic => {
            return json!({ "type": "error", "error": { "type": error_type(status), "message": message } });
        }
        Api::Gemini => return gemini::error(status, message),
        Api::OpenAiChat | Api::OpenAiResponses => {}
    }
    let code = match status {
        401 => json!("invalid_api_key"),
        429 => json!("rate_limit_exceeded"),
        _ => Json::Null,
    };
    let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

/// The headers for the next try, in whole seconds and exactly.
fn retry_headers(time: Duration) -> [(HeaderName, u64); 2] {
    let exact = HeaderName::from_static("retry-after-ms");
    [
        (header::RETRY_AFTER, time.as_secs_f64().ceil() as u64),
        (exact, u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    ]
}

fn json_response(body: &Json) -> Response {
    response("application/json", body.to_string())
}

/// A response of events; the data is JSON, or the text that ends a stream.
fn event_response(events: Vec<Json>) -> Response {
    let mut body = Vec::new();
    for event in events {
        let name = event["type"].as_str().map(str::to_owned);
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        body.extend_from_slice(&Event { event: name, ..Event::message(data.into()) }.encode());
    }
    response("text/event-stream; charset=utf-8", body)
}

fn response(media_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::whole(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

impl fmt::Debug for EndpointOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointOptions").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
