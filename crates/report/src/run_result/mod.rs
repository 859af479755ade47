//! The result of a run.

mod comparison;

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{
    Coverage, MergedShards, Shard, Verdict,
    check::JudgedCheck,
    eval::{EvalComparison, EvalSpending, ModelResult},
    milliseconds::Milliseconds,
    wire_line::{WireKind, WireLine},
};
use rehearse_protocol::{Protocol, Transport};

/// The result of a whole run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// The version of this data format.
    pub format: u32,
    /// When the run began, in UTC, as in RFC 3339; empty if the caller has not said it.
    #[serde(default)]
    pub started_at: String,
    /// The version of `rehearse`.
    #[serde(default)]
    pub rehearse: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// Whether a signal ended the run before all cells had run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The part of the cells that it ran, if it ran only one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The parts that were merged into it; those of one run have the same number of parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<MergedShards>,
    /// How long the run took.
    #[serde(rename = "durationMs", with = "Milliseconds")]
    pub duration: Duration,
    /// The number of cells by status.
    pub totals: Totals,
    /// One result for each scenario.
    pub scenarios: Vec<ScenarioResult>,
    /// What of the servers the scenarios have used, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// What models do otherwise than in an earlier run, if there is one to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<EvalComparison>,
    /// What providers of models were asked, if models play steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spending: Option<EvalSpending>,
}

/// One cell of a scenario's matrix: a transport and a protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The transport between the client and the servers.
    pub transport: Transport,
    /// The protocol version that the client requests.
    pub protocol: Protocol,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.transport, self.protocol))
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Cell, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed = text.split_once('/').and_then(|(transport, protocol)| {
            Some(Cell { transport: transport.parse().ok()?, protocol: protocol.parse().ok()? })
        });
        parsed.ok_or_else(|| {
            D::Error::custom(format!("{text:?} is not a transport and a protocol version, such as http/auto"))
        })
    }
}

/// The number of cells by status.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Cells that passed.
    pub passed: usize,
    /// Cells that failed.
    pub failed: usize,
    /// Cells that could not run.
    pub errors: usize,
    /// Cells that do not apply.
    pub not_applicable: usize,
    /// Cells that did not run.
    pub not_run: usize,
}

/// The result of one scenario.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScenarioResult {
    /// The file name without its extension.
    pub name: String,
    /// The scenario file.
    pub path: PathBuf,
    /// The text of the file, if a cell has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The `description` of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// One result for each selected cell.
    pub cells: Vec<CellResult>,
    /// The snapshots that this run has written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<PathBuf>,
    /// Mistakes in the file that fail no cell, such as an unused redaction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The command line that runs it again, if that is not `rehearse run` with its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
}

/// The result of one cell.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CellResult {
    /// Transport and protocol version, such as `http/2025-11-25`.
    #[schemars(with = "String")]
    pub cell: Cell,
    /// How the cell ended.
    pub status: Status,
    /// The version that client and server have negotiated, if the cell leaves it to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub negotiated: Option<String>,
    /// Why the cell did not run or could not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long the cell took.
    #[serde(rename = "durationMs", with = "Milliseconds")]
    pub duration: Duration,
    /// One result for each step that ran.
    pub steps: Vec<StepResult>,
    /// The last stderr lines of the server processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// The rules of the specification that the servers have violated, if the traffic was checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<CellViolation>,
}

/// A rule that a server has violated.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CellViolation {
    /// The name of the server.
    pub server: String,
    /// The verdict on the check.
    #[serde(flatten)]
    pub check: JudgedCheck,
}

/// How a cell or a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// All expectations were met.
    Passed,
    /// An expectation was not met.
    Failed,
    /// It could not run: a server did not start, or a file could not be written.
    Error,
    /// The transport or the servers do not support the protocol version, or `only` excludes the step.
    NotApplicable,
    /// The run ended before.
    NotRun,
}

impl Status {
    /// A number that is larger for what is worse.
    pub(crate) const fn rank(self) -> u8 {
        match self {
            Status::NotApplicable => 0,
            Status::Passed => 1,
            Status::NotRun => 2,
            Status::Failed => 3,
            Status::Error => 4,
        }
    }
}

/// The result of one step.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    /// The action and its main argument: `call echo`.
    pub title: String,
    /// The line of the step in the scenario file.
    pub line: usize,
    /// The text of that line.
    pub source: String,
    /// How the step ended.
    pub status: Status,
    /// How long the step took.
    #[serde(rename = "durationMs", with = "Milliseconds")]
    pub duration: Duration,
    /// Why the step failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// What each model has done, if models played the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelResult>,
    /// The frames of the step; kept only if it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<TraceLine>,
}

impl StepResult {
    /// Whether it failed only because there is no snapshot yet.
    pub(crate) fn lacks_only_snapshots(&self) -> bool {
        !self.problems.is_empty() && self.problems.iter().all(Problem::is_new_snapshot)
    }

    /// Whether it failed only because the connection broke, which each transport has other words for.
    pub(crate) fn lost_connection(&self) -> bool {
        matches!(&self.problems[..], [problem] if problem.message.starts_with("disconnected: "))
    }
}

/// One reason why a step failed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The reason, as one sentence.
    pub message: String,
    /// The file name, without extension, of the snapshot that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// How the result differs from the snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// The file with the text of this run, for review and acceptance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<PathBuf>,
}

/// Two texts that should be equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The text of the snapshot.
    pub expected: String,
    /// The text of this run.
    pub actual: String,
}

/// One line of the traffic with a server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceLine {
    /// The name of the server.
    pub server: String,
    /// What was sent, or written to standard error; its time counts from the opening of the connection.
    #[serde(flatten)]
    pub line: WireLine,
}

impl RunResult {
    /// A run without results, and without the time of its start.
    pub fn new(seed: u64) -> RunResult {
        RunResult {
            format: 1,
            started_at: String::new(),
            rehearse: env!("CARGO_PKG_VERSION").to_owned(),
            seed,
            interrupted: false,
            shard: None,
            shards: Vec::new(),
            duration: Duration::ZERO,
            totals: Totals::default(),
            scenarios: Vec::new(),
            coverage: None,
            comparison: None,
            spending: None,
        }
    }

    /// Which parts of a run are missing, as a sentence for each run.
    pub fn missing_shards(&self) -> Vec<String> {
        self.shards.iter().filter_map(MergedShards::sentence).collect()
    }

    /// How long each cell took that has run, by its id: `scenario/transport/protocol`.
    pub fn durations(&self) -> BTreeMap<String, Duration> {
        let cells = self.scenarios.iter().flat_map(|it| it.cells.iter().map(move |cell| (&it.name, cell)));
        let ran = cells.filter(|(_, it)| matches!(it.status, Status::Passed | Status::Failed | Status::Error));
        ran.map(|(name, it)| (format!("{name}/{}", it.cell), it.duration)).collect()
    }

    /// How it ended, by its totals, its coverage and the parts that are missing.
    pub fn verdict(&self) -> Verdict {
        let totals = self.totals;
        match () {
            () if totals.errors > 0 || self.interrupted => Verdict::CannotRun,
            () if totals.failed + totals.not_run > 0 => Verdict::Failed,
            () if !self.missing_shards().is_empty() => Verdict::Incomplete,
            () if totals.passed == 0 => Verdict::NothingTested,
            () if self.coverage.as_ref().is_some_and(|coverage| coverage.shortfall().is_some()) => Verdict::Failed,
            () => Verdict::Passed,
        }
    }
}

/// The last lines: so many of the messages and heads, and a quarter as many of what is around them.
pub fn last_lines(lines: &[TraceLine], most: usize) -> impl Iterator<Item = &TraceLine> {
    let (mut messages, mut others) = (most, most / 4);
    let keeps = lines.iter().rev().map(|line| {
        let left = match line.line.kind {
            WireKind::Frame | WireKind::HttpHead | WireKind::Process => &mut messages,
            WireKind::HttpBody | WireKind::Stderr => &mut others,
        };
        let is_kept = *left > 0;
        *left = left.saturating_sub(1);
        is_kept
    });
    let keeps: Vec<_> = keeps.collect();
    lines.iter().zip(keeps.into_iter().rev()).filter_map(|(line, is_kept)| is_kept.then_some(line))
}

impl Totals {
    /// Counts the cells of some scenarios.
    pub fn count(scenarios: &[ScenarioResult]) -> Totals {
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
    /// Whether there is no snapshot yet.
    fn is_new_snapshot(&self) -> bool {
        self.snapshot.is_some() && self.difference.as_ref().is_some_and(|it| it.expected.is_empty())
    }

    /// A problem without a snapshot.
    pub fn new(message: String) -> Problem {
        Problem { message, snapshot: None, difference: None, pending: None }
    }
}

impl CellResult {
    /// The result of a cell of which no step ran.
    pub fn without_steps(cell: Cell, status: Status, reason: impl Into<String>) -> CellResult {
        CellResult {
            cell,
            status,
            negotiated: None,
            reason: Some(reason.into()),
            duration: Duration::ZERO,
            steps: Vec::new(),
            stderr: Vec::new(),
            violations: Vec::new(),
        }
    }
}
