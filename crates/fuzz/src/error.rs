//! Why a run cannot be made.

use rehearse_client::{ConnectError, Failure};

/// Why nothing of a server was fuzzed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FuzzError {
    /// The server cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It does not list its tools.
    #[error("its tools cannot be listed: {0}")]
    Tools(#[source] Failure),
    /// [`only`](crate::FuzzOptions::only) names a tool that it does not list.
    #[error("there is no tool {name:?}; tools are {}", .known.join(", "))]
    UnknownTool {
        /// The name.
        name: String,
        /// The names of the first tools.
        known: Vec<String>,
    },
}
