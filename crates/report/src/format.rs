//! The formats of a report on results.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use crate::{
    bench::{BenchResult, Change},
    check, findings, github, junit, markdown, page, scenario_sarif,
    summary::Results,
    text::printable,
};

/// The formats of a report on the results of one or more runs.
///
/// ```
/// use rehearse_report::{ReportFormat, summary::Results};
///
/// let json = br#"{ "format": 1, "seed": 1, "durationMs": 3.5, "scenarios": [],
///     "totals": { "passed": 0, "failed": 0, "errors": 0, "notApplicable": 0, "notRun": 0 } }"#;
/// let mut results = Results::default();
/// results.read(json)?;
/// let outputs = String::from_utf8(ReportFormat::GithubOutput.render(&results, ".".as_ref()))?;
/// assert!(outputs.starts_with("verdict=nothing-tested\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// One HTML file.
    Html,
    /// JUnit XML.
    Junit,
    /// For code scanning.
    Sarif,
    /// Markdown, as the summary of a job.
    Markdown,
    /// Annotations of GitHub.
    Github,
    /// The verdict and the counts as lines for `$GITHUB_OUTPUT`.
    GithubOutput,
    /// The merged results.
    Json,
}

/// The name of an unknown format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {0:?}; there are html, junit, sarif, md, json, github and github-output")]
pub struct UnknownReportFormat(String);

/// A file for a report, whose extension says its format.
#[derive(Clone, Debug)]
pub struct ReportFile {
    pub path: PathBuf,
    pub format: ReportFormat,
}

/// The name of a file that does not say its format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} does not say the format of the report; end it with .html, .xml, .sarif, .md or .json")]
pub struct UnknownReportFile(String);

impl FromStr for ReportFormat {
    type Err = UnknownReportFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "html" => ReportFormat::Html,
            "junit" => ReportFormat::Junit,
            "sarif" => ReportFormat::Sarif,
            "md" => ReportFormat::Markdown,
            "github" => ReportFormat::Github,
            "github-output" => ReportFormat::GithubOutput,
            "json" => ReportFormat::Json,
            other => return Err(UnknownReportFormat(other.to_owned())),
        })
    }
}

impl FromStr for ReportFile {
    type Err = UnknownReportFile;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = PathBuf::from(text);
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let format = match extension {
            "html" | "htm" => ReportFormat::Html,
            "xml" => ReportFormat::Junit,
            "sarif" => ReportFormat::Sarif,
            "md" => ReportFormat::Markdown,
            "json" => ReportFormat::Json,
            _ => return Err(UnknownReportFile(text.to_owned())),
        };
        Ok(ReportFile { path, format })
    }
}

impl ReportFormat {
    /// The report, with a final newline. Paths are relative to the folder.
    pub fn render(self, results: &Results, directory: &Path) -> Vec<u8> {
        match self {
            ReportFormat::Html => page::render(&results.summary()),
            ReportFormat::Junit => junit(results),
            ReportFormat::Sarif => sarif(results, directory),
            ReportFormat::Markdown => markdown::render(&results.summary()).into_bytes(),
            ReportFormat::Github => github::annotations(&results.summary()).into_bytes(),
            ReportFormat::GithubOutput => github::outputs(&results.summary()).into_bytes(),
            ReportFormat::Json => json(results),
        }
    }
}

/// The results as they are; each kind after the other, if there are several.
fn json(results: &Results) -> Vec<u8> {
    let mut bytes = Vec::new();
    let run = results.run.as_ref().map(serde_json::to_vec_pretty);
    let check = results.check.as_ref().map(serde_json::to_vec_pretty);
    let bench = results.bench.as_ref().map(serde_json::to_vec_pretty);
    for result in [run, check, bench].into_iter().flatten() {
        bytes.extend(result.unwrap_or_default());
        bytes.push(b'\n');
    }
    bytes
}

fn junit(results: &Results) -> Vec<u8> {
    let (mut suites, mut duration) = (Vec::new(), Duration::ZERO);
    if let Some(run) = &results.run {
        suites.extend(junit::suites(run));
        duration += run.duration;
    }
    if let Some(check) = &results.check {
        suites.extend(check::suites(check));
        duration += check.duration;
    }
    suites.extend(results.bench.as_ref().map(thresholds));
    junit::report("rehearse", duration, suites)
}

/// A case for each threshold and each comparison that can fail a benchmark.
fn thresholds(bench: &BenchResult) -> TestSuite {
    let case = |name: String, is_failed: bool, message: &str| {
        let status = if is_failed {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(printable(message));
            status
        } else {
            TestCaseStatus::success()
        };
        let mut case = TestCase::new(printable(&name), status);
        case.set_classname("rehearse bench");
        case
    };
    let mut suite = TestSuite::new("rehearse bench");
    for target in &bench.targets {
        let error = target.error.as_deref();
        suite.add_test_case(case(target.name.clone(), error.is_some(), error.unwrap_or_default()));
    }
    suite.add_test_cases(
        bench
            .thresholds
            .iter()
            .map(|it| case(format!("{}, {}: fail if {}", it.target, it.measure, it.expression), it.is_met, &it.found)),
    );
    suite.add_test_cases(bench.comparisons.iter().filter(|it| it.is_gate).map(|it| {
        let name = format!("{}, {}: {} against {}", it.target, it.measure, it.figure, it.base);
        case(name, it.change == Change::Slower, &format!("{:.2} times", it.ratio))
    }));
    suite
}

fn sarif(results: &Results, directory: &Path) -> Vec<u8> {
    let run = results.run.as_ref().map(|run| scenario_sarif::run(run, directory));
    let check = results.check.as_ref().map(|result| check::sarif_run(result, directory));
    findings::sarif::log(run.into_iter().chain(check).collect())
}
