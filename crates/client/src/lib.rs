//! The MCP client: one [`Session`] with one server. rmcp speaks the protocol; results are read from the recorded bytes.
//!
//! So no member of a result is lost that rmcp's types drop, and an answer that rmcp cannot parse is an error instead of
//! a hang. The client shows a server as it is: it caches nothing, repeats a request only if the server asks for that,
//! and never opens a second session by itself.

#![warn(missing_docs)]

mod answers;
mod attempt;
mod backlog;
mod call;
mod call_options;
mod connect;
mod deadline;
mod download;
pub use rehearse_document::json_schema::example;
mod failure;
mod handler;
mod handshake;
mod info;
mod list;
mod malformed;
mod network_server;
pub mod oauth;
mod order;
mod outcome;
mod output_schema;
mod probe;
mod raw;
mod recorder;
mod request;
mod rounds;
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
pub use call::{CompletionReference, call_params};
pub use call_options::CallOptions;
pub use connect::ConnectError;
pub use download::download;
pub use failure::Failure;
pub use info::{PeerInfo, PeerVersion};
pub use list::{Listing, PageSource};
pub use malformed::{Malformed, check_item};
pub use network_server::{NetworkServer, Readiness, StartError, free_port};
pub use outcome::{Content, ToolOutcome};
pub use raw::RawReply;
pub use recorder::{EventSink, TraceRecorder, UnsolicitedFrame};
pub use rehearse_net::pipe;
pub use rounds::FinalResult;
pub use server_params::{ClientInfo, Endpoint, ServerParams, Target, Timeouts};
pub use session::{ConnectOptions, Session};
pub use stderr::STDERR_HEADING;
pub use subscription::SubscriptionFilter;
pub use task::TaskRun;
pub use tool_permission::{ToolPermission, matches_wildcard};
pub use unsolicited_tracker::UnsolicitedPolicy;
pub use wire::{Wire, WireExchange, WireRequest};

pub use crate::transport::{
    CommandSpec, HeaderChange, LastLines, ProcessChange, ProcessHandle, ReaperProcess, StderrLine, StderrSink,
    StopGrace, TempFolder, is_started_by_client, mirrored_headers,
};
