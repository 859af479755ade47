//! Servers from a file, as a dialect's table says: where they are (this file), what there is to say if they are not there
//! (`absent`), what stands beside them (`beside`) or should stand below one (`unindented`), what each of them is (`server`),
//! the values of its keys (`value`), what is said of keys that mean nothing (`unknown`), what people call things otherwise
//! (`word`), and which servers are left alone (`listed`).

mod absent;
mod beside;
mod listed;
mod nameless;
mod reach;
mod server;
mod unindented;
mod unknown;
mod value;
mod word;

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
};

use self::{
    absent::no_servers,
    beside::{beside, lacking},
    server::{Known, Reader},
    unindented::Strays,
    unknown::did_you_mean,
    word::synonym,
};
pub(super) use self::{
    absent::nowhere,
    unknown::BRIDGE,
    word::{NOTES, is_note},
};
use super::{
    Entry, Node, Source, Span,
    dialect::{ALL, Collection, Dialect, Field, Key, Set},
    finding::{Finding, Severity, codes},
    nearest,
    server::{At, ServerConfig, Text},
};
use crate::transport::Transport;

/// The servers of a file.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub dialect: &'static Dialect,
    pub servers: Vec<ServerConfig>,
    /// Servers of which it is not clear how to reach them. What else is said of them is known, and may be wrong as well.
    pub unclear: Vec<ServerConfig>,
    /// What the file says for single projects of its user, which is nobody else's.
    pub projects: Vec<Project>,
}

/// The servers of one project.
#[derive(Clone, Debug)]
pub struct Project {
    /// The path of its folder.
    pub folder: String,
    /// All that the file says of it.
    pub span: Span,
    pub servers: Vec<ServerConfig>,
}

impl ClientConfig {
    /// No servers.
    pub fn new(dialect: &'static Dialect) -> ClientConfig {
        ClientConfig { dialect, servers: Vec::new(), unclear: Vec::new(), projects: Vec::new() }
    }
}

/// Reads the servers. What is wrong with the file goes to `findings`; a server that cannot be understood is left out.
pub fn read(root: &Node, dialect: &'static Dialect, source: &Arc<Source>, findings: &mut Vec<Finding>) -> ClientConfig {
    read_guessed(root, dialect, &[], source, findings)
}

/// As [`read`]; the `rivals` are other programs that may be meant, whose keys count where a key is a slip.
pub(super) fn read_guessed(
    root: &Node,
    dialect: &'static Dialect,
    rivals: &[&'static Dialect],
    source: &Arc<Source>,
    findings: &mut Vec<Finding>,
) -> ClientConfig {
    let needless = dialect.needless_section(root, &source.name);
    findings.extend(needless.as_ref().map(|(section, entry)| {
        let message =
            format!("{} looks for servers at the root of this file, and not under `{section}`", dialect.program);
        let hint = format!("take `{section}` away, so that what is in it stands at the root");
        codes::ROOT.at(entry.key_span, message).hint(hint)
    }));
    let root = dialect.part(root);
    let defaults = defaults(root, dialect, source, findings);
    let mut config = ClientConfig::new(dialect);
    let mut sets = dialect.sets(root);
    let mut is_misplaced = false;
    for entry in dialect.projects(root) {
        let ClientConfig { servers, unclear, .. } = read_guessed(&entry.node, dialect, rivals, source, findings);
        config.projects.push(Project { folder: entry.key.clone(), span: entry.node.span, servers });
        config.unclear.extend(unclear);
    }
    match dialect.servers(root) {
        Some(node) => {
            if rivals.is_empty() && !std::ptr::eq(root, node) {
                lacking(root, dialect, findings);
            }
            beside(root, node, (dialect, source), findings);
            let is_elsewhere = dialect.is_linked_from(&source.name) && links(node, findings);
            if sets.is_empty() && !is_elsewhere {
                named(node, dialect, usize::MAX, findings);
            }
        }
        None if dialect.is_lone_server(root) => {
            let set = Set { node: root, untyped: dialect.untyped, strict: dialect.strict };
            let lone = vec![(lone_name(root, source), root)];
            each(lone, Reader::new(dialect, &set, source).guessed(rivals), &mut config, findings);
        }
        None if sets.is_empty() && config.projects.is_empty() && needless.is_none() => {
            let (finding, misplaced) = no_servers(root, dialect, &source.name);
            findings.push(finding);
            is_misplaced = misplaced.is_some();
            sets.extend(misplaced.map(|node| Set { node, untyped: dialect.untyped, strict: dialect.strict }));
        }
        None => {}
    }
    let mut seen = HashSet::new();
    let strays = Strays::find(root, dialect, findings);
    for set in sets {
        let mut named = named(set.node, dialect, usize::MAX, findings);
        unindented::take_out(&mut named, dialect, findings);
        // Several profiles may share what is written once, by an alias.
        named.retain(|(name, _)| seen.insert(name.span.start));
        if let Collection::List { .. } = dialect.collection {
            twice(&named, source, findings);
        }
        each(named, Reader::new(dialect, &set, source).guessed(rivals), &mut config, findings);
    }
    strays.tell(findings);
    if is_misplaced {
        config.unclear.append(&mut config.servers);
    }
    for server in &mut config.servers {
        server.inherit(&defaults);
    }
    if let Some(lists) = &dialect.name_lists {
        listed::apply(lists, root, &mut config, findings);
    }
    config
}

/// What a server is called that is a file of its own.
fn lone_name(root: &Node, source: &Source) -> At<String> {
    let name = Path::new(&source.name).file_stem().map(|name| name.to_string_lossy().into_owned());
    let begin = Span { start: root.span.start, end: root.span.start };
    At { value: name.unwrap_or_default(), span: begin }
}

/// Reads a list of servers with their names, whatever the dialect has around them; as [`read`] otherwise.
pub(super) fn read_list(
    list: &Node,
    dialect: &'static Dialect,
    source: &Arc<Source>,
    findings: &mut Vec<Finding>,
) -> ClientConfig {
    let named = of_list(list, dialect, None, usize::MAX, findings);
    twice(&named, source, findings);
    let set = Set { node: list, untyped: dialect.untyped, strict: dialect.strict };
    let mut config = ClientConfig::new(dialect);
    each(named, Reader::new(dialect, &set, source), &mut config, findings);
    config
}

fn each<'n>(named: Vec<Named<'n>>, mut reader: Reader<'n>, config: &mut ClientConfig, findings: &mut Vec<Finding>) {
    config.servers.reserve(named.len());
    config.unclear.reserve(named.len());
    for (name, server) in named {
        match reader.server(name.clone(), server) {
            Known::All(server) => config.servers.push(server),
            Known::Unclear(server) => config.unclear.push(server),
            Known::Nothing => {}
        }
        let about: Arc<str> = name.value.into();
        let found = reader.findings.drain(..).chain(reader.asides.drain(..));
        findings.extend(found.map(|finding| finding.about(Arc::clone(&about))));
    }
}

/// As many servers tell a dialect, and as many of what each of them has.
pub(super) const TELLING: usize = 20;

/// How badly a file fits a dialect, told from its first servers. Whose file it is may be evident, whatever form its servers
/// have.
pub(super) fn fit(root: &Node, dialect: &'static Dialect, is_evident: bool, source: &Arc<Source>) -> u32 {
    let mut findings = Vec::new();
    let servers = dialect.servers(root);
    let sets = dialect.sets(root);
    let (mut left, mut is_of_other_form, mut loose, mut deeper, mut misnamed) = (TELLING, false, 0, 0, 0);
    let mut of_others = 0;
    for set in &sets {
        let named = named(set.node, dialect, left, &mut findings);
        let samples: Vec<_> = named.into_iter().map(|(name, server)| (name, server.sample(TELLING))).collect();
        left -= samples.len();
        let mut reader = Reader::new(dialect, set, source);
        for (name, server) in &samples {
            misnamed += u32::from(dialect.forbidden_in_name(&name.value).is_some());
            if let Known::All(server) | Known::Unclear(server) = reader.server(name.clone(), server) {
                let is_other = |text: Text<'_>| dialect.rule(text.field).leaves_some(text.field, &text.at.value);
                of_others += u32::from(server.texts().any(is_other));
            }
        }
        findings.append(&mut reader.findings);
        // Whoever takes a number for a text is no likelier meant than who says that it must be one.
        loose += reader.loose;
        deeper += reader.deeper;
        is_of_other_form |= set.node.as_items().is_some() != matches!(dialect.collection, Collection::List { .. });
    }
    if let (Some(node), true) = (servers, sets.is_empty() && !dialect.is_linked) {
        is_of_other_form = node.as_items().is_some() != matches!(dialect.collection, Collection::List { .. });
        named(node, dialect, left, &mut findings);
    }
    let weight = |finding: &Finding| match finding.code.severity() {
        // A program that takes any word is told by none.
        _ if finding.code == &codes::TRANSPORT_GUESSED => 4,
        // Who rejects what others take is hardly meant.
        _ if finding.code == &codes::FORBIDDEN => 8,
        // Who knows a key is likelier meant than who does not, whatever its value is.
        _ if finding.code == &codes::VALUE_TYPE => 1,
        Severity::Advice => 2,
        Severity::Warning => 3,
        Severity::Error => 4,
    };
    let against = findings.iter().map(weight).sum::<u32>() + loose + 100 * deeper + 4 * misnamed + 3 * of_others;
    // A library that reads anything is meant only if something says so.
    let has = |is_telling: fn(&Dialect, &Key) -> bool| sets.iter().any(|set| has_nested(set.node, dialect, is_telling));
    let is_meant = dialect.files.is_empty() && (has(is_of_nobody_else) || against == 0 && has(|_, _| true));
    let is_unlikely = dialect.files.is_empty() && !is_meant;
    // Whoever has keys of its own beside the servers must have them for something.
    let is_bare = servers.is_some_and(|servers| std::ptr::eq(servers, root));
    let evidence = u32::try_from(dialect.evidence(root).len().min(5)).unwrap_or_default();
    // A program's second choice may be another's first: one key is too little to tell that it is not.
    let unlikely = match dialect.is_second_choice(root) {
        true if root.get("mcpServers").is_some() => 100,
        true if evidence == 0 => 3,
        _ => 0,
    };
    against
        + 10
        + 1_000_000 * u32::from(is_of_other_form && !is_evident)
        + 20 * u32::from(is_unlikely)
        + u32::from(is_bare)
        + unlikely
        - 2 * evidence
}

/// Whether a server has one of the objects that the dialect has in servers, as far as they tell.
fn has_nested(servers: &Node, dialect: &Dialect, is_telling: fn(&Dialect, &Key) -> bool) -> bool {
    let objects = dialect.keys.iter().filter(|key| matches!(key.field, Field::Object(_)) && is_telling(dialect, key));
    let objects: Vec<_> = objects.map(|key| key.name).collect();
    let is_there = |server: &Node, key: &str| server.get(key).is_some_and(|it| it.as_entries().is_some());
    let first = servers.as_entries().unwrap_or_default().iter().take(TELLING);
    first.into_iter().any(|server| objects.iter().any(|key| is_there(&server.node, key)))
}

/// Whether no other dialect has a key of that name.
fn is_of_nobody_else(dialect: &Dialect, key: &Key) -> bool {
    let others = ALL.iter().filter(|other| other.name != dialect.name);
    others.flat_map(|other| other.keys).all(|other| other.name != key.name)
}

/// Whether this is an object of servers and of nothing else.
pub(super) fn looks_like_servers(node: &Node) -> bool {
    let is_server = |entry: &Entry| {
        let has = |keys: &[&str]| keys.iter().any(|key| entry.node.get(key).is_some());
        // What the address is called may be a slip where other keys of servers are.
        let is_meant = |entry: &Entry| synonym(&entry.key, &["command", "url"]).is_some();
        let may_be = || {
            has(&["type", "args", "env", "headers"])
                && entry.node.as_entries().is_some_and(|it| it.iter().any(is_meant))
        };
        has(&["command", "url"]) || may_be()
    };
    node.as_entries().is_some_and(|entries| !entries.is_empty() && entries.iter().all(is_server))
}

/// Whether this is no server but an object with objects, of which one is a server.
pub(super) fn holds_servers(node: &Node) -> bool {
    node.as_entries().is_some_and(|entries| {
        entries.iter().all(|it| it.node.as_entries().is_some()) && entries.iter().any(|it| is_server(&it.node))
    })
}

/// Whether this is one server and no object of servers.
pub(super) fn is_server(node: &Node) -> bool {
    ["command", "url"]
        .iter()
        .any(|key| node.get(key).is_some_and(|it| it.as_str().is_some() || it.as_items().is_some()))
}

/// What holds for every server that says nothing else.
fn defaults(root: &Node, dialect: &'static Dialect, source: &Arc<Source>, findings: &mut Vec<Finding>) -> ServerConfig {
    let nobody = At { value: String::new(), span: Span::default() };
    let mut defaults = ServerConfig::new(source.clone(), nobody, At { value: Transport::Stdio, span: Span::default() });
    let node = dialect.defaults.and_then(|keys| root.at(keys));
    let set = Set { node: root, untyped: dialect.untyped, strict: dialect.strict };
    let mut reader = Reader::new(dialect, &set, source);
    if let Some((key, around)) = dialect.defaults.and_then(<[_]>::split_last) {
        let beside = root.at(around).and_then(|node| node.as_entries()).unwrap_or_default();
        let slips = beside.iter().filter(|entry| entry.key != *key && nearest(&entry.key, &[key]).is_some());
        reader.findings.extend(slips.map(|entry| {
            let message = format!("{} does not know `{}`", dialect.program, entry.key);
            codes::UNKNOWN_KEY.at(entry.key_span, message).hint(did_you_mean(key))
        }));
    }
    for entry in node.and_then(|node| node.as_entries()).unwrap_or_default() {
        let known = dialect.keys.iter().find(|key| key.name == entry.key);
        match known.filter(|key| matches!(key.field, Field::Timeout | Field::Debug)) {
            Some(key) => reader.fill(&mut defaults, key.field, entry),
            None => reader.unknown_default(entry),
        }
    }
    if let Some(entry) = dialect.switch(root) {
        reader.fill(&mut defaults, Field::Enabled, entry);
        // Servers are on unless something says that they are off.
        defaults.enabled = defaults.enabled.filter(|enabled| !enabled.value);
    }
    findings.append(&mut reader.findings);
    defaults
}

/// Whether the servers are in other files, of which there are nothing but paths; what is neither is told.
fn links(node: &Node, findings: &mut Vec<Finding>) -> bool {
    if let Some(items) = node.as_items() {
        if items.iter().any(is_server) {
            let finding = codes::VALUE_TYPE.at(node.span, "servers in a list have no names");
            findings.push(finding.hint("write { \"name\": { … } } instead of the list, with a name for each server"));
        }
        for item in items.iter().filter(|item| item.as_str().is_none() && item.as_entries().is_none()) {
            let message = format!("what has servers is a path or an object, found {}", item.kind());
            findings.push(codes::VALUE_TYPE.at(item.span, message).hint("write \"./servers.json\""));
        }
        return true;
    }
    node.as_str().is_some()
}

/// A server with its name.
type Named<'n> = (At<String>, &'n Node);

/// The servers with their names, the first `most` of them. Those that a reference stands for are not known.
fn named<'n>(node: &'n Node, dialect: &Dialect, most: usize, findings: &mut Vec<Finding>) -> Vec<Named<'n>> {
    if let Collection::List { elsewhere } = dialect.collection {
        return of_list(node, dialect, elsewhere, most, findings);
    }
    let Some(entries) = node.as_entries() else {
        if node.is_null() && dialect.variables.by_go {
            let message = "there is nothing where the servers should be";
            findings.push(codes::NO_SERVERS.at(node.span, message).hint("nothing was checked"));
        } else if !(dialect.variables.in_text && dialect.is_open(node)) {
            let hint = "write { \"name\": { … } }, with a name for each server";
            findings.push(wrong_collection(node, "an object").hint(hint));
        }
        return Vec::new();
    };
    let name = |entry: &'n Entry| (At { value: entry.key.clone(), span: entry.key_span }, &entry.node);
    match nameless::find(node, entries, dialect) {
        Some(found) => {
            findings.push(found.finding);
            let servers =
                entries.iter().filter(|entry| found.are_servers_beside && !nameless::is_stray(entry, dialect));
            servers.take(most).map(name).collect()
        }
        None => entries.iter().take(most).map(name).collect(),
    }
}

/// The servers of a list, as [`named`].
fn of_list<'n>(
    node: &'n Node,
    dialect: &Dialect,
    elsewhere: Option<&str>,
    most: usize,
    findings: &mut Vec<Finding>,
) -> Vec<Named<'n>> {
    let is_unknown = |node: &Node| dialect.variables.in_text && dialect.is_open(node);
    let Some(items) = node.as_items() else {
        if !is_unknown(node) {
            findings.push(wrong_collection(node, "a list").hint("begin each server with `- name: …`"));
        }
        return Vec::new();
    };
    let is_here = |item: &&Node| elsewhere.is_none_or(|key| item.get(key).is_none()) && !is_unknown(item);
    let mut servers = Vec::new();
    for item in items.iter().take(most).filter(is_here) {
        match item.get("name").map(|name| (name, name.as_str())) {
            Some((name, Some(text))) => servers.push((At { value: text.to_owned(), span: name.span }, item)),
            Some((name, None)) => {
                let message = format!("the name of a server must be a text, found {}", name.kind());
                findings.push(codes::VALUE_TYPE.at(name.span, message).hint("write it in quotes"));
            }
            None => findings.push(nameless(item)),
        }
    }
    servers
}

/// Says that a server of a list has no name, or has it where its keys should be.
fn nameless(item: &Node) -> Finding {
    let message = "a server needs a `name`";
    match item.as_entries() {
        Some([Entry { key, key_span, node }, ..]) if is_server(node) => {
            let hint = format!("write `name: {key}`, and its keys beside that instead of below it");
            codes::MISSING.at(*key_span, message).hint(hint)
        }
        _ => codes::MISSING.at(item.span, message).hint("begin it with `name: …`"),
    }
}

fn wrong_collection(node: &Node, what: &str) -> Finding {
    codes::VALUE_TYPE.at(node.span, format!("the servers must be {what}, found {}", node.kind()))
}

/// Tells of servers of a list that have the name of another.
fn twice(named: &[Named<'_>], source: &Source, findings: &mut Vec<Finding>) {
    let mut first = HashMap::with_capacity(named.len());
    for (name, _) in named {
        let Some(other) = first.insert(&name.value, name.span) else { continue };
        let (line, column) = source.position(other.start);
        let message = format!("`{}` is a server already at {line}:{column}: only one of them counts", name.value);
        findings.push(codes::DUPLICATE_SERVER.at(name.span, message).hint("keep one of them, or rename it"));
    }
}

#[cfg(test)]
mod tests;
