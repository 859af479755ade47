//! Lists of names by which a program uses some servers and not others.

use std::collections::HashMap;

use super::ClientConfig;
use crate::{At, codes, dialect::NameLists};
use rehearse_document::{Node, Span, nearest};
use rehearse_report::findings::Finding;

/// Names with their spans, and the span of the whole list.
struct NameList<'n> {
    span: Span,
    names: HashMap<&'n str, Span>,
}

/// Turns off the servers that the lists of a file leave out, and reports names that no server of the file has.
///
/// An empty list of allowed servers allows all.
pub(super) fn apply(lists: &NameLists, root: &Node, config: &mut ClientConfig, findings: &mut Vec<Finding>) {
    let names: Vec<&str> = [lists.allowed, lists.excluded].iter().filter_map(|place| place.last().copied()).collect();
    let around = lists.allowed.split_last().and_then(|(_, around)| root.get_path(around)?.as_entries());
    for entry in around.unwrap_or_default().iter().filter(|entry| entry.node.as_items().is_some()) {
        if let Some(near) = nearest(&entry.key, &names).filter(|_| !names.contains(&&*entry.key)) {
            let finding = codes::UNKNOWN_KEY.at(entry.key_span, format!("unknown key `{}`", entry.key));
            findings.push(finding.hint(format!("did you mean `{near}`?")));
        }
    }
    let servers = config.servers.iter().chain(&config.incomplete);
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

fn read<'n>(place: &[&str], root: &'n Node, known: &[String], findings: &mut Vec<Finding>) -> Option<NameList<'n>> {
    let node = root.get_path(place)?;
    let key = place.last().copied().unwrap_or_default();
    let wrong = |node: &Node| {
        let message = format!("`{key}` must be an array of strings, found {}", node.kind());
        codes::VALUE_TYPE.at(node.span, message).hint("write [\"one\", \"two\"]")
    };
    let Some(items) = node.as_items() else {
        findings.push(wrong(node));
        return None;
    };
    let mut list = NameList { span: node.span, names: HashMap::new() };
    let likely: Vec<&str> = known.iter().map(String::as_str).collect();
    for item in items {
        let Some(name) = item.as_str() else {
            findings.push(wrong(item));
            continue;
        };
        list.names.insert(name, item.span);
        if !likely.contains(&name) && !name.contains(['*', '?']) {
            let finding = codes::SERVER_UNKNOWN.at(item.span, format!("there is no server `{name}` in this file"));
            findings.push(match nearest(name, &likely) {
                Some(near) => finding.hint(format!("did you mean `{near}`?")),
                None => finding.hint("it may be in another file of the program"),
            });
        }
    }
    Some(list)
}
