//! The errors of commands of the REPL.

use crate::cli::{Failure, mcp::error::CommandError};
use rehearse_hub::HubError;

/// Why a command failed.
pub(super) enum ShellError {
    Hub(HubError),
    Command(CommandError),
}

impl ShellError {
    pub(super) fn new(text: impl Into<String>) -> ShellError {
        ShellError::Command(CommandError::Listing(text.into()))
    }
}

impl From<HubError> for ShellError {
    fn from(error: HubError) -> Self {
        ShellError::Hub(error)
    }
}

impl From<CommandError> for ShellError {
    fn from(error: CommandError) -> Self {
        ShellError::Command(error)
    }
}

impl From<Failure> for ShellError {
    fn from(failure: Failure) -> Self {
        ShellError::Command(failure.into())
    }
}
