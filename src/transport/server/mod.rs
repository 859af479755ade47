//! The server side of the network transports, as far as it knows nothing of MCP methods.

mod body;
mod guard;
mod line;
mod listener;
pub mod ws;

pub use body::Body;
pub use guard::HostPolicy;
pub use line::{Break, Line};
pub use listener::{Shutdown, accept};

/// An HTTP request as it arrives.
pub type Request = hyper::Request<hyper::body::Incoming>;
/// An HTTP response as it leaves.
pub type Response = hyper::Response<Body>;
