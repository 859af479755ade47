//! Which program a file is for: first its path says it, then the root key of its servers and marks of one program.

use std::path::{Path, PathBuf};

use super::{ALL, Dialect, FileLocation, Syntax};
use crate::document::Document;
use rehearse_document::{Entry, Node, Source, nearest};

/// The dialect of a file, and why.
#[derive(Clone, Debug)]
pub struct Detected {
    pub dialect: &'static Dialect,
    pub why: String,
    /// Whether other programs have the same root key and nothing distinguishes them.
    pub is_guess: bool,
}

/// The words that only one program has, at the root of a file or in its servers.
struct Mark {
    dialect: &'static str,
    /// The root has all of these keys; a dot separates the keys of a path.
    root: &'static [&'static str],
    /// One of the servers has this key.
    server: Option<&'static str>,
}

const fn root(dialect: &'static str, root: &'static [&'static str]) -> Mark {
    Mark { dialect, root, server: None }
}

const fn server(dialect: &'static str, key: &'static str) -> Mark {
    Mark { dialect, root: &[], server: Some(key) }
}

/// In the order in which they are tried.
const MARKS: &[Mark] = &[
    root("vscode", &["inputs"]),
    root("vscode", &["customizations"]),
    root("mcpilot", &["providers"]),
    root("code_agent", &["enabled", "servers"]),
    root("code_agent", &["mcp.enabled"]),
    root("code_agent", &["mcp.globalSettings"]),
    root("cpe", &["models", "mcpServers"]),
    root("cpe", &["models", "version"]),
    root("cpe", &["subagent"]),
    root("librechat", &["endpoints"]),
    root("librechat", &["mcpSettings"]),
    root("continue", &["name", "version", "schema"]),
    root("gemini", &["selectedAuthType"]),
    root("gemini", &["contextFileName"]),
    root("claude-desktop", &["globalShortcut"]),
    root("amazon-q", &["toolsSettings"]),
    server("code_agent", "globalSettings"),
    server("engine", "connection"),
    server("gemini", "httpUrl"),
    server("windsurf", "serverUrl"),
    server("roo", "alwaysAllow"),
    server("roo", "watchPaths"),
    server("cline", "autoApprove"),
    server("cline", "transportType"),
    server("copilot", "tools"),
    server("copilot", "oauthClientId"),
    server("claude-code", "headersHelper"),
    server("cursor", "envFile"),
    server("librechat", "serverInstructions"),
    server("librechat", "initTimeout"),
];

impl Detected {
    /// A dialect that is certain.
    pub fn certain(dialect: &'static Dialect, why: impl Into<String>) -> Detected {
        Detected { dialect, why: why.into(), is_guess: false }
    }
}

/// The dialect of that name.
pub fn by_name(name: &str) -> Option<&'static Dialect> {
    ALL.iter().copied().find(|dialect| dialect.name == name)
}

/// The dialect that has a file of this path, and the place that matches.
pub fn by_path(path: &Path) -> Option<(&'static Dialect, FileLocation)> {
    let path = path.to_string_lossy().replace('\\', "/");
    let place = |dialect: &Dialect| dialect.files.iter().copied().find(|place| place.matches(&path));
    ALL.iter().find_map(|dialect| Some((*dialect, place(dialect)?)))
}

/// Whether a file of this name may well be without servers, since it is about other things.
pub(crate) fn is_about_other_things(name: &str) -> bool {
    by_path(&without_ending(Path::new(name))).is_some_and(|(_, place)| matches!(place, FileLocation::Section(_)))
}

/// The path of the file that an example is one of: `.mcp.json` for `.mcp.json.example` and `.mcp.example.json`.
pub(crate) fn without_ending(path: &Path) -> PathBuf {
    let is_mark = |path: &Path| {
        let last = path.extension().and_then(|extension| extension.to_str());
        last.is_some_and(|last| ["example", "sample", "template", "dist", "bak"].contains(&last))
    };
    match (path.file_stem().map(Path::new), path.extension()) {
        (Some(stem), _) if is_mark(path) => path.with_file_name(stem),
        (Some(stem), Some(extension)) if is_mark(stem) => path.with_file_name(stem.with_extension(extension)),
        _ => path.to_owned(),
    }
}

/// The dialect of a file; `None` if neither its path nor its content says it.
pub(crate) fn detect(path: Option<&Path>, document: &Document, source: &Source) -> Option<Detected> {
    let root = &document.root;
    let marked = marked(root, source);
    if let Some((dialect, place)) = path.and_then(|path| by_path(&without_ending(path))) {
        let is_guest = |guest: &&Dialect| guest.also_reads.contains(&place);
        let guest = ALL.iter().copied().filter(is_guest).find_map(|guest| {
            if dialect.servers(root).is_none() && has_root(guest, root) {
                return Some(Detected::certain(guest, format!("its servers are under `{}`", guest.roots[0].join("."))));
            }
            let (_, mark) = marked.filter(|(marked, _)| std::ptr::eq(*marked, guest))?;
            Some(Detected::certain(guest, format!("it has `{mark}`")))
        });
        let why = || format!("its path ends with {}", place.suffix());
        return guest.or_else(|| Some(Detected::certain(dialect, why())));
    }
    if let Some(dialect) = path.and_then(named_in) {
        return Some(Detected::certain(dialect, format!("its name contains `{}`", dialect.name)));
    }
    if let Some((dialect, mark)) = marked {
        return Some(Detected::certain(dialect, format!("it has `{mark}`")));
    }
    if let Some((dialect, key)) = by_name("code_agent").and_then(|dialect| Some((dialect, key_of_code_agent(root)?))) {
        return Some(Detected::certain(dialect, format!("it has `{key}` with `servers`")));
    }
    let fits = |dialect: &&Dialect| match dialect.syntax {
        Syntax::Toml => document.is_toml(),
        Syntax::Yaml => document.is_yaml(),
        Syntax::Json(_) => !document.is_yaml() && !document.is_toml(),
        Syntax::JsonOrYaml => !document.is_toml(),
    };
    let mut readers = ALL.iter().copied().filter(fits).filter(|dialect| has_root(dialect, root));
    let first = readers.next()?;
    let keys = first.roots.iter().find(|keys| root.get_path(keys).is_some()).copied().unwrap_or_default();
    let why = format!("its servers are under `{}`", keys.join("."));
    Some(Detected { dialect: first, why, is_guess: readers.next().is_some() })
}

/// A key of code_agent in a file with `servers`, also a misspelled one: Visual Studio Code, which has the same place for
/// its servers, knows none like it.
fn key_of_code_agent(root: &Node) -> Option<&str> {
    let servers = root.get("servers")?.as_entries()?;
    let is_switch = |entry: &&Entry| nearest(&entry.key, &["enabled", "globalSettings"]).is_some();
    let own = ["httpUrl", "includeTools", "excludeTools", "trust"];
    let in_server = |entry: &Entry| own.into_iter().find(|key| entry.node.get(key).is_some());
    let switch = root.as_entries()?.iter().find(is_switch).map(|entry| &*entry.key);
    switch.or_else(|| servers.iter().find_map(in_server))
}

/// Whether a file has something at the first place where this program looks for servers.
fn has_root(dialect: &Dialect, root: &Node) -> bool {
    let is_collection = |node: &Node| match dialect.collection {
        super::Collection::Map => node.as_items().is_none(),
        super::Collection::List { .. } => node.as_items().is_some(),
    };
    dialect.roots.iter().filter_map(|keys| root.get_path(keys)).any(is_collection)
}

/// The program that has a mark of this file, and the mark.
fn marked(root: &Node, source: &Source) -> Option<(&'static Dialect, &'static str)> {
    let is_variable = |dialect: &&Dialect, name: &&str| {
        !dialect.signature_references.is_empty() && source.text.contains(&format!("${{{name}"))
    };
    let references = ALL.iter().find_map(|dialect| {
        let name = dialect.signature_references.iter().find(|name| is_variable(dialect, name))?;
        Some((*dialect, *name))
    });
    references.or_else(|| {
        MARKS.iter().find_map(|Mark { dialect, root: keys, server }| {
            let dialect = by_name(dialect)?;
            let is_there = |key: &&str| root.get_path(&key.split('.').collect::<Vec<_>>()).is_some();
            let has = |key: &str| dialect.servers_of(root).into_iter().any(|server| server.get(key).is_some());
            let mark = match server {
                Some(key) => Some(*key).filter(|key| has(key)),
                None => keys.first().copied().filter(|_| keys.iter().all(is_there)),
            };
            Some((dialect, mark?))
        })
    })
}

/// The program whose name is part of a file's name: `cursor_mcp.json`.
fn named_in(path: &Path) -> Option<&'static Dialect> {
    let words = |text: &str| format!("-{}-", text.to_ascii_lowercase().replace(['_', '.', ' '], "-"));
    let name = path.file_stem().map(|stem| words(&stem.to_string_lossy()))?;
    ALL.iter().copied().find(|dialect| !dialect.files.is_empty() && name.contains(&words(dialect.name)))
}
