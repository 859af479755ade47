//! Errors of connections.

use std::io;

use crate::oauth::AuthError;

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The command could not be started.
    #[error("{source}")]
    Spawn { program: String, source: io::Error },
    /// There is no listener, or the connection broke.
    #[error("{detail}")]
    Unreachable { detail: String },
    /// The endpoint answered with an HTTP error.
    #[error("HTTP {status}")]
    Http { status: u16, body: String },
    /// The endpoint requires an authorization, and the client has none.
    #[error(transparent)]
    Unauthorized(#[from] AuthError),
    /// The endpoint answered with something that is not this transport.
    #[error("{0}")]
    Malformed(String),
    /// The URL or a header cannot be used.
    #[error("{0}")]
    Invalid(String),
}

/// Why bytes could not be sent, or why what came back is not of the transport.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The connection has ended.
    #[error("the connection is closed")]
    Closed,
    /// A frame could not be written.
    #[error("the frame could not be written: {0}")]
    Io(#[from] io::Error),
    /// A frame could not be written to a WebSocket.
    #[error("the frame could not be written: {0}")]
    Ws(#[source] Box<tokio_tungstenite::tungstenite::Error>),
    /// The HTTP exchange failed.
    #[error("{0}")]
    Exchange(String),
    /// The HTTP status of a response without a JSON-RPC message.
    #[error("HTTP {status}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The start of the body.
        body: String,
    },
    /// The server requires an authorization, and the client has none.
    #[error(transparent)]
    Unauthorized(#[from] AuthError),
    /// The body of a successful response is not of this transport.
    #[error("{0}")]
    Malformed(String),
    /// The bytes or headers cannot be sent over this transport.
    #[error("{0}")]
    Invalid(String),
}
