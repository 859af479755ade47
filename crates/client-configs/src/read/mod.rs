//! Servers from a file, as a dialect's table says: where they are (this file), what to report if they are not there
//! (`missing_servers`), the keys beside them (`root_keys`), each server (`server`, `transport`), the values of its keys
//! (`value`), its unknown keys (`unknown`, `vocabulary`), and which servers are switched off (`server_lists`).

mod missing_servers;
mod root_keys;
mod server;
mod server_lists;
mod transport;
mod unknown;
mod value;
mod vocabulary;

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
};

pub(super) use self::{missing_servers::unknown_program, unknown::BRIDGE, vocabulary::switch};
use self::{
    server::{Reader, ServerParse},
    unknown::did_you_mean,
};
use super::{
    At, ConfiguredServer, codes,
    dialect::{Collection, Dialect, Field, ServerMap, is_server},
};
use rehearse_document::{Entry, Node, Source, Span, nearest};
use rehearse_protocol::Transport;
use rehearse_report::findings::Finding;

/// The servers of a file.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub dialect: &'static Dialect,
    pub servers: Vec<ConfiguredServer>,
    /// Servers that the program cannot reach. Their other values are known, and may be wrong as well.
    pub incomplete: Vec<ConfiguredServer>,
    /// The servers that only one project of the user has.
    pub projects: Vec<Project>,
}

/// The servers of one project.
#[derive(Clone, Debug)]
pub struct Project {
    /// The path of its folder.
    pub folder: String,
    /// All that the file says of it.
    pub span: Span,
    pub servers: Vec<ConfiguredServer>,
}

impl ClientConfig {
    /// No servers.
    pub fn new(dialect: &'static Dialect) -> ClientConfig {
        ClientConfig { dialect, servers: Vec::new(), incomplete: Vec::new(), projects: Vec::new() }
    }
}

/// Reads the servers. What is wrong with the file goes to `findings`; a server that cannot be read is left out.
pub fn read(root: &Node, dialect: &'static Dialect, source: &Arc<Source>, findings: &mut Vec<Finding>) -> ClientConfig {
    let needless = dialect.needless_section(root, &source.name);
    findings.extend(needless.as_ref().map(|(section, entry)| {
        let message = format!("{} reads servers from the root of this file, not from `{section}`", dialect.program);
        codes::ROOT.at(entry.key_span, message).hint(format!("move the content of `{section}` to the root"))
    }));
    let root = dialect.part(root);
    let defaults = defaults(root, dialect, source, findings);
    let mut config = ClientConfig::new(dialect);
    let mut maps = dialect.server_maps(root);
    let mut is_misplaced = false;
    for entry in dialect.projects(root) {
        let ClientConfig { servers, incomplete, .. } = read(&entry.node, dialect, source, findings);
        config.projects.push(Project { folder: entry.key.clone(), span: entry.node.span, servers });
        config.incomplete.extend(incomplete);
    }
    let own = |node| ServerMap {
        node,
        when_type_missing: dialect.when_type_missing,
        rejects_unknown_keys: dialect.rejects_unknown_keys,
    };
    match dialect.servers(root) {
        Some(node) => {
            if !std::ptr::eq(root, node) {
                root_keys::check_required(root, dialect, findings);
            }
            root_keys::check(root, node, (dialect, source), findings);
            let is_elsewhere = dialect.is_linked_from(&source.name) && check_links(node, findings);
            if maps.is_empty() && !is_elsewhere {
                named_servers(node, dialect, findings);
            }
        }
        None if dialect.is_single_server(root) => {
            let single = vec![(file_name(root, source), root)];
            read_each(single, Reader::new(dialect, &own(root), source), &mut config, findings);
        }
        None if maps.is_empty() && config.projects.is_empty() && needless.is_none() => {
            let (finding, misplaced) = missing_servers::find(root, dialect, &source.name);
            findings.push(finding);
            is_misplaced = misplaced.is_some();
            maps.extend(misplaced.map(own));
        }
        None => {}
    }
    let mut seen = HashSet::new();
    for map in maps {
        let mut named = named_servers(map.node, dialect, findings);
        // Several profiles may share what is written once, by an alias.
        named.retain(|(name, _)| seen.insert(name.span.start));
        if let Collection::List { .. } = dialect.collection {
            check_duplicates(&named, source, findings);
        }
        read_each(named, Reader::new(dialect, &map, source), &mut config, findings);
    }
    if is_misplaced {
        config.incomplete.append(&mut config.servers);
    }
    for server in &mut config.servers {
        server.inherit(&defaults);
    }
    if let Some(lists) = &dialect.name_lists {
        server_lists::apply(lists, root, &mut config, findings);
    }
    config
}

/// The name of a server that is a file of its own.
fn file_name(root: &Node, source: &Source) -> At<String> {
    let name = Path::new(&source.name).file_stem().map(|name| name.to_string_lossy().into_owned());
    At { value: name.unwrap_or_default(), span: Span { start: root.span.start, end: root.span.start } }
}

/// Reads an array of servers with their names, for any collection of the dialect; as [`read`] otherwise.
pub(super) fn read_list(
    list: &Node,
    dialect: &'static Dialect,
    source: &Arc<Source>,
    findings: &mut Vec<Finding>,
) -> ClientConfig {
    let named = servers_of_list(list, dialect, None, findings);
    check_duplicates(&named, source, findings);
    let (when_type_missing, rejects_unknown_keys) = (dialect.when_type_missing, dialect.rejects_unknown_keys);
    let map = ServerMap { node: list, when_type_missing, rejects_unknown_keys };
    let mut config = ClientConfig::new(dialect);
    read_each(named, Reader::new(dialect, &map, source), &mut config, findings);
    config
}

fn read_each<'n>(
    named: Vec<NamedServer<'n>>,
    mut reader: Reader<'n>,
    config: &mut ClientConfig,
    findings: &mut Vec<Finding>,
) {
    for (name, server) in named {
        match reader.server(name.clone(), server) {
            ServerParse::Complete(server) => config.servers.push(server),
            ServerParse::Incomplete(server) => config.incomplete.push(server),
            ServerParse::None => {}
        }
        let about: Arc<str> = name.value.into();
        findings.extend(reader.findings.drain(..).map(|finding| finding.about(Arc::clone(&about))));
    }
}

/// The values that apply to every server without values of its own.
fn defaults(
    root: &Node,
    dialect: &'static Dialect,
    source: &Arc<Source>,
    findings: &mut Vec<Finding>,
) -> ConfiguredServer {
    let at = |value: Transport| At { value, span: Span::default() };
    let name = At { value: String::new(), span: Span::default() };
    let mut defaults = ConfiguredServer::new(source.clone(), name, at(Transport::Stdio));
    let (when_type_missing, rejects_unknown_keys) = (dialect.when_type_missing, dialect.rejects_unknown_keys);
    let map = ServerMap { node: root, when_type_missing, rejects_unknown_keys };
    let mut reader = Reader::new(dialect, &map, source);
    if let Some((key, around)) = dialect.defaults.and_then(<[_]>::split_last) {
        let siblings = root.get_path(around).and_then(|node| node.as_entries()).unwrap_or_default();
        let misspelled = siblings.iter().filter(|entry| entry.key != *key && nearest(&entry.key, &[key]).is_some());
        reader.findings.extend(misspelled.map(|entry| {
            let message = format!("unknown key `{}`", entry.key);
            codes::UNKNOWN_KEY.at(entry.key_span, message).hint(did_you_mean(key))
        }));
        let debug = dialect.keys.iter().find(|key| key.field == Field::Debug).map(|key| key.name);
        if let Some(entry) = siblings.iter().find(|entry| Some(&*entry.key) == debug) {
            reader.fill(&mut defaults, Field::Debug, entry);
        }
    }
    let node = dialect.defaults.and_then(|keys| root.get_path(keys));
    for entry in node.and_then(|node| node.as_entries()).unwrap_or_default() {
        let known = dialect.keys.iter().find(|key| key.name == entry.key);
        match known.filter(|key| matches!(key.field, Field::Timeout | Field::Debug)) {
            Some(key) => reader.fill(&mut defaults, key.field, entry),
            None => reader.unknown_default(entry),
        }
    }
    let around = dialect.global_enable_key.map(|key| (key, dialect.around_servers(root)));
    for (key, entry) in around.into_iter().flat_map(|(key, entries)| entries.iter().map(move |entry| (key, entry))) {
        if entry.key != key && nearest(&entry.key, &[key]).is_some() {
            let finding = codes::UNKNOWN_KEY.at(entry.key_span, format!("unknown key `{}`", entry.key));
            reader.findings.push(finding.hint(did_you_mean(key)));
        }
    }
    if let Some(entry) = dialect.global_enable_entry(root) {
        reader.fill(&mut defaults, Field::Enabled, entry);
        // Servers are on unless something switches them off.
        defaults.enabled = defaults.enabled.filter(|enabled| !enabled.value);
    }
    findings.append(&mut reader.findings);
    defaults
}

/// Whether the servers are in other files, to which there are paths.
fn check_links(node: &Node, findings: &mut Vec<Finding>) -> bool {
    let Some(items) = node.as_items() else { return node.as_str().is_some() };
    if items.iter().any(is_server) {
        let finding = codes::VALUE_TYPE.at(node.span, "servers in an array have no names");
        findings.push(finding.hint("write { \"name\": { … } } instead of the array, with a name for each server"));
    }
    for item in items.iter().filter(|item| item.as_str().is_none() && item.as_entries().is_none()) {
        let message = format!("an item must be a path or an object with servers, found {}", item.kind());
        findings.push(codes::VALUE_TYPE.at(item.span, message).hint("write \"./servers.json\""));
    }
    true
}

/// A server with its name.
type NamedServer<'n> = (At<String>, &'n Node);

/// The servers with their names. References to servers are left out.
fn named_servers<'n>(node: &'n Node, dialect: &Dialect, findings: &mut Vec<Finding>) -> Vec<NamedServer<'n>> {
    if let Collection::List { elsewhere } = dialect.collection {
        return servers_of_list(node, dialect, elsewhere, findings);
    }
    let Some(entries) = node.as_entries() else {
        if node.is_null() && dialect.variables.by_go {
            let finding = codes::NO_SERVERS.at(node.span, "there are no servers in this file");
            findings.push(finding.hint("nothing was checked"));
        } else if !(dialect.variables.in_text && dialect.is_unresolved(node)) {
            let hint = "write { \"name\": { … } }, with a name for each server";
            findings.push(wrong_collection(node, "an object").hint(hint));
        }
        return Vec::new();
    };
    let is_name = |entry: &Entry| is_server(&entry.node) || entry.node.is_null();
    if is_server(node)
        && !entries.iter().any(is_name)
        && let Some(entry) = entries.iter().find(|entry| ["command", "url"].contains(&&*entry.key))
    {
        let finding = codes::MISSING.at(entry.key_span, "this is one server without a name");
        findings.push(finding.hint("put it under a name: \"name\": { … }"));
        return Vec::new();
    }
    entries.iter().map(|entry| (At { value: entry.key.clone(), span: entry.key_span }, &entry.node)).collect()
}

/// The servers of an array, as [`named_servers`].
fn servers_of_list<'n>(
    node: &'n Node,
    dialect: &Dialect,
    elsewhere: Option<&str>,
    findings: &mut Vec<Finding>,
) -> Vec<NamedServer<'n>> {
    let is_unknown = |node: &Node| dialect.variables.in_text && dialect.is_unresolved(node);
    let Some(items) = node.as_items() else {
        if !is_unknown(node) {
            findings.push(wrong_collection(node, "an array").hint("begin each server with `- name: …`"));
        }
        return Vec::new();
    };
    let is_here = |item: &&Node| elsewhere.is_none_or(|key| item.get(key).is_none()) && !is_unknown(item);
    let mut servers = Vec::new();
    for item in items.iter().filter(is_here) {
        match item.get("name").map(|name| (name, name.as_str())) {
            Some((name, Some(text))) => servers.push((At { value: text.to_owned(), span: name.span }, item)),
            Some((name, None)) => {
                let message = format!("the name of a server must be a string, found {}", name.kind());
                findings.push(codes::VALUE_TYPE.at(name.span, message).hint("write it in quotes"));
            }
            None => {
                let finding = codes::MISSING.at(item.span, "a server needs a `name`");
                findings.push(finding.hint("begin it with `name: …`"));
            }
        }
    }
    servers
}

fn wrong_collection(node: &Node, what: &str) -> Finding {
    codes::VALUE_TYPE.at(node.span, format!("the servers must be {what}, found {}", node.kind()))
}

/// Reports servers of an array that have the name of another.
fn check_duplicates(named: &[NamedServer<'_>], source: &Source, findings: &mut Vec<Finding>) {
    let mut first = HashMap::new();
    for (name, _) in named {
        let Some(other) = first.insert(&name.value, name.span) else { continue };
        let (line, column) = source.position(other.start);
        let message = format!("`{}` is a server already at {line}:{column}: only one of them is used", name.value);
        findings.push(codes::DUPLICATE_SERVER.at(name.span, message).hint("keep one of them, or rename it"));
    }
}
