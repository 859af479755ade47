//! The result of a run, for the report.

use std::time::Duration;

use super::again::Again;
use crate::cli::mcp::target::Server;
use rehearse_check::{CheckError, CheckRun};
use rehearse_client::Target;
use rehearse_conformance::{Outcome, Place, Row, Violation};
use rehearse_protocol::{Trace, Version};
use rehearse_report::{
    WireLine,
    check::{CheckedRow, CheckedServer, CheckedVersion, ConfigPlace, FoundViolation, RowVerdict, UnansweredVersion},
    marks,
};

/// How many violations of one row keep their frames.
const WITH_EVIDENCE: usize = 20;

/// The result for one server.
pub(super) fn server(server: &Server, run: Result<CheckRun, CheckError>, again: &Again) -> CheckedServer {
    let mut checked = CheckedServer {
        target: target(server),
        transport: server.resolved.config.target.transport(),
        name: None,
        server_version: None,
        started_in: Duration::ZERO,
        again: again.command(server),
        command: None,
        place: place(server),
        error: None,
        versions: Vec::new(),
        unanswered: Vec::new(),
        is_budget_spent: false,
    };
    match run {
        Ok(run) => {
            (checked.name, checked.server_version) = run.server.unzip();
            checked.started_in = run.started_in;
            let judged = run.versions.iter();
            checked.versions =
                judged.map(|run| version(&run.traces.iter().collect::<Vec<_>>(), run.version, &run.outcomes)).collect();
            checked.is_budget_spent = run.is_budget_spent;
            let unanswered = run.unanswered.into_iter();
            checked.unanswered = unanswered.map(|(version, reason)| UnansweredVersion { version, reason }).collect();
        }
        Err(error) => checked.error = Some(error.to_string()),
    }
    checked
}

/// The command or URL of a server.
pub(in crate::cli) fn target(server: &Server) -> String {
    match &server.resolved.config.target {
        Target::Stdio(spec) => [&spec.program].into_iter().chain(&spec.args).cloned().collect::<Vec<_>>().join(" "),
        Target::Http(at) | Target::Sse(at) | Target::Ws(at) => at.url.clone(),
        Target::Memory(_) => "memory".to_owned(),
    }
}

/// Where a config file describes the server.
pub(super) fn place(server: &Server) -> Option<ConfigPlace> {
    if server.is_from_command_line() {
        return None;
    }
    let (line, column) = server.written.source.position(server.written.name.span.start);
    Some(ConfigPlace { file: server.written.source.name.clone(), line, column, server: server.name().to_owned() })
}

/// The verdicts in one version.
pub(super) fn version(traces: &[&Trace], version: Version, outcomes: &[(&'static Row, Outcome)]) -> CheckedVersion {
    let rows = outcomes.iter().map(|(row, outcome)| checked_row(traces, version, row, outcome)).collect();
    CheckedVersion { version, rows }
}

/// The verdict on a row. The places of its evidence are in these traces.
pub(in crate::cli) fn checked_row(traces: &[&Trace], version: Version, row: &Row, outcome: &Outcome) -> CheckedRow {
    let violations = &outcome.judgement.violations;
    let level = row.levels.get(&version).copied();
    let found = violations.iter().enumerate().map(|(number, violation)| FoundViolation {
        // A second run may have made a warning of a failure.
        verdict: violation.level.or(level).map_or(RowVerdict::Info, |it| it.violated().max(outcome.verdict)),
        subject: violation.subject.clone(),
        found: violation.found.clone(),
        accepted: None,
        evidence: if number < WITH_EVIDENCE { evidence(traces, violation) } else { Vec::new() },
    });
    CheckedRow {
        id: row.id.clone(),
        level: level.map(|level| level.as_str().into()),
        verdict: outcome.verdict,
        reason: outcome.reason.clone(),
        rule: row.rule.clone(),
        help: row.help.clone(),
        spec: row.link(version),
        official: row.official.clone(),
        exercised: outcome.judgement.exercised,
        again: None,
        violation_count: violations.len(),
        violations: found.collect(),
    }
}

/// The frames and HTTP heads that show a violation.
fn evidence(traces: &[&Trace], violation: &Violation) -> Vec<WireLine> {
    let marks = marks(violation.subject.as_deref(), &violation.found);
    violation.places.iter().filter_map(|place| line(traces, *place, &marks)).collect()
}

fn line(traces: &[&Trace], place: Place, marks: &[String]) -> Option<WireLine> {
    let (_, event) = traces.get(place.connection)?.since(place.event).next()?;
    WireLine::from_event(event, marks)
}
