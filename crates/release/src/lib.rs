//! Files with which a server is released: `server.json` of the MCP registry, `manifest.json` of a bundle (MCPB), and
//! `SKILL.md`. They are no configs: they say what a server is, not which ones a program uses.
//!
//! [`check`] reads and checks one, [`starts`] says how its server is started, and [`compare`] finds where both differ.

mod bundle;
mod listed;
mod package;
mod server_json;
mod shape;
mod skill;
mod start;
#[cfg(test)]
mod tests;
mod version;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rehearse_client_configs::{
    Machine, PathKind, codes, placeholder,
    secret::{Redactor, secrets_of, values_of},
};
use rehearse_document::{Node, Problems, Source, Span, Value, json};
use rehearse_report::findings::{File, Finding};

pub use listed::{Offered, compare};
pub use package::Package;
pub use start::{Start, starts};

/// A kind of release file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    ServerJson,
    Bundle,
    Skill,
}

impl Release {
    /// The kind that files of this name may be of; `None` if there is none.
    pub fn by_path(path: &Path) -> Option<Release> {
        match path.file_name()?.to_str()? {
            "server.json" => Some(Release::ServerJson),
            "manifest.json" => Some(Release::Bundle),
            "SKILL.md" => Some(Release::Skill),
            _ => None,
        }
    }

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Release::ServerJson => "server.json of the MCP registry",
            Release::Bundle => "manifest of an MCP bundle",
            Release::Skill => "skill",
        }
    }
}

/// A release file with all findings.
#[derive(Clone, Debug)]
pub struct ReleaseReport {
    pub release: Release,
    pub source: Arc<Source>,
    /// What the file says; `None` if it could not be parsed.
    pub root: Option<Node>,
    /// In the order of the text.
    pub findings: Vec<Finding>,
}

impl ReleaseReport {
    /// The file of a report, with its secrets hidden unless they are to be shown.
    pub fn into_file(self, path: String, shows_secrets: bool) -> File {
        let ReleaseReport { release, source, root, findings } = self;
        let is_readable = root.is_some();
        let secrets = match root {
            _ if shows_secrets => Vec::new(),
            Some(root) => secrets_of(&source, &root),
            None => values_of(&source),
        };
        let redactor = Redactor::new(&source, &secrets);
        let findings = match shows_secrets {
            true => findings,
            false => findings.iter().map(|finding| redactor.finding(finding)).collect(),
        };
        let (release, servers) = (Some(release.name()), Vec::new());
        File { path, source, is_readable, dialect: None, release, servers, findings, secrets }
    }
}

/// The folder of a release file, if files can be looked for on this machine.
struct Folder<'a> {
    path: &'a Path,
    machine: Option<&'a Machine>,
}

impl Folder<'_> {
    /// The text of a file.
    fn read(&self, path: &str) -> Option<String> {
        let machine = self.machine?;
        (machine.read)(&self.place(machine, path)).ok()
    }

    fn place(&self, machine: &Machine, path: &str) -> PathBuf {
        machine.system.join(&machine.system.join(&machine.directory, self.path), path)
    }

    /// A finding about a file that is not there. A path with variables, or of another machine, is not looked for.
    fn check(&self, path: &str, span: Span, findings: &mut Vec<Finding>) {
        let Some(machine) = self.machine else { return };
        let is_relative = !path.is_empty() && !path.contains("${") && !path.contains(':') && !path.starts_with('/');
        if is_relative && machine.path_kind(&self.place(machine, path)) == PathKind::Nothing {
            let finding = codes::RELEASE_FILE.at(span, format!("there is no file `{path}` beside this one"));
            findings.push(finding.hint("correct the path, or build the file before you release it"));
        }
    }
}

/// Whether a file that was found is a release file for certain: its format has a mark, or a name that nothing else has.
pub fn is_marked(path: &Path, text: &str) -> bool {
    let read = || json::parse(&Source::new("", text)).ok();
    match Release::by_path(path) {
        Some(Release::ServerJson) => read().is_some_and(|document| server_json::is_marked(&document.root)),
        Some(Release::Bundle) => read().is_some_and(|document| bundle::is_marked(&document.root)),
        Some(Release::Skill) => true,
        None => false,
    }
}

/// Reads and checks a release file; `None` if it is none, by its name and what it says. Nothing is started or fetched.
///
/// Without a machine, no files are looked for.
pub fn check(source: &Arc<Source>, path: &Path, machine: Option<&Machine>) -> Option<ReleaseReport> {
    let release = Release::by_path(path)?;
    let report = |root, findings| Some(ReleaseReport { release, source: source.clone(), root, findings });
    let root = match release {
        Release::ServerJson | Release::Bundle => json::parse(source).ok()?.root,
        Release::Skill => match skill::frontmatter(source) {
            Ok(root) => root,
            Err(Problems(problems)) => {
                let finding = |problem| Finding { code: &codes::SYNTAX, problem, server: None };
                return report(None, problems.into_iter().map(finding).collect());
            }
        },
    };
    let mut findings = Vec::new();
    let folder = Folder { path: path.parent()?, machine };
    match release {
        Release::ServerJson if server_json::is_one(&root) => server_json::check(&root, &folder, &mut findings),
        Release::Bundle if bundle::is_one(&root) => bundle::check(&root, &folder, &mut findings),
        Release::Skill => skill::check(source, &root, &folder, &mut findings),
        Release::ServerJson | Release::Bundle => return None,
    }
    if release != Release::Skill {
        check_placeholders(&root, source, &mut findings);
    }
    findings.sort_by_key(|finding| finding.problem.span.start);
    report(Some(root), findings)
}

/// Placeholders in what is no text for people, and no hint for a value that the user gives.
fn check_placeholders(node: &Node, source: &Source, findings: &mut Vec<Finding>) {
    match &node.value {
        Value::String(text) => {
            if let Some(range) = placeholder(text).filter(|_| !text.contains('{')) {
                let place = source.part(node.span, text, range);
                let finding = codes::PLACEHOLDER.at(place, "this looks like a placeholder");
                findings.push(finding.hint("write the real value"));
            }
        }
        Value::Sequence(items) => items.iter().for_each(|item| check_placeholders(item, source, findings)),
        Value::Mapping(entries) => {
            let is_for_people = |key: &str| {
                let words = ["description", "long_description", "title", "display_name", "placeholder", "text"];
                words.contains(&key) || matches!(key, "_meta" | "user_config" | "variables")
            };
            let read = entries.iter().filter(|entry| !is_for_people(&entry.key));
            read.for_each(|entry| check_placeholders(&entry.node, source, findings));
        }
        _ => {}
    }
}

/// A finding about a value that the format does not allow.
fn wrong(node: &Node, message: String, hint: &'static str) -> Finding {
    codes::RELEASE_VALUE.at(node.span, message).hint(hint)
}

/// A finding if a text is longer, or empty.
fn check_length(node: Option<&Node>, key: &str, most: usize, findings: &mut Vec<Finding>) {
    let Some((node, text)) = node.and_then(|node| Some((node, node.as_str()?))) else { return };
    let length = text.chars().count();
    if length > most || text.trim().is_empty() {
        findings.push(wrong(
            node,
            format!("`{key}` has {length} characters, not 1 to {most}"),
            "shorten it, or fill it in",
        ));
    }
}
