//! Scriptable mock servers: a [`script`] is parsed, an [`engine`] answers with it, [`serve`] is the network, and a
//! [`journal`] records every request. Tests in Rust start with [`MockServer::builder`].

pub mod admin;
pub mod builder;
pub mod engine;
pub mod faults;
pub mod journal;
pub mod matcher;
pub mod script;
mod seeded_rng;
pub mod serve;
pub mod state;
pub mod template;
mod uri_template;

pub use builder::{Method, MockServerBuilder, Prompt, Resource, ResourceTemplate, Rule, StartError, Tool};
pub use serve::MockServer;

/// Parts of the mock that are public for fuzz targets and benchmarks only.
#[doc(hidden)]
pub mod internals {
    pub use super::{
        engine::internals::*,
        seeded_rng::SeededRng,
        uri_template::{TemplateError, UriTemplate},
    };
}
