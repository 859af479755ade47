//! A mock server's script: what it offers and how it answers. Immutable; what changes while it serves is in the engine.
//!
//! [`Script::parse`] reads the YAML of a file; `docs` of the format are in the README and in `rehearse mock --help`.

pub mod mirrored;
mod offer;
mod reply;
mod rule;
pub mod skill;

use std::{path::Path, sync::Arc};

pub use offer::{PromptStub, ResourceStub, ToolStub};
pub use reply::{Body, Reply};
pub use rule::{Answer, LogLevel, Plan, Rule, Step, Then};

use super::template::{SCRIPT_NAMES, Templates};
use crate::{
    config::{Diagnostics, Node, Problem, Problems, Source, Span, nearest, parse_yaml},
    wire::Version,
};

const KEYS: &[&str] = &["server", "instructions", "protocol", "pageSize", "tools", "resources", "prompts"];
const SERVER_KEYS: &[&str] = &["name", "title", "version", "description", "websiteUrl", "icons"];

/// The script that is served when none is written yet, embedded in the binary.
pub const EMBEDDED: &[(&str, &str)] = &[("basic", include_str!("../../../mock-servers/basic.yaml"))];

/// A parsed script.
#[derive(Debug)]
pub struct Script {
    /// The server's name.
    pub name: String,
    /// The MCP `Implementation` of the server as JSON text.
    pub server_info: String,
    pub instructions: Option<String>,
    /// The versions that are offered, oldest first. Never empty.
    pub versions: Vec<Version>,
    pub page_size: Option<usize>,
    pub tools: Vec<ToolStub>,
    pub resources: Vec<ResourceStub>,
    pub prompts: Vec<PromptStub>,
    pub templates: Templates,
}

/// Why there is no script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read the script {path}: {source}{hint}")]
    Read { path: String, source: std::io::Error, hint: String },
    #[error("{0}")]
    Invalid(Diagnostics),
}

impl Script {
    /// Reads the script in a file, or the embedded script of that name if there is no such file.
    ///
    /// # Errors
    /// [`ScriptError::Read`] if there is neither; [`ScriptError::Invalid`] with every mistake in it.
    pub fn load(path: &Path) -> Result<Script, ScriptError> {
        let embedded = |name: &str| EMBEDDED.iter().find(|(known, _)| *known == name);
        let source = match (Source::read(path), path.to_str().and_then(embedded)) {
            (Ok(source), _) => source,
            (Err(_), Some((name, text))) => Source::new(format!("<{name}>"), *text),
            (Err(source), None) => {
                let names: Vec<_> = EMBEDDED.iter().map(|(name, _)| *name).collect();
                let near = path.to_str().and_then(|path| nearest(path, &names));
                let hint =
                    near.map(|name| format!(" (did you mean the embedded script `{name}`?)")).unwrap_or_default();
                return Err(ScriptError::Read { path: path.display().to_string(), source, hint });
            }
        };
        Script::parse(&source).map_err(ScriptError::Invalid)
    }

    /// Reads a script.
    ///
    /// # Errors
    /// Every mistake that was found, each with its position and a hint.
    pub fn parse(source: &Arc<Source>) -> Result<Script, Diagnostics> {
        parse_yaml(source).and_then(|root| Script::read(&root, source)).map_err(|problems| problems.in_source(source))
    }

    fn read(root: &Node, source: &Arc<Source>) -> Result<Script, Problems> {
        if root.is_null() {
            let problem = Problem::new(Span::default(), "the script is empty");
            return Err(problem.hint("start with `server: { name: my-server }`").into());
        }
        let fields = root.fields("a mock script", KEYS)?;
        let mut templates = Templates::new(source, SCRIPT_NAMES);
        let (name, server_info) = match fields.get("server") {
            Some(node) => read_server(node)?,
            None => implementation("mock", None, ""),
        };
        let mut problems = Vec::new();
        let tools = fields.read_each("tools", |node| ToolStub::read(node, &mut templates));
        let tools = tools.unwrap_or_else(|found| record(&mut problems, found));
        let resources = fields.read_each("resources", |node| ResourceStub::read(node, &mut templates));
        let resources = resources.unwrap_or_else(|found| record(&mut problems, found));
        let prompts = fields.read_each("prompts", |node| PromptStub::read(node, &mut templates));
        let prompts = prompts.unwrap_or_else(|found| record(&mut problems, found));
        for (key, name_key) in [("tools", "name"), ("resources", "uri"), ("prompts", "name")] {
            problems.extend(duplicates(fields.get(key), name_key));
        }
        if !problems.is_empty() {
            problems.sort_by_key(|problem| problem.span.start);
            return Err(Problems(problems));
        }
        Ok(Script {
            name,
            server_info,
            instructions: fields.read("instructions", |node| Ok(node.str()?.to_owned()))?,
            versions: fields.read("protocol", read_versions)?.unwrap_or_else(|| Version::ALL.to_vec()),
            page_size: fields.read("pageSize", read_page_size)?,
            tools,
            resources,
            prompts,
            templates,
        })
    }

    /// Whether some answer writes log messages, so that the capability must be declared.
    pub fn logs(&self) -> bool {
        let steps = self.tools.iter().flat_map(|tool| &tool.rules).filter_map(|rule| match &rule.answer.plan {
            Plan::Steps(steps) => Some(steps),
            Plan::Sequence { .. } => None,
        });
        steps.flatten().any(|step| matches!(step, Step::Log { .. }))
    }
}

fn record<T>(problems: &mut Vec<Problem>, found: Problems) -> Vec<T> {
    problems.extend(found.0);
    Vec::new()
}

fn implementation(name: &str, version: Option<&str>, more: &str) -> (String, String) {
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    let version = version.unwrap_or("0.0.0");
    (name.to_owned(), format!("{{\"name\":{},\"version\":{}{more}}}", quote(name), quote(version)))
}

fn read_server(node: &Node) -> Result<(String, String), Problems> {
    let fields = node.fields("`server`", SERVER_KEYS)?;
    let name = fields.required("name")?.str()?;
    let version = fields.read("version", Node::str)?;
    let more = node.entries()?.iter().filter(|entry| !matches!(entry.key.as_str(), "name" | "version"));
    let more: String = more.map(|entry| format!(",\"{}\":{}", entry.key, entry.node.to_json_text())).collect();
    Ok(implementation(name, version, &more))
}

fn read_versions(node: &Node) -> Result<Vec<Version>, Problems> {
    let read = |node: &Node| -> Result<Version, Problems> {
        Ok(node.str()?.parse().map_err(|error| node.problem(format!("{error}")))?)
    };
    let mut versions = if node.items().is_ok() { node.each(read)? } else { vec![read(node)?] };
    versions.sort_unstable();
    versions.dedup();
    if versions.is_empty() {
        return Err(node.problem("a server offers at least one protocol version").into());
    }
    Ok(versions)
}

fn read_page_size(node: &Node) -> Result<usize, Problems> {
    match node.integer()? {
        0 => Err(node.problem("a page holds at least one item").into()),
        size => Ok(size),
    }
}

fn duplicates(list: Option<&Node>, key: &str) -> Vec<Problem> {
    let names = list.and_then(|list| list.items().ok()).into_iter().flatten().filter_map(|item| item.get(key));
    let mut seen = std::collections::HashSet::new();
    let mut problems = Vec::new();
    for node in names {
        if let Ok(name) = node.str()
            && !seen.insert(name)
        {
            let problem = node.problem(format!("`{name}` is defined twice"));
            problems.push(problem.hint("answer differently by argument with `rules:` in one definition"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str) -> String {
        Script::parse(&Source::new("m.yaml", text)).expect_err(text).to_string()
    }

    #[test]
    fn the_embedded_scripts_parse() {
        for (name, text) in EMBEDDED {
            let script = Script::parse(&Source::new(*name, *text)).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(script.name, *name);
        }
    }

    #[test]
    fn every_mistake_is_reported_in_the_order_of_the_file_with_a_hint() {
        let text = "server: { name: s }\ntools:\n  - name: a\n    repply: { text: hi }\n  - name: b\n    reply: { text: '{{ arg.x }}' }\nprompts:\n  - name: p\n    messages: [{ role: robot, content: hi }]\n";
        assert_eq!(
            errors(text),
            "m.yaml:4:5: a tool has no key `repply` (did you mean `reply`?)\n\
             m.yaml:6:20: template: there is no `arg` (did you mean `args`?)\n\
             m.yaml:9:24: the role is `user` or `assistant`"
        );
    }

    #[test]
    fn names_are_unique_and_versions_are_known() {
        assert!(errors("tools: [{ name: a }, { name: a }]").contains("`a` is defined twice"));
        assert!(errors("protocol: [2025-11-24]").contains("unknown protocol version"));
        assert!(errors("pageSize: 0").contains("at least one item"));
        assert!(errors("").contains("the script is empty"));
        assert!(errors("- a").contains("a mock script must be a mapping"));
    }

    #[test]
    fn a_pasted_tools_list_is_a_valid_script() {
        let text = r#"{"tools":[{"name":"t","title":"T","description":"d","inputSchema":{"type":"object","x-vendor":1.0},"annotations":{"readOnlyHint":true},"_meta":{"k":1}}]}"#;
        let script = Script::parse(&Source::new("t", text)).expect("valid");
        let expected = text.strip_prefix("{\"tools\":[").and_then(|rest| rest.strip_suffix("]}"));
        assert_eq!(Some(script.tools[0].definition.as_str()), expected);
    }
}
