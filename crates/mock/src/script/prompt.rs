//! Prompts.

use super::{Item, ItemKind, ReplySubject, ScriptReader, definition, keys::KEYS};
use rehearse_document::{Node, Problems};

/// A prompt of the script.
#[derive(Debug)]
pub struct PromptItem {
    /// The answer.
    pub item: Item,
    /// The MCP `Prompt` as JSON text.
    pub definition: String,
    /// The names of the required arguments.
    pub required: Vec<String>,
}

impl PromptItem {
    pub(super) fn read(node: &Node, reader: &mut ScriptReader) -> Result<PromptItem, Problems> {
        let subject = ReplySubject::for_item(ItemKind::Prompt, node);
        let fields = KEYS.fields(node, "prompt")?;
        let mut required = Vec::new();
        for argument in fields.get("arguments").map_or(Ok(&[][..]), Node::items)? {
            let argument = KEYS.fields(argument, "argument")?;
            let name = argument.required("name")?.str()?;
            if argument.read("required", Node::bool)?.unwrap_or(false) {
                required.push(name.to_owned());
            }
        }
        let definition = definition::object(&definition::members(&fields, &KEYS.keys("promptMembers"))?);
        Ok(PromptItem { item: Item::read(&fields, &subject, reader)?, definition, required })
    }
}
