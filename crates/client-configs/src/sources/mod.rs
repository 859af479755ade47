//! Where servers come from, and which of two with one name counts.
//!
//! From the highest to the lowest: the variable `CODE_AGENT_MCP_SERVERS`, the files that were named for their servers (a
//! later one before an earlier), the one config file that was named, the file of `CODE_AGENT_MCP_CONFIG_PATH`; and only
//! if there is none of these, what the user's files say for this project alone, the files of every program in the
//! project, then those in the user's folders. Both variables belong to one program, and no other uses them.

mod environment;
mod local;
mod merge;
mod places;
mod values;

use std::{
    collections::HashSet,
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use values::{Setting, settings};

use self::{
    merge::{Merged, merge},
    places::{Candidate, Folders},
};
use super::{
    ClientConfig, ConfiguredServer, LintReport, Machine, check, check::CheckedConfig, dialect::Detected,
    dialect::Dialect, dialect::VARIABLES_DIALECT, document::Document, lint::Analysis, lint::lint,
};
use rehearse_document::{Source, Span};
use rehearse_report::findings::{Code, Finding};

/// The sources that the user named.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A later one counts more than an earlier.
    pub mcp_config: Vec<PathBuf>,
    pub config: Option<PathBuf>,
    /// Whose files they are, if their path and content do not decide. Of the default files, only
    /// those of this program are looked for.
    pub dialect: Option<&'static Dialect>,
}

/// The precedence of a config file, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precedence {
    /// `CODE_AGENT_MCP_SERVERS`
    Servers,
    /// `--mcp-config`
    McpConfig,
    /// `--config`
    Config,
    /// `CODE_AGENT_MCP_CONFIG_PATH`
    ConfigPath,
    /// What a program's file of the user says for this project alone.
    Local,
    /// A program's own file in the project.
    Project,
    /// A program's own file in the folders of the user.
    User,
}

/// What there is to work with, and where all of it comes from.
#[derive(Debug)]
pub struct Effective {
    /// Those of the highest file first, each file in its own order.
    pub servers: Vec<Kept>,
    pub lost: Vec<Lost>,
    pub unread: Vec<Unread>,
    /// What was read, the highest first.
    pub files: Vec<File>,
    /// The default files that were looked for and are not there.
    pub missing: Vec<Missing>,
}

/// A server that counts.
#[derive(Clone, Debug)]
pub struct Kept {
    pub server: ConfiguredServer,
    pub dialect: &'static Dialect,
    /// Its file in [`Effective::files`].
    pub file: usize,
}

/// A server whose name another one has.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    pub name: String,
    pub origin: Origin,
    pub to: Origin,
}

/// A server that could not be understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Unread {
    pub name: String,
    /// Where the first error is.
    pub origin: Origin,
    pub code: &'static Code,
}

/// A place in a source: `file:line:column`.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    pub source: Arc<Source>,
    pub span: Span,
}

/// A source that was read.
#[derive(Clone, Debug)]
pub struct File {
    pub precedence: Precedence,
    /// `None` for what is not a file but a variable.
    pub path: Option<PathBuf>,
    pub report: LintReport,
}

/// A default file without anything to read.
#[derive(Debug)]
pub struct Missing {
    pub precedence: Precedence,
    /// As people would type it.
    pub name: String,
    pub path: PathBuf,
    /// Why it cannot be read; `None` if it is simply not there.
    pub error: Option<io::Error>,
}

/// A file that was named and cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the config {name}, which {precedence} names: {source}")]
pub struct SourceError {
    pub precedence: Precedence,
    pub name: String,
    pub source: io::Error,
}

impl Precedence {
    /// How the user names a file of this precedence; for default files, whose they are.
    pub const fn as_str(self) -> &'static str {
        match self {
            Precedence::Servers => environment::SERVERS,
            Precedence::McpConfig => "--mcp-config",
            Precedence::Config => "--config",
            Precedence::ConfigPath => environment::CONFIG_PATH,
            Precedence::Local => "local",
            Precedence::Project => "project",
            Precedence::User => "user",
        }
    }

    /// Whether the user has asked for it, so that it must be there and be right.
    pub fn is_named(self) -> bool {
        self < Precedence::Local
    }
}

impl fmt::Display for Precedence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Origin {
    fn new(source: &Arc<Source>, span: Span) -> Origin {
        Origin { source: source.clone(), span }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.source.position(self.span.start);
        write!(f, "{}:{line}:{column}", self.source.name)
    }
}

impl File {
    /// Whether what was found is all that there is to find in a file, so that a check of the file finds the same.
    pub fn is_whole(&self) -> bool {
        !matches!(self.precedence, Precedence::Servers | Precedence::Local)
    }
}

impl Effective {
    /// As if these files, of the default ones, held no servers.
    pub fn leave_out(&mut self, is_left_out: impl Fn(&File) -> bool) {
        for file in self.files.iter_mut().filter(|file| !file.precedence.is_named()) {
            if is_left_out(file) {
                file.report.config = None;
            }
        }
        let Merged { servers, lost, unread } = merge(&self.files);
        (self.servers, self.lost, self.unread) = (servers, lost, unread);
    }

    /// What the files have of secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flat_map(|File { report: LintReport { source, secrets, .. }, .. }| {
            secrets.iter().filter_map(|secret| source.text.get(secret.start..secret.end))
        })
    }
}

impl Kept {
    /// The position of its name.
    pub fn origin(&self) -> Origin {
        Origin::new(&self.server.source, self.server.name.span)
    }
}

impl Sources {
    /// Reads and checks all sources. Nothing is started or fetched.
    ///
    /// What is wrong with a text is a finding of its [`File`], also if it cannot be parsed.
    ///
    /// # Errors
    /// A file that was named is missing, or is no file of text.
    pub fn load(&self, machine: &Machine) -> Result<Effective, SourceError> {
        let folders = Folders::of(machine);
        let mut files = Vec::new();
        if let Some(text) = variable(machine, environment::SERVERS).filter(|_| self.asks_for_variables()) {
            let report = environment::lint(text, machine);
            files.push(File { precedence: Precedence::Servers, path: None, report });
        }
        let mut seen = HashSet::new();
        for (precedence, named) in self.named(machine) {
            let path = folders.resolve(named);
            if !seen.insert(path.clone()) {
                continue;
            }
            let name = named.display().to_string();
            match (machine.read)(&path) {
                Ok(text) => files.push(self.file(precedence, name, path, text, machine)),
                Err(source) => return Err(SourceError { precedence, name, source }),
            }
        }
        let mut missing = Vec::new();
        if files.is_empty() {
            for Candidate { path, name, precedence } in folders.candidates(self.dialect) {
                match (machine.read)(&path) {
                    Ok(text) => files.push(self.file(precedence, name, path, text, machine)),
                    Err(error) => {
                        let error = Some(error).filter(|error| !is_absence(error));
                        missing.push(Missing { precedence, name, path, error });
                    }
                }
            }
        }
        let local: Vec<_> = files.iter().filter_map(|file| local::of(file, machine)).collect();
        files.splice(..0, local);
        let Merged { servers, lost, unread } = merge(&files);
        Ok(Effective { servers, lost, unread, files, missing })
    }

    /// Whether the variables count, which belong to one program.
    fn asks_for_variables(&self) -> bool {
        self.dialect.is_none_or(|dialect| dialect.name == VARIABLES_DIALECT.name)
    }

    /// The files that were named, the highest first.
    fn named<'a>(&'a self, machine: &'a Machine) -> Vec<(Precedence, &'a Path)> {
        let of_flag = self.mcp_config.iter().rev().map(|path| (Precedence::McpConfig, path.as_path()));
        let config = self.config.iter().map(|path| (Precedence::Config, path.as_path()));
        let variable = variable(machine, environment::CONFIG_PATH).filter(|_| self.asks_for_variables());
        let variable = variable.map(|path| (Precedence::ConfigPath, Path::new(path)));
        of_flag.chain(config).chain(variable).collect()
    }

    fn file(&self, precedence: Precedence, name: String, path: PathBuf, text: String, machine: &Machine) -> File {
        // The variable is code_agent's, and so is its file.
        let dialect = self.dialect.or((precedence == Precedence::ConfigPath).then(|| *VARIABLES_DIALECT));
        let report = lint(&Source::new(name, text), Some(&path), dialect, Some(machine));
        File { precedence, path: Some(path), report }
    }
}

/// What was read from a part of a source, with everything that was found in it.
fn report(
    source: &Arc<Source>,
    document: &Document,
    config: ClientConfig,
    mut findings: Vec<Finding>,
    (machine, why): (&Machine, &str),
) -> LintReport {
    let root = &document.root;
    check::all(&CheckedConfig::new(&config, root, source, Some(machine)), &mut findings);
    let detected = Some(Detected::certain(config.dialect, why));
    Analysis { detected, config: Some(config), part: None, findings }.into_report(source, root.clone())
}

/// A variable that is set to something.
fn variable<'m>(machine: &'m Machine, name: &str) -> Option<&'m str> {
    machine.variable(name).filter(|value| !value.trim().is_empty())
}

/// Whether there is no such file; on the way to it there may be a file where a folder should be.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests;
