//! The token that requests to one server go with.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{AuthError, token::Token};
use crate::transport::client::auth::AuthHeader;

/// What requests go with at the moment.
#[derive(Default)]
pub(super) struct CurrentToken {
    /// Counts the attempts to get a token.
    pub(super) generation: u64,
    pub(super) is_loaded: bool,
    pub(super) token: Option<Token>,
    /// Whether it could not be renewed before the server refuses it. It is not tried again until then.
    pub(super) is_stuck: bool,
    pub(super) origin: TokenOrigin,
    /// Whether the server has let anything through with the token.
    pub(super) accepted: Arc<AtomicBool>,
    /// Why the last attempt brought nothing.
    pub(super) failure: Option<AuthError>,
}

/// Where a token came from, from the least to the most certain to be valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TokenOrigin {
    #[default]
    Stored,
    Refreshed,
    Granted,
}

impl CurrentToken {
    /// The pass, if nothing has to be done for it first.
    pub(super) fn ready_header(&self) -> Option<AuthHeader> {
        let is_ready = match &self.token {
            Some(token) => !token.is_expired() || self.is_stuck,
            None => self.is_loaded,
        };
        is_ready.then(|| self.header())
    }

    pub(super) fn header(&self) -> AuthHeader {
        let header = self.token.as_ref().and_then(Token::header);
        AuthHeader::new(header, self.generation, self.accepted.clone())
    }

    /// Whether the token has not expired.
    pub(super) fn is_valid(&self) -> bool {
        self.token.as_ref().is_some_and(|token| !token.is_expired())
    }

    pub(super) fn is_accepted(&self) -> bool {
        self.accepted.load(Ordering::Relaxed)
    }
}
