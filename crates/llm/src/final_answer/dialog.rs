//! The messages of a dialog, in the formats of providers.

use std::sync::Arc;

use super::{Location, NAME, message, source};
use rehearse_document::{Diagnostics, Node, Problems, Source, nearest, text::shortened};

/// How many characters of a text are in a message.
const LONGEST: usize = 60;

/// The turns of the assistant, in order. Other messages do not affect the answer.
///
/// | format | texts | tool calls |
/// | --- | --- | --- |
/// | Anthropic, Messages | `content` | blocks `tool_use` with `input` |
/// | OpenAI, Chat Completions | `content` | `tool_calls` with `function.arguments`, a string; the older `function_call` |
/// | OpenAI, Responses | items `message` | items `function_call` with `arguments`, a string |
///
/// Sources: <https://docs.claude.com/en/api/messages>, <https://platform.openai.com/docs/api-reference/chat/object>,
/// <https://platform.openai.com/docs/api-reference/responses/object>.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dialog {
    pub turns: Vec<Turn>,
}

/// The texts and calls of the assistant between two other messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    pub items: Vec<TurnItem>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TurnItem {
    Text { text: String, at: Location },
    Call(Call),
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: String,
    pub arguments: Arguments,
    /// The location of the arguments, or of the call if it has none.
    pub at: Location,
}

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// There are none, or `null`. A string can also be empty or `null`.
    Missing,
    /// A string that should be JSON; parsed only when needed.
    Text(String),
    Value(Node),
}

impl Dialog {
    /// Reads a dialog from a JSON text.
    ///
    /// # Errors
    /// The text is not JSON, or the problems of [`Dialog::read`].
    pub fn parse(source: &Arc<Source>) -> Result<Dialog, Diagnostics> {
        source::parse(source).and_then(|node| Dialog::read(&node)).map_err(|problems| problems.in_source(source))
    }

    /// Reads a dialog: a list of messages, a request with such a list at `messages` or `input`, or a response of a
    /// provider. Formats may be mixed. Blocks and items of unknown types are ignored, and so are messages of other roles.
    ///
    /// # Errors
    /// Every invalid message, and every invalid text or call of the assistant.
    pub fn read(node: &Node) -> Result<Dialog, Problems> {
        Ok(Dialog { turns: message::turns(node)? })
    }

    /// What the assistant did instead of calling `final_answer`.
    pub(super) fn not_called_hint(&self) -> Option<String> {
        let calls: Vec<_> = self.turns.iter().flat_map(Turn::calls).collect();
        let names: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
        let plain = |name: &str| name.to_lowercase().replace(|it: char| !it.is_alphanumeric(), "");
        let is_meant = |name: &&&str| plain(name).ends_with("finalanswer") || nearest(name, &[NAME]).is_some();
        match (self.turns.last(), names.iter().rev().find(is_meant)) {
            (None, _) => Some("no message has the role `assistant`".into()),
            (_, Some(name)) => Some(format!("it called `{}`", shortened(name, LONGEST))),
            (Some(last), None) => {
                let texts = last.texts().map(|(text, _)| text).collect::<Vec<_>>().join("\n");
                let called = last.calls().last().map(|call| shortened(&call.name, LONGEST));
                called.map(|name| format!("its last turn calls `{name}`")).or_else(|| {
                    (!texts.is_empty()).then(|| format!("its last turn is a text: {:?}", shortened(&texts, LONGEST)))
                })
            }
        }
    }
}

impl Turn {
    /// The texts with their locations.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &Location)> {
        self.items.iter().filter_map(|item| match item {
            TurnItem::Text { text, at } => Some((text.as_str(), at)),
            TurnItem::Call(_) => None,
        })
    }

    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.items.iter().filter_map(|item| match item {
            TurnItem::Call(call) => Some(call),
            TurnItem::Text { .. } => None,
        })
    }

    pub fn calls_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Call> {
        self.calls().filter(move |call| call.name == name)
    }
}
