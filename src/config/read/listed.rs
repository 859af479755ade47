//! Lists of names by which a program leaves servers alone.

use std::collections::{HashMap, HashSet};

use crate::config::{
    Node, Span,
    dialect::NameLists,
    finding::{Finding, codes},
    nearest,
    read::ClientConfig,
    server::At,
};

/// Among so many names somebody looks for what was meant, and for so many: each takes a while.
const MOST_LIKELY: usize = 50;
const MOST_HINTS: usize = 20;

/// A list of names with their places, and the place of the whole.
struct Listed<'n> {
    span: Span,
    names: HashMap<&'n str, Span>,
}

/// Turns off the servers that the lists of a file leave out, and tells of names that no server of the file has.
///
/// An empty list of allowed servers allows all.
pub(super) fn apply(lists: &NameLists, root: &Node, config: &mut ClientConfig, findings: &mut Vec<Finding>) {
    misspelt(lists, root, findings);
    let servers = config.servers.iter().chain(&config.unclear);
    let known: Vec<_> = servers.map(|server| server.name.value.clone()).collect();
    let allowed = read(lists.allowed, root, &known, findings).filter(|list| !list.names.is_empty());
    let excluded = read(lists.excluded, root, &known, findings);
    for server in &mut config.servers {
        let name = server.name.value.as_str();
        let missing = allowed.as_ref().filter(|list| !list.names.contains_key(name)).map(|list| list.span);
        let span = excluded.as_ref().and_then(|list| list.names.get(name).copied()).or(missing);
        if let Some(span) = span {
            server.enabled = Some(At { value: false, span });
        }
    }
}

/// Tells of keys that are called almost like one of the lists.
fn misspelt(lists: &NameLists, root: &Node, findings: &mut Vec<Finding>) {
    let names: Vec<&str> = [lists.allowed, lists.excluded].iter().filter_map(|place| place.last().copied()).collect();
    let around = lists.allowed.split_last().map_or(&[][..], |(_, around)| around);
    let node = root.at(around);
    for entry in node.and_then(|node| node.as_entries()).unwrap_or_default() {
        let key = &*entry.key;
        if let Some(near) = nearest(key, &names).filter(|_| !names.contains(&key) && entry.node.as_items().is_some()) {
            let finding = codes::UNKNOWN_KEY.at(entry.key_span, format!("there is no list `{key}`"));
            findings.push(finding.hint(format!("did you mean `{near}`?")));
        }
    }
}

fn read<'n>(place: &[&str], root: &'n Node, known: &[String], findings: &mut Vec<Finding>) -> Option<Listed<'n>> {
    let node = root.at(place)?;
    let key = place.last().copied().unwrap_or_default();
    let mut wrong = |node: &Node, hint: &'static str| {
        let message = format!("`{key}` must be a list of texts, found {}", node.kind());
        findings.push(codes::VALUE_TYPE.at(node.span, message).hint(hint));
    };
    let Some(items) = node.as_items() else {
        wrong(node, "write [\"one\", \"two\"]");
        return None;
    };
    let mut listed = Listed { span: node.span, names: HashMap::with_capacity(items.len()) };
    for item in items {
        match item.as_str() {
            Some(name) => drop(listed.names.insert(name, item.span)),
            None => wrong(item, "write the name of a server"),
        }
    }
    let names: HashSet<&str> = known.iter().map(String::as_str).collect();
    let likely: Vec<&str> = known.iter().map(String::as_str).take(MOST_LIKELY).collect();
    let mut unknown: Vec<_> = listed.names.iter().filter(|(name, _)| !names.contains(*name)).collect();
    unknown.sort_by_key(|(_, span)| span.start);
    findings.extend(unknown.into_iter().enumerate().map(|(index, (name, span))| {
        let finding = codes::SERVER_UNKNOWN.at(*span, format!("there is no server `{name}` in this file"));
        let near = if index < MOST_HINTS { nearest(name, &likely) } else { None };
        match near {
            Some(near) => finding.hint(format!("did you mean `{near}`?")),
            None => finding.hint("it may be in another file of the program"),
        }
    }));
    Some(listed)
}
