//! Which protocol version a client speaks.

use std::{fmt, str::FromStr};

use crate::{Era, Transport, Version};

/// The version that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// This version, without a fallback to another era.
    Exact(Version),
    /// The newest modern version, or the newest legacy version if the server turns out to be legacy (2026-07-28,
    /// Versioning: Backward Compatibility). Over stdio, a process that ends or is silent for 2 s leads to a second process
    /// that begins with `initialize`. Otherwise a server that leaves `server/discover` unanswered is legacy after 10 s. Both
    /// times are at most half of the connect timeout. Over HTTP+SSE the client is legacy from the start.
    Auto,
}

impl Protocol {
    /// Whether the specification defines it for this transport.
    pub fn is_carried_by(self, transport: Transport) -> bool {
        match self {
            Protocol::Exact(version) => transport.carries(version),
            Protocol::Auto => true,
        }
    }

    /// Whether a client can connect with it over this transport. Servers accept 2024-11-05 over streamable HTTP, although
    /// the specification does not define it.
    pub fn can_connect_over(self, transport: Transport) -> bool {
        transport == Transport::Http || self.is_carried_by(transport)
    }

    /// Whether a server that has a handshake cannot be reached.
    pub fn is_newest_only(self) -> bool {
        matches!(self, Protocol::Exact(version) if version.era() == Era::Modern)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protocol::Exact(version) => version.fmt(f),
            Protocol::Auto => f.pad("auto"),
        }
    }
}

/// A text that is neither `auto` nor a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol {0:?}: use `auto`, 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28")]
pub struct UnknownProtocol(pub String);

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Protocol::Auto),
            _ => text.parse().map(Protocol::Exact).map_err(|_| UnknownProtocol(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_reads_back_from_its_text() {
        for protocol in Version::ALL.map(Protocol::Exact).into_iter().chain([Protocol::Auto]) {
            assert_eq!(protocol.to_string().parse(), Ok(protocol));
        }
        assert_eq!("legacy".parse::<Protocol>(), Err(UnknownProtocol("legacy".into())));
    }
}
