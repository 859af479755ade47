//! What happens in a run, for those who watch it.

use std::{pin::Pin, sync::Arc, time::Duration};

use crate::RunStatistics;
use rehearse_llm::model::{Message, ToolCall, ToolResult};
use serde::Serialize;

/// Which run an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLabel {
    /// The name of the agent.
    pub agent: Arc<str>,
    /// The id of the run.
    pub run_id: Arc<str>,
}

/// Something that happened in a run.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The run starts.
    Started,
    /// A message was added to the conversation.
    Message(&'a Message),
    /// The message was saved.
    MessageSaved(&'a SavedMessage),
    /// The model thought.
    Thought {
        text: &'a str,
        /// Only the provider can read it; the text is empty.
        is_encrypted: bool,
    },
    /// The model wrote text.
    Response(&'a str),
    /// A tool is about to be called.
    ToolCall {
        call: &'a ToolCall,
        /// The time limit of a program in code mode.
        timeout: Option<Duration>,
    },
    /// A tool has answered.
    ToolResult(&'a ToolResult),
    /// Something went wrong that does not end the run.
    Warning(&'a str),
    /// The run ended, with this error if it failed.
    Ended { error: Option<&'a str>, statistics: RunStatistics },
}

/// An event that a sink could not deliver, and that must be delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct EmitError {
    /// The name of the event.
    pub event: &'static str,
    pub why: String,
}

/// The result of [`EventSink::emit`].
pub type EmitFuture<'a> = Pin<Box<dyn Future<Output = Result<(), EmitError>> + Send + 'a>>;

/// Gets the events of all runs of an agent, each run's in order.
pub trait EventSink: Send + Sync {
    /// Takes an event. The run waits for it.
    ///
    /// # Errors
    /// The event could not be delivered, which ends the run. A sink that may lose events returns `Ok`.
    fn emit<'a>(&'a self, run: &'a RunLabel, event: Event<'a>) -> EmitFuture<'a>;

    /// Takes what this sink has saved for the latest [`Event::Message`] of the run; most save nothing.
    fn take_saved(&self, _: &RunLabel) -> Option<SavedMessage> {
        None
    }
}

/// A message in a file of conversations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedMessage {
    pub message_id: String,
    /// `user`, `assistant` or `tool_result`.
    pub role: &'static str,
    pub parent_id: Option<String>,
}

impl Event<'_> {
    /// The name of the event, as in the log notifications of a server.
    pub fn name(&self) -> &'static str {
        match self {
            Event::Started => "subagent_start",
            Event::Message(_) => "message",
            Event::MessageSaved(_) => "message_saved",
            Event::Thought { .. } => "thought_trace",
            Event::Response(_) => "response",
            Event::ToolCall { .. } => "tool_call",
            Event::ToolResult(_) => "tool_result",
            Event::Warning(_) => "warning",
            Event::Ended { .. } => "subagent_end",
        }
    }
}
