//! The schema of an answer.

use std::sync::Arc;

use serde_json::Value as Json;

use super::source;
use rehearse_document::{
    Diagnostics, Entry, Node, Problems, Source, Value,
    json_schema::{Mismatch, Schema},
};

/// The JSON Schema of an answer, compiled. Answers are objects, because the arguments of a tool call are.
#[derive(Debug)]
pub struct AnswerSchema {
    json: Json,
    compiled: Schema,
}

impl AnswerSchema {
    /// Reads a schema from a JSON text.
    ///
    /// # Errors
    /// The text is not JSON, or the problems of [`AnswerSchema::read`].
    pub fn parse(source: &Arc<Source>) -> Result<AnswerSchema, Diagnostics> {
        source::parse(source).and_then(|node| AnswerSchema::read(&node)).map_err(|problems| problems.in_source(source))
    }

    /// Reads and compiles a schema; the default draft is 2020-12. References to other documents are errors. A schema without
    /// a type gets `type: object`, which providers require.
    ///
    /// # Errors
    /// The schema is invalid, refers to another document, or allows no object.
    pub fn read(node: &Node) -> Result<AnswerSchema, Problems> {
        let compiled = Schema::read(node)?;
        let is_object = |node: &Node| node.as_str().is_some_and(|name| name == "object");
        match node.get("type") {
            Some(named) if is_object(named) => return Ok(AnswerSchema { json: node.to_json(), compiled }),
            Some(Node { value: Value::Sequence(names), .. }) if names.iter().any(is_object) => {}
            None => {}
            Some(named) => {
                let problem = named.problem("an answer must be an object: nothing can fit this type");
                return Err(problem
                    .hint("write `\"type\": \"object\"`, and the value as one of its properties")
                    .into());
            }
        }
        let node = with_object_type(node);
        Ok(AnswerSchema { json: node.to_json(), compiled: Schema::read(&node)? })
    }

    /// The schema as it was read, with its `type`.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// All violations; empty if the value is valid.
    pub fn violations(&self, answer: &Json) -> Vec<Mismatch> {
        self.compiled.violations(answer)
    }
}

/// Adds `type: object`.
fn with_object_type(schema: &Node) -> Node {
    let mut schema = schema.clone();
    let span = schema.span;
    let value = Node { span, value: Value::String("object".into()) };
    if let Value::Mapping(entries) = &mut schema.value {
        match entries.iter_mut().find(|entry| entry.key == "type") {
            Some(entry) => entry.node = value,
            None => entries.push(Entry { key: "type".into(), key_span: span, node: value }),
        }
    }
    schema
}
