//! What came of a tool call, in the forms in which other programs hand it to their model.
//!
//! A [`ToolOutcome`] keeps everything; each projection carries what its program has a place for, and says so where there
//! is none. Three rules hold in all of them: a tool that reports an error is never told as a success, a call that failed
//! is a result as well and never ends the conversation, and JSON of the server is passed on as the bytes that came.

mod canonical;
pub mod code_agent;
pub mod cpe;
pub mod engine;
pub mod mcpilot;
mod refusal;
#[cfg(test)]
mod tests;

use std::{fmt, str::FromStr};

use serde::Serialize;
use serde_json::{Value, value::RawValue};

pub use canonical::Canonical;
pub use refusal::Refusal;

use rehearse_client::{Content, Failure, ToolOutcome};

/// A form of the result of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Projection {
    /// The result as the server sent it.
    Canonical,
    /// A message of blocks, as cpe adds it to its dialog.
    Cpe,
    /// The record `{success, output, data, error}` of code_agent.
    CodeAgent,
    /// The record `{content, isError, success}` of MCPilot.
    Mcpilot,
    /// The tool result of aidk's engine, with its content blocks.
    Engine,
}

/// The call that a result is of.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Of the model's tool call; empty if no model made it.
    pub id: &'a str,
    pub server: &'a str,
    /// Under its name on the server.
    pub tool: &'a str,
}

/// A result in one of its forms; it serialises as that form alone.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Projected<'a> {
    Canonical(Canonical<'a>),
    Cpe(cpe::Message<'a>),
    CodeAgent(code_agent::ToolResult<'a>),
    Mcpilot(mcpilot::Response<'a>),
    Engine(engine::ToolResult<'a>),
}

impl Projection {
    pub const ALL: [Projection; 5] =
        [Projection::Canonical, Projection::Cpe, Projection::CodeAgent, Projection::Mcpilot, Projection::Engine];

    pub fn as_str(self) -> &'static str {
        match self {
            Projection::Canonical => "canonical",
            Projection::Cpe => "cpe",
            Projection::CodeAgent => "code_agent",
            Projection::Mcpilot => "mcpilot",
            Projection::Engine => "engine",
        }
    }

    /// What came of a call, in this form.
    pub fn project<'a>(self, call: &Call<'a>, result: Result<&'a ToolOutcome, &'a Failure>) -> Projected<'a> {
        match self {
            Projection::Canonical => Projected::Canonical(Canonical::new(result)),
            Projection::Cpe => Projected::Cpe(cpe::Message::new(call, result)),
            Projection::CodeAgent => Projected::CodeAgent(code_agent::ToolResult::new(call, result)),
            Projection::Mcpilot => Projected::Mcpilot(mcpilot::Response::new(result)),
            Projection::Engine => Projected::Engine(engine::ToolResult::new(call, result)),
        }
    }

    /// What is said of a call that was not made, in this form.
    pub fn refuse<'a>(self, call: &Call<'a>, refusal: &Refusal) -> Projected<'a> {
        match self {
            Projection::Canonical => Projected::Canonical(Canonical::refused(refusal)),
            Projection::Cpe => Projected::Cpe(cpe::Message::refused(call, refusal)),
            Projection::CodeAgent => Projected::CodeAgent(code_agent::ToolResult::refused(call, refusal)),
            Projection::Mcpilot => Projected::Mcpilot(mcpilot::Response::refused(call, refusal)),
            Projection::Engine => Projected::Engine(engine::ToolResult::refused(call, refusal)),
        }
    }
}

impl fmt::Display for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no projection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown form {0:?}: use {forms}", forms = Projection::ALL.map(Projection::as_str).join(", "))]
pub struct UnknownProjection(pub String);

impl FromStr for Projection {
    type Err = UnknownProjection;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Projection::ALL.into_iter().find(|projection| projection.as_str() == text);
        named.ok_or_else(|| UnknownProjection(text.to_owned()))
    }
}

/// A failure in words that stand alone.
fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Rpc(error) => error.to_string(),
        failure => format!("{}: {failure}", failure.kind()),
    }
}

/// The structured content of a result that does not say it in words. A server should repeat it as text for those who
/// do not know structured content (2025-06-18, Tools: Structured Content); for those that do not, a projection without
/// a place for it does.
fn unspoken(outcome: &ToolOutcome) -> Option<&RawValue> {
    let has_text = outcome.content.iter().any(|content| matches!(content, Content::Text { .. }));
    outcome.structured_content.as_deref().filter(|_| !has_text)
}

/// A string member of a block that [`Content`] does not name.
fn member(raw: &RawValue, path: &str) -> Option<String> {
    let block: Value = serde_json::from_str(raw.get()).ok()?;
    block.pointer(path)?.as_str().map(str::to_owned)
}
