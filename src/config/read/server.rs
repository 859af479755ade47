//! One server: which of its keys mean what, and what is said of those that mean nothing.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use super::{
    holds_servers,
    reach::{Reached, likely},
    word::{is_note, long_word, meant, synonym},
};
use crate::{
    config::{
        Entry, Node, Source, Value,
        dialect::{ALL, Dialect, Field, Key, Of, RootKeys, Set, Untyped},
        finding::{Code, Finding, codes},
        json::{self, is_invisible},
        nearest,
        server::{ApiKey, At, ServerConfig},
    },
    transport::Transport,
};

/// For more unknown keys of one server nobody looks for what was meant: every one of them takes a while.
const MOST_HINTS: usize = 20;

/// What may be meant for a transport is no longer.
pub(super) const LONGEST_WORD: usize = 16;

/// A shorter key that is nobody's may be any word; in a key of so many letters as the second, two may be wrong.
const SLIP_OF: (usize, usize) = (5, 10);

/// How a program that only starts servers reaches one at a URL.
pub(in crate::config) const BRIDGE: &str =
    "start one that dials: \"command\": \"npx\", \"args\": [\"-y\", \"mcp-remote\", \"https://…\"]";

pub(super) struct Reader<'a> {
    pub(super) dialect: &'static Dialect,
    /// Other programs that may be meant; none if it is known whose file it is.
    rivals: &'a [&'static Dialect],
    pub(super) source: &'a Arc<Source>,
    /// What a server without a word for its transport is.
    pub(super) untyped: Untyped,
    /// Whether a key that the program does not know is an error.
    strict: bool,
    pub(super) findings: Vec<Finding>,
    /// Those that say nothing about whose file it is.
    pub(super) asides: Vec<Finding>,
    /// How many values are of a type that hardly another program takes.
    pub(super) loose: u32,
    /// How many keys the dialect does not know.
    unknown: usize,
    /// The finding about a key that may be meant for the address, and what it is called if there is no other.
    pub(super) meant: Option<(usize, &'static Code)>,
    /// The same of a key that may be meant for the transport.
    pub(super) meant_word: Option<(usize, &'static Code)>,
    /// Whether what should be a server holds servers.
    pub(super) holds_servers: bool,
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
            unknown: 0,
            meant: None,
            meant_word: None,
            holds_servers: false,
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
        self.may_be_anything(node) && node.str().map_or(true, begins)
    }

    /// Whether the program replaces something in the text of this value before it reads it, so that it may become
    /// anything; or nobody knows what was meant by it, which has been told.
    pub(super) fn may_be_anything(&self, node: &Node) -> bool {
        let is_nothing = || self.source.text.get(node.span.start..node.span.end).is_some_and(json::is_nothing);
        (node.is_null() && is_nothing())
            || self.dialect.variables.in_text && self.dialect.is_open(node) && self.is_bare(node)
    }
}

impl Reader<'_> {
    pub(super) fn server(&mut self, name: At<String>, node: &Node) -> Known {
        let Ok(entries) = node.entries() else {
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
        if holds_servers(node) && !entries.iter().any(is_known) {
            let finding =
                codes::MISSING.at(name.span, format!("`{}` is no server: there are servers in it", name.value));
            self.findings.push(finding.hint("put them one level higher, in the place of this key"));
            self.holds_servers = true;
            return Known::Nothing;
        }
        let mut given = Vec::new();
        self.collect(entries, self.dialect.keys, &mut given);
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
        match entry.node.str().unwrap_or_default() {
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
    fn collect<'n>(&mut self, entries: &'n [Entry], keys: &'static [Key], given: &mut Vec<Given<'n>>) {
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

    /// What is no object where the program has one for the connection: it passes that over, and other programs have the
    /// word for the transport there.
    fn unknown_word(&mut self, entry: &Entry, beside: &[Entry], keys: &'static [Key]) {
        let has = |key: &str| beside.iter().any(|entry| entry.key == key);
        let taken_for = match self.untyped {
            _ if has("command") => Some(Transport::Stdio),
            Untyped::Inferred(transport) => Some(transport),
            Untyped::Process | Untyped::Rejected => None,
        };
        let word = entry.node.str().ok().and_then(meant);
        if word.is_none() || word != taken_for {
            return self.unknown(entry, beside, keys);
        }
        let message = format!("{} does not know `{}`", self.dialect.program, entry.key);
        self.findings.push(codes::EXTRA_KEY.at(entry.key_span, message).hint("it is passed over"));
        // It says no more about whose file it is than a word that is told.
        self.loose += 1;
    }

    /// What to write for a word for the transport under a key that is not the dialect's; `None` if there is one under
    /// that already.
    fn typed_by(&self, near: &str, entry: &Entry, beside: &[Entry]) -> Option<String> {
        let transports = self.dialect.transports;
        if beside.iter().any(|entry| entry.key == near) {
            return None;
        }
        let word = entry.node.str().ok().filter(|word| transports.iter().all(|(known, _)| known != word));
        let meant = word.and_then(meant).and_then(|meant| transports.iter().find(|(_, transport)| *transport == meant));
        Some(match meant {
            Some((word, _)) => format!("write \"{near}\": \"{word}\""),
            None => did_you_mean(near),
        })
    }

    fn unknown(&mut self, entry: &Entry, beside: &[Entry], keys: &'static [Key]) {
        let (key, program) = (&*entry.key, self.dialect.program);
        if is_note(key) && !self.strict {
            return;
        }
        let names: Vec<_> = keys.iter().map(|key| key.name).filter(|name| *name != key).collect();
        let dials = self.dialect.transports.iter().any(|(_, transport)| *transport != Transport::Stdio);
        if !dials && matches!(key, "url" | "httpUrl" | "serverUrl") {
            let message = format!("{program} starts servers and dials none");
            self.meant = Some((self.findings.len(), &codes::TRANSPORT));
            self.loose += 2;
            self.findings.push(codes::EXTRA_KEY.at(entry.key_span, message).hint(BRIDGE));
            return;
        }
        if let Some(odd) = key.chars().find(|c| is_invisible(*c)) {
            let message = format!("the key has a character that nobody sees (U+{:04X})", u32::from(odd));
            self.findings.push(codes::INVISIBLE.at(entry.key_span, message).hint("type the key anew"));
            return;
        }
        let message = match self.strict {
            true => format!("{program} rejects the file for `{key}`, which it does not know"),
            false => format!("{program} does not know `{key}`"),
        };
        self.unknown += 1;
        let is_for_words = |near: &&str| keys.iter().any(|it| it.name == *near && it.field == Field::Transport);
        let word = entry.node.str().ok().filter(|word| word.len() <= LONGEST_WORD && self.unknown <= MOST_HINTS);
        let likely = match word.and_then(|_| synonym(key, &names)).filter(is_for_words) {
            _ if self.unknown > MOST_HINTS => None,
            Some(near) => self.typed_by(near, entry, beside).map(|hint| (of_name(near, keys), hint)),
            None => self.meant_by(entry, beside, keys, &names),
        };
        let (usual, passed_over) = match self.strict {
            true => (&codes::KEY_REJECTED, "remove it"),
            false => (&codes::UNKNOWN_KEY, "it is passed over"),
        };
        let extra = if self.strict { usual } else { &codes::EXTRA_KEY };
        if let Some((Some(meant), _)) = likely {
            self.keep_in_mind(meant);
        }
        self.findings.push(match likely.map(|(_, hint)| hint) {
            Some(hint) => usual.at(entry.key_span, message).hint(hint),
            None if let Some(near) = self.slip_of_rivals(key) => {
                let message = format!("no program that this file may be for knows `{key}`");
                usual.at(entry.key_span, message).hint(did_you_mean(near))
            }
            None => {
                let is_word = word.is_some_and(|word| synonym(key, &["type"]).is_some() && meant(word).is_some());
                // Who has no key for the transport is no likelier meant than who has another.
                self.loose += u32::from(is_word);
                let other = owner(key).filter(|_| self.unknown <= MOST_HINTS && !self.strict);
                let is_object = matches!(entry.node.value, Value::Mapping(_));
                let takes = |it: &Key| it.name == key && matches!(it.field, Field::Object(_)) == is_object;
                let other = other.filter(|other| !is_word || other.keys.iter().any(takes));
                let hint = other.map(|other| format!("it is a key of {}", other.program));
                extra.at(entry.key_span, message).hint(hint.map_or(passed_over.into(), Cow::from))
            }
        });
    }

    /// Remembers that the next finding is about what may be meant for this key, if a server cannot be without that.
    fn keep_in_mind(&mut self, key: &Key) {
        let (index, strict) = (self.findings.len(), self.strict);
        let code = |usual| if strict { &codes::KEY_REJECTED } else { usual };
        if has_address(key) {
            self.meant = Some((index, code(&codes::MISSING)));
        } else if key.field == Field::Transport {
            self.meant_word = Some((index, code(&codes::TRANSPORT)));
        }
    }

    /// The key of another program that may be meant, for one that nobody has and that is misspelled by a slip.
    fn slip_of_rivals(&self, key: &str) -> Option<&'static str> {
        if self.rivals.is_empty() || self.unknown > MOST_HINTS || owner(key).is_some() {
            return None;
        }
        self.rivals.iter().flat_map(|rival| rival.keys).map(|key| key.name).find(|name| is_slip_of(key, name))
    }

    /// What to write for a key that the dialect does not know, if somebody can have meant one that it does; and that one,
    /// if it is meant by the key alone.
    fn meant_by(&self, entry: &Entry, beside: &[Entry], keys: &'static [Key], names: &[&str]) -> Option<Meant> {
        let key = &*entry.key;
        let same = |near: &str| {
            let near = of_name(near, keys)?;
            Some((Some(near), written_as(near, entry)))
        };
        if let Some(near) = synonym(key, names) {
            return same(near);
        }
        let is_meant = |it: &&Key| it.name == key && it.field != Field::AuthKind;
        let inner = |object: &'static Key| match object.field {
            Field::Object(keys) => keys.iter().find(is_meant).map(|key| (object, key)),
            _ => None,
        };
        if let Some((object, key)) = keys.iter().find_map(inner) {
            return Some((Some(key), format!("put it under `{}`", object.name)));
        }
        let line = keys.iter().find(|key| key.field == Field::CommandLine);
        if let Some(line) = line.filter(|_| synonym(key, &["args"]).is_some()) {
            return Some((None, format!("append them to `{}`", line.name)));
        }
        if let Some(object) = pairs_for(entry, beside, keys) {
            return Some((None, format!("put it under `{}`", object.name)));
        }
        let near = long_word(key).and_then(|word| synonym(word, names)).or_else(|| nearest(key, names));
        near.filter(|_| owner(key).is_none()).and_then(same)
    }

    /// A key for all servers that the dialect does not know.
    pub(super) fn unknown_default(&mut self, entry: &Entry) {
        let of_all = self.dialect.keys.iter().filter(|key| matches!(key.field, Field::Timeout | Field::Debug));
        let names: Vec<_> = of_all.map(|key| key.name).collect();
        let message = format!("{} does not know `{}` for all servers", self.dialect.program, entry.key);
        self.findings.push(match nearest(&entry.key, &names) {
            Some(near) => codes::UNKNOWN_KEY.at(entry.key_span, message).hint(did_you_mean(near)),
            None => codes::EXTRA_KEY.at(entry.key_span, message).hint("it is passed over"),
        });
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
}

/// A key that may be meant, and what to write.
type Meant = (Option<&'static Key>, String);

fn of_name(name: &str, keys: &'static [Key]) -> Option<&'static Key> {
    keys.iter().find(|key| key.name == name)
}

/// Whether a key says where a server is, or something in its object does.
fn has_address(key: &Key) -> bool {
    match key.field {
        Field::Object(keys) => keys.iter().any(is_address),
        _ => is_address(key),
    }
}

/// How to write with a key what stands under another that means nearly the same.
fn written_as(near: &Key, entry: &Entry) -> String {
    let is_off = |key: &str| key.to_ascii_lowercase().starts_with("dis");
    let is_opposite = matches!(near.field, Field::Enabled | Field::Disabled) && is_off(near.name) != is_off(&entry.key);
    match (near.field, entry.node.bool()) {
        (_, Ok(value)) if is_opposite => format!("write \"{}\": {}", near.name, !value),
        _ if is_opposite => format!("write `{}`, which says the opposite", near.name),
        (Field::Trust, Err(_)) => format!("write \"{}\": true if nobody is to be asked about any tool", near.name),
        _ => did_you_mean(near.name),
    }
}

/// The key for variables or headers, if this is one of them that stands beside it.
fn pairs_for(entry: &Entry, beside: &[Entry], keys: &'static [Key]) -> Option<&'static Key> {
    let is_there = |key: &&Key| beside.iter().any(|entry| entry.key == key.name);
    let has = |wanted: fn(&Field) -> bool| keys.iter().filter(|key| wanted(&key.field)).any(|key| is_there(&key));
    let is_of_variable = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let is_variable = entry.key.contains('_') && entry.key.chars().all(is_of_variable);
    let key = entry.key.to_ascii_lowercase();
    let field = match entry.node.str() {
        Ok(_) if is_variable && has(|it| matches!(it, Field::Command | Field::CommandLine)) => Field::Env,
        Ok(_) if (key == "authorization" || key.starts_with("x-")) && has(|it| matches!(it, Field::Url(_))) => {
            Field::Headers
        }
        _ => return None,
    };
    keys.iter().find(|key| key.field == field)
}

/// Whether a word is another with one letter wrong, or two in a long one, but not the first; and no short one.
fn is_slip_of(word: &str, known: &str) -> bool {
    let slips = match known.len() {
        length if length < SLIP_OF.0 => return false,
        length if length < SLIP_OF.1 => 1,
        _ => 2,
    };
    let is_near = word.len().abs_diff(known.len()) <= slips && word.get(..1).is_some_and(|it| known.starts_with(it));
    is_near && strsim::osa_distance(word, known) <= slips
}

pub(super) fn did_you_mean(near: &str) -> String {
    format!("did you mean `{near}`?")
}

pub(super) fn is_address(key: &Key) -> bool {
    matches!(key.field, Field::Command | Field::CommandLine | Field::Url(_))
}

/// The first dialect that has such a key in servers.
fn owner(key: &str) -> Option<&'static Dialect> {
    static OWNERS: LazyLock<HashMap<&str, &Dialect>> = LazyLock::new(|| {
        let keys = ALL.iter().rev().flat_map(|dialect| dialect.keys.iter().map(|key| (key.name, *dialect)));
        keys.collect()
    });
    OWNERS.get(key).copied()
}
