//! What has changed between two JSON Schemas, and whether a value that was accepted is refused now.

use serde_json::Value as Json;

use rehearse_report::diff::Class;

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
