//! The events of subagents on their way to the parent, over HTTP, as cpe sends them.
//!
//! The parent listens on loopback and puts its address into the variable [`ADDRESS_VARIABLE`] of the processes that it
//! starts. A subagent that finds the variable posts each event there, and so do its own subagents. The parent prints them.

mod emitter;
mod listener;
mod record;
#[cfg(test)]
mod tests;

pub use self::{
    emitter::{EmitterError, EventEmitter},
    listener::EventListener,
    record::{EventKind, EventRecord, Form},
};

/// The variable with the URL of the parent, such as `http://127.0.0.1:4711`.
pub const ADDRESS_VARIABLE: &str = "CPE_SUBAGENT_LOGGING_ADDRESS";

/// The path that events are posted to.
pub const PATH: &str = "/subagent-events";
