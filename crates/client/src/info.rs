//! What a server reports about itself.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::recorder::Handshake;
use rehearse_protocol::{Era, Version};

/// The protocol version that a session speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerVersion {
    /// A released version.
    Known(Version),
    /// The server answered `initialize` with a version that has never been released.
    Unknown(String),
}

/// What a server reported about itself in its answer to `initialize` or `server/discover`.
#[derive(Clone, Debug)]
pub struct PeerInfo {
    /// The version of the session.
    pub version: PeerVersion,
    /// `{}` if the server left them out.
    pub capabilities: Box<RawValue>,
    /// The name and version of the server.
    pub server_info: Option<Box<RawValue>>,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// The whole result.
    pub raw: Box<RawValue>,
}

impl PeerVersion {
    /// The version, if it has been released.
    pub fn known(&self) -> Option<Version> {
        match self {
            PeerVersion::Known(version) => Some(*version),
            PeerVersion::Unknown(_) => None,
        }
    }

    /// The era of the version. An unknown one is legacy, because only `initialize` can lead to one.
    pub fn era(&self) -> Era {
        self.known().map_or(Era::Legacy, Version::era)
    }

    fn parse(text: &str) -> PeerVersion {
        text.parse().map_or_else(|_| PeerVersion::Unknown(text.to_owned()), PeerVersion::Known)
    }
}

impl fmt::Display for PeerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerVersion::Known(version) => version.fmt(f),
            PeerVersion::Unknown(text) => f.pad(text),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members {
    protocol_version: Option<String>,
    capabilities: Option<Box<RawValue>>,
    server_info: Option<Box<RawValue>>,
    instructions: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Option<Box<RawValue>>,
}

impl PeerInfo {
    /// Whether the server declares a capability.
    pub fn declares(&self, capability: &str) -> bool {
        let capabilities = serde_json::from_str::<serde_json::Value>(self.capabilities.get()).unwrap_or_default();
        capabilities.get(capability).is_some_and(|value| !value.is_null())
    }

    /// Reads the result of a handshake. `selected` is the version that the client chose, for results without one, such
    /// as that of `server/discover`.
    ///
    /// # Errors
    /// Names the member that is missing or wrong.
    pub(super) fn read(handshake: Handshake, selected: &str) -> Result<PeerInfo, String> {
        let (_, raw) = handshake.result.ok_or("no answer to the handshake")?;
        let members: Members = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
        Ok(PeerInfo {
            version: PeerVersion::parse(members.protocol_version.as_deref().unwrap_or(selected)),
            capabilities: members
                .capabilities
                .map_or_else(|| RawValue::from_string("{}".to_owned()), Ok)
                .map_err(|error| error.to_string())?,
            server_info: members.server_info.or(members.meta.and_then(|meta| meta.server_info)),
            instructions: members.instructions,
            raw,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use rehearse_protocol::{Direction, Frame};

    fn handshake(frames: &[(Direction, &'static str)]) -> Handshake {
        let mut handshake = Handshake::default();
        for (direction, text) in frames {
            handshake.observe(&Frame { direction: *direction, at: Duration::ZERO, bytes: text.as_bytes().into() });
        }
        handshake
    }

    const UP: Direction = Direction::ClientToServer;
    const DOWN: Direction = Direction::ServerToClient;

    #[test]
    fn a_fallback_handshake_is_read_from_its_second_answer_byte_for_byte() {
        let info = PeerInfo::read(
            handshake(&[
                (UP, r#"{"jsonrpc":"2.0","id":0,"method":"server/discover"}"#),
                (DOWN, r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"m"}}"#),
                (UP, r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#),
                (
                    DOWN,
                    r#"{"jsonrpc":"2.0","id":"1","result":{"protocolVersion":"1999-01-01",
                    "capabilities":{"x": 1.0 },"serverInfo":{"name":"s","x":2}}}"#,
                ),
            ]),
            "2025-11-25",
        );
        let info = info.expect("a handshake");
        assert_eq!(info.version, PeerVersion::Unknown("1999-01-01".into()));
        assert_eq!(info.capabilities.get(), r#"{"x": 1.0 }"#);
        assert_eq!(info.server_info.expect("an identity").get(), r#"{"name":"s","x":2}"#);
    }

    #[test]
    fn a_discovery_has_the_selected_version_and_its_identity_in_meta() {
        let info = PeerInfo::read(
            handshake(&[
                (UP, r#"{"jsonrpc":"2.0","id":0,"method":"server/discover"}"#),
                (
                    DOWN,
                    r#"{"jsonrpc":"2.0","id":0,"result":{"supportedVersions":["2026-07-28"],"instructions":"i",
                    "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}}"#,
                ),
            ]),
            "2026-07-28",
        );
        let info = info.expect("a handshake");
        assert_eq!(info.version.known(), Some(Version::V2026_07_28));
        assert_eq!((info.capabilities.get(), info.instructions.as_deref()), ("{}", Some("i")));
        assert_eq!(info.server_info.expect("an identity").get(), r#"{"name":"s"}"#);
    }

    #[test]
    fn a_trace_without_a_handshake_is_an_error() {
        assert!(PeerInfo::read(Handshake::default(), "2025-11-25").is_err());
    }
}
