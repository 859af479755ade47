//! Files with which a server is released: `server.json` of the MCP registry, `manifest.json` of a bundle (MCPB), and
//! `SKILL.md`. They are no configs: they say what a server is, not which ones a program uses.

mod bundle;
mod listed;
mod server_json;
mod shape;
mod skill;
mod start;
mod version;

use std::{path::Path, sync::Arc};

use rehearse_document::{Node, Problems, Source, Span, Value};
use rehearse_report::findings::Finding;

use super::{Machine, PathKind, codes, document, placeholder::placeholder};

pub use listed::{Offered, compare};
pub use start::{Start, starts};

/// A kind of release file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    ServerJson,
    Bundle,
    Skill,
}

impl Release {
    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Release::ServerJson => "server.json of the MCP registry",
            Release::Bundle => "manifest of an MCP bundle",
            Release::Skill => "skill",
        }
    }
}

/// What a release file is and says, with all findings in no order.
pub(super) struct Checked {
    pub(super) release: Release,
    pub(super) root: Node,
    pub(super) findings: Vec<Finding>,
}

/// The folder of a release file, if files can be looked for on this machine.
struct Folder<'a> {
    path: &'a Path,
    machine: Option<&'a Machine>,
}

impl Folder<'_> {
    /// A finding about a file that is not there. A path with variables, or of another machine, is not looked for.
    fn check(&self, path: &str, span: Span, findings: &mut Vec<Finding>) {
        let Some(machine) = self.machine else { return };
        let is_relative = !path.is_empty() && !path.contains("${") && !path.contains(':') && !path.starts_with('/');
        let place = machine.system.join(&machine.system.join(&machine.directory, self.path), path);
        if is_relative && machine.path_kind(&place) == PathKind::Nothing {
            let finding = codes::RELEASE_FILE.at(span, format!("there is no file `{path}` beside this one"));
            findings.push(finding.hint("correct the path, or build the file before you release it"));
        }
    }
}

/// Whether a file that was found is a release file for certain: its format has a mark, or a name that nothing else has.
pub fn is_marked(path: &Path, text: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !matches!(name, "server.json" | "manifest.json") {
        return name == "SKILL.md";
    }
    let Ok(document) = document::read(&Source::new(name, text), Some(Path::new(name)), None) else { return false };
    let text = |key: &str| document.root.get(key).and_then(Node::as_str);
    match name {
        "server.json" => text("$schema").is_some_and(server_json::is_schema),
        _ => {
            text("manifest_version").or_else(|| text("dxt_version")).is_some() && document.root.get("server").is_some()
        }
    }
}

/// Checks a release file; `None` if it is none, by its name and what it says.
pub(super) fn check(source: &Arc<Source>, path: &Path, machine: Option<&Machine>) -> Option<Result<Checked, Problems>> {
    let name = path.file_name()?.to_str()?;
    let is_skill = name == "SKILL.md";
    if !is_skill && !matches!(name, "server.json" | "manifest.json") {
        return None;
    }
    let text = if is_skill { skill::frontmatter(source) } else { source.clone() };
    let document = match document::read(&text, Some(Path::new(if is_skill { "a.yaml" } else { name })), None) {
        Ok(document) => document,
        Err(_) if !is_skill => return None,
        Err(problems) => return Some(Err(problems)),
    };
    let root = document.root;
    let release = match name {
        "SKILL.md" => Release::Skill,
        "server.json" if server_json::is_one(&root) => Release::ServerJson,
        "manifest.json" if bundle::is_one(&root) => Release::Bundle,
        _ => return None,
    };
    let mut findings = Vec::new();
    let folder = Folder { path: path.parent()?, machine };
    match release {
        Release::ServerJson => server_json::check(&root, &folder, &mut findings),
        Release::Bundle => bundle::check(&root, &folder, &mut findings),
        Release::Skill => skill::check(source, &root, &folder, &mut findings),
    }
    if release != Release::Skill {
        check_placeholders(&root, source, &mut findings);
    }
    Some(Ok(Checked { release, root, findings }))
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
