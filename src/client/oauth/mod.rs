//! OAuth for servers over HTTP (2026-07-28, Authorization).

mod assertion;
mod challenge;
mod code;
mod discovery;
mod error;
mod identity;
mod pkce;
mod scope;
mod secret;
mod token;

pub use assertion::SigningKey;
pub use challenge::Challenge;
pub use error::AuthError;
pub use identity::{ClientSecret, Identity, Registered};
pub use secret::Secret;
