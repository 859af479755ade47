//! Keys that a program does not know: what can be meant by them, and what to write instead.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use super::{
    server::{LONGEST_WORD, Need, Reader, is_address, is_url},
    word::{is_note, long_word, meant, synonym},
};
use crate::{
    config::{
        Entry, Span, Value,
        dialect::{ALL, Dialect, Field, Key, Untyped},
        finding::codes,
        json::is_invisible,
        nearest,
        secret::mask,
    },
    transport::Transport,
};

/// A longer URL is not written anew in a hint.
const LONGEST_URL: usize = 120;

/// For more unknown keys of one server nobody looks for what was meant: every one of them takes a while.
const MOST_HINTS: usize = 20;

/// A shorter key that is nobody's may be any word; in a key of so many letters as the second, two may be wrong.
const SLIP_OF: (usize, usize) = (5, 10);

/// How a program that only starts servers reaches one at a URL.
pub(in crate::config) const BRIDGE: &str =
    "start one that dials: \"command\": \"npx\", \"args\": [\"-y\", \"mcp-remote\", \"https://…\"]";

/// What to say of a colon of YAML that no blank is after.
pub(super) const GLUED: (&str, &str) =
    ("without a blank after it, this `:` and what follows is a part of the key", "put a blank after the `:`");

/// [`BRIDGE`] to this URL, with what is said of its headers.
fn bridge_to(url: &Entry, beside: &[Entry]) -> String {
    let is_short = |url: &&str| url.len() <= LONGEST_URL && url.starts_with("http") && mask("", url) == **url;
    let bridge = match url.node.as_str().filter(is_short) {
        Some(url) => BRIDGE.replace("https://…", url),
        None => BRIDGE.to_owned(),
    };
    match beside.iter().any(|entry| entry.key == "headers") {
        true => format!("{bridge}; each header becomes \"--header\", \"NAME: value\" behind it"),
        false => bridge,
    }
}

/// What was found for keys of some object. Servers have the same keys again and again.
pub(super) type Meanings<'n> = HashMap<(&'n str, *const Key), Meaning>;

/// What can be meant by a key that the dialect does not know, whatever its value is.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// This, which is called otherwise elsewhere.
    Same(&'static Key),
    /// The second, in the object under the first.
    Within(&'static Key, &'static Key),
    /// Arguments for this.
    Appended(&'static Key),
    /// This, with a slip.
    Misspelt(&'static Key),
    Nothing,
}

impl Meaning {
    fn of(word: &str, keys: &'static [Key]) -> Meaning {
        let names: Vec<_> = keys.iter().map(|key| key.name).filter(|name| *name != word).collect();
        let key_of = |name: &str| keys.iter().find(|key| key.name == name);
        let is_meant = |it: &&Key| it.name == word && it.field != Field::AuthKind;
        let within = |object: &'static Key| match object.field {
            Field::Object(keys) => keys.iter().find(is_meant).map(|key| Meaning::Within(object, key)),
            _ => None,
        };
        let appended = || {
            let line = keys.iter().find(|key| key.field == Field::CommandLine)?;
            synonym(word, &["args"]).map(|_| Meaning::Appended(line))
        };
        let misspelt = || {
            let near = long_word(word).and_then(|word| synonym(word, &names)).or_else(|| nearest(word, &names));
            near.filter(|_| owner(word).is_none()).and_then(key_of).map(Meaning::Misspelt)
        };
        let same = synonym(word, &names).and_then(key_of).map(Meaning::Same);
        let meaning = same.or_else(|| keys.iter().find_map(within)).or_else(appended).or_else(misspelt);
        meaning.unwrap_or(Meaning::Nothing)
    }
}

impl<'a> Reader<'a> {
    /// What is no object where the program has one for the connection: it passes that over, and other programs have the
    /// word for the transport there.
    pub(super) fn unknown_word(&mut self, entry: &'a Entry, beside: &[Entry], keys: &'static [Key]) {
        let has = |key: &str| beside.iter().any(|entry| entry.key == key);
        let taken_for = match self.untyped {
            _ if has("command") => Some(Transport::Stdio),
            Untyped::Inferred(transport) => Some(transport),
            Untyped::Process | Untyped::Rejected => None,
        };
        let word = entry.node.as_str().and_then(meant);
        if word.is_none() || word != taken_for {
            return self.unknown(entry, beside, keys);
        }
        let message = format!("{} does not know `{}`", self.dialect.program, entry.key);
        self.findings.push(codes::EXTRA_KEY.at(entry.key_span, message).hint("it is passed over"));
        // It says no more about whose file it is than a word that is told.
        self.loose += 1;
    }

    pub(super) fn unknown(&mut self, entry: &'a Entry, beside: &[Entry], keys: &'static [Key]) {
        let (key, program) = (&*entry.key, self.dialect.program);
        if is_note(key) && !self.strict {
            return;
        }
        if self.is_out_of_reach && !is_url(entry) {
            // It belongs to the URL, which is told.
            return;
        }
        if !self.dials() && is_url(entry) {
            let message = format!("{program} starts servers and dials none");
            self.meant[Need::Address as usize] = Some((self.findings.len(), &codes::TRANSPORT));
            self.loose += 2;
            self.findings.push(codes::EXTRA_KEY.at(entry.key_span, message).hint(bridge_to(entry, beside)));
            return;
        }
        if let Some(odd) = key.chars().find(|c| is_invisible(*c)) {
            let seen: String = key.chars().filter(|c| !is_invisible(*c)).collect();
            if let Some(meant) = keys.iter().find(|key| key.name == seen) {
                self.keep_in_mind(meant);
            }
            let message = format!("the key has a character that nobody sees (U+{:04X})", u32::from(odd));
            self.findings.push(codes::INVISIBLE.at(entry.key_span, message).hint("type the key anew"));
            return;
        }
        if let Some((colon, before)) = self.glued(entry)
            && let Some(meant) = keys.iter().find(|key| key.name == before)
        {
            self.keep_in_mind(meant);
            let code = if self.strict { &codes::KEY_REJECTED } else { &codes::YAML_FORM };
            self.findings.push(code.at(colon, GLUED.0).hint(GLUED.1));
            return;
        }
        let message = match self.strict {
            true => format!("{program} rejects the file for `{key}`, which it does not know"),
            false => format!("{program} does not know `{key}`"),
        };
        self.unknown += 1;
        let is_looked_for = self.unknown <= MOST_HINTS;
        let likely = if is_looked_for { self.meant_by(entry, beside, keys) } else { None };
        let (usual, passed_over) = match self.strict {
            true => (&codes::KEY_REJECTED, "remove it"),
            false => (&codes::UNKNOWN_KEY, "it is passed over"),
        };
        let extra = if self.strict { usual } else { &codes::EXTRA_KEY };
        if let Some((Some(meant), _)) = likely {
            self.keep_in_mind(meant);
        }
        let lets_nothing = |meant: &Key| matches!(meant.field, Field::Trust | Field::AlwaysAllow | Field::Exclude);
        let is_moot = matches!(likely, Some((Some(meant), _)) if lets_nothing(meant))
            && entry.node.as_items().is_some_and(<[_]>::is_empty);
        self.findings.push(match likely.map(|(_, hint)| hint) {
            Some(_) if is_moot => extra.at(entry.key_span, message).hint(passed_over),
            None if self.is_switched_off(entry) => usual
                .at(entry.key_span, message)
                .hint(format!("remove the server, which {program} starts all the same")),
            Some(hint) => usual.at(entry.key_span, message).hint(hint),
            None if !is_looked_for => extra.at(entry.key_span, message).hint(passed_over),
            None if let Some(near) = self.slip_of_rivals(key) => {
                let message = format!("no program that this file may be for knows `{key}`");
                usual.at(entry.key_span, message).hint(did_you_mean(near))
            }
            None => {
                let names_transport = |word: &str| synonym(key, &["type"]).is_some() && meant(word).is_some();
                let is_word = word_of(entry).is_some_and(names_transport);
                // Who has no key for the transport is no likelier meant than who has another.
                self.loose += u32::from(is_word);
                let is_object = matches!(entry.node.value, Value::Mapping(_));
                let takes = |it: &Key| it.name == key && matches!(it.field, Field::Object(_)) == is_object;
                let other = owner(key).filter(|other| !self.strict && (!is_word || other.keys.iter().any(takes)));
                let hint = other.map(|other| format!("it is a key of {}", other.program));
                extra.at(entry.key_span, message).hint(hint.map_or(passed_over.into(), Cow::from))
            }
        });
    }

    pub(super) fn dials(&self) -> bool {
        self.dialect.transports.iter().any(|(_, transport)| *transport != Transport::Stdio)
    }

    /// Whether this should switch the server off, in a program that has no key for that.
    fn is_switched_off(&self, entry: &Entry) -> bool {
        let is_off = match &*entry.key {
            "disabled" => entry.node.as_bool() == Some(true),
            "enabled" => entry.node.as_bool() == Some(false),
            _ => false,
        };
        is_off && !self.strict
    }

    /// The colon in a key of YAML that has no value, and the key before it.
    pub(super) fn glued<'e>(&self, entry: &'e Entry) -> Option<(Span, &'e str)> {
        let Entry { key, key_span: Span { start, end }, node } = entry;
        let is_absent = node.is_null() && node.span.start == node.span.end;
        let (before, after) = key.split_once(':').filter(|_| is_absent)?;
        let is_bare = self.source.text.get(*start..*end) == Some(key);
        let colon = Span { start: start + before.len(), end: start + before.len() + 1 };
        (is_bare && !after.is_empty()).then_some((colon, before))
    }

    /// What to write for a key that the dialect does not know, if somebody can have meant one that it does; and that one,
    /// if it is meant by the key alone.
    fn meant_by(&mut self, entry: &'a Entry, beside: &[Entry], keys: &'static [Key]) -> Option<Meant> {
        let meaning = self.meanings.entry((&entry.key, keys.as_ptr()));
        let is_for_words = |near: &Key| keys.iter().any(|it| it.name == near.name && it.field == Field::Transport);
        let meaning = *meaning.or_insert_with(|| Meaning::of(&entry.key, keys));
        let is_for_object = matches!(meaning, Meaning::Same(Key { field: Field::Object(_), .. }));
        match meaning {
            _ if !is_for_object && let Some(address) = address_in(entry, keys) => {
                let is_reached = |entry: &Entry| keys.iter().any(|key| key.name == entry.key && is_address(key));
                Some(match beside.iter().any(is_reached) {
                    true => (None, "this is a server of its own: move it one level up, beside the others".to_owned()),
                    false => (Some(address), format!("move what is in it one level up, and remove `{}`", entry.key)),
                })
            }
            Meaning::Same(near) if word_of(entry).is_some() && is_for_words(near) => {
                self.typed_by(near.name, entry, beside).map(|hint| (Some(near), hint))
            }
            Meaning::Same(near) => {
                Some((Some(near), self.typed_url(near, beside, keys).unwrap_or(written_as(near, entry))))
            }
            Meaning::Within(object, key) => Some((Some(key), format!("put it under `{}`", object.name))),
            Meaning::Appended(line) => Some((None, format!("append them to `{}`", line.name))),
            _ if let Some(object) = pairs_for(entry, beside, keys) => {
                Some((None, format!("put it under `{}`", object.name)))
            }
            Meaning::Misspelt(near) => Some((Some(near), written_as(near, entry))),
            Meaning::Nothing => None,
        }
    }

    /// What to write for a key of another program for the URL, where the transport must be said and is not.
    fn typed_url(&self, near: &Key, beside: &[Entry], keys: &[Key]) -> Option<String> {
        let kind = keys.iter().find(|key| key.field == Field::Transport)?;
        let is_said = beside.iter().any(|entry| entry.key == kind.name);
        let is_needed = matches!(near.field, Field::Url(None)) && !matches!(self.untyped, Untyped::Inferred(_));
        let word = self.usual_word(false, None).filter(|_| is_needed && !is_said)?;
        Some(format!("write `{}`, and beside it \"{}\": \"{word}\"", near.name, kind.name))
    }

    /// What to write for a word for the transport under a key that is not the dialect's; `None` if there is one under
    /// that already.
    fn typed_by(&self, near: &str, entry: &Entry, beside: &[Entry]) -> Option<String> {
        let transports = self.dialect.transports;
        if beside.iter().any(|entry| entry.key == near) {
            return None;
        }
        let word = entry.node.as_str().filter(|word| transports.iter().all(|(known, _)| known != word));
        let meant = word.and_then(meant).and_then(|meant| transports.iter().find(|(_, transport)| *transport == meant));
        Some(match meant {
            Some((word, _)) => format!("write \"{near}\": \"{word}\""),
            None => did_you_mean(near),
        })
    }

    /// Remembers that the next finding is about what may be meant for this key, if a server cannot be without that.
    fn keep_in_mind(&mut self, key: &Key) {
        let (need, usual) = match key.field {
            _ if has_address(key) => (Need::Address, &codes::MISSING),
            Field::Transport => (Need::Transport, &codes::TRANSPORT),
            Field::Args => (Need::Arguments, &codes::MISSING),
            _ => return,
        };
        let code = if self.strict { &codes::KEY_REJECTED } else { usual };
        self.meant[need as usize] = Some((self.findings.len(), code));
    }

    /// The key of another program that may be meant, for one that nobody has and that is misspelled by a slip.
    fn slip_of_rivals(&self, key: &str) -> Option<&'static str> {
        if self.rivals.is_empty() || owner(key).is_some() {
            return None;
        }
        self.rivals.iter().flat_map(|rival| rival.keys).map(|key| key.name).find(|name| is_slip_of(key, name))
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
}

/// A key that may be meant, and what to write.
type Meant = (Option<&'static Key>, String);

/// The value, if it may be a word for a transport.
fn word_of(entry: &Entry) -> Option<&str> {
    entry.node.as_str().filter(|word| word.len() <= LONGEST_WORD)
}

/// The key for an address in an object that stands where its keys should.
fn address_in(entry: &Entry, keys: &'static [Key]) -> Option<&'static Key> {
    let inner = entry.node.as_entries()?;
    inner.iter().find_map(|entry| keys.iter().find(|key| key.name == entry.key && is_address(key)))
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
    let is_off = |key: &str| key.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case("dis"));
    let is_opposite = matches!(near.field, Field::Enabled | Field::Disabled) && is_off(near.name) != is_off(&entry.key);
    match (near.field, entry.node.as_bool()) {
        (_, Some(value)) if is_opposite => format!("write \"{}\": {}", near.name, !value),
        _ if is_opposite => format!("write `{}`, which says the opposite", near.name),
        (Field::Trust, None) => format!("write \"{}\": true if nobody is to be asked about any tool", near.name),
        _ => did_you_mean(near.name),
    }
}

/// The key for variables or headers, if this is one of them that stands beside it.
fn pairs_for(entry: &Entry, beside: &[Entry], keys: &'static [Key]) -> Option<&'static Key> {
    entry.node.as_str()?;
    let is_there = |key: &&Key| beside.iter().any(|entry| entry.key == key.name);
    let has = |wanted: fn(&Field) -> bool| keys.iter().filter(|key| wanted(&key.field)).any(|key| is_there(&key));
    let is_of_variable = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let is_variable = entry.key.contains('_') && entry.key.chars().all(is_of_variable);
    let begins_with = |begin: &str| entry.key.get(..begin.len()).is_some_and(|it| it.eq_ignore_ascii_case(begin));
    let is_header = entry.key.eq_ignore_ascii_case("authorization") || begins_with("x-");
    let field = match () {
        () if is_variable && has(|it| matches!(it, Field::Command | Field::CommandLine)) => Field::Env,
        () if is_header && has(|it| matches!(it, Field::Url(_))) => Field::Headers,
        () => return None,
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

/// The first dialect that has such a key in servers.
fn owner(key: &str) -> Option<&'static Dialect> {
    static OWNERS: LazyLock<HashMap<&str, &Dialect>> = LazyLock::new(|| {
        let keys = ALL.iter().rev().flat_map(|dialect| dialect.keys.iter().map(|key| (key.name, *dialect)));
        keys.collect()
    });
    OWNERS.get(key).copied()
}
