//! Reports of config findings, as text and for programs. They do not depend on the linter.

mod alerts;
mod finding;
mod human;
mod json;
mod snippet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use finding::{Code, Finding, Rule, Severity};

use crate::{Format, Layout, github, sarif};
use rehearse_document::{Source, Span};

/// The results of several files.
#[derive(Debug)]
pub struct Report {
    pub files: Vec<File>,
    /// All kinds of findings of the linter.
    pub rules: Vec<Rule>,
    /// Whether warnings are failures.
    pub is_strict: bool,
    /// Whether to show only failures.
    pub is_quiet: bool,
}

/// A file, its servers and its findings. Names and messages contain no secrets; the renderers mask those in the source.
#[derive(Clone, Debug)]
pub struct File {
    /// As the user named it.
    pub path: String,
    pub source: Arc<Source>,
    /// Whether the file could be parsed.
    pub is_readable: bool,
    pub dialect: Option<Dialect>,
    /// What it is, if it is a file with which a server is released, and no config.
    pub release: Option<&'static str>,
    /// In the order of the file; servers of projects come last.
    pub servers: Vec<Server>,
    /// In the order of the file.
    pub findings: Vec<Finding>,
    /// The spans to mask in the source.
    pub secrets: Vec<Span>,
}

/// The program that a file is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub name: &'static str,
    pub why: String,
    /// Whether another program is possible.
    pub is_guess: bool,
}

/// A server of a file.
#[derive(Clone, Debug)]
pub struct Server {
    pub name: String,
    /// The folder of its project; `None` for a global server.
    pub project: Option<String>,
    pub transport: &'static str,
    pub is_enabled: bool,
    pub contact: Contact,
}

/// The result of an attempt to reach a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Contact {
    #[default]
    NotTried,
    /// The names of its tools, without filtered ones.
    Reached {
        tools: Vec<String>,
        left_out: usize,
    },
    /// A finding has the reason.
    Failed,
    Interrupted,
}

/// The result of a file, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Valid,
    Invalid,
    Unreadable,
}

/// The number of findings by severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    errors: usize,
    warnings: usize,
    advice: usize,
}

/// A line and a column, both from 1; columns count characters.
type Position = (usize, usize);

impl File {
    /// A file that cannot be read or parsed.
    pub fn unreadable(path: String, source: Arc<Source>, secrets: Vec<Span>, finding: Finding) -> File {
        let (servers, findings) = (Vec::new(), vec![finding]);
        File { path, source, is_readable: false, dialect: None, release: None, servers, findings, secrets }
    }

    /// Adds findings, such as those of a connection attempt.
    pub fn add(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
        self.findings.sort_by_key(|finding| finding.problem.span.start);
    }

    pub fn verdict(&self, is_strict: bool) -> Verdict {
        let counts = self.counts();
        match self.is_readable {
            false => Verdict::Unreadable,
            true if counts.errors > 0 || (is_strict && counts.warnings > 0) => Verdict::Invalid,
            true => Verdict::Valid,
        }
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for finding in &self.findings {
            match finding.code.severity() {
                Severity::Error => counts.errors += 1,
                Severity::Warning => counts.warnings += 1,
                Severity::Advice => counts.advice += 1,
            }
        }
        counts
    }

    /// Where a finding begins and where it ends.
    fn positions(&self, finding: &Finding) -> (Position, Position) {
        let Span { start, end } = finding.problem.span;
        (self.source.position(start), self.source.position(end.max(start)))
    }
}

impl Report {
    /// The report: JSON, SARIF, the annotations of GitHub, or text for every other format.
    pub fn render(&self, format: Format, layout: &Layout) -> Vec<u8> {
        match format {
            Format::Json => json::render(self),
            Format::Sarif => sarif::render([&alerts::scan(self)].into_iter(), &layout.directory),
            Format::Github => {
                let alerts = alerts::scan(self).alerts;
                let command =
                    alerts.iter().map(|it| github::command(it.outcome, Some(&it.place), &it.rule, &it.message));
                command.collect::<String>().into_bytes()
            }
            _ => human::render(self, layout).into_bytes(),
        }
    }

    /// The worst verdict of all files.
    pub fn verdict(&self) -> Verdict {
        self.files.iter().map(|file| file.verdict(self.is_strict)).max().unwrap_or(Verdict::Valid)
    }

    /// The findings of a file that are shown.
    fn shown<'f>(&self, file: &'f File) -> impl Iterator<Item = &'f Finding> + use<'f> {
        let least = match (self.is_quiet, self.is_strict) {
            (false, _) => Severity::Advice,
            (true, true) => Severity::Warning,
            (true, false) => Severity::Error,
        };
        file.findings.iter().filter(move |finding| finding.code.severity() >= least)
    }

    fn counts(&self) -> Counts {
        let add = |sum: Counts, it: Counts| Counts {
            errors: sum.errors + it.errors,
            warnings: sum.warnings + it.warnings,
            advice: sum.advice + it.advice,
        };
        self.files.iter().map(File::counts).fold(Counts::default(), add)
    }
}
