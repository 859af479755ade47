//! The result of a tool call in the forms in which other programs pass it to their model.
//!
//! A [`ToolOutcome`] keeps everything; each projection keeps what its program supports, and reports what it does not.
//! Three rules hold in all of them: the error of a tool is never a success; a failed call is also a result and never
//! ends the conversation; JSON of the server is passed on byte for byte.

mod call_rejection;
mod canonical;
pub mod code_agent;
pub mod cpe;
pub mod engine;
pub mod mcpilot;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::{Value, value::RawValue};

pub use call_rejection::CallRejection;
pub use canonical::Canonical;
pub use rehearse_client_configs::projection::{Projection, UnknownProjection};

use rehearse_client::{Content, Failure, ToolOutcome};

/// The call that a result belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The id of the model's tool call; empty if no model made it.
    pub id: &'a str,
    pub server: &'a str,
    /// The name of the tool on the server.
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

/// The result of a call, in a form.
pub fn project<'a>(form: Projection, call: &Call<'a>, result: Result<&'a ToolOutcome, &'a Failure>) -> Projected<'a> {
    match form {
        Projection::Canonical => Projected::Canonical(Canonical::new(result)),
        Projection::Cpe => Projected::Cpe(cpe::Message::new(call, result)),
        Projection::CodeAgent => Projected::CodeAgent(code_agent::ToolResult::new(call, result)),
        Projection::Mcpilot => Projected::Mcpilot(mcpilot::Response::new(result)),
        Projection::Engine => Projected::Engine(engine::ToolResult::new(call, result)),
    }
}

/// The result of a call that was not sent, in a form.
pub fn reject<'a>(form: Projection, call: &Call<'a>, rejection: &CallRejection) -> Projected<'a> {
    match form {
        Projection::Canonical => Projected::Canonical(Canonical::rejected(rejection)),
        Projection::Cpe => Projected::Cpe(cpe::Message::rejected(call, rejection)),
        Projection::CodeAgent => Projected::CodeAgent(code_agent::ToolResult::rejected(call, rejection)),
        Projection::Mcpilot => Projected::Mcpilot(mcpilot::Response::rejected(call, rejection)),
        Projection::Engine => Projected::Engine(engine::ToolResult::rejected(call, rejection)),
    }
}

/// The message of a failure with its kind.
fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Rpc(error) => error.to_string(),
        failure => format!("{}: {failure}", failure.kind()),
    }
}

/// The structured content of a result without text. A server should repeat structured content as text for clients that
/// do not support it (2025-06-18, Tools: Structured Content); if it does not, a projection without structured content
/// adds the text.
pub fn structured_without_text(outcome: &ToolOutcome) -> Option<&RawValue> {
    let has_text = outcome.content.iter().any(|content| matches!(content, Content::Text { .. }));
    outcome.structured_content.as_deref().filter(|_| !has_text)
}

/// A string member of a block that [`Content`] does not name.
fn member(raw: &RawValue, path: &str) -> Option<String> {
    let block: Value = serde_json::from_str(raw.get()).ok()?;
    block.pointer(path)?.as_str().map(str::to_owned)
}
