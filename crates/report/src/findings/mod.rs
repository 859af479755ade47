//! Reports of config findings, as text and for programs. They do not depend on the linter.

mod finding;
pub(crate) mod github;
mod human;
mod json;
pub(crate) mod sarif;
mod snippet;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, str::FromStr, sync::Arc};

pub use finding::{Code, Finding, Rule, Severity};

use rehearse_document::{Source, Span};

/// The formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingsFormat {
    /// Text, styled with ANSI sequences.
    Human,
    /// The whole report.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Workflow commands of GitHub Actions.
    Github,
}

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
    /// Whether the file could be parsed. Other files are not quoted.
    pub is_readable: bool,
    pub dialect: Option<Dialect>,
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

/// The layout of a report.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The number of columns.
    pub width: usize,
    /// The base of relative paths.
    pub directory: PathBuf,
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

impl FindingsFormat {
    pub const ALL: [FindingsFormat; 4] =
        [FindingsFormat::Human, FindingsFormat::Json, FindingsFormat::Sarif, FindingsFormat::Github];

    pub const fn as_str(self) -> &'static str {
        match self {
            FindingsFormat::Human => "human",
            FindingsFormat::Json => "json",
            FindingsFormat::Sarif => "sarif",
            FindingsFormat::Github => "github",
        }
    }

    /// The report.
    pub fn render(self, report: &Report, layout: &Layout) -> Vec<u8> {
        match self {
            FindingsFormat::Human => human::render(report, layout).into_bytes(),
            FindingsFormat::Json => json::render(report),
            FindingsFormat::Sarif => sarif::render(report, layout),
            FindingsFormat::Github => github::render(report).into_bytes(),
        }
    }
}

/// The name of an unknown format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {0:?}; there are human, json, sarif and github")]
pub struct UnknownFormat(pub String);

impl FromStr for FindingsFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let format = FindingsFormat::ALL.into_iter().find(|format| format.as_str() == text);
        format.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

impl File {
    /// A file that cannot be read or parsed.
    pub fn unreadable(path: String, source: Arc<Source>, finding: Finding) -> File {
        let (servers, secrets) = (Vec::new(), Vec::new());
        File { path, source, is_readable: false, dialect: None, servers, findings: vec![finding], secrets }
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
