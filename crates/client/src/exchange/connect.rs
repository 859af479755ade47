//! Why a session could not be opened.

use std::{io, time::Duration};

use serde::Deserialize;

use super::handshake::HandshakeError;
use crate::{
    oauth::AuthError,
    transport::{OpenError, WireError, stderr::stderr_excerpt},
};
use rehearse_net::http_client;
use rehearse_protocol::Protocol;
use rehearse_protocol::{
    RpcError, Transport, Version,
    message::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND},
};

/// A server with which no session could be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The transport does not exist in this version.
    #[error("{transport} does not exist in protocol {protocol}")]
    NotApplicable {
        /// The requested transport.
        transport: Transport,
        /// The requested protocol version.
        protocol: Protocol,
    },
    /// The command did not start.
    #[error("{program:?} could not be started: {source}{}", spawn_hint(.source))]
    Spawn {
        /// The program of the command.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The URL or a header cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// There is no listener, or the connection broke.
    #[error("cannot reach {target}: {detail}{}{}", other_scheme(.target, .detail), certificate(.detail))]
    Unreachable {
        /// The server, as its URL or command.
        target: String,
        /// The reason.
        detail: String,
    },
    /// The handshake did not end in time.
    #[error(
        "no answer within {after:?}{}{}",
        .output.as_ref().map_or_else(
            || after_timeout(*.is_process, *.is_newest_first, *.after).to_owned(),
            |line| format!(" of its start{}", wrong_output(Some(line)))
        ),
        stderr_excerpt(.stderr)
    )]
    Timeout {
        /// The time limit.
        after: Duration,
        /// Whether the time includes the start of a process.
        is_process: bool,
        /// Whether `server/discover` was tried before `initialize`.
        is_newest_first: bool,
        /// The first line on the standard output of the server that is no message.
        output: Option<String>,
        /// The last lines of the standard error of the server.
        stderr: Vec<String>,
    },
    /// The server answered the handshake with a JSON-RPC error.
    #[error("the server refused the handshake: {error}{}", after_refusal(.error, *.is_newest_only))]
    Refused {
        /// The error of the server.
        error: RpcError,
        /// Whether only `server/discover` was tried.
        is_newest_only: bool,
    },
    /// The server supports none of the versions that the client offered.
    #[error("the server does not speak {}; it offers {}", requested_version(.protocol), version_list(.supported))]
    Version {
        /// The requested protocol version.
        protocol: Protocol,
        /// The versions that the server supports.
        supported: Vec<String>,
    },
    /// The server answered with an HTTP status and no JSON-RPC message.
    #[error(
        "{target} answered with HTTP {status}{}{}{}{}",
        excerpt(.body),
        proxied(.target),
        if (*.status == 404 || is_page(.body)) && *.is_streamable { other_path(.target) } else { "" },
        after_status(*.status, *.is_streamable, *.is_newest_only)
    )]
    Http {
        /// The URL of the server.
        target: String,
        /// The HTTP status.
        status: u16,
        /// The start of the body.
        body: String,
        /// Whether the transport is streamable HTTP.
        is_streamable: bool,
        /// Whether only `server/discover` was tried.
        is_newest_only: bool,
    },
    /// The server requires an authorization, and the client has none.
    #[error("{target} requires authorization: {source}")]
    Unauthorized {
        /// The URL of the server.
        target: String,
        /// The reason for the missing authorization.
        source: AuthError,
    },
    /// The server ended the connection before the end of the handshake.
    #[error(
        "the server closed the connection during the handshake: {detail}{}{}",
        wrong_output(.output.as_ref()),
        stderr_excerpt(.stderr)
    )]
    Closed {
        /// The reason.
        detail: String,
        /// The first line on the standard output of the server that is no message.
        output: Option<String>,
        /// The last lines of the standard error of the server.
        stderr: Vec<String>,
    },
    /// The caller cancelled the attempt.
    #[error("the attempt was cancelled")]
    Cancelled,
    /// The answer of the server is invalid.
    #[error("the server's handshake is malformed: {0}")]
    Malformed(String),
    /// The server was asked for both handshakes, and opened no session with either.
    #[error("neither handshake opens a session. `server/discover`: {discover}; `initialize`: {initialize}")]
    Both {
        /// What the server answered to `server/discover`.
        discover: String,
        /// What came of `initialize`.
        initialize: Box<ConnectError>,
    },
}

impl ConnectError {
    /// Whether its text suggests an older version.
    pub fn may_be_older(&self) -> bool {
        let after = match self {
            ConnectError::Refused { error, is_newest_only } => after_refusal(error, *is_newest_only),
            ConnectError::Http { status, is_streamable, is_newest_only, .. } => {
                after_status(*status, *is_streamable, *is_newest_only)
            }
            _ => "",
        };
        after == BY_HANDSHAKE
    }

    /// What came of the last handshake, if there were two.
    pub fn last(&self) -> &ConnectError {
        match self {
            ConnectError::Both { initialize, .. } => initialize,
            error => error,
        }
    }

    pub(crate) fn last_mut(&mut self) -> &mut ConnectError {
        match self {
            ConnectError::Both { initialize, .. } => initialize,
            error => error,
        }
    }

    /// What came of `initialize`, after this answer to `server/discover`. A server that says the same twice is quoted once.
    pub(crate) fn after(self, discover: Option<&str>) -> ConnectError {
        match discover {
            Some(discover) if !self.to_string().contains(discover) => {
                ConnectError::Both { discover: discover.to_owned(), initialize: Box::new(self) }
            }
            _ => self,
        }
    }

    pub(crate) fn from_open(error: OpenError, target: &str) -> ConnectError {
        let target = target.to_owned();
        match error {
            OpenError::Spawn { program, source } => ConnectError::Spawn { program, source },
            OpenError::Unreachable { detail } => ConnectError::Unreachable { target, detail },
            OpenError::Http { status, body } => {
                ConnectError::Http { target, status, body, is_streamable: false, is_newest_only: false }
            }
            OpenError::Unauthorized(source) => ConnectError::Unauthorized { target, source },
            OpenError::Malformed(what) => ConnectError::Malformed(what),
            OpenError::Invalid(what) => ConnectError::Invalid(what),
        }
    }

    pub(crate) fn from_handshake(error: HandshakeError, protocol: Protocol) -> ConnectError {
        match error {
            HandshakeError::Refused(error) => {
                ConnectError::Refused { error, is_newest_only: protocol.is_newest_only() }
            }
            HandshakeError::Version { supported } => ConnectError::Version { protocol, supported },
            HandshakeError::Malformed(what) => ConnectError::Malformed(what),
            HandshakeError::Unanswered(error) | HandshakeError::Unasked(error) => *error,
            error @ HandshakeError::Silent(_) => ConnectError::Malformed(error.to_string()),
        }
    }

    /// A message of the handshake could not be sent, or its HTTP response is no answer.
    pub(crate) fn from_wire(error: WireError, protocol: Protocol, target: &str, is_streamable: bool) -> ConnectError {
        let target = target.to_owned();
        match error {
            WireError::Status { status, body } => {
                ConnectError::Http { target, status, body, is_streamable, is_newest_only: protocol.is_newest_only() }
            }
            WireError::Exchange(detail) => ConnectError::Unreachable { target, detail },
            WireError::Unauthorized(source) => ConnectError::Unauthorized { target, source },
            WireError::Malformed(what) | WireError::Invalid(what) => ConnectError::Malformed(what),
            error => ConnectError::Closed { detail: error.to_string(), output: None, stderr: Vec::new() },
        }
    }
}

/// The words about a line on standard output that is no message: the log of many servers is there.
pub fn wrong_output(line: Option<&String>) -> String {
    line.map(|line| format!("; its standard output is not MCP: {line}")).unwrap_or_default()
}

/// A hint if only one side uses TLS.
fn other_scheme(target: &str, detail: &str) -> &'static str {
    let is_secure = target.starts_with("https:") || target.starts_with("wss:");
    let is_broken = ["reset by peer", "connection closed", "unexpected end"].iter().any(|sign| detail.contains(sign));
    match is_secure {
        true if detail.contains("InvalidContentType") => "; the server does not seem to use TLS: try http:// or ws://",
        false if is_broken => "; if the server uses TLS, the URL must start with https:// or wss://",
        _ => "",
    }
}

/// A hint for a certificate that is not trusted. The detail of other TLS errors is enough.
fn certificate(detail: &str) -> &'static str {
    if detail.contains("UnknownIssuer") {
        "; this machine does not trust the issuer of the certificate: set SSL_CERT_FILE to a file with the certificates to \
         trust"
    } else if detail.contains("CaUsedAsEndEntity") {
        "; the certificate is that of an authority, which a server cannot use: sign one for the server (basicConstraints \
         CA:FALSE), and set SSL_CERT_FILE to the certificate of the authority"
    } else {
        ""
    }
}

/// A hint for a URL at which a server answers that there is nothing.
pub fn other_path(url: &str) -> &'static str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    if path.ends_with("/mcp") || path.ends_with("/sse") { "" } else { "; is the path right? it is often /mcp" }
}

/// The hint for a server that only supports the first version of MCP over HTTP.
const BY_SSE: &str = "; if it only supports HTTP+SSE, use --sse, or the type sse in a config";

/// The hint for a server that requires `initialize`.
const BY_HANDSHAKE: &str = "; it may only support older versions: use 2025-11-25 or auto";

/// Servers with HTTP+SSE only reject the POST of streamable HTTP, and others require a handshake before any request
/// (2025-11-25, Transports: Backwards Compatibility, Session Management).
fn after_status(status: u16, is_streamable: bool, is_newest_only: bool) -> &'static str {
    match status {
        404 | 405 if is_streamable => BY_SSE,
        400 if is_newest_only => BY_HANDSHAKE,
        _ => "",
    }
}

/// A server without `server/discover` answers that the method is unknown, or that another request must be first.
fn after_refusal(error: &RpcError, is_newest_only: bool) -> &'static str {
    match error.code {
        _ if speaks_only_the_first(error) => BY_SSE,
        INVALID_REQUEST | METHOD_NOT_FOUND | INVALID_PARAMS if is_newest_only => BY_HANDSHAKE,
        _ => "",
    }
}

/// Whether the error lists the first version as the only one, which streamable HTTP does not carry.
fn speaks_only_the_first(error: &RpcError) -> bool {
    #[derive(Deserialize)]
    struct Versions {
        supported: Vec<String>,
    }
    let versions = error.data.as_ref().and_then(|data| serde_json::from_str::<Versions>(data.get()).ok());
    versions.is_some_and(|versions| versions.supported == [Version::V2024_11_05.as_str()])
}

fn spawn_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; is it installed, and on the PATH?",
        io::ErrorKind::PermissionDenied => "; is it executable?",
        _ => "",
    }
}

/// A server that does not answer `server/discover` gets `initialize` after 10 s or half the timeout, and has the rest
/// for its answer.
fn after_timeout(is_process: bool, is_newest_first: bool, after: Duration) -> &'static str {
    match (is_process, is_newest_first && after < Duration::from_secs(12)) {
        (true, true) => {
            " of its start; it may only support the older handshake: use --protocol 2025-11-25, or a longer \
             --start-timeout"
        }
        (true, false) => {
            " of its start; if it starts slowly, use a longer --start-timeout, or a longer timeout in its config"
        }
        (false, true) => "; it may only support the older handshake: use a longer timeout or --protocol 2025-11-25",
        (false, false) => "",
    }
}

fn requested_version(protocol: &Protocol) -> String {
    match protocol {
        Protocol::Exact(version) => version.to_string(),
        Protocol::Auto => "any known version".to_owned(),
    }
}

fn version_list(versions: &[String]) -> String {
    if versions.is_empty() { "none".to_owned() } else { versions.join(", ") }
}

/// The proxy between, which may be who answers.
fn proxied(target: &str) -> String {
    let proxy = target.parse().ok().and_then(|url| http_client::proxy_of(&url));
    proxy.map(|proxy| format!(", through {proxy}")).unwrap_or_default()
}

fn is_page(body: &str) -> bool {
    let begin = body.trim_start().get(..9).unwrap_or_default().to_ascii_lowercase();
    begin == "<!doctype" || begin.starts_with("<html")
}

fn excerpt(body: &str) -> String {
    const LONGEST: usize = 200;
    if is_page(body) {
        let title = body.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
        return format!(" and a page for browsers{}", title.map(|(title, _)| excerpt(title)).unwrap_or_default());
    }
    let line = body.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        _ if line.is_empty() => String::new(),
        Some((end, _)) => format!(": {}…", &line[..end]),
        None => format!(": {line}"),
    }
}
