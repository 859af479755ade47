//! How a model calls tools: with the tool calls of its provider, or in its text.

use rehearse_llm::{
    final_answer::{Arguments, Call, Dialog, Location, Turn, TurnItem},
    model::{Block, Message, ToolCall, ToolResult, text_of},
    xml::{self, Parser},
};

use crate::Toolbox;

/// How a model calls tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolFormat {
    /// The provider has tool calls.
    #[default]
    Native,
    /// The system prompt describes the tools, and the model writes calls as XML. It gets results as messages of the user.
    Xml(xml::Options),
}

/// What a message of the model asks for.
pub(crate) struct Requests {
    pub(crate) calls: Vec<ToolCall>,
    /// What is wrong with other requests, for the model.
    pub(crate) errors: Vec<String>,
}

impl ToolFormat {
    /// The requests of a message. Calls in a text get ids that no earlier call has.
    pub(crate) fn requests(self, message: &Message, toolbox: &Toolbox, earlier: u32) -> Requests {
        let ToolFormat::Xml(options) = self else {
            return Requests { calls: message.tool_calls().cloned().collect(), errors: Vec::new() };
        };
        let found = Parser::new(toolbox.definitions(), options).parse(&message.text());
        let call = |(index, request): (u32, xml::ToolRequest)| ToolCall {
            id: format!("xml_{}", earlier + index + 1),
            name: request.name,
            arguments: serde_json::Value::Object(request.arguments).to_string(),
        };
        Requests {
            calls: (0..).zip(found.calls).map(call).collect(),
            errors: found.errors.iter().map(|error| error.to_json().to_string()).collect(),
        }
    }

    /// The messages that give results to the model.
    pub(crate) fn messages(self, results: Vec<ToolResult>, errors: Vec<String>) -> Vec<Message> {
        if self == ToolFormat::Native {
            return results.into_iter().map(Message::ToolResult).collect();
        }
        let media = results.iter().flat_map(|result| &result.content);
        let media: Vec<_> = media.filter(|block| matches!(block, Block::Media(_))).cloned().collect();
        let texts: Vec<_> = results.iter().map(|result| text_of(&result.content)).chain(errors).collect();
        let mut content = vec![Block::text(texts.join("\n"))];
        content.extend(media);
        if texts.is_empty() { Vec::new() } else { vec![Message::User { content }] }
    }
}

/// The latest turn, as the dialog of which the structured answer is taken.
pub(crate) fn dialog_of(message: &Message, calls: &[ToolCall]) -> Dialog {
    let text = |block: &Block| match block {
        Block::Text { text } => Some(TurnItem::Text { text: text.clone(), at: Location::default() }),
        _ => None,
    };
    let call = |call: &ToolCall| {
        let arguments = Arguments::Text(call.arguments.clone());
        TurnItem::Call(Call { name: call.name.clone(), arguments, at: Location::default() })
    };
    let items = message.content().iter().filter_map(text).chain(calls.iter().map(call));
    Dialog { turns: vec![Turn { items: items.collect() }] }
}
