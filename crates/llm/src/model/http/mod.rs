//! Models of providers, over HTTP.
//!
//! | API | path | answers |
//! | --- | --- | --- |
//! | [`Provider::Anthropic`] | `/v1/messages` | content blocks |
//! | [`Provider::OpenAi`] | `/v1/chat/completions` | the message of the first choice |
//! | [`Provider::OpenAiResponses`] | `/v1/responses` | output items; nothing is stored by the provider |

mod answer;
mod anthropic;
mod exchange;
mod openai_chat;
mod openai_responses;
mod retry_policy;
mod streamed_answer;

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use bytes::Bytes;
use reqwest::{
    Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

pub use self::retry_policy::RetryPolicy;
use super::{Delta, DeltaSink, GenerationOptions, ModelError, Request, Response};
use crate::native::{Definition, Provider};
use rehearse_net::http_client;

/// The version of the Messages API.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// The minimum length of a key that is hidden, in bytes.
const MIN_KEY_LENGTH: usize = 8;

/// A model of a provider, or of any server with the same API.
#[derive(Debug)]
pub struct HttpModel {
    http: reqwest::Client,
    url: Url,
    /// The URL for messages.
    endpoint: String,
    options: HttpModelOptions,
}

/// Which model is asked, and how.
#[derive(Clone, Debug)]
pub struct HttpModelOptions {
    pub api: Provider,
    /// The server, such as `http://127.0.0.1:8889`. `/v1` is added unless the path has a version. `None` is the provider.
    pub base_url: Option<String>,
    /// The id of the model, such as `claude-sonnet-4-5`.
    pub model: String,
    /// A server of your own may need none.
    pub key: Option<ApiKey>,
    /// The longest time for one try, from the request to the end of the answer.
    pub timeout: Duration,
    pub retry: RetryPolicy,
}

/// The key of an API. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// Why there can be no such model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOptions {
    /// The base URL is not one.
    #[error("{url:?} is not the base URL of an API: {why}")]
    Url { url: String, why: String },
    /// The key cannot be sent.
    #[error("the API key has characters that cannot be in a header, such as a line break")]
    Key,
    /// TLS cannot be set up.
    #[error("cannot start an HTTP client: {0}")]
    Client(String),
}

/// The body of a request.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    members: Map<String, Json>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Definition<'a>>,
}

impl HttpModelOptions {
    /// A model of the provider, with ten minutes for each try.
    pub fn new(api: Provider, model: impl Into<String>) -> HttpModelOptions {
        let (timeout, retry) = (Duration::from_secs(600), RetryPolicy::default());
        HttpModelOptions { api, base_url: None, model: model.into(), key: None, timeout, retry }
    }
}

impl HttpModel {
    /// # Errors
    /// The base URL or the key cannot be used.
    pub fn new(options: HttpModelOptions) -> Result<HttpModel, InvalidOptions> {
        let (usual, path) = match options.api {
            Provider::Anthropic => ("https://api.anthropic.com", "messages"),
            Provider::OpenAi => ("https://api.openai.com", "chat/completions"),
            Provider::OpenAiResponses => ("https://api.openai.com", "responses"),
        };
        let url = resource(options.base_url.as_deref().unwrap_or(usual), path)?;
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let secret = |text: String| {
            let mut value = HeaderValue::try_from(text).map_err(|_| InvalidOptions::Key)?;
            value.set_sensitive(true);
            Ok(value)
        };
        if options.api == Provider::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
        }
        match (&options.key, options.api) {
            (Some(key), Provider::Anthropic) => headers.insert("x-api-key", secret(key.0.clone())?),
            (Some(key), _) => headers.insert(AUTHORIZATION, secret(format!("Bearer {}", key.0))?),
            (None, _) => None,
        };
        let builder = http_client::builder(http_client::is_loopback(&url));
        let http = builder.default_headers(headers).build();
        let http = http.map_err(|error| InvalidOptions::Client(http_client::describe(error)))?;
        let endpoint = http_client::display_url(url.as_str());
        Ok(HttpModel { http, url, endpoint, options })
    }

    /// The id of the model.
    pub fn name(&self) -> &str {
        &self.options.model
    }

    /// The URL of its requests, without secrets.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Asks for the next message, and again as the [`RetryPolicy`] says. With `deltas`, the answer is streamed, and
    /// nothing is asked again after the first piece.
    ///
    /// # Errors
    /// The error of the last try.
    pub async fn generate(&self, request: &Request<'_>, deltas: Option<DeltaSink<'_>>) -> Result<Response, ModelError> {
        let body = self.body(request, deltas.is_some())?;
        let has_begun = AtomicBool::new(false);
        let sink = |delta: Delta| {
            has_begun.store(true, Ordering::Relaxed);
            if let Some(deltas) = deltas {
                deltas(delta);
            }
        };
        let limit = self.options.timeout;
        let attempt = || async {
            let attempt = self.exchange(body.clone(), &sink);
            let late = || ModelError::TimedOut { endpoint: self.endpoint.clone(), limit };
            tokio::time::timeout(limit, attempt).await.map_err(|_| late())?
        };
        let on_retry = |error: &ModelError, wait| {
            if let Some(deltas) = deltas {
                deltas(Delta::Retry { error: error.to_string(), wait });
            }
        };
        let response = self.options.retry.run(attempt, || !has_begun.load(Ordering::Relaxed), on_retry).await?;
        Ok(self.options.key.as_ref().map_or_else(|| response.clone(), |key| key.hide_in_response(&response)))
    }

    fn body(&self, request: &Request<'_>, is_streamed: bool) -> Result<Bytes, ModelError> {
        let GenerationOptions { temperature, top_p, top_k, frequency_penalty, presence_penalty, .. } = request.options;
        // `top_k` is not of OpenAI, but of many servers with its APIs.
        let all = json!({
            "model": self.options.model, "temperature": temperature, "top_p": top_p, "top_k": top_k,
            "frequency_penalty": frequency_penalty, "presence_penalty": presence_penalty,
            "stream": is_streamed.then_some(true),
        });
        let members = match self.options.api {
            Provider::Anthropic => anthropic::members(request),
            Provider::OpenAi => openai_chat::members(request, is_streamed),
            Provider::OpenAiResponses => openai_responses::members(request),
        };
        let unsupported = |what| ModelError::Unsupported { endpoint: self.endpoint.clone(), what };
        let members = [all, members.map_err(|error| unsupported(error.0))?];
        let members = members.into_iter().filter_map(|members| match members {
            Json::Object(members) => Some(members),
            _ => None,
        });
        let members = members.flatten().filter(|(_, value)| !value.is_null()).collect();
        let tools = request.tools.iter().map(|tool| self.options.api.definition(tool)).collect();
        let body = serde_json::to_vec(&Body { members, tools }).map_err(|error| unsupported(error.to_string()))?;
        Ok(body.into())
    }
}

/// The URL of a resource of an API.
fn resource(base_url: &str, path: &str) -> Result<Url, InvalidOptions> {
    let shown = http_client::display_url(base_url);
    let invalid = |why: &str| InvalidOptions::Url { url: shown.clone(), why: why.to_owned() };
    let mut url = match Url::parse(base_url) {
        Ok(url) if ["http", "https"].contains(&url.scheme()) => url,
        _ if !base_url.contains("://") => return Err(invalid(&format!("write http://{shown}"))),
        Ok(_) => return Err(invalid("it must start with http:// or https://")),
        Err(error) => return Err(invalid(&error.to_string())),
    };
    let base = url.path().trim_end_matches('/');
    let is_version =
        |segment: &str| segment.strip_prefix('v').is_some_and(|it| it.starts_with(|it: char| it.is_ascii_digit()));
    let version = if base.split('/').any(is_version) { "" } else { "/v1" };
    url.set_path(&format!("{base}{version}/{path}"));
    Ok(url)
}

impl ApiKey {
    pub fn new(key: impl Into<String>) -> ApiKey {
        ApiKey(key.into())
    }

    /// Replaces the key in a text. Short texts are no secrets, and occur by chance.
    fn hide_in(&self, text: &str) -> String {
        if self.0.len() < MIN_KEY_LENGTH { text.to_owned() } else { text.replace(&self.0, "***") }
    }

    /// The answer without the key, which a provider may repeat.
    fn hide_in_response(&self, response: &Response) -> Response {
        let masked = serde_json::to_string(response).map(|text| self.hide_in(&text));
        masked.and_then(|text| serde_json::from_str(&text)).unwrap_or_else(|_| response.clone())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(***)")
    }
}

#[cfg(test)]
mod tests;
