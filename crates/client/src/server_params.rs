//! How to reach a server.

use std::{fmt, time::Duration};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    exchange::{Answers, ClientInfo, ConnectError},
    oauth,
    transport::{CommandSpec, Endpoint, web},
    url::parse_url,
};
use rehearse_net::{http_client::display_url, pipe};
use rehearse_protocol::Transport;

/// How to reach one server.
///
/// ```
/// use std::time::Duration;
///
/// use rehearse_client::{ServerParams, Target, Timeouts};
///
/// let timeouts = Timeouts { call: Duration::from_secs(5), ..Timeouts::default() };
/// let params = ServerParams { timeouts, ..ServerParams::new("weather", Target::http("https://example.com/mcp")) };
/// assert!(params.target.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct ServerParams {
    /// The name of the server in messages.
    pub name: String,
    /// Where the server is.
    pub target: Target,
    /// How long to wait for the server.
    pub timeouts: Timeouts,
    /// Gets tokens for a server over HTTP that requires them. An `Authorization` header of the target takes precedence.
    pub authorizer: Option<oauth::Authorizer>,
    /// The URL of the server that has named this one, if the user has not: over HTTP, it cannot send the client to a
    /// network nearer to it than itself.
    pub named_by: Option<String>,
    /// How the client names itself at the handshake.
    pub client_info: ClientInfo,
    /// The capabilities that the client declares, if they are not those of its answers.
    pub capabilities: Option<Map<String, Value>>,
    /// The extensions that the client declares, with their settings.
    pub extensions: Map<String, Value>,
    /// The answers to the server's requests. They are used up, so each session needs its own.
    pub answers: Answers,
    /// The trace of the requests; each names its span in it to the server, if there is one (W3C Trace Context).
    pub trace: Option<u128>,
    /// Cancelled when this program has to exit. From then on a process gets no time to exit by itself before SIGTERM, and
    /// closing a session over the network is cut short.
    pub shutdown: CancellationToken,
}

/// Where a server is.
///
/// ```
/// use rehearse_client::{CommandSpec, Target};
/// use rehearse_protocol::Transport;
///
/// let local = Target::Stdio(CommandSpec { program: "weather-server".to_owned(), ..CommandSpec::default() });
/// assert_eq!(local.transport(), Transport::Stdio);
/// let error = Target::http("ftp://example.com").check().unwrap_err();
/// assert_eq!(error.to_string(), r#""ftp://example.com" must start with http:// or https://"#);
/// ```
#[derive(Clone, Debug)]
pub enum Target {
    /// A command that serves on its standard streams.
    Stdio(CommandSpec),
    /// Streamable HTTP.
    Http(Endpoint),
    /// HTTP with SSE.
    Sse(Endpoint),
    /// A WebSocket.
    Ws(Endpoint),
    /// A pipe inside this process.
    Memory(pipe::Address),
}

impl Target {
    /// Checks the URL and headers without connecting.
    ///
    /// # Errors
    /// [`ConnectError::Invalid`] if the URL or a header cannot be used.
    pub fn check(&self) -> Result<(), ConnectError> {
        let Some(at) = self.endpoint() else { return Ok(()) };
        let schemes = self.transport().schemes();
        parse_url(&at.url, schemes).map_err(ConnectError::Invalid)?;
        web::header_map(&at.headers).map(drop).map_err(|error| ConnectError::Invalid(error.to_string()))
    }
}

/// How long to wait for a server. Time in which a user authorizes the client is not included.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From starting the command or connecting to the end of the handshake.
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
    /// With the default timeouts, and without answers to requests of the server.
    pub fn new(name: impl Into<String>, target: Target) -> Self {
        let (timeouts, answers) = (Timeouts::default(), Answers::default());
        ServerParams {
            name: name.into(),
            target,
            timeouts,
            authorizer: None,
            named_by: None,
            client_info: ClientInfo::default(),
            capabilities: None,
            extensions: Map::new(),
            answers,
            trace: None,
            shutdown: CancellationToken::new(),
        }
    }
}

impl Target {
    /// Streamable HTTP at this URL, without headers of its own.
    pub fn http(url: impl Into<String>) -> Target {
        Target::Http(Endpoint { url: url.into(), headers: Vec::new() })
    }

    /// A server at this endpoint; `None` for a transport without URLs.
    pub fn at(transport: Transport, endpoint: Endpoint) -> Option<Target> {
        match transport {
            Transport::Http => Some(Target::Http(endpoint)),
            Transport::Sse => Some(Target::Sse(endpoint)),
            Transport::Ws => Some(Target::Ws(endpoint)),
            Transport::Stdio | Transport::Memory => None,
        }
    }

    /// Where the server is in the network, if it is there.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Target::Http(at) | Target::Sse(at) | Target::Ws(at) => Some(at),
            Target::Stdio(_) | Target::Memory(_) => None,
        }
    }

    /// As [`Target::endpoint`], to change it.
    pub fn endpoint_mut(&mut self) -> Option<&mut Endpoint> {
        match self {
            Target::Http(at) | Target::Sse(at) | Target::Ws(at) => Some(at),
            Target::Stdio(_) | Target::Memory(_) => None,
        }
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

impl fmt::Display for Target {
    /// The program, or the URL without its secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Stdio(spec) => f.write_str(&spec.program),
            Target::Http(at) | Target::Sse(at) | Target::Ws(at) => f.write_str(&display_url(&at.url)),
            Target::Memory(_) => f.write_str("the server in this process"),
        }
    }
}
