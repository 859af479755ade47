//! Prompts.

use super::{Item, ItemKind, ReplySubject, ScriptReader, definition};
use rehearse_document::{Node, Problems};

const MEMBERS: &[&str] = &["name", "title", "description", "arguments", "icons", "_meta"];

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
        let fields = node.fields("a prompt", &Item::keys(MEMBERS, &subject))?;
        let mut required = Vec::new();
        for argument in fields.get("arguments").map_or(Ok(&[][..]), Node::items)? {
            let argument = argument.fields("a prompt argument", &["name", "title", "description", "required"])?;
            let name = argument.required("name")?.str()?;
            if argument.read("required", Node::bool)?.unwrap_or(false) {
                required.push(name.to_owned());
            }
        }
        let definition = definition::object(&definition::members(&fields, MEMBERS)?);
        Ok(PromptItem { item: Item::read(&fields, &subject, reader)?, definition, required })
    }
}
