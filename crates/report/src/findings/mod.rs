//! Reports of what was found in configs, for people and for programs. The data is inert: it knows no linter.

mod finding;
mod github;
mod human;
mod json;
mod sarif;
mod snippet;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, str::FromStr, sync::Arc};

pub use finding::{Code, Finding, Rule, Severity};

use rehearse_document::{Source, Span};

/// The formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingsFormat {
    /// For people; styled with ANSI sequences.
    Human,
    /// Everything.
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
    /// Every kind of finding that the linter knows.
    pub rules: Vec<Rule>,
    /// Whether warnings fail.
    pub is_strict: bool,
    /// Whether only what fails is shown.
    pub is_quiet: bool,
}

/// A file, its servers and its findings. Names and sentences have no secrets in them; of the source, only a report
/// hides them.
#[derive(Clone, Debug)]
pub struct File {
    /// As the user named it.
    pub path: String,
    pub source: Arc<Source>,
    /// Whether it could be parsed. Of other files no text is shown.
    pub is_readable: bool,
    pub dialect: Option<Dialect>,
    /// In the order of the text; those of projects come after the others.
    pub servers: Vec<Server>,
    /// In the order of the text.
    pub findings: Vec<Finding>,
    /// What is not shown of the source.
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
    /// The folder of the only project that has it; `None` if all have it.
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
    /// The names of its tools, without those that its filter leaves out.
    Reached {
        tools: Vec<String>,
        left_out: usize,
    },
    /// A finding says why.
    Failed,
    Interrupted,
}

/// Where a report is read.
#[derive(Clone, Debug)]
pub struct Layout {
    /// How many columns there are.
    pub width: usize,
    /// The folder that relative paths begin at.
    pub directory: PathBuf,
}

/// The result of a file, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Valid,
    Invalid,
    Unreadable,
}

/// How many findings there are of each severity.
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

/// A string that names no format.
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

    /// Adds findings that come later, such as those of a connection.
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
    /// The worst of all files.
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
