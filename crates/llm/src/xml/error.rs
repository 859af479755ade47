//! Errors in the tool requests of a model.

use std::ops::Range;

use serde_json::{Value, json};

use crate::Violation;

/// An invalid tool request. Its message is for the model, so that it can correct itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct RequestError {
    pub kind: RequestErrorKind,
    /// The request, in bytes of the message.
    pub range: Range<usize>,
}

/// The kind of a request error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestErrorKind {
    #[error("Unknown tool: {name}{}", hint(.nearest.as_deref()))]
    UnknownTool {
        name: String,
        /// The tool that was probably meant.
        nearest: Option<String>,
    },
    /// The named server does not have the tool, or several servers have it and none is named.
    #[error("{}", of_server(.tool, .named.as_deref(), .servers))]
    ServerOf { tool: String, named: Option<String>, servers: Vec<String> },
    #[error("Missing tool name: <{0}> needs a <tool_name>")]
    MissingToolName(String),
    #[error("Invalid tool request format: <{0}> has no closing tag </{0}>")]
    Unclosed(String),
    #[error("Invalid tool request format: {0:?} is in no parameter")]
    Loose(String),
    #[error("Invalid tool request format: <{0}> must have no attributes; write parameters as elements")]
    Attributes(String),
    #[error("Invalid tool request format: <{0}> is there more than once")]
    Repeated(String),
    #[error("Invalid tool request format: the arguments are no JSON object: {0}")]
    Json(String),
    #[error("Invalid parameters: {}", .0.iter().map(|it| it.violation.to_string()).collect::<Vec<_>>().join("; "))]
    Parameters(Vec<ParameterError>),
    #[error("Too many tool requests: {tool} was not run, for a message may have {max}")]
    TooMany { tool: String, max: usize },
    /// Only in the strict grammar, like the following kinds.
    #[error("Invalid tool name: {0}")]
    ToolName(String),
    #[error("No parameters found in tool request")]
    NoParameters,
    #[error("Invalid parameter name: {0}")]
    ParameterName(String),
}

/// A parameter that breaks the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterError {
    pub violation: Violation,
    /// The parameter, in bytes of the message; the whole request if it is not there.
    pub range: Range<usize>,
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

fn of_server(tool: &str, named: Option<&str>, servers: &[String]) -> String {
    let servers = servers.join(", ");
    match named {
        Some(named) => format!("Unknown tool: server {named:?} has no {tool}; it is a tool of {servers}"),
        None => format!("Unknown tool: several servers have a {tool}; say in <server_name> which: {servers}"),
    }
}

impl RequestErrorKind {
    pub fn code(&self) -> &'static str {
        match self {
            RequestErrorKind::UnknownTool { .. } | RequestErrorKind::ServerOf { .. } => "UNKNOWN_TOOL",
            RequestErrorKind::Parameters(_) => "VALIDATION_ERROR",
            RequestErrorKind::TooMany { .. } => "TOO_MANY_CALLS",
            _ => "PARSE_ERROR",
        }
    }
}

impl RequestError {
    /// As data: `{code, message, details}`, with a detail for each parameter.
    pub fn to_json(&self) -> Value {
        let detail = |ParameterError { violation, .. }: &ParameterError| json!({ "parameter": violation.parameter, "code": violation.code.as_str(), "message": violation.message });
        let (message, details) = match &self.kind {
            RequestErrorKind::Parameters(errors) => {
                ("Invalid parameters".to_owned(), errors.iter().map(detail).collect())
            }
            kind => (kind.to_string(), Vec::new()),
        };
        json!({ "code": self.kind.code(), "message": message, "details": details })
    }
}
