//! Reading the messages of the assistant in the shapes of the providers.

use super::{Arguments, Call, Location, Turn, TurnItem};
use rehearse_document::{Node, Problems, Value};

/// The turns of the assistant in a dialog.
///
/// # Errors
/// As those of [`super::Dialog::read`].
pub(super) fn turns(dialog: &Node) -> Result<Vec<Turn>, Problems> {
    let mut reader = Reader::default();
    let read = messages(dialog)?.into_iter().map(|message| reader.message(&message));
    Problems::collect(read)?;
    Ok(reader.turns)
}

/// A node with the JSON pointer to it.
struct At<'n> {
    node: &'n Node,
    pointer: String,
}

impl<'n> At<'n> {
    /// The value at a key, unless it is `null`.
    fn get(&self, key: &str) -> Option<At<'n>> {
        let node = self.node.get(key).filter(|node| !node.is_null())?;
        Some(At { node, pointer: format!("{}/{key}", self.pointer) })
    }

    fn items(&self) -> Result<Vec<At<'n>>, Problems> {
        let at = |(index, node)| At { node, pointer: format!("{}/{index}", self.pointer) };
        if let Value::Mapping(_) = self.node.value {
            let problem = self.node.problem("expected an array, found an object");
            return Err(problem.hint("write an array in brackets: [ … ]").into());
        }
        Ok(self.node.items()?.iter().enumerate().map(at).collect())
    }

    fn text(&self) -> Result<String, Problems> {
        Ok(self.node.str()?.to_owned())
    }

    /// The text at a key; empty if there is none.
    fn word(&self, key: &str) -> &'n str {
        self.node.get(key).and_then(|node| node.as_str()).unwrap_or_default()
    }

    fn place(&self) -> Location {
        Location { pointer: self.pointer.clone(), span: self.node.span }
    }
}

/// The messages, wherever requests and responses have them.
fn messages(dialog: &Node) -> Result<Vec<At<'_>>, Problems> {
    let root = At { node: dialog, pointer: String::new() };
    if let Value::Sequence(_) = dialog.value {
        return root.items();
    }
    if dialog.get("role").is_some() {
        return Ok(vec![root]);
    }
    if let Some(list) = ["messages", "output", "input"].iter().find_map(|key| root.get(key)) {
        return match list.node.value {
            // A request to OpenAI's Responses may have one text of the user instead.
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
    let problem = dialog.problem("a dialog is an array of messages");
    Err(problem.hint("each is an object with a `role`; the array may also be at `messages`").into())
}

#[derive(Default)]
struct Reader {
    turns: Vec<Turn>,
    /// The last turn is made of items, and nobody else has had their say since.
    is_open: bool,
}

impl Reader {
    fn message(&mut self, message: &At<'_>) -> Result<(), Problems> {
        message.node.entries()?;
        if let Some(role) = message.get("role") {
            match role.node.str()? {
                "assistant" => {
                    let mut said = Vec::new();
                    message.get("content").map(|content| read_content(&content, &mut said)).transpose()?;
                    read_calls(message, &mut said)?;
                    self.add(said, message.word("type") == "message");
                }
                _ => self.is_open = false,
            }
            return Ok(());
        }
        // An item of OpenAI's Responses: what has a role is said by somebody, anything else is done.
        match message.word("type") {
            "" => {
                let problem = message.node.problem("a message needs a `role`");
                return Err(problem.hint("what the model says has the role `assistant`").into());
            }
            "function_call" => {
                let call = read_call(message, "arguments")?;
                self.add(vec![TurnItem::Call(call)], true);
            }
            // What a tool returned.
            kind if kind.ends_with("_output") => self.is_open = false,
            _ => {}
        }
        Ok(())
    }

    /// Adds a message as a turn of its own, and an item to the turn that it belongs to.
    fn add(&mut self, said: Vec<TurnItem>, is_item: bool) {
        match self.turns.last_mut().filter(|_| is_item && self.is_open) {
            Some(turn) => turn.said.extend(said),
            None => self.turns.push(Turn { said }),
        }
        self.is_open = is_item;
    }
}

/// A text, or blocks of which some are texts and some may be calls.
fn read_content(content: &At<'_>, said: &mut Vec<TurnItem>) -> Result<(), Problems> {
    if let Value::String(text) = &content.node.value {
        said.push(TurnItem::Text { text: text.clone(), at: content.place() });
        return Ok(());
    }
    let block = |block: At<'_>| {
        block.node.entries()?;
        match block.word("type") {
            "text" | "output_text" => {
                let Some(text) = block.get("text") else {
                    return Err(block.node.problem("a block of text needs a `text`").into());
                };
                said.push(TurnItem::Text { text: text.text()?, at: text.place() });
            }
            "tool_use" => said.push(TurnItem::Call(read_call(&block, "input")?)),
            _ => {}
        }
        Ok(())
    };
    Problems::collect(content.items()?.into_iter().map(block)).map(drop)
}

/// The calls that stand beside the content.
fn read_calls(message: &At<'_>, said: &mut Vec<TurnItem>) -> Result<(), Problems> {
    let calls = message.get("tool_calls").map(|calls| calls.items()).transpose()?.unwrap_or_default();
    let functions = calls.into_iter().map(|call| {
        call.node.entries()?;
        match call.get("function") {
            Some(function) => Ok(Some(read_call(&function, "arguments")?)),
            // The input of a custom tool is free text.
            None if call.word("type") == "custom" => Ok(None),
            None => Err(call.node.problem("a call of a tool needs a `function`").into()),
        }
    });
    let calls = Problems::collect(functions)?.into_iter().flatten();
    said.extend(calls.map(TurnItem::Call));
    if let Some(call) = message.get("function_call") {
        said.push(TurnItem::Call(read_call(&call, "arguments")?));
    }
    Ok(())
}

fn read_call(call: &At<'_>, key: &str) -> Result<Call, Problems> {
    call.node.entries()?;
    let Some(name) = call.get("name") else {
        return Err(call.node.problem("a call of a tool needs a `name`").into());
    };
    let given = call.get(key);
    let arguments = match given.as_ref().map(|given| given.node) {
        None => Arguments::Missing,
        Some(Node { value: Value::String(text), .. }) => Arguments::Text(text.clone()),
        Some(node) => Arguments::Value(node.clone()),
    };
    Ok(Call { name: name.text()?, arguments, at: given.as_ref().unwrap_or(call).place() })
}
