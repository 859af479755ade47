//! From a file to its servers and its findings.

use std::{path::Path, sync::Arc};

use super::{
    ClientConfig, ConfiguredServer, Machine, Project, check, codes, dialect::Detected, dialect::Dialect,
    dialect::detect, dialect::is_about_other_things, document, document::Document, guess::guess, read,
    secret::Redactor, secret::secrets_of, secret::values_of,
};
use rehearse_document::{Node, Problems, Source, Span};
use rehearse_report::findings::{Contact, File, Finding, Server, Severity};

/// A config with all findings.
#[derive(Clone, Debug)]
pub struct LintReport {
    pub source: Arc<Source>,
    /// Whether the text could be parsed, in the syntax of its program.
    pub is_readable: bool,
    /// What the text says; `None` if it could not be parsed.
    pub root: Option<Node>,
    /// `None` if the text cannot be parsed, or nothing in it says for which program it is.
    pub detected: Option<Detected>,
    /// The servers that could be read; none if there is no dialect.
    pub config: Option<ClientConfig>,
    /// What must not be shown, in the order of the text. Of a text that cannot be parsed no value is shown.
    pub secrets: Vec<Span>,
    /// In the order of the text.
    pub findings: Vec<Finding>,
}

impl LintReport {
    /// How many findings have this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.code.severity() == severity).count()
    }

    /// Why its program takes nothing from the file; errors about one server are only that server's.
    pub fn rejections(&self) -> impl Iterator<Item = &Finding> {
        let is_of_all = |finding: &&Finding| finding.code.severity() == Severity::Error && finding.server.is_none();
        self.findings.iter().filter(is_of_all)
    }

    /// The file of a report, with its secrets hidden unless they are to be shown.
    pub fn into_file(self, path: String, shows_secrets: bool) -> File {
        let LintReport { source, is_readable, detected, config, secrets, mut findings, .. } = self;
        let redactor = Redactor::new(&source, &secrets);
        let name = |text: &str| if shows_secrets { text.to_owned() } else { redactor.name(text).into_owned() };
        if !shows_secrets {
            findings = findings.iter().map(|finding| redactor.finding(finding)).collect();
        }
        let server = |server: &ConfiguredServer, project: Option<&str>| Server {
            name: name(&server.name.value),
            project: project.map(name),
            transport: server.transport.value.as_str(),
            is_enabled: server.is_enabled(),
            contact: Contact::NotTried,
        };
        let config = config.map(|config| (config.servers, config.projects, config.incomplete));
        let (whole, projects, incomplete) = config.unwrap_or_default();
        let mut servers: Vec<_> = whole.iter().map(|it| server(it, None)).collect();
        for Project { folder, servers: of_project, .. } in &projects {
            servers.extend(of_project.iter().map(|it| server(it, Some(folder))));
        }
        servers.extend(incomplete.iter().map(|it| server(it, None)));
        let dialect = detected.map(|Detected { dialect, why, is_guess }| rehearse_report::findings::Dialect {
            name: dialect.name,
            why,
            is_guess,
        });
        let secrets = if shows_secrets { Vec::new() } else { secrets };
        File { path, source, is_readable, dialect, release: None, servers, findings, secrets }
    }
}

/// A config that cannot be parsed.
pub(super) fn unreadable(source: &Arc<Source>, problems: Problems) -> LintReport {
    let finding = |problem| Finding { code: &codes::SYNTAX, problem, server: None };
    LintReport {
        source: source.clone(),
        is_readable: false,
        root: None,
        detected: None,
        config: None,
        secrets: values_of(source),
        findings: problems.0.into_iter().map(finding).collect(),
    }
}

/// Reads and checks a config. Nothing is started or fetched.
///
/// The dialect is detected from the path, then from the content, unless it is `forced`. Without a machine, nothing
/// is checked that is true on one machine only: programs, folders, variables.
pub fn lint(
    source: &Arc<Source>,
    path: Option<&Path>,
    forced: Option<&'static Dialect>,
    machine: Option<&Machine>,
) -> LintReport {
    match document::read(source, path, forced.map(|dialect| dialect.syntax)) {
        Ok(document) => analyze(source, &document, path, forced, machine).into_report(source, document.root),
        Err(problems) => unreadable(source, problems),
    }
}

/// What a program makes of a text, and what is wrong with that.
pub(super) struct Analysis {
    pub(super) detected: Option<Detected>,
    pub(super) config: Option<ClientConfig>,
    /// What the text says to its program, if that is not all of it.
    pub(super) part: Option<Node>,
    /// In no order.
    pub(super) findings: Vec<Finding>,
}

impl Analysis {
    pub(super) fn into_report(self, source: &Arc<Source>, root: Node) -> LintReport {
        let Analysis { detected, config, part, mut findings } = self;
        findings.sort_by_key(|finding| finding.problem.span.start);
        let is_readable = findings.iter().all(|finding| finding.code != &codes::SYNTAX);
        let secrets = secrets_of(source, &root);
        let root = Some(part.unwrap_or(root));
        LintReport { source: source.clone(), is_readable, root, detected, config, secrets, findings }
    }
}

fn analyze(
    source: &Arc<Source>,
    document: &Document,
    path: Option<&Path>,
    forced: Option<&'static Dialect>,
    machine: Option<&Machine>,
) -> Analysis {
    let mut findings = Vec::new();
    let detected = match forced {
        Some(dialect) => Some(Detected::certain(dialect, "set by --dialect")),
        None => {
            let known = path.and_then(|path| detect(path, &document.root, source));
            known.or_else(|| guess(path, document, source, &mut findings))
        }
    };
    let Some(dialect) = detected.as_ref().map(|detected| detected.dialect) else {
        findings.push(read::unknown_program(&document.root));
        return Analysis { detected, config: None, part: None, findings };
    };
    let is_section = path.is_some_and(|path| is_about_other_things(&path.to_string_lossy()));
    let part = dialect.as_settings(&document.root, is_section);
    let root = part.as_ref().unwrap_or(&document.root);
    document.check_syntax(root, source, dialect, &mut findings);
    let mut config = ClientConfig::new(dialect);
    if document.is_empty() {
        if findings.is_empty() {
            let finding = codes::NO_SERVERS.at(root.span, "the file is empty");
            findings.push(finding.hint("an object with nothing in it is {}"));
        }
    } else if findings.iter().all(|finding| finding.code != &codes::SYNTAX) {
        config = read::read(root, dialect, source, &mut findings);
        check::all(&check::CheckedConfig::new(&config, root, source, machine), &mut findings);
        if dialect.is_without_servers(&source.name) {
            // What the program does not read cannot be wrong.
            findings.retain(|it| it.server.is_none() || it.code == &codes::SECRET);
        }
    }
    document.rewrite_hints(&mut findings);
    Analysis { detected, config: Some(config), part, findings }
}

#[cfg(test)]
mod tests;
