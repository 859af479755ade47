//! The client side of every transport: bytes go out and come in, and a [`ClientRecorder`](crate::recorder::ClientRecorder)
//! records them.
//!
//! stdio, SSE, WebSocket and memory are a `Link` each, with frames that flow freely both ways; streamable HTTP is an
//! `HttpEndpoint`. Each `open` returns when frames can be sent, before the MCP handshake.

pub(crate) mod child;
mod duplex;
mod endpoint;
mod error;
mod events;
mod headers;
mod http;
mod link;
pub(crate) mod memory;
pub(crate) mod sse;
mod sse_poster;
pub(crate) mod stderr;
pub(crate) mod stdio;
pub(crate) mod web;
pub(crate) mod ws;
mod ws_stream;

pub(crate) use child::Child;
pub use child::{CommandSpec, LastLines, StderrLine, StderrSink, StopGrace};
pub(crate) use duplex::{Incoming, Outgoing};
pub use endpoint::Endpoint;
pub(crate) use error::OpenError;
pub use error::WireError;
pub use headers::{HeaderChange, mirrored as mirrored_headers};
pub(crate) use http::{
    Authorization, FrameSink, HttpEndpoint, ResponseBody, ResponseHead, StreamEnd, WireResponse, change_headers,
};
pub use http::{WireExchange, WireRequest};
pub(crate) use link::Link;
pub use stderr::STDERR_HEADING;
