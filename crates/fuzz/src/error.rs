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
}
