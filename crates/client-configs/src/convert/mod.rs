//! The same servers in another program's format.
//!
//! A program's own format is written from its tree as it was read, so that nothing is lost but comments. For any other,
//! each server is written from its model, and what the other cannot say is reported.

mod emit;
mod filter;
mod loss;
mod notation;
mod own;
mod reference;
mod template;
#[cfg(test)]
mod tests;
mod timeout;
mod write;

use std::{collections::HashSet, sync::LazyLock};

use self::write::{entry, mapping, sequence, text};
use super::{LintReport, dialect::Collection, dialect::Dialect, server::ConfiguredServer};
use rehearse_document::{Entry, Node, Value};

pub use loss::Loss;
pub use notation::{Notation, WrongSyntax};

/// A file for another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    pub text: String,
    /// How many servers are in it.
    pub servers: usize,
    /// In the order of the source.
    pub losses: Vec<Loss>,
}

/// Writes the servers of a file for another program; `None` if its dialect is not known.
///
/// Servers that could not be read are left out: the findings of the file report them.
pub fn convert(report: &LintReport, to: &'static Dialect, notation: Notation) -> Option<Converted> {
    let (config, root) = (report.config.as_ref()?, report.root.as_ref()?);
    let from = config.dialect;
    if std::ptr::eq(from, to) {
        let losses = Vec::new();
        return Some(Converted { text: notation.emit(root), servers: config.servers.len(), losses });
    }
    let mut losses = Vec::new();
    let lost = |field: &str, reason: String, span| {
        let (field, source) = (field.to_owned(), report.source.clone());
        Loss { server: None, field, reason, left_out: false, source, span }
    };
    own::of_file(root, from, |entry| {
        losses.push(lost(&entry.key, format!("only {} knows what it means", from.program), entry.key_span));
    });
    own::of_projects(root, from, |project, count| {
        let field = format!("{}.{}", from.projects.unwrap_or_default(), project.key);
        let servers = if count == 1 { "its server is" } else { "its servers are" };
        losses.push(lost(&field, format!("{servers} for this project only"), project.key_span));
    });
    own::of_profiles(root, from, |servers, profiles| {
        let reason = format!("{} uses them with one of its `{}` only", from.program, profiles.key);
        losses.push(lost(&servers.key, reason, servers.key_span));
    });
    losses.extend(own::links(root, from).map(|link| lost("path", "the servers are in another file".into(), link.span)));
    if let (Collection::List { elsewhere: Some(elsewhere) }, Some(servers)) = (from.collection, from.servers(root)) {
        let items = servers.as_items().unwrap_or_default();
        for item in items.iter().filter(|item| item.get(elsewhere).is_some()) {
            losses.push(lost(elsewhere, "the server is described in another place".into(), item.span));
        }
    }
    let texts = own::servers(root, from);
    own::of_elsewhere(report, &texts, |server, span| {
        let reason = format!("how {} reaches it is said in another place", from.program);
        losses.push(Loss { server: Some(server.to_owned()), left_out: true, ..lost("name", reason, span) });
    });
    let (mut servers, mut names) = (Vec::with_capacity(config.servers.len()), HashSet::new());
    for server in &config.servers {
        let name = &server.name;
        if !names.insert(name.value.as_str()) {
            let reason = "there is a server of this name already".into();
            losses.push(Loss { server: Some(name.value.clone()), left_out: true, ..lost("name", reason, name.span) });
            continue;
        }
        let Some(node) = write::server(server, from, to, &mut losses) else { continue };
        servers.push((name.value.as_str(), node));
        if let Some((_, node)) = texts.get(&name.span.start) {
            own::of_server(server, node.as_entries().unwrap_or_default(), from.keys, from, &mut losses);
        }
    }
    losses.sort_by_key(|loss| loss.span.start);
    let count = servers.len();
    Some(Converted { text: notation.emit(&to.file(servers)), servers: count, losses })
}

/// A file with servers whose texts refer to nothing, each with the keys of `each`, and with the keys of `beside`.
///
/// # Errors
/// What the program cannot have of the servers.
pub(crate) fn with_servers(
    servers: &[ConfiguredServer],
    to: &'static Dialect,
    each: &Node,
    beside: Node,
) -> Result<Node, Vec<Loss>> {
    static PLAIN: LazyLock<Dialect> = LazyLock::new(Dialect::default);
    let mut losses = Vec::new();
    let written = servers.iter().filter_map(|server| {
        let node = write::server(server, &PLAIN, to, &mut losses)?;
        Some((server.name.value.as_str(), merged(node, each.clone())))
    });
    let file = merged(to.file(written.collect()), beside);
    if losses.is_empty() { Ok(file) } else { Err(losses) }
}

/// An object with the keys of another, which win.
fn merged(node: Node, more: Node) -> Node {
    match (node.value, more.value) {
        (Value::Mapping(mut entries), Value::Mapping(more)) => {
            for entry in more {
                match entries.iter().position(|known| known.key == entry.key) {
                    Some(at) => entries[at].node = merged(entries[at].node.clone(), entry.node),
                    None => entries.push(entry),
                }
            }
            mapping(entries)
        }
        (_, value) => Node { span: more.span, value },
    }
}

impl Dialect {
    /// A file with these servers.
    fn file(&self, servers: Vec<(&str, Node)>) -> Node {
        let servers = match self.collection {
            Collection::Map => mapping(servers.into_iter().map(|(name, node)| entry(name, node)).collect()),
            Collection::List { .. } => {
                sequence(servers.into_iter().map(|(name, node)| named_server(name, node)).collect())
            }
        };
        let mut place = self.roots[0].iter().rev();
        let innermost = place.next().map(|key| entry(key, servers));
        let outermost = place.fold(innermost, |inner, key| Some(entry(key, mapping(inner.into_iter().collect()))));
        let required = self.companions.iter().map(|it| entry(it.key, text(it.value.to_owned())));
        mapping(required.chain(outermost).collect())
    }
}

impl Notation {
    /// A tree in this syntax.
    pub(crate) fn emit(self, root: &Node) -> String {
        match self {
            Notation::Json => emit::json(root),
            Notation::Yaml => emit::yaml(root),
            Notation::Toml => emit::toml(root),
        }
    }
}

/// A server of a list.
fn named_server(name: &str, server: Node) -> Node {
    let first = entry("name", text(name.to_owned()));
    let rest = match server.value {
        Value::Mapping(entries) => entries,
        _ => Vec::new(),
    };
    mapping(std::iter::once(first).chain(rest).collect::<Vec<Entry>>())
}
