//! Code mode: a model calls tools from a program that it writes, instead of one by one.
//!
//! [`partition`] says which tools a program can call. [`codegen`] turns them into typed definitions. [`quickjs`] runs
//! programs in JavaScript, [`go`] in Go. Each program runs in a process of its own, which has no connection but the one to us: its tool calls
//! arrive as [`ToolCall`]s, and what they need (sessions, approval, secrets) stays on this side.

pub mod codegen;
mod definition;
mod execution;
pub mod go;
mod names;
mod process;
pub mod quickjs;
mod schema_type;

use serde_json::Value;

pub use self::{
    definition::{ArgumentError, Arguments, Definition, MAX_TIMEOUT},
    execution::{CallError, Execution, ExecutionError, Limits, ProgramEnd, ToolCall},
};

/// A tool as its server lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name by which it is called.
    pub name: String,
    pub description: Option<String>,
    /// A JSON Schema.
    pub input_schema: Value,
    /// A JSON Schema; `None` if the result of the tool is text.
    pub output_schema: Option<Value>,
}

impl Tool {
    /// The schema of a structured result; an empty schema says nothing.
    pub(crate) fn structured_output(&self) -> Option<&Value> {
        self.output_schema
            .as_ref()
            .filter(|schema| !schema.is_null() && schema.as_object().is_none_or(|it| !it.is_empty()))
    }
}

/// The tools by who calls them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partition {
    /// Tools that a program calls.
    pub code_mode: Vec<Tool>,
    /// Tools that the model calls one by one, over the sessions that it has anyway.
    pub excluded: Vec<Tool>,
}

/// Separates the tools whose names are in `excluded`; both lists are sorted by name.
pub fn partition(mut tools: Vec<Tool>, excluded: &[String]) -> Partition {
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let (excluded, code_mode) = tools.into_iter().partition(|tool| excluded.contains(&tool.name));
    Partition { code_mode, excluded }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn excluded_tools_are_separate_and_both_lists_are_sorted() {
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            description: None,
            input_schema: json!({}),
            output_schema: None,
        };
        let names = |tools: &[Tool]| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        let excluded = ["d", "b", "unknown"].map(str::to_owned);
        let parts = partition(["d", "c", "b", "a"].map(tool).to_vec(), &excluded);
        assert_eq!(
            (names(&parts.code_mode), names(&parts.excluded)),
            (vec!["a".into(), "c".into()], vec!["b".into(), "d".into()])
        );
    }
}
