//! The MCP client: one [`Session`] with one server, and the parts of which it is made.
//!
//! A [`Wire`] sends and records bytes. An [`Exchange`] knows what a client says in one session, and a [`Handshake`] how one
//! is opened; neither does any IO. A session puts them together, and reads each result from the recorded bytes, so that
//! nothing of it is lost. The client shows a server as it is: it caches nothing, repeats a request only if the server asks for that,
//! and never opens a second session by itself.

#![warn(missing_docs)]

mod answers;
mod attempt;
mod call;
mod call_options;
mod connect;
mod connection;
mod deadline;
mod download;
mod exchange;
mod failure;
mod handshake;
mod held_stderr;
mod http_session;
mod info;
mod list;
mod malformed;
mod network_server;
pub mod oauth;
mod outcome;
mod output_schema;
mod raw;
mod recorder;
mod request;
mod responder;
mod rounds;
mod sender;
mod sent_request;
mod server_params;
mod session;
pub mod skill;
mod stderr;
mod subscribe;
mod subscription;
mod task;
#[cfg(test)]
pub(crate) mod tests;
mod tool_permission;
mod transport;
mod unsolicited;
mod unsolicited_tracker;
mod wire;

pub use answers::{Answer, AnswerScript, Answers, InputHandler, InputKind, InputRequest, ScopedAnswers};
pub use call::{CompletionReference, example_operation};
pub use call_options::CallOptions;
pub use connect::{ConnectError, other_path, wrong_output};
pub use download::{DownloadError, download};
pub use exchange::{Exchange, OutgoingRequest};
pub use failure::Failure;
pub use handshake::{Handshake, HandshakeError, HandshakeStep};
pub use info::{PeerInfo, PeerVersion};
pub use list::{Listing, PageSource};
pub use malformed::{Malformed, check_item};
pub use network_server::{NetworkServer, Readiness, StartError, address, free_port};
pub use outcome::{Content, ToolOutcome};
pub use raw::RawReply;
pub use recorder::{ClientRecorder, EventSink, UnsolicitedFrame};
pub use rehearse_document::json_schema::example;
pub use rehearse_net::pipe;
pub use rehearse_system::process::ReaperProcess;
pub use rounds::FinalResult;
pub use server_params::{ClientInfo, Endpoint, ServerParams, Target, Timeouts};
pub use session::{ConnectOptions, Session};
pub use stderr::STDERR_HEADING;
pub use subscription::SubscriptionFilter;
pub use task::TaskRun;
pub use tool_permission::ToolPermission;
pub use unsolicited_tracker::UnsolicitedPolicy;
pub use wire::Wire;

pub use crate::transport::{
    CommandSpec, HeaderChange, LastLines, StderrLine, StderrSink, StopGrace, WireError, WireExchange, WireRequest,
    mirrored_headers,
};
