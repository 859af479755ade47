//! What to say of a file that has no servers where they belong.

use super::{is_server, looks_like_servers, word::is_note};
use crate::config::{
    Entry, Node, Span, Value,
    dialect::{ALL, Collection, Dialect, RootKeys, is_about_other_things},
    finding::{Finding, codes},
    nearest,
};

/// The file has nothing where the program looks for servers. The servers, if it is clear which they are.
pub(super) fn no_servers<'n>(root: &'n Node, dialect: &Dialect, name: &str) -> (Finding, Option<&'n Node>) {
    let is_guest = !dialect.sections.is_empty() && is_about_other_things(name);
    let keys = dialect.place_in(root, is_guest);
    let place = keys.join(".");
    let program = dialect.program;
    let message = format!("{program} looks for servers under `{place}`, and there is nothing");
    let begin = Span { start: root.span.start, end: root.span.start };
    let may_be_empty = dialect.may_be_empty && has_nothing_else(root, dialect);
    if may_be_empty || (is_guest && root.as_entries().is_some() && near(root).is_none()) {
        return (codes::NO_SERVERS.at(begin, "there are no servers in this file").hint("nothing was checked"), None);
    }
    if let Some((outer, entry)) = within(root, &keys) {
        let key = &entry.key;
        let message = format!("{program} looks for servers under `{place}`, and not under `{outer}.{key}`");
        let hint = match &keys[..] {
            [_, .., last] => format!("rename `{key}` to `{last}`"),
            _ => format!("put them under `{place}` at the root of the file"),
        };
        let servers = Some(&entry.node).filter(|node| has_server(node));
        return (codes::ROOT.at(entry.key_span, message).hint(hint), servers);
    }
    let is_section = matches!(dialect.root_keys, RootKeys::Section(_)) || is_about_other_things(name);
    if let Some((entry, place_of_another, servers)) = in_place_of_another(root).filter(|_| !is_section) {
        let message = format!("{program} looks for servers under `{place}`, and not under `{place_of_another}`");
        let hint = format!("put what is under `{place_of_another}` under `{place}`");
        return (codes::ROOT.at(entry.key_span, message).hint(hint), Some(servers));
    }
    // In a file about other things, what is at a URL may be anything.
    let is_meant = |entry: &&Entry| !is_section || is_called_like_servers(entry) || has_program(&entry.node);
    match (misplaced(root).filter(is_meant), is_section) {
        (Some(entry), _) => {
            let finding = codes::ROOT.at(entry.key_span, message).hint(match &keys[..] {
                [key] => format!("rename `{}` to `{key}`", entry.key),
                _ => format!("put them under {}", nested(&keys)),
            });
            let inner = keys.get(1..).and_then(|rest| entry.node.at(rest)).unwrap_or(&entry.node);
            (finding, has_server(inner).then_some(inner))
        }
        (None, _) if is_server(root) => {
            let message = format!("this is one server, and {program} looks for it under `{place}`");
            let hint = match dialect.collection {
                Collection::List { .. } => format!("put it below `{place}`, as an item that begins with `- name: …`"),
                Collection::Map => {
                    format!("put it there with a name: {{ {} }}", nested(&[&keys[..], &["name"]].concat()))
                }
            };
            (codes::ROOT.at(begin, message).hint(hint), None)
        }
        (None, true) if root.as_entries().is_some() && !looks_like_servers(root) => {
            let message = format!("there are no servers under `{place}`");
            (codes::NO_SERVERS.at(begin, message).hint("nothing was checked"), None)
        }
        (None, _) if root.as_entries().is_some() => {
            let is_bare = looks_like_servers(root);
            let finding = codes::ROOT.at(begin, message).hint(format!("put the servers under `{place}`"));
            (finding, is_bare.then_some(root))
        }
        (None, _) => {
            let message = format!("a config must be an object, found {}", root.kind());
            (codes::ROOT.at(begin, message).hint(format!("write {{ \"{place}\": {{ … }} }}")), None)
        }
    }
}

/// Servers below two keys where another program looks for them: the first key, both, and the servers.
fn in_place_of_another(root: &Node) -> Option<(&Entry, String, &Node)> {
    let places = ALL.iter().flat_map(|dialect| dialect.roots).filter(|keys| keys.len() == 2);
    places.into_iter().find_map(|keys| {
        let servers = root.at(keys).filter(|servers| has_server(servers))?;
        let first = root.as_entries()?.iter().find(|entry| entry.key == keys[0])?;
        Some((first, keys.join("."), servers))
    })
}

/// The servers that are in an object at the root and in none of its places: under their own key if they belong to the
/// root, or else under another in the object to which they belong; and the key of that object.
fn within<'n>(root: &'n Node, place: &[&str]) -> Option<(&'n str, &'n Entry)> {
    let entries = |node: &'n Node| node.as_entries().unwrap_or_default();
    let (last, around) = place.split_last()?;
    let mut outer = entries(root).iter().filter(|outer| around.is_empty() || around == [&*outer.key]);
    outer.find_map(|outer| {
        let is_meant = |entry: &&Entry| match around {
            [] => entry.key == *last && looks_like_servers(&entry.node),
            _ => is_near_servers(entry),
        };
        Some((&*outer.key, entries(&outer.node).iter().find(is_meant)?))
    })
}

/// Whether one of these is a server.
fn has_server(servers: &Node) -> bool {
    let is_in = |entries: &[Entry]| entries.iter().any(|entry| is_server(&entry.node));
    servers.as_entries().is_some_and(is_in) || servers.as_items().is_some_and(|items| items.iter().any(is_server))
}

/// Whether one of these is a server that is started.
fn has_program(servers: &Node) -> bool {
    servers.as_entries().is_some_and(|entries| entries.iter().any(|entry| entry.node.get("command").is_some()))
}

/// Whether there is nothing but what belongs beside servers.
fn has_nothing_else(root: &Node, dialect: &Dialect) -> bool {
    let (RootKeys::Known(known) | RootKeys::Section(known)) = dialect.root_keys;
    let belongs = |entry: &Entry| known.contains(&&*entry.key) || is_note(&entry.key);
    root.as_entries().is_some_and(|entries| entries.iter().all(belongs))
}

/// Keys from the root on, as JSON: `"mcp": { "servers": { … } }`.
fn nested(keys: &[&str]) -> String {
    keys.iter().rev().fold("{ … }".to_owned(), |inner, key| match inner.starts_with('{') {
        true => format!("\"{key}\": {inner}"),
        false => format!("\"{key}\": {{ {inner} }}"),
    })
}

/// The file has no servers in any dialect's place.
pub(in crate::config) fn nowhere(root: &Node) -> Finding {
    let begin = Span { start: root.span.start, end: root.span.start };
    let places = "`mcpServers` (most programs), `servers` (Visual Studio Code), `mcp.servers` (code_agent), `context_servers` (Zed)";
    let hint = format!("programs look under {places}; `--dialect` says which program it is for");
    match misplaced(root) {
        Some(entry) => {
            let finding = codes::ROOT
                .at(entry.key_span, format!("no program that is known here looks for servers under `{}`", entry.key));
            let meant = nearest(&entry.key, &["mcpServers", "servers", "context_servers"]);
            finding.hint(match meant.filter(|_| is_near_servers(entry)) {
                Some(meant) => format!("rename it to `{meant}`; {hint}"),
                None => hint,
            })
        }
        None => codes::ROOT.at(begin, "there are no servers").hint(hint),
    }
}

/// What looks like servers in a place where nobody looks.
fn misplaced(root: &Node) -> Option<&Entry> {
    let entries = root.as_entries().unwrap_or_default();
    near(root).or_else(|| entries.iter().find(|entry| looks_like_servers(&entry.node)))
}

/// What is called almost like the place of servers.
fn near(root: &Node) -> Option<&Entry> {
    let is_some = |entry: &&Entry| matches!(entry.node.value, Value::Mapping(_) | Value::Sequence(_));
    root.as_entries().unwrap_or_default().iter().filter(is_some).find(|entry| is_called_like_servers(entry))
}

/// Whether this has servers and is called almost like their place.
pub(super) fn is_near_servers(entry: &Entry) -> bool {
    let are_servers =
        |servers: &[Entry]| !servers.is_empty() && servers.iter().all(|it| it.node.as_entries().is_some());
    entry.node.as_entries().is_some_and(are_servers) && is_called_like_servers(entry)
}

fn is_called_like_servers(entry: &Entry) -> bool {
    let places = ["mcpServers", "servers", "mcp", "context_servers"];
    let key = entry.key.replace(['-', '_'], "").to_lowercase();
    let is_near = places.iter().any(|place| strsim::levenshtein(&key, &place.to_lowercase()) <= 2);
    entry.key.len() <= 20 && is_near && key.len() > 3
}
