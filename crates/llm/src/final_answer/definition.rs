//! The definition of the tool for the model of a subagent.

use serde_json::{Value as Json, json};

use super::AnswerSchema;

/// The name of the tool.
pub const NAME: &str = "final_answer";

/// The description of the tool.
pub const DESCRIPTION: &str = "Submit the final structured answer. Call this tool when you have completed the task and \
                               are ready to return the result.";

/// The format of tool definitions of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The Messages API of Anthropic (<https://docs.claude.com/en/api/messages>, `tools`).
    Anthropic,
    /// The Chat Completions API of OpenAI (<https://platform.openai.com/docs/api-reference/chat/create>, `tools`).
    OpenAi,
}

impl AnswerSchema {
    /// The definition of `final_answer` with this schema as its input schema.
    pub fn definition(&self, shape: Shape) -> Json {
        match shape {
            Shape::Anthropic => json!({ "name": NAME, "description": DESCRIPTION, "input_schema": self.json() }),
            Shape::OpenAi => json!({
                "type": "function",
                "function": { "name": NAME, "description": DESCRIPTION, "parameters": self.json() },
            }),
        }
    }
}
