//! Relays between a client and a server. Nothing is changed on the way, and a sink sees every event.

#![warn(missing_docs)]

mod exchange;
mod http;
mod lines;
mod process;
mod sessions;

use std::{io, net::SocketAddr};

use rehearse_client::{ConnectError, EventSink};
use rehearse_protocol::trace_file::ConnectionInfo;

pub use self::{
    http::HttpRelay,
    lines::relay_lines,
    process::{ProcessInput, ProcessOutput, process_codec, process_streams},
};

/// How many events a recorder keeps; the sink sees them all.
const KEPT_EVENTS: usize = 1;
/// How many bytes may wait for a client that reads slowly.
const MAX_WAITING: usize = 1 << 20;

/// Gives each new connection its sink.
pub type EventSinks = dyn Fn(&ConnectionInfo) -> Box<dyn EventSink> + Send + Sync;

/// Why a relay cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The server cannot be reached in this way.
    #[error(transparent)]
    Server(#[from] ConnectError),
    /// It is not a URL.
    #[error("{url:?} is not a URL: {source}")]
    Url {
        /// The text.
        url: String,
        /// Why.
        source: ::http::uri::InvalidUri,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}
