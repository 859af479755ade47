//! The MCP client: one [`Session`] with one server, driven by rmcp and tracker by what the recorder saw.
//!
//! rmcp sends the requests and keeps the protocol; every answer is taken from the tapped bytes, so nothing that rmcp
//! drops is lost, and nothing that it refuses to parse becomes a hang. The client is an honest witness: it caches
//! nothing, repeats nothing but what a server asks it to, and opens no second session behind the caller's back.

mod answers;
mod backlog;
mod call;
mod connect;
mod deadline;
pub mod example;
mod failure;
mod handler;
mod handshake;
pub mod hub;
mod info;
mod list;
pub mod oauth;
mod order;
mod outcome;
mod probe;
pub mod projection;
mod protocol;
mod raw;
mod request;
mod rounds;
mod session;
pub mod skill;
mod subscription;
mod task;
#[cfg(test)]
pub(crate) mod tests;
mod unsolicited_tracker;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use answers::{Answer, AnswerScript, Answers, InputHandler, InputKind, InputRequest, ScopedAnswers};
pub use call::{CallOptions, CompletionReference};
pub use connect::ConnectError;
pub use failure::Failure;
pub use info::{PeerInfo, PeerVersion};
pub use list::Listing;
pub use outcome::{Content, ToolOutcome};
pub use protocol::{Protocol, UnknownProtocol};
pub use raw::RawReply;
pub(crate) use request::STDERR;
pub use session::Session;
pub use subscription::SubscriptionFilter;
pub use task::TaskRun;
pub use unsolicited_tracker::UnsolicitedPolicy;

pub use crate::transport::client::{
    CommandSpec, HeaderChange, LastLines, ProcessChange, ProcessHandle, ReaperProcess, StderrLine, StderrSink,
    StopGrace, TempFolder,
};
use crate::transport::{Transport, client::web, pipe};

/// How to reach one server.
#[derive(Clone, Debug)]
pub struct ServerParams {
    pub name: String,
    pub target: Target,
    pub timeouts: Timeouts,
    /// Gets tokens for a server over the network that wants them; headers that are written out come first.
    pub authorizer: Option<oauth::Authorizer>,
    /// What the client says when the server asks; of one session, for answers are used up.
    pub answers: Answers,
    /// To be cancelled when this program is asked to end: from then on nobody waits for a process to exit by itself, and
    /// a leave that is being taken over the network is cut short.
    pub shutdown: CancellationToken,
}

/// Where a server is.
#[derive(Clone, Debug)]
pub enum Target {
    Stdio(CommandSpec),
    Http(Endpoint),
    Sse(Endpoint),
    Ws(Endpoint),
    Memory(pipe::Address),
}

impl Target {
    /// Whether one can connect to it at all, as far as that can be known without trying.
    ///
    /// # Errors
    /// [`ConnectError::Invalid`] says what is wrong with the URL or a header.
    pub fn check(&self) -> Result<(), ConnectError> {
        let (at, schemes) = match self {
            Target::Stdio(_) | Target::Memory(_) => return Ok(()),
            Target::Http(at) | Target::Sse(at) => (at, ["http", "https"]),
            Target::Ws(at) => (at, ["ws", "wss"]),
        };
        let checked = web::parse_url(&at.url, &schemes).and_then(|_| web::header_map(&at.headers));
        checked.map(drop).map_err(|error| ConnectError::Invalid(error.to_string()))
    }
}

/// A URL, and headers that go with every HTTP request to it. Headers of the protocol take precedence.
#[derive(Clone, Debug, Default)]
pub struct Endpoint {
    pub url: String,
    pub headers: Vec<(String, String)>,
}

/// How long to wait for a server. Time in which a person is asked to authorize the client does not count.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From starting or dialling the server to the end of the handshake.
    pub connect: Duration,
    /// For one listing with all its pages.
    pub list: Duration,
    /// For any other request.
    pub call: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts { connect: Duration::from_secs(30), list: Duration::from_secs(30), call: Duration::from_secs(60) }
    }
}

impl ServerParams {
    /// With the default timeouts, and without answers to what the server asks.
    pub fn new(name: impl Into<String>, target: Target) -> Self {
        let (timeouts, answers) = (Timeouts::default(), Answers::default());
        ServerParams {
            name: name.into(),
            target,
            timeouts,
            authorizer: None,
            answers,
            shutdown: CancellationToken::new(),
        }
    }
}

impl Target {
    /// Streamable HTTP at this URL, without headers of its own.
    pub fn http(url: impl Into<String>) -> Target {
        Target::Http(Endpoint { url: url.into(), headers: Vec::new() })
    }

    /// The transport over which the server is reached.
    pub fn transport(&self) -> Transport {
        match self {
            Target::Stdio(_) => Transport::Stdio,
            Target::Http(_) => Transport::Http,
            Target::Sse(_) => Transport::Sse,
            Target::Ws(_) => Transport::Ws,
            Target::Memory(_) => Transport::Memory,
        }
    }
}
