//! Which parts of a config are secrets: to warn of them, and to keep them out of everything that is shown.
//!
//! A secret is known by its form (`token`, `address`) or by the name before it (`name`, `written`), and then it goes as far
//! as its value (`extent`), but for what in it is a reference (`hidden`). It is also looked for in comments (`noted`), in what
//! nobody reads (`strewn`), and wherever else it stands (`known`); `censor` keeps it out of sentences. Whoever hides does so
//! when in doubt; whoever warns takes what is likely.

mod address;
mod alphabet;
mod censor;
mod extent;
mod hidden;
mod known;
mod name;
mod noted;
mod strewn;
#[cfg(test)]
mod tests;
mod token;
mod written;

use std::{borrow::Cow, ops::Range, sync::Arc};

use self::{
    address::{
        BEFORE_PARAMETERS, is_key, is_of_key, parameters, password_of, passwords, passwords_before_networks,
        tokens_in_paths,
    },
    alphabet::Alphabet,
    extent::{Extent, Notation},
    hidden::{defaults, hidden_of},
    name::{is_ambiguous, is_of_user, is_path},
    token::tokens,
    written::{Name, assigned, flags},
};
pub use self::{censor::Censor, known::Known, name::is_secret_name};
use super::{Node, Source, Span, Value, placeholder::placeholder, read::is_note, variable::reference};

/// What stands for a secret where it is not shown.
pub const MASK: &str = "***";

/// No secret is told by its name alone in a shorter text.
const SHORTEST: usize = 4;

/// How a text begins that says where a secret is, or that there is none.
const ELSEWHERE: [&str; 18] = [
    "op://",
    "vault:",
    "keyring:",
    "keychain:",
    "arn:",
    "not-",
    "no-",
    "%",
    "$(",
    "`",
    "@file:",
    "file:",
    "{file:",
    "!secret ",
    "#{",
    "env:",
    "env.",
    "<",
];

/// How the names of files end that hold secrets.
const FILES: [&str; 7] = [".json", ".pem", ".key", ".txt", ".yaml", ".yml", ".p12"];

/// What stands where a secret might, and is none: how somebody authorizes, and the key of who needs none.
const PLAIN: [&str; 9] =
    ["enabled", "disabled", "required", "optional", "oauth2", "default", "ollama", "lm-studio", "anonymous"];

/// Keys of names with values, which people also write as a text or as a list.
const PAIRS: [&str; 5] = ["env", "environment", "headers", "http_headers", "requestHeaders"];

/// So near to a name or a mark, in bytes, is what belongs to it in the same object.
const NEAR: usize = 500;

/// Where a value holds secrets that are written out, given the name of its key, header, variable or flag. In order.
pub fn secrets_in(name: &str, value: &str) -> Vec<Range<usize>> {
    let name = if is_ambiguous(name) && !address::is_token(value) { "" } else { name };
    let mut found = hidden_in(name, value);
    found.retain(|range| is_likely(value, range));
    found
}

/// As [`secrets_in`], but also what is too short or too plain to warn of.
pub(crate) fn hidden_in(name: &str, value: &str) -> Vec<Range<usize>> {
    let mut found = in_text(value, Notation::Words);
    if is_secret(name, value) && !is_path(name, value) {
        found.extend(hidden_of(value));
    }
    apart(found)
}

/// Whether a name says that its value is a secret; of a flag with many meanings, the value says it.
fn is_secret(name: &str, value: &str) -> bool {
    is_secret_name(name) || (name.starts_with("--") && is_of_key(name, value))
}

/// The ranges in order, and joined where they overlap.
fn apart(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    ranges.dedup_by(|later, earlier| {
        let is_joined = later.start < earlier.end;
        if is_joined {
            earlier.end = earlier.end.max(later.end);
        }
        is_joined
    });
    ranges
}

/// Whether it is worth a warning: nothing to be filled in, not the name of a file, not a small number, not a word beside a
/// reference.
fn is_likely(value: &str, range: &Range<usize>) -> bool {
    let text = value[range.clone()].trim();
    if text.len() < 6 {
        return false;
    }
    let is_path = text.starts_with(['/', '~', '.']) && text.len() < 200;
    let is_named_elsewhere =
        || ELSEWHERE.iter().any(|begin| text.starts_with(begin)) || is_variable(text) || is_of_kind(value, range);
    let is_on_drive = || text.get(1..).is_some_and(|it| it.starts_with(":\\"));
    let is_file = || text.rfind('.').is_some_and(|dot| FILES.contains(&&text[dot..])) || is_on_drive();
    let is_plain = || PLAIN.contains(&text) || is_address(text);
    let is_beside = value[..range.start].ends_with('}') || value[range.end..].starts_with(['$', '{']);
    let has = |of: fn(&u8) -> bool| text.as_bytes().iter().any(of);
    let is_word = || !(has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)) || text.contains(char::is_whitespace);
    !is_path
        && !is_file()
        && !is_plain()
        && !is_named_elsewhere()
        && (text.len() >= 8 || text.parse::<f64>().is_err())
        && !(is_beside && (text.len() < 8 || is_word()))
        && placeholder(text).is_none()
}

/// Whether it is what somebody put behind the kind of a reference: `${cmd:cat token}`, `${TOKEN:bearer:search}`.
fn is_of_kind(value: &str, range: &Range<usize>) -> bool {
    let (before, text) = (&value[..range.start], &value[range.clone()]);
    let is_whole = before.is_empty() && text.starts_with("${") && text.ends_with('}');
    let is_behind = before.ends_with(':') && before.contains("${") && value[range.end..].starts_with('}');
    let is_of_words = |c: char| c.is_ascii_lowercase() || " :._/-".contains(c);
    is_whole || (is_behind && text.contains(':') && text.chars().all(is_of_words))
}

/// Whether a text is a URL that opens nothing.
fn is_address(text: &str) -> bool {
    let is_harmless = |part| !address::is_token(part);
    text.contains("://") && in_text(text, Notation::Words).is_empty() && text.split('/').all(is_harmless)
}

/// Whether a text is hardly anything but the name of a variable: `COPILOT_MCP_TOKEN`.
fn is_variable(text: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    text.contains('_') && text.starts_with(|c: char| c.is_ascii_uppercase()) && text.bytes().all(is_of_name)
}

/// The value with [`MASK`] for every secret in it. Without a name it may be anything that is shown: a sentence, a name.
pub fn mask<'v>(name: &str, value: &'v str) -> Cow<'v, str> {
    masked(value, hidden_in(name, value))
}

/// As [`mask`], for an argument of a command, given the argument before it.
pub fn mask_argument<'v>(before: &str, argument: &'v str) -> Cow<'v, str> {
    masked(argument, in_argument(flag(before), argument, hidden_in))
}

/// What a flag is called, if this argument is one, and its value is the next.
pub fn flag(argument: &str) -> &str {
    let flag = argument.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    if flag.starts_with('-') && !flag.contains(['=', ' ']) { flag } else { "" }
}

fn masked(value: &str, secrets: Vec<Range<usize>>) -> Cow<'_, str> {
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

/// Where a source has secrets: in what was read from it, and in what nobody reads (comments, what a duplicate has
/// replaced, a text that is no JSON). In order, and apart from each other.
pub fn secrets_of(source: &Source, root: Option<&Node>) -> Vec<Span> {
    let mut ranges = in_text(&source.text, Notation::of_file(&source.text));
    match root {
        Some(root) => collect(source, "", root, &mut |span: Span| ranges.push(span.start..span.end)),
        None => ranges.extend(strewn::strewn(&source.text)),
    }
    ranges.extend(noted::noted(&source.text));
    let ranges = apart(ranges).into_iter().flat_map(|range| lines(&source.text, range));
    let mut ranges: Vec<_> = ranges.collect();
    let again = Known::new(ranges.iter().filter_map(|range| source.text.get(range.clone()))).in_text(&source.text);
    if !again.is_empty() {
        ranges.extend(again);
        ranges = apart(ranges);
    }
    ranges.into_iter().map(|Range { start, end }| Span { start, end }).collect()
}

/// What stands in the lines of a range: however a text of several lines is written, each of them may stand elsewhere.
fn lines(text: &str, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let lines = text.get(range.clone()).unwrap_or_default().split('\n').map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| {
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        start..start + line.len()
    })
}

/// What looks like a secret in a text of any kind, in no order.
fn in_text(text: &str, notation: Notation) -> Vec<Range<usize>> {
    if text.len() < SHORTEST {
        return Vec::new();
    }
    let mut found: Vec<_> = tokens(text).collect();
    let alphabet = Alphabet::of(text);
    let mut hide = |range: Range<usize>| {
        for part in extent::parts(text, range, notation) {
            let here = |range: Range<usize>| part.start + range.start..part.start + range.end;
            found.extend(hidden_of(&text[part.clone()]).into_iter().map(here));
        }
    };
    let password = |user: Range<usize>| Some(user.start + password_of(&text[user.clone()])?.start..user.end);
    let extent = Extent::new(text, notation);
    if alphabet.has_any(b"=:") {
        if alphabet.has_any(BEFORE_PARAMETERS) {
            let named = parameters(text).filter(|(name, range)| address::is_secret(name, &text[range.clone()]));
            named.map(|(_, range)| range).for_each(&mut hide);
        }
        if alphabet.has_any(b"/") {
            passwords(text).chain(tokens_in_paths(text)).for_each(&mut hide);
        }
        if alphabet.has_any(b"@") && alphabet.has_any(b"(") {
            passwords_before_networks(text).for_each(&mut hide);
        }
        let (mut hidden, mut near) = (0, Near::default());
        for name in assigned(text) {
            let is_flag = text[..name.start].ends_with("--");
            let is_of_user = is_flag && is_of_user(&name.name);
            let may_be = is_flag && is_key(&name.name);
            if name.start >= hidden
                && (is_of_user || may_be || near.tells(text, &name) || is_secret_name(&name.name))
                && let Some(range) = extent.of(&name)
                && (!may_be || is_of_key(&name.name, &text[range.clone()]))
                && !is_path(&name.name, &text[range.clone()])
            {
                hidden = range.end;
                if is_of_user { password(range) } else { Some(range) }.into_iter().for_each(&mut hide);
            }
        }
    }
    if alphabet.has_any(b"-") {
        let mut hidden = 0;
        for name in flags(text) {
            let (is_of_user, may_be) = (is_of_user(&name.name), is_key(&name.name));
            if name.start >= hidden
                && (is_of_user || may_be || is_secret_name(&name.name))
                && let Some(range) = extent.word(name.end)
                && (!may_be || is_of_key(&name.name, &text[range.clone()]))
            {
                hidden = range.end;
                if is_of_user { password(range) } else { Some(range) }.into_iter().for_each(&mut hide);
            }
        }
    }
    if alphabet.has_any(b"${") {
        found.extend(defaults(text).filter(|(name, _)| is_secret_name(name)).map(|(_, range)| range));
    }
    found
}

/// What stands in the same object as a value whose own name says nothing: `{"name": "API_KEY", "value": "…"}`,
/// `{"password": true, "default": "…"}`.
#[derive(Debug, Default)]
struct Near {
    /// Where there was the name of a secret, as long as there is no other name.
    named: Option<usize>,
    /// Where it was said that somebody is asked for a password.
    asked: Option<usize>,
}

impl Near {
    /// Whether this is the name of a value that is a secret for what was met before.
    fn tells(&mut self, text: &str, name: &Name<'_>) -> bool {
        let value = || text[name.end..].trim_start();
        match &*name.name {
            "name" => {
                let word = value().trim_start_matches(extent::is_quote);
                let ends = |c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-';
                let word = &word[..word.find(ends).unwrap_or(word.len())];
                self.named = is_secret_name(word).then_some(name.end);
            }
            "password" if value().starts_with("true") => self.asked = Some(name.end),
            "value" | "default" => {
                let marks = [self.named, self.asked];
                return marks.into_iter().flatten().any(|mark| name.start.saturating_sub(mark) < NEAR);
            }
            _ => {}
        }
        false
    }
}

fn collect(source: &Source, name: &str, node: &Node, hide: &mut impl FnMut(Span)) {
    match &node.value {
        Value::String(text) => {
            hidden_in(name, text).into_iter().for_each(|range| hide(source.part(node.span, text, range)));
        }
        Value::Sequence(items) => {
            let name = if is_secret_name(name) { name } else { "" };
            let mut before = "";
            for item in items {
                let name = if before.is_empty() { name } else { before };
                match &item.value {
                    Value::String(text) => {
                        let found = in_argument(name, text, hidden_in);
                        found.into_iter().for_each(|range| hide(source.part(item.span, text, range)));
                        before = flag(text);
                    }
                    _ => collect(source, name, item, hide),
                }
            }
        }
        Value::Mapping(entries) => {
            let is_asked_in_secret = node.get("password").is_some_and(|it| it.value == Value::Bool(true));
            let named = node.get("name").and_then(|name| name.as_str()).filter(|name| is_secret_name(name));
            for entry in entries {
                let name = match &*entry.key {
                    "default" if is_asked_in_secret => "password",
                    "value" if is_secret_name(name) => name,
                    "default" | "value" => named.unwrap_or(&entry.key),
                    key => key,
                };
                if is_note(&entry.key) {
                    let (one, more) = (std::slice::from_ref(&entry.node), entry.node.as_items().unwrap_or_default());
                    for (node, text) in one.iter().chain(more).filter_map(|node| Some((node, node.as_str()?))) {
                        noted::in_note(text).into_iter().for_each(|range| hide(source.part(node.span, text, range)));
                    }
                }
                if PAIRS.contains(&&*entry.key) {
                    strewn::in_words(&entry.node, &mut |node, text, range| hide(source.part(node.span, text, range)));
                }
                collect(source, name, &entry.node, hide);
            }
        }
        Value::Number(_) if is_secret_name(name) => hide(node.span),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Secrets in an argument of a command, given the flag before it: `--token=…`, `API_KEY=…`, `Authorization: Bearer …`.
pub fn secrets_in_argument(flag: &str, argument: &str) -> Vec<Range<usize>> {
    in_argument(flag, argument, secrets_in)
}

fn in_argument(flag: &str, argument: &str, find: fn(&str, &str) -> Vec<Range<usize>>) -> Vec<Range<usize>> {
    let is_flag = written::is_flag(argument.trim_start());
    if !is_flag && is_secret(flag, argument) {
        return find(flag, argument);
    }
    if argument.len() < SHORTEST {
        return Vec::new();
    }
    let (of_user, user) = argument.split_once('=').filter(|_| is_flag).unwrap_or((flag, argument));
    if is_of_user(of_user)
        && of_user.starts_with('-')
        && let Some(password) = password_of(user)
    {
        let start = argument.len() - user.len() + password.start;
        let here = |range: Range<usize>| start + range.start..start + range.end;
        return find("password", &argument[start..]).into_iter().map(here).collect();
    }
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let is_address = |at: usize| {
        argument[at..].starts_with("://")
            || passwords_before_networks(&argument[at.saturating_sub(1)..]).next().is_some()
    };
    let split = argument.find(['=', ':']).filter(|at| is_name(&argument[..*at]) && !is_address(*at));
    match split {
        Some(at) => {
            let rest = at + 1;
            let here = |range: Range<usize>| rest + range.start..rest + range.end;
            find(&argument[..at], &argument[rest..]).into_iter().map(here).collect()
        }
        None => find("", argument),
    }
}
