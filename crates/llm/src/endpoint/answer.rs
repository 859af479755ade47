//! The answer of the model, and the pieces in which it is streamed.

use super::question::Question;
use crate::model::{Block, Response};

/// How many characters of arguments are in one piece.
const PIECE: usize = 16;

/// The answer to a question.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    /// Counts the questions, from 1.
    pub(super) number: u64,
    pub(super) question: &'a Question,
    pub(super) response: &'a Response,
}

impl Answer<'_> {
    /// The id of the answer, with the prefix of the API.
    pub(super) fn id(&self, prefix: &str) -> String {
        format!("{prefix}_{}", self.number)
    }

    /// A line for people.
    pub(super) fn note(&self) -> String {
        let part = |block: &Block| match block {
            Block::Text { .. } => "text".to_owned(),
            Block::Thinking { .. } => "thinking".to_owned(),
            Block::ToolCall(call) => format!("calls {}", call.name),
            Block::Media(_) => "media".to_owned(),
        };
        let mut parts: Vec<_> = self.response.content.iter().map(part).collect();
        parts.extend(self.question.is_streamed.then(|| "streamed".to_owned()));
        parts.join(", ")
    }
}

/// The words of a text, each with the space after it.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// The pieces of arguments.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<_> = text.chars().collect();
    letters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}
