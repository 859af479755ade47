//! The options that select configs, for all commands that use configs.

pub(crate) mod dialect_name;
pub(crate) mod resolved_server;
pub(crate) mod walk;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use self::{dialect_name::dialect, walk::project};
use crate::cli::Failure;
use rehearse_client_configs::{
    LintReport, Machine,
    dialect::Dialect,
    secret::{Redactor, mask_source},
    sources::{Effective, File, Missing, Precedence, SourceError, Sources},
};
use rehearse_document::{Diagnostic, Diagnostics, Source};
use rehearse_release::check;
use rehearse_report::findings::{Finding, Severity};

/// How many problems of one source are shown.
pub(crate) const MOST_SHOWN: usize = 20;

#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Servers")]
pub(crate) struct SourceArgs {
    /// A config file; the last one has the highest precedence (repeatable)
    #[arg(long, value_name = "FILE")]
    mcp_config: Vec<PathBuf>,
    /// Config file with lower precedence than --mcp-config
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    config: Option<PathBuf>,
    /// The client of the config files [default: detected]
    #[arg(long, value_name = "NAME", value_parser = dialect, hide_short_help = true)]
    dialect: Option<&'static Dialect>,
}

impl SourceArgs {
    /// The arguments that select one file.
    pub(crate) fn for_file(path: &Path, dialect: Option<&'static Dialect>) -> SourceArgs {
        SourceArgs { mcp_config: Vec::new(), config: Some(path.to_owned()), dialect }
    }

    /// The named config with the highest precedence.
    pub(crate) fn named_file(&self) -> Option<&Path> {
        self.mcp_config.last().or(self.config.as_ref()).map(PathBuf::as_path)
    }

    /// The named dialect.
    pub(crate) fn dialect(&self) -> Option<&'static Dialect> {
        self.dialect
    }

    /// The options, as on the command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let files = self.mcp_config.iter().map(|file| ("--mcp-config", file));
        let files = files.chain(self.config.iter().map(|file| ("--config", file)));
        let files = files.map(|(flag, file)| [flag.to_owned(), file.display().to_string()]);
        let dialect = self.dialect.map(|dialect| ["--dialect".to_owned(), dialect.name.to_owned()]);
        files.chain(dialect).flatten().collect()
    }

    /// Reads the configs that the options or the environment name, else the default files of all programs.
    ///
    /// # Errors
    /// A named file cannot be read, or is a release file.
    pub(crate) fn load(&self, machine: &Machine) -> Result<Effective, Failure> {
        let SourceArgs { mcp_config, config, dialect } = self;
        let sources = Sources { mcp_config: mcp_config.clone(), config: config.clone(), dialect: *dialect };
        let effective = sources.load(machine)?;
        for File { path, report, .. } in effective.files.iter().filter(|_| dialect.is_none()) {
            path.iter().try_for_each(|path| refuse_release_file(path, &report.source))?;
        }
        Ok(effective)
    }
}

/// Refuses a file with which a server is released: no program reads its servers from it.
///
/// # Errors
/// It is one.
pub(crate) fn refuse_release_file(path: &Path, source: &Arc<Source>) -> Result<(), Failure> {
    let Some(report) = check(source, path, None) else { return Ok(()) };
    let (file, kind) = (&source.name, report.release.name());
    Err(Failure::Usage(format!("{file} is a {kind}, not a config; `rehearse validate-config {file}` checks it")))
}

/// The errors and warnings of a source, with its text.
fn problems(file: &File, show_secrets: bool) -> Diagnostics {
    let wrong = file.report.findings.iter().filter(|finding| finding.code.severity() > Severity::Advice);
    diagnostics(wrong, &file.report, show_secrets)
}

/// Findings with their source text.
pub(crate) fn diagnostics<'f>(
    findings: impl Iterator<Item = &'f Finding>,
    report: &LintReport,
    show_secrets: bool,
) -> Diagnostics {
    let LintReport { source, secrets, .. } = report;
    let redactor = Redactor::new(source, secrets);
    let shown = if show_secrets { source.clone() } else { mask_source(source, secrets) };
    let diagnostic = |finding: &Finding| {
        let problem = if show_secrets { finding.problem.clone() } else { redactor.problem(&finding.problem) };
        Diagnostic { problem, source: shown.clone() }
    };
    Diagnostics(findings.take(MOST_SHOWN).map(diagnostic).collect())
}

/// Default files that cannot be read, and the problems of sources that are not files.
pub(crate) fn warnings(effective: &Effective, show_secrets: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for Missing { name, error, .. } in &effective.missing {
        lines.extend(error.as_ref().map(|error| format!("{name} cannot be read: {error}")));
    }
    for file in effective.files.iter().filter(|file| !file.report.is_readable || !file.is_whole()) {
        lines.extend(problems(file, show_secrets).0.iter().map(ToString::to_string));
    }
    lines
}

/// Checks that all named files can be parsed.
///
/// # Errors
/// The problems of a named file that cannot be parsed.
pub(crate) fn check_readable(effective: &Effective, show_secrets: bool) -> Result<(), Failure> {
    let unreadable = |file: &&File| file.precedence.is_named() && !file.report.is_readable;
    match effective.files.iter().find(unreadable) {
        Some(file) => Err(Failure::Usage(problems(file, show_secrets).to_string())),
        None => Ok(()),
    }
}

/// The base of relative paths in a source: the folder of its project.
pub(crate) fn folder(file: &File, machine: &Machine) -> PathBuf {
    match &file.path {
        Some(path) if !matches!(file.precedence, Precedence::User | Precedence::Local) => project(path),
        _ => machine.directory.clone(),
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Failure::Usage(error.to_string())
    }
}
