//! What to report of a file that has no servers where they belong.

use crate::{
    codes,
    dialect::{Collection, Dialect, RootKeys, is_about_other_things, is_note, is_server, looks_like_servers},
};
use rehearse_document::{Entry, Node, Span, Value};
use rehearse_report::findings::Finding;

/// What to report of a file without servers in their place; the servers, if they are somewhere else.
pub(super) fn find<'n>(root: &'n Node, dialect: &Dialect, name: &str) -> (Finding, Option<&'n Node>) {
    let is_guest = !dialect.sections.is_empty() && is_about_other_things(name);
    let keys = dialect.place_in(root, is_guest);
    let (place, program) = (keys.join("."), dialect.program);
    let begin = Span { start: root.span.start, end: root.span.start };
    let is_section = matches!(dialect.root_keys, RootKeys::Section(_)) || is_about_other_things(name);
    if root.as_entries().is_none() {
        let message = format!("a config must be an object, found {}", root.kind());
        return (codes::ROOT.at(begin, message).hint(format!("write {{ \"{place}\": {{ … }} }}")), None);
    }
    let misplaced = misplaced(root, dialect, is_section);
    let may_be_empty = dialect.may_be_empty && has_known_keys_only(root, dialect);
    if may_be_empty || is_guest && misplaced.is_none() {
        return (codes::NO_SERVERS.at(begin, "there are no servers in this file").hint("nothing was checked"), None);
    }
    if let Some((path, entry)) = misplaced {
        let message = format!("{program} reads servers from `{place}`, not from `{path}`");
        let servers = Some(&entry.node).filter(|node| has_server(node));
        return (codes::ROOT.at(entry.key_span, message).hint(format!("put them under `{place}`")), servers);
    }
    if is_server(root) {
        let message = format!("this is one server; {program} reads servers from `{place}`");
        let hint = match dialect.collection {
            Collection::List { .. } => "put it there as an item that begins with `- name: …`",
            Collection::Map => "put it there with a name: { \"name\": { … } }",
        };
        return (codes::ROOT.at(begin, message).hint(hint), None);
    }
    let is_bare = looks_like_servers(root);
    if is_section && !is_bare {
        let message = format!("there are no servers under `{place}`");
        let hint = if dialect.describes_agent { "only the agent was checked" } else { "nothing was checked" };
        return (codes::NO_SERVERS.at(begin, message).hint(hint), None);
    }
    let message = format!("{program} reads servers from `{place}`, which is missing");
    let finding = codes::ROOT.at(begin, message).hint(format!("put the servers under `{place}`"));
    (finding, is_bare.then_some(root))
}

/// What to report of a file for which no program is known.
pub(crate) fn unknown_program(root: &Node) -> Finding {
    let begin = Span { start: root.span.start, end: root.span.start };
    let message = "it is not clear which program this file is for: it has none of the known keys for servers";
    let finding = match root.as_entries().unwrap_or_default().iter().find(|entry| is_like_servers(entry)) {
        Some(entry) => codes::ROOT.at(entry.key_span, message),
        None => codes::ROOT.at(begin, message),
    };
    finding.hint(codes::DIALECT_HINT)
}

/// Servers under a key that the program does not read: the path to them, and the entry.
fn misplaced<'n>(root: &'n Node, dialect: &Dialect, is_section: bool) -> Option<(String, &'n Entry)> {
    let entries = root.as_entries().unwrap_or_default();
    let is_meant = |entry: &&Entry| is_like_servers(entry) || has_server(&entry.node) && !is_section;
    if let Some(entry) = entries.iter().find(is_meant) {
        return Some((entry.key.clone(), entry));
    }
    let last = dialect.roots.first().and_then(|keys| keys.last()).copied().unwrap_or_default();
    let first = dialect.roots.first().and_then(|keys| keys.first()).copied().unwrap_or_default();
    entries.iter().find_map(|outer| {
        let inner = outer.node.as_entries()?.iter().find(|inner| {
            looks_like_servers(&inner.node)
                && (inner.key == last || is_like_servers(inner) && (!is_section || outer.key == first))
        })?;
        Some((format!("{}.{}", outer.key, inner.key), inner))
    })
}

/// Whether one of these is a server.
fn has_server(servers: &Node) -> bool {
    let is_in = |entries: &[Entry]| entries.iter().any(|entry| is_server(&entry.node));
    servers.as_entries().is_some_and(is_in) || servers.as_items().is_some_and(|items| items.iter().any(is_server))
}

fn has_known_keys_only(root: &Node, dialect: &Dialect) -> bool {
    let (RootKeys::Known(known) | RootKeys::Section(known)) = dialect.root_keys;
    let is_known = |entry: &Entry| known.contains(&&*entry.key) || is_note(&entry.key);
    root.as_entries().is_some_and(|entries| entries.iter().all(is_known))
}

/// Whether an object or array has almost the name of some program's key for servers.
pub(super) fn is_like_servers(entry: &Entry) -> bool {
    let key = entry.key.replace(['-', '_'], "").to_lowercase();
    let is_near = |place: &&str| strsim::levenshtein(&key, place) <= 2;
    matches!(entry.node.value, Value::Mapping(_) | Value::Sequence(_))
        && (4..=20).contains(&key.len())
        && ["mcpservers", "servers", "contextservers"].iter().any(is_near)
}
