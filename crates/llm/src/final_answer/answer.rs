//! What came of a dialog: an answer, or why there is none.

use std::fmt;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use rehearse_document::{Span, json_schema::Mismatch};

/// A value of a dialog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// JSON pointer into the dialog.
    pub pointer: String,
    /// Where it stands in the text that the dialog was read from.
    pub span: Span,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The structured answer as compact JSON; otherwise what the assistant said.
    pub text: String,
    /// What `final_answer` was called with, its numbers as the model wrote them.
    pub structured: Option<Box<RawValue>>,
    /// The arguments of the call, or the first text.
    pub at: Location,
    /// Further calls of `final_answer` in the same turn, which do not count.
    pub ignored_calls: Vec<Location>,
}

/// Why a dialog has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// No turn of the assistant calls the tool.
    #[error("subagent did not call final_answer tool")]
    NotCalled {
        /// What the assistant did instead.
        hint: Option<String>,
    },
    #[error("final_answer was called without arguments")]
    Empty { at: Location },
    /// The arguments are a text that is no JSON, as when the model was cut off.
    #[error("the arguments of final_answer are not valid JSON: {why}")]
    Unreadable { at: Location, why: String },
    /// The answer is none of the schema.
    #[error("the arguments of final_answer do not match the schema:{}", Lines(violations))]
    Mismatch {
        at: Location,
        /// Never empty.
        violations: Vec<Violation>,
    },
    /// There is no schema, and the assistant has said nothing.
    #[error("the dialog has no text of the assistant")]
    NoText { hint: Option<String> },
}

/// One thing in which an answer does not fit its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path within the answer, and what is wrong there.
    pub mismatch: Mismatch,
    /// The value in the dialog; the arguments as a whole if they are a text.
    pub at: Location,
}

/// Each violation on a line of its own.
struct Lines<'a>(&'a [Violation]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|violation| write!(f, "\n  {}", violation.mismatch))
    }
}

/// The result of a tool call (2025-11-25, Tools: Tool Result).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    content: [Content<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

#[derive(Serialize)]
struct Content<'a> {
    r#type: &'static str,
    text: &'a str,
}

impl ToolResult<'_> {
    fn of<'a>(text: &'a str, structured_content: Option<&'a RawValue>, is_error: bool) -> Box<RawValue> {
        let result = ToolResult { content: [Content { r#type: "text", text }], structured_content, is_error };
        to_raw_value(&result).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }
}

impl Answer {
    pub(super) fn structured(json: Box<RawValue>, at: Location, ignored_calls: Vec<Location>) -> Answer {
        Answer { text: json.get().to_owned(), structured: Some(json), at, ignored_calls }
    }

    pub(super) fn text(text: String, at: Location) -> Answer {
        Answer { text, structured: None, at, ignored_calls: Vec::new() }
    }

    /// The answer as the result of the MCP tool that ran the subagent: a structured one as `structuredContent` and, for
    /// clients that do not know that, as text (2025-11-25, Tools: Structured Content).
    pub fn to_tool_result(&self) -> Box<RawValue> {
        ToolResult::of(&self.text, self.structured.as_deref(), false)
    }
}

impl AnswerError {
    /// A stable name of the reason.
    pub fn kind(&self) -> &'static str {
        match self {
            AnswerError::NotCalled { .. } => "not_called",
            AnswerError::Empty { .. } => "empty",
            AnswerError::Unreadable { .. } => "unreadable",
            AnswerError::Mismatch { .. } => "mismatch",
            AnswerError::NoText { .. } => "no_text",
        }
    }

    /// The arguments that are wrong, if there are any.
    pub fn at(&self) -> Option<&Location> {
        match self {
            AnswerError::Empty { at } | AnswerError::Unreadable { at, .. } | AnswerError::Mismatch { at, .. } => {
                Some(at)
            }
            AnswerError::NotCalled { .. } | AnswerError::NoText { .. } => None,
        }
    }

    /// What the dialog has instead of an answer.
    pub fn hint(&self) -> Option<&str> {
        match self {
            AnswerError::NotCalled { hint } | AnswerError::NoText { hint } => hint.as_deref(),
            _ => None,
        }
    }

    /// Everything in which the answer does not fit its schema.
    pub fn violations(&self) -> &[Violation] {
        match self {
            AnswerError::Mismatch { violations, .. } => violations,
            _ => &[],
        }
    }

    /// The failure as the result of the MCP tool that ran the subagent, which is an error that the caller's model reads
    /// (2025-11-25, Tools: Error Handling).
    pub fn to_tool_result(&self) -> Box<RawValue> {
        ToolResult::of(&format!("Subagent execution failed: {self}"), None, true)
    }
}
