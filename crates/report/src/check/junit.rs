//! JUnit XML: a suite for each server and version, a case for each row.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{CheckResult, CheckedRow, CheckedServer, CheckedVersion, RowVerdict};
use crate::text::printable;

pub(super) fn render(result: &CheckResult) -> Vec<u8> {
    let mut report = Report::new("rehearse check");
    report.set_time(result.duration);
    for server in &result.servers {
        report.add_test_suites(server.versions.iter().map(|version| suite(server, version)));
        if let Some(error) = &server.error {
            let mut suite = TestSuite::new(printable(&server.target));
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(printable(error));
            suite.add_test_case(TestCase::new("connection", status));
            report.add_test_suite(suite);
        }
    }
    let mut bytes = Vec::new();
    // Writing to memory cannot fail.
    let _ = report.serialize(&mut bytes);
    bytes
}

fn suite(server: &CheckedServer, version: &CheckedVersion) -> TestSuite {
    let name = format!("{} {}/{}", printable(&server.target), server.transport, version.version);
    let mut suite = TestSuite::new(name.clone());
    let rows = version.rows.iter().filter(|row| row.verdict != RowVerdict::NotApplicable);
    suite.add_test_cases(rows.map(|row| {
        let mut case = TestCase::new(row.id.clone(), status(row));
        case.set_classname(name.clone());
        case
    }));
    suite
}

fn status(row: &CheckedRow) -> TestCaseStatus {
    match row.verdict {
        RowVerdict::Pass | RowVerdict::Info | RowVerdict::NotApplicable => TestCaseStatus::success(),
        RowVerdict::NotTested => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(printable(row.reason.as_deref().unwrap_or_default()));
            status
        }
        RowVerdict::Warn => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("warning: {}", printable(&message(row))));
            status
        }
        RowVerdict::Fail => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(printable(&message(row)));
            let lines =
                row.violations.iter().flat_map(|it| &it.evidence).map(|line| printable(&line.text).into_owned());
            status.set_description(lines.chain([row.spec.clone()]).collect::<Vec<_>>().join("\n"));
            status
        }
    }
}

fn message(row: &CheckedRow) -> String {
    let found = row.violations.first().map(|violation| format!(" Found {}.", violation.found)).unwrap_or_default();
    format!("{}{found}", row.rule)
}
