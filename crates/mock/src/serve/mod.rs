//! Serves an engine: over a pipe with [`serve_pipe`], over all network transports on one port with [`MockServer`].
//!
//! | endpoint | transport |
//! | --- | --- |
//! | `/mcp` | streamable HTTP, both eras |
//! | `/sse`, `/messages` | HTTP+SSE of 2024-11-05 |
//! | `/ws` | WebSocket, both eras |

mod addresses;
mod authorization;
mod batch;
mod connection;
mod connection_closer;
mod connection_trace;
mod drive;
mod faulty_response;
mod http;
mod http_exchange;
mod http_faults;
mod issued;
mod lifetime;
mod path;
mod pipe;
mod proof;
mod recorder;
mod reorder_gate;
mod response_recorder;
mod router;
mod server;
mod server_state;
mod session;
mod session_http;
mod sse;
mod sse_streams;
mod stateless;
mod stream_log;
mod streamable;
mod ws;

pub use path::url;
pub use pipe::{PipeEnd, PipeServer, serve_pipe};
pub use recorder::ServerRecorder;
pub use server::{ListenOptions, MockServer};

#[cfg(test)]
mod tests;

#[cfg(test)]
mod fault_tests;
