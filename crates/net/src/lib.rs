//! Async IO that the mock and the client share, without any knowledge of MCP methods: newline framing, an HTTP and
//! WebSocket listener with its Host and Origin checks, and pipes inside a process.

mod backlog;
mod body;
mod connection;
mod guard;
#[cfg(feature = "client")]
pub mod http_client;
mod lines;
mod listener;
pub mod pipe;
mod read_body;
#[cfg(feature = "client")]
pub mod tls;
pub mod ws;

pub use backlog::Backlog;
pub use body::Body;
pub use connection::{ConnectionHandle, Disconnect};
pub use guard::HostPolicy;
pub use lines::{LineReader, LineWriter};
pub use listener::{ConnectionLimit, MAX_CONNECTIONS, Shutdown, accept, reachable};
pub use read_body::{BodyError, read_body, read_live_body};

/// An HTTP request as it arrives.
pub type Request = hyper::Request<hyper::body::Incoming>;
/// An HTTP response as it leaves.
pub type Response = hyper::Response<Body>;
