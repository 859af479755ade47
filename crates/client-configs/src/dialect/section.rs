//! The section of a file about other things in which a program keeps its servers.

use std::path::Path;

use super::{Dialect, FileLocation, RootKeys, by_path, without_ending};
use rehearse_document::{Entry, Node, Value};

impl Dialect {
    /// The part of a file that is this program's config: a section, or all of it.
    pub(crate) fn part<'n>(&self, root: &'n Node) -> &'n Node {
        self.section(root).map_or(root, |(_, node)| node)
    }

    /// The section of a file about other things that is this program's config, if it has one that is an object. A file
    /// with servers at its root is about nothing else.
    pub(super) fn section<'n>(&self, root: &'n Node) -> Option<(&'static [&'static str], &'n Node)> {
        if self.roots.iter().any(|keys| root.get_path(keys).is_some()) {
            return None;
        }
        self.sections
            .iter()
            .find_map(|keys| Some((*keys, root.get_path(keys).filter(|node| node.as_entries().is_some())?)))
    }

    /// What is around the servers of a file that is about nothing else: keys from the root on, and the first of them.
    pub(crate) fn needless_section<'n>(&self, root: &'n Node, name: &str) -> Option<(String, &'n Entry)> {
        let (keys, _) = self.section(root)?;
        let (owner, place) = by_path(&without_ending(Path::new(name)))?;
        let is_of_servers = std::ptr::eq(owner, self) && !matches!(place, FileLocation::Section(_));
        let first = root.as_entries()?.iter().find(|entry| keys.first() == Some(&&*entry.key));
        first.filter(|_| is_of_servers).map(|entry| (keys.join("."), entry))
    }

    /// Where the servers of a file belong: in a section if it is about other things.
    pub(crate) fn place_in(&self, root: &Node, is_about_other_things: bool) -> Vec<&'static str> {
        let servers = self.roots.first().copied().unwrap_or_default();
        let first = self.sections.first();
        let begun = || self.sections.iter().find(|keys| keys.first().is_some_and(|key| root.get(key).is_some()));
        let section = if is_about_other_things { begun().or(first).copied().unwrap_or_default() } else { &[] };
        [section, servers].concat()
    }

    /// The file as the program takes it, if it is about other things: without what is at its root under the name of
    /// our servers, and with a section whose keys have its name before a dot.
    pub(crate) fn as_settings(&self, root: &Node, is_about_other_things: bool) -> Option<Node> {
        let is_other = |entry: &Entry| self.roots.iter().any(|keys| keys.first() == Some(&&*entry.key));
        let is_ours = |entry: &Entry| is_other(entry) || self.dotted(entry).is_some();
        let entries = root
            .as_entries()
            .filter(|entries| is_about_other_things && !self.sections.is_empty() && entries.iter().any(is_ours))?;
        let is_left = |entry: &&Entry| !is_ours(entry);
        let mut taken: Vec<Entry> = entries.iter().filter(is_left).cloned().collect();
        for entry in entries {
            let Some((section, inner)) = self.dotted(entry) else { continue };
            match taken.iter_mut().find(|it| it.key == section).map(|it| &mut it.node.value) {
                Some(Value::Mapping(beside)) => beside.push(inner),
                _ => {
                    let node = Node { span: entry.node.span, value: Value::Mapping(vec![inner]) };
                    taken.push(Entry { key: section.to_owned(), key_span: entry.key_span, node });
                }
            }
        }
        Some(Node { span: root.span, value: Value::Mapping(taken) })
    }

    /// The section of which this is a key behind a dot, and what is in it: `mcp.servers`.
    fn dotted(&self, entry: &Entry) -> Option<(&'static str, Entry)> {
        let (RootKeys::Known(known) | RootKeys::Section(known)) = self.root_keys;
        let is_ours = |key: &str| known.contains(&key) || self.roots.iter().any(|keys| keys == &[key]);
        let section = |keys: &&'static [&'static str]| match keys {
            [section] => entry.key.strip_prefix(section)?.strip_prefix('.').map(|key| (*section, key)),
            _ => None,
        };
        let section = |keys| section(keys).filter(|(_, key)| is_ours(key));
        let (section, key) = self.sections.iter().find_map(section)?;
        Some((section, Entry { key: key.to_owned(), ..entry.clone() }))
    }
}
