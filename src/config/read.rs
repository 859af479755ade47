//! Servers from a file, as a dialect's table says.

use std::{sync::Arc, time::Duration};

use super::{
    Entry, Node, Source, Span, Value,
    dialect::{ALL, Both, Collection, Dialect, Field, Key, Of, Outside, RootKeys, TimeoutRule, Untyped},
    finding::{Finding, Severity, codes},
    json::is_invisible,
    nearest,
    server::{At, Pair, ServerConfig},
};
use crate::transport::Transport;

/// Keys that people add for themselves, and that nobody minds.
const NOTES: &[&str] =
    &["$schema", "description", "category", "maintainer", "comment", "comments", "note", "notes", "name"];

/// For more unknown keys of one server nobody looks for what was meant: every one of them takes a while.
const MOST_HINTS: usize = 20;

/// How a program that only starts servers reaches one at a URL.
const BRIDGE: &str = "start one that dials: \"command\": \"npx\", \"args\": [\"-y\", \"mcp-remote\", \"https://…\"]";

/// The servers of a file.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub dialect: &'static Dialect,
    pub servers: Vec<ServerConfig>,
}

/// Reads the servers. What is wrong with the file goes to `findings`; a server that cannot be understood is left out.
pub fn read(root: &Node, dialect: &'static Dialect, source: &Arc<Source>, findings: &mut Vec<Finding>) -> ClientConfig {
    let defaults = defaults(root, dialect, source, findings);
    let mut servers = match dialect.servers(root) {
        Some(node) => {
            beside(root, node, dialect, findings);
            each(named(node, dialect.collection, findings), dialect, source, findings)
        }
        None => {
            findings.push(no_servers(root, dialect));
            Vec::new()
        }
    };
    for server in &mut servers {
        server.inherit(&defaults);
    }
    ClientConfig { dialect, servers }
}

/// Reads a list of servers with their names, whatever the dialect has around them; as [`read`] otherwise.
pub(super) fn read_list(
    list: &Node,
    dialect: &'static Dialect,
    source: &Arc<Source>,
    findings: &mut Vec<Finding>,
) -> ClientConfig {
    let named = named(list, Collection::List { elsewhere: None }, findings);
    ClientConfig { dialect, servers: each(named, dialect, source, findings) }
}

fn each(
    named: Vec<(At<String>, &Node)>,
    dialect: &'static Dialect,
    source: &Arc<Source>,
    findings: &mut Vec<Finding>,
) -> Vec<ServerConfig> {
    let mut servers = Vec::new();
    for (name, server) in named {
        let mut reader = Reader { dialect, source, findings: Vec::new(), unknown: 0 };
        servers.extend(reader.server(name.clone(), server));
        findings.extend(reader.findings.into_iter().map(|finding| finding.about(&name.value)));
    }
    servers
}

/// How badly a file fits a dialect, told from its first servers.
pub(super) fn fit(root: &Node, dialect: &'static Dialect, source: &Arc<Source>) -> u32 {
    let mut findings = Vec::new();
    let servers = dialect.servers(root);
    for (name, server) in
        servers.map(|node| named(node, dialect.collection, &mut findings)).unwrap_or_default().into_iter().take(20)
    {
        let mut reader = Reader { dialect, source, findings: Vec::new(), unknown: 0 };
        reader.server(name, server);
        findings.append(&mut reader.findings);
    }
    let is_list = servers.is_some_and(|node| node.items().is_ok());
    let is_of_other_form = is_list != matches!(dialect.collection, Collection::List { .. });
    let weight = |finding: &Finding| match finding.code.severity() {
        Severity::Advice => 2,
        Severity::Warning => 3,
        Severity::Error => 4,
    };
    let against: u32 = findings.iter().map(weight).sum();
    // Whoever has keys of its own beside the servers must have them for something.
    let is_bare = servers.is_some_and(|servers| std::ptr::eq(servers, root));
    let evidence = u32::try_from(dialect.evidence(root).len().min(5)).unwrap_or_default();
    // A program's second choice may be another's first: one key is too little to tell that it is not.
    let unlikely = match dialect.is_second_choice(root) {
        true if root.get("mcpServers").is_some() => 100,
        true if evidence == 0 => 3,
        _ => 0,
    };
    against + 10 + 1_000_000 * u32::from(is_of_other_form) + u32::from(is_bare) + unlikely - 2 * evidence
}

/// Whether this is an object of servers and of nothing else.
pub(super) fn looks_like_servers(node: &Node) -> bool {
    let is_server = |entry: &Entry| ["command", "url"].iter().any(|key| entry.node.get(key).is_some());
    node.entries().is_ok_and(|entries| !entries.is_empty() && entries.iter().all(is_server))
}

/// What is wrong with the keys beside the servers.
fn beside(root: &Node, servers: &Node, dialect: &Dialect, findings: &mut Vec<Finding>) {
    if let Some(caveat) = dialect.bare.filter(|_| std::ptr::eq(servers, root)) {
        let begin = Span { start: root.span.start, end: root.span.start };
        let place = dialect.roots.first().map(|keys| keys.join(".")).unwrap_or_default();
        findings.push(codes::BARE.at(begin, caveat).hint(format!("put everything under `{place}`")));
        return;
    }
    let (RootKeys::Known(known) | RootKeys::Only(known)) = dialect.root_keys else { return };
    let places: Vec<_> = dialect.roots.iter().filter_map(|keys| keys.first().copied()).collect();
    for entry in root.entries().unwrap_or_default() {
        let key = &*entry.key;
        if known.contains(&key) || places.contains(&key) || is_note(key) {
            continue;
        }
        let (strict, message) = match dialect.root_keys {
            RootKeys::Only(_) => (true, format!("{} rejects a file with `{key}` beside its servers", dialect.program)),
            _ => (false, format!("{} does not know `{key}`", dialect.program)),
        };
        findings.push(match (strict, nearest(key, known)) {
            (true, _) => codes::ROOT.at(entry.key_span, message).hint("remove it"),
            (false, Some(near)) => {
                codes::UNKNOWN_KEY.at(entry.key_span, message).hint(format!("did you mean `{near}`?"))
            }
            (false, None) => codes::EXTRA_KEY.at(entry.key_span, message).hint("it is passed over"),
        });
    }
}

/// Whether people add such a key for themselves.
pub(super) fn is_note(key: &str) -> bool {
    NOTES.contains(&key) || key.starts_with(['_', '/', '#'])
}

/// What holds for every server that says nothing else.
fn defaults(root: &Node, dialect: &'static Dialect, source: &Arc<Source>, findings: &mut Vec<Finding>) -> ServerConfig {
    let nobody = At { value: String::new(), span: Span::default() };
    let mut defaults = ServerConfig::new(source.clone(), nobody, At { value: Transport::Stdio, span: Span::default() });
    let node = dialect.defaults.and_then(|keys| keys.iter().try_fold(root, |node, key| node.get(key)));
    let mut reader = Reader { dialect, source, findings: Vec::new(), unknown: 0 };
    for entry in node.and_then(|node| node.entries().ok()).unwrap_or_default() {
        let known = dialect.keys.iter().find(|key| key.name == entry.key);
        if let Some(key) = known.filter(|key| matches!(key.field, Field::Timeout | Field::Debug)) {
            reader.fill(&mut defaults, key.field, entry);
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

/// The file has nothing where the program looks for servers.
fn no_servers(root: &Node, dialect: &Dialect) -> Finding {
    let place = dialect.roots.first().map(|keys| keys.join(".")).unwrap_or_default();
    let message = format!("{} looks for servers under `{place}`, and there is nothing", dialect.program);
    let begin = Span { start: root.span.start, end: root.span.start };
    match (misplaced(root), dialect.root_keys) {
        (Some(entry), _) => {
            codes::ROOT.at(entry.key_span, message).hint(format!("rename `{}` to `{place}`", entry.key))
        }
        (None, RootKeys::Section(_)) if root.entries().is_ok() && !looks_like_servers(root) => {
            codes::NO_SERVERS.at(begin, format!("there are no servers under `{place}`")).hint("nothing was checked")
        }
        (None, _) if root.entries().is_ok() => {
            codes::ROOT.at(begin, message).hint(format!("put the servers under `{place}`"))
        }
        (None, _) => {
            let message = format!("a config must be an object, found {}", root.describe());
            codes::ROOT.at(begin, message).hint(format!("write {{ \"{place}\": {{ … }} }}"))
        }
    }
}

/// The file has no servers in any dialect's place.
pub(super) fn nowhere(root: &Node) -> Finding {
    let begin = Span { start: root.span.start, end: root.span.start };
    let places = "`mcpServers` (most programs), `servers` (Visual Studio Code), `mcp.servers` (code_agent), `context_servers` (Zed)";
    let hint = format!("programs look under {places}; `--dialect` says which program it is for");
    match misplaced(root) {
        Some(entry) => {
            codes::ROOT.at(entry.key_span, format!("no program looks for servers under `{}`", entry.key)).hint(hint)
        }
        None => codes::ROOT.at(begin, "there are no servers").hint(hint),
    }
}

fn misplaced(root: &Node) -> Option<&Entry> {
    root.entries().unwrap_or_default().iter().find(|entry| is_a_place_of_servers(entry))
}

fn is_a_place_of_servers(entry: &Entry) -> bool {
    matches!(
        &*entry.key,
        "mcpServers"
            | "mcpServer"
            | "MCPServers"
            | "mcpservers"
            | "mcp_server"
            | "servers"
            | "mcp_servers"
            | "mcp-servers"
            | "mcp"
            | "context_servers"
    ) && matches!(entry.node.value, Value::Mapping(_) | Value::Sequence(_))
}

/// The servers with their names.
fn named<'n>(node: &'n Node, collection: Collection, findings: &mut Vec<Finding>) -> Vec<(At<String>, &'n Node)> {
    let wrong = |node: &Node, what: &str| {
        codes::VALUE_TYPE.at(node.span, format!("the servers must be {what}, found {}", node.describe()))
    };
    match collection {
        Collection::Map => match node.entries() {
            Ok(entries) => {
                let name = |entry: &'n Entry| (At { value: entry.key.clone(), span: entry.key_span }, &entry.node);
                entries.iter().map(name).collect()
            }
            Err(_) => {
                findings.push(wrong(node, "an object").hint("write { \"name\": { … } }, with a name for each server"));
                Vec::new()
            }
        },
        Collection::List { elsewhere } => match node.items() {
            Ok(items) => {
                let name = |item: &'n Node| {
                    let name = item
                        .get("name")
                        .and_then(|name| Some(At { value: name.str().ok()?.to_owned(), span: name.span }));
                    (name, item)
                };
                let mut servers = Vec::new();
                for (name, item) in
                    items.iter().filter(|item| elsewhere.is_none_or(|key| item.get(key).is_none())).map(name)
                {
                    match name {
                        Some(name) => servers.push((name, item)),
                        None => findings.push(
                            codes::MISSING.at(item.span, "a server needs a `name`").hint("begin it with `name: …`"),
                        ),
                    }
                }
                servers
            }
            Err(_) => {
                findings.push(wrong(node, "a list").hint("begin each server with `- name: …`"));
                Vec::new()
            }
        },
    }
}

struct Reader<'a> {
    dialect: &'static Dialect,
    source: &'a Arc<Source>,
    findings: Vec<Finding>,
    /// How many keys the dialect does not know.
    unknown: usize,
}

/// A key that the dialect knows, with what the file says.
type Given<'n> = (&'static Key, &'n Entry);

impl Reader<'_> {
    fn server(&mut self, name: At<String>, node: &Node) -> Option<ServerConfig> {
        let Ok(entries) = node.entries() else {
            let message = format!("a server must be an object, found {}", node.describe());
            self.findings.push(
                codes::VALUE_TYPE.at(node.span, message).hint("write { \"command\": \"…\" } or { \"url\": \"…\" }"),
            );
            return None;
        };
        let mut given = Vec::new();
        self.collect(entries, self.dialect.keys, &mut given);
        let transport = self.transport(&name, &given)?;
        let given: Vec<_> = given.into_iter().filter(|given| self.is_for(transport.value, *given)).collect();
        let mut server = ServerConfig::new(self.source.clone(), name, transport);
        for (key, entry) in &given {
            self.fill(&mut server, key.field, entry);
        }
        self.check_complete(&server, &given);
        Some(server)
    }

    /// The keys that the dialect knows, those of nested objects among them.
    fn collect<'n>(&mut self, entries: &'n [Entry], keys: &'static [Key], given: &mut Vec<Given<'n>>) {
        for entry in entries {
            match (keys.iter().find(|key| key.name == entry.key), &entry.node.value) {
                (Some(Key { field: Field::Object(keys), .. }), Value::Mapping(entries)) => {
                    self.collect(entries, keys, given);
                }
                (Some(Key { field: Field::Object(_), .. }), _) => self.wrong_type(&entry.key, &entry.node, "an object"),
                (Some(key), _) => given.push((key, entry)),
                (None, _) => self.unknown(entry, keys),
            }
        }
    }

    fn unknown(&mut self, entry: &Entry, keys: &[Key]) {
        let (key, program) = (&*entry.key, self.dialect.program);
        if is_note(key) {
            return;
        }
        let names: Vec<_> = keys.iter().map(|key| key.name).collect();
        let dials = self.dialect.transports.iter().any(|(_, transport)| *transport != Transport::Stdio);
        if !dials && matches!(key, "url" | "httpUrl" | "serverUrl") {
            let message = format!("{program} starts servers and dials none");
            self.findings.push(codes::TRANSPORT.at(entry.key_span, message).hint(BRIDGE));
            return;
        }
        if let Some(odd) = key.chars().find(|c| is_invisible(*c)) {
            let message = format!("the key has a character that nobody sees (U+{:04X})", u32::from(odd));
            self.findings.push(codes::INVISIBLE.at(entry.key_span, message).hint("type the key anew"));
            return;
        }
        let message = format!("{program} does not know `{key}`");
        self.unknown += 1;
        if self.unknown > MOST_HINTS {
            self.findings.push(codes::EXTRA_KEY.at(entry.key_span, message).hint("it is passed over"));
            return;
        }
        let others: Vec<_> = ALL.iter().filter(|other| other.keys.iter().any(|it| it.name == key)).collect();
        self.findings.push(match (synonym(key, &names), nearest(key, &names), &others[..]) {
            (Some(near), ..) | (None, Some(near), []) => {
                codes::UNKNOWN_KEY.at(entry.key_span, message).hint(format!("did you mean `{near}`?"))
            }
            (None, None, []) => codes::EXTRA_KEY.at(entry.key_span, message).hint("it is passed over"),
            (None, _, [other, ..]) => {
                codes::EXTRA_KEY.at(entry.key_span, message).hint(format!("it is a key of {}", other.program))
            }
        });
    }

    /// The transport, from the word for it or from the keys that are there.
    fn transport(&mut self, name: &At<String>, given: &[Given<'_>]) -> Option<At<Transport>> {
        let of = |wanted: fn(&Field) -> bool| given.iter().find(|(key, _)| wanted(&key.field));
        let command = of(|field| matches!(field, Field::Command | Field::CommandLine));
        let url = of(|field| matches!(field, Field::Url(_)));
        if let (Some((command, _)), Some((url_key, entry)), Both::Rejected) = (command, url, self.dialect.both) {
            let message =
                format!("`{}` beside `{}`: {} rejects both", url_key.name, command.name, self.dialect.program);
            self.findings.push(codes::FORBIDDEN.at(entry.key_span, message).hint("keep one of them"));
            return None;
        }
        if let Some((key, entry)) = of(|field| *field == Field::Transport) {
            return self.named_transport(key, &entry.node);
        }
        if self.dialect.untyped == Untyped::Rejected {
            let words: Vec<_> = self.dialect.transports.iter().map(|(word, _)| *word).collect();
            let message = format!("the server `{}` needs a `type`", name.value);
            self.findings.push(codes::TRANSPORT.at(name.span, message).hint(format!("one of {}", words.join(", "))));
            return None;
        }
        let by_url = |key: &Key| match (key.field, self.dialect.untyped) {
            (Field::Url(Some(transport)), _) | (_, Untyped::Inferred(transport)) => Some(transport),
            (_, Untyped::Process | Untyped::Rejected) => None,
        };
        match (command, url) {
            (Some((_, entry)), url) if url.is_none() || self.dialect.both != Both::Dialled => {
                Some(At { value: Transport::Stdio, span: entry.key_span })
            }
            (_, Some((key, entry))) => {
                let is_socket = entry.node.str().is_ok_and(|url| url.starts_with("ws://") || url.starts_with("wss://"));
                let transport = by_url(key).map(|transport| if is_socket { Transport::Ws } else { transport });
                if transport.is_none() {
                    let words: Vec<_> = self.dialect.transports.iter().map(|(word, _)| *word).collect();
                    let remote: Vec<_> = words.into_iter().filter(|word| *word != "stdio").collect();
                    let message =
                        format!("a `{}` without a `type`: {} does not connect to it", key.name, self.dialect.program);
                    let hint = match remote[..] {
                        [] => BRIDGE.to_owned(),
                        _ => format!("add \"type\": \"{}\"", remote[0]),
                    };
                    self.findings.push(codes::TRANSPORT.at(entry.key_span, message).hint(hint));
                }
                Some(At { value: transport?, span: entry.key_span })
            }
            _ => {
                let keys = self.dialect.keys.iter();
                let names: Vec<_> = keys
                    .filter(|key| matches!(key.field, Field::Command | Field::CommandLine | Field::Url(_)))
                    .map(|key| format!("`{}`", key.name))
                    .collect();
                if !self.findings.iter().any(|finding| finding.code == &codes::TRANSPORT) {
                    let message = format!("the server `{}` needs {}", name.value, names.join(" or "));
                    self.findings.push(codes::MISSING.at(name.span, message).hint("say how to reach it"));
                }
                None
            }
        }
    }

    fn named_transport(&mut self, key: &Key, node: &Node) -> Option<At<Transport>> {
        let Ok(word) = node.str() else {
            self.wrong_type(key.name, node, "a text");
            return None;
        };
        if let Some((_, transport)) = self.dialect.transports.iter().find(|(known, _)| *known == word) {
            return Some(At { value: *transport, span: node.span });
        }
        let words: Vec<_> = self.dialect.transports.iter().map(|(word, _)| *word).collect();
        let message = format!("{} has no transport `{word}`", self.dialect.program);
        let same =
            meant(word).and_then(|meant| self.dialect.transports.iter().find(|(_, transport)| *transport == meant));
        let finding = codes::TRANSPORT.at(node.span, message);
        self.findings.push(match same {
            Some((known, _)) => finding.hint(format!("write `{known}`")),
            None => finding.hint(format!("it has {}", words.join(", "))),
        });
        None
    }

    /// Whether a key is one for this transport; if it is not, that is told.
    fn is_for(&mut self, transport: Transport, (key, entry): Given<'_>) -> bool {
        let is_process = transport == Transport::Stdio;
        let (fits, strict) = match key.of {
            Of::All => (true, false),
            Of::Process { strict } => (is_process, strict),
            Of::Remote { strict } => (!is_process, strict),
        };
        if fits {
            return true;
        }
        let what = if is_process { "a server that is started" } else { "a server at a URL" };
        let message = format!("`{}` is not for {what}", key.name);
        self.findings.push(match strict {
            true => codes::FORBIDDEN.at(entry.key_span, message).hint("remove it"),
            false => {
                codes::IGNORED.at(entry.key_span, message).hint(format!("{} passes it over", self.dialect.program))
            }
        });
        false
    }

    fn fill(&mut self, server: &mut ServerConfig, field: Field, entry: &Entry) {
        let (key, node) = (&*entry.key, &entry.node);
        match field {
            Field::Command => server.command = self.text(key, node),
            Field::CommandLine => {
                let mut words = self.texts(key, node).into_iter();
                server.command = words.next();
                server.args = words.collect();
            }
            Field::Args => server.args = self.texts(key, node),
            Field::Env => server.env = self.pairs(key, node),
            Field::EnvFile => server.env_file = self.text(key, node),
            Field::Cwd => server.cwd = self.text(key, node),
            Field::Url(_) => server.url = self.text(key, node),
            Field::Headers => server.headers = self.pairs(key, node),
            Field::Timeout => {
                let timeout = self.timeout(key, node);
                let timeouts = &mut server.timeouts;
                (timeouts.connect, timeouts.list, timeouts.call) = (timeout.clone(), timeout.clone(), timeout);
            }
            Field::CallTimeout => server.timeouts.call = self.timeout(key, node),
            Field::Include => server.tools.include = self.list(entry),
            Field::Exclude => server.tools.exclude = self.list(entry),
            Field::Enabled => server.enabled = self.flag(key, node),
            Field::Disabled => server.enabled = self.flag(key, node).map(|it| At { value: !it.value, ..it }),
            Field::Trust => server.approval.trust = self.flag(key, node),
            Field::AlwaysAllow => server.approval.always_allow = self.texts(key, node),
            Field::Debug => server.debug = self.flag(key, node),
            Field::Bearer => server.auth.bearer = self.text(key, node),
            Field::ClientId => server.auth.oauth.get_or_insert_default().client_id = self.text(key, node),
            Field::ClientSecret => server.auth.oauth.get_or_insert_default().client_secret = self.text(key, node),
            Field::MetadataUrl => server.auth.oauth.get_or_insert_default().metadata_url = self.text(key, node),
            Field::Scopes | Field::ScopeText => {
                server.auth.oauth.get_or_insert_default().scopes = self.scopes(key, node)
            }
            Field::CallbackPort => match node.integer() {
                Ok(port) => {
                    server.auth.oauth.get_or_insert_default().callback_port = Some(At { value: port, span: node.span })
                }
                Err(_) => self.wrong_type(key, node, "a port"),
            },
            Field::Name | Field::Transport | Field::Object(_) | Field::Own => {}
        }
    }

    fn wrong_type(&mut self, key: &str, node: &Node, expected: &str) {
        let message = format!("`{key}` must be {expected}, found {}", node.describe());
        let finding = codes::VALUE_TYPE.at(node.span, message);
        self.findings.push(match (&node.value, expected) {
            (Value::String(text), "a list of texts") if text.contains(' ') => {
                finding.hint("write each argument as a text of its own: [\"-y\", \"package\"]")
            }
            (Value::String(text), "a list of texts") => finding.hint(format!("write [{text:?}]")),
            (Value::Number(text), "a text") => finding.hint(format!("write \"{text}\"")),
            (Value::Bool(value), "a text") => finding.hint(format!("write \"{value}\"")),
            (Value::String(text), "a number" | "true or false") => finding.hint(format!("write {text} without quotes")),
            (Value::Sequence(_), "a text") if key == "command" => finding.hint("put the rest into `args`"),
            (_, "a list of texts") => finding.hint("write [\"one\", \"two\"]"),
            (_, "an object of texts") => finding.hint("write { \"NAME\": \"value\" }"),
            (_, "an object") => finding.hint("write { … }"),
            (_, "a number" | "a port") => finding.hint("write it in digits"),
            (_, "true or false") => finding.hint("write true or false without quotes"),
            _ => finding.hint("write it in quotes"),
        });
    }

    fn text(&mut self, key: &str, node: &Node) -> Option<At<String>> {
        match &node.value {
            Value::String(text) => Some(At { value: text.clone(), span: node.span }),
            _ => {
                self.wrong_type(key, node, "a text");
                None
            }
        }
    }

    fn texts(&mut self, key: &str, node: &Node) -> Vec<At<String>> {
        let Ok(items) = node.items() else {
            self.wrong_type(key, node, "a list of texts");
            return Vec::new();
        };
        items.iter().filter_map(|item| self.text(key, item)).collect()
    }

    /// A list, of which the key is shown as long as there is something in it.
    fn list(&mut self, entry: &Entry) -> Option<At<Vec<At<String>>>> {
        let value = self.texts(&entry.key, &entry.node);
        let is_empty = entry.node.items().ok()?.is_empty();
        Some(At { value, span: if is_empty { entry.node.span } else { entry.key_span } })
    }

    fn flag(&mut self, key: &str, node: &Node) -> Option<At<bool>> {
        let Ok(value) = node.bool() else {
            self.wrong_type(key, node, "true or false");
            return None;
        };
        Some(At { value, span: node.span })
    }

    fn pairs(&mut self, key: &str, node: &Node) -> Vec<Pair> {
        let Ok(entries) = node.entries() else {
            self.wrong_type(key, node, "an object of texts");
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for Entry { key, key_span, node } in entries {
            let value = match &node.value {
                Value::Number(text) if self.dialect.loose_values => Some(At { value: text.clone(), span: node.span }),
                Value::Null if self.dialect.loose_values => continue,
                _ => self.text(key, node),
            };
            let name = At { value: key.clone(), span: *key_span };
            pairs.extend(value.map(|value| Pair { name, value }));
        }
        pairs
    }

    fn scopes(&mut self, key: &str, node: &Node) -> Vec<At<String>> {
        match &node.value {
            Value::String(text) => {
                text.split_whitespace().map(|scope| At { value: scope.to_owned(), span: node.span }).collect()
            }
            _ => self.texts(key, node),
        }
    }

    fn timeout(&mut self, key: &str, node: &Node) -> Option<At<Duration>> {
        let TimeoutRule { unit, least, most, outside, .. } = self.dialect.timeout?;
        let number = match &node.value {
            Value::Number(text) => text.parse::<f64>().ok(),
            _ => None,
        };
        let Some(number) = number else {
            self.wrong_type(key, node, "a number");
            return None;
        };
        let (name, other, meant) = match unit {
            1000 => ("seconds", "milliseconds", number / 1000.0),
            _ => ("milliseconds", "seconds", number * 1000.0),
        };
        let looks_like_other = if unit == 1000 { number >= 1000.0 } else { number > 0.0 && number < 100.0 };
        let other_hint = format!("write {meant} if {other} were meant");
        #[expect(clippy::cast_precision_loss, reason = "the limits are far below 2^53, or none")]
        let (low, high) = (least as f64, most as f64);
        let is_inside = (low..=high).contains(&number);
        let limits = match most {
            u64::MAX => format!("at least {least}"),
            _ => format!("from {least} to {most}"),
        };
        let hint = if looks_like_other { other_hint } else { format!("write a number {limits}") };
        let message = format!("`{key}` is in {name}");
        if !is_inside && outside == Outside::Rejected {
            let message = format!("{message}, {limits}, found {number}");
            self.findings.push(codes::TIMEOUT.at(node.span, message).hint(hint));
            return None;
        }
        let taken = number.clamp(low, high);
        if !is_inside {
            let fate = match outside {
                Outside::Clamped => format!("{} takes {taken} instead", self.dialect.program),
                _ => format!("{} ignores it", self.dialect.program),
            };
            let size = if number < low { "small" } else { "large" };
            let message = format!("{message}, and {number} is too {size}: {fate}");
            self.findings.push(codes::TIMEOUT_UNIT.at(node.span, message).hint(hint));
        } else if looks_like_other {
            let message = format!("{message}, and {number} looks like {other}");
            self.findings.push(codes::TIMEOUT_UNIT.at(node.span, message).hint(hint));
        }
        if !is_inside && outside == Outside::Ignored {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a unit is 1 or 1000")]
        let seconds = taken * (unit as f64) / 1000.0;
        Duration::try_from_secs_f64(seconds).ok().map(|value| At { value, span: node.span })
    }

    /// What every server of its transport needs, `given` the keys that it has.
    fn check_complete(&mut self, server: &ServerConfig, given: &[Given<'_>]) {
        let is_process = server.transport.value == Transport::Stdio;
        let is_address = |field: &Field| match field {
            Field::Command | Field::CommandLine => is_process,
            Field::Url(_) => !is_process,
            _ => false,
        };
        let address = self.dialect.keys.iter().find(|key| is_address(&key.field)).map(|key| key.name);
        let besides = if is_process { self.dialect.required } else { &[] };
        for key in address.iter().chain(besides) {
            let is_meant = |field| address == Some(*key) && is_address(field);
            if given.iter().any(|(it, _)| it.name == *key || is_meant(&it.field)) {
                continue;
            }
            let message = format!("the server `{}` needs `{key}`", server.name.value);
            let hint = match (*key, is_process) {
                ("args", _) => "write \"args\": [] if there are none".to_owned(),
                (_, true) => "name the program that is the server".to_owned(),
                (_, false) => format!("add \"{key}\": \"https://…\""),
            };
            self.findings.push(codes::MISSING.at(server.name.span, message).hint(hint));
        }
    }
}

/// What people call the same thing elsewhere, if this dialect has it.
fn synonym<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    if let Some(same) = known.iter().find(|known| known.eq_ignore_ascii_case(key)) {
        return Some(same);
    }
    let meant: &[&str] = match key.to_lowercase().as_str() {
        "environment" | "envs" | "env_vars" | "variables" => &["env"],
        "arguments" | "arg" | "params" | "parameters" => &["args"],
        "cmd" | "exec" | "executable" | "program" | "run" => &["command"],
        "endpoint" | "uri" | "httpurl" | "serverurl" | "baseurl" | "address" | "href" => {
            &["url", "serverUrl", "httpUrl"]
        }
        "header" | "http_headers" => &["headers"],
        "transporttype" | "transport" | "kind" | "protocol" => &["type", "transport"],
        "workingdirectory" | "workdir" | "dir" | "working_directory" => &["cwd"],
        "autoapprove" | "alwaysallow" | "autoallow" => &["alwaysAllow", "autoApprove", "trust"],
        "enabled" | "active" => &["enabled", "disabled"],
        "disabled" => &["disabled", "enabled"],
        "envfile" | "env_file" | "dotenv" => &["envFile"],
        "timeoutms" | "timeoutseconds" | "request_timeout" => &["timeout"],
        "excludetools" | "disabledtools" | "disallowedtools" | "blocklist" => &["disabledTools", "excludeTools"],
        "includetools" | "enabledtools" | "allowedtools" | "allowlist" => &["enabledTools", "includeTools"],
        _ => &[],
    };
    meant.iter().find_map(|meant| known.iter().copied().find(|known| known == meant))
}

/// The transport that somebody means by a word of another dialect.
fn meant(word: &str) -> Option<Transport> {
    Some(match word.to_lowercase().replace(['-', '_', ' '], "").as_str() {
        "stdio" | "local" | "command" | "process" => Transport::Stdio,
        "http" | "https" | "streamable" | "streamablehttp" | "remote" => Transport::Http,
        "sse" | "httpsse" | "eventstream" => Transport::Sse,
        "ws" | "wss" | "websocket" => Transport::Ws,
        _ => return None,
    })
}
