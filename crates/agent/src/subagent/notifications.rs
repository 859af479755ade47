//! The events of a run as notifications of the call: log messages and progress, fire and forget.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value as Json, json};

use crate::{EmitFuture, Event, EventSink, RunLabel};
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
            [] => shorten(&message.text()),
            calls => format!("calls {}", calls.join(", ")),
        };
        self.call.progress(f64::from(turn), None, Some(&format!("turn {turn}: {text}")));
    }
}

impl EventSink for CallNotifications {
    fn emit<'a>(&'a self, _: &'a RunLabel, event: Event<'a>) -> EmitFuture<'a> {
        match event {
            Event::Thought { text, .. } => self.log(LogLevel::DEBUG, event.name(), json!({ "text": text })),
            Event::Response(text) => self.log(LogLevel::INFO, event.name(), json!({ "text": text })),
            Event::ToolCall { call, .. } => {
                let data = json!({ "toolName": call.name, "toolCallId": call.id, "arguments": call.arguments });
                self.log(LogLevel::INFO, event.name(), data);
            }
            Event::ToolResult(result) => {
                let text = text_of(&result.content);
                let data = json!({ "toolName": result.tool, "toolCallId": result.call_id, "isError": result.is_error, "text": text });
                self.log(LogLevel::INFO, event.name(), data);
            }
            Event::Warning(text) => self.log(LogLevel::WARNING, event.name(), json!({ "text": text })),
            Event::Ended { error: Some(error) } => {
                self.log(LogLevel::ERROR, event.name(), json!({ "error": error }));
            }
            Event::Message(message @ Message::Assistant { .. }) => self.progress(message),
            Event::MessageSaved(saved) => self.log(LogLevel::DEBUG, event.name(), json!(saved)),
            Event::Started | Event::Message(_) | Event::Ended { error: None } => {}
        }
        Box::pin(async { Ok(()) })
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
