//! Which program a file is for: told by its path, and by what it holds.

use std::{
    cmp::Reverse,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{ALL, Dialect, Field, Place, RootKeys, Syntax};
use crate::config::{
    Node, Source,
    document::Document,
    read::{TELLING, fit},
};

/// The dialect of a file, and why.
#[derive(Clone, Debug)]
pub struct Detected {
    pub dialect: &'static Dialect,
    pub why: String,
    /// The others that it may be for, the likelier first; none if something says whose file it is.
    pub rivals: Vec<&'static Dialect>,
}

/// Whose file fits worse by so much is not likely meant.
const LIKELY: u32 = 10;

/// So many keys of a program tell whose file it is that has no servers.
const SURE: usize = 2;

impl Detected {
    /// A dialect that is certain.
    pub fn certain(dialect: &'static Dialect, why: impl Into<String>) -> Detected {
        Detected { dialect, why: why.into(), rivals: Vec::new() }
    }

    /// Whether another program may be meant.
    pub fn is_guess(&self) -> bool {
        !self.rivals.is_empty()
    }
}

/// The dialect of that name.
pub fn named(name: &str) -> Option<&'static Dialect> {
    ALL.iter().copied().find(|dialect| dialect.name == name)
}

/// The dialect that has a file of this path, and the place that tells.
pub fn by_path(path: &Path) -> Option<(&'static Dialect, Place)> {
    let path = path.to_string_lossy().replace('\\', "/");
    let place = |dialect: &Dialect| dialect.files.iter().copied().find(|place| place.is_of(&path));
    ALL.iter().find_map(|dialect| Some((*dialect, place(dialect)?)))
}

/// Whether a file of this name may well be without servers, for it is about other things.
pub(in crate::config) fn is_about_other_things(name: &str) -> bool {
    by_path(&without_ending(Path::new(name))).is_some_and(|(_, place)| matches!(place, Place::Section(_)))
}

/// The path of the file that an example is one of: `.mcp.json` for `.mcp.json.example` and `.mcp.example.json`.
pub(in crate::config) fn without_ending(path: &Path) -> PathBuf {
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

/// Tells the dialect of a file: by its name and place first, then by what is in it. `None` if it has no servers in any
/// dialect's place, and nothing else says whose it is.
pub(in crate::config) fn detect(path: Option<&Path>, document: &Document, source: &Arc<Source>) -> Option<Detected> {
    let root = &document.root;
    if let Some((dialect, place)) = path.and_then(|path| by_path(&without_ending(path))) {
        return Some(guest(dialect, place, root, source).unwrap_or_else(|| {
            let why = format!("its path ends with {}", place.suffix());
            Detected::certain(dialect, why)
        }));
    }
    // No program that reads YAML alone looks into a JSON file.
    let readers = ALL.iter().copied().filter(|dialect| document.is_yaml() || dialect.syntax != Syntax::Yaml);
    let has_servers = |dialect: &&Dialect| {
        let has_sets = || !dialect.sets(root).is_empty() || !dialect.projects(root).is_empty();
        dialect.servers(root).is_some() || has_sets()
    };
    let candidates: Vec<_> = readers.clone().filter(has_servers).collect();
    if candidates.is_empty() {
        let dialect = evident(readers, root).filter(|dialect| dialect.signs(root) >= SURE)?;
        let sign = dialect.evidence(root).first().copied().unwrap_or_default();
        return Some(Detected::certain(dialect, format!("it has `{sign}`")));
    }
    let evident = evident(candidates.iter().copied(), root);
    let is_evident = |dialect: &Dialect| evident.is_some_and(|evident| std::ptr::eq(evident, dialect));
    let wrong_syntax = |dialect: &Dialect| match dialect.syntax {
        Syntax::Json(_) => u32::from(document.is_yaml()) * 100,
        Syntax::Yaml | Syntax::Either(_) => 0,
    };
    let marked = candidates.iter().find_map(|dialect| Some((*dialect, dialect.written_mark(source)?)));
    let is_marked = |dialect: &Dialect| marked.is_none_or(|(owner, _)| std::ptr::eq(owner, dialect));
    let against = |dialect: &Dialect| {
        wrong_syntax(dialect) + 5 * document.liberties_against(dialect) + 50 * u32::from(!is_marked(dialect))
    };
    let mut fits: Vec<_> =
        candidates.iter().map(|it| (fit(root, it, is_evident(it), source) + against(it), *it)).collect();
    fits.sort_by_key(|(fit, _)| *fit);
    if let Some((_, dialect)) = path.and_then(|path| fits.iter().find(|(_, dialect)| dialect.is_in_name(path))) {
        return Some(Detected::certain(dialect, format!("its name has `{}` in it", dialect.name)));
    }
    let (best, dialect) = *fits.first()?;
    let servers = dialect.each_server(root);
    let of_server = |dialect: &Dialect| dialect.keys.iter().map(|key| key.name).collect::<Vec<_>>();
    let (own, first) = (of_server(dialect), of_server(candidates[0]));
    let telling = own
        .iter()
        .filter(|key| !first.contains(key))
        .find(|key| servers.iter().take(TELLING).any(|it| it.get(key).is_some()));
    let mark = marked.filter(|(owner, _)| std::ptr::eq(*owner, dialect)).map(|(_, mark)| mark);
    let evidence = dialect.evidence(root);
    let sign = mark.as_ref().or(evidence.first());
    let is_likely = |(fit, rival): &(u32, &Dialect)| {
        let theirs = rival.evidence(root);
        mark.is_none()
            && evidence.iter().all(|key| theirs.contains(key))
            && *fit <= best + LIKELY
            && telling.is_none_or(|key| of_server(rival).contains(key))
    };
    let rivals = fits.iter().skip(1).filter(|it| is_likely(it)).map(|(_, rival)| *rival).collect();
    let why = match sign.or(telling) {
        Some(key) => format!("it has `{key}`"),
        None => match dialect.roots.iter().find(|keys| dialect.part(root).at(keys).is_some()) {
            Some(keys) => {
                let section = dialect.section(root).map_or(&[][..], |(keys, _)| keys);
                format!("its servers are under `{}`", [section, *keys].concat().join("."))
            }
            None => "it is nothing but servers".into(),
        },
    };
    Some(Detected { dialect, why, rivals })
}

/// The program of which a file about other things has more keys than of every other.
fn evident(dialects: impl Iterator<Item = &'static Dialect>, root: &Node) -> Option<&'static Dialect> {
    let mut signs: Vec<_> = dialects.map(|dialect| (dialect.signs(root), dialect)).collect();
    signs.sort_by_key(|(signs, _)| Reverse(*signs));
    let (most, dialect) = *signs.first()?;
    let is_only = signs.get(1).is_none_or(|(others, _)| *others < most);
    let is_section = matches!(dialect.root_keys, RootKeys::Section(_));
    (is_only && is_section && !dialect.evidence(root).is_empty()).then_some(dialect)
}

/// A program that reads files of this place too, if a file has what only that program knows and fits it better, or has
/// servers where only that program looks for them.
fn guest(owner: &'static Dialect, place: Place, root: &Node, source: &Arc<Source>) -> Option<Detected> {
    let is_guest = |dialect: &&Dialect| dialect.guest_in.contains(&place) && owner.written_mark(source).is_none();
    let guests = ALL.iter().copied().filter(is_guest);
    guests.into_iter().find_map(|dialect| {
        if owner.servers(root).is_none()
            && let Some(keys) =
                dialect.roots.iter().find(|keys| root.at(keys).is_some_and(|it| it.as_entries().is_some()))
        {
            return Some(Detected::certain(dialect, format!("its servers are under `{}`", keys.join("."))));
        }
        let mark = dialect.mark(owner, root)?;
        let is_better = fit(root, dialect, false, source) < fit(root, owner, false, source);
        is_better.then(|| Detected::certain(dialect, format!("it has `{mark}`")))
    })
}

impl Dialect {
    /// Whether the name of a file has that of this program in it: `cursor_mcp.json`.
    pub(in crate::config) fn is_in_name(&self, path: &Path) -> bool {
        let words = |text: &str| format!("-{}-", text.to_ascii_lowercase().replace(['_', '.', ' '], "-"));
        let name = path.file_stem().map(|stem| words(&stem.to_string_lossy())).unwrap_or_default();
        !self.files.is_empty() && name.contains(&words(self.name))
    }

    /// How many keys a file has that this program writes beside servers.
    fn signs(&self, root: &Node) -> usize {
        let beside = self.beside.iter().filter(|beside| root.get(beside.key).is_some());
        self.evidence(root).len() + beside.count()
    }

    /// A reference in a text that only this program replaces.
    fn written_mark(&self, source: &Source) -> Option<&'static str> {
        self.marks.iter().copied().find(|mark| source.text.contains(&format!("${{{mark}")))
    }

    /// What the first servers of a file have that no other program knows, or a transport that the owner does not know.
    fn mark(&self, owner: &Dialect, root: &Node) -> Option<&'static str> {
        let knows = |dialect: &Dialect, name: &str| dialect.keys.iter().any(|key| key.name == name);
        let is_own = |name: &str| ALL.iter().all(|dialect| dialect.name == self.name || !knows(dialect, name));
        let mut kinds = self.keys.iter().filter(|key| key.field == Field::Transport).map(|key| key.name);
        let kind = kinds.next().unwrap_or_default();
        let is_new = |word: &str| owner.transports.iter().all(|(known, _)| *known != word);
        self.each_server(root).into_iter().take(TELLING).find_map(|server| {
            let key = self.keys.iter().map(|key| key.name).find(|key| server.get(key).is_some() && is_own(key));
            let word = || {
                let word = server.get(kind)?.as_str().filter(|word| is_new(word))?;
                self.transports.iter().map(|(known, _)| *known).find(|known| *known == word)
            };
            key.or_else(word)
        })
    }
}
