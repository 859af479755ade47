//! What was said: the messages of a dialog, as the providers of models write them.

use std::sync::Arc;

use super::{Location, NAME, message, source};
use rehearse_document::{Diagnostics, Node, Problems, Source, nearest};

/// The turns of the assistant, in their order. What the others said cannot change an answer.
///
/// | shape | texts | calls of tools |
/// | --- | --- | --- |
/// | Anthropic, Messages | `content` | blocks `tool_use` with `input` |
/// | OpenAI, Chat Completions | `content` | `tool_calls` with `function.arguments`, a text; the older `function_call` |
/// | OpenAI, Responses | items `message` | items `function_call` with `arguments`, a text |
///
/// Sources: <https://docs.claude.com/en/api/messages>, <https://platform.openai.com/docs/api-reference/chat/object>,
/// <https://platform.openai.com/docs/api-reference/responses/object>.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dialog {
    pub turns: Vec<Turn>,
}

/// What the assistant said and called before somebody else had their say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    pub said: Vec<TurnItem>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TurnItem {
    Text { text: String, at: Location },
    Call(Call),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: String,
    pub arguments: Arguments,
    /// The arguments; the call itself if it has none.
    pub at: Location,
}

/// The arguments of a call, in whatever way they are given.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// There are none, or `null`; a text can say that as well.
    Missing,
    /// A text that should be JSON. It is read only if somebody wants the arguments.
    Text(String),
    Value(Node),
}

impl Dialog {
    /// Reads a dialog from a JSON text.
    ///
    /// # Errors
    /// The text is no JSON, or what [`Dialog::read`] finds.
    pub fn parse(source: &Arc<Source>) -> Result<Dialog, Diagnostics> {
        source::parse(source).and_then(|node| Dialog::read(&node)).map_err(|problems| problems.in_source(source))
    }

    /// Reads a dialog: a list of messages, a request with such a list at `messages` or `input`, or a response of a
    /// provider. Shapes may be mixed. Blocks and items of unknown types are passed over, and so is what others than the
    /// assistant said.
    ///
    /// # Errors
    /// Every message that is none, and every text or call of the assistant that lacks what makes it one.
    pub fn read(node: &Node) -> Result<Dialog, Problems> {
        Ok(Dialog { turns: message::turns(node)? })
    }

    /// What the assistant did instead of calling `final_answer`.
    pub(super) fn instead(&self) -> Option<String> {
        let calls: Vec<_> = self.turns.iter().flat_map(Turn::calls).collect();
        let names: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
        let plain = |name: &str| name.to_lowercase().replace(|it: char| !it.is_alphanumeric(), "");
        let is_meant = |name: &&&str| plain(name).ends_with("finalanswer") || nearest(name, &[NAME]).is_some();
        match (self.turns.last(), names.iter().rev().find(is_meant)) {
            (None, _) => Some("no message has the role `assistant`".into()),
            (_, Some(name)) => Some(format!("it called `{}`", brief(name))),
            (Some(last), None) => {
                let texts = last.texts().map(|(text, _)| text).collect::<Vec<_>>().join("\n");
                let called = last.calls().last().map(|call| brief(&call.name));
                called
                    .map(|name| format!("its last turn calls `{name}`"))
                    .or_else(|| (!texts.is_empty()).then(|| format!("its last turn is a text: {:?}", brief(&texts))))
            }
        }
    }
}

impl Turn {
    /// The texts and where they stand.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &Location)> {
        self.said.iter().filter_map(|said| match said {
            TurnItem::Text { text, at } => Some((text.as_str(), at)),
            TurnItem::Call(_) => None,
        })
    }

    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.said.iter().filter_map(|said| match said {
            TurnItem::Call(call) => Some(call),
            TurnItem::Text { .. } => None,
        })
    }

    pub fn calls_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Call> {
        self.calls().filter(move |call| call.name == name)
    }
}

fn brief(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
