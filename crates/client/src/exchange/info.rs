//! What client and server say about themselves.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use rehearse_protocol::{Era, List, Version};

/// The name of the client for servers (2026-07-28, `Implementation`). As JSON, it is the member `clientInfo`.
///
/// ```
/// use rehearse_client::ClientInfo;
///
/// let named: ClientInfo = serde_json::from_str(r#"{"name":"cpe","title":"CPE"}"#)?;
/// assert_eq!((&*named.name, &named.version), ("cpe", &ClientInfo::default().version));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientInfo {
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The version of the program.
    pub version: String,
}

impl Default for ClientInfo {
    fn default() -> Self {
        ClientInfo { name: "rehearse".to_owned(), title: None, version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

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

    pub(crate) fn parse(text: &str) -> PeerVersion {
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
    /// The lists that the server declares.
    pub fn lists(&self) -> impl Iterator<Item = List> {
        List::ALL.into_iter().filter(|list| self.declares(list.capability()))
    }

    /// Whether the server declares a capability.
    pub fn declares(&self, capability: &str) -> bool {
        let capabilities = serde_json::from_str::<serde_json::Value>(self.capabilities.get()).unwrap_or_default();
        capabilities.get(capability).is_some_and(|value| !value.is_null())
    }

    /// Reads the result of a handshake, in this version.
    ///
    /// # Errors
    /// Names the member that is wrong.
    pub(crate) fn read(result: &RawValue, version: PeerVersion) -> Result<PeerInfo, serde_json::Error> {
        let members: Members = serde_json::from_str(result.get())?;
        Ok(PeerInfo {
            version,
            capabilities: members.capabilities.map_or_else(|| RawValue::from_string("{}".to_owned()), Ok)?,
            server_info: members.server_info.or(members.meta.and_then(|meta| meta.server_info)),
            instructions: members.instructions,
            raw: result.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, version: PeerVersion) -> PeerInfo {
        PeerInfo::read(&RawValue::from_string(text.to_owned()).expect("JSON"), version).expect("a handshake")
    }

    #[test]
    fn a_handshake_is_read_byte_for_byte() {
        let version = PeerVersion::parse("1999-01-01");
        let text = r#"{"capabilities":{"x": 1.0 },"serverInfo":{"name":"s","x":2}}"#;
        let info = read(text, version);
        assert_eq!((info.version.known(), info.version.to_string()), (None, "1999-01-01".to_owned()));
        assert_eq!(info.capabilities.get(), r#"{"x": 1.0 }"#);
        assert_eq!(info.server_info.expect("an identity").get(), r#"{"name":"s","x":2}"#);
        assert_eq!(info.raw.get(), text);
    }

    #[test]
    fn a_discovery_has_its_identity_in_meta() {
        let text = r#"{"instructions":"i","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#;
        let info = read(text, PeerVersion::Known(Version::V2026_07_28));
        assert_eq!((info.capabilities.get(), info.instructions.as_deref()), ("{}", Some("i")));
        assert_eq!(info.server_info.expect("an identity").get(), r#"{"name":"s"}"#);
    }
}
