//! What belongs into a server, and stands in the place of all of them, or beside them.

use super::is_server;
use crate::config::{
    Entry, Node,
    dialect::{Dialect, Field},
    finding::{Finding, codes},
};

/// What to say of keys of a server where there should be names of servers.
pub(super) struct Nameless {
    pub(super) finding: Finding,
    /// Whether there are servers with names as well.
    pub(super) are_servers_beside: bool,
}

/// Looks for a server without a name, or a part of one.
pub(super) fn find(node: &Node, entries: &[Entry], dialect: &Dialect) -> Option<Nameless> {
    if let Some(entry) = only_server(node, entries) {
        let finding = codes::MISSING.at(entry.key_span, "this is one server, and it has no name");
        let finding = finding.hint("put it below a name: \"name\": { … }");
        return Some(Nameless { finding, are_servers_beside: false });
    }
    let stray = entries.iter().find(|entry| is_stray(entry, dialect))?;
    let are_servers_beside = entries.iter().any(|entry| is_server(&entry.node));
    // What is below an empty key belongs to that.
    let has_empty = entries.iter().any(|entry| entry.node.is_null());
    let finding = belongs_to_server(stray);
    (are_servers_beside && !has_empty).then_some(Nameless { finding, are_servers_beside })
}

/// Where the address of a server stands that is in the place of all servers; a key without a value would be its name.
fn only_server<'n>(node: &Node, entries: &'n [Entry]) -> Option<&'n Entry> {
    let is_name = |entry: &Entry| entry.node.is_null() || is_server(&entry.node);
    entries.iter().find(|entry| is_address(entry)).filter(|_| is_server(node) && !entries.iter().any(is_name))
}

fn is_address(entry: &Entry) -> bool {
    ["command", "url"].contains(&&*entry.key)
}

/// Whether this is a key of a server, with a value of one, in the place of a server.
pub(super) fn is_stray(entry: &Entry, dialect: &Dialect) -> bool {
    let is_text = |entry: &Entry| entry.node.as_str().is_some();
    let Some(key) = dialect.keys.iter().find(|key| key.name == entry.key) else { return false };
    let is_of_pairs = matches!(key.field, Field::Env | Field::Headers);
    match entry.node.as_entries() {
        Some(pairs) => is_of_pairs && !pairs.is_empty() && pairs.iter().all(is_text) && !is_server(&entry.node),
        None => !is_of_pairs && !matches!(key.field, Field::Object(_)) && !entry.node.is_null(),
    }
}

fn belongs_to_server(stray: &Entry) -> Finding {
    match is_address(stray) {
        true => codes::MISSING
            .at(stray.key_span, "a server begins here, and it has no name")
            .hint("put it below a name: \"name\": { … }"),
        false => codes::MISSING
            .at(stray.key_span, format!("`{}` stands beside the servers, and belongs into one", stray.key))
            .hint("move it into the server that it is for"),
    }
}
