//! One server: which of its keys mean what.

use std::sync::Arc;

use super::{
    holds_servers,
    reach::{Reached, likely},
    unknown::Meanings,
    word::is_note,
};
use crate::{
    config::{
        Entry, Node, Source, Value,
        dialect::{Dialect, Field, Key, Of, RootKeys, Set, Untyped},
        finding::{Code, Finding, codes},
        json,
        server::{ApiKey, At, ServerConfig},
    },
    transport::Transport,
};

/// What may be meant for a transport is no longer.
pub(super) const LONGEST_WORD: usize = 16;

/// Reads the servers of one collection, one after the other.
pub(super) struct Reader<'a> {
    pub(super) dialect: &'static Dialect,
    /// Other programs that may be meant; none if it is known whose file it is.
    pub(super) rivals: &'a [&'static Dialect],
    pub(super) source: &'a Arc<Source>,
    /// What a server without a word for its transport is.
    pub(super) untyped: Untyped,
    /// Whether a key that the program does not know is an error.
    pub(super) strict: bool,
    pub(super) findings: Vec<Finding>,
    /// Those that say nothing about whose file it is.
    pub(super) asides: Vec<Finding>,
    /// How many values are of a type that hardly another program takes.
    pub(super) loose: u32,
    /// How many objects are no servers but hold some.
    pub(super) deeper: u32,
    pub(super) meanings: Meanings<'a>,
    /// How many keys of this server the dialect does not know.
    pub(super) unknown: usize,
    /// Whether this server is only at a URL, in a program that dials none.
    pub(super) is_out_of_reach: bool,
    /// For each [`Need`] the finding about a key that may be meant for it, and its code if nothing else meets the need.
    pub(super) meant: [Option<(usize, &'static Code)>; Need::COUNT],
}

/// What a server of some dialect cannot be without.
#[derive(Clone, Copy)]
pub(super) enum Need {
    Address,
    Transport,
    Arguments,
}

impl Need {
    const COUNT: usize = 3;
}

/// What there is to know of a server.
pub(super) enum Known {
    All(ServerConfig),
    /// All but how to reach it, which has been told.
    Unclear(ServerConfig),
    /// It is no server, or it is described elsewhere.
    Nothing,
}

/// A key that the dialect knows, with what the file says.
pub(super) type Given<'n> = (&'static Key, &'n Entry);

impl<'a> Reader<'a> {
    pub(super) fn new(dialect: &'static Dialect, set: &Set<'_>, source: &'a Arc<Source>) -> Reader<'a> {
        let Set { untyped, strict, .. } = *set;
        Reader {
            dialect,
            rivals: &[],
            source,
            untyped,
            strict,
            findings: Vec::new(),
            asides: Vec::new(),
            loose: 0,
            deeper: 0,
            meanings: Meanings::new(),
            unknown: 0,
            is_out_of_reach: false,
            meant: Default::default(),
        }
    }

    /// The same, where one of these may be meant as well.
    pub(super) fn guessed(self, rivals: &'a [&'static Dialect]) -> Reader<'a> {
        Reader { rivals, ..self }
    }

    /// Whether this value stands in the file without quotes.
    pub(super) fn is_bare(&self, node: &Node) -> bool {
        !self.source.text.get(node.span.start..).is_some_and(|text| text.starts_with(['"', '\'', '|', '>', '!', '*']))
    }

    /// As [`Self::may_be_anything`], of a list or an object: no text becomes one behind what is not replaced.
    pub(super) fn may_be_collection(&self, node: &Node) -> bool {
        let begins = |text: &str| self.dialect.variables.replaced_in(text).iter().any(|range| range.start == 0);
        self.may_be_anything(node) && node.as_str().is_none_or(begins)
    }

    /// Whether the program replaces something in the text of this value before it reads it, so that it may become
    /// anything; or nobody knows what was meant by it, which has been told.
    pub(super) fn may_be_anything(&self, node: &Node) -> bool {
        let is_nothing = || self.source.text.get(node.span.start..node.span.end).is_some_and(json::is_nothing);
        (node.is_null() && is_nothing())
            || self.dialect.variables.in_text && self.dialect.is_open(node) && self.is_bare(node)
    }
}

impl<'a> Reader<'a> {
    pub(super) fn server(&mut self, name: At<String>, node: &'a Node) -> Known {
        (self.unknown, self.meant) = (0, Default::default());
        let Some(entries) = node.as_entries() else {
            if self.may_be_anything(node) {
                return Known::Nothing;
            }
            let (RootKeys::Known(beside) | RootKeys::Section(beside)) = self.dialect.root_keys;
            if beside.contains(&&*name.value) {
                let message = format!("`{}` is no server: it belongs beside the servers", name.value);
                let place = self.dialect.roots.first().map(|keys| keys.join(".")).unwrap_or_default();
                let finding = codes::VALUE_TYPE.at(name.span, message);
                self.findings.push(finding.hint(format!("move it out of `{place}`, beside it")));
                return Known::Nothing;
            }
            let message = format!("a server must be an object, found {}", node.kind());
            let hint = match is_note(&name.value) {
                true => "put it outside of the servers, or into one of them",
                false => "write { \"command\": \"…\" } or { \"url\": \"…\" }",
            };
            self.findings.push(codes::VALUE_TYPE.at(node.span, message).hint(hint));
            return Known::Nothing;
        };
        let is_known = |entry: &Entry| self.dialect.keys.iter().any(|key| key.name == entry.key);
        let is_way = |entry: &Entry| matches!(&*entry.key, "transport" | "connection" | "config");
        if holds_servers(node) && !entries.iter().any(|entry| is_known(entry) || is_way(entry)) {
            let finding =
                codes::MISSING.at(name.span, format!("`{}` is no server: there are servers in it", name.value));
            self.findings.push(finding.hint("put them one level higher, in the place of this key"));
            self.deeper += 1;
            return Known::Nothing;
        }
        self.is_out_of_reach = !self.dials() && node.get("command").is_none() && entries.iter().any(is_url);
        let mut given = Vec::new();
        self.collect(entries, self.dialect.keys, &mut given);
        self.keep_fitting_url(&mut given);
        self.keep_one_url(&mut given);
        let (transport, is_clear) = match self.transport(&name, &given) {
            Reached::By(transport) => (transport, true),
            Reached::Unclear => (At { value: likely(&given), span: name.span }, false),
            Reached::Elsewhere => return Known::Nothing,
        };
        given.retain(|given| !is_clear || self.is_for(transport.value, *given));
        let mut server = ServerConfig::new(self.source.clone(), name, transport);
        for (key, entry) in &given {
            self.fill(&mut server, key.field, entry);
        }
        self.apply_kind_of_auth(&mut server, &given);
        if !is_clear {
            return Known::Unclear(server);
        }
        self.check_complete(&server, &given);
        Known::All(server)
    }

    /// Tells of URLs under another key than that for the word that names the transport.
    fn keep_fitting_url(&mut self, given: &mut Vec<Given<'_>>) {
        if self.dialect.url_keys.is_empty() {
            return;
        }
        let word =
            given.iter().find(|(key, _)| key.field == Field::Transport).and_then(|(_, entry)| entry.node.as_str());
        let Some((word, wanted)) = self.dialect.url_keys.iter().find(|(known, _)| Some(*known) == word) else { return };
        let has_wanted = given.iter().any(|(key, _)| key.name == *wanted);
        let is_other = |key: &Key| matches!(key.field, Field::Url(_)) && key.name != *wanted;
        for (key, entry) in given.iter().filter(|(key, _)| is_other(key)) {
            let message = format!("`{}` is not for `{word}`", key.name);
            let hint = if has_wanted { "remove it".to_owned() } else { format!("write it as `{wanted}`") };
            self.findings.push(codes::FORBIDDEN.at(entry.key_span, message).hint(hint));
        }
        given.retain(|(key, _)| !has_wanted || !is_other(key));
    }

    /// Of several keys for the URL, only the first in the table counts.
    fn keep_one_url(&mut self, given: &mut Vec<Given<'_>>) {
        let is_url = |key: &Key| matches!(key.field, Field::Url(_));
        let place = |key: &Key| self.dialect.keys.iter().position(|it| it == key).unwrap_or(usize::MAX);
        let urls = given.iter().map(|(key, _)| *key).filter(|key| is_url(key));
        let Some(first) = urls.min_by_key(|key| place(key)) else { return };
        given.retain(|(key, entry)| {
            let is_kept = !is_url(key) || *key == first;
            if !is_kept {
                let message = format!("`{}` beside `{}`: only one of them counts", key.name, first.name);
                self.asides.push(codes::IGNORED.at(entry.key_span, message).hint("keep one of them"));
            }
            is_kept
        });
    }

    /// Makes of a token what the file says that it is.
    fn apply_kind_of_auth(&mut self, server: &mut ServerConfig, given: &[Given<'_>]) {
        let Some((key, entry)) = given.iter().find(|(key, _)| key.field == Field::AuthKind) else { return };
        match entry.node.as_str().unwrap_or_default() {
            "bearer" => {}
            "api_key" | "apiKey" | "api-key" => {
                server.auth.api_key = server.auth.bearer.take().map(|key| Box::new(ApiKey { header: None, key }));
            }
            _ => {
                server.auth.bearer = None;
                let message = format!("nobody says where the token goes with such a `{}`", key.name);
                self.findings.push(codes::IGNORED.at(entry.node.span, message).hint("write \"bearer\" or \"api_key\""));
            }
        }
    }

    /// The keys that the dialect knows, those of nested objects among them.
    fn collect(&mut self, entries: &'a [Entry], keys: &'static [Key], given: &mut Vec<Given<'a>>) {
        for entry in entries {
            let is_object = matches!(entry.node.value, Value::Mapping(_));
            let of_name = |key: &&Key| key.name == entry.key;
            let fitting = |key: &&Key| of_name(key) && matches!(key.field, Field::Object(_)) == is_object;
            match (keys.iter().find(fitting).or_else(|| keys.iter().find(of_name)), &entry.node.value) {
                (Some(Key { field: Field::Object(keys), name, .. }), Value::Mapping(entries)) => {
                    self.collect(entries, keys, given);
                    self.check_typed(name, entry, keys);
                }
                (Some(Key { field: Field::Object(connection), .. }), _) if self.is_connection(connection) => {
                    self.unknown_word(entry, entries, keys);
                }
                (Some(Key { field: Field::Object(_), .. }), _) => self.wrong_type(&entry.key, &entry.node, "an object"),
                (Some(key), _) => given.push((key, entry)),
                (None, _) => self.unknown(entry, entries, keys),
            }
        }
    }

    /// Whether an object with these keys is a connection, which must say its transport.
    fn is_connection(&self, keys: &[Key]) -> bool {
        self.dialect.typed_objects && keys.iter().any(|key| key.field == Field::Transport)
    }

    /// Whether the object of a connection says its transport, where it must.
    fn check_typed(&mut self, name: &str, object: &Entry, keys: &[Key]) {
        let kind = keys.iter().find(|key| key.field == Field::Transport).filter(|_| self.is_connection(keys));
        if let Some(kind) = kind.filter(|kind| object.node.get(kind.name).is_none()) {
            let words = self.dialect.words();
            let finding = codes::TRANSPORT.at(object.key_span, format!("`{name}` needs a `{}` in it", kind.name));
            self.findings.push(finding.hint(format!("one of {}", words.join(", "))));
        }
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
        let is_empty = match &entry.node.value {
            Value::String(text) => text.is_empty(),
            Value::Mapping(entries) => entries.is_empty(),
            _ => false,
        };
        if is_empty && self.dialect.writes_all {
            return false;
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
}

/// Whether this is a URL for some program.
pub(super) fn is_url(entry: &Entry) -> bool {
    matches!(&*entry.key, "url" | "httpUrl" | "serverUrl")
}

pub(super) fn is_address(key: &Key) -> bool {
    matches!(key.field, Field::Command | Field::CommandLine | Field::Url(_))
}
