//! The answer of a provider: whole, or put together from the events of a stream.

use serde_json::{Value as Json, json};

use super::{anthropic, openai_chat, openai_responses};
use crate::{
    api::{error_message, error_status},
    model::{Delta, DeltaSink, Response},
    native::Provider,
};

/// Why an answer with status 200 is none.
#[derive(Debug)]
pub(super) enum AnswerError {
    /// It is not one of this API.
    Malformed(String),
    /// It has an error of the provider.
    Failed { status: u16, message: String },
}

/// An answer while it comes in.
#[derive(Debug)]
pub(super) struct StreamedAnswer {
    api: Provider,
    /// What a whole answer would be.
    whole: Json,
}

/// Whether the stream goes on after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Open,
    Complete,
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

/// An error in an answer.
pub(super) fn failed(error: &Json) -> AnswerError {
    let message = error_message(error).or(error.as_str()).unwrap_or_default().to_owned();
    AnswerError::Failed { status: error_status(error), message }
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

pub(super) fn malformed(why: impl Into<String>) -> AnswerError {
    AnswerError::Malformed(why.into())
}

/// Passes on a piece of text.
pub(super) fn emit(piece: &Json, make: fn(String) -> Delta, deltas: DeltaSink<'_>) {
    if let Some(piece) = piece.as_str().filter(|piece| !piece.is_empty()) {
        deltas(make(piece.to_owned()));
    }
}

/// Appends a piece to the text of a member. Anything but a text is replaced.
pub(super) fn append(object: &mut Json, key: &str, piece: &Json) {
    let (Some(object), Some(piece)) = (object.as_object_mut(), piece.as_str()) else { return };
    match object.get_mut(key) {
        Some(Json::String(text)) => text.push_str(piece),
        _ => drop(object.insert(key.to_owned(), piece.into())),
    }
}
