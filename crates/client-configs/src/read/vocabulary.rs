//! Words that people use for keys and transports of other programs.

use crate::dialect::{Field, all};
use rehearse_document::nearest;
use rehearse_protocol::Transport;

/// Words for a key, and the keys of programs that mean the same.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("environment environ envs envvars variables environmentvariables", &["env"]),
    ("env", &["environment"]),
    ("args arguments arg params parameters", &["args"]),
    ("cmd exec executable program run", &["command"]),
    ("url endpoint uri httpurl serverurl baseurl address href", &["url", "serverUrl", "httpUrl"]),
    ("headers header httpheaders", &["headers", "http_headers"]),
    ("type transporttype transport kind protocol", &["type", "transport"]),
    ("workingdirectory workingdir workdir dir", &["cwd"]),
    ("autoapprove alwaysallow autoallow", &["alwaysAllow", "autoApprove", "trust"]),
    ("enabled active isactive", &["enabled", "disabled"]),
    ("disabled", &["disabled", "enabled"]),
    ("envfile dotenv", &["envFile"]),
    ("timeout timeoutms timeoutseconds requesttimeout", &["timeout", "connectionTimeout", "tool_timeout_sec"]),
    ("excludetools disabledtools disallowedtools blocklist", &["disabledTools", "excludeTools"]),
    ("includetools enabledtools allowedtools allowlist", &["enabledTools", "includeTools"]),
];

/// What a key means that says which servers or tools are on, for some program or for people.
pub(crate) fn switch(key: &str) -> Option<Field> {
    match fields(key).next() {
        Some(_) => fields(key).find(|field| field.is_switch()),
        None => {
            let word = synonym(key, &["enabled", "disabled", "enabledTools", "disabledTools"])?;
            fields(word).find(|field| field.is_switch())
        }
    }
}

/// What a key of a server means for each program that has it.
fn fields(key: &str) -> impl Iterator<Item = Field> {
    let keys = all().flat_map(|dialect| dialect.keys);
    keys.filter(move |it| it.name == key).map(|it| it.field)
}

/// A misspelled synonym has at least this many letters.
const LONG: usize = 7;

/// The key with the same meaning that this dialect has.
pub(super) fn synonym<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let word: String = letters(key).collect();
    if let Some(same) = known.iter().find(|known| letters(known).eq(word.chars())) {
        return Some(same);
    }
    let has = |words: &str, word: &str| words.split(' ').any(|it| it == word);
    let meant = SYNONYMS.iter().find(|(words, _)| has(words, &word)).or_else(|| {
        let words: Vec<_> =
            SYNONYMS.iter().flat_map(|(words, _)| words.split(' ')).filter(|it| it.len() >= LONG).collect();
        let near = nearest(&word, &words).filter(|_| word.len() >= LONG)?;
        SYNONYMS.iter().find(|(words, _)| has(words, near))
    });
    let (_, meant) = meant?;
    meant.iter().find_map(|meant| known.iter().copied().find(|known| known == meant))
}

/// The small letters of a key, without what separates its words.
fn letters(key: &str) -> impl Iterator<Item = char> {
    key.chars().filter(|c| !matches!(c, '_' | '-') && !c.is_whitespace()).flat_map(char::to_lowercase)
}

/// The transport that a word of some program names.
pub(super) fn transport_word(word: &str) -> Option<Transport> {
    Some(match word.to_lowercase().replace(['-', '_', ' '], "").as_str() {
        "stdio" | "local" | "command" | "process" => Transport::Stdio,
        "http" | "https" | "streamable" | "streamablehttp" | "remote" => Transport::Http,
        "sse" | "httpsse" | "eventstream" => Transport::Sse,
        "ws" | "wss" | "websocket" => Transport::Ws,
        _ => return None,
    })
}
