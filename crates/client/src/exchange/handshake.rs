//! The handshake as a value: which request opens a session, and what follows from its answer.

use std::{borrow::Borrow, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{ConnectError, Exchange, OutgoingRequest, PeerInfo, PeerVersion};
use rehearse_protocol::{
    Era, Protocol, RpcError, Version,
    message::{HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION},
};

/// The handshake of one connection: `server/discover` in 2026-07-28, `initialize` before, and with [`Protocol::Auto`] the
/// second after the first.
///
/// Nothing that an older server may say to `server/discover` is an error: whatever is not its result, or an error that only
/// 2026-07-28 has, leads to `initialize` (2026-07-28, Versioning: Backward Compatibility, "Anything else identifies a legacy
/// server").
#[derive(Debug)]
pub struct Handshake {
    may_fall_back: bool,
    /// Whether the request without an answer so far is `server/discover`.
    is_discovering: bool,
    /// Whether the same version was asked for once more.
    is_repeated: bool,
    /// What the server answered to `server/discover`, once `initialize` has followed.
    refusal: Option<String>,
    /// The answer to `server/discover` that came when `initialize` had been sent.
    late: Option<Box<RawValue>>,
}

/// What follows from an answer.
#[derive(Debug)]
pub enum HandshakeStep {
    /// The next request of the handshake is to be sent.
    Request(OutgoingRequest),
    /// The session is open. A server with a handshake is then sent `notifications/initialized`.
    Opened(Box<PeerInfo>),
    /// There is no session.
    Failed(HandshakeError),
}

/// Why a handshake leads to no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The server answered with an error.
    #[error(transparent)]
    Refused(RpcError),
    /// The server has none of the versions that the client speaks.
    #[error("the server has no version of the client")]
    Version {
        /// The versions of the server.
        supported: Vec<String>,
    },
    /// The answer cannot be read, or does not belong to the request.
    #[error("{0}")]
    Malformed(String),
    /// There is no answer in JSON-RPC, but an HTTP status, another body, or an end.
    #[error("{0}")]
    Unanswered(Box<ConnectError>),
    /// There is no answer so far.
    #[error("no answer within {0:?}")]
    Silent(Duration),
    /// The server did not look at the request: it wants an authorization first, or the request cannot be sent.
    #[error("{0}")]
    Unasked(Box<ConnectError>),
}

/// What a client needs of the result of `server/discover`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    supported_versions: Vec<String>,
    #[serde(rename = "capabilities")]
    _capabilities: Map<String, Value>,
}

/// What a client needs of the result of `initialize`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: String,
    #[serde(rename = "capabilities")]
    _capabilities: Map<String, Value>,
    #[serde(rename = "serverInfo")]
    _server_info: Implementation,
}

#[derive(Deserialize)]
struct Implementation {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "version")]
    _version: String,
}

impl Handshake {
    /// The handshake of a protocol, and its first request. `is_legacy` is for a transport that only older versions know.
    pub fn begin(protocol: Protocol, is_legacy: bool, exchange: &mut Exchange) -> (Handshake, OutgoingRequest) {
        let version = match protocol {
            Protocol::Exact(version) => version,
            Protocol::Auto if is_legacy => Version::LATEST_LEGACY,
            Protocol::Auto => Version::LATEST,
        };
        let is_discovering = version.era() == Era::Modern;
        let may_fall_back = is_discovering && protocol == Protocol::Auto;
        exchange.set_version(PeerVersion::Known(version));
        let handshake = Handshake { may_fall_back, is_discovering, is_repeated: false, refusal: None, late: None };
        let request = handshake.request(exchange);
        (handshake, request)
    }

    /// The method of the last request; that of the one which opened the session, once it is open.
    pub fn method(&self) -> &'static str {
        if self.is_discovering { "server/discover" } else { "initialize" }
    }

    /// Whether `initialize` follows where `server/discover` fails.
    pub fn may_fall_back(&self) -> bool {
        self.may_fall_back && self.is_discovering
    }

    fn request(&self, exchange: &mut Exchange) -> OutgoingRequest {
        match self.is_discovering {
            true => exchange.request("server/discover", None, None),
            false => exchange.initialize(),
        }
    }

    /// What the server answered to `server/discover`, if `initialize` has followed.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    fn fall_back(&mut self, why: &HandshakeError, exchange: &mut Exchange) -> HandshakeStep {
        self.is_discovering = false;
        self.refusal = Some(why.to_string());
        exchange.set_version(PeerVersion::Known(Version::LATEST_LEGACY));
        HandshakeStep::Request(self.request(exchange))
    }

    /// Takes the result of `server/discover` that comes after the client has gone on to `initialize`: it counts if the
    /// server then refuses `initialize`.
    pub fn receive_late(&mut self, result: &RawValue) {
        self.late = Some(result.to_owned());
    }

    /// What follows from the answer to the last request.
    pub fn receive(
        &mut self,
        answer: Result<impl Borrow<RawValue>, HandshakeError>,
        exchange: &mut Exchange,
    ) -> HandshakeStep {
        let answer = answer.and_then(|result| match self.is_discovering {
            true => discovered(result.borrow(), exchange),
            false => initialized(result.borrow(), exchange),
        });
        match answer {
            Ok(info) => HandshakeStep::Opened(Box::new(info)),
            Err(HandshakeError::Refused(error)) if self.is_discovering && error.code == UNSUPPORTED_VERSION => {
                self.negotiate(&error, exchange)
            }
            Err(error) if self.may_fall_back() && !is_modern(&error) => self.fall_back(&error, exchange),
            Err(error) => {
                let is_refused = matches!(error, HandshakeError::Refused(_)) && !is_modern(&error);
                let late = self.late.take().filter(|_| is_refused);
                match late.and_then(|late| discovered(&late, exchange).ok()) {
                    Some(info) => {
                        self.is_discovering = true;
                        HandshakeStep::Opened(Box::new(info))
                    }
                    None => HandshakeStep::Failed(error),
                }
            }
        }
    }

    /// The error lists the versions of the server (2026-07-28, Versioning: Protocol Version Negotiation).
    fn negotiate(&mut self, error: &RpcError, exchange: &mut Exchange) -> HandshakeStep {
        #[derive(Deserialize)]
        struct Versions {
            supported: Vec<String>,
        }
        let versions = error.data.as_ref().and_then(|data| serde_json::from_str::<Versions>(data.get()).ok());
        let supported = versions.map(|versions| versions.supported).unwrap_or_default();
        let has_ours = supported.iter().any(|version| *version == exchange.version().to_string());
        if has_ours && !std::mem::replace(&mut self.is_repeated, true) {
            return HandshakeStep::Request(self.request(exchange));
        }
        let error = HandshakeError::Version { supported };
        match self.may_fall_back() && !is_modern(&error) {
            true => self.fall_back(&error, exchange),
            false => HandshakeStep::Failed(error),
        }
    }
}

fn discovered(result: &RawValue, exchange: &mut Exchange) -> Result<PeerInfo, HandshakeError> {
    let found: Discovered = serde_json::from_str(result.get()).map_err(|error| malformed("server/discover", &error))?;
    if !found.supported_versions.iter().any(|version| version == Version::LATEST.as_str()) {
        return Err(HandshakeError::Version { supported: found.supported_versions });
    }
    exchange.set_version(PeerVersion::Known(Version::LATEST));
    PeerInfo::read(result, exchange.version().clone()).map_err(|error| malformed("server/discover", &error))
}

fn initialized(result: &RawValue, exchange: &mut Exchange) -> Result<PeerInfo, HandshakeError> {
    let found: Initialized = serde_json::from_str(result.get()).map_err(|error| malformed("initialize", &error))?;
    exchange.set_version(PeerVersion::parse(&found.protocol_version));
    PeerInfo::read(result, exchange.version().clone()).map_err(|error| malformed("initialize", &error))
}

fn malformed(method: &str, error: &serde_json::Error) -> HandshakeError {
    HandshakeError::Malformed(format!("the result of `{method}`: {error}"))
}

/// Whether only a modern server is the cause, which refuses the client and not the method, or the server is not the cause.
fn is_modern(error: &HandshakeError) -> bool {
    match error {
        HandshakeError::Refused(error) => matches!(error.code, MISSING_CAPABILITY | HEADER_MISMATCH),
        // One that has an older version as well is spoken to in that one.
        HandshakeError::Version { supported } => {
            !supported.iter().any(|it| it.parse().is_ok_and(|it: Version| it.era() == Era::Legacy))
        }
        HandshakeError::Unasked(_) => true,
        HandshakeError::Malformed(_) | HandshakeError::Unanswered(_) | HandshakeError::Silent(_) => false,
    }
}
