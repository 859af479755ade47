//! The messages of a conversation.

use rehearse_llm::{final_answer::Dialog, model::Message};

use crate::tool_format::dialog_of;

/// A conversation with a model, which a run continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    pub messages: Vec<Message>,
}

impl Conversation {
    /// The messages of the assistant from `start`, as the dialog of which the last text is taken.
    pub(crate) fn dialog_from(&self, start: usize) -> Dialog {
        let of_assistant = self.messages[start..].iter().filter(|message| matches!(message, Message::Assistant { .. }));
        Dialog { turns: of_assistant.flat_map(|message| dialog_of(message, &[]).turns).collect() }
    }
}
