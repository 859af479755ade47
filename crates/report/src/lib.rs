//! Results of runs and config checks, and their renderers. No IO.

mod badge;
pub mod bench;
pub mod check;
mod coverage;
pub mod diff;
mod difference;
pub mod eval;
pub mod findings;
mod format;
pub mod fuzz;
mod github;
mod groups;
pub mod host;
mod json;
mod junit;
mod markdown;
mod milliseconds;
mod origin;
mod page;
pub mod palette;
pub mod profile;
mod results;
mod run_result;
mod sarif;
pub mod schema;
mod shards;
pub mod summary;
mod terminal;
pub mod text;
mod verdict;
mod wire_line;

pub use coverage::{Coverage, CoverageBranch, CoverageItem, CoverageKind, ServerCoverage};
pub use format::{Format, Layout, UnknownFormat};
pub use json::Judged;
pub use origin::Origin;
pub use results::ReadError;
pub use run_result::{
    Cell, CellResult, CellViolation, Difference, Problem, RunResult, ScenarioResult, Status, StepResult, Totals,
    TraceLine, last_lines,
};
pub use shards::{InvalidShard, MergedShards, Shard};
pub use terminal::violation_text;
pub use verdict::Verdict;
pub use wire_line::{WireKind, WireLine, marks};
