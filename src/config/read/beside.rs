//! What stands beside the servers.

use super::{absent::is_near_servers, is_server, word::is_note};
use crate::config::{
    Node, Source, Span,
    dialect::{Beside, Dialect, RootKeys},
    finding::{Finding, codes},
    nearest,
};

/// What is wrong with the keys beside the servers.
pub(super) fn beside(root: &Node, servers: &Node, (dialect, source): (&Dialect, &Source), findings: &mut Vec<Finding>) {
    if let Some(caveat) = dialect.bare.filter(|_| std::ptr::eq(servers, root)) {
        let begin = Span { start: root.span.start, end: root.span.start };
        let place = dialect.roots.first().map(|keys| keys.join(".")).unwrap_or_default();
        findings.push(codes::BARE.at(begin, caveat).hint(format!("put everything under `{place}`")));
        return;
    }
    in_vain(root, servers, (dialect, source), findings);
    let (RootKeys::Known(known) | RootKeys::Section(known)) = dialect.root_keys;
    let places: Vec<_> = dialect.roots.iter().filter_map(|keys| keys.first().copied()).collect();
    let (is_whole, strict) = (matches!(dialect.root_keys, RootKeys::Known(_)), dialect.is_strict_file(&source.name));
    let others = dialect.beside.iter().map(|beside| beside.key).chain(dialect.switch).chain(dialect.projects);
    let others: Vec<_> = others.collect();
    let is_there = |keys: &&&[&str]| root.at(keys).is_some();
    let place = dialect.roots.iter().find(is_there).map(|keys| keys.join(".")).unwrap_or_default();
    for entry in root.as_entries().unwrap_or_default() {
        let key = &*entry.key;
        if known.contains(&key) || places.contains(&key) || others.contains(&key) || is_note(key) {
            continue;
        }
        let message = match strict {
            true => format!("{} rejects the file for `{key}`, which it does not know", dialect.program),
            false => format!("{} does not know `{key}`", dialect.program),
        };
        if is_stray(&entry.node, is_whole) {
            let (code, message) = match strict {
                true => (&codes::KEY_REJECTED, message),
                false => (&codes::UNKNOWN_KEY, format!("`{key}` is a server where {} looks for none", dialect.program)),
            };
            findings.push(code.at(entry.key_span, message).hint(format!("put it inside `{place}`")));
            continue;
        }
        let is_section = || dialect.sections.contains(&&[key][..]) && dialect.servers(&entry.node).is_some();
        let are_servers = is_near_servers(entry) || is_section();
        let near = match are_servers {
            true => nearest(key, &places).or(places.first().copied()),
            // Of a file about other things not all keys are known here.
            false => nearest(key, known).filter(|near| (is_whole || strict) && !is_longer(key, near)),
        };
        findings.push(match (strict, near) {
            (true, Some(near)) => {
                codes::KEY_REJECTED.at(entry.key_span, message).hint(format!("did you mean `{near}`?"))
            }
            (true, None) if is_whole => codes::KEY_REJECTED.at(entry.key_span, message).hint("remove it"),
            (false, Some(near)) if are_servers => {
                let message = format!("{} looks for no servers under `{key}`", dialect.program);
                codes::UNKNOWN_KEY.at(entry.key_span, message).hint(format!("put them under `{near}`"))
            }
            (false, Some(near)) => {
                codes::UNKNOWN_KEY.at(entry.key_span, message).hint(format!("did you mean `{near}`?"))
            }
            (false, None) if is_whole => codes::EXTRA_KEY.at(entry.key_span, message).hint("it is passed over"),
            (_, None) => continue,
        });
    }
}

/// Whether a key is another with more words after it, and no slip: `promptHooks` is not `prompt`.
fn is_longer(key: &str, known: &str) -> bool {
    key.strip_prefix(known).is_some_and(|rest| rest.len() > 2 && rest.starts_with(char::is_uppercase))
}

/// Whether this is a server that is not among the others. A file about other things may have commands of its own, so it
/// takes more there.
fn is_stray(node: &Node, is_whole: bool) -> bool {
    is_server(node) && (is_whole || ["args", "env", "headers"].iter().any(|key| node.get(key).is_some()))
}

/// Tells of servers in a file of the program in which it looks for none.
fn in_vain(root: &Node, servers: &Node, (dialect, source): (&Dialect, &Source), findings: &mut Vec<Finding>) {
    if !dialect.is_without_servers(&source.name) {
        return;
    }
    let mut entries = root.as_entries().unwrap_or_default().iter();
    if let Some(entry) = entries.find(|entry| std::ptr::eq(&raw const entry.node, servers)) {
        let belongs = dialect.files.first().map(|place| place.suffix()).unwrap_or_default();
        let message = format!("{} looks for no servers in this file", dialect.program);
        findings.push(codes::UNKNOWN_KEY.at(entry.key_span, message).hint(format!("put them into `{belongs}`")));
    }
}

/// What a file must have beside its servers.
pub(super) fn lacking(root: &Node, dialect: &Dialect, findings: &mut Vec<Finding>) {
    for Beside { key, value, .. } in dialect.beside.iter().filter(|beside| beside.required) {
        match root.get(key) {
            Some(node) if node.as_str().is_some() => {}
            Some(node) => {
                let message = format!("`{key}` must be a text, found {}", node.kind());
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
