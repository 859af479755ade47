//! One server: which of its keys mean what.

use std::sync::Arc;

use super::transport::{Target, likely_transport};
use crate::{
    ApiKey, At, ConfiguredServer, codes,
    dialect::{AppliesTo, Dialect, Field, Key, MissingType, RootKeys, ServerMap, is_note, is_server},
};
use rehearse_document::{Entry, Node, Source, Value};
use rehearse_protocol::Transport;
use rehearse_report::findings::{Code, Finding};

/// Reads the servers of one map, one after the other.
pub(super) struct Reader<'a> {
    pub(super) dialect: &'static Dialect,
    pub(super) source: &'a Arc<Source>,
    pub(super) when_type_missing: MissingType,
    pub(super) rejects_unknown_keys: bool,
    pub(super) findings: Vec<Finding>,
    /// Whether this server is only at a URL, in a program that has only local servers.
    pub(super) is_unsupported: bool,
    /// For each [`RequiredField`] the finding about a key that probably means it, and its code if nothing else is there.
    pub(super) suggested: [Option<(usize, &'static Code)>; RequiredField::COUNT],
}

/// What a server of some dialect cannot be without.
#[derive(Clone, Copy)]
pub(super) enum RequiredField {
    Address,
    Transport,
    Arguments,
}

impl RequiredField {
    const COUNT: usize = 3;
}

pub(super) enum ServerParse {
    Complete(ConfiguredServer),
    /// The program cannot reach it, which is reported.
    Incomplete(ConfiguredServer),
    /// It is not a server, or it is defined elsewhere.
    None,
}

/// A key that the dialect knows, with its entry in the file.
pub(super) type KnownEntry<'n> = (&'static Key, &'n Entry);

impl<'a> Reader<'a> {
    pub(super) fn new(dialect: &'static Dialect, map: &ServerMap<'_>, source: &'a Arc<Source>) -> Reader<'a> {
        let ServerMap { when_type_missing, rejects_unknown_keys, .. } = *map;
        Reader {
            dialect,
            source,
            when_type_missing,
            rejects_unknown_keys,
            findings: Vec::new(),
            is_unsupported: false,
            suggested: [None; RequiredField::COUNT],
        }
    }

    /// Whether this value has no quotes in the file.
    pub(super) fn is_bare(&self, node: &Node) -> bool {
        !self.source.text.get(node.span.start..).is_some_and(|text| text.starts_with(['"', '\'', '|', '>', '!', '*']))
    }

    /// As [`Self::may_be_anything`], of an array or an object: no text becomes one behind what is not replaced.
    pub(super) fn may_be_collection(&self, node: &Node) -> bool {
        let begins = |text: &str| self.dialect.variables.replaced_in(text).iter().any(|range| range.start == 0);
        self.may_be_anything(node) && node.as_str().is_none_or(begins)
    }

    /// Whether the program replaces something in the text of this value before it parses it.
    pub(super) fn may_be_anything(&self, node: &Node) -> bool {
        self.dialect.variables.in_text && self.dialect.is_unresolved(node) && self.is_bare(node)
    }

    pub(super) fn server(&mut self, name: At<String>, node: &'a Node) -> ServerParse {
        self.suggested = [None; RequiredField::COUNT];
        let Some(entries) = node.as_entries() else {
            if !self.may_be_anything(node) {
                self.not_a_server(&name, node);
            }
            return ServerParse::None;
        };
        let is_known = |entry: &Entry| self.dialect.keys.iter().any(|key| key.name == entry.key);
        let holds_servers =
            || entries.iter().all(|it| it.node.as_entries().is_some()) && entries.iter().any(|it| is_server(&it.node));
        let is_wrapper = |entry: &Entry| matches!(&*entry.key, "transport" | "connection" | "config");
        if holds_servers() && !entries.iter().any(|entry| is_known(entry) || is_wrapper(entry)) {
            let message = format!("`{}` is not a server but contains servers", name.value);
            self.findings.push(codes::MISSING.at(name.span, message).hint("move them one level up"));
            return ServerParse::None;
        }
        self.is_unsupported = !self.has_remote() && node.get("command").is_none() && entries.iter().any(is_url);
        let mut known = Vec::new();
        self.collect(entries, self.dialect.keys, &mut known);
        self.keep_fitting_url(&mut known);
        self.keep_one_url(&mut known);
        let (transport, is_complete) = match self.transport(&name, &known) {
            Target::By(transport) => (transport, true),
            Target::Unknown => (At { value: likely_transport(&known), span: name.span }, false),
            Target::DefinedElsewhere => return ServerParse::None,
        };
        known.retain(|entry| !is_complete || self.is_for(transport.value, *entry));
        let mut server = ConfiguredServer::new(self.source.clone(), name, transport);
        for (key, entry) in &known {
            self.fill(&mut server, key.field, entry);
        }
        self.apply_kind_of_auth(&mut server, &known);
        if !is_complete {
            return ServerParse::Incomplete(server);
        }
        self.check_complete(&server, &known);
        ServerParse::Complete(server)
    }

    fn not_a_server(&mut self, name: &At<String>, node: &Node) {
        let (RootKeys::Known(known) | RootKeys::Section(known)) = self.dialect.root_keys;
        if known.contains(&&*name.value) {
            let message = format!("`{}` belongs beside the servers, not among them", name.value);
            let place = self.dialect.roots.first().map(|keys| keys.join(".")).unwrap_or_default();
            let finding = codes::VALUE_TYPE.at(name.span, message);
            self.findings.push(finding.hint(format!("move it out of `{place}`")));
            return;
        }
        let message = format!("a server must be an object, found {}", node.kind());
        let hint = match is_note(&name.value) {
            true => "move it out of the servers, or into one of them",
            false => "write { \"command\": \"…\" } or { \"url\": \"…\" }",
        };
        self.findings.push(codes::VALUE_TYPE.at(node.span, message).hint(hint));
    }

    /// Reports URLs under a key that is not for the word that names the transport.
    fn keep_fitting_url(&mut self, known: &mut Vec<KnownEntry<'_>>) {
        let word =
            known.iter().find(|(key, _)| key.field == Field::Transport).and_then(|(_, entry)| entry.node.as_str());
        let Some((word, wanted)) = self.dialect.url_keys.iter().find(|(known, _)| Some(*known) == word) else { return };
        let has_wanted = known.iter().any(|(key, _)| key.name == *wanted);
        let is_other = |key: &Key| matches!(key.field, Field::Url(_)) && key.name != *wanted;
        for (key, entry) in known.iter().filter(|(key, _)| is_other(key)) {
            let message = format!("`{}` is not for `{word}`", key.name);
            let hint = if has_wanted { "remove it".to_owned() } else { format!("write it as `{wanted}`") };
            self.findings.push(codes::FORBIDDEN.at(entry.key_span, message).hint(hint));
        }
        known.retain(|(key, _)| !has_wanted || !is_other(key));
    }

    /// Of several keys for the URL, only the first in the table is used.
    fn keep_one_url(&mut self, known: &mut Vec<KnownEntry<'_>>) {
        let is_url = |key: &Key| matches!(key.field, Field::Url(_));
        let precedence = |key: &Key| self.dialect.keys.iter().position(|it| it == key).unwrap_or(usize::MAX);
        let urls = known.iter().map(|(key, _)| *key).filter(|key| is_url(key));
        let Some(first) = urls.min_by_key(|key| precedence(key)) else { return };
        known.retain(|(key, entry)| {
            let is_kept = !is_url(key) || *key == first;
            if !is_kept {
                let message = format!("`{}` beside `{}`: only one of them is used", key.name, first.name);
                self.findings.push(codes::IGNORED.at(entry.key_span, message).hint("keep one of them"));
            }
            is_kept
        });
    }

    /// Makes a token what its kind says.
    fn apply_kind_of_auth(&mut self, server: &mut ConfiguredServer, known: &[KnownEntry<'_>]) {
        let Some((key, entry)) = known.iter().find(|(key, _)| key.field == Field::AuthKind) else { return };
        let has_token = known.iter().any(|(key, _)| matches!(key.field, Field::Bearer));
        match entry.node.as_str().unwrap_or_default() {
            "bearer" | "api_key" | "apiKey" | "api-key" if !has_token => {
                let finding = codes::MISSING.at(entry.node.span, "this kind of authorization needs a token");
                self.findings.push(finding.hint("add \"token\": \"…\""));
            }
            "bearer" => {}
            "api_key" | "apiKey" | "api-key" => {
                server.auth.api_key = server.auth.bearer.take().map(|key| Box::new(ApiKey { header: None, key }));
            }
            _ => {
                server.auth.bearer = None;
                let message = format!("the token is not sent with such a `{}`", key.name);
                self.findings.push(codes::IGNORED.at(entry.node.span, message).hint("write \"bearer\" or \"api_key\""));
            }
        }
    }

    /// The keys that the dialect knows, those of nested objects among them.
    fn collect(&mut self, entries: &'a [Entry], keys: &'static [Key], known: &mut Vec<KnownEntry<'a>>) {
        for entry in entries {
            let is_object = matches!(entry.node.value, Value::Mapping(_));
            let has_name = |key: &&Key| key.name == entry.key;
            let fits = |key: &&Key| has_name(key) && matches!(key.field, Field::Object(_)) == is_object;
            match (keys.iter().find(fits).or_else(|| keys.iter().find(has_name)), &entry.node.value) {
                (Some(Key { field: Field::Object(keys), name, .. }), Value::Mapping(entries)) => {
                    self.collect(entries, keys, known);
                    self.check_typed(name, entry, keys);
                }
                // Other programs have the word for the transport there.
                (Some(Key { field: Field::Object(connection), .. }), _) if self.is_connection(connection) => {
                    self.unknown(entry, entries, keys);
                }
                (Some(Key { field: Field::Object(_), .. }), _) => self.wrong_type(&entry.key, &entry.node, "an object"),
                (Some(key), _) => known.push((key, entry)),
                (None, _) => self.unknown(entry, entries, keys),
            }
        }
    }

    /// Whether an object with these keys is a connection, which must say its transport.
    fn is_connection(&self, keys: &[Key]) -> bool {
        self.dialect.typed_objects && keys.iter().any(|key| key.field == Field::Transport)
    }

    fn check_typed(&mut self, name: &str, object: &Entry, keys: &[Key]) {
        let kind = keys.iter().find(|key| key.field == Field::Transport).filter(|_| self.is_connection(keys));
        if let Some(kind) = kind.filter(|kind| object.node.get(kind.name).is_none()) {
            let words = self.dialect.words();
            let finding = codes::TRANSPORT.at(object.key_span, format!("`{name}` needs a `{}` in it", kind.name));
            self.findings.push(finding.hint(format!("one of {}", words.join(", "))));
        }
    }

    /// Whether a key is for this transport; if it is not, that is reported.
    fn is_for(&mut self, transport: Transport, (key, entry): KnownEntry<'_>) -> bool {
        if key.applies_to.includes(transport) {
            return true;
        }
        let is_empty = match &entry.node.value {
            Value::String(text) => text.is_empty(),
            Value::Mapping(entries) => entries.is_empty() && !self.dialect.rejects_misplaced_keys,
            Value::Sequence(items) => items.is_empty(),
            _ => false,
        };
        if !is_empty || !self.dialect.empty_is_absent {
            let kind = if key.applies_to == AppliesTo::Remote { "remote" } else { "local" };
            let message = format!("`{}` is only for {kind} servers", key.name);
            self.findings.push(match self.dialect.rejects_misplaced_keys {
                true => codes::FORBIDDEN.at(entry.key_span, message).hint("remove it"),
                false => {
                    let finding = codes::IGNORED.at(entry.key_span, message);
                    finding.hint(format!("{} ignores it", self.dialect.program))
                }
            });
        }
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
