//! Where the servers of a file are, and what is beside them.

use std::path::Path;

use super::{
    Collection, Dialect, Field, FileLocation, Files, MissingType, Profiles, VariableRule, by_path, without_ending,
};
use rehearse_document::{Entry, Node, Value};

/// An object or array of servers in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerMap<'n> {
    pub(crate) node: &'n Node,
    pub(crate) when_type_missing: MissingType,
    pub(crate) rejects_unknown_keys: bool,
}

impl Dialect {
    /// The servers of a file, if it has any where this program looks for them.
    pub fn servers<'n>(&self, root: &'n Node) -> Option<&'n Node> {
        let root = self.part(root);
        let bare = || (self.bare_map_note.is_some() && looks_like_servers(root)).then_some(root);
        self.roots.iter().find_map(|keys| root.get_path(keys)).or_else(bare)
    }

    /// What the name of a server has in it that the program rejects.
    pub(crate) fn forbidden_in_name(&self, name: &str) -> Option<char> {
        name.chars().find(|c| self.is_forbidden_in_names(*c))
    }

    pub(crate) fn is_forbidden_in_names(&self, c: char) -> bool {
        self.name_characters.is_some_and(|allowed| !c.is_ascii_alphanumeric() && !allowed.contains(c))
    }

    /// Whether a file is one server and nothing else.
    pub(crate) fn is_single_server(&self, root: &Node) -> bool {
        self.single_server_file && self.servers(root).is_none() && is_server(root)
    }

    /// Whether the servers of a file of this name may be a path.
    pub(crate) fn is_linked_from(&self, name: &str) -> bool {
        let is_file_of_servers = |(_, place)| !matches!(place, FileLocation::Section(_));
        self.links_to_file && !by_path(Path::new(name)).is_some_and(is_file_of_servers)
    }

    /// Whether a file of this name is one in which the program looks for no servers.
    pub(crate) fn is_without_servers(&self, name: &str) -> bool {
        !self.files_without_servers.is_empty()
            && self.files_without_servers.iter().any(|place| place.matches(&name.replace('\\', "/")))
    }

    /// All servers of a file: those in their place, and those of its profiles.
    pub(crate) fn server_maps<'n>(&self, root: &'n Node) -> Vec<ServerMap<'n>> {
        let main = match self.servers(root) {
            Some(node) if self.links_to_file && node.as_str().is_some() => Vec::new(),
            Some(Node { value: Value::Sequence(items), .. }) if self.links_to_file => {
                items.iter().filter(|item| item.as_entries().is_some() && !is_server(item)).collect()
            }
            node => node.into_iter().collect(),
        };
        let main = main.into_iter().map(|node| ServerMap {
            node,
            when_type_missing: self.when_type_missing,
            rejects_unknown_keys: self.rejects_unknown_keys,
        });
        let profiles =
            self.profiles.iter().flat_map(|Profiles { key, servers, when_type_missing, rejects_unknown_keys }| {
                let list = root.get(key).and_then(|list| list.as_items()).unwrap_or_default();
                let nodes = list.iter().filter_map(|profile| profile.get(servers));
                nodes.map(|node| ServerMap {
                    node,
                    when_type_missing: *when_type_missing,
                    rejects_unknown_keys: *rejects_unknown_keys,
                })
            });
        main.chain(profiles).collect()
    }

    /// The projects of the user that have servers of their own. The program writes what is there, also that there is
    /// nothing.
    pub(crate) fn projects<'n>(&self, root: &'n Node) -> Vec<&'n Entry> {
        let projects = self.projects.and_then(|key| root.get(key)?.as_entries()).unwrap_or_default();
        let has_some = |project: &&Entry| self.servers(&project.node).is_some_and(|servers| !servers.is_null());
        projects.iter().filter(has_some).collect()
    }

    /// Whether a file of this name is rejected for a key beside its servers that the program does not know.
    pub(crate) fn is_strict_file(&self, name: &str) -> bool {
        match self.strict_files {
            Files::None => false,
            Files::All => true,
            Files::These(places) => {
                by_path(&without_ending(Path::new(name))).is_some_and(|(_, place)| places.contains(&place))
            }
        }
    }

    /// Whether what is at this node is not known before the program has replaced something in it.
    pub(crate) fn is_unresolved(&self, node: &Node) -> bool {
        node.as_str().is_some_and(|text| self.variables.is_replaced_in(text))
    }

    /// What is written for each server.
    pub(crate) fn servers_of<'n>(&self, root: &'n Node) -> Vec<&'n Node> {
        let mut servers = Vec::new();
        for ServerMap { node, .. } in self.server_maps(root) {
            match self.collection {
                Collection::Map => {
                    servers.extend(node.as_entries().unwrap_or_default().iter().map(|entry| &entry.node))
                }
                Collection::List { .. } => servers.extend(node.as_items().unwrap_or_default()),
            }
        }
        servers
    }

    /// Whether the servers are not in the first of the places that this program has for them.
    pub(crate) fn is_second_choice(&self, root: &Node) -> bool {
        let is_section = !std::ptr::eq(self.part(root), root);
        let mut roots = self.roots.iter().map(|keys| root.get_path(keys).is_some());
        is_section || (roots.next() == Some(false) && roots.any(|is_there| is_there))
    }

    /// What turns all servers of a file on or off.
    pub fn global_enable_entry<'n>(&self, root: &'n Node) -> Option<&'n Entry> {
        let key = self.global_enable_key?;
        self.around_servers(root).iter().find(|entry| entry.key == key)
    }

    /// The object that has the servers.
    pub(crate) fn around_servers<'n>(&self, root: &'n Node) -> &'n [Entry] {
        let place = self.roots.iter().find(|keys| root.get_path(keys).is_some());
        let above = place.and_then(|keys| root.get_path(keys.split_last()?.1));
        above.and_then(Node::as_entries).unwrap_or_default()
    }

    /// The words for transports, each once.
    pub(crate) fn words(&self) -> Vec<&'static str> {
        let mut words: Vec<_> = self.transports.iter().map(|(word, _)| *word).collect();
        words.dedup();
        words
    }

    /// What is replaced in values of a field.
    pub fn rule(&self, field: Field) -> &VariableRule {
        match field {
            Field::Command | Field::CommandLine => self.command_variables.as_ref().unwrap_or(&self.variables),
            _ => &self.variables,
        }
    }
}

/// Whether this is an object of servers and of nothing else.
pub(crate) fn looks_like_servers(node: &Node) -> bool {
    let is_server = |entry: &Entry| ["command", "url"].iter().any(|key| entry.node.get(key).is_some());
    node.as_entries().is_some_and(|entries| !entries.is_empty() && entries.iter().all(is_server))
}

/// Whether this is one server and no object of servers.
pub(crate) fn is_server(node: &Node) -> bool {
    ["command", "url"]
        .iter()
        .any(|key| node.get(key).is_some_and(|it| it.as_str().is_some() || it.as_items().is_some()))
}

/// Keys that people add for themselves.
pub(crate) const NOTES: &[&str] =
    &["$schema", "description", "category", "maintainer", "comment", "comments", "note", "notes", "name"];

/// Whether people add such a key for themselves.
pub(crate) fn is_note(key: &str) -> bool {
    NOTES.contains(&key) || key.starts_with(['_', '/', '#'])
}
