//! Which parts of a config are secrets: to warn of them, and to keep them out of everything that is shown.

mod name;
mod written;

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, LazyLock},
};

use regex::Regex;

pub use self::name::is_secret_name;
use self::written::{assigned, flags, parameters, passwords, word};
use super::{
    Node, Source, Span, Value,
    placeholder::{of_ascii_words, placeholder},
    references,
    variable::reference,
};

/// What stands for a secret where it is not shown.
pub const MASK: &str = "***";

/// Tokens that are known by their form.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let forms = [
        r"\bgh[pousr]_[A-Za-z0-9]{16,}",
        r"\bgithub_pat_[A-Za-z0-9_]{16,}",
        r"\bglpat-[A-Za-z0-9_-]{16,}",
        r"\bsk-[A-Za-z0-9_-]{16,}",
        r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}",
        r"\bxox[abeprs]-[A-Za-z0-9-]{10,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\bAIza[0-9A-Za-z_-]{30,}",
        r"\bya29\.[0-9A-Za-z_-]{20,}",
        r"\bnpm_[A-Za-z0-9]{30,}",
        r"\bhf_[A-Za-z0-9]{20,}",
        r"\bgsk_[A-Za-z0-9]{20,}",
        r"\bpplx-[A-Za-z0-9]{20,}",
        r"\bxai-[A-Za-z0-9]{20,}",
        r"\btvly-[A-Za-z0-9-]{16,}",
        r"\bfigd_[A-Za-z0-9_-]{16,}",
        r"\blin_api_[A-Za-z0-9]{16,}",
        r"\bntn_[A-Za-z0-9]{20,}",
        r"\bATATT[A-Za-z0-9_=-]{20,}",
        r"\bshpat_[a-f0-9]{20,}",
        r"\bdop_v1_[a-f0-9]{20,}",
        r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*",
    ];
    regex(&forms.join("|"))
});

/// A scheme of an `Authorization` header, or a cookie's name, before what is secret.
static SCHEME: LazyLock<Regex> = LazyLock::new(|| regex(r"(?i)^\s*(?:bearer|basic|token|apikey|api-key|digest)[\s:]+"));

/// A scheme of an `Authorization` header, with what is secret.
static BEARER: LazyLock<Regex> = LazyLock::new(|| regex(r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9+/=_.~-]{8,}"));

/// No text of a [`TOKEN`] or with a [`BEARER`] is shorter.
const SHORTEST: usize = 14;

fn regex(text: &str) -> Regex {
    #[expect(clippy::unwrap_used, reason = "the expressions never change")]
    Regex::new(&of_ascii_words(text)).unwrap()
}

/// Where a value holds secrets that are written out, given the name of its key, header, variable or flag. In order.
pub fn secrets_in(name: &str, value: &str) -> Vec<Range<usize>> {
    let mut found = hidden_in(name, value);
    found.retain(|range| is_likely(&value[range.clone()]));
    found
}

/// As [`secrets_in`], but also what is too short or too plain to warn of.
pub(crate) fn hidden_in(name: &str, value: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    if value.len() >= SHORTEST {
        found.extend(tokens(value).chain(after_schemes(value).take(1)));
    }
    if value.contains(['=', ':']) {
        let secret = parameters(value).filter(|(name, _)| is_secret_name(name)).map(|(_, range)| range);
        found.extend(secret.chain(passwords(value)));
    }
    let is_named = is_secret_name(name);
    if is_named {
        let start = SCHEME.find(value).map_or(0, |scheme| scheme.end());
        found.push(start..value.len());
    }
    found.retain(|range| is_written_out(&value[range.clone()]));
    for reference in references(value).filter(|it| is_named || is_secret_name(it.name)) {
        // A default ends before the brace.
        let length = reference.default.map_or(0, str::len);
        let end = reference.range.end - 1;
        found.extend((length > 0).then(|| end - length..end));
    }
    found.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    found.dedup_by(|later, earlier| later.start < earlier.end);
    found
}

fn tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    TOKEN.find_iter(text).map(|token| token.range())
}

/// What stands after a scheme of an `Authorization` header.
fn after_schemes(text: &str) -> impl Iterator<Item = Range<usize>> {
    BEARER.find_iter(text).map(|found| {
        let token = found.as_str().split_whitespace().next_back().unwrap_or_default();
        found.end() - token.len()..found.end()
    })
}

/// Whether what stands where a secret belongs is one: no reference, no placeholder, no switch, number or path.
fn is_written_out(text: &str) -> bool {
    let text = text.trim();
    let is_word = |word: &&str| text.eq_ignore_ascii_case(word);
    !text.is_empty()
        && references(text).next().is_none()
        && !text.contains("{{")
        && placeholder(text).is_none()
        && !["true", "false", "null", "none", "undefined", "bearer", "basic", "oauth", "token"].iter().any(is_word)
}

/// Whether it is worth a warning: not the name of a file, not a small number.
fn is_likely(text: &str) -> bool {
    let text = text.trim();
    let is_path = text.starts_with(['/', '~', '.']) && text.len() < 200;
    let is_named_elsewhere = ["op://", "vault:", "keyring:", "not-", "no-"].iter().any(|begin| text.starts_with(begin));
    text.len() >= 6 && !is_path && !is_named_elsewhere && (text.len() >= 8 || text.parse::<f64>().is_err())
}

/// The value with [`MASK`] for every secret in it.
pub fn mask<'v>(name: &str, value: &'v str) -> Cow<'v, str> {
    hidden(value, hidden_in(name, value))
}

/// As [`mask`], for an argument of a command, given the argument before it.
pub fn mask_argument<'v>(before: &str, argument: &'v str) -> Cow<'v, str> {
    let flag = if before.starts_with('-') { before } else { "" };
    hidden(argument, in_argument(flag, argument, hidden_in))
}

fn hidden(value: &str, secrets: Vec<Range<usize>>) -> Cow<'_, str> {
    if secrets.is_empty() {
        return Cow::Borrowed(value);
    }
    let (mut masked, mut at) = (String::new(), 0);
    for range in secrets {
        masked.push_str(&value[at..range.start]);
        masked.push_str(MASK);
        at = range.end;
    }
    masked.push_str(&value[at..]);
    Cow::Owned(masked)
}

/// The source with its secrets blotted out, character by character, so that every line and column stays what it is. Of
/// the bytes, only those of secrets that are not ASCII change their number.
pub fn blotted(source: &Source, secrets: &[Span]) -> Arc<Source> {
    let (mut text, mut at) = (String::with_capacity(source.text.len()), 0);
    for Span { start, end } in secrets {
        if let (true, Some(before), Some(secret)) =
            (*start >= at, source.text.get(at..*start), source.text.get(*start..*end))
        {
            text.push_str(before);
            text.extend(secret.chars().map(|character| if character == '\n' { '\n' } else { '*' }));
            at = *end;
        }
    }
    text.push_str(&source.text[at..]);
    Source::new(source.name.clone(), text)
}

/// A sentence about a source without the secrets that it quotes.
pub fn unquoted(sentence: &str, source: &Source, secrets: &[Span]) -> String {
    let quoted = secrets.iter().filter_map(|span| source.text.get(span.start..span.end));
    quoted.filter(|secret| sentence.contains(secret)).fold(sentence.to_owned(), |text, it| text.replace(it, MASK))
}

/// Where a source has secrets: in what was read from it, and in what nobody reads (comments, what a duplicate has
/// replaced, a text that is no JSON). In order, and apart from each other.
pub fn secrets_of(source: &Source, root: Option<&Node>) -> Vec<Span> {
    let mut spans = in_text(&source.text);
    if let Some(root) = root {
        collect(source, "", root, &mut spans);
    }
    spans.sort_by_key(|span| span.start);
    spans.dedup_by(|later, earlier| {
        let is_joined = later.start < earlier.end;
        if is_joined {
            earlier.end = earlier.end.max(later.end);
        }
        is_joined
    });
    spans
}

/// What looks like a secret in a text of any kind.
fn in_text(text: &str) -> Vec<Span> {
    let span = |range: Range<usize>| Span { start: range.start, end: range.end };
    let after_schemes = after_schemes(text).filter(|range| is_written_out(&text[range.clone()]));
    let mut spans: Vec<Span> = tokens(text).chain(after_schemes).map(span).collect();
    let mut hide = |values: &mut dyn Iterator<Item = (&str, usize)>| {
        let mut hidden = 0;
        for (name, start) in values {
            if start < hidden || !is_secret_name(name) {
                continue;
            }
            // A word ends at the brace of a reference.
            let rest = &text[start..];
            let value = reference(rest).map_or_else(|| word(rest), |(.., length)| &rest[..length]);
            for range in hidden_in(name, value) {
                hidden = start + range.end;
                spans.push(Span { start: start + range.start, end: hidden });
            }
        }
    };
    hide(&mut assigned(text));
    hide(&mut flags(text));
    spans
}

fn collect(source: &Source, name: &str, node: &Node, spans: &mut Vec<Span>) {
    match &node.value {
        Value::String(text) => {
            let here = |range| source.part(node.span, text, range);
            spans.extend(hidden_in(name, text).into_iter().map(here));
        }
        Value::Sequence(items) => {
            let mut flag = "";
            for item in items {
                let name = if flag.is_empty() { name } else { flag };
                match &item.value {
                    Value::String(text) => {
                        spans.extend(
                            in_argument(name, text, hidden_in)
                                .into_iter()
                                .map(|range| source.part(item.span, text, range)),
                        );
                        flag = if text.starts_with('-') { text } else { "" };
                    }
                    _ => collect(source, name, item, spans),
                }
            }
        }
        Value::Mapping(entries) => {
            let is_asked_in_secret = node.get("password").is_some_and(|it| it.value == Value::Bool(true));
            for entry in entries {
                let name = if is_asked_in_secret && entry.key == "default" { "password" } else { &entry.key };
                collect(source, name, &entry.node, spans);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Secrets in an argument of a command, given the flag before it: `--token=…`, `API_KEY=…`, `Authorization: Bearer …`.
pub fn secrets_in_argument(flag: &str, argument: &str) -> Vec<Range<usize>> {
    in_argument(flag, argument, secrets_in)
}

fn in_argument(flag: &str, argument: &str, find: fn(&str, &str) -> Vec<Range<usize>>) -> Vec<Range<usize>> {
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let split = argument.find(['=', ':']).filter(|at| is_name(&argument[..*at]) && !argument[*at..].starts_with("://"));
    match split {
        Some(at) => {
            let rest = at + 1;
            let here = |range: Range<usize>| rest + range.start..rest + range.end;
            find(&argument[..at], &argument[rest..]).into_iter().map(here).collect()
        }
        None if argument.starts_with('-') => find("", argument),
        None => find(flag, argument),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::json;

    #[test]
    fn only_what_is_secret_is_masked() {
        for (name, value, expected) in [
            ("X", "ghp_0123456789abcdefABCD", "***"),
            ("Authorization", "Bearer abcdefgh12345678", "Bearer ***"),
            ("Authorization", "Bearer ${TOKEN}", "Bearer ${TOKEN}"),
            ("url", "https://u:pässwort@h/?api_key=abcdef&q=1", "https://u:***@h/?api_key=***&q=1"),
            ("PASSWORD", "hunter22", "***"),
            ("PASSWORD", "<your-password>", "<your-password>"),
            ("API_TOKEN", "", ""),
            ("PGTOKEN", "x", "x"),
            ("NAME", "Ada", "Ada"),
            ("API_KEY", "${KEY:-geheim}", "${KEY:-***}"),
            ("OTHER", "Bearer 0123456789", "Bearer ***"),
            ("PGPASSWORD", "abc", "***"),
            ("DATABASE_URL", "postgres://ada:geheim@db/x", "postgres://ada:***@db/x"),
        ] {
            assert_eq!(mask(name, value), expected, "{name}");
        }
        let argument = |flag: &str, text: &str| {
            in_argument(flag, text, hidden_in).into_iter().map(|range| text[range].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(argument("--api-key", "0123456789"), ["0123456789"]);
        assert_eq!(argument("", "--token=0123456789"), ["0123456789"]);
        assert_eq!(argument("--header", "Authorization: Bearer 0123456789"), ["0123456789"]);
        assert_eq!(argument("", "postgres://a:geheim@h/x"), ["geheim"]);
        assert_eq!(argument("--name", "0123456789"), [""; 0]);
    }

    #[test]
    fn what_is_said_and_shown_of_a_source_has_no_secrets() {
        let source = Source::new("x", "token: ghp_0123456789abcdefABCD\nné: x\n");
        let secrets = secrets_of(&source, None);
        assert_eq!(blotted(&source, &secrets).text, "token: ************************\nné: x\n");
        let references = Source::new("x", "\"API_TOKEN\": \"${env:API_TOKEN}\", --token $TOKEN");
        assert_eq!(secrets_of(&references, None), []);
        let sentence = "found the text \"ghp_0123456789abcdefABCD\"";
        assert_eq!(unquoted(sentence, &source, &secrets), "found the text \"***\"");
        assert_eq!(blotted(&source, &[]).text, source.text);
    }

    #[test]
    fn secrets_are_found_where_nobody_reads_them() {
        for text in [
            "{ // API_KEY: geheim1234\n}",
            r#"{"env": {"API_KEY": "geheim1234", "API_KEY": "${X}"}}"#,
            r#"{"env": "API_KEY=geheim1234"}"#,
            r#"{"args": "-y b --api-key geheim1234"}"#,
            r#"{"args": ["--api-key", "geheim1234"], "x": }"#,
            r#"{"headers": "Authorization: Bearer geheim1234"}"#,
            r#"{"inputs": [{"password": true, "default": "geheim1234"}]}"#,
            r#"{ // "API_KEY": "${API_KEY:-geheim1234}""#,
        ] {
            let source = Source::new("x", text);
            let root = json::parse(&source).map(|document| document.root).ok();
            let found = secrets_of(&source, root.as_ref());
            assert!(found.iter().any(|span| text[span.start..span.end].contains("geheim1234")), "{text}: {found:?}");
        }
    }

    #[test]
    fn the_secrets_of_a_source_are_found_also_if_nobody_can_read_it() {
        let text = r#"{"s": {"env": {"API_KEY": "0123456789"}, "args": ["--token", "abcdefghij", "x"], "url": "https://h/?key=1"}}"#;
        let source = Source::new("x", text);
        let root = json::parse(&source).expect("reads").root;
        let shown =
            |root| secrets_of(&source, root).into_iter().map(|span| &text[span.start..span.end]).collect::<Vec<_>>();
        assert_eq!(shown(Some(&root)), ["0123456789", "abcdefghij"]);
        assert_eq!(shown(None), ["0123456789", "abcdefghij"]);
    }
}
