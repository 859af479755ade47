//! The messages of a conversation.

use rehearse_llm::{
    final_answer::{Arguments, Call, Dialog, Location, Turn, TurnItem},
    model::{Block, Message},
};

/// A conversation with a model, which a run continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    pub messages: Vec<Message>,
}

impl Conversation {
    /// The messages from `start`, as the dialog of which [`extract`](rehearse_llm::final_answer::extract) gets the answer.
    pub(crate) fn dialog_from(&self, start: usize) -> Dialog {
        let item = |block: &Block| match block {
            Block::Text { text } => Some(TurnItem::Text { text: text.clone(), at: Location::default() }),
            Block::ToolCall(call) => Some(TurnItem::Call(Call {
                name: call.name.clone(),
                arguments: Arguments::Text(call.arguments.clone()),
                at: Location::default(),
            })),
            Block::Thinking { .. } | Block::Media(_) => None,
        };
        let turns = self.messages[start..].iter().filter_map(|message| match message {
            Message::Assistant { content } => Some(Turn { items: content.iter().filter_map(item).collect() }),
            Message::User { .. } | Message::ToolResult(_) => None,
        });
        Dialog { turns: turns.collect() }
    }
}
