//! JUnit XML.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::{
    summary::{Case, Outcome, Suite, Summary},
    text::{beginning, printable, printable_text},
};

/// The report, with a final newline.
pub(crate) fn render(summary: &Summary) -> Vec<u8> {
    let mut report = Report::new(match &summary.sections[..] {
        [section] => section.command,
        _ => "rehearse",
    });
    report.set_time(summary.sections.iter().map(|section| section.duration).sum());
    report.add_test_suites(summary.sections.iter().flat_map(|section| &section.suites).map(suite));
    let mut bytes = Vec::new();
    // Writing to memory cannot fail.
    let _ = report.serialize(&mut bytes);
    bytes
}

fn suite(Suite { name, cases }: &Suite) -> TestSuite {
    let name = printable(name);
    let mut suite = TestSuite::new(&*name);
    if cases.iter().any(|case| case.duration.is_some()) {
        suite.set_time(cases.iter().filter_map(|case| case.duration).sum());
    }
    suite.add_test_cases(cases.iter().map(|case| self::case(&name, case)));
    suite
}

fn case(suite: &str, case: &Case) -> TestCase {
    let mut status = match case.outcome {
        Outcome::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Outcome::Error => TestCaseStatus::non_success(NonSuccessKind::Error),
        Outcome::Passed | Outcome::Info => TestCaseStatus::success(),
        _ => TestCaseStatus::skipped(),
    };
    status.set_message(printable(&beginning(&case.message)));
    if !case.details.is_empty() {
        status.set_description(printable_text(&beginning(&case.details)));
    }
    let mut written = TestCase::new(printable(&case.name), status);
    written.set_classname(suite);
    if let Some(duration) = case.duration {
        written.set_time(duration);
    }
    if !case.output.is_empty() {
        written.set_system_out(printable_text(&beginning(&case.output)));
    }
    if !case.stderr.is_empty() {
        written.set_system_err(printable_text(&beginning(&case.stderr)));
    }
    written
}
