//! The result of a dialog: an answer, or why there is none.

use std::fmt;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use rehearse_document::{Span, json_schema::Mismatch};

/// The location of a value in a dialog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// JSON pointer into the dialog.
    pub pointer: String,
    /// The span in the source of the dialog.
    pub span: Span,
}

/// The answer of a subagent.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The structured answer as compact JSON, or the last text of the assistant.
    pub text: String,
    /// The arguments of `final_answer`. Numbers are verbatim.
    pub structured: Option<Box<RawValue>>,
    /// The arguments of the call, or the first text.
    pub at: Location,
    /// Other calls of `final_answer` in the same turn.
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
    /// The arguments are a string that is not valid JSON, such as a truncated one.
    #[error("the arguments of final_answer are not valid JSON: {why}")]
    Unreadable { at: Location, why: String },
    /// The answer violates the schema.
    #[error("the arguments of final_answer do not match the schema:{}", Lines(violations))]
    Mismatch {
        at: Location,
        /// Never empty.
        violations: Vec<Violation>,
    },
    /// Without a schema: the assistant wrote no text.
    #[error("the dialog has no text of the assistant")]
    NoText { hint: Option<String> },
}

/// A violation of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path in the answer, and the error.
    pub mismatch: Mismatch,
    /// The value in the dialog, or all arguments if they are a string.
    pub at: Location,
}

/// Displays each violation on its own line.
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
    fn to_json<'a>(text: &'a str, structured_content: Option<&'a RawValue>, is_error: bool) -> Box<RawValue> {
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

    /// The answer of an assistant that wrote no text.
    pub fn empty() -> Answer {
        Answer::text(String::new(), Location::default())
    }

    /// The answer as the result of the MCP tool that ran the subagent. A structured answer is both `structuredContent` and,
    /// for older clients, text (2025-11-25, Tools: Structured Content).
    pub fn to_tool_result(&self) -> Box<RawValue> {
        ToolResult::to_json(&self.text, self.structured.as_deref(), false)
    }
}

impl AnswerError {
    /// The stable name of the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            AnswerError::NotCalled { .. } => "not_called",
            AnswerError::Empty { .. } => "empty",
            AnswerError::Unreadable { .. } => "unreadable",
            AnswerError::Mismatch { .. } => "mismatch",
            AnswerError::NoText { .. } => "no_text",
        }
    }

    /// The location of the wrong arguments.
    pub fn at(&self) -> Option<&Location> {
        match self {
            AnswerError::Empty { at } | AnswerError::Unreadable { at, .. } | AnswerError::Mismatch { at, .. } => {
                Some(at)
            }
            AnswerError::NotCalled { .. } | AnswerError::NoText { .. } => None,
        }
    }

    /// What the assistant did instead of answering.
    pub fn hint(&self) -> Option<&str> {
        match self {
            AnswerError::NotCalled { hint } | AnswerError::NoText { hint } => hint.as_deref(),
            _ => None,
        }
    }

    /// All violations of the schema.
    pub fn violations(&self) -> &[Violation] {
        match self {
            AnswerError::Mismatch { violations, .. } => violations,
            _ => &[],
        }
    }

    /// The error as the result of the MCP tool that ran the subagent, for the calling model (2025-11-25, Tools: Error
    /// Handling).
    pub fn to_tool_result(&self) -> Box<RawValue> {
        ToolResult::to_json(&format!("Subagent execution failed: {self}"), None, true)
    }
}
