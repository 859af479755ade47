//! Compiled JSON Schemas, and the violations that they find in a value.

mod violation;

use std::{collections::HashSet, fmt};

use serde_json::Value as Json;

use crate::{Entry, Node, Problem, Problems, Value};

/// A compiled JSON Schema, 2020-12 unless it says otherwise (2025-11-25, Basic: JSON Schema Usage).
pub struct Schema(jsonschema::Validator);

/// Why a value does not match, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// JSON pointer into the value.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

impl Schema {
    /// Compiles the schema at `node`. Remote references are not fetched.
    ///
    /// # Errors
    /// Everything that makes the schema invalid, or that it refers to another document; each with its path.
    pub fn read(node: &Node) -> Result<Schema, Problems> {
        node.entries()?;
        let json = node.to_json();
        match compile(&json) {
            Ok(validator) => Ok(Schema(validator)),
            Err(error) => {
                let all = jsonschema::meta::validator_for(&json).ok();
                let mut found = Vec::new();
                all.iter().flat_map(|all| all.iter_errors(&json)).for_each(|it| match violation::unknown_types(&it) {
                    types if types.is_empty() => violation::collect(&it, &mut found),
                    types => found.extend(types),
                });
                if found.is_empty() {
                    violation::collect(&error, &mut found);
                }
                // Every vocabulary of the meta-schema finds the same.
                let mut told = HashSet::new();
                found.retain(|it| told.insert((it.pointer.clone(), it.message.clone())));
                let mut problems: Vec<_> = found.into_iter().map(|it| not_a_schema(node, it)).collect();
                problems.sort_by_key(|problem| problem.span.start);
                Err(Problems(problems))
            }
        }
    }

    /// Every violation, as `pointer: message`; empty if the value is valid.
    pub fn violations(&self, value: &Json) -> Vec<Mismatch> {
        if self.0.is_valid(value) {
            return Vec::new();
        }
        let mut found = Vec::new();
        self.0.iter_errors(value).for_each(|error| violation::collect(&error, &mut found));
        found
    }
}

/// A mistake in a schema, at its position. The error of a broken reference has no position.
fn not_a_schema(schema: &Node, Mismatch { pointer, message }: Mismatch) -> Problem {
    let reference = |pointer: &str| match pointer.is_empty() {
        true => referring(schema, &message, String::new()),
        false => None,
    };
    let (at, pointer) = match reference(&pointer) {
        Some((node, pointer)) => (node, pointer),
        None => (schema.pointer(&pointer).unwrap_or(schema), pointer),
    };
    let path = if pointer.is_empty() { String::new() } else { format!(" at {pointer}") };
    at.problem(format!("not a valid JSON Schema{path}: {message}"))
}

/// The first reference that a message names, and the JSON pointer to it.
fn referring<'n>(node: &'n Node, message: &str, pointer: String) -> Option<(&'n Node, String)> {
    match &node.value {
        Value::Sequence(items) => {
            items.iter().enumerate().find_map(|(index, item)| referring(item, message, format!("{pointer}/{index}")))
        }
        Value::Mapping(entries) => entries.iter().find_map(|Entry { key, node, .. }| {
            let mut pointer = pointer.clone();
            descend(&mut pointer, key, |pointer| match &node.value {
                Value::String(text) if matches!(key.as_str(), "$ref" | "$dynamicRef" | "$schema") => {
                    let target = text.trim_start_matches('#');
                    (!target.is_empty() && message.contains(target)).then(|| (node, pointer.clone()))
                }
                _ => referring(node, message, pointer.clone()),
            })
        }),
        _ => None,
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.message),
            pointer => write!(f, "{pointer}: {}", self.message),
        }
    }
}

/// Compiles a schema, for callers with their own messages. Remote references are not fetched, and no
/// pattern takes long.
///
/// # Errors
/// The first thing that makes it invalid.
pub fn compile(schema: &Json) -> Result<jsonschema::Validator, jsonschema::ValidationError<'static>> {
    let patterns = jsonschema::PatternOptions::fancy_regex().backtrack_limit(100_000);
    jsonschema::options().with_pattern_options(patterns).build(schema)
}

/// Visits a member or an item, whose JSON pointer is `pointer` meanwhile.
pub(crate) fn descend<T>(pointer: &mut String, key: &str, visit: impl FnOnce(&mut String) -> T) -> T {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
    let visited = visit(pointer);
    pointer.truncate(length);
    visited
}

/// A value for a message: JSON, shortened.
pub(crate) fn brief(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(120) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
