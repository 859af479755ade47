//! MCP definitions (`Tool`, `Resource`, …) as JSON text.

use rehearse_document::{Fields, Node, Problems};

/// The members of a definition as JSON text, in the order of the file.
pub(super) fn members(fields: &Fields<'_>, members: &[&str]) -> Result<Vec<String>, Problems> {
    for name in ["title", "description", "mimeType"] {
        fields.read(name, Node::str)?;
    }
    for name in ["annotations", "execution", "_meta", "outputSchema"] {
        fields.read(name, Node::entries)?;
    }
    fields.read("icons", Node::items)?;
    let entries = fields.node().entries()?.iter().filter(|entry| members.contains(&entry.key.as_str()));
    Ok(entries.map(|entry| format!("\"{}\":{}", entry.key, entry.node.to_json_text())).collect())
}

pub(super) fn object(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}
