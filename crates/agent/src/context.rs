//! Keeps a conversation within the context of a model.

use rehearse_llm::{
    ToolDefinition,
    model::{Block, Message, ToolResult, text_of},
};

use crate::Conversation;

/// How many bytes a token has, about. Each model counts otherwise.
const TOKEN: usize = 4;
/// An image or a document, about, in bytes of text.
const MEDIA: usize = 6_400;
/// How many bytes of a shortened result are left.
const LEFT: usize = 400;
const SHORTENED: &str = "\n[shortened: the rest was left out to fit the context]";

impl Conversation {
    /// Shortens results of tools, the oldest first, until the request has at most so many tokens, by an estimate. Returns how
    /// many results it shortened.
    pub(crate) fn fit(&mut self, tokens: u64, system: Option<&str>, tools: &[ToolDefinition<'_>]) -> usize {
        let limit = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(TOKEN);
        let of_tool = |tool: &ToolDefinition<'_>| {
            tool.name.len() + tool.description.map_or(0, str::len) + tool.input_schema.get().len()
        };
        let mut total = system.map_or(0, str::len) + tools.iter().map(of_tool).sum::<usize>();
        total += self.messages.iter().map(|message| size(message.content())).sum::<usize>();
        let mut shortened = 0;
        for message in &mut self.messages {
            if total <= limit {
                break;
            }
            let Message::ToolResult(result) = message else { continue };
            let before = size(&result.content);
            if before > LEFT + SHORTENED.len() {
                shorten(result);
                total -= before - size(&result.content);
                shortened += 1;
            }
        }
        shortened
    }
}

fn shorten(result: &mut ToolResult) {
    let mut text = text_of(&result.content);
    text.truncate(rehearse_document::text::boundary_before(&text, LEFT));
    text.push_str(SHORTENED);
    result.content = vec![Block::text(text)];
}

fn size(content: &[Block]) -> usize {
    let size = |block: &Block| match block {
        Block::Text { text } | Block::Thinking { text, .. } => text.len(),
        Block::ToolCall(call) => call.name.len() + call.arguments.len(),
        Block::Media(_) => MEDIA,
    };
    content.iter().map(size).sum()
}
