//! Which program a file is for whose path does not say it.
//!
//! A guess never makes less safe. Of the programs that could read the file, the one wins that reads it without an error
//! and knows most of its keys. If it ignores what for another program switches off a server or tools, or if it is not the
//! only one and the others have other servers or tools on, that is an error, so that nothing is started.

use std::{cmp::Ordering, collections::HashMap, path::Path, sync::Arc};

use super::{
    ClientConfig, ConfiguredServer, codes,
    dialect::{
        Detected, Dialect, Field, FileLocation, Syntax, all, has_root, mark_of_file, mark_of_server, named_in,
        owner_of_folder,
    },
    document::Document,
    policy::Policy,
    read::{self, switch},
    server::ToolFilter,
};
use rehearse_document::{Entry, Node, Source, Span};
use rehearse_report::findings::{Finding, Severity};

/// The probable dialect of a file, and what speaks against a use of it.
pub(super) fn guess(
    path: Option<&Path>,
    document: &Document,
    source: &Arc<Source>,
    findings: &mut Vec<Finding>,
) -> Option<Detected> {
    let root = &document.root;
    let owner = path.and_then(owner_of_folder).filter(|_| readers(document).next().is_some());
    let name = path.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    findings.extend(owner.map(|dialect| misplaced(dialect, name, root)));
    let owned = owner.filter(|dialect| dialect.servers(root).is_some());
    let owned = owned.map(|it| Detected::certain(it, format!("it is in a folder of {}", it.program)));
    let named = || path.and_then(named_in).map(|it| Detected::certain(it, format!("its name contains `{}`", it.name)));
    let marked = || {
        let (dialect, mark) = mark_of_file(root, source)?;
        Some(Detected::certain(dialect, format!("it has {mark}")))
    };
    let certain = owned.or_else(named).or_else(marked).map(|detected| (detected, None));
    let (detected, rival) = certain.or_else(|| most_likely(document, source))?;
    let program = detected.dialect.program;
    let ignored = switches(detected.dialect, root).into_iter().find(|switch| !switch.is_known);
    let begin = Span { start: root.span.start, end: root.span.start };
    let conflict = match (ignored, rival) {
        (Some(Switch { entry, .. }), _) => {
            let what = format!("{program} ignores `{}`, with which others switch off servers or tools", entry.key);
            Some((entry.key_span, what))
        }
        (None, Some(rival)) => {
            Some((begin, format!("{program} and {} differ in which servers or tools are on", rival.program)))
        }
        (None, None) => None,
    };
    findings.extend(conflict.map(|(span, what)| {
        let message = format!("it is not clear which program this file is for: {what}");
        codes::DIALECT.at(span, message).hint(codes::DIALECT_HINT)
    }));
    Some(detected)
}

/// Reports a file with servers that its program does not read.
fn misplaced(dialect: &Dialect, name: &str, root: &Node) -> Finding {
    let is_read = |place: &&FileLocation| {
        let is_other = match place {
            FileLocation::Section(_) => false,
            FileLocation::Named(own) => *own != name,
            _ => true,
        };
        is_other && !dialect.files_without_servers.contains(place)
    };
    let mut places: Vec<_> =
        dialect.files.iter().filter(is_read).map(|place| format!("`{}`", place.suffix())).collect();
    places.dedup();
    let begin = Span { start: root.span.start, end: root.span.start };
    let message = format!("{} does not read a file of this name here", dialect.program);
    codes::PLACE.at(begin, message).hint(format!("it reads {}", places.join(", ")))
}

/// What a program makes of a file.
struct Reading {
    dialect: &'static Dialect,
    /// The smallest is the most likely: whether there are errors, how much is doubtful, whether there is no mark.
    rank: (bool, usize, bool),
    mark: Option<&'static str>,
    config: ClientConfig,
}

impl Reading {
    fn new(dialect: &'static Dialect, document: &Document, source: &Arc<Source>) -> Reading {
        let (root, mut findings) = (&document.root, Vec::new());
        document.check_syntax(root, source, dialect, &mut findings);
        let config = read::read(root, dialect, source, &mut findings);
        let is_wrong = findings.iter().any(|finding| finding.code.severity() == Severity::Error);
        let mark = mark_of_server(dialect, root);
        // A program that overlooks a mistake is not more likely for it.
        let doubtful = if is_wrong { 0 } else { findings.len() };
        Reading { dialect, rank: (is_wrong, doubtful, mark.is_none()), mark, config }
    }

    /// What of the tools of each server is open; `None` of those that are off.
    fn open(&self) -> HashMap<&str, Option<Vec<bool>>> {
        let open = |server: &ConfiguredServer| open_tools(&server.tools, &self.dialect.policy);
        let servers = self.config.servers.iter();
        servers.map(|it| (&*it.name.value, it.is_enabled().then(|| open(it)))).collect()
    }

    /// Whether two programs differ in whether one of the servers that both reach is on, or in what of it is open.
    fn differs_from(&self, other: &Reading) -> bool {
        let open = other.open();
        self.open().iter().any(|(name, tools)| open.get(name).is_some_and(|others| others != tools))
    }
}

/// Whether tools are open that show how a program reads these lists: those that they name, such as a pattern may mean,
/// and any other.
fn open_tools(lists: &ToolFilter, policy: &Policy) -> Vec<bool> {
    let names = lists.include.iter().chain(&lists.exclude).flat_map(|list| &list.value);
    let tools = names.flat_map(|name| [name.value.clone(), name.value.replace('*', "x")]).chain([String::new()]);
    tools.map(|tool| lists.offers(policy, &tool)).collect()
}

/// The programs that look for servers where a file has them.
fn readers(document: &Document) -> impl Iterator<Item = &'static Dialect> {
    let fits = |dialect: &&Dialect| match dialect.syntax {
        Syntax::Toml => document.is_toml(),
        Syntax::Yaml => document.is_yaml(),
        Syntax::Json(_) => !document.is_yaml() && !document.is_toml(),
        Syntax::JsonOrYaml => !document.is_toml(),
    };
    all().filter(fits).filter(|dialect| has_root(dialect, &document.root))
}

/// The first of the programs that read a file best, and one of the others that differs from it. If there are others, it is
/// a guess.
fn most_likely(document: &Document, source: &Arc<Source>) -> Option<(Detected, Option<&'static Dialect>)> {
    let root = &document.root;
    let has_switch = readers(document).any(|dialect| !switches(dialect, root).is_empty());
    let is_unmarked = readers(document).all(|dialect| mark_of_server(dialect, root).is_none());
    let mut best: Vec<Reading> = Vec::new();
    for dialect in readers(document) {
        let reading = Reading::new(dialect, document, source);
        match best.first().map(|first| reading.rank.cmp(&first.rank)) {
            Some(Ordering::Greater) => continue,
            Some(Ordering::Less) => best.clear(),
            _ => {}
        }
        best.push(reading);
        // No other is better, and none differs if nothing is switched.
        if best.len() > 1 && best[0].rank == (false, 0, is_unmarked) && !has_switch {
            break;
        }
    }
    let (first, others) = best.split_first()?;
    let rival = others.iter().find(|other| first.differs_from(other)).map(|other| other.dialect);
    let is_guess = others.iter().any(|other| other.dialect.program != first.dialect.program);
    let keys = first.dialect.roots.iter().find(|keys| root.get_path(keys).is_some()).copied().unwrap_or_default();
    let why = match first.mark {
        Some(mark) => format!("it has `{mark}`"),
        None => format!("its servers are under `{}`", keys.join(".")),
    };
    Some((Detected { dialect: first.dialect, why, is_guess }, rival))
}

/// An entry with which some program switches off a server or tools.
struct Switch<'n> {
    entry: &'n Entry,
    /// Whether this program knows the key.
    is_known: bool,
}

/// What is switched off in a file, if this program or another knows how: in its servers, and beside them.
fn switches<'n>(dialect: &Dialect, root: &'n Node) -> Vec<Switch<'n>> {
    let mut known: HashMap<&str, (Option<Field>, bool)> = HashMap::new();
    let mut found = Vec::new();
    for entry in dialect.servers_of(root).into_iter().filter_map(Node::as_entries).flatten() {
        let key = &*entry.key;
        let meaning = || (switch(key), dialect.keys.iter().any(|known| known.name == key));
        let (field, is_known) = *known.entry(key).or_insert_with(meaning);
        if field.is_some_and(|field| switches_off(field, &entry.node)) {
            found.push(Switch { entry, is_known });
        }
    }
    let beside = dialect.around_servers(root).iter().filter(|entry| entry.node.as_entries().is_none());
    for entry in beside {
        let field = switch(&entry.key).filter(|field| matches!(field, Field::Enabled | Field::Disabled));
        if field.is_some_and(|field| switches_off(field, &entry.node)) {
            found.push(Switch { entry, is_known: dialect.global_enable_key == Some(&*entry.key) });
        }
    }
    let is_same =
        |place: &[&str]| dialect.name_lists.is_some_and(|lists| [lists.allowed, lists.excluded].contains(&place));
    for lists in all().filter_map(|other| other.name_lists) {
        for place in [lists.allowed, lists.excluded] {
            let around =
                place.split_last().and_then(|(last, around)| Some((last, root.get_path(around)?.as_entries()?)));
            let entry = around.and_then(|(last, entries)| entries.iter().find(|entry| entry.key == *last));
            let entry = entry.filter(|entry| entry.node.as_items().is_some_and(|names| !names.is_empty()));
            found.extend(entry.map(|entry| Switch { entry, is_known: is_same(place) }));
        }
    }
    found
}

/// Whether the value of a switch leaves something off, as a value of another type may.
fn switches_off(field: Field, node: &Node) -> bool {
    match field {
        _ if node.is_null() => false,
        Field::Enabled => node.as_bool() != Some(true),
        Field::Disabled => node.as_bool() != Some(false),
        Field::Exclude => node.as_items().is_none_or(|names| !names.is_empty()),
        _ => true,
    }
}
