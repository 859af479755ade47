//! Reports of what was found in configs, for people and for programs.

mod explanation;
mod github;
mod human;
mod json;
mod place;
mod sarif;
mod snippet;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, str::FromStr, sync::Arc};

pub use explanation::explanation;

use crate::{
    config::{
        Examined, Project, Source, Span,
        dialect::Detected,
        finding::{Code, Finding, Severity},
        secret::{Censor, secrets_of},
        server::ServerConfig,
    },
    transport::Transport,
};

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

/// What came of several files.
#[derive(Debug)]
pub struct Report {
    pub files: Vec<File>,
    /// Whether warnings fail.
    pub is_strict: bool,
    /// Whether only what fails is told.
    pub is_quiet: bool,
}

/// A file, its servers and what was found in it. What is secret in it, only a report hides.
#[derive(Debug)]
pub struct File {
    /// As it was named.
    pub path: String,
    pub source: Arc<Source>,
    pub is_readable: bool,
    pub detected: Option<Detected>,
    /// In the order of the text; those of projects come after the others.
    pub servers: Vec<Server>,
    /// In the order of the text.
    findings: Vec<Finding>,
    secrets: Vec<Span>,
    shows_secrets: bool,
}

/// A server of a file.
#[derive(Debug)]
pub struct Server {
    pub name: String,
    /// The folder of the only project that has it; `None` if all have it.
    pub project: Option<String>,
    pub transport: Transport,
    pub is_enabled: bool,
    pub contact: Contact,
}

/// What came of an attempt to reach a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Contact {
    #[default]
    NotTried,
    /// The names of its tools, without those that its filter leaves out.
    Reached { tools: Vec<String>, left_out: usize },
    /// A finding says why.
    Failed,
    /// Somebody interrupted it.
    GivenUp,
}

/// Where a report is read.
#[derive(Clone, Debug)]
pub struct Layout {
    /// How many columns there are.
    pub width: usize,
    /// The folder that relative paths begin at.
    pub directory: PathBuf,
}

/// How a file has done, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Valid,
    Invalid,
    /// Nobody could read it.
    Unreadable,
}

/// How many findings there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    errors: usize,
    warnings: usize,
    advice: usize,
}

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

/// A text that names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {0:?}; there are human, json, sarif and github")]
pub struct UnknownFormat(pub String);

impl FromStr for FindingsFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        FindingsFormat::ALL
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

impl File {
    /// What an examination brought, with its secrets hidden unless they are to be shown.
    pub fn new(path: String, examined: Examined, shows_secrets: bool) -> File {
        let Examined { source, is_readable, detected, config, secrets, findings, .. } = examined;
        let censor = Censor::new(&source, &secrets);
        let shown = |text: String| if shows_secrets { text } else { censor.name(&text).into_owned() };
        let server = |server: ServerConfig, project: Option<&str>| Server {
            is_enabled: server.is_enabled(),
            name: shown(server.name.value),
            project: project.map(|folder| shown(folder.to_owned())),
            transport: server.transport.value,
            contact: Contact::NotTried,
        };
        let (whole, projects) = config.map(|config| (config.servers, config.projects)).unwrap_or_default();
        let of_project = |Project { folder, servers, .. }: Project| {
            servers.into_iter().map(|it| server(it, Some(&folder))).collect::<Vec<_>>()
        };
        let servers = whole.into_iter().map(|it| server(it, None)).chain(projects.into_iter().flat_map(of_project));
        let (servers, secrets) = (servers.collect(), if shows_secrets { Vec::new() } else { secrets });
        File { path, source, is_readable, detected, servers, findings, secrets, shows_secrets }
    }

    /// A file that nobody can read.
    pub fn unreadable(path: String, source: Arc<Source>, finding: Finding) -> File {
        let (detected, findings, secrets) = (None, vec![finding], secrets_of(&source, None));
        let servers = Vec::new();
        File { path, source, is_readable: false, detected, servers, findings, secrets, shows_secrets: false }
    }

    /// Adds what was found later.
    pub fn add(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
        self.findings.sort_by_key(|finding| finding.problem.span.start);
    }

    /// What kinds of findings there are.
    pub fn codes(&self) -> impl Iterator<Item = &'static Code> {
        self.findings.iter().map(|finding| finding.code)
    }

    /// How it has done.
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
}

impl Report {
    /// The worst of all files.
    pub fn verdict(&self) -> Verdict {
        self.files.iter().map(|file| file.verdict(self.is_strict)).max().unwrap_or(Verdict::Valid)
    }

    /// The findings of a file that are told, as they may be told: one by one, for hardly anybody reads thousands.
    fn told<'f>(&self, file: &'f File) -> impl Iterator<Item = Finding> + use<'f> {
        let mut censor = (!file.shows_secrets).then(|| Censor::new(&file.source, &file.secrets));
        self.chosen(file).map(move |finding| match &mut censor {
            Some(censor) => censor.finding(finding),
            None => finding.clone(),
        })
    }

    /// How many findings of a file are told.
    fn count(&self, file: &File) -> usize {
        self.chosen(file).count()
    }

    fn chosen<'f>(&self, file: &'f File) -> impl Iterator<Item = &'f Finding> + use<'f> {
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
