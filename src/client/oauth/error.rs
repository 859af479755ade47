//! Why there is no token.

use std::time::Duration;

/// An authorization that did not succeed. No text holds a token, a code or a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The URL of the server, or a part of the options, cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// Nobody answers there.
    #[error("cannot reach {url}: {detail}")]
    Unreachable { url: String, detail: String },
    /// An HTTP status instead of what is needed.
    #[error("{url} answered with HTTP {status}")]
    Http { url: String, status: u16 },
    /// What came is not what belongs there.
    #[error("{url} did not answer with {what}")]
    Malformed { url: String, what: &'static str },
    /// Plain HTTP, and not between programs of one machine (OAuth 2.1, section 1.5).
    #[error("{url} is not used because it is not protected by https")]
    Insecure { url: String },
    /// A server would have us ask what is nearer to us than it is itself (2026-07-28, Security Best Practices, Server-Side
    /// Request Forgery).
    #[error("{url} is not used because it is inside this machine or network and the server is not")]
    Internal { url: String },
    /// The server names others than the one authorization server that is wanted.
    #[error("the server names {named}, and not the authorization server {wanted}")]
    IssuerNotOffered { wanted: String, named: String },
    /// The metadata are those of another resource (RFC 9728, section 3.3).
    #[error("the metadata of the server are those of {resource:?}, and it is {server}")]
    Resource { resource: String, server: String },
    /// The metadata of the resource name nobody who issues tokens (RFC 9728, section 2; 2026-07-28, Authorization Server
    /// Location).
    #[error("{url} names no authorization server")]
    NoAuthorizationServer { url: String },
    /// No metadata where they have to be (RFC 8414, section 3).
    #[error("the authorization server {issuer} has no metadata")]
    NoMetadata { issuer: String },
    /// The metadata are those of another authorization server (RFC 8414, section 3.3).
    #[error("the metadata of the authorization server {expected:?} say that they are of {found:?}")]
    Issuer { expected: String, found: String },
    /// The authorization server does not say that it knows PKCE with S256 (2026-07-28, Authorization Code Protection).
    #[error("the authorization server {issuer} does not support PKCE with S256")]
    NoPkce { issuer: String },
    /// The authorization server lacks an endpoint that the grant needs.
    #[error("the authorization server {issuer} has no {endpoint}")]
    NoEndpoint { issuer: String, endpoint: &'static str },
    /// The client is unknown to the authorization server, and cannot register there.
    #[error("the authorization server {issuer} does not register clients; use a client id that it knows")]
    NoIdentity { issuer: String },
    /// The client is registered with another authorization server (2026-07-28, Authorization Server Binding).
    #[error("the client id belongs to the authorization server {registered}, but the server now names {issuer}")]
    IssuerMismatch { registered: String, issuer: String },
    /// Nobody but the server says that the client's secret is for this authorization server, which is elsewhere
    /// (2026-07-28, Authorization Server Binding).
    #[error("the server names {issuer}, which is on another host, and no setting allows the client secret for it")]
    UntrustedIssuer { issuer: String },
    /// The registration was refused (RFC 7591, section 3.2.2).
    #[error("the authorization server refused to register the client: {0}")]
    Registration(String),
    /// The authorization response does not belong to the request (2026-07-28, Authorization Response Validation).
    #[error("the authorization response is not accepted: {0}")]
    Response(String),
    /// The authorization server, or the person, said no (RFC 6749, section 4.1.2.1).
    #[error("the authorization was refused: {0}")]
    Refused(String),
    /// The token endpoint said no (RFC 6749, section 5.2).
    #[error("the authorization server issues no token: {}{}", .error, .description.as_ref().map(|it| format!(": {it}")).unwrap_or_default())]
    Token { status: u16, error: String, description: Option<String> },
    /// The revocation endpoint said no (RFC 7009, section 2.2.1).
    #[error("the authorization server revokes no token: {0}")]
    Revocation(String),
    /// The client cannot show who it is.
    #[error("the variable {variable} does not hold the client's secret")]
    NoSecret { variable: String },
    /// A person would have to be asked.
    #[error("a user must authorize it in a browser")]
    InteractionRequired,
    /// The same, for the server takes the token no more that there is, and there will be no other without.
    #[error("the server refuses the stored token{}; a user must authorize it again in a browser", and_says(.said))]
    ReauthorizationRequired { said: Option<String> },
    /// Nobody wants the answer of the person any more that was waited for.
    #[error("the authorization was cancelled")]
    Cancelled,
    /// The person has not come back.
    #[error("no user authorized it within {0:?}")]
    TimedOut(Duration),
    /// The server refuses a token that was issued for it a moment ago, so that another one would not help.
    #[error("the server refuses the token that {issuer} has just issued for it{}", and_says(.said))]
    Rejected { issuer: String, said: Option<String> },
    /// More scopes were asked for again and again, and the server is never content.
    #[error("the server still says that the token lacks {}", .0.join(" "))]
    Scopes(Vec<String>),
    /// The tokens cannot be read or kept.
    #[error("{0}")]
    Store(String),
}

impl AuthError {
    /// Whether there will be a token as soon as somebody authorizes the client.
    pub fn needs_user(&self) -> bool {
        matches!(self, AuthError::InteractionRequired | AuthError::ReauthorizationRequired { .. })
    }

    /// Whether it may be otherwise in a while, and says nothing of what was asked with (RFC 6749, section 5.2; RFC 9110,
    /// section 15.6; RFC 6585, section 4).
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            AuthError::Token { status, error, .. } => {
                let codes = ["temporarily_unavailable", "server_error", "slow_down"];
                *status >= 500 || *status == 429 || codes.contains(&error.as_str())
            }
            _ => true,
        }
    }

    /// Whether it means that what was asked with is not good any more (RFC 6749, section 5.2).
    pub(super) fn is_permanent(&self) -> bool {
        let is_dead_grant = |error: &str| matches!(error, "invalid_grant" | "invalid_client");
        !self.is_temporary() && matches!(self, AuthError::Token { error, .. } if is_dead_grant(error))
    }
}

fn and_says(said: &Option<String>) -> String {
    said.as_ref().map(|said| format!(", and says {said:?}")).unwrap_or_default()
}

/// What somebody else says, as it may be shown: on one line, and of bearable length.
pub(super) fn quoted(text: &str) -> String {
    const LONGEST: usize = 300;
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect()
}
