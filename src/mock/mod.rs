//! Scriptable mock servers: a [`script`] is parsed, an [`engine`] plays it, a [`journal`] keeps what came.

pub mod admin;
pub mod engine;
pub mod faults;
pub mod journal;
pub mod matcher;
pub mod script;
pub mod serve;
pub mod state;
pub mod template;
pub mod uri_template;
