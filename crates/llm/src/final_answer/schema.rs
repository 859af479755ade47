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
    /// The text is no JSON, or what [`AnswerSchema::read`] finds.
    pub fn parse(source: &Arc<Source>) -> Result<AnswerSchema, Diagnostics> {
        source::parse(source).and_then(|node| AnswerSchema::read(&node)).map_err(|problems| problems.in_source(source))
    }

    /// Reads and compiles a schema: 2020-12 unless it says otherwise. Nothing that it refers to is fetched. One that
    /// says nothing of the type of an answer gets `type: object`, which the providers of models insist on.
    ///
    /// # Errors
    /// It is no JSON Schema, with the path of what is wrong; it refers to another document; no object can fit it.
    pub fn read(node: &Node) -> Result<AnswerSchema, Problems> {
        let compiled = Schema::read(node)?;
        let is_object = |node: &Node| node.as_str().is_some_and(|name| name == "object");
        match node.get("type") {
            Some(named) if is_object(named) => return Ok(AnswerSchema { json: node.to_json(), compiled }),
            Some(Node { value: Value::Sequence(names), .. }) if names.iter().any(is_object) => {}
            None => {}
            Some(named) => {
                let problem = named.problem("an answer is an object: nothing can fit this type");
                return Err(problem
                    .hint("write `\"type\": \"object\"`, and the value as one of its properties")
                    .into());
            }
        }
        let node = of_objects(node);
        Ok(AnswerSchema { json: node.to_json(), compiled: Schema::read(&node)? })
    }

    /// The schema as it was read, with its `type`.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// Everything in which a value does not fit; empty if it does.
    pub fn violations(&self, answer: &Json) -> Vec<Mismatch> {
        self.compiled.violations(answer)
    }
}

/// The schema with the one type that the arguments of a call have.
fn of_objects(schema: &Node) -> Node {
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
