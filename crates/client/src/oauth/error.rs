//! Why there is no token.

use std::time::Duration;

/// A failed authorization. No text contains a token, a code or a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The URL of the server, or a part of the options, cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// The URL cannot be reached.
    #[error("cannot reach {url}: {detail}")]
    Unreachable {
        /// The URL.
        url: String,
        /// The reason.
        detail: String,
    },
    /// An HTTP error.
    #[error("{url} answered with HTTP {status}")]
    Http {
        /// The URL.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// A response of the wrong form.
    #[error("{url} did not answer with {what}")]
    Malformed {
        /// The URL.
        url: String,
        /// The expected content.
        what: &'static str,
    },
    /// Plain HTTP other than between programs on one machine (OAuth 2.1, section 1.5).
    #[error("{url} is not used because it is not protected by https")]
    Insecure {
        /// The URL.
        url: String,
    },
    /// A server named a URL inside this machine or network, and is outside of it (2026-07-28, Security Best Practices,
    /// Server-Side Request Forgery).
    #[error("{url} is not used because it is inside this machine or network and the server is not")]
    Internal {
        /// The URL.
        url: String,
    },
    /// The server does not name the authorization server that the options require.
    #[error("the server names {named}, and not the authorization server {wanted}")]
    IssuerNotOffered {
        /// The required issuer.
        wanted: String,
        /// The issuers that the server names.
        named: String,
    },
    /// The metadata are those of another resource (RFC 9728, section 3.3).
    #[error("the metadata of the server are those of {resource:?}, and it is {server}")]
    Resource {
        /// The resource in the metadata.
        resource: String,
        /// The URL of the server.
        server: String,
    },
    /// The resource metadata name no authorization server (RFC 9728, section 2; 2026-07-28, Authorization Server
    /// Location).
    #[error("{url} does not name an authorization server")]
    NoAuthorizationServer {
        /// The URL of the resource metadata.
        url: String,
    },
    /// The authorization server has no metadata (RFC 8414, section 3).
    #[error("the authorization server {issuer} has no metadata")]
    NoMetadata {
        /// The issuer.
        issuer: String,
    },
    /// The metadata are those of another authorization server (RFC 8414, section 3.3).
    #[error("the metadata of the authorization server {expected:?} say that they are of {found:?}")]
    Issuer {
        /// The expected issuer.
        expected: String,
        /// The issuer in the metadata.
        found: String,
    },
    /// The metadata do not promise PKCE with S256 (2026-07-28, Authorization Code Protection).
    #[error("the authorization server {issuer} does not support PKCE with S256")]
    NoPkce {
        /// The issuer.
        issuer: String,
    },
    /// The authorization server lacks an endpoint that the grant needs.
    #[error("the authorization server {issuer} has no {endpoint}")]
    NoEndpoint {
        /// The issuer.
        issuer: String,
        /// The name of the endpoint.
        endpoint: &'static str,
    },
    /// The client is unknown to the authorization server, and cannot register there.
    #[error("the authorization server {issuer} does not register clients; use a client id that it knows")]
    NoIdentity {
        /// The issuer.
        issuer: String,
    },
    /// The client is registered with another authorization server (2026-07-28, Authorization Server Binding).
    #[error("the client id belongs to the authorization server {registered}, but the server now names {issuer}")]
    IssuerMismatch {
        /// The issuer of the registration.
        registered: String,
        /// The issuer that the server names.
        issuer: String,
    },
    /// Only the server says that the client secret is for this issuer, which is on another host (2026-07-28,
    /// Authorization Server Binding).
    #[error("the server names {issuer}, which is on another host, and no setting allows the client secret for it")]
    UntrustedIssuer {
        /// The issuer.
        issuer: String,
    },
    /// The registration was refused (RFC 7591, section 3.2.2).
    #[error("the authorization server refused to register the client: {0}")]
    Registration(String),
    /// The authorization response does not belong to the request (2026-07-28, Authorization Response Validation).
    #[error("the authorization response is not accepted: {0}")]
    Response(String),
    /// The authorization server, or the user, refused (RFC 6749, section 4.1.2.1).
    #[error("the authorization was refused: {0}")]
    Refused(String),
    /// The token endpoint refused (RFC 6749, section 5.2).
    #[error("the authorization server did not issue a token: {}{}", .error, .description.as_ref().map(|it| format!(": {it}")).unwrap_or_default())]
    Token {
        /// The HTTP status.
        status: u16,
        /// The error code.
        error: String,
        /// The description of the error.
        description: Option<String>,
    },
    /// The revocation endpoint refused (RFC 7009, section 2.2.1).
    #[error("the authorization server did not revoke the token: {0}")]
    Revocation(String),
    /// The client secret is missing.
    #[error("the variable {variable} does not hold the client's secret")]
    NoSecret {
        /// The name of the environment variable.
        variable: String,
    },
    /// A user has to authorize the client.
    #[error("a user must authorize it in a browser")]
    InteractionRequired,
    /// The server rejects the stored token, and a user has to authorize the client again.
    #[error("the server refuses the stored token{}; a user must authorize it again in a browser", and_says(.said))]
    ReauthorizationRequired {
        /// The error text of the server.
        said: Option<String>,
    },
    /// The wait for the user was cancelled.
    #[error("the authorization was cancelled")]
    Cancelled,
    /// The user did not answer in time.
    #[error("no user authorized it within {0:?}")]
    TimedOut(Duration),
    /// The server rejects a token that was just issued for it, so that another one would not help.
    #[error("the server refuses the token that {issuer} has just issued for it{}", and_says(.said))]
    Rejected {
        /// The issuer.
        issuer: String,
        /// The error text of the server.
        said: Option<String>,
    },
    /// The server rejects one token after another.
    #[error("the server refuses one authorization after another")]
    Attempts,
    /// The server demands the same scopes again after they were granted.
    #[error("the server still says that the token lacks {}", .0.join(" "))]
    Scopes(Vec<String>),
    /// The tokens cannot be read or stored.
    #[error("{0}")]
    Store(String),
}

impl AuthError {
    /// Whether an authorization by a user would fix it.
    pub fn needs_user(&self) -> bool {
        matches!(self, AuthError::InteractionRequired | AuthError::ReauthorizationRequired { .. })
    }

    /// Whether the error may be temporary, and is not about the request (RFC 6749, section 5.2; RFC 9110, section 15.6;
    /// RFC 6585, section 4).
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            AuthError::Token { status, error, .. } => {
                let codes = ["temporarily_unavailable", "server_error", "slow_down"];
                *status >= 500 || *status == 429 || codes.contains(&error.as_str())
            }
            _ => true,
        }
    }

    /// Whether the grant or the client is no longer valid (RFC 6749, section 5.2).
    pub(super) fn is_permanent(&self) -> bool {
        let is_dead_grant = |error: &str| matches!(error, "invalid_grant" | "invalid_client");
        !self.is_temporary() && matches!(self, AuthError::Token { error, .. } if is_dead_grant(error))
    }
}

fn and_says(said: &Option<String>) -> String {
    said.as_ref().map(|said| format!(", and says {said:?}")).unwrap_or_default()
}

/// Puts a server's text on one line and truncates it, for error messages.
pub(super) fn quoted(text: &str) -> String {
    const LONGEST: usize = 300;
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect()
}
