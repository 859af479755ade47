//! Why messages are refused.

use serde::Serialize;

/// Why a message is refused. A correct client runs into some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Refusal {
    /// A frame, a parameter or an HTTP body that is not as the protocol demands.
    Malformed,
    /// A missing or wrong HTTP header.
    Header,
    /// A session that was not opened, or belongs to another client.
    Session,
    /// A `requestState` that is missing or not from this request.
    State,
    /// A version or an era that the mock does not offer: the client tries another one.
    Negotiation,
    /// A missing or insufficient token: the client gets a better one.
    Challenge,
    /// A session, a stream, a task or a state that the mock no longer has: the client starts again.
    Expired,
    /// An endpoint or a capability that is optional.
    Optional,
    /// A limit of the mock.
    Limit,
    /// Arguments that the schema of the script does not allow: a model may have chosen them.
    Arguments,
}

impl Refusal {
    /// Whether no correct client is refused for this, so that the verification fails.
    pub fn is_violation(self) -> bool {
        match self {
            Refusal::Malformed | Refusal::Header | Refusal::Session | Refusal::State => true,
            Refusal::Negotiation
            | Refusal::Challenge
            | Refusal::Expired
            | Refusal::Optional
            | Refusal::Limit
            | Refusal::Arguments => false,
        }
    }
}
