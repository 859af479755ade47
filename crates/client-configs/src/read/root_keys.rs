//! The keys beside the servers.

use super::missing_servers::is_like_servers;
use crate::{
    codes,
    dialect::{Companion, Dialect, RootKeys, is_note, is_server},
};
use rehearse_document::{Entry, Node, Source, Span, nearest};
use rehearse_report::findings::Finding;

/// Reports unknown keys beside the servers, and servers among them.
pub(super) fn check(root: &Node, servers: &Node, (dialect, source): (&Dialect, &Source), findings: &mut Vec<Finding>) {
    let place = dialect.roots.first().map(|keys| keys.join(".")).unwrap_or_default();
    if let Some(note) = dialect.bare_map_note.filter(|_| std::ptr::eq(servers, root)) {
        let begin = Span { start: root.span.start, end: root.span.start };
        findings.push(codes::BARE.at(begin, note).hint(format!("put everything under `{place}`")));
        return;
    }
    check_file(root, servers, (dialect, source), findings);
    let (RootKeys::Known(known) | RootKeys::Section(known)) = dialect.root_keys;
    let places: Vec<_> = dialect.roots.iter().filter_map(|keys| keys.first().copied()).collect();
    let (is_whole, strict) = (matches!(dialect.root_keys, RootKeys::Known(_)), dialect.is_strict_file(&source.name));
    let companions = dialect.companions.iter().map(|companion| companion.key);
    let others: Vec<_> = companions.chain(dialect.global_enable_key).chain(dialect.projects).collect();
    for entry in root.as_entries().unwrap_or_default() {
        let key = &*entry.key;
        if known.contains(&key) || places.contains(&key) || others.contains(&key) || is_note(key) {
            continue;
        }
        let (code, message) = match strict {
            true => (&codes::KEY_REJECTED, format!("unknown key `{key}`: {} rejects the file", dialect.program)),
            false => (&codes::UNKNOWN_KEY, format!("unknown key `{key}`")),
        };
        let are_servers = is_like_servers(entry) && all_objects(entry)
            || dialect.sections.contains(&&[key][..]) && dialect.servers(&entry.node).is_some();
        if is_stray_server(&entry.node, is_whole) {
            findings.push(code.at(entry.key_span, message).hint(format!("a server belongs inside `{place}`")));
        } else if are_servers {
            findings.push(code.at(entry.key_span, message).hint(format!("put the servers under `{place}`")));
        } else if let Some(near) = nearest(key, known).filter(|near| (is_whole || strict) && !is_longer(key, near)) {
            findings.push(code.at(entry.key_span, message).hint(format!("did you mean `{near}`?")));
        } else if strict && is_whole {
            findings.push(code.at(entry.key_span, message).hint("remove it"));
        } else if is_whole {
            let finding = codes::EXTRA_KEY.at(entry.key_span, message);
            findings.push(finding.hint(format!("{} ignores it", dialect.program)));
        }
    }
}

fn all_objects(entry: &Entry) -> bool {
    let are = |servers: &[Entry]| !servers.is_empty() && servers.iter().all(|it| it.node.as_entries().is_some());
    entry.node.as_entries().is_some_and(are)
}

/// Whether a key is another one with more words after it, and not misspelled: `promptHooks` is not `prompt`.
fn is_longer(key: &str, known: &str) -> bool {
    key.strip_prefix(known).is_some_and(|rest| rest.len() > 2 && rest.starts_with(char::is_uppercase))
}

/// Whether this is a server outside of the servers. A file about other things may have commands of its own.
fn is_stray_server(node: &Node, is_whole: bool) -> bool {
    is_server(node) && (is_whole || ["args", "env", "headers"].iter().any(|key| node.get(key).is_some()))
}

/// Reports servers in a file in which the program looks for none.
fn check_file(root: &Node, servers: &Node, (dialect, source): (&Dialect, &Source), findings: &mut Vec<Finding>) {
    let mut entries = root.as_entries().unwrap_or_default().iter();
    if dialect.is_without_servers(&source.name)
        && let Some(entry) = entries.find(|entry| std::ptr::eq(&raw const entry.node, servers))
    {
        let belongs = dialect.files.first().map(|place| place.suffix()).unwrap_or_default();
        let message = format!("{} reads no servers from this file", dialect.program);
        findings.push(codes::UNKNOWN_KEY.at(entry.key_span, message).hint(format!("put them into `{belongs}`")));
    }
}

/// Reports required keys that are missing beside the servers.
pub(super) fn check_required(root: &Node, dialect: &Dialect, findings: &mut Vec<Finding>) {
    for Companion { key, value, .. } in dialect.companions.iter().filter(|companion| companion.required) {
        match root.get(key) {
            Some(node) if node.as_str().is_some() => {}
            Some(node) => {
                let message = format!("`{key}` must be a string, found {}", node.kind());
                findings.push(codes::VALUE_TYPE.at(node.span, message).hint("write it in quotes"));
            }
            None => {
                let begin = Span { start: root.span.start, end: root.span.start };
                let message = format!("{} rejects a file without `{key}`", dialect.program);
                findings.push(codes::MISSING.at(begin, message).hint(format!("add `{key}: {value}`")));
            }
        }
    }
}
