//! How a server is reached: its transport, and what is missing for that.

use super::{
    server::{KnownEntry, Reader, RequiredField, is_address},
    unknown::BRIDGE,
    vocabulary::transport_word,
};
use crate::{
    At, ConfiguredServer, codes,
    dialect::{AppliesTo, CommandAndUrl, Field, Key, MissingType},
};
use rehearse_document::{Entry, Node, nearest};
use rehearse_protocol::Transport;
use rehearse_report::findings::Finding;

/// The longest word for a transport that is quoted: a longer one may be anything, also a secret.
const LONGEST_WORD: usize = 16;

/// How a server is reached.
pub(super) enum Target {
    By(At<Transport>),
    /// It is reported why.
    Unknown,
    DefinedElsewhere,
}

impl Reader<'_> {
    /// The transport, from the word for it or from the other keys.
    pub(super) fn transport(&mut self, name: &At<String>, keys: &[KnownEntry<'_>]) -> Target {
        let find = |wanted: fn(&Field) -> bool| keys.iter().find(|(key, _)| wanted(&key.field));
        let command = find(|field| matches!(field, Field::Command | Field::CommandLine));
        let url = find(|field| matches!(field, Field::Url(_)));
        if let (Some((command, _)), Some((url_key, entry)), CommandAndUrl::Rejected) =
            (command, url, self.dialect.when_both_given)
        {
            let message =
                format!("`{}` beside `{}`: {} rejects both", url_key.name, command.name, self.dialect.program);
            self.findings.push(codes::FORBIDDEN.at(entry.key_span, message).hint("keep one of them"));
            return Target::Unknown;
        }
        let is_absent = |entry: &Entry| self.dialect.empty_type_is_absent && entry.node.as_str() == Some("");
        let kind = find(|field| *field == Field::Transport).filter(|(_, entry)| !is_absent(entry));
        // A word that is replaced later says nothing.
        let is_open = kind.is_some_and(|(_, entry)| self.dialect.is_unresolved(&entry.node));
        if let Some((key, entry)) = kind.filter(|_| !is_open) {
            if entry.node.as_str().is_some_and(|word| self.dialect.elsewhere_word == Some(word)) {
                return Target::DefinedElsewhere;
            }
            let url_text = url.and_then(|(_, url)| url.node.as_str()).unwrap_or_default();
            match self.named_transport(key, &entry.node, url_text) {
                None if self.dialect.ignores_unknown_transport && entry.node.as_str().is_some() => {}
                // The program only distinguishes local from remote.
                Some(At { value: Transport::Sse, .. }) if self.dialect.ignores_unknown_transport && url.is_none() => {}
                None => return Target::Unknown,
                Some(named) => return self.consistent(named, entry, command, url),
            }
        }
        let is_elsewhere = || !keys.is_empty() && keys.iter().all(|(key, _)| key.applies_to == AppliesTo::All);
        if self.dialect.allows_partial_server && command.is_none() && url.is_none() && is_elsewhere() {
            return Target::DefinedElsewhere;
        }
        if self.when_type_missing == MissingType::Rejected && !is_open {
            let message = format!("the server `{}` needs a `type`", name.value);
            let usual = match (command, url) {
                (None, None) => None,
                _ => self.usual_word(command.is_some(), url),
            };
            let hint = match usual {
                Some(word) => format!("add \"type\": \"{word}\""),
                None => format!("one of {}", self.dialect.words().join(", ")),
            };
            self.missing(RequiredField::Transport, codes::TRANSPORT.at(name.span, message).hint(hint));
            return Target::Unknown;
        }
        let by_url = |key: &Key| match (key.field, self.when_type_missing) {
            (Field::Url(Some(transport)), _) | (_, MissingType::Inferred(transport)) => Some(transport),
            (_, MissingType::Process | MissingType::Rejected) => {
                let mut remote = self.dialect.transports.iter().map(|(_, it)| *it).filter(|it| *it != Transport::Stdio);
                remote.next().filter(|_| is_open)
            }
        };
        match (command, url) {
            (Some((_, entry)), url) if url.is_none() || self.dialect.when_both_given != CommandAndUrl::Remote => {
                Target::By(At { value: Transport::Stdio, span: entry.key_span })
            }
            (_, Some((key, entry))) => {
                let is_socket =
                    entry.node.as_str().is_some_and(|url| url.starts_with("ws://") || url.starts_with("wss://"));
                let transport = by_url(key).map(|transport| if is_socket { Transport::Ws } else { transport });
                let Some(transport) = transport else {
                    let words = self.dialect.words();
                    let remote: Vec<_> = words.into_iter().filter(|word| *word != "stdio").collect();
                    let message =
                        format!("`{}` without `type`: {} does not connect to it", key.name, self.dialect.program);
                    let hint = match remote[..] {
                        [] => BRIDGE.to_owned(),
                        _ => format!("add \"type\": \"{}\"", remote[0]),
                    };
                    self.missing(RequiredField::Transport, codes::TRANSPORT.at(entry.key_span, message).hint(hint));
                    return Target::Unknown;
                };
                if transport == Transport::Sse {
                    self.check_sse(key, entry);
                }
                Target::By(At { value: transport, span: entry.key_span })
            }
            _ => {
                let keys = self.dialect.keys.iter().filter(|key| is_address(key));
                let names: Vec<_> = keys.map(|key| format!("`{}`", key.name)).collect();
                let message = format!("the server `{}` needs {}", name.value, names.join(" or "));
                let hint = if names.len() == 1 { "add it" } else { "add one of them" };
                self.missing(RequiredField::Address, codes::MISSING.at(name.span, message).hint(hint));
                Target::Unknown
            }
        }
    }

    /// Reports the URL of a server without `type` that is taken for HTTP+SSE, if it looks like one for Streamable HTTP.
    fn check_sse(&mut self, key: &Key, entry: &Entry) {
        let url = entry.node.as_str().unwrap_or_default().to_ascii_lowercase();
        let path = url.split(['?', '#']).next().unwrap_or_default().splitn(4, '/').nth(3).unwrap_or_default();
        let has = |words: &[&str]| path.split('/').any(|part| words.contains(&part));
        if !has(&["mcp", "streamable", "streamable-http", "streamablehttp"]) || has(&["sse", "events"]) {
            return;
        }
        let dialect = self.dialect;
        let other = dialect.keys.iter().find(|it| it.field == Field::Url(Some(Transport::Http)));
        let says = dialect.keys.iter().find(|it| it.field == Field::Transport);
        let word = dialect.transports.iter().find(|(_, transport)| *transport == Transport::Http).map(|it| it.0);
        let hint = match (other, says.zip(word)) {
            (Some(other), _) => format!("write it as `{}`", other.name),
            (None, Some((says, word))) => format!("add \"{}\": \"{word}\"", says.name),
            (None, None) => return,
        };
        let message =
            format!("`{}` alone is HTTP+SSE in {}, and this URL looks like Streamable HTTP", key.name, dialect.program);
        self.findings.push(codes::URL_TRANSPORT.at(entry.key_span, message).hint(hint));
    }

    /// Reports what is missing, at the key that probably means it if there is one.
    fn missing(&mut self, need: RequiredField, finding: Finding) {
        match self.suggested[need as usize] {
            Some((index, code)) => self.findings[index].code = code,
            None => self.findings.push(finding),
        }
    }

    /// The most likely word for the transport of a server with this command or URL.
    pub(super) fn usual_word(&self, is_process: bool, url: Option<&KnownEntry<'_>>) -> Option<&'static str> {
        let text = url.and_then(|(_, url)| url.node.as_str()).unwrap_or_default();
        let (is_sse, is_socket) = (text.ends_with("/sse"), text.starts_with("ws"));
        let usual = match is_process {
            true => Transport::Stdio,
            false if is_socket => Transport::Ws,
            false if is_sse => Transport::Sse,
            false => Transport::Http,
        };
        let fitting = self.dialect.transports.iter().filter(|(_, it)| (*it == Transport::Stdio) == is_process);
        fitting.min_by_key(|(_, it)| (*it != usual, (*it == Transport::Ws) != is_socket)).map(|(word, _)| *word)
    }

    /// The transport of a word, unless there is only the address of another.
    fn consistent(
        &mut self,
        named: At<Transport>,
        word: &Entry,
        command: Option<&KnownEntry<'_>>,
        url: Option<&KnownEntry<'_>>,
    ) -> Target {
        let is_process = named.value == Transport::Stdio;
        let (own, other) = if is_process { (command, url) } else { (url, command) };
        let (None, Some((other, _))) = (own, other) else { return Target::By(named) };
        let what = if is_process { "`command`" } else { "a URL" };
        let message = format!("`{}` needs {what}, but there is only `{}`", word.key, other.name);
        let hint = self.usual_word(!is_process, url).map_or("remove it".into(), |word| format!("write \"{word}\""));
        self.findings.push(codes::TRANSPORT.at(word.node.span, message).hint(hint));
        Target::Unknown
    }

    /// The transport of that word. If several have it, an HTTP URL decides.
    fn named_transport(&mut self, key: &Key, node: &Node, url: &str) -> Option<At<Transport>> {
        let Some(word) = node.as_str() else {
            self.wrong_type(key.name, node, "a string");
            return None;
        };
        let mut named = self.dialect.transports.iter().filter(|(known, _)| *known == word).map(|(_, it)| it);
        let first = named.next();
        if let Some(transport) = named.find(|it| is_http(url) && **it == Transport::Http).or(first) {
            return Some(At { value: *transport, span: node.span });
        }
        let words = self.dialect.words();
        let message = match word.len() <= LONGEST_WORD {
            true => format!("{} has no transport `{word}`", self.dialect.program),
            false => format!("{} has no such transport", self.dialect.program),
        };
        let meant = match transport_word(word) {
            Some(Transport::Http) if url.ends_with("/sse") => Some(Transport::Sse),
            meant => meant,
        };
        let same = meant.and_then(|meant| self.dialect.transports.iter().find(|(_, transport)| *transport == meant));
        // If a program has two keys for it, only the first is strict.
        let is_first = self.dialect.keys.iter().find(|key| key.field == Field::Transport) == Some(key);
        if let Some((_, transport)) = same.filter(|_| !is_first) {
            return Some(At { value: *transport, span: node.span });
        }
        let finding = match self.dialect.ignores_unknown_transport {
            true => codes::TRANSPORT_GUESSED.at(node.span, format!("{message}, and guesses it from the other keys")),
            false => codes::TRANSPORT.at(node.span, message),
        };
        let near = same.map(|(known, _)| *known).or_else(|| nearest(word, &words));
        self.findings.push(match near {
            Some(known) => finding.hint(format!("write `{known}`")),
            None => finding.hint(format!("one of {}", words.join(", "))),
        });
        None
    }

    /// Reports what a server of its transport lacks.
    pub(super) fn check_complete(&mut self, server: &ConfiguredServer, keys: &[KnownEntry<'_>]) {
        let transport = server.transport.value;
        let is_process = transport == Transport::Stdio;
        let is_address = |field: &Field| match field {
            Field::Command | Field::CommandLine => is_process,
            Field::Url(_) => !is_process,
            _ => false,
        };
        let nested = self.dialect.keys.iter().flat_map(|key| match key.field {
            Field::Object(keys) => keys,
            _ => &[],
        });
        let every_key = self.dialect.keys.iter().chain(nested).filter(|key| is_address(&key.field));
        let address = every_key.min_by_key(|key| key.field != Field::Url(Some(transport))).map(|key| key.name);
        if let Some((key, entry)) = keys.iter().find(|(key, _)| key.field == Field::CommandLine)
            && entry.node.as_items().is_some_and(<[Node]>::is_empty)
        {
            let finding = codes::MISSING.at(entry.node.span, format!("`{}` is empty", key.name));
            self.findings.push(finding.hint("name the program to start"));
        }
        let besides = if is_process { self.dialect.required_keys } else { &[] };
        for key in address.iter().chain(besides) {
            let is_meant = |field| address == Some(*key) && is_address(field);
            if keys.iter().any(|(it, _)| it.name == *key || is_meant(&it.field)) {
                continue;
            }
            let (need, hint) = match (*key, is_process) {
                ("args", _) => (RequiredField::Arguments, "write `args: []` if there are none".into()),
                (_, true) => (RequiredField::Address, "name the program to start".into()),
                (_, false) => (RequiredField::Address, format!("add \"{key}\": \"https://…\"")),
            };
            let message = format!("the server `{}` needs `{key}`", server.name.value);
            self.missing(need, codes::MISSING.at(server.name.span, message).hint(hint));
        }
    }
}

/// The most likely transport of a server that cannot be reached.
pub(super) fn likely_transport(keys: &[KnownEntry<'_>]) -> Transport {
    let url = keys.iter().find(|(key, _)| matches!(key.field, Field::Url(_))).and_then(|(_, url)| url.node.as_str());
    match url {
        _ if keys.iter().any(|(key, _)| matches!(key.field, Field::Command | Field::CommandLine)) => Transport::Stdio,
        None => Transport::Stdio,
        Some(url) if url.starts_with("ws") => Transport::Ws,
        Some(_) => Transport::Http,
    }
}

fn is_http(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| ["http", "https"].iter().any(|http| scheme.eq_ignore_ascii_case(http)))
}
