//! Unknown keys: which known one is probably meant.

use super::{
    server::{Reader, RequiredField, is_address, is_url},
    vocabulary::synonym,
};
use crate::{
    codes,
    dialect::{Dialect, Field, Key, all, is_note},
};
use rehearse_document::{Entry, nearest};
use rehearse_protocol::Transport;

/// How a program with only local servers reaches one at a URL.
pub(crate) const BRIDGE: &str =
    "start a bridge: \"command\": \"npx\", \"args\": [\"-y\", \"mcp-remote\", \"https://…\"]";

impl Reader<'_> {
    pub(super) fn unknown(&mut self, entry: &Entry, siblings: &[Entry], keys: &'static [Key]) {
        let (key, program) = (&*entry.key, self.dialect.program);
        if is_note(key) && !self.rejects_unknown_keys || self.is_unsupported && !is_url(entry) {
            return;
        }
        if !self.has_remote() && is_url(entry) {
            let message = format!("{program} supports only stdio servers");
            self.suggested[RequiredField::Address as usize] = Some((self.findings.len(), &codes::TRANSPORT));
            self.findings.push(codes::EXTRA_KEY.at(entry.key_span, message).hint(BRIDGE));
            return;
        }
        let (code, extra, message) = match self.rejects_unknown_keys {
            true => (&codes::KEY_REJECTED, &codes::KEY_REJECTED, format!("unknown key `{key}`: {program} rejects it")),
            false => (&codes::UNKNOWN_KEY, &codes::EXTRA_KEY, format!("unknown key `{key}`")),
        };
        let is_connection = keys.iter().any(|known| known.name == key);
        let suggestion = suggest(key, keys).filter(|near| !is_connection || self.is_new(near, siblings));
        let is_off = match key {
            "disabled" => entry.node.as_bool() == Some(true),
            "enabled" => entry.node.as_bool() == Some(false),
            _ => false,
        };
        let inside = keys.iter().find(|object| match object.field {
            Field::Object(inner) => inner.iter().any(|inner| inner.name == key && inner.field != Field::AuthKind),
            _ => false,
        });
        let has_address = |inner: &Entry| keys.iter().any(|key| key.name == inner.key && is_address(key));
        let is_wrapper = entry.node.as_entries().is_some_and(|inner| inner.iter().any(has_address));
        let line = keys.iter().find(|line| line.field == Field::CommandLine && synonym(key, &["args"]).is_some());
        if is_wrapper {
            let needed = if self.rejects_unknown_keys { code } else { &codes::MISSING };
            self.suggested[RequiredField::Address as usize] = Some((self.findings.len(), needed));
        } else if let Some(required) = suggestion.or(inside) {
            self.record_required(required);
        }
        self.findings.push(if is_wrapper {
            code.at(entry.key_span, message).hint("move what is in it one level up, into the server")
        } else if let Some(near) = suggestion {
            code.at(entry.key_span, message).hint(instead(near, entry))
        } else if let Some(object) = inside {
            code.at(entry.key_span, message).hint(format!("put it under `{}`", object.name))
        } else if let Some(line) = line {
            code.at(entry.key_span, message).hint(format!("append the arguments to `{}`", line.name))
        } else if is_off && !self.rejects_unknown_keys {
            let hint = format!("{program} starts the server anyway: remove the server to switch it off");
            codes::NOT_DISABLED.at(entry.key_span, message).hint(hint)
        } else if self.rejects_unknown_keys {
            extra.at(entry.key_span, message).hint("remove it")
        } else if let Some(owner) = owner(key) {
            extra.at(entry.key_span, message).hint(format!("it is a key of {}; {program} ignores it", owner.program))
        } else {
            extra.at(entry.key_span, message).hint(format!("{program} ignores it"))
        });
    }

    pub(super) fn has_remote(&self) -> bool {
        self.dialect.transports.iter().any(|(_, transport)| *transport != Transport::Stdio)
    }

    /// Whether the server does not have this key already.
    fn is_new(&self, key: &Key, siblings: &[Entry]) -> bool {
        siblings.iter().all(|entry| entry.key != key.name)
    }

    /// Records that the next finding is about the key that probably means a required one.
    fn record_required(&mut self, key: &Key) {
        let has_address = match key.field {
            Field::Object(keys) => keys.iter().any(is_address),
            _ => is_address(key),
        };
        let (field, usual) = match key.field {
            _ if has_address => (RequiredField::Address, &codes::MISSING),
            Field::Transport => (RequiredField::Transport, &codes::TRANSPORT),
            Field::Args => (RequiredField::Arguments, &codes::MISSING),
            _ => return,
        };
        let code = if self.rejects_unknown_keys { &codes::KEY_REJECTED } else { usual };
        self.suggested[field as usize] = Some((self.findings.len(), code));
    }

    /// An unknown key of the values for all servers.
    pub(super) fn unknown_default(&mut self, entry: &Entry) {
        let for_all = self.dialect.keys.iter().filter(|key| matches!(key.field, Field::Timeout | Field::Debug));
        let names: Vec<_> = for_all.map(|key| key.name).collect();
        let message = format!("unknown key `{}` for all servers", entry.key);
        self.findings.push(match nearest(&entry.key, &names) {
            Some(near) => codes::UNKNOWN_KEY.at(entry.key_span, message).hint(did_you_mean(near)),
            None => {
                let finding = codes::EXTRA_KEY.at(entry.key_span, message);
                finding.hint(format!("{} ignores it", self.dialect.program))
            }
        });
    }
}

/// The known key that is probably meant: one with the same meaning, or the nearest if no other program has the key.
fn suggest(word: &str, keys: &'static [Key]) -> Option<&'static Key> {
    let names: Vec<_> = keys.iter().map(|key| key.name).filter(|name| *name != word).collect();
    let near = synonym(word, &names).or_else(|| nearest(word, &names).filter(|_| owner(word).is_none()))?;
    keys.iter().find(|key| key.name == near)
}

/// What to write for a key that means nearly the same.
fn instead(near: &Key, entry: &Entry) -> String {
    let is_off = |key: &str| key.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case("dis"));
    match entry.node.as_bool() {
        Some(value)
            if matches!(near.field, Field::Enabled | Field::Disabled) && is_off(near.name) != is_off(&entry.key) =>
        {
            format!("write \"{}\": {}", near.name, !value)
        }
        _ if entry.key.trim() == near.name => format!("write `{}` without the space", near.name),
        _ => did_you_mean(near.name),
    }
}

pub(super) fn did_you_mean(near: &str) -> String {
    format!("did you mean `{near}`?")
}

/// The first dialect that has such a key in servers.
fn owner(key: &str) -> Option<&'static Dialect> {
    all().find(|dialect| dialect.keys.iter().any(|it| it.name == key))
}
