//! How frames travel.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Era, Version};

/// How frames travel between a client and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A child process, one frame a line.
    Stdio,
    /// Streamable HTTP, introduced by 2025-03-26 and reshaped by 2026-07-28.
    Http,
    /// HTTP with SSE of 2024-11-05: a GET stream downwards, POSTs upwards.
    Sse,
    /// A WebSocket of subprotocol `mcp`, one frame a text message (a custom transport).
    Ws,
    /// A pipe inside this process with the framing of stdio.
    Memory,
}

impl Transport {
    pub const ALL: [Transport; 5] =
        [Transport::Stdio, Transport::Http, Transport::Sse, Transport::Ws, Transport::Memory];

    /// Those with a URL.
    pub const NETWORK: [Transport; 3] = [Transport::Http, Transport::Sse, Transport::Ws];

    /// Those between two processes.
    pub const EXTERNAL: [Transport; 4] = [Transport::Stdio, Transport::Http, Transport::Sse, Transport::Ws];

    pub const fn as_str(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
            Transport::Sse => "sse",
            Transport::Ws => "ws",
            Transport::Memory => "memory",
        }
    }

    /// The schemes of its URLs, without and with TLS; none if it has no URL.
    pub const fn schemes(self) -> &'static [&'static str] {
        match self {
            Transport::Http | Transport::Sse => &["http", "https"],
            Transport::Ws => &["ws", "wss"],
            Transport::Stdio | Transport::Memory => &[],
        }
    }

    /// Whether the transport exists in this version: HTTP+SSE has no modern form (2026-07-28, Streamable HTTP:
    /// HTTP+SSE Transport), and streamable HTTP does not exist before 2025-03-26.
    pub fn carries(self, version: Version) -> bool {
        match self {
            Transport::Sse => version.era() == Era::Legacy,
            Transport::Http => version > Version::V2024_11_05,
            Transport::Stdio | Transport::Ws | Transport::Memory => true,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The name of an unknown transport.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown transport {0:?}; there are stdio, http, sse, ws and memory")]
pub struct UnknownTransport(pub String);

impl FromStr for Transport {
    type Err = UnknownTransport;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Transport::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| UnknownTransport(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transport_reads_back_from_its_text() {
        for transport in Transport::ALL {
            assert_eq!(transport.as_str().parse(), Ok(transport));
            assert_eq!(serde_json::to_value(transport).expect("a string"), transport.as_str());
        }
        assert_eq!("tcp".parse::<Transport>(), Err(UnknownTransport("tcp".into())));
    }

    #[test]
    fn only_two_combinations_of_transport_and_era_do_not_exist() {
        let missing: Vec<_> = Transport::ALL
            .into_iter()
            .flat_map(|transport| Version::ALL.map(|version| (transport, version)))
            .filter(|(transport, version)| !transport.carries(*version))
            .collect();
        assert_eq!(missing, [(Transport::Http, Version::V2024_11_05), (Transport::Sse, Version::V2026_07_28)]);
    }
}
