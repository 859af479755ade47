//! The MCP client: one [`Session`] with one server, and the parts of which it is made.
//!
//! A [`Wire`] sends and records bytes. An [`Exchange`] knows what a client says in one session, and a [`Handshake`] how one
//! is opened; neither does any IO. A session puts them together, and reads each result from the recorded bytes, so that
//! nothing of it is lost. The client shows a server as it is: it caches nothing, repeats a request only if the server asks for that,
//! and never opens a second session by itself.

#![warn(missing_docs)]

mod connection;
mod download;
mod exchange;
mod network_server;
pub mod oauth;
mod recorder;
mod result;
mod server_params;
mod session;
#[cfg(test)]
pub(crate) mod tests;
mod tool_permission;
mod transport;
mod url;

pub use connection::{SubscriptionFilter, Wire};
pub use download::{DownloadError, download};
pub use exchange::{
    Answer, AnswerScript, Answers, ClientInfo, ConnectError, Exchange, Handshake, HandshakeError, HandshakeStep,
    InputHandler, InputKind, InputRequest, OutgoingRequest, PeerInfo, PeerVersion, ScopedAnswers, other_path,
    wrong_output,
};
pub use network_server::{NetworkServer, Readiness, StartError, address, free_port};
pub use recorder::{ClientRecorder, EventSink, UnsolicitedFrame, UnsolicitedPolicy};
pub use rehearse_document::json_schema::example;
pub use rehearse_net::pipe;
pub use rehearse_system::process::ReaperProcess;
pub use result::{Content, Failure, Malformed, Overdue, ToolOutcome, check_item};
pub use server_params::{ServerParams, Target, Timeouts};
pub use session::{
    CallOptions, CompletionReference, ConnectOptions, FinalResult, Listing, PageSource, RawReply, Session, TaskRun,
    example_operation, skill,
};
pub use tool_permission::ToolPermission;

pub use crate::transport::{
    CommandSpec, Endpoint, HeaderChange, LastLines, STDERR_HEADING, StderrLine, StderrSink, StopGrace, WireError,
    WireExchange, WireRequest, mirrored_headers,
};
