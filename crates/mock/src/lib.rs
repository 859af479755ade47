//! Scriptable mock servers: an [`engine`] answers requests with a [`script`], [`serve`] is the network, and a
//! [`journal`] records every request. Tests in Rust start with [`MockServer::builder`].

#![warn(missing_docs)]

pub mod admin;
pub mod builder;
#[cfg(feature = "check")]
mod check;
pub mod engine;
pub mod faults;
mod handler;
pub mod journal;
mod log_level;
#[cfg(feature = "check")]
pub mod recording;
pub mod script;
pub mod serve;
#[cfg(test)]
mod tests;
mod violation;

pub use builder::{Method, MockServerBuilder, Prompt, Resource, ResourceTemplate, Rule, StartError, Tool};
pub use handler::{Handler, HandlerCall};
pub use log_level::LogLevel;
pub use serve::MockServer;
pub use violation::ProtocolViolation;

/// Parts of the mock that are public for fuzz targets and benchmarks only.
#[doc(hidden)]
#[cfg(any(test, feature = "internals"))]
pub mod internals {
    pub use super::engine::internals::*;
    pub use rehearse_document::seeded_rng::SeededRng;
}
