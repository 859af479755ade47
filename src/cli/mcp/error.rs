//! The errors of commands.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::{Exit, Failure};
use rehearse_client as client;
use rehearse_hub::HubError;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum CommandError {
    Failure(Failure),
    /// The request failed at the server.
    Call(client::Failure),
    /// Servers could not list their tools.
    Listing(String),
}

impl CommandError {
    pub(crate) fn usage(what: String) -> CommandError {
        CommandError::Failure(Failure::Usage(what))
    }
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> Self {
        CommandError::Failure(failure)
    }
}

impl From<HubError> for CommandError {
    fn from(error: HubError) -> Self {
        CommandError::Failure(match error {
            HubError::Unreachable { server, error } => {
                Failure::cannot(format!("MCP server '{server}' connection failed: {error}"))
            }
            error @ (HubError::Duplicate(_) | HubError::UnknownServer(_) | HubError::Disabled(_)) => {
                Failure::Usage(error.to_string())
            }
        })
    }
}

impl From<client::Failure> for CommandError {
    fn from(failure: client::Failure) -> Self {
        CommandError::Call(failure)
    }
}

/// A failed request as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct FailureReport {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<i64>,
    /// The `data` of the error, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<String>,
}

impl FailureReport {
    pub(super) const fn new(kind: &'static str, message: String) -> FailureReport {
        FailureReport { kind, message, code: None, data: None, status: None, body: None }
    }
}

/// The exit code for a failed request.
pub(super) fn exit_of(failure: &client::Failure) -> Exit {
    match failure {
        client::Failure::Unauthorized(_) => Exit::CannotRun,
        _ => Exit::Violation,
    }
}
