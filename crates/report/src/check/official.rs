//! The report in the words of the official conformance suite.

use std::{collections::BTreeMap, fmt::Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::{CheckResult, CheckVerdict, CheckedServer, CheckedVersion, JudgedCheck};
use crate::{
    palette::{BAD, DIM, DOUBTFUL, GOOD, STRONG},
    text::printable,
};

/// The checks of each scenario that has others than one of its own name.
const SCENARIOS: &str = include_str!("official-scenarios.txt");

/// One check of the suite, as it writes it to `checks.json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfficialCheck {
    id: String,
    name: String,
    description: String,
    status: Status,
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
    spec_references: Vec<Value>,
    details: Value,
}

/// The statuses of the suite, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
enum Status {
    Failure,
    Warning,
    Success,
    Info,
    Skipped,
}

impl Status {
    fn of(verdict: CheckVerdict) -> Option<Status> {
        Some(match verdict {
            // The suite reports an expected failure as one, too.
            CheckVerdict::Fail | CheckVerdict::Accepted => Status::Failure,
            CheckVerdict::Warn => Status::Warning,
            CheckVerdict::NotTested => Status::Skipped,
            CheckVerdict::Info => Status::Info,
            CheckVerdict::Pass => Status::Success,
            CheckVerdict::NotApplicable => return None,
        })
    }
}

/// Whether a check of a scenario, or any check of it, is one of these ids.
pub(super) fn is_known_as(scenario: &str, check: Option<&str>, ids: &[String]) -> bool {
    match check {
        Some(check) => ids.iter().any(|id| id == check),
        None => ids.iter().any(|id| id == scenario || checks_of(scenario).any(|check| check == id)),
    }
}

fn checks_of(scenario: &str) -> impl Iterator<Item = &'static str> {
    let line = SCENARIOS.lines().find_map(|line| line.strip_prefix(scenario)?.strip_prefix(':'));
    line.unwrap_or_default().split_whitespace()
}

/// The checks of all servers and versions.
pub(super) fn checks(result: &CheckResult) -> Vec<OfficialCheck> {
    let all = result.servers.iter().flat_map(|server| server.versions.iter().map(move |version| (server, version)));
    all.flat_map(|(server, version)| of_version(server, version, &result.started_at)).collect()
}

fn of_version(server: &CheckedServer, version: &CheckedVersion, timestamp: &str) -> Vec<OfficialCheck> {
    let mut by_id: BTreeMap<&str, Vec<(&JudgedCheck, Status)>> = BTreeMap::new();
    for check in &version.checks {
        let Some(status) = Status::of(check.verdict) else { continue };
        for id in &check.official {
            by_id.entry(id).or_default().push((check, status));
        }
    }
    let checks = by_id.into_iter().filter_map(|(id, checks)| {
        let (worst, status) = checks.iter().min_by_key(|(_, status)| *status).copied()?;
        let found = worst.violations.first().map(|it| format!("{} Found {}.", worst.rule, it.found));
        let is_wrong = status <= Status::Warning;
        let ids_of = |wanted: Status| -> Vec<_> {
            checks.iter().filter(|(_, status)| *status == wanted).map(|(check, _)| check.id.as_str()).collect()
        };
        Some(OfficialCheck {
            id: id.to_owned(),
            name: worst.id.clone(),
            description: worst.rule.clone(),
            status,
            timestamp: timestamp.to_owned(),
            error_message: found.or_else(|| worst.reason.clone()).filter(|_| is_wrong),
            spec_references: vec![json!({ "id": worst.id, "url": worst.spec })],
            details: json!({
                "target": server.target,
                "transport": server.transport,
                "specVersion": version.version,
                "failed": ids_of(Status::Failure),
                "warnings": ids_of(Status::Warning),
                "passed": ids_of(Status::Success),
                "notTested": ids_of(Status::Skipped),
            }),
        })
    });
    checks.collect()
}

pub(super) fn render(result: &CheckResult) -> String {
    let mut out = String::new();
    for server in &result.servers {
        if let Some(error) = &server.error {
            let _ = writeln!(out, "{BAD}✗{BAD:#} {}: {}", printable(&server.target), printable(error));
        }
        for version in &server.versions {
            let checks = of_version(server, version, &result.started_at);
            let cell = format!("{} {}/{}", printable(&server.target), server.transport, version.version);
            let _ = writeln!(out, "{STRONG}{cell}{STRONG:#}");
            for check in &checks {
                let (mark, style, word) = match check.status {
                    Status::Failure => ("✗", BAD, "FAILURE"),
                    Status::Warning => ("!", DOUBTFUL, "WARNING"),
                    Status::Success => ("✓", GOOD, "SUCCESS"),
                    Status::Info => ("·", DIM, "INFO"),
                    Status::Skipped => ("·", DIM, "SKIPPED"),
                };
                let why = check.error_message.as_ref().map(|it| format!("  {}: {it}", check.name)).unwrap_or_default();
                let _ = writeln!(out, "{style}{mark}{style:#} {:55} {word}{}", check.id, printable(&why));
            }
            let count = |status| checks.iter().filter(|check| check.status == status).count();
            let (passed, failed) = (count(Status::Success), count(Status::Failure));
            let (warnings, skipped) = (count(Status::Warning), count(Status::Skipped));
            let _ = writeln!(
                out,
                "Passed: {passed}/{}, {failed} failed, {warnings} warnings, {skipped} skipped\n",
                passed + failed
            );
        }
    }
    out
}
