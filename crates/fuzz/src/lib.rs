//! Finds inputs that break the tools of a server.
//!
//! [`fuzz`] calls each tool that may be called with inputs of four kinds: valid ones at the borders of its schema, ones that
//! break one rule of it, texts that programs often mishandle, and random ones. An oracle says of each outcome
//! whether something is wrong. What is wrong in the same way with the same tool is one bug; its input is made as small as
//! it can be, and confirmed on a new connection. A tool of which every valid input was refused is not tested, never passed.

mod hostile;
mod input;
mod oracle;
mod runner;
mod scenario;
mod shrink;

pub use input::{Inputs, inputs};
pub use runner::{FuzzEvent, FuzzOptions, FuzzRun, PlannedTool, fuzz, plan};
pub use scenario::scenario;
