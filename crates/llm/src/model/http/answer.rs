//! What is wrong with an answer of a provider, and how its pieces are put together.

use serde_json::Value as Json;

use crate::{
    api::{IncompletePart, error_message, error_status},
    model::{Delta, DeltaSink},
};

/// Why an answer with status 200 is none.
#[derive(Debug)]
pub(super) enum AnswerError {
    /// It is not one of this API.
    Malformed(String),
    /// It has an error of the provider.
    Failed { status: u16, message: String },
}

impl From<IncompletePart> for AnswerError {
    fn from(part: IncompletePart) -> Self {
        AnswerError::Malformed(part.to_string())
    }
}

/// Whether the stream goes on after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Open,
    Complete,
}

/// An error in an answer.
pub(super) fn failed(error: &Json) -> AnswerError {
    let message = error_message(error).or(error.as_str()).unwrap_or_default().to_owned();
    AnswerError::Failed { status: error_status(error), message }
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
