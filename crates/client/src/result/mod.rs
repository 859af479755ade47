//! What a request leads to: a result, or a failure.

mod failure;
pub(crate) mod malformed;
mod outcome;
mod output_schema;

pub(crate) use failure::FLOOD;
pub use failure::{Failure, Overdue};
pub use malformed::{Malformed, check_item};
pub use outcome::{Content, ToolOutcome};
