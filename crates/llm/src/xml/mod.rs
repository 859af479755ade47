//! Tools for a model that can only write text: its prompt describes them, and it requests them in a form like XML.
//!
//! ```text
//! <read_file>
//! <path>notes.txt</path>
//! </read_file>
//! ```
//!
//! The [`Parser`] knows the tools and their schemas: every name of a tool or parameter is accepted, a tool without
//! required parameters needs none, and a value has the type of the schema. The form of newer programs, `<use_mcp_tool>`
//! with `<server_name>`, `<tool_name>` and `<arguments>`, is also supported.

mod element;
mod error;
mod prompt;
mod prose;
mod scan;
mod tag;
#[cfg(test)]
mod tests;
mod value;
mod write;

use std::ops::Range;

use serde_json::{Map, Value};

pub use error::{ParameterError, RequestError, RequestErrorKind};
pub use prompt::{NO_TOOLS, Section, prompt, system_prompt};
pub use write::write;

use super::{ToolDefinition, validate::Validator};

/// The options of a [`Parser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Further requests are errors.
    pub max_calls_per_message: usize,
    pub grammar: Grammar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grammar {
    /// Accepts all names of tools and parameters.
    Registry,
    /// The grammar of the first MCPilot: names are `[a-z][a-z0-9_]*`, a request has white space around it and at least one
    /// parameter, and other forms are not requests.
    Strict,
}

impl Default for Options {
    /// One call, in the grammar of the registry.
    fn default() -> Self {
        Options { max_calls_per_message: 1, grammar: Grammar::Registry }
    }
}

/// Parses requests for known tools.
#[derive(Debug)]
pub struct Parser {
    tools: Vec<Tool>,
    options: Options,
}

#[derive(Debug)]
struct Tool {
    name: String,
    /// Server and name on the server.
    origin: Option<(String, String)>,
    validator: Validator,
}

/// The requests and errors of a message, each in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    pub calls: Vec<ToolRequest>,
    pub errors: Vec<RequestError>,
}

/// A call with valid arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRequest {
    /// The name that the model uses.
    pub name: String,
    pub arguments: Map<String, Value>,
    /// The server of the tool and its name there, if it has an [`Origin`](crate::Origin).
    pub origin: Option<(String, String)>,
    /// The byte range in the message.
    pub range: Range<usize>,
}

impl Parser {
    /// Of tools with the same name, the first is used, unless a request names the server of another.
    pub fn new<'a>(tools: impl IntoIterator<Item = ToolDefinition<'a>>, options: Options) -> Parser {
        let tool = |tool: ToolDefinition<'_>| Tool {
            name: tool.name.to_owned(),
            origin: tool.origin.map(|origin| (origin.server.to_owned(), origin.tool.to_owned())),
            validator: Validator::new(serde_json::from_str(tool.input_schema.get()).unwrap_or_default()),
        };
        Parser { tools: tools.into_iter().map(tool).collect(), options }
    }

    /// The requests of a message.
    ///
    /// Text in code blocks, code spans, comments and `<thinking>` is not a request; nor is an unclosed tag in running
    /// text. An invalid request counts towards the limit, because later requests may depend on it.
    pub fn parse(&self, message: &str) -> Requests {
        scan::Scanner::new(self, message).run()
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Finds a tool by its name on the server or its name for the model.
    ///
    /// # Errors
    /// [`RequestErrorKind::WrongServer`] if another server has it, or several have and none is named; `None` if there is no such tool.
    fn find_tool(&self, server: Option<&str>, name: &str) -> Result<&Tool, Option<RequestErrorKind>> {
        let named =
            |tool: &&Tool| tool.name == name || tool.origin.as_ref().is_some_and(|(_, original)| original == name);
        let origin = |tool: &&Tool| tool.origin.as_ref().map(|(server, _)| server.clone());
        let is_of_server =
            |tool: &&Tool| server.is_none_or(|server| origin(tool).is_none_or(|origin| origin == server));
        if let Some(tool) = self.tool(name).filter(is_of_server) {
            return Ok(tool);
        }
        let all: Vec<_> = self.tools.iter().filter(named).collect();
        match &all.iter().copied().filter(is_of_server).collect::<Vec<_>>()[..] {
            [tool] => Ok(tool),
            [tool, ..] if server.is_some() => Ok(tool),
            _ if all.is_empty() => Err(None),
            _ => {
                let servers = all.iter().filter_map(origin).collect();
                Err(Some(RequestErrorKind::WrongServer {
                    tool: name.to_owned(),
                    named: server.map(str::to_owned),
                    servers,
                }))
            }
        }
    }
}
