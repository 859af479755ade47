//! The answer of a provider: whole, or put together from the events of a stream.

use serde_json::{Value as Json, json};

use super::{
    answer::{AnswerError, Progress, failed, malformed},
    anthropic, openai_chat, openai_responses,
};
use crate::{
    model::{DeltaSink, Response},
    native::Provider,
};

/// An answer while it comes in.
#[derive(Debug)]
pub(super) struct StreamedAnswer {
    api: Provider,
    /// What a whole answer would be.
    whole: Json,
}

/// # Errors
/// The answer is not one of this API, or it is an error.
pub(super) fn read(api: Provider, whole: &Json) -> Result<Response, AnswerError> {
    // Some servers send errors with status 200.
    if let error @ (Json::Object(_) | Json::String(_)) = &whole["error"] {
        return Err(failed(error));
    }
    match api {
        Provider::Anthropic => anthropic::read(whole),
        Provider::OpenAi => openai_chat::read(whole),
        Provider::OpenAiResponses => openai_responses::read(whole),
    }
}

impl StreamedAnswer {
    pub(super) fn new(api: Provider) -> StreamedAnswer {
        StreamedAnswer { api, whole: json!({}) }
    }

    /// Takes the data of the next event.
    ///
    /// # Errors
    /// The event is not one of this API, or it is an error.
    pub(super) fn add(&mut self, data: &[u8], deltas: DeltaSink<'_>) -> Result<Progress, AnswerError> {
        if data == b"[DONE]" {
            return Ok(Progress::Complete);
        }
        let event: Json =
            serde_json::from_slice(data).map_err(|error| malformed(format!("an event is not JSON: {error}")))?;
        match self.api {
            Provider::Anthropic => anthropic::add(&mut self.whole, event, deltas),
            Provider::OpenAi => openai_chat::add(&mut self.whole, &event, deltas),
            Provider::OpenAiResponses => openai_responses::add(&mut self.whole, event, deltas),
        }
    }

    /// Whether the reason for the end was there, so that only the end of the stream is missing.
    pub(super) fn has_stopped(&self) -> bool {
        let stop = match self.api {
            Provider::Anthropic => &self.whole["stop_reason"],
            Provider::OpenAi => &self.whole["choices"][0]["finish_reason"],
            Provider::OpenAiResponses => &self.whole["status"],
        };
        stop.is_string()
    }

    /// # Errors
    /// As [`read`].
    pub(super) fn finish(self) -> Result<Response, AnswerError> {
        read(self.api, &self.whole)
    }
}
