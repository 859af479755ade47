//! OAuth for servers over HTTP (2026-07-28, Authorization; 2025-03-26 to 2025-11-25, Authorization).
//!
//! An [`Authorizer`] gives the requests to one server their token. When the server refuses one, it finds the issuer
//! (RFC 9728, RFC 8414), identifies the client there (registration, Client ID Metadata Document, RFC 7591), has a user
//! authorize it (OAuth 2.1 with PKCE, RFC 8707, RFC 9207), and stores the token, bound to its issuer. Set it as
//! [`ServerParams::authorizer`](super::ServerParams).
//!
//! ```text
//! 401 ─ Challenge ─> resource metadata ─> issuer's metadata ─> Identity ─> Interaction ─> code ─> token ─> TokenStore
//! 403 insufficient_scope ─> the same with the union of the scopes, at most twice for the same ones
//! ```
//!
//! If the server wants it and the issuer supports it, the token is bound to a key (RFC 9449).

mod assertion;
mod authorizer;
mod challenge;
mod code;
mod current_token;
mod deadline_pause;
mod discovery;
mod dpop;
mod error;
mod fetch;
mod flow;
mod grant;
mod identity;
mod interaction;
mod middleware;
mod options;
mod pkce;
mod revocation;
mod scope;
mod secret;
mod ssrf_guard;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod token;

pub use assertion::SigningKey;
pub use authorizer::Authorizer;
pub use challenge::Challenge;
pub use discovery::server_metadata_urls;
pub(crate) use dpop::{PROOF, Prover};
pub use error::AuthError;
pub use grant::{GrantKind, IdentityProvider};
pub use identity::{ClientSecret, Identity, PreregisteredClient};
pub use interaction::{Browser, Interaction};
pub(crate) use middleware::{AuthHeader, AuthMiddleware, RefusedRequest};
pub use options::Options;
pub use rehearse_system::program::open_url;
pub use secret::Secret;
pub(crate) use ssrf_guard::SsrfGuard;
pub use status::{Logout, SavedOptions, TokenStatus};
pub use store::{MemoryStore, TokenStore};
