//! Why a session could not be opened.

use std::{io, time::Duration};

use rmcp::service::ClientInitializeError;
use serde::Deserialize;

use super::{
    Protocol,
    failure::{link_error, rpc_error},
    request::stderr_excerpt,
};
use crate::{
    transport::{
        Transport,
        client::{LinkError, OpenError},
    },
    wire::{
        RpcError, Version,
        message::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND},
    },
};

/// A server with which no session could be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The transport does not exist in this version.
    #[error("{transport} does not exist in protocol {protocol}")]
    NotApplicable { transport: Transport, protocol: Protocol },
    /// The command did not start.
    #[error("{program:?} could not be started: {source}{}", spawn_hint(.source))]
    Spawn { program: String, source: io::Error },
    /// The URL or a header cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// Nobody listens, or the connection broke.
    #[error("cannot reach {target}: {detail}{}{}", other_scheme(.target, .detail), certificate(.detail))]
    Unreachable { target: String, detail: String },
    /// The handshake did not end in time.
    #[error("no answer within {after:?}{}{}", older(*.is_newest_first, *.after), stderr_excerpt(.stderr))]
    Timeout {
        after: Duration,
        /// Whether the newest way to begin was tried before the older one.
        is_newest_first: bool,
        stderr: Vec<String>,
    },
    /// The server answered the handshake with a JSON-RPC error.
    #[error("the server refused the handshake: {error}{}", after_refusal(.error, *.is_newest_only))]
    Refused {
        error: RpcError,
        /// Whether nothing but the newest way to begin was tried.
        is_newest_only: bool,
    },
    /// The server speaks no version that we asked for.
    #[error("the server does not speak {}; it offers {}", asked(.protocol), offered(.supported))]
    Version { protocol: Protocol, supported: Vec<String> },
    /// The server answered with an HTTP status and no JSON-RPC message.
    #[error(
        "{target} answered with HTTP {status}{}{}",
        excerpt(.body),
        after_status(*.status, *.is_streamable, *.is_newest_only)
    )]
    Http {
        target: String,
        status: u16,
        body: String,
        /// Whether it is streamable HTTP that was answered so.
        is_streamable: bool,
        /// Whether nothing but the newest way to begin was tried.
        is_newest_only: bool,
    },
    /// The server wants an authorization that could not be got.
    #[error("{target} wants an authorization: {why}")]
    Unauthorized { target: String, why: String },
    /// The server ended the connection before the end of the handshake.
    #[error("the server left during the handshake: {detail}{}", stderr_excerpt(.stderr))]
    Closed { detail: String, stderr: Vec<String> },
    /// Whoever wanted the connection does so no more.
    #[error("the attempt was given up")]
    Cancelled,
    /// The server's answer is not one.
    #[error("the server's handshake is malformed: {0}")]
    Malformed(String),
}

impl ConnectError {
    /// Whether its text says to ask for an older version.
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

    pub(super) fn from_open(error: OpenError, target: &str) -> ConnectError {
        let target = target.to_owned();
        match error {
            OpenError::Spawn { program, source } => ConnectError::Spawn { program, source },
            OpenError::Unreachable { detail } => ConnectError::Unreachable { target, detail },
            OpenError::Http { status, body } => {
                ConnectError::Http { target, status, body, is_streamable: false, is_newest_only: false }
            }
            OpenError::Unauthorized(why) => ConnectError::Unauthorized { target, why },
            OpenError::Malformed(what) => ConnectError::Malformed(what),
            OpenError::Invalid(what) => ConnectError::Invalid(what),
        }
    }

    pub(super) fn from_rmcp(error: ClientInitializeError, protocol: Protocol, target: &str) -> ConnectError {
        let is_newest_only = protocol.is_newest_only();
        let closed = |detail: String| ConnectError::Closed { detail, stderr: Vec::new() };
        match error {
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
                ConnectError::from_rmcp(*fallback, protocol, target)
            }
            ClientInitializeError::JsonRpcError(error) => {
                ConnectError::Refused { error: rpc_error(error), is_newest_only }
            }
            ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
                let supported = server_supported.iter().map(ToString::to_string).collect();
                ConnectError::Version { protocol, supported }
            }
            ClientInitializeError::TransportError { error, .. } => match link_error(&error) {
                Some(LinkError::Status { status, body }) => {
                    let (target, body) = (target.to_owned(), body.clone());
                    ConnectError::Http { target, status: *status, body, is_streamable: false, is_newest_only }
                }
                Some(LinkError::Exchange(detail)) => {
                    ConnectError::Unreachable { target: target.to_owned(), detail: detail.clone() }
                }
                Some(LinkError::Unauthorized(why)) => {
                    ConnectError::Unauthorized { target: target.to_owned(), why: why.clone() }
                }
                Some(LinkError::Malformed(what) | LinkError::Invalid(what)) => ConnectError::Malformed(what.clone()),
                Some(error) => closed(error.to_string()),
                None => closed(error.error.to_string()),
            },
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => {
                closed("it closed the connection".to_owned())
            }
            ClientInitializeError::ConflictInitResponseId(expected, received)
            | ClientInitializeError::UncorrelatedErrorResponse { expected, received } => {
                ConnectError::Malformed(format!("the answer carries the id {received} instead of {expected}"))
            }
            error => ConnectError::Malformed(error.to_string()),
        }
    }
}

/// What helps if one side speaks TLS and the other does not.
fn other_scheme(target: &str, detail: &str) -> &'static str {
    let is_secure = target.starts_with("https:") || target.starts_with("wss:");
    let is_broken = ["reset by peer", "connection closed", "unexpected end"].iter().any(|sign| detail.contains(sign));
    match is_secure {
        true if detail.contains("InvalidContentType") => "; it does not seem to speak TLS: try http:// or ws://",
        false if is_broken => "; if it speaks TLS, the URL begins with https:// or wss://",
        _ => "",
    }
}

/// What is wrong with a certificate that nobody vouches for, and what helps. What is said of others says it already.
fn certificate(detail: &str) -> &'static str {
    if detail.contains("UnknownIssuer") {
        "; the certificate is not signed by anybody that this machine trusts: SSL_CERT_FILE names a file with the \
         certificates of those who are to be trusted"
    } else if detail.contains("CaUsedAsEndEntity") {
        "; the certificate is that of an authority and has signed itself, which no server's may: sign one for the server \
         (basicConstraints CA:FALSE), and name that of the authority with SSL_CERT_FILE"
    } else {
        ""
    }
}

/// How to reach a server that knows only the first version of the protocol over HTTP.
const BY_SSE: &str = "; if it speaks only HTTP+SSE, it is reached by --sse, or by the type sse in a config";

/// What helps with a server that has a handshake, and knows nothing of `server/discover`.
const BY_HANDSHAKE: &str = "; it may know only the older protocol: ask for 2025-11-25, or auto";

/// Servers of HTTP+SSE alone do not take the POST of streamable HTTP, and others want a handshake before any request
/// (2025-11-25, Transports: Backwards Compatibility, Session Management).
fn after_status(status: u16, is_streamable: bool, is_newest_only: bool) -> &'static str {
    match status {
        404 | 405 if is_streamable => BY_SSE,
        400 if is_newest_only => BY_HANDSHAKE,
        _ => "",
    }
}

/// A server that knows no `server/discover` says that there is no such method, or that something else should be first.
fn after_refusal(error: &RpcError, is_newest_only: bool) -> &'static str {
    match error.code {
        _ if speaks_only_the_first(error) => BY_SSE,
        INVALID_REQUEST | METHOD_NOT_FOUND | INVALID_PARAMS if is_newest_only => BY_HANDSHAKE,
        _ => "",
    }
}

/// Whether the error names the versions that there are, and that is only one which streamable HTTP does not carry.
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

/// A server that leaves the newest way to begin unanswered is asked in the older way after 10 s or half the time, and has
/// the rest for its answer.
fn older(is_newest_first: bool, after: Duration) -> &'static str {
    match is_newest_first && after < Duration::from_secs(12) {
        true => "; it may know only the older way to begin, which takes more time or --protocol 2025-11-25",
        false => "",
    }
}

fn asked(protocol: &Protocol) -> String {
    match protocol {
        Protocol::Exact(version) => version.to_string(),
        Protocol::Auto => "a version that we know".to_owned(),
    }
}

fn offered(versions: &[String]) -> String {
    if versions.is_empty() { "none".to_owned() } else { versions.join(", ") }
}

fn excerpt(body: &str) -> String {
    const LONGEST: usize = 200;
    let line = body.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        _ if line.is_empty() => String::new(),
        Some((end, _)) => format!(": {}…", &line[..end]),
        None => format!(": {line}"),
    }
}
