//! The events of a run as notifications of the call: log messages and progress, fire and forget.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value as Json, json};

use crate::{EmitFuture, Event, EventSink, RunLabel};
use rehearse_document::text::shortened;
use rehearse_llm::model::{Message, text_of};
use rehearse_mock::{HandlerCall, script::LogLevel};

/// How much of a text is in a progress message.
const MAX_MESSAGE: usize = 80;

/// Sends the events of one run to the client that made the call.
pub(super) struct CallNotifications {
    call: HandlerCall,
    logger: String,
    turns: AtomicU32,
}

impl CallNotifications {
    pub(super) fn new(call: HandlerCall, name: &str) -> CallNotifications {
        CallNotifications { call, logger: format!("subagent.{name}"), turns: AtomicU32::new(0) }
    }

    fn log(&self, level: LogLevel, event: &str, mut data: Json) {
        data["event"] = event.into();
        self.call.log(level, Some(&self.logger), data);
    }

    /// An answer of the model is one step of an unknown number.
    fn progress(&self, message: &Message) {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        let calls: Vec<_> = message.tool_calls().map(|call| call.name.as_str()).collect();
        let text = match &calls[..] {
            [] => shortened(&message.text(), MAX_MESSAGE),
            calls => format!("calls {}", calls.join(", ")),
        };
        self.call.progress(f64::from(turn), None, Some(&format!("turn {turn}: {text}")));
    }
}

impl EventSink for CallNotifications {
    fn emit<'a>(&'a self, _: &'a RunLabel, event: Event<'a>) -> EmitFuture<'a> {
        let data = match event {
            Event::Thought { text, .. } | Event::Response(text) | Event::Warning(text) => json!({ "text": text }),
            Event::ToolCall { call, .. } => {
                json!({ "toolName": call.name, "toolCallId": call.id, "arguments": call.arguments })
            }
            Event::ToolResult(result) => {
                let text = text_of(&result.content);
                json!({ "toolName": result.tool, "toolCallId": result.call_id, "isError": result.is_error, "text": text })
            }
            Event::Ended { error: Some(error), .. } => json!({ "error": error }),
            Event::MessageSaved(saved) => json!(saved),
            Event::Message(message @ Message::Assistant { .. }) => {
                self.progress(message);
                Json::Null
            }
            Event::Started | Event::Message(_) | Event::Ended { error: None, .. } => Json::Null,
        };
        let level = match event {
            Event::Thought { .. } | Event::MessageSaved(_) => LogLevel::DEBUG,
            Event::Warning(_) => LogLevel::WARNING,
            Event::ToolResult(result) if result.is_error => LogLevel::WARNING,
            Event::Ended { .. } => LogLevel::ERROR,
            _ => LogLevel::INFO,
        };
        if !data.is_null() {
            self.log(level, event.name(), data);
        }
        Box::pin(async { Ok(()) })
    }
}
