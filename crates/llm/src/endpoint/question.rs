//! What a client asks, independent of the API.

use std::collections::HashMap;

use serde_json::{
    Value as Json,
    value::{RawValue, to_raw_value},
};

use crate::{
    ToolDefinition,
    api::IncompletePart,
    model::{Block, GenerationOptions, Message, Request, ToolResult},
};

/// What a client asks the model.
#[derive(Debug, Default)]
pub struct Question {
    /// The model that the client names.
    pub model: String,
    /// All system texts, one below the other.
    pub system: Option<String>,
    pub messages: Vec<Message>,
    pub tools: Vec<OfferedTool>,
    pub(super) is_streamed: bool,
    /// What the answer must be like, if it must be JSON.
    pub(super) answer_schema: Option<Json>,
    /// Whether a stream of chat completions ends with the usage.
    pub(super) with_usage: bool,
    /// The tool of each call so far.
    calls: HashMap<String, String>,
}

/// Why a request asks nothing. Places are written as the API does.
#[derive(Debug, thiserror::Error)]
pub(super) enum QuestionError {
    #[error("{place} must be {wanted}")]
    Member { place: String, wanted: &'static str },
    #[error("{place} has no `{member}`")]
    Missing { place: String, member: &'static str },
    #[error("{place}: {source}")]
    Part { place: String, source: IncompletePart },
    #[error("`{0}` is not supported: nothing is stored; send all items in `input`")]
    Earlier(&'static str),
    #[error("{place} is a reference: nothing is stored; send the item")]
    Reference { place: String },
}

impl QuestionError {
    pub(super) fn member(place: impl Into<String>, wanted: &'static str) -> QuestionError {
        QuestionError::Member { place: place.into(), wanted }
    }
}

/// A tool that a client offers to the model.
#[derive(Debug)]
pub struct OfferedTool {
    /// With the namespace before it, if it has one.
    pub name: String,
    /// That of a function of the Responses API.
    pub namespace: Option<String>,
    pub description: Option<String>,
    pub schema: Box<RawValue>,
}

/// A name with its namespace.
pub(super) fn qualified(namespace: &str, name: &str) -> String {
    format!("{namespace}__{name}")
}

impl Question {
    /// The members that all APIs have.
    ///
    /// # Errors
    /// The client names no model.
    pub(super) fn new(body: &Json) -> Result<Question, QuestionError> {
        let model = body["model"].as_str().ok_or_else(|| QuestionError::member("`model`", "a text"))?.to_owned();
        Ok(Question::of(model, body["stream"] == true))
    }

    pub(super) fn of(model: String, is_streamed: bool) -> Question {
        Question { model, is_streamed, ..Question::default() }
    }

    pub(super) fn add_system(&mut self, text: String) {
        self.system = Some(self.system.take().map_or(text.clone(), |system| format!("{system}\n{text}")));
    }

    pub(super) fn add_user(&mut self, content: Vec<Block>) {
        self.messages.push(Message::User { content });
    }

    pub(super) fn add_assistant(&mut self, content: Vec<Block>) {
        let message = Message::Assistant { content };
        self.calls.extend(message.tool_calls().map(|call| (call.id.clone(), call.name.clone())));
        self.messages.push(message);
    }

    /// Adds to the message of the assistant, if it is the last one.
    pub(super) fn extend_assistant(&mut self, more: Vec<Block>) {
        match self.messages.pop() {
            Some(Message::Assistant { mut content }) => {
                content.extend(more);
                self.add_assistant(content);
            }
            last => {
                self.messages.extend(last);
                self.add_assistant(more);
            }
        }
    }

    pub(super) fn add_result(&mut self, call_id: &str, content: Vec<Block>, is_error: bool) {
        let tool = self.calls.get(call_id).cloned().unwrap_or_default();
        self.messages.push(Message::ToolResult(ToolResult { call_id: call_id.to_owned(), tool, content, is_error }));
    }

    /// Adds a tool. A tool of the provider has only a type.
    pub(super) fn add_tool(&mut self, tool: &Json, schema: &Json, namespace: Option<&str>) {
        let name = tool["name"].as_str().or(tool["type"].as_str()).unwrap_or_default();
        let name = namespace.map_or(name.to_owned(), |namespace| qualified(namespace, name));
        let (namespace, description) = (namespace.map(str::to_owned), tool["description"].as_str().map(str::to_owned));
        if let Ok(schema) = to_raw_value(schema) {
            self.tools.push(OfferedTool { name, namespace, description, schema });
        }
    }

    /// The namespace of a tool, and its name there.
    pub(super) fn in_namespace<'a>(&'a self, name: &'a str) -> Option<(&'a str, &'a str)> {
        let namespace = self.tools.iter().find(|tool| tool.name == name)?.namespace.as_deref()?;
        Some((namespace, name.strip_prefix(namespace)?.strip_prefix("__")?))
    }

    pub(super) fn definitions(&self) -> Vec<ToolDefinition<'_>> {
        let tools = self.tools.iter().map(|OfferedTool { name, description, schema, .. }| ToolDefinition {
            description: description.as_deref(),
            ..ToolDefinition::new(name, schema)
        });
        tools.collect()
    }

    pub(super) fn request<'a>(
        &'a self,
        tools: &'a [ToolDefinition<'a>],
        options: &'a GenerationOptions,
    ) -> Request<'a> {
        Request { system: self.system.as_deref(), messages: &self.messages, tools, options }
    }
}
