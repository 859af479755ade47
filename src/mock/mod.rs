//! Scriptable mock servers: a [`script`] is parsed, an [`engine`] answers with it, [`serve`] is the network, and a
//! [`journal`] records every request. Tests in Rust start with [`MockServer::builder`].

pub mod admin;
pub mod builder;
pub mod engine;
pub mod faults;
pub mod journal;
pub mod matcher;
pub mod script;
pub mod seeded_rng;
pub mod serve;
pub mod state;
pub mod template;
pub mod uri_template;

pub use builder::{Method, MockServerBuilder, Prompt, Resource, ResourceTemplate, Rule, StartError, Tool};
pub use serve::MockServer;
