//! Tools. Their MCP members are passed through as they are written.

use std::sync::Arc;

use super::{Item, Reply, ReplySubject, Rule, ScriptReader, Step, app, definition, keys::KEYS};
use rehearse_document::{Node, Problems, Value, json_schema::Schema, mirrored::MirroredParameters};
use rehearse_protocol::Era;

/// A tool of the script.
#[derive(Debug)]
pub struct ToolItem {
    /// The answer.
    pub item: Item,
    /// The MCP `Tool` as JSON text.
    pub definition: String,
    /// The same for legacy clients, if it must be another one.
    pub legacy_definition: Option<String>,
    /// The compiled `inputSchema`, if the script gives one.
    pub input: Option<Schema>,
    /// The compiled `outputSchema`.
    pub output: Option<Schema>,
    /// The parameters that a client repeats in headers.
    pub mirrored: MirroredParameters,
}

impl ToolItem {
    pub(super) fn read(node: &Node, reader: &mut ScriptReader) -> Result<ToolItem, Problems> {
        let subject = ReplySubject::Tool;
        let keys = [&KEYS.keys("tool"), reader.handler_key()].concat();
        Step::refuse_keys(node, "a tool", &keys)?;
        let fields = node.fields("a tool", &keys)?;
        let mut members = definition::members(&fields, &KEYS.keys("toolMembers"))?;
        if fields.get("inputSchema").is_none() {
            members.push("\"inputSchema\":{\"type\":\"object\"}".into());
        }
        if let Some(app) = app::read(&fields, &reader.folder)? {
            members.retain(|member| !member.starts_with("\"_meta\":"));
            members.push(app.meta);
            reader.pages.extend(app.page);
            reader.uses.apps = true;
        }
        let unchecked = fields.read("unchecked", Node::bool)?.unwrap_or(false);
        let item = Item::read(&fields, &subject, reader)?;
        let definition = definition::object(&members);
        if unchecked {
            return Ok(ToolItem {
                item,
                definition,
                legacy_definition: None,
                input: None,
                output: None,
                mirrored: MirroredParameters::default(),
            });
        }
        if let Some(schema) = fields.get("inputSchema")
            && schema.get("type").map(|kind| &kind.value) != Some(&Value::String("object".into()))
        {
            let problem = schema.problem("an inputSchema must have `type: object`");
            return Err(problem.hint("`unchecked: true` lets a tool be wrong on purpose").into());
        }
        // A schema that breaks the definition of `Tool` may make a legacy client reject the whole list (2025-11-25,
        // Tools: Tool; it is any schema since 2026-07-28, Changelog).
        let is_modern = fields.get("outputSchema").is_some_and(|schema| !is_object_schema(schema));
        let legacy_definition = is_modern.then(|| {
            members.retain(|member| !member.starts_with("\"outputSchema\":"));
            definition::object(&members)
        });
        let tool = ToolItem {
            definition,
            legacy_definition,
            input: fields.read("inputSchema", Schema::read)?,
            output: fields.read("outputSchema", Schema::read)?,
            mirrored: fields.read("inputSchema", MirroredParameters::read)?.unwrap_or_default(),
            item,
        };
        tool.check_replies(&tool.item.rules, node).map(|()| tool)
    }

    /// The MCP `Tool` for clients of an era, as JSON text.
    pub fn definition_for(&self, era: Era) -> &str {
        match era {
            Era::Legacy => self.legacy_definition.as_ref().unwrap_or(&self.definition),
            Era::Modern => &self.definition,
        }
    }

    /// Checks the replies of rules at `node` against the `outputSchema`.
    ///
    /// # Errors
    /// One of them is not structured, or breaks the schema.
    pub(super) fn check_replies(&self, rules: &[Arc<Rule>], node: &Node) -> Result<(), Problems> {
        let unstructured = |reply: &Reply| reply.is_unstructured();
        if self.output.is_some() && rules.iter().flat_map(|rule| rule.answer.replies()).any(unstructured) {
            let problem = node.problem("a tool with an outputSchema must give `structured` replies or errors");
            return Err(problem.hint("use `result:` for a reply that is wrong on purpose").into());
        }
        match self.output_violation(rules) {
            None => Ok(()),
            Some(violation) => {
                let problem = node.problem(format!("a `structured` reply breaks the tool's outputSchema: {violation}"));
                Err(problem.hint("use `result:` for a reply that is wrong on purpose").into())
            }
        }
    }

    fn output_violation(&self, rules: &[Arc<Rule>]) -> Option<String> {
        let schema = self.output.as_ref()?;
        let replies = rules.iter().flat_map(|rule| rule.answer.replies());
        let mut literals = replies.filter_map(Reply::literal_structured_content);
        literals.find_map(|literal| {
            let value = serde_json::from_str(literal).ok()?;
            schema.violations(&value).first().map(ToString::to_string)
        })
    }
}

/// Whether a schema is valid as an `outputSchema` until 2025-11-25.
fn is_object_schema(schema: &Node) -> bool {
    let is_object = schema.get("type").map(|kind| &kind.value) == Some(&Value::String("object".into()));
    let properties = schema.get("properties").map(Node::entries).transpose().ok();
    let mut properties = properties.into_iter().flatten().flatten();
    is_object && properties.all(|entry| entry.node.as_entries().is_some())
}

#[cfg(test)]
mod tests {
    use crate::script::Script;
    use rehearse_document::Source;

    #[test]
    fn an_unchecked_tool_may_break_the_protocol() {
        let text = "tools: [{ name: t, unchecked: true, inputSchema: { type: string }, reply: x }]";
        let script = Script::parse(&Source::new("m", text)).expect("valid");
        assert!(script.tools[0].definition.contains("\"inputSchema\":{\"type\":\"string\"}"));
    }
}
