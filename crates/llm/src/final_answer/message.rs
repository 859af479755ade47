//! Reads the messages of the assistant in the formats of providers.

use super::{Arguments, Call, Location, Turn, TurnItem};
use rehearse_document::{Node, Problems, Value};

/// The turns of the assistant in a dialog.
///
/// # Errors
/// As [`super::Dialog::read`].
pub(super) fn turns(dialog: &Node) -> Result<Vec<Turn>, Problems> {
    let mut reader = Reader::default();
    let read = messages(dialog)?.into_iter().map(|message| reader.message(&message));
    Problems::collect(read)?;
    Ok(reader.turns)
}

/// A node with the JSON pointer to it.
struct Cursor<'n> {
    node: &'n Node,
    pointer: String,
}

impl<'n> Cursor<'n> {
    /// The value at a key, unless it is `null`.
    fn get(&self, key: &str) -> Option<Cursor<'n>> {
        let node = self.node.get(key).filter(|node| !node.is_null())?;
        Some(Cursor { node, pointer: format!("{}/{key}", self.pointer) })
    }

    fn items(&self) -> Result<Vec<Cursor<'n>>, Problems> {
        let at = |(index, node)| Cursor { node, pointer: format!("{}/{index}", self.pointer) };
        if let Value::Mapping(_) = self.node.value {
            let problem = self.node.problem("expected an array, found an object");
            return Err(problem.hint("write an array in brackets: [ … ]").into());
        }
        Ok(self.node.items()?.iter().enumerate().map(at).collect())
    }

    fn text(&self) -> Result<String, Problems> {
        Ok(self.node.str()?.to_owned())
    }

    /// The string at a key; empty if there is none.
    fn string_or_empty(&self, key: &str) -> &'n str {
        self.node.get(key).and_then(|node| node.as_str()).unwrap_or_default()
    }

    fn location(&self) -> Location {
        Location { pointer: self.pointer.clone(), span: self.node.span }
    }
}

/// The messages of a list, a request or a response.
fn messages(dialog: &Node) -> Result<Vec<Cursor<'_>>, Problems> {
    let root = Cursor { node: dialog, pointer: String::new() };
    if let Value::Sequence(_) = dialog.value {
        return root.items();
    }
    if dialog.get("role").is_some() {
        return Ok(vec![root]);
    }
    if let Some(list) = ["messages", "output", "input"].iter().find_map(|key| root.get(key)) {
        return match list.node.value {
            // A request of OpenAI's Responses API may have one user text instead.
            Value::String(_) if list.pointer == "/input" => Ok(Vec::new()),
            _ => list.items(),
        };
    }
    if let Some(choices) = root.get("choices") {
        let Some(first) = choices.items()?.into_iter().next() else { return Ok(Vec::new()) };
        let message = first.get("message");
        return message
            .map(|message| vec![message])
            .ok_or_else(|| first.node.problem("a choice needs a `message`").into());
    }
    let problem = dialog.problem("a dialog must be an array of messages");
    Err(problem.hint("each is an object with a `role`; the array may also be at `messages`").into())
}

#[derive(Default)]
struct Reader {
    turns: Vec<Turn>,
    /// Whether the last turn consists of items and may get more.
    is_open: bool,
}

impl Reader {
    fn message(&mut self, message: &Cursor<'_>) -> Result<(), Problems> {
        message.node.entries()?;
        if let Some(role) = message.get("role") {
            match role.node.str()? {
                "assistant" => {
                    let mut items = Vec::new();
                    message.get("content").map(|content| read_content(&content, &mut items)).transpose()?;
                    read_calls(message, &mut items)?;
                    self.add(items, message.string_or_empty("type") == "message");
                }
                _ => self.is_open = false,
            }
            return Ok(());
        }
        // An item of OpenAI's Responses API: only messages have a role.
        match message.string_or_empty("type") {
            "" => {
                let problem = message.node.problem("a message needs a `role`");
                return Err(problem.hint("what the model says has the role `assistant`").into());
            }
            "function_call" => {
                let call = read_call(message, "arguments")?;
                self.add(vec![TurnItem::Call(call)], true);
            }
            // The result of a tool.
            kind if kind.ends_with("_output") => self.is_open = false,
            _ => {}
        }
        Ok(())
    }

    /// Adds a message as a new turn, and an item to the open turn.
    fn add(&mut self, items: Vec<TurnItem>, is_item: bool) {
        match self.turns.last_mut().filter(|_| is_item && self.is_open) {
            Some(turn) => turn.items.extend(items),
            None => self.turns.push(Turn { items }),
        }
        self.is_open = is_item;
    }
}

/// Reads the content: a string, or blocks of text and calls.
fn read_content(content: &Cursor<'_>, items: &mut Vec<TurnItem>) -> Result<(), Problems> {
    if let Value::String(text) = &content.node.value {
        items.push(TurnItem::Text { text: text.clone(), at: content.location() });
        return Ok(());
    }
    let block = |block: Cursor<'_>| {
        block.node.entries()?;
        match block.string_or_empty("type") {
            "text" | "output_text" => {
                let Some(text) = block.get("text") else {
                    return Err(block.node.problem("a block of text needs a `text`").into());
                };
                items.push(TurnItem::Text { text: text.text()?, at: text.location() });
            }
            "tool_use" => items.push(TurnItem::Call(read_call(&block, "input")?)),
            _ => {}
        }
        Ok(())
    };
    Problems::collect(content.items()?.into_iter().map(block)).map(drop)
}

/// Reads the calls beside the content.
fn read_calls(message: &Cursor<'_>, items: &mut Vec<TurnItem>) -> Result<(), Problems> {
    let calls = message.get("tool_calls").map(|calls| calls.items()).transpose()?.unwrap_or_default();
    let functions = calls.into_iter().map(|call| {
        call.node.entries()?;
        match call.get("function") {
            Some(function) => Ok(Some(read_call(&function, "arguments")?)),
            // The input of a custom tool is free text.
            None if call.string_or_empty("type") == "custom" => Ok(None),
            None => Err(call.node.problem("a call of a tool needs a `function`").into()),
        }
    });
    let calls = Problems::collect(functions)?.into_iter().flatten();
    items.extend(calls.map(TurnItem::Call));
    if let Some(call) = message.get("function_call") {
        items.push(TurnItem::Call(read_call(&call, "arguments")?));
    }
    Ok(())
}

fn read_call(call: &Cursor<'_>, key: &str) -> Result<Call, Problems> {
    call.node.entries()?;
    let Some(name) = call.get("name") else {
        return Err(call.node.problem("a call of a tool needs a `name`").into());
    };
    let value = call.get(key);
    let arguments = match value.as_ref().map(|value| value.node) {
        None => Arguments::Missing,
        Some(Node { value: Value::String(text), .. }) => Arguments::Text(text.clone()),
        Some(node) => Arguments::Value(node.clone()),
    };
    Ok(Call { name: name.text()?, arguments, at: value.as_ref().unwrap_or(call).location() })
}
