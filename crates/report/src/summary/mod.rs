//! The results of several runs as one report: what a page, a job summary and annotations show.

mod bench;
mod check;
mod diff;
mod eval;
mod fuzz;
mod host;
mod migration;
mod profile;
mod run;

use std::{fmt, time::Duration};

pub(crate) use check::failure as of_check;

use crate::{
    TraceLine, Verdict,
    bench::{Bar, BenchResult},
    check::CheckResult,
    diff::DiffResult,
    fuzz::FuzzResult,
    host::HostResult,
    run_result::RunResult,
};

/// The results that one report shows.
#[derive(Debug, Default)]
pub struct Results {
    /// The scenarios of all runs.
    pub run: Option<RunResult>,
    /// The servers or clients of all checks.
    pub check: Option<CheckResult>,
    /// The targets of all benchmarks.
    pub bench: Option<BenchResult>,
    /// The changes of one server.
    pub diff: Option<DiffResult>,
    /// The bugs of one server.
    pub fuzz: Option<FuzzResult>,
    /// What hosts make of one server.
    pub host: Option<HostResult>,
}

/// How a cell, a check or a threshold ended, worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    Failed,
    /// It could not run.
    Error,
    Warning,
    NotTested,
    NotRun,
    /// It failed, and a baseline accepts that.
    Accepted,
    Info,
    #[default]
    Passed,
    NotApplicable,
}

impl Outcome {
    /// The word for it, as in the filter `status:failed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Failed => "failed",
            Outcome::Error => "error",
            Outcome::Warning => "warning",
            Outcome::NotTested => "not-tested",
            Outcome::NotRun => "not-run",
            Outcome::Accepted => "accepted",
            Outcome::Info => "info",
            Outcome::Passed => "passed",
            Outcome::NotApplicable => "not-applicable",
        }
    }

    /// The words for it in a sentence.
    pub const fn phrase(self) -> &'static str {
        match self {
            Outcome::Error => "could not run",
            Outcome::NotTested => "not tested",
            Outcome::NotRun => "not run",
            Outcome::NotApplicable => "not applicable",
            other => other.as_str(),
        }
    }

    /// The mark of a cell.
    pub const fn mark(self) -> &'static str {
        match self {
            Outcome::Failed => "✗",
            Outcome::Error => "!",
            Outcome::Warning => "▲",
            Outcome::NotTested => "?",
            Outcome::NotRun => "·",
            Outcome::Accepted => "≈",
            Outcome::Info => "i",
            Outcome::Passed => "✓",
            Outcome::NotApplicable => "–",
        }
    }

    /// Whether someone has to look at it.
    pub const fn is_bad(self) -> bool {
        matches!(self, Outcome::Failed | Outcome::Error)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a report shows.
#[derive(Debug)]
pub struct Summary {
    /// The worst of the sections.
    pub verdict: Verdict,
    /// One for each kind of result.
    pub sections: Vec<Section>,
}

/// The results of one kind.
#[derive(Debug, Default)]
pub struct Section {
    /// `Scenarios`, `Checks`, `Profiles`, `Migration`, `Hosts`, `Changes`, `Fuzzing` or `Benchmark`.
    pub title: &'static str,
    /// What gave them, such as `rehearse run`.
    pub command: &'static str,
    pub duration: Duration,
    /// The seed of all randomness, if there is some.
    pub seed: Option<u64>,
    pub verdict: Verdict,
    /// What was run or compared: a name, and what is known of it.
    pub subjects: Vec<(String, Vec<String>)>,
    /// What came of it that the counts do not say.
    pub sentence: Option<String>,
    /// When, how long and with what it ran.
    pub facts: Vec<(&'static str, String)>,
    /// What is counted: `cells`, `checks`, `profiles`, `hosts`, `changes`, `tools` or `thresholds`.
    pub unit: &'static str,
    /// How many of them have which outcome, worst first.
    pub counts: Vec<(Outcome, usize)>,
    pub matrix: Option<Matrix>,
    /// Worst first; those with the same cause are one.
    pub failures: Vec<Failure>,
    /// What was not tested, by reason.
    pub untested: Vec<(String, Vec<String>)>,
    /// Every cell, check and threshold as a test.
    pub suites: Vec<Suite>,
    /// What has a place in a file; `None` if nothing of this kind has one.
    pub scan: Option<Scan>,
    pub tables: Vec<Table>,
    /// Whatever else a reader should know.
    pub remarks: Vec<Remark>,
}

/// A sentence about what is no failure.
#[derive(Debug)]
pub struct Remark {
    pub outcome: Outcome,
    pub text: String,
    /// Whether it is one of many, which only some readers want.
    pub is_detail: bool,
}

/// Tests that belong together: the cells of a scenario, the checks of a server in one version.
#[derive(Debug)]
pub struct Suite {
    pub name: String,
    pub cases: Vec<Case>,
}

/// How one cell, check or threshold ended, as a test.
#[derive(Debug, Default)]
pub struct Case {
    pub name: String,
    pub outcome: Outcome,
    /// How long it took, if that is known of it alone.
    pub duration: Option<Duration>,
    /// Why it has not passed, in one line.
    pub message: String,
    /// What shows it, in several lines.
    pub details: String,
    /// What else a reader should know.
    pub output: String,
    /// The last lines on the standard error of the servers.
    pub stderr: String,
}

/// What code scanning and annotations show of results that have a place in a file.
#[derive(Debug)]
pub struct Scan {
    /// Two scans of one category replace each other.
    pub category: Option<String>,
    /// Whether everything could be run or read.
    pub is_complete: bool,
    /// What the alerts are about.
    pub rules: Vec<AlertRule>,
    pub alerts: Vec<Alert>,
}

/// A kind of alert.
#[derive(Debug)]
pub struct AlertRule {
    pub id: String,
    pub outcome: Outcome,
    pub rule: Rule,
    /// What it belongs to, such as `scenario`.
    pub area: String,
}

/// One result at one place.
#[derive(Debug, Default)]
pub struct Alert {
    /// The id of its rule.
    pub rule: String,
    pub outcome: Outcome,
    pub message: String,
    pub place: Place,
    /// The name of what it is about, such as a server, alone and with what that belongs to.
    pub subject: Option<[String; 2]>,
    /// The same for the same result in every run, wherever its place is.
    pub fingerprint: Option<String>,
    /// Why it is accepted.
    pub accepted: Option<String>,
}

/// A place in a file; lines and columns count from 1.
#[derive(Debug, Default)]
pub struct Place {
    pub file: String,
    pub line: usize,
    pub column: Option<usize>,
    /// The line and the column behind it.
    pub end: Option<(usize, usize)>,
}

/// Cases by where they ran.
#[derive(Debug)]
pub struct Matrix {
    /// The columns: a group, such as a transport, and a name, such as a version.
    pub columns: Vec<(String, String)>,
    /// What a row is: `scenario`, `check` or `tool`.
    pub row: &'static str,
    /// Groups of rows; one without a name is not folded.
    pub groups: Vec<RowGroup>,
}

/// Rows of one area.
#[derive(Debug)]
pub struct RowGroup {
    pub name: String,
    /// What the area is about.
    pub title: String,
    pub rows: Vec<Row>,
}

/// One case in every column.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    /// What the case is about.
    pub note: String,
    /// The outcome in each column, and the index of the failure that explains it.
    pub cells: Vec<Option<(Outcome, Option<usize>)>>,
    /// How long the slowest cell took, if that is known.
    pub duration: Option<Duration>,
}

/// What has failed, once for all places with the same cause.
#[derive(Debug)]
pub struct Failure {
    pub outcome: Outcome,
    /// The scenario and the step, or the id of the rule.
    pub title: String,
    /// `MUST` or `SHOULD`, if it is a rule of the specification.
    pub level: Option<String>,
    /// What was observed, as sentences.
    pub messages: Vec<String>,
    /// Every place in which it failed, such as `echo in http/2025-11-25`.
    pub places: Vec<String>,
    /// Whether these are all that there are.
    pub is_everywhere: bool,
    /// What a place is, such as `cells`.
    pub of: &'static str,
    /// What is expected, what to do, and the section of the specification.
    pub rule: Option<Rule>,
    pub source: Option<Source>,
    /// The steps that came before it in the example: what they did, and how long they took.
    pub earlier: Vec<(String, Outcome, Duration)>,
    /// The lines of expected and observed text: a sign, and the line.
    pub difference: Vec<(char, String)>,
    /// The names of the two texts.
    pub sides: [&'static str; 2],
    /// The place that the lines, the traffic and the command line are of.
    pub example: String,
    /// The traffic there.
    pub wire: Vec<TraceLine>,
    /// The last lines on the standard error of the servers, if the traffic does not have them.
    pub stderr: Vec<String>,
    /// Command lines that do it again.
    pub again: Vec<String>,
}

/// A rule, mostly of the specification.
#[derive(Debug)]
pub struct Rule {
    pub text: String,
    pub help: Option<String>,
    /// Where it is written; empty if nowhere.
    pub link: String,
}

/// Some lines of a scenario file.
#[derive(Debug)]
pub struct Source {
    pub path: String,
    /// The line that failed.
    pub line: usize,
    /// Numbers and lines around it.
    pub lines: Vec<(usize, String)>,
}

/// The measures of a server, or what was used of all servers.
#[derive(Debug)]
pub struct Table {
    pub title: String,
    pub heads: Vec<&'static str>,
    pub rows: Vec<TableRow>,
    /// For each measure its name and the bars of its histogram.
    pub histograms: Vec<(String, Vec<Bar>)>,
    pub remarks: Vec<Remark>,
}

/// The measures or counts of one thing.
#[derive(Debug)]
pub struct TableRow {
    /// How it ended, if that is judged.
    pub outcome: Option<Outcome>,
    pub name: String,
    pub cells: Vec<String>,
}

impl Results {
    /// What a report shows of them.
    pub fn summary(&self) -> Summary {
        let run = self.run.as_ref().map(run::section);
        let check = self.check.as_ref().map(check::section);
        let bench = self.bench.as_ref().map(bench::section);
        let migration = self.check.as_ref().and_then(migration::section);
        let diff = self.diff.as_ref().map(diff::section);
        let profiles = self.check.as_ref().and_then(profile::section);
        let fuzz = self.fuzz.as_ref().map(fuzz::section);
        let host = self.host.as_ref().map(host::section);
        let sections: Vec<_> =
            [run, check, profiles, migration, host, diff, fuzz, bench].into_iter().flatten().collect();
        let verdict = sections.iter().map(|section| section.verdict).max().unwrap_or(Verdict::NothingTested);
        Summary { verdict, sections }
    }
}

impl Summary {
    /// The words for how it ended.
    pub(crate) fn phrase(&self) -> &'static str {
        phrase(self.verdict, self.count(|outcome| outcome == Outcome::Warning) > 0)
    }

    /// How many cells, checks and thresholds have an outcome for which the condition holds.
    pub fn count(&self, is_counted: impl Fn(Outcome) -> bool) -> usize {
        let counts = self.sections.iter().flat_map(|section| &section.counts);
        counts.filter(|(outcome, _)| is_counted(*outcome)).map(|(_, count)| count).sum()
    }
}

impl Section {
    /// The words for how it ended.
    pub(crate) fn phrase(&self) -> &'static str {
        phrase(self.verdict, self.counts.iter().any(|(outcome, _)| *outcome == Outcome::Warning))
    }

    /// What came of it: a sentence, or what was counted.
    pub(crate) fn conclusion(&self) -> String {
        let count = |(outcome, count): &(Outcome, usize)| {
            let plural = if *outcome == Outcome::Warning && *count != 1 { "s" } else { "" };
            format!("{count} {}{plural}", outcome.phrase())
        };
        let counts: Vec<_> = self.counts.iter().map(count).collect();
        let all: usize = self.counts.iter().map(|(_, count)| count).sum();
        let all = counted_word(all, self.unit.trim_end_matches('s'));
        let counts = if counts.is_empty() { all } else { format!("{all}: {}", counts.join(", ")) };
        let rows = self.matrix.as_ref().filter(|matrix| !self.unit.starts_with(matrix.row));
        let rows = rows.map(|matrix| counted_word(matrix.groups.iter().map(|it| it.rows.len()).sum(), matrix.row));
        self.sentence.clone().unwrap_or_else(|| rows.into_iter().chain([counts]).collect::<Vec<_>>().join(", "))
    }

    /// The remarks that every reader wants.
    pub(crate) fn main_remarks(&self) -> impl Iterator<Item = &Remark> {
        self.remarks.iter().filter(|remark| !remark.is_detail)
    }
}

impl Remark {
    pub(crate) fn new(outcome: Outcome, text: impl Into<String>) -> Remark {
        Remark { outcome, text: text.into(), is_detail: false }
    }

    /// One of many.
    pub(crate) fn detail(outcome: Outcome, text: impl Into<String>) -> Remark {
        Remark { is_detail: true, ..Remark::new(outcome, text) }
    }
}

impl Table {
    fn new(title: String, heads: &[&'static str]) -> Table {
        Table { title, heads: heads.to_vec(), rows: Vec::new(), histograms: Vec::new(), remarks: Vec::new() }
    }
}

impl Rule {
    /// Whether it is about a header such as `origin: null`, which its text names or quotes.
    pub(crate) fn is_about(&self, header: &str) -> bool {
        let (name, value) = header.split_once(": ").unwrap_or((header, ""));
        let words = name.trim_start_matches("mcp-").replace('-', " ");
        let mut quoted = self.text.split('`').skip(1).step_by(2);
        quoted.any(|it| [name, value, header].iter().any(|part| part.eq_ignore_ascii_case(it)))
            || (words.contains(' ') && self.text.contains(&words))
    }

    /// What its link leads to.
    pub(crate) fn link_name(&self) -> &'static str {
        if self.link.contains("://modelcontextprotocol.io/") { "Specification" } else { "Source" }
    }
}

impl Row {
    /// The worst outcome of the cells.
    pub(crate) fn worst(&self) -> Outcome {
        self.cells.iter().flatten().map(|(outcome, _)| *outcome).min().unwrap_or(Outcome::NotApplicable)
    }
}

impl Failure {
    /// The rule as a sentence, or the scenario and the step.
    pub(crate) fn heading(&self) -> &str {
        self.rule.as_ref().map_or(&self.title, |rule| rule.text.trim_end_matches('.'))
    }

    fn new(outcome: Outcome, title: String) -> Failure {
        Failure {
            outcome,
            title,
            level: None,
            messages: Vec::new(),
            places: Vec::new(),
            is_everywhere: false,
            of: "",
            rule: None,
            source: None,
            earlier: Vec::new(),
            difference: Vec::new(),
            sides: ["expected", "observed"],
            example: String::new(),
            wire: Vec::new(),
            stderr: Vec::new(),
            again: Vec::new(),
        }
    }
}

fn phrase(verdict: Verdict, has_warnings: bool) -> &'static str {
    if verdict == Verdict::Passed && has_warnings { "passed, with warnings" } else { verdict.phrase() }
}

/// The parts that are missing, as a failure.
fn missing_parts(missing: &str) -> Failure {
    let messages = vec![format!("{missing}; run them again, or name the files of their results")];
    Failure { messages, ..Failure::new(Outcome::Error, "parts of the run".to_owned()) }
}

/// The same as a test.
fn missing_case(missing: &str) -> Case {
    let (name, message) = ("all parts".to_owned(), missing.to_owned());
    Case { name, outcome: Outcome::Error, message, ..Case::default() }
}

/// The outcomes that occur, with how often, worst first.
pub(crate) fn counted(outcomes: impl Iterator<Item = Outcome>) -> Vec<(Outcome, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    outcomes.for_each(|outcome| *counts.entry(outcome).or_insert(0) += 1);
    counts.into_iter().collect()
}

/// A count with its word: `1 cell`, `2 cells`.
pub(crate) fn counted_word(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// A duration in a sentence.
pub(crate) fn readable(duration: Duration) -> String {
    // JSON keeps microseconds, and both must give the same page.
    crate::bench::readable(Duration::from_micros((duration.as_secs_f64() * 1e6).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_about_the_headers_that_it_names_or_quotes() {
        let is_about = |text: &str, header| {
            let rule = Rule { text: text.to_owned(), help: None, link: String::new() };
            rule.is_about(header)
        };
        let foreign = "A request with a foreign `Origin` is refused.";
        assert!(is_about(foreign, "origin: http://evil.example"));
        assert!(!is_about(foreign, "accept: application/json"));
        assert!(is_about("The origin `null` is refused.", "origin: null"));
        assert!(is_about("An event stream has the header `X-Accel-Buffering: no`.", "x-accel-buffering: no"));
        assert!(is_about("The end of a session id is no more.", "mcp-session-id: 7"));
    }
}
