//! The messages of a conversation.

use std::mem;

use rehearse_llm::{
    final_answer::Dialog,
    model::{Block, Message, ToolCall, ToolResult},
};

use crate::tool_format::dialog_of;

/// A conversation with a model, which a run continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    pub messages: Vec<Message>,
}

impl Conversation {
    /// Gives every tool call a result, as providers want it: a run that was cancelled or killed left some out. Returns the
    /// results that belong at the end.
    pub(crate) fn fill_gaps(&mut self) -> Vec<ToolResult> {
        let mut missing: Vec<ToolResult> = Vec::new();
        for message in mem::take(&mut self.messages) {
            match &message {
                Message::ToolResult(result) => missing.retain(|it| it.call_id != result.call_id),
                _ => self.messages.extend(missing.drain(..).map(Message::ToolResult)),
            }
            missing.extend(message.tool_calls().map(no_result));
            self.messages.push(message);
        }
        missing
    }

    /// The messages of the assistant from `start`, as the dialog of which the last text is taken.
    pub(crate) fn dialog_from(&self, start: usize) -> Dialog {
        let of_assistant = self.messages[start..].iter().filter(|message| matches!(message, Message::Assistant { .. }));
        Dialog { turns: of_assistant.flat_map(|message| dialog_of(message, &[]).turns).collect() }
    }
}

fn no_result(call: &ToolCall) -> ToolResult {
    let content = vec![Block::text("no result: the run ended during this call, or before it")];
    ToolResult { call_id: call.id.clone(), tool: call.name.clone(), content, is_error: true }
}
