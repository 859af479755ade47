//! Keys of YAML that stand beside what they should stand below: those of a server, of its variables, of all servers.

use std::collections::HashSet;

use super::{Named, is_server, word::is_note};
use crate::config::{
    Entry, Node, Value,
    dialect::{Dialect, Field},
    finding::{Finding, codes},
};

/// What stands in the wrong place, and the places of which everything else is said by that.
#[derive(Default)]
pub(super) struct Strays {
    findings: Vec<Finding>,
    silent: HashSet<usize>,
}

impl Strays {
    /// Looks for servers beside their key, and for what belongs to a key of a server and stands beside it.
    pub(super) fn find(root: &Node, dialect: &Dialect, told: &[Finding]) -> Strays {
        let mut strays = Strays::default();
        let is_place = |entry: &Entry| dialect.roots.iter().any(|keys| *keys == [entry.key.as_str()]);
        strays.beside(root.as_entries().unwrap_or_default(), is_place, |entry| is_server(&entry.node));
        let duplicates: HashSet<_> =
            told.iter().filter(|it| it.code == &codes::DUPLICATE).map(|it| it.problem.span.start).collect();
        let key = |entry: &Entry| dialect.keys.iter().find(|key| key.name == entry.key);
        let has_entries = |entry: &Entry| {
            key(entry).is_some_and(|key| matches!(key.field, Field::Env | Field::Headers | Field::Object(_)))
        };
        let is_of_nobody =
            |entry: &Entry| key(entry).is_none() && !is_note(&entry.key) && entry.node.as_str().is_some();
        for set in dialect.sets(root) {
            for server in set.node.as_entries().unwrap_or_default() {
                let entries = server.node.as_entries().unwrap_or_default();
                strays.beside(entries, has_entries, is_of_nobody);
                if !duplicates.is_empty() {
                    strays.within(server, entries, &duplicates, |entry| key(entry).is_none());
                }
            }
            for server in set.node.as_items().unwrap_or_default() {
                strays.beside(server.as_entries().unwrap_or_default(), has_entries, is_of_nobody);
            }
        }
        strays
    }

    /// Replaces by them what was said of the same places.
    pub(super) fn tell(self, findings: &mut Vec<Finding>) {
        if !self.findings.is_empty() {
            findings.retain(|finding| !self.silent.contains(&finding.problem.span.start));
            findings.extend(self.findings);
        }
    }

    /// What follows a key with nothing below it, as if it were no part of it.
    fn beside(&mut self, entries: &[Entry], is_owner: impl Fn(&Entry) -> bool, is_lost: impl Fn(&Entry) -> bool) {
        for (index, owner) in entries.iter().enumerate().filter(|(_, it)| is_left_out(&it.node) && is_owner(it)) {
            let lost: Vec<_> = entries[index + 1..].iter().take_while(|entry| is_lost(entry)).collect();
            let Some(first) = lost.first() else { continue };
            let message = format!("`{}` stands beside `{}`, and not below it", first.key, owner.key);
            let hint = format!("indent everything that belongs to `{}` below it", owner.key);
            self.findings.push(codes::VALUE_TYPE.at(first.key_span, message).hint(hint));
            self.silent.insert(owner.node.span.start);
            self.silent.extend(lost.iter().map(|entry| entry.key_span.start));
        }
    }

    /// Another server within one, whose keys are there already.
    fn within(
        &mut self,
        server: &Entry,
        entries: &[Entry],
        duplicates: &HashSet<usize>,
        is_unknown: impl Fn(&Entry) -> bool,
    ) {
        let Some(other) = entries.iter().find(|entry| is_left_out(&entry.node) && is_unknown(entry)) else { return };
        let places = entries.iter().map(|entry| entry.key_span.start);
        let twice: Vec<_> =
            places.filter(|start| *start > other.key_span.start && duplicates.contains(start)).collect();
        if !twice.is_empty() {
            let message = format!("`{}` stands within the server `{}`", other.key, server.key);
            let hint = format!("indent it as far as `{}`, and everything that belongs to it below it", server.key);
            self.findings.push(codes::VALUE_TYPE.at(other.key_span, message).hint(hint).about(server.key.as_str()));
            self.silent.insert(other.key_span.start);
            self.silent.extend(twice);
        }
    }
}

/// Whether there is nothing behind a key of YAML. In JSON nothing has a text of its own.
fn is_left_out(node: &Node) -> bool {
    node.is_null() && node.span.start == node.span.end
}

/// Tells of keys of a server that follow it where the next server should be, and takes them out of the servers, together
/// with the one that has nothing left.
pub(super) fn take_out(named: &mut Vec<Named<'_>>, dialect: &Dialect, findings: &mut Vec<Finding>) {
    let mut owner: Option<(String, bool)> = None;
    let mut lost = Vec::new();
    for (index, (name, node)) in named.iter().enumerate() {
        let is_key = !matches!(node.value, Value::Mapping(_)) && dialect.keys.iter().any(|key| key.name == name.value);
        match &mut owner {
            Some((above, is_told)) if is_key => {
                lost.push(index);
                if !std::mem::replace(is_told, true) {
                    lost.push(index - 1);
                    let message = format!("this is a server of its own, and no part of `{above}`");
                    let hint = format!("indent everything that belongs to `{above}` below it");
                    findings.push(codes::VALUE_TYPE.at(name.span, message).hint(hint).about(above.as_str()));
                }
            }
            _ => owner = is_left_out(node).then(|| (name.value.clone(), false)),
        }
    }
    if !lost.is_empty() {
        let mut index = 0..;
        named.retain(|_| index.next().is_none_or(|index| !lost.contains(&index)));
    }
}
