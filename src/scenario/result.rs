//! What came of a run: inert data from which every report is made.

use std::{path::PathBuf, time::Duration};

use serde::{Serialize, Serializer};

use super::Cell;
use crate::wire::Direction;

/// A whole run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// The version of this data's shape.
    pub format: u32,
    /// What everything random was drawn from.
    pub seed: u64,
    #[serde(rename = "durationMs", serialize_with = "milliseconds")]
    pub duration: Duration,
    pub totals: Totals,
    pub scenarios: Vec<ScenarioResult>,
}

/// How many cells ended how.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    pub passed: usize,
    pub failed: usize,
    pub errors: usize,
    pub not_applicable: usize,
    pub not_run: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScenarioResult {
    pub name: String,
    pub path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub cells: Vec<CellResult>,
    /// What is odd about the file, but no failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CellResult {
    pub cell: Cell,
    pub status: Status,
    /// Why the cell was not run, or could not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(rename = "durationMs", serialize_with = "milliseconds")]
    pub duration: Duration,
    pub steps: Vec<StepResult>,
    /// The last lines that the servers' processes wrote to their standard error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    Passed,
    /// An expectation did not hold.
    Failed,
    /// We could not run it: a server did not start, a file could not be written.
    Error,
    /// The combination does not exist.
    NotApplicable,
    /// The run ended before.
    NotRun,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    pub title: String,
    /// The line of the scenario file.
    pub line: usize,
    pub status: Status,
    #[serde(rename = "durationMs", serialize_with = "milliseconds")]
    pub duration: Duration,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// What went over the wire during the step; kept only if it failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<TraceLine>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    pub message: String,
    /// The snapshot that it is about, by the name of its file without the extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Where the text of this run was left to be accepted instead of that of the snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    pub expected: String,
    pub actual: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceLine {
    pub server: String,
    pub direction: Direction,
    /// Since the connection was opened.
    #[serde(rename = "atMs", serialize_with = "milliseconds")]
    pub at: Duration,
    /// The frame, shortened if it is long.
    pub frame: String,
}

fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((duration.as_secs_f64() * 1_000_000.0).round() / 1000.0)
}

impl Totals {
    pub(super) fn of(scenarios: &[ScenarioResult]) -> Totals {
        let mut totals = Totals::default();
        for cell in scenarios.iter().flat_map(|scenario| &scenario.cells) {
            match cell.status {
                Status::Passed => totals.passed += 1,
                Status::Failed => totals.failed += 1,
                Status::Error => totals.errors += 1,
                Status::NotApplicable => totals.not_applicable += 1,
                Status::NotRun => totals.not_run += 1,
            }
        }
        totals
    }
}

impl Problem {
    /// A problem that has nothing to do with a snapshot.
    pub(super) fn new(message: String) -> Problem {
        Problem { message, snapshot: None, difference: None, pending: None }
    }
}

impl CellResult {
    /// A cell in which nothing was done.
    pub(super) fn idle(cell: Cell, status: Status, reason: impl Into<String>) -> CellResult {
        let (duration, steps, stderr) = (Duration::ZERO, Vec::new(), Vec::new());
        CellResult { cell, status, reason: Some(reason.into()), duration, steps, stderr }
    }
}
