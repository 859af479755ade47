//! The path of each transport.

use std::fmt::Display;

use rehearse_protocol::Transport;

/// Where a server of this transport is reached; `None` without a network.
pub(super) fn path(transport: Transport) -> Option<&'static str> {
    match transport {
        Transport::Http => Some("/mcp"),
        Transport::Sse => Some("/sse"),
        Transport::Ws => Some("/ws"),
        Transport::Stdio | Transport::Memory => None,
    }
}

/// The transport that a path belongs to.
pub(super) fn transport(path_of_request: &str) -> Transport {
    match path_of_request {
        "/messages" => Transport::Sse,
        other => Transport::NETWORK.into_iter().find(|it| path(*it) == Some(other)).unwrap_or(Transport::Http),
    }
}

/// The URL of a mock on this address; `None` for a transport without a network.
pub fn url(transport: Transport, address: impl Display) -> Option<String> {
    let scheme = transport.schemes().first()?;
    Some(format!("{scheme}://{address}{}", path(transport)?))
}
