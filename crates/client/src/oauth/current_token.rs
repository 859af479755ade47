//! The token that requests to one server go with.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{AuthError, Prover, dpop::LastNonce, middleware::AuthHeader, token::Token};

/// The token in use.
#[derive(Default)]
pub(super) struct CurrentToken {
    /// Counts the attempts to get a token.
    pub(super) generation: u64,
    pub(super) is_loaded: bool,
    pub(super) token: Option<Token>,
    /// Whether the renewal failed. It is not tried again until the server refuses the token.
    pub(super) is_stuck: bool,
    pub(super) origin: TokenOrigin,
    /// Whether the server has accepted a request with the token.
    pub(super) accepted: Arc<AtomicBool>,
    /// The last nonce of the server.
    pub(super) nonce: LastNonce,
    /// The error of the last attempt.
    pub(super) failure: Option<AuthError>,
}

/// The origin of a token, in order of its reliability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TokenOrigin {
    #[default]
    Stored,
    Refreshed,
    Granted,
}

impl CurrentToken {
    /// The header, if the token needs no renewal.
    pub(super) fn ready_header(&self) -> Option<AuthHeader> {
        let is_ready = match &self.token {
            Some(token) => !token.is_expired() || self.is_stuck,
            None => self.is_loaded,
        };
        is_ready.then(|| self.header())
    }

    pub(super) fn header(&self) -> AuthHeader {
        let header = self.token.as_ref().and_then(Token::header);
        let prover = self
            .token
            .as_ref()
            .and_then(|token| Prover::new(token.key.as_ref()?, &token.access, self.nonce.clone()).map(Arc::new));
        AuthHeader::new(header, prover, self.generation, self.accepted.clone())
    }

    /// Whether the token has not expired.
    pub(super) fn is_valid(&self) -> bool {
        self.token.as_ref().is_some_and(|token| !token.is_expired())
    }

    pub(super) fn is_accepted(&self) -> bool {
        self.accepted.load(Ordering::Relaxed)
    }
}
