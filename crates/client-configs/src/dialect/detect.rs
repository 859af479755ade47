//! What says which program a file is for: its path, its name, and words that only one program has.

use std::path::{Path, PathBuf};

use super::{Dialect, FileLocation, all, host::all_with};
use crate::machine::is_of_windows;
use rehearse_document::{Entry, Node, Source, nearest};

/// The dialect of a file, and why.
#[derive(Clone, Debug)]
pub struct Detected {
    pub dialect: &'static Dialect,
    pub why: String,
    /// Whether other programs have the same root key and nothing distinguishes them.
    pub is_guess: bool,
}

impl Detected {
    /// A dialect that is certain.
    pub fn certain(dialect: &'static Dialect, why: impl Into<String>) -> Detected {
        Detected { dialect, why: why.into(), is_guess: false }
    }
}

/// The dialect of that name.
pub fn by_name(name: &str) -> Option<&'static Dialect> {
    all_with(&format!("name: {name}\n")).find(|dialect| dialect.name == name)
}

/// The dialect that has a file of this path, and the place that matches.
pub fn by_path(path: &Path) -> Option<(&'static Dialect, FileLocation)> {
    let path = path.to_string_lossy();
    let path = if is_of_windows(&path) { path } else { path.replace('\\', "/").into() };
    let place = |dialect: &Dialect| dialect.files.iter().copied().find(|place| place.matches(&path));
    all().find_map(|dialect| Some((dialect, place(dialect)?)))
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

/// The dialect of a file whose path says it.
pub(crate) fn detect(path: &Path, root: &Node, source: &Source) -> Option<Detected> {
    let (dialect, place) =
        by_path(&without_ending(path)).filter(|(dialect, place)| !is_astray(path, dialect, *place))?;
    let is_guest = |guest: &&Dialect| guest.also_reads.contains(&place);
    let guest = all_with("alsoReads:").filter(is_guest).find_map(|guest| {
        if dialect.servers(root).is_none() && has_root(guest, root) {
            return Some(Detected::certain(guest, format!("its servers are under `{}`", guest.roots[0].join("."))));
        }
        let of_file = mark_at_root(guest, root, source).filter(|_| mark_at_root(dialect, root, source).is_none());
        let mark = of_file.or_else(|| Some(format!("`{}`", mark_of_server(guest, root)?)))?;
        Some(Detected::certain(guest, format!("it has {mark}")))
    });
    guest.or_else(|| Some(Detected::certain(dialect, format!("its path ends with {}", place.suffix()))))
}

/// Whether a file is in a folder of another program, or in one from which its program reads nothing.
fn is_astray(path: &Path, dialect: &Dialect, place: FileLocation) -> bool {
    let owner = owner_of_folder(path);
    let is_at_root = matches!(place, FileLocation::Project(file) if !file.contains('/'));
    let is_unread = |owner: &Dialect| folder_of(path).is_some_and(|it| owner.folders_without_files.contains(&it));
    owner.is_some_and(|owner| is_unread(owner) || is_at_root && owner.name != dialect.name)
}

/// The hidden folder in which a file is.
fn folder_of(path: &Path) -> Option<&str> {
    path.parent()?.file_name()?.to_str().filter(|folder| folder.starts_with('.'))
}

/// A key of code_agent in a file with `servers` or `mcp.servers`, also a misspelled one: Visual Studio Code, which has the
/// same places for its servers, knows none like it.
fn key_of_code_agent(root: &Node) -> Option<&str> {
    let root = root.get("mcp").filter(|it| it.get("servers").is_some()).unwrap_or(root);
    let servers = root.get("servers")?.as_entries()?;
    let is_switch = |entry: &&Entry| nearest(&entry.key, &["enabled", "globalSettings"]).is_some();
    let own = ["httpUrl", "includeTools", "excludeTools", "trust"];
    let in_server = |entry: &Entry| own.into_iter().find(|key| entry.node.get(key).is_some());
    let switch = root.as_entries()?.iter().find(is_switch).map(|entry| &*entry.key);
    switch.or_else(|| servers.iter().find_map(in_server))
}

/// Whether a file has something at the first place where this program looks for servers.
pub(crate) fn has_root(dialect: &Dialect, root: &Node) -> bool {
    let is_collection = |node: &Node| match dialect.collection {
        super::Collection::Map => node.as_items().is_none(),
        super::Collection::List { .. } => node.as_items().is_some(),
    };
    dialect.roots.iter().filter_map(|keys| root.get_path(keys)).any(is_collection)
}

/// The program that has a mark at the root of this file or in its references, and the mark.
pub(crate) fn mark_of_file(root: &Node, source: &Source) -> Option<(&'static Dialect, String)> {
    let of_code_agent = || Some((by_name("code_agent")?, format!("`{}` with `servers`", key_of_code_agent(root)?)));
    all().find_map(|dialect| Some((dialect, mark_at_root(dialect, root, source)?))).or_else(of_code_agent)
}

/// The mark of a program at the root of this file or in its references.
fn mark_at_root(dialect: &Dialect, root: &Node, source: &Source) -> Option<String> {
    let is_variable = |name: &&&str| source.text.contains(&format!("${{{name}"));
    let is_there = |key: &&str| root.get_path(&key.split('.').collect::<Vec<_>>()).is_some();
    let reference = dialect.signature_references.iter().find(is_variable);
    let mark = reference.or_else(|| dialect.root_marks.iter().find(|keys| keys.iter().all(is_there))?.first());
    mark.map(|mark| format!("`{mark}`"))
}

/// The mark of a program that one of the servers has.
pub(crate) fn mark_of_server(dialect: &Dialect, root: &Node) -> Option<&'static str> {
    let servers = if dialect.server_marks.is_empty() { Vec::new() } else { dialect.servers_of(root) };
    dialect.server_marks.iter().copied().find(|key| servers.iter().any(|server| server.get(key).is_some()))
}

/// The program to whose folder a file belongs that has no name which the program reads: `.claude/mcp.json`.
pub(crate) fn owner_of_folder(path: &Path) -> Option<&'static Dialect> {
    let folder = folder_of(path)?;
    let is_in = |dialect: &&Dialect, depth: usize| {
        let mut parts = dialect.files.iter().map(|place| place.suffix().split('/'));
        parts.any(|parts| parts.clone().next() == Some(folder) && parts.count() <= depth)
    };
    let first = |depth| all().find(|dialect| is_in(dialect, depth));
    let unread = || all().find(|dialect| dialect.folders_without_files.contains(&folder));
    first(2).or_else(|| first(usize::MAX)).or_else(unread)
}

/// The program whose name is part of a file's name: `cursor_mcp.json`.
pub(crate) fn named_in(path: &Path) -> Option<&'static Dialect> {
    let words = |text: &str| format!("-{}-", text.to_ascii_lowercase().replace(['_', '.', ' '], "-"));
    let name = path.file_stem().map(|stem| words(&stem.to_string_lossy()))?;
    all().find(|dialect| !dialect.files.is_empty() && name.contains(&words(dialect.name)))
}
