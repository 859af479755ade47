//! Calls that were not made.

/// Why a call never reached a server. The projections have their programs' own words for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The arguments are no JSON object, or break the tool's schema.
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
    /// Nobody allowed it.
    #[error("the call was denied")]
    Denied,
}
