//! Scriptable mock servers.

pub mod matcher;
pub mod script;
pub mod template;
