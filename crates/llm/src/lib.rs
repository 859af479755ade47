//! Language models: [`model`] asks them, [`endpoint`] serves a scripted one, and the rest is how tools are shown to them
//! and how they call tools.
//!
//! Tools have two forms: [`native`] definitions for providers with tool calls, and [`xml`] for models
//! that can only write text. [`alias`] makes names that providers accept; [`validate`] reports invalid arguments in a
//! form that helps a model to correct them. [`tokens`] counts what a model reads.

pub mod alias;
mod api;
pub mod endpoint;
pub mod final_answer;
mod message;
pub mod model;
pub mod native;
pub mod tokens;
pub mod validate;
pub mod xml;

use serde_json::{Map, Value, value::RawValue};

pub use alias::Aliases;
pub use native::Provider;
pub use validate::{Code, Violation};

/// The definition of a tool for a model.
#[derive(Clone, Copy, Debug)]
pub struct ToolDefinition<'a> {
    /// The name that the model uses.
    pub name: &'a str,
    pub description: Option<&'a str>,
    pub input_schema: &'a RawValue,
    /// `None` for a tool without a server.
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

/// An example of a call.
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
