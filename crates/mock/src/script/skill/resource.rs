//! A file of a skill as a resource.

use serde_json::Value as Json;

use rehearse_document::Span;

pub(super) const SCHEME: &str = "skill://";

/// A file of a skill.
#[derive(Debug)]
pub struct SkillResource {
    /// The URI of the file.
    pub uri: String,
    /// The MCP `Resource` as JSON text.
    pub definition: String,
    /// The list of resource contents as JSON text.
    pub contents: String,
    /// As in the URI, but not encoded.
    pub(super) path: String,
    pub(super) digest: String,
    pub(super) size: u64,
    pub(super) span: Span,
}

/// A string as JSON text.
pub(super) fn quote(text: &str) -> String {
    Json::from(text).to_string()
}
