//! What has changed between two JSON Schemas, and whether a value that was accepted is refused now.
//!
//! Two schemas are compared in their normal form, to the bottom. Names of definitions, orders and equivalent spellings
//! are no change. What the form does not show, generated values do: one that only one side accepts is in the change.

mod alternatives;
mod draft;
mod evidence;
mod limits;
mod place;
mod rules;
mod shape;
mod types;
mod walk;

#[cfg(test)]
mod tests;

use std::cell::Cell;

use serde_json::Value as Json;

use rehearse_document::{json_schema::is_valid, text::shortened};
use rehearse_report::diff::Class;

use draft::Draft;
use place::Place;
pub use rules::{RULES, Rule};
use walk::Walk;

/// The number of schemas that are read in one comparison.
const FUEL: usize = 50_000;

/// Who writes the values of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Clients do: the schema may become wider.
    Input,
    /// The server does: the schema may become narrower.
    Output,
}

/// One change of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaChange {
    /// What it may do.
    pub class: Class,
    /// Whether its class is the worst that it may have, and nothing shows that it has it.
    pub is_possible: bool,
    /// The id of the rule, such as `required-added`.
    pub rule: &'static str,
    /// The JSON pointer into the old schema; `None` if it is not there.
    pub old: Option<String>,
    /// The JSON pointer into the new schema; `None` if it is not there.
    pub new: Option<String>,
    /// What has changed, and why it has this class, as a sentence.
    pub message: String,
    /// A value of the whole schema that one side accepts and the other refuses.
    pub instance: Option<Json>,
}

/// The changes from one schema to another, in the order of the paths in their values. `Null` is no schema. The same two
/// schemas always give the same changes.
///
/// ```
/// use rehearse_diff::schema::{Direction, compare};
/// use serde_json::json;
///
/// let old = json!({ "type": "object", "properties": { "query": { "type": "string" } } });
/// let mut new = old.clone();
/// new["required"] = json!(["query"]);
/// let changes = compare(&old, &new, Direction::Input);
/// assert_eq!(changes[0].message, "`query` is required now: calls without it fail.");
/// assert_eq!(changes[0].instance, Some(json!({})));
/// ```
pub fn compare(old: &Json, new: &Json, direction: Direction) -> Vec<SchemaChange> {
    if old == new {
        return Vec::new();
    }
    let (was_valid, is_valid) = (is_schema(old), is_schema(new));
    let drafts = if was_valid != is_valid || old.is_null() || new.is_null() {
        vec![validity(old, new, is_valid, direction)]
    } else {
        let fuel = Cell::new(FUEL);
        let mut walk = Walk::new(direction, &fuel);
        walk.visit(&Place::new(old), &Place::new(new), "");
        walk.drafts
    };
    evidence::conclude(drafts, old, new, direction)
}

/// The change of a schema that is missing or not valid on one side.
fn validity(old: &Json, new: &Json, is_valid: bool, direction: Direction) -> Draft {
    let (id, says) = match (old.is_null(), new.is_null()) {
        (true, _) if is_valid => ("schema-added", "has a schema now"),
        (_, true) if is_schema(old) => ("schema-removed", "has no schema any more"),
        _ if is_valid => ("schema-mended", "has a valid schema now"),
        (_, true) => ("schema-mended", "has no invalid schema any more"),
        _ => ("schema-invalid", "has no valid schema any more"),
    };
    let at = |schema: &Json| (!schema.is_null()).then(String::new);
    let draft = Draft::new(id, direction, format!("{} {says}", walk::name("", direction)));
    draft.at((at(old), at(new)), ("", ""))
}

fn is_schema(schema: &Json) -> bool {
    (schema.is_object() || schema.is_boolean()) && is_valid(schema)
}

/// A value in a sentence.
fn short(value: &Json) -> String {
    shortened(&value.to_string(), 60)
}
