//! Language models: one request, one answer.
//!
//! A [`Model`] gets a whole conversation and returns the next message. [`HttpModel`] asks a provider; [`ScriptedModel`]
//! answers from a YAML file; [`RecordedModel`] plays what a provider has answered before.

mod error;
pub mod http;
mod price;
mod recorded;
pub mod scripted;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::{
    error::ModelError,
    http::{ApiKey, HttpModel, HttpModelOptions, RetryPolicy},
    price::{Budget, Price, Spending},
    recorded::{RecordedAnswers, RecordedModel},
    scripted::ScriptedModel,
};
use crate::ToolDefinition;
pub use crate::message::{Block, Media, Message, StopReason, ToolCall, ToolResult, Usage, text_of};

/// A language model.
#[derive(Debug)]
pub enum Model {
    /// Answers from a script.
    Scripted(ScriptedModel),
    /// Asks a provider.
    Http(HttpModel),
    /// Asks a provider only for what is not recorded.
    Recorded(RecordedModel),
}

/// What a model is asked.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The conversation so far. The last message is not one of the assistant.
    pub messages: &'a [Message],
    /// The tools that the model may call.
    pub tools: &'a [ToolDefinition<'a>],
    /// How the model answers.
    pub options: &'a GenerationOptions,
}

/// How a model answers. What is not set is the provider's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerationOptions {
    /// The longest answer, in tokens.
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u32>,
    pub frequency_penalty: Option<f64>,
    pub presence_penalty: Option<f64>,
    pub stop_sequences: Vec<String>,
    /// `auto`, `required` (any tool), or the name of a tool.
    pub tool_choice: Option<String>,
    /// How many tokens the model may think, or an effort such as `high`.
    pub thinking: Option<String>,
}

/// The answer of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// Texts, thoughts and tool calls, in the order of the model.
    pub content: Vec<Block>,
    pub stop: StopReason,
    pub usage: Usage,
}

/// A piece of an answer while it comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Thinking(String),
    /// There is no answer yet: the request failed and is sent again after this time.
    Retry {
        error: String,
        wait: Duration,
    },
}

/// Gets each piece of an answer when it comes in.
pub type DeltaSink<'a> = &'a (dyn Fn(Delta) + Send + Sync);

impl Model {
    /// Asks for the next message. With `deltas`, the answer is streamed: the pieces of text and thoughts come first; that of a
    /// [`RecordedModel`] is not.
    /// Dropping the future cancels the request.
    ///
    /// # Errors
    /// [`ModelError`].
    pub async fn generate(&self, request: &Request<'_>, deltas: Option<DeltaSink<'_>>) -> Result<Response, ModelError> {
        match self {
            Model::Scripted(model) => model.generate(request, deltas).await,
            Model::Http(model) => model.generate(request, deltas).await,
            Model::Recorded(model) => model.generate(request).await,
        }
    }

    /// The name of the model.
    pub fn name(&self) -> &str {
        match self {
            Model::Scripted(model) => model.name(),
            Model::Http(model) => model.name(),
            Model::Recorded(model) => &model.name,
        }
    }
}
