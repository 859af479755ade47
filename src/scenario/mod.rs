//! Scenarios: what to do with servers and what to expect, on every transport and in every version of a matrix.
//!
//! A [`Scenario`] is read from YAML. Each [`Cell`] of its matrix runs on its own, with fresh mocks and sessions, and
//! gives observations; what all cells must agree on is judged afterwards from the observations alone.

mod action;
mod answers;
mod asked;
mod awaited;
mod captured;
mod cell;
mod expect;
mod final_answer;
mod live;
mod model;
mod observe;
mod perform;
mod redact;
mod run;
mod server;
mod snapshot;
mod step;
#[cfg(test)]
mod tests;

pub use action::Action;
pub use answers::parse_answers;
pub use expect::Expect;
pub use model::{Matrix, Scenario, ScenarioError, find};
pub use observe::Observation;
pub use redact::{Redaction, Rule};
pub use run::{Event, Options, Plan, Selection, SelectionError, run};
pub use server::ServerSpec;
pub use snapshot::{Mode, Per, Recorded, SnapshotSpec, read as read_snapshot};
pub use step::Step;
