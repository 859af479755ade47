//! Options of an authorizer.

use super::{GrantKind, Identity, Interaction, TokenStore};

/// How to get tokens.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who the client is.
    pub identity: Identity,
    /// How it gets tokens.
    pub grant: GrantKind,
    /// The scopes to request; by default those that the server names (2026-07-28, Scope Selection Strategy).
    pub scopes: Option<Vec<String>>,
    /// The URL of the metadata of the authorization server, instead of what the server names.
    pub metadata_url: Option<String>,
    /// The only authorization server to use. Like the metadata URL, it is exempt from the SSRF guard.
    pub issuer: Option<String>,
    /// How a user is asked.
    pub interaction: Interaction,
    /// Where tokens are stored.
    pub store: TokenStore,
}

impl Default for Options {
    /// Acts for a user, without interaction or storage.
    fn default() -> Options {
        Options {
            identity: Identity::default(),
            grant: GrantKind::AuthorizationCode,
            scopes: None,
            metadata_url: None,
            issuer: None,
            interaction: Interaction::None,
            store: TokenStore::memory(),
        }
    }
}
