//! `--check` of commands with traffic of their own: the violated rows of what was recorded.

use super::check::checked_row;
use rehearse_conformance::{Facts, Recorded, judge_recorded};
use rehearse_protocol::{Trace, Transport, Version};
use rehearse_report::check::{CheckedRow, RowVerdict};

/// What the rows say of the traffic with one server over one transport.
pub(super) struct JudgedTraffic {
    /// The violated rows, failures first.
    pub(super) violations: Vec<CheckedRow>,
    /// How many connections could not be judged.
    pub(super) left_out: usize,
}

/// Judges traffic. `asked` is the version that the client asked for, if it was fixed.
pub(super) fn judge(traces: &[Trace], asked: Option<Version>, transport: Transport) -> JudgedTraffic {
    let recorded = traces.iter().map(|trace| Recorded { trace, asked });
    let judged = judge_recorded(recorded, transport, &Facts::default());
    let mut violations = Vec::new();
    for version in &judged.versions {
        let violated = version.outcomes.iter().filter(|(_, it)| it.verdict <= RowVerdict::Warn);
        violations.extend(violated.map(|(row, outcome)| checked_row(&version.traces, version.version, row, outcome)));
    }
    violations.sort_by_key(|row| row.verdict);
    JudgedTraffic { violations, left_out: judged.left_out }
}
