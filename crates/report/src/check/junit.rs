//! JUnit XML: a suite for each server and version, a case for each row.

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::{CheckResult, CheckedRow, CheckedServer, CheckedVersion, RowVerdict};
use crate::text::printable;

pub(crate) fn suites(result: &CheckResult) -> Vec<TestSuite> {
    let mut suites = Vec::new();
    for server in &result.servers {
        suites.extend(server.versions.iter().map(|version| suite(server, version, result.strict)));
        if let Some(error) = &server.error {
            let mut suite = TestSuite::new(printable(&server.target));
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(printable(error));
            suite.add_test_case(TestCase::new("connection", status));
            suites.push(suite);
        }
    }
    if let Some(baseline) = result.baseline.as_ref().filter(|it| !it.stale.is_empty()) {
        let mut suite = TestSuite::new(printable(&baseline.file.to_string_lossy()));
        suite.add_test_cases(baseline.stale.iter().map(|entry| {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message("the entry matches nothing any more");
            TestCase::new(printable(entry), status)
        }));
        suites.push(suite);
    }
    suites
}

fn suite(server: &CheckedServer, version: &CheckedVersion, is_strict: bool) -> TestSuite {
    let name = format!("{} {}/{}", printable(&server.target), server.transport, version.version);
    let mut suite = TestSuite::new(name.clone());
    let rows = version.rows.iter().filter(|row| row.verdict != RowVerdict::NotApplicable);
    suite.add_test_cases(rows.map(|row| {
        let mut case = TestCase::new(row.id.clone(), status(row, is_strict));
        case.set_classname(name.clone());
        case
    }));
    suite
}

fn status(row: &CheckedRow, is_strict: bool) -> TestCaseStatus {
    let skipped = |message: &str| {
        let mut status = TestCaseStatus::skipped();
        status.set_message(printable(message));
        status
    };
    match row.verdict {
        RowVerdict::Pass | RowVerdict::Info | RowVerdict::NotApplicable => TestCaseStatus::success(),
        RowVerdict::NotTested => skipped(&format!("not tested: {}", row.reason.as_deref().unwrap_or_default())),
        RowVerdict::Accepted => skipped(&format!("accepted: {}", row.reason.as_deref().unwrap_or_default())),
        RowVerdict::Warn if !is_strict => skipped(&format!("warning: {}", message(row))),
        RowVerdict::Warn | RowVerdict::Fail => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(printable(&message(row)));
            let evidence = row.open_violations().flat_map(|it| &it.evidence);
            let evidence = evidence.map(|line| format!("{} {}", line.arrow(), printable(&line.text)));
            let help = row.help.iter().map(|help| format!("help: {help}"));
            let again = row.again.iter().map(|again| format!("again: {}", printable(again)));
            let lines = evidence.chain(help).chain([format!("spec: {}", row.spec)]).chain(again);
            status.set_description(lines.collect::<Vec<_>>().join("\n"));
            status
        }
    }
}

/// The rule and what was found first, in one line.
pub fn message(row: &CheckedRow) -> String {
    let violation = row.open_violations().next();
    let subject = violation.and_then(|it| it.subject.as_deref()).map(|it| format!(" {it}:")).unwrap_or_default();
    let found = violation.map(|it| format!("{subject} found {}", it.found)).unwrap_or_default();
    let reason = row.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("{}{found}{reason}", row.rule)
}
