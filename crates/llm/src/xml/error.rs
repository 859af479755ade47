//! Errors in the tool requests of a model.

use std::ops::Range;

use serde_json::{Value, json};

use crate::Violation;

/// An invalid tool request. Its message is for the model, so that it can correct itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct RequestError {
    pub kind: RequestErrorKind,
    /// The byte range of the request in the message.
    pub range: Range<usize>,
}

/// The kind of a request error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestErrorKind {
    #[error("Unknown tool: {name}{}", suggestion(.nearest.as_deref()))]
    UnknownTool {
        name: String,
        /// The known tool with the most similar name.
        nearest: Option<String>,
    },
    /// The named server does not have the tool, or several servers have it and none is named.
    #[error("{}", wrong_server_message(.tool, .named.as_deref(), .servers))]
    WrongServer { tool: String, named: Option<String>, servers: Vec<String> },
    #[error("Missing tool name: <{0}> needs a <tool_name>")]
    MissingToolName(String),
    #[error("Invalid tool request format: <{0}> has no closing tag </{0}>")]
    Unclosed(String),
    #[error("Invalid tool request format: {0:?} is not in a parameter")]
    StrayText(String),
    #[error("Invalid tool request format: <{0}> must have no attributes; write parameters as elements")]
    Attributes(String),
    #[error("Invalid tool request format: <{0}> is there more than once")]
    Repeated(String),
    #[error("Invalid tool request format: the arguments are not a JSON object: {0}")]
    Json(String),
    #[error("Invalid parameters: {}", .0.iter().map(|it| it.violation.to_string()).collect::<Vec<_>>().join("; "))]
    Parameters(Vec<ParameterError>),
    #[error("Too many tool requests: {tool} was not run; a message may have at most {max}")]
    TooMany { tool: String, max: usize },
    /// Only in the strict grammar, as the following kinds.
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
    /// The byte range of the parameter in the message, or of the request if the parameter is missing.
    pub range: Range<usize>,
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

fn wrong_server_message(tool: &str, named: Option<&str>, servers: &[String]) -> String {
    let servers = servers.join(", ");
    match named {
        Some(named) => format!("Unknown tool: server {named:?} has no {tool}; it is a tool of {servers}"),
        None => {
            format!("Unknown tool: several servers have a tool {tool}; write one of them in <server_name>: {servers}")
        }
    }
}

impl RequestErrorKind {
    pub fn code(&self) -> &'static str {
        match self {
            RequestErrorKind::UnknownTool { .. } | RequestErrorKind::WrongServer { .. } => "UNKNOWN_TOOL",
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
