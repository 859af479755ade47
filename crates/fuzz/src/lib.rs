//! Finds inputs that break a server.
//!
//! [`fuzz`] gives each [`Target`] (a tool that may be called, a prompt, a resource template, the resources, completions, a
//! list) inputs of four kinds: valid ones at the borders of its schema, ones that break one rule of it, texts that
//! programs often mishandle, and random ones. An oracle says of each outcome whether something is wrong. What is wrong in
//! the same way with the same target is one bug; its input is made as small as it can be, and confirmed on a new
//! connection. A target of which every valid input was refused is not tested, never passed.

mod audit;
mod effects;
mod error;
mod hostile;
mod input;
mod options;
mod oracle;
mod private;
mod runner;
mod scenario;
mod sequence;
mod server;
mod shrink;
mod survey;
mod target;
mod trial;

#[cfg(test)]
mod tests;

pub use error::FuzzError;
pub use input::{Inputs, inputs};
pub use options::{FuzzEvent, FuzzOptions};
pub use runner::{FuzzRun, fuzz, plan};
pub use scenario::scenario;
pub use target::Target;
