//! Scriptable mock servers: a [`script`] is parsed, an [`engine`] plays it, a [`journal`] keeps what came. Tests in Rust begin
//! with [`MockServer::builder`].

pub mod admin;
pub mod builder;
pub mod draws;
pub mod engine;
pub mod faults;
pub mod journal;
pub mod matcher;
pub mod script;
pub mod serve;
pub mod state;
pub mod template;
pub mod uri_template;

pub use builder::{Method, Prompt, Resource, ResourceTemplate, Rule, StartError, Tool};
pub use serve::MockServer;
