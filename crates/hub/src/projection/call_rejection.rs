//! Calls that were not sent.

/// Why a call was not sent to a server. Each projection uses the wording of its program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallRejection {
    /// The arguments are not a JSON object, or violate the schema of the tool.
    #[error("invalid arguments: {0}")]
    InvalidArguments(String),
    #[error("there is no such tool")]
    UnknownTool,
    #[error("there is no such server")]
    UnknownServer,
    #[error("the server is disabled")]
    Disabled,
    #[error("the server is not connected: {0}")]
    NotConnected(String),
    /// The user did not allow it.
    #[error("the call was denied")]
    Denied,
}
