//! The client side of every transport: connections for rmcp, whose bytes a [`TraceRecorder`](crate::recorder::TraceRecorder)
//! records.
//!
//! stdio, SSE, WebSocket and memory are one `Duplex` each; streamable HTTP is rmcp's own worker on our HTTP client.
//! Each `open` returns when frames can be sent, before the MCP handshake.

pub(crate) mod auth;
pub(crate) mod child;
mod connection;
mod duplex;
mod error;
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
mod sse_poster;
pub(crate) mod stdio;
pub(crate) mod streamable_http;
pub(crate) mod web;
pub(crate) mod ws;
mod ws_stream;

pub(crate) use child::Child;
pub use child::{CommandSpec, LastLines, StderrLine, StderrSink, StopGrace};
pub(crate) use connection::{HttpLink, Link, OpenConnection};
pub(crate) use duplex::{Duplex, Outgoing};
pub(crate) use error::{LinkError, OpenError};
pub(crate) use events::EventChunks;
pub use folder::TempFolder;
pub use headers::{HeaderChange, mirrored as mirrored_headers};
pub use process_handle::{ProcessChange, ProcessHandle};
pub use process_tag::is_started_by_client;
pub(crate) use raw::RawSender;
pub use reaper::ReaperProcess;
