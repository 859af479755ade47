//! JUnit XML: a suite for each scenario, a case for each cell.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{
    CellResult, CellViolation, RunResult, ScenarioResult, Status,
    check::{RowVerdict, message},
    text::{printable, printable_lines},
};

/// A report with these suites.
pub(crate) fn report(name: &str, duration: Duration, suites: Vec<TestSuite>) -> Vec<u8> {
    let mut report = Report::new(name);
    report.set_time(duration);
    report.add_test_suites(suites);
    let mut bytes = Vec::new();
    // Writing to memory cannot fail.
    let _ = report.serialize(&mut bytes);
    bytes
}

pub(crate) fn suites(result: &RunResult) -> Vec<TestSuite> {
    result.scenarios.iter().map(|scenario| suite(scenario, result.interrupted)).collect()
}

fn suite(scenario: &ScenarioResult, interrupted: bool) -> TestSuite {
    let mut suite = TestSuite::new(printable(&scenario.name));
    suite.set_time(scenario.cells.iter().map(|cell| cell.duration).sum());
    suite.add_test_cases(scenario.cells.iter().map(|cell| case(scenario, cell, interrupted)));
    suite
}

fn case(scenario: &ScenarioResult, cell: &CellResult, interrupted: bool) -> TestCase {
    let non_success = |kind, message: &str| {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_message(printable(message));
        status
    };
    let reason = cell.reason.as_deref().unwrap_or_default();
    let status = match cell.status {
        Status::Passed => TestCaseStatus::success(),
        Status::NotRun if interrupted => non_success(NonSuccessKind::Error, reason),
        Status::NotApplicable | Status::NotRun => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(printable(reason));
            status
        }
        Status::Error => non_success(NonSuccessKind::Error, reason),
        Status::Failed => {
            let details = details(scenario, cell);
            let mut status = non_success(NonSuccessKind::Failure, details.lines().next().unwrap_or_default());
            status.set_description(joined(&details));
            status
        }
    };
    let mut case = TestCase::new(cell.cell.to_string(), status);
    case.set_classname(printable(&scenario.name));
    case.set_time(cell.duration);
    let warnings = cell.violations.iter().filter(|found| found.row.verdict != RowVerdict::Fail);
    let warnings: String = warnings.map(|found| format!("warning: {}", violation(found))).collect();
    if !warnings.is_empty() {
        case.set_system_out(joined(&warnings));
    }
    if !cell.stderr.is_empty() {
        case.set_system_err(joined(&cell.stderr.join("\n")));
    }
    case
}

fn details(scenario: &ScenarioResult, cell: &CellResult) -> String {
    let mut text = String::new();
    for step in &cell.steps {
        for problem in &step.problems {
            text.push_str(&format!("{}:{} {}: {}\n", scenario.path.display(), step.line, step.title, problem.message));
            if let Some(difference) = &problem.difference {
                let diff = similar::TextDiff::from_lines(&difference.expected, &difference.actual);
                text.push_str(&diff.unified_diff().header("expected", "actual").to_string());
            }
        }
    }
    text.extend(cell.violations.iter().filter(|found| found.row.verdict == RowVerdict::Fail).map(violation));
    text
}

/// A violated rule with the frames that show it.
fn violation(CellViolation { server, row }: &CellViolation) -> String {
    let frames = row.violations.first().map(|violation| &violation.evidence[..]).unwrap_or_default();
    let frames: String = frames.iter().map(|line| format!("{}\n", line.text)).collect();
    format!("{server} {}: {}\n{frames}{}\n", row.id, message(row), row.spec)
}

fn joined(text: &str) -> String {
    printable_lines(text).collect::<Vec<_>>().join("\n")
}
