//! Resources and resource templates.

use super::{Item, ItemKind, ReplySubject, ScriptReader, definition, keys::KEYS};
use rehearse_document::uri_template::UriTemplate;
use rehearse_document::{Node, Problems};

/// A resource of the script.
#[derive(Debug)]
pub struct ResourceItem {
    /// The answer.
    pub item: Item,
    /// The MCP `Resource` as JSON text.
    pub definition: String,
}

/// A resource template of the script.
#[derive(Debug)]
pub struct ResourceTemplateItem {
    /// The answer.
    pub item: Item,
    /// The MCP `ResourceTemplate` as JSON text.
    pub definition: String,
    /// The URI template.
    pub template: UriTemplate,
}

impl ResourceItem {
    pub(super) fn read(node: &Node, reader: &mut ScriptReader) -> Result<ResourceItem, Problems> {
        let subject = ReplySubject::for_item(ItemKind::Resource, node);
        let members = [vec!["uri"], KEYS.keys("resourceMembers")].concat();
        let fields = KEYS.fields(node, "resource")?;
        let item = Item::read(&fields, &subject, reader)?;
        let mut definition = definition::members(&fields, &members)?;
        if fields.get("name").is_none() {
            definition.push(format!("\"name\":{}", fields.required("uri")?.to_json_text()));
        }
        Ok(ResourceItem { item, definition: definition::object(&definition) })
    }
}

impl ResourceTemplateItem {
    pub(super) fn read(node: &Node, reader: &mut ScriptReader) -> Result<ResourceTemplateItem, Problems> {
        let subject = ReplySubject::for_item(ItemKind::ResourceTemplate, node);
        let members = [vec!["uriTemplate"], KEYS.keys("resourceMembers")].concat();
        let fields = KEYS.fields(node, "resourceTemplate")?;
        let uri_template = fields.required("uriTemplate")?;
        let template = UriTemplate::read(uri_template)?;
        let item = Item::read(&fields, &subject, reader)?;
        let mut definition = definition::members(&fields, &members)?;
        if fields.get("name").is_none() {
            definition.push(format!("\"name\":{}", uri_template.to_json_text()));
        }
        Ok(ResourceTemplateItem { item, definition: definition::object(&definition), template })
    }
}
