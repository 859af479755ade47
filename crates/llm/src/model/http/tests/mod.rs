mod answers;
mod errors;
mod requests;

use std::sync::Mutex;

use serde_json::value::RawValue;
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::method};

use super::*;
use crate::{
    ToolDefinition,
    model::{Block, GenerationOptions, Media, Message, StopReason, ToolCall, ToolResult, Usage},
    native::Provider::{Anthropic, OpenAi, OpenAiResponses},
};

const KEY: &str = "sk-secret";

/// A model at a server that answers every request like this; it tries once.
async fn model(api: Provider, answer: ResponseTemplate) -> (MockServer, HttpModel) {
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(answer).mount(&server).await;
    let model = HttpModel::new(options(api, &server.uri())).expect("a model");
    (server, model)
}

fn options(api: Provider, base_url: &str) -> HttpModelOptions {
    let (base_url, key) = (Some(base_url.to_owned()), Some(ApiKey::new(KEY)));
    HttpModelOptions { base_url, key, retry: RetryPolicy::NEVER, ..HttpModelOptions::new(api, "m") }
}

fn events(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(text, "text/event-stream; charset=utf-8")
}

fn json_answer(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(text, "application/json")
}

fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() })
}

async fn ask(model: &HttpModel, deltas: Option<DeltaSink<'_>>) -> Result<Response, ModelError> {
    let messages = [Message::user("Hi")];
    let options = GenerationOptions::default();
    model.generate(&Request { system: None, messages: &messages, tools: &[], options: &options }, deltas).await
}

/// The answer to a streamed request, and its pieces.
async fn stream(api: Provider, text: &str) -> (Result<Response, ModelError>, Vec<Delta>) {
    let (_server, model) = model(api, events(text)).await;
    let pieces = Mutex::new(Vec::new());
    let answer = ask(&model, Some(&|delta| pieces.lock().expect("no panic").push(delta))).await;
    (answer, pieces.into_inner().expect("no panic"))
}
