//! Which tools a program may call by itself.

use rehearse_document::{json_schema::example, text::matches_wildcard};
use serde_json::Value;

/// Which tools may be called. A tool with `readOnlyHint` and without `openWorldHint` always may.
#[derive(Clone, Debug, Default)]
pub struct ToolPermission {
    /// Names or patterns with `*` of more tools.
    pub allowed: Vec<String>,
    /// Arguments for a tool, by name, in place of generated ones.
    pub arguments: Vec<(String, Value)>,
}

impl ToolPermission {
    /// Whether this tool, as listed, may be called.
    pub fn allows(&self, tool: &Value) -> bool {
        let name = tool["name"].as_str().unwrap_or_default();
        let hint = |hint: &str| tool["annotations"][hint].as_bool();
        let is_safe = hint("readOnlyHint") == Some(true) && hint("openWorldHint") != Some(true);
        is_safe || self.allowed.iter().any(|pattern| matches_wildcard(pattern, name))
    }

    /// The arguments that are given for a tool.
    pub fn given(&self, tool: &str) -> Option<&Value> {
        self.arguments.iter().find(|(name, _)| name == tool).map(|(_, arguments)| arguments)
    }

    /// The arguments for a tool, as listed: those that are given, or an example of its schema.
    pub fn arguments_of(&self, tool: &Value) -> Value {
        let given = self.given(tool["name"].as_str().unwrap_or_default()).cloned();
        given.unwrap_or_else(|| example::object(&tool["inputSchema"]).into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_is_called_only_if_it_is_read_only_or_allowed() {
        let permission = ToolPermission { allowed: vec!["get_*".into(), "add".into()], ..ToolPermission::default() };
        let allows = |tool| permission.allows(&tool);
        assert!(allows(json!({ "name": "x", "annotations": { "readOnlyHint": true } })));
        assert!(!allows(json!({ "name": "x", "annotations": { "readOnlyHint": true, "openWorldHint": true } })));
        assert!(!allows(json!({ "name": "x" })) && !allows(json!({ "name": "added" })));
        assert!(allows(json!({ "name": "get_all" })) && allows(json!({ "name": "add" })));
    }
}
