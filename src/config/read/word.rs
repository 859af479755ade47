//! Words that people use for what a dialect calls otherwise.

use crate::transport::Transport;

/// Keys that people add for themselves, and that nobody minds.
pub(in crate::config) const NOTES: &[&str] =
    &["$schema", "description", "category", "maintainer", "comment", "comments", "note", "notes", "name"];

/// Whether people add such a key for themselves.
pub(in crate::config) fn is_note(key: &str) -> bool {
    NOTES.contains(&key) || key.starts_with(['_', '/', '#'])
}

/// Long words that people use for keys, and may misspell.
const LONG_WORDS: &[&str] =
    &["environment", "variables", "arguments", "parameters", "executable", "endpoint", "transport", "protocol"];

/// The long word that somebody may have misspelled with a slip or two.
pub(super) fn long_word(key: &str) -> Option<&'static str> {
    // Hardly anybody mistypes the first letter, and to measure every word takes a while.
    let may_be = |word: &&str| {
        word.len().abs_diff(key.len()) <= 2
            && word.get(..1).zip(key.get(..1)).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b))
    };
    let is_alike = |word: &&str| strsim::osa_distance(word, &key.to_ascii_lowercase()) <= 2;
    LONG_WORDS.iter().copied().filter(may_be).find(is_alike)
}

/// What people call the same thing elsewhere, if this dialect has it.
pub(super) fn synonym<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let word: String = letters(key).collect();
    if let Some(same) = known.iter().find(|known| letters(known).eq(word.chars())) {
        return Some(same);
    }
    let meant: &[&str] = match word.as_str() {
        "environment" | "environ" | "envs" | "envvars" | "variables" | "environmentvariables" => &["env"],
        "env" => &["environment"],
        "args" | "arguments" | "arg" | "params" | "parameters" => &["args"],
        "cmd" | "exec" | "executable" | "program" | "run" => &["command"],
        "endpoint" | "uri" | "httpurl" | "serverurl" | "baseurl" | "address" | "href" => {
            &["url", "serverUrl", "httpUrl"]
        }
        "header" | "httpheaders" => &["headers"],
        "type" | "transporttype" | "transport" | "kind" | "protocol" => &["type", "transport"],
        "workingdirectory" | "workingdir" | "workdir" | "dir" => &["cwd"],
        "autoapprove" | "alwaysallow" | "autoallow" => &["alwaysAllow", "autoApprove", "trust"],
        "enabled" | "active" => &["enabled", "disabled"],
        "disabled" => &["disabled", "enabled"],
        "envfile" | "dotenv" => &["envFile"],
        "timeout" | "timeoutms" | "timeoutseconds" | "requesttimeout" => &["timeout", "connectionTimeout"],
        "excludetools" | "disabledtools" | "disallowedtools" | "blocklist" => &["disabledTools", "excludeTools"],
        "includetools" | "enabledtools" | "allowedtools" | "allowlist" => &["enabledTools", "includeTools"],
        _ => &[],
    };
    meant.iter().find_map(|meant| known.iter().copied().find(|known| known == meant))
}

/// A key as it is in small letters, without what parts its words.
fn letters(key: &str) -> impl Iterator<Item = char> {
    key.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase)
}

/// The transport that somebody means by a word of another dialect.
pub(super) fn meant(word: &str) -> Option<Transport> {
    Some(match word.to_lowercase().replace(['-', '_', ' '], "").as_str() {
        "stdio" | "local" | "command" | "process" => Transport::Stdio,
        "http" | "https" | "streamable" | "streamablehttp" | "remote" => Transport::Http,
        "sse" | "httpsse" | "eventstream" => Transport::Sse,
        "ws" | "wss" | "websocket" => Transport::Ws,
        _ => return None,
    })
}
