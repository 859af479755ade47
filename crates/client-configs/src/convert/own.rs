//! What a file says that only its own program understands.

use std::collections::{HashMap, HashSet};

use super::loss::Loss;
use crate::{
    ConfiguredServer, LintReport,
    dialect::{Collection, Dialect, Field, Key, Profiles, RootKeys, ServerMap, is_note},
};
use rehearse_document::{Entry, Node, Span, Value};
use rehearse_report::findings::Severity;

/// What of a file belongs to its program alone, beside its servers.
pub(super) fn of_file(root: &Node, dialect: &Dialect, mut lose: impl FnMut(&Entry)) {
    let RootKeys::Known(keys) = dialect.root_keys else { return };
    let part = dialect.part(root);
    for entry in part.as_entries().unwrap_or_default().iter().filter(|entry| keys.contains(&&*entry.key)) {
        lose(entry);
    }
}

/// The servers that hold for one project of the user only.
pub(super) fn of_projects(root: &Node, dialect: &Dialect, mut lose: impl FnMut(&Entry, usize)) {
    for project in dialect.projects(root) {
        let servers = dialect.servers(&project.node).and_then(|servers| servers.as_entries()).unwrap_or_default();
        if !servers.is_empty() {
            lose(project, servers.len());
        }
    }
}

/// The profiles that have servers of their own.
pub(super) fn of_profiles(root: &Node, dialect: &Dialect, mut lose: impl FnMut(&Entry, &Profiles)) {
    let Some(profiles) = &dialect.profiles else { return };
    let list = root.get(profiles.key).and_then(|list| list.as_items()).unwrap_or_default();
    for profile in list {
        let servers = profile.as_entries().unwrap_or_default().iter().find(|entry| entry.key == profiles.servers);
        if let Some(entry) = servers.filter(|entry| entry.node.as_entries().is_some_and(|servers| !servers.is_empty()))
        {
            lose(entry, profiles);
        }
    }
}

/// The paths of other files with servers.
pub(super) fn links<'n>(root: &'n Node, dialect: &Dialect) -> impl Iterator<Item = &'n Node> {
    let servers = dialect.servers(root).filter(|_| dialect.links_to_file).into_iter();
    servers.flat_map(|it| it.as_items().unwrap_or(std::slice::from_ref(it))).filter(|link| link.as_str().is_some())
}

/// Each server by the position of its name, with the name.
pub(super) type Texts<'n> = HashMap<usize, (&'n str, &'n Node)>;

pub(super) fn servers<'n>(root: &'n Node, dialect: &Dialect) -> Texts<'n> {
    let mut servers = HashMap::new();
    if dialect.is_single_server(root) {
        servers.insert(root.span.start, ("", root));
    }
    for ServerMap { node, .. } in dialect.server_maps(root) {
        match dialect.collection {
            Collection::Map => {
                let entries = node.as_entries().unwrap_or_default().iter();
                servers.extend(entries.map(|entry| (entry.key_span.start, (&*entry.key, &entry.node))));
            }
            Collection::List { .. } => {
                let named = |item: &'n Node| {
                    let name = item.get("name")?;
                    Some((name.span.start, (name.as_str()?, item)))
                };
                servers.extend(node.as_items().unwrap_or_default().iter().filter_map(named));
            }
        }
    }
    servers
}

/// The servers that are right and yet not described in the file.
pub(super) fn of_elsewhere(examined: &LintReport, texts: &Texts<'_>, mut lose: impl FnMut(&str, Span)) {
    let known = examined.config.iter().flat_map(|config| &config.servers);
    let known: HashSet<_> = known.map(|server| server.name.span.start).collect();
    let errors = examined.findings.iter().filter(|finding| finding.code.severity() == Severity::Error);
    let wrong: HashSet<_> = errors.filter_map(|finding| finding.server.as_deref()).collect();
    for (start, (name, node)) in texts {
        if !known.contains(start) && !wrong.contains(name) {
            lose(name, Span { start: *start, end: node.span.end });
        }
    }
}

/// What of a server belongs to its program alone, or not even to that.
pub(super) fn of_server(
    server: &ConfiguredServer,
    entries: &[Entry],
    keys: &'static [Key],
    dialect: &Dialect,
    losses: &mut Vec<Loss>,
) {
    for entry in entries {
        let mut lose = |field: String, at: &Entry, reason: String| {
            let (server, source) = (Some(server.name.value.clone()), server.source.clone());
            losses.push(Loss { server, field, reason, left_out: false, source, span: at.key_span });
        };
        let Some(key) = keys.iter().find(|key| key.name == entry.key) else {
            if !is_note(&entry.key) && !entry.node.is_null() {
                lose(entry.key.clone(), entry, format!("{} does not know it", dialect.program));
            }
            continue;
        };
        match (key.field, &entry.node.value) {
            _ if !key.applies_to.includes(server.transport.value) => {}
            (field, Value::String(_)) if !field.is_text() && dialect.is_unresolved(&entry.node) => {
                lose(key.name.into(), entry, "it is a variable, and its value is not in the file".into());
            }
            (Field::Object(keys), Value::Mapping(entries)) => of_server(server, entries, keys, dialect, losses),
            (Field::AuthKind, _) if server.auth.bearer.is_none() && server.auth.api_key.is_none() => {
                lose(key.name.into(), entry, format!("only {} knows what it means", dialect.program));
            }
            (Field::Own | Field::Setting(_), value) if !is_superfluous(key.name, value, server) => {
                lose(key.name.into(), entry, format!("only {} knows what it means", dialect.program));
            }
            (Field::Env | Field::Headers, Value::Mapping(pairs)) if dialect.loose_values => {
                for pair in pairs.iter().filter(|pair| pair.node.is_null()) {
                    let reason = "no other program has a variable without a value";
                    lose(format!("{}.{}", key.name, pair.key), pair, reason.into());
                }
            }
            _ => {}
        }
    }
}

/// Whether a value says nothing that is not said elsewhere.
fn is_superfluous(key: &str, value: &Value, server: &ConfiguredServer) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => *text == server.name.value || is_note(key),
        _ => false,
    }
}
