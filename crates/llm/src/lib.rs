//! How a language model is told of tools, and how it asks for them.
//!
//! Two front ends on the same tools: [`native`] definitions for providers that take calls as data, and [`xml`] for models
//! that can only write text. [`alias`] makes names that providers accept; [`validate`] says what is wrong with arguments
//! in words that a model can act on.

pub mod alias;
pub mod final_answer;
pub mod native;
mod schema;
pub mod validate;
pub mod xml;

use serde_json::{Map, Value, value::RawValue};

pub use alias::Aliases;
pub use native::Provider;
pub use validate::{Code, Violation};

/// A tool, as a model is told of it.
#[derive(Clone, Copy, Debug)]
pub struct ToolDefinition<'a> {
    /// As the model sees it.
    pub name: &'a str,
    pub description: Option<&'a str>,
    pub input_schema: &'a RawValue,
    /// Absent for a tool that no server has.
    pub origin: Option<Origin<'a>>,
    pub examples: &'a [Example<'a>],
}

/// Where a tool comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    pub server: &'a str,
    /// Its name on the server.
    pub tool: &'a str,
}

/// A call as it should be.
#[derive(Clone, Copy, Debug)]
pub struct Example<'a> {
    pub description: Option<&'a str>,
    pub arguments: &'a Map<String, Value>,
}

impl<'a> ToolDefinition<'a> {
    /// Without a description, an origin or examples.
    pub fn new(name: &'a str, input_schema: &'a RawValue) -> Self {
        ToolDefinition { name, description: None, input_schema, origin: None, examples: &[] }
    }
}
