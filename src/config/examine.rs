//! From a file to what is in it and what is wrong with it.

use std::{path::Path, sync::Arc};

use super::{
    ClientConfig, Machine, Node, Problems, Source, Span,
    check::{self, Subject},
    dialect::{Detected, Dialect, by_path, detect, is_about_other_things, without_ending},
    document,
    finding::{Finding, Severity, codes},
    read::{self, read_guessed},
    secret::secrets_of,
};

/// A config with everything that was found in it.
#[derive(Clone, Debug)]
pub struct Examined {
    pub source: Arc<Source>,
    /// Whether the text could be read at all, in the syntax of its program.
    pub is_readable: bool,
    /// What the text says; `None` if it could not be read.
    pub root: Option<Node>,
    /// `None` if nobody can read the text, or it has no servers in any dialect's place.
    pub detected: Option<Detected>,
    /// The servers that could be understood; none if there is no dialect.
    pub config: Option<ClientConfig>,
    /// What must not be shown, in the order of the text.
    pub secrets: Vec<Span>,
    /// In the order of the text.
    pub findings: Vec<Finding>,
}

impl Examined {
    /// How many findings are as bad as this.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.code.severity() == severity).count()
    }

    /// Why its program takes nothing from the file; errors that are about one server are that server's.
    pub fn rejections(&self) -> impl Iterator<Item = &Finding> {
        let is_of_all = |finding: &&Finding| finding.code.severity() == Severity::Error && finding.server.is_none();
        self.findings.iter().filter(is_of_all)
    }
}

/// A config that nobody can read.
pub(super) fn unreadable(source: &Arc<Source>, problems: Problems) -> Examined {
    let finding = |problem| Finding { code: &codes::SYNTAX, problem, server: None };
    Examined {
        source: source.clone(),
        is_readable: false,
        root: None,
        detected: None,
        config: None,
        secrets: secrets_of(source, None),
        findings: problems.0.into_iter().map(finding).collect(),
    }
}

/// Says that the servers of a file in one program's place are another's.
fn of_another(path: &Path, dialect: &Dialect, root: &Node) -> Option<Finding> {
    let (owner, _) = by_path(&without_ending(path)).filter(|(owner, _)| !std::ptr::eq(*owner, dialect))?;
    let servers = dialect.servers(root).filter(|_| owner.servers(root).is_none())?;
    let entry = root.entries().ok()?.iter().find(|entry| std::ptr::eq(&raw const entry.node, servers))?;
    let message = format!("{} looks into this file as well, and finds no servers", owner.program);
    let hint = format!("it looks for them under `{}`", owner.place_in(root, false).join("."));
    Some(codes::NO_SERVERS.at(entry.key_span, message).hint(hint))
}

/// Programs with servers in files that no dialect is for, by what stands in the `$schema` of such a file.
const UNKNOWN_PROGRAMS: [(&str, &str); 1] = [("charm.land/crush", "Crush")];

/// Says that a file is one of a program that is not known here.
fn of_unknown(root: &Node) -> Option<Finding> {
    let schema = root.get("$schema")?;
    let text = schema.str().ok()?;
    let (_, program) = UNKNOWN_PROGRAMS.iter().find(|(part, _)| text.contains(part))?;
    let message = format!("this is a file of {program}, which is not known here: nothing in it is checked");
    let hint = "if another program reads it, name that with `--dialect`";
    Some(codes::NO_SERVERS.at(schema.span, message).hint(hint))
}

/// Whether a value is told twice, for how it is written and for its type: whoever mends the type writes it anew.
fn mends_both(later: &mut Finding, earlier: &mut Finding) -> bool {
    let is_twice = later.problem.span == earlier.problem.span
        && (later.code, earlier.code) == (&codes::VALUE_TYPE, &codes::JSON_FORM);
    if is_twice {
        earlier.problem.hint = later.problem.hint.take();
    }
    is_twice
}

/// Reads and checks a config. Nothing is started or fetched.
///
/// The dialect is told by the path, then by what the file holds, unless it is `forced`. Without a machine, nothing is
/// said about what is there on one machine and not on another: programs, folders, variables.
pub fn examine(
    source: &Arc<Source>,
    path: Option<&Path>,
    forced: Option<&'static Dialect>,
    machine: Option<&Machine>,
) -> Examined {
    let mut findings = Vec::new();
    let mut document = match document::read(source, path) {
        Ok(document) => document,
        Err(problems) => return unreadable(source, problems),
    };
    let unknown = if forced.is_none() { of_unknown(&document.root) } else { None };
    let detected = match (forced, &unknown) {
        (Some(dialect), _) => Some(Detected::certain(dialect, "it was asked for")),
        (None, Some(_)) => None,
        (None, None) => detect(path, &document, source),
    };
    let secrets = secrets_of(source, Some(&document.root));
    if let Some(Detected { dialect, .. }) = &detected {
        let is_section = path.is_some_and(|path| is_about_other_things(&path.to_string_lossy()));
        if let Some(root) = dialect.without_others(&document.root, is_section) {
            document.root = root;
        }
        let has_owner = path.is_some_and(|path| by_path(&without_ending(path)).is_some());
        document.judge(source, dialect, forced.is_none() && !has_owner, &mut findings);
    }
    let config = detected.as_ref().map(|Detected { dialect, rivals, .. }| {
        if document.is_empty() {
            return ClientConfig::new(dialect);
        }
        let config = read_guessed(&document.root, dialect, rivals, source, &mut findings);
        check::all(&Subject::new(&config, &document.root, source, machine), &mut findings);
        config
    });
    if let (Some(Detected { dialect, .. }), None) = (&detected, forced) {
        findings.extend(path.and_then(|path| of_another(path, dialect, &document.root)));
    }
    if document.is_empty() && findings.is_empty() {
        findings.push(document.emptiness());
    } else if detected.is_none() {
        findings.push(unknown.unwrap_or_else(|| read::nowhere(&document.root)));
    }
    findings.sort_by_key(|finding| finding.problem.span.start);
    findings.dedup_by(mends_both);
    let is_readable = findings.iter().all(|finding| finding.code != &codes::SYNTAX);
    let root = Some(document.root);
    Examined { source: source.clone(), is_readable, root, detected, config, secrets, findings }
}

#[cfg(test)]
mod tests;
