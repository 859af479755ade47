//! The client side of every transport: connections for rmcp, whose bytes a [`TraceRecorder`](super::TraceRecorder)
//! records.
//!
//! stdio, SSE, WebSocket and memory are one `Duplex` each; streamable HTTP is rmcp's own worker on our HTTP client.
//! Each `open` returns when frames can be sent, before the MCP handshake.

pub mod auth;
pub mod child;
mod duplex;
mod events;
mod folder;
mod headers;
pub(crate) mod http;
pub(crate) mod memory;
pub(crate) mod probe;
mod process_group;
mod process_handle;
mod process_tag;
mod raw;
mod reaper;
mod resume;
pub(crate) mod sse;
pub(crate) mod stdio;
mod tls;
pub(crate) mod web;
pub(crate) mod ws;

use std::io;

pub use child::{Child, CommandSpec, LastLines, StderrLine, StderrSink, StopGrace};
pub(crate) use duplex::Duplex;
pub use folder::TempFolder;
pub(crate) use http::HttpLink;
pub use process_handle::{ProcessChange, ProcessHandle};
pub use raw::{HeaderChange, RawSender, SentFrame};
pub use reaper::ReaperProcess;

/// The connection for rmcp.
pub(crate) enum Link {
    Duplex(Box<Duplex>),
    Http(HttpLink),
}

/// An open connection before its handshake.
pub(crate) struct OpenConnection {
    pub(crate) link: Link,
    pub(crate) raw: RawSender,
    pub(crate) child: Option<Child>,
}

impl OpenConnection {
    fn duplex(link: Duplex, child: Option<Child>) -> OpenConnection {
        let raw = RawSender::Duplex(Box::new(link.outgoing()));
        OpenConnection { link: Link::Duplex(Box::new(link)), raw, child }
    }
}

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
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
    #[error("{0}")]
    Unauthorized(String),
    /// The endpoint answered with something that is not this transport.
    #[error("{0}")]
    Malformed(String),
    /// The URL or a header cannot be used.
    #[error("{0}")]
    Invalid(String),
}

/// Why a frame could not be sent, or its answer is not a frame.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the connection is closed")]
    Closed,
    #[error("the frame could not be written: {0}")]
    Io(#[from] io::Error),
    #[error("the frame could not be written: {0}")]
    Ws(#[source] Box<tokio_tungstenite::tungstenite::Error>),
    /// The HTTP exchange failed.
    #[error("{0}")]
    Exchange(String),
    /// The HTTP status of a response without a JSON-RPC message.
    #[error("HTTP {status}")]
    Status { status: u16, body: String },
    /// The server requires an authorization, and the client has none.
    #[error("{0}")]
    Unauthorized(String),
    /// The body of a successful response is not of this transport.
    #[error("{0}")]
    Malformed(String),
    #[error("{0}")]
    Invalid(String),
}
