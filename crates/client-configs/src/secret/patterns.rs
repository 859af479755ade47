//! What secrets look like in any text: tokens by their form, passwords in URLs, values after the name of a secret.

use std::{ops::Range, sync::LazyLock};

use regex::{Match, Regex};

use super::names::{is_secret_name, is_user};
use crate::expression::any_of;

/// Tokens that are known by their form.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    any_of(&[
        r"\bgh[pousr]_[A-Za-z0-9]{16,}",
        r"\bgithub_pat_[A-Za-z0-9_]{16,}",
        r"\bglpat-[A-Za-z0-9_-]{16,}",
        r"\bsk-[A-Za-z0-9_-]{16,}",
        r"\b[psr]k_(?:live|test)_[A-Za-z0-9]{10,}",
        r"\bxox[a-z]-[A-Za-z0-9-]{10,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\bAIza[0-9A-Za-z_-]{30,}",
        r"\bya29\.[0-9A-Za-z_-]{20,}",
        r"\b(?:npm|hf|gsk|ntn|glsa|r8|phx|secret|pcsk)_[A-Za-z0-9_]{20,}",
        r"\b(?:pplx|xai|tvly|figd|lin_api|apify_api|dckr_pat)[-_][A-Za-z0-9_-]{16,}",
        r"\b(?:shpat|dop_v1|sbp)_[a-f0-9]{20,}",
        r"\bATATT[A-Za-z0-9_=-]{20,}",
        r"\bhvs\.[A-Za-z0-9_-]{20,}",
        r"\bGOCSPX-[A-Za-z0-9_-]{16,}",
        r"\blsv2_[a-z]{2}_[A-Za-z0-9_]{16,}",
        r"\bfc-[a-f0-9]{20,}",
        r"\bpat-[a-z]{2}[0-9]-[a-f0-9-]{20,}",
        r"\bkey-[a-f0-9]{32}\b",
        r"\bsntry[su]_[A-Za-z0-9+/=_-]{20,}",
        // After the number of a Telegram bot.
        r":AA[A-Za-z0-9_-]{30,}",
        r"\bhooks\.slack\.com/services/[A-Za-z0-9/]{16,}",
        r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
        // Up to the dashes of its end.
        r#"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:-{0,4}[^-"'])*"#,
        r"(?i)\b(?:bearer|basic)\s+(?<bearer>[A-Za-z0-9+/=_.~-]{8,})",
    ])
});

/// A scheme of an `Authorization` header before the secret.
static SCHEME: LazyLock<Regex> =
    LazyLock::new(|| any_of(&[r"(?i)^\s*(?:bearer|basic|token|apikey|api-key|digest)[\s:]+"]));

/// `name: value`, `name=value`, `"name": "value"`, `--name value`, `"--name", "value"`.
static ASSIGNED: LazyLock<Regex> = LazyLock::new(|| {
    let value =
        r#"(?:\\?"(?<double>(?:[^"\\\n]|\\[^"\n])*)|'(?<single>[^'\n]*)|(?<bare>[^\s"'`<>,&#{}\[\]][^\s"'`<>,&#]*))"#;
    any_of(&[
        &format!(r#"(?<name>[A-Za-z][A-Za-z0-9_.%-]*)\\?["']?[ \t]*[:=]\s*{value}"#),
        &format!(r#"(?<flag>--?[A-Za-z0-9][A-Za-z0-9_-]*)(?:[ \t]+|["'],\s*){}"#, value.replace("?<", "?<f")),
    ])
});

/// What every match of [`ASSIGNED`] has whose name is one of a secret. It is found much faster.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    let part = "(?:token|secret|pass|pw|key|cred|auth|cookie|pat|bearer|sig|jwt|psk|sess|otp|mnemonic|verifier|dpop|code\
        |li(?:_|-|%5f)?at)";
    let user = "(?:u|user|proxy-user|userpwd)";
    any_of(&[
        &format!(r#"(?i){part}[A-Za-z0-9_.%-]*\\?["']?[ \t]*[:=]"#),
        &format!(r#"(?i)-[A-Za-z0-9_-]*{part}[A-Za-z0-9_-]*(?:[ \t]|["'],)"#),
        &format!(r#"(?i)-{user}(?:[ \t]|\\?["']?[ \t]*[:=]|["'],)"#),
    ])
});

/// A URL with a user and a password, and the address of a database driver: `user:password@tcp(host)`.
static PASSWORD: LazyLock<Regex> = LazyLock::new(|| {
    any_of(&[
        r#"://(?<user>[^\s:/?#@"'`<>\[]*)(?::(?<password>[^\s"'`<>]*))?@"#,
        r#"(?<before>[^\s"'`<>:()]+):(?<driver>[^\s"'`<>]+)@(?:tcp6?|unix|udp)\("#,
    ])
});

/// A part of a path that is shorter is hardly a token.
const LONG: usize = 20;

/// Where a text has something that looks like a secret, in no order.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for captures in TOKEN.captures_iter(text) {
        found.push(captures.name("bearer").unwrap_or(captures.get_match()).range());
    }
    for captures in PASSWORD.captures_iter(text) {
        let user = captures.name("user").filter(|user| is_token(user.as_str()));
        let password = captures.name("password").or(captures.name("driver"));
        found.extend(user.into_iter().chain(password).map(|part| part.range()));
    }
    found.extend(tokens_in_paths(text));
    assigned(text, &mut found);
    found.retain(|range| !range.is_empty());
    found
}

/// The values after the name of a secret. A value may itself be a name with a value: `"env": "API_KEY=…"`.
fn assigned(text: &str, found: &mut Vec<Range<usize>>) {
    let begin = |named: Match<'_>| text[..named.start()].trim_end_matches(is_of_name).len();
    assigned_from(text, &|at| NAMED.find_at(text, at).map(begin), found);
}

/// Whether the name of an assignment may have it.
fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '%' | '-')
}

/// As [`assigned`]; `next` says where the next name begins that may be one of a secret.
fn assigned_from(text: &str, next: &dyn Fn(usize) -> Option<usize>, found: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while let Some(begin) = next(at) {
        let begin = begin.max(at);
        let is_reference = |at: usize| text[..at].ends_with("${") || text[..at].ends_with("{env:");
        if is_reference(begin) && text[begin..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            // Its value may be as long as the rest of the text, with many more in it.
            at = begin + text[begin..].find(|c: char| !is_of_name(c)).unwrap_or(text.len() - begin);
            continue;
        }
        let Some(captures) = ASSIGNED.captures_at(text, begin) else { break };
        let value = |names: [&str; 3]| names.into_iter().find_map(|name| captures.name(name));
        let (name, value) = match (captures.name("name"), captures.name("flag")) {
            (Some(name), _) => (name, value(["double", "single", "bare"])),
            (_, Some(flag)) => (flag, value(["fdouble", "fsingle", "fbare"])),
            _ => break,
        };
        at = name.end();
        let Some(value) = value else { continue };
        let mut range = value.range();
        let is_flag = name.as_str().starts_with('-');
        let is_part = is_flag && text[..name.start()].ends_with(|c: char| c.is_alphanumeric());
        if is_reference(name.start()) || is_part || is_flag && is_option(value.as_str()) {
            continue;
        }
        let begins_flag = text[..name.start()].ends_with("--");
        let flag =
            if is_flag || begins_flag { format!("--{}", name.as_str().trim_start_matches('-')) } else { String::new() };
        if is_user(&flag) || name.as_str() == "-u" {
            found.extend(password_of(value.as_str()).map(|part| range.start + part.start..range.end));
        } else if is_secret(name.as_str(), value.as_str()) || is_secret(&flag, value.as_str()) {
            // A connection string goes on with its next parameter; a scheme is followed by the secret.
            if captures.name("bare").is_some() {
                let next = value.as_str().match_indices(';').find(|(at, _)| value.as_str()[at + 1..].contains('='));
                range.end = next.map_or(range.end, |(at, _)| range.start + at);
                let rest = &text[range.start..];
                let scheme = scheme(rest);
                if scheme > range.len() {
                    let token = rest[scheme..].find(|c: char| c.is_whitespace() || "\"'`,".contains(c));
                    range = range.start..range.start + token.map_or(rest.len(), |end| scheme + end);
                }
            }
            at = range.end.max(at);
            found.push(range);
        }
    }
}

/// Whether a name says that its value is a secret; for names with many meanings, the value says it.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    let name = name.replace("%5F", "_");
    let is_key = ["key", "code", "--key"].iter().any(|it| it.eq_ignore_ascii_case(&name));
    let is_word = value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '='));
    // How many tests pass, or what share of them.
    let is_count =
        name == "pass" && value.len() <= 4 && value.bytes().all(|it| it.is_ascii_digit() || b".%".contains(&it));
    is_secret_name(&name) && !is_count || is_key && is_token(value) && is_word
}

/// Whether an argument is an option and not the value of the option before it.
pub(super) fn is_option(argument: &str) -> bool {
    let word = argument.split(|c: char| c.is_whitespace() || c == ',').next().unwrap_or_default();
    let is_long = || word.len() > 8 && word.bytes().any(|byte| byte.is_ascii_digit());
    word.starts_with("--") || word.starts_with('-') && !is_long()
}

/// The password in `user:password`. Two numbers are ids of a user and a group; a name with a number is a host.
pub(super) fn password_of(user: &str) -> Option<Range<usize>> {
    let (name, password) = user.split_once(':')?;
    let is_port = password.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace) && !text.starts_with("//");
    (is_word(name) && is_word(password) && !is_port && name != password).then_some(name.len() + 1..user.len())
}

/// How long the scheme is that a header's value begins with.
pub(super) fn scheme(value: &str) -> usize {
    SCHEME.find(value).map_or(0, |scheme| scheme.end())
}

/// Whether a string is hardly a name.
pub(super) fn is_token(text: &str) -> bool {
    text.len() >= 16 && text.bytes().any(|it| it.is_ascii_digit()) && text.bytes().any(|it| it.is_ascii_alphabetic())
}

/// The parts of the paths of URLs that are tokens.
fn tokens_in_paths(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("://").flat_map(move |(at, _)| {
        let begin = at + 3;
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '?' | '#');
        let url = &text[begin..begin + text[begin..].find(ends).unwrap_or(text.len() - begin)];
        url.split('/').skip(1).filter(|part| is_random(part)).map(move |part| {
            let start = begin + part.as_ptr() as usize - url.as_ptr() as usize;
            start..start + part.len()
        })
    })
}

/// Whether a word is so long and mixed that it is neither a name nor a number.
fn is_random(word: &str) -> bool {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => Some(0),
        b'A'..=b'Z' => Some(1),
        b'a'..=b'z' => Some(2),
        _ => None,
    };
    let (mut counts, mut changes, mut before) = ([0; 3], 0, None);
    for byte in word.bytes() {
        match kind(byte) {
            Some(now) => {
                counts[now] += 1;
                changes += usize::from(before.is_some_and(|before| before != now));
            }
            None if !matches!(byte, b'-' | b'_' | b'=' | b'~' | b'.') => return false,
            None => {}
        }
        before = kind(byte);
    }
    word.len() >= LONG && counts.iter().all(|count| *count >= 2) && changes * 4 >= word.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_name_of_a_secret_is_passed_over(
            parts in proptest::collection::vec(
                (
                    "(|-|--|\\$\\{|[a-z]{1,3}[_.% -]?)",
                    "(token|PASS|pw|Key|api_keys|cred|auth|cookie|PAT|bearer|sig|jwt|psk|session|sessid|session_id|otp\
                     |mnemonic|li_at|li%5Fat|code|user|u|dpop|code_verifier|name)",
                    "([_-][a-z]{1,2}|%5F)?",
                    "(=|: |\": \"|\", \"| |=\"|'|\\\\\":\\\\\")",
                    "([a-z0-9]{1,20}|ada:pw9|Bearer a1|é)",
                    "[ \"\\n,;}]",
                ),
                1..6,
            )
        ) {
            let parts = parts.into_iter().map(|(before, name, after, sign, value, end)| [before, name, after, sign, value, end].concat());
            let text: String = parts.collect();
            let (mut fast, mut slow) = (Vec::new(), Vec::new());
            assigned(&text, &mut fast);
            assigned_from(&text, &Some, &mut slow);
            prop_assert_eq!(fast, slow, "{}", text);
        }
    }
}
