//! What is observed of a step, and the snapshots that it is compared with.

pub(crate) mod file;
pub(crate) mod observation;
pub(crate) mod redaction;
mod spec;

pub use file::read;
pub use observation::{AgentLog, Observation, StepOutcome};
pub use redaction::{Redaction, RedactionRule};
pub use spec::{SnapshotScope, SnapshotSpec};
