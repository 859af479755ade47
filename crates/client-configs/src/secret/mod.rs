//! Which parts of a config are secrets: to warn about them, and to keep them out of everything that is shown.
//!
//! A secret is known by its form or by the name before it (`patterns`, `names`); references and placeholders in it are
//! shown. Hiding errs on the side of hiding; a warning needs more evidence ([`secrets_in`]). `redact` takes secrets out
//! of sentences.

mod names;
mod patterns;
mod redact;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, ops::Range};

pub use self::{
    names::is_secret_name,
    redact::{KnownSecrets, Redactor, mask_source},
};
use self::{
    names::{is_ambiguous, is_path, is_user},
    patterns::{is_option, is_secret, is_token, password_of, scheme},
};
use super::{machine::is_of_windows, placeholder::marked, placeholder::placeholder};
use rehearse_document::{Form, Node, Reference, Source, Span, Value, references};
pub use rehearse_protocol::trace_file::MASK;

/// How a string begins that says where a secret is, or that there is none.
const ELSEWHERE: &str = "op:// vault: keyring: keychain: arn: not- no- % $( $env: process.env. os.environ ` @file: file: {file: !secret #{ env: env. <";

/// How the names of files end that hold secrets.
const FILES: [&str; 7] = [".json", ".pem", ".key", ".txt", ".yaml", ".yml", ".p12"];

/// Values in the place of a secret that are none: how to authorize, and the key of programs that need none.
const PLAIN: &str = "enabled disabled required optional oauth2 default ollama lm-studio anonymous";

/// Words that people write where a secret might be.
const WORDS: &str = "true false null none undefined bearer basic oauth token";

/// The default in a hint.
const NO_DEFAULT: &str = "default";

/// With fewer letters and digits around it, a placeholder is all of a value.
const FEW: usize = 6;

/// Where a value holds secrets that deserve a warning, given the name of its key, header, variable or flag. In order.
pub fn secrets_in(name: &str, value: &str) -> Vec<Range<usize>> {
    let name = if is_ambiguous(name) && !is_token(value) { "" } else { name };
    let mut found = hidden_in(name, value);
    found.retain(|range| is_likely(value, range));
    found
}

/// As [`secrets_in`], but also what is too short or too plain for a warning.
pub fn hidden_in(name: &str, value: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for range in patterns::find(value) {
        let part = hidden_of(&value[range.clone()]);
        found.extend(part.into_iter().map(|part| range.start + part.start..range.start + part.end));
    }
    found.extend(defaults(value).filter(|(name, _)| is_secret_name(name)).map(|(_, range)| range));
    if is_secret(name, value) && !is_path(name, value) {
        found.extend(hidden_of(value));
    }
    merge(found)
}

/// Secrets in an argument of a command, given the flag before it: `--token=…`, `API_KEY=…`, `Authorization: Bearer …`.
pub fn secrets_in_argument(flag: &str, argument: &str) -> Vec<Range<usize>> {
    in_argument(flag, argument, secrets_in)
}

fn in_argument(flag: &str, argument: &str, find: fn(&str, &str) -> Vec<Range<usize>>) -> Vec<Range<usize>> {
    let is_flag = is_option(argument.trim_start());
    if !is_flag && is_secret(flag, argument) {
        return find(flag, argument);
    }
    let shifted = |at: usize, name: &str| {
        find(name, &argument[at..]).into_iter().map(|range| at + range.start..at + range.end).collect()
    };
    let (user_flag, user) = argument.split_once('=').filter(|_| is_flag).unwrap_or((flag, argument));
    if is_user(user_flag)
        && let Some(password) = password_of(user)
    {
        return shifted(argument.len() - user.len() + password.start, "password");
    }
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let is_address = |at: usize| argument[at..].starts_with("://") || argument.contains('@') && argument.contains('(');
    match argument.find(['=', ':']).filter(|at| is_name(&argument[..*at]) && !is_address(*at)) {
        Some(at) => shifted(at + 1, &argument[..at]),
        None => find("", argument),
    }
}

/// The value with [`MASK`] for every secret in it. Without a name it may be anything that is shown: a sentence, a name.
pub fn mask<'v>(name: &str, value: &'v str) -> Cow<'v, str> {
    redact::masked(value, hidden_in(name, value))
}

/// As [`mask`], for an argument of a command, given the argument before it.
pub fn mask_argument<'v>(before: &str, argument: &'v str) -> Cow<'v, str> {
    redact::masked(argument, in_argument(flag(before), argument, hidden_in))
}

/// The flag that this argument is, if its value is the next argument.
pub fn flag(argument: &str) -> &str {
    let flag = argument.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    if flag.starts_with('-') && !flag.contains(['=', ' ']) { flag } else { "" }
}

/// Where a source has secrets: in its values, in comments, and wherever one of them occurs again. In order, and apart
/// from each other.
pub fn secrets_of(source: &Source, root: &Node) -> Vec<Span> {
    // What is not part of a value: comments, the lost values of duplicate keys.
    let mut values = Vec::new();
    scalars(root, &mut values);
    let is_value = |range: &Range<usize>| {
        let next = values.partition_point(|value| value.end <= range.start);
        values.get(next).is_some_and(|value| value.start < range.end)
    };
    let mut ranges = hidden_in("", &source.text);
    ranges.retain(|range| !is_value(range));
    collect(source, "", root, &mut |span: Span| ranges.push(span.start..span.end));
    let ranges: Vec<_> = merge(ranges).into_iter().flat_map(|range| lines(&source.text, range)).collect();
    let again = KnownSecrets::new(ranges.iter().map(|range| &source.text[range.clone()])).find(&source.text);
    let all = merge(ranges.into_iter().chain(again).collect());
    all.into_iter().map(|Range { start, end }| Span { start, end }).collect()
}

/// What may be a value in a text that cannot be parsed: everything but keys and the signs around them.
pub fn values_of(source: &Source) -> Vec<Span> {
    let is_sign = |c: char| c.is_whitespace() || "{}[],:=\"'`;#@“”„‘’".contains(c);
    let (text, mut hidden, mut at) = (&source.text, Vec::new(), 0);
    while let Some(start) = text[at..].find(|c| !is_sign(c)).map(|start| at + start) {
        let end = text[start..].find(is_sign).map_or(text.len(), |end| start + end);
        let word = &text[start..end];
        let is_key = || {
            let before = text[..start].trim_end_matches(['"', '\'', '“', '”', ' ', '\t']);
            let after = text[end..].trim_start_matches(['"', '\'', '“', '”', ' ', '\t']);
            let begins = before.is_empty() || before.ends_with(['\n', '{', ',', '-']);
            begins && after.starts_with([':', '=']) && matches!(mask("", word), Cow::Borrowed(_))
        };
        if word != "-" && !(word.starts_with(|c: char| c.is_ascii_alphabetic()) && is_key()) {
            hidden.push(Span { start, end });
        }
        at = end;
    }
    hidden
}

/// The spans of all values that are not arrays and objects, in order.
fn scalars(node: &Node, spans: &mut Vec<Span>) {
    match &node.value {
        Value::Sequence(items) => items.iter().for_each(|item| scalars(item, spans)),
        Value::Mapping(entries) => entries.iter().for_each(|entry| scalars(&entry.node, spans)),
        _ => spans.push(node.span),
    }
}

/// The lines of a range without their indentation: each may occur elsewhere.
fn lines(text: &str, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let lines = text.get(range).unwrap_or_default().split('\n').map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| {
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        start..start + line.len()
    })
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
            let is_password = node.get("password").is_some_and(|it| it.value == Value::Bool(true));
            let named = node.get("name").and_then(Node::as_str).filter(|name| is_secret_name(name));
            for entry in entries {
                let name = match &*entry.key {
                    "default" if is_password => "password",
                    "value" if is_secret_name(name) => name,
                    "default" | "value" => named.unwrap_or(&entry.key),
                    key => key,
                };
                // A key may hold what it should not.
                let key = hidden_in("", &entry.key);
                key.into_iter().for_each(|range| hide(source.part(entry.key_span, &entry.key, range)));
                collect(source, name, &entry.node, hide);
            }
        }
        Value::Number(_) if is_secret_name(name) => hide(node.span),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The ranges in order, and joined where they overlap.
fn merge(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
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

/// What to hide of a value that is a secret: everything but references and placeholders. In order.
fn hidden_of(value: &str) -> Vec<Range<usize>> {
    let start = scheme(value);
    let text = &value[start..];
    if text.trim().is_empty() || WORDS.split(' ').any(|word| text.trim().eq_ignore_ascii_case(word)) {
        return Vec::new();
    }
    let has_some = |range: &Range<usize>| text[range.clone()].contains(char::is_alphanumeric);
    let mut gaps: Vec<_> =
        references(text).filter(Reference::is_clear).map(|it| it.range).chain(templates(text)).collect();
    gaps.sort_by_key(|gap| gap.start);
    let mut rest = outside(&gaps, text.len());
    // A dollar sign before a word may be part of a password.
    if !gaps.is_empty() && rest.iter().any(has_some) {
        gaps.retain(|gap| text[gap.clone()].ends_with('}'));
        rest = outside(&gaps, text.len());
    }
    if !gaps.is_empty() {
        rest.retain(has_some);
    }
    if let Some(gap) = marked(text).filter(|gap| !is_random(&text[gap.clone()])) {
        let around = rest.iter().flat_map(|part| text[part.clone()].char_indices().map(|(at, c)| (part.start + at, c)));
        if around.filter(|(at, c)| c.is_alphanumeric() && !gap.contains(at)).count() < FEW {
            rest.clear();
        }
    }
    let defaults = defaults(text).map(|(_, range)| range);
    rest.into_iter().chain(defaults).map(|range| start + range.start..start + range.end).collect()
}

/// Whether a string is hardly a placeholder.
fn is_random(text: &str) -> bool {
    let has = |of: fn(&u8) -> bool| text.as_bytes().iter().any(of);
    text.len() >= 16 && has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
}

/// The parts of a text of this length that are in no gap.
fn outside(gaps: &[Range<usize>], length: usize) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut rest = Vec::new();
    for gap in gaps {
        rest.push(at..gap.start.max(at));
        at = gap.end.max(at);
    }
    rest.push(at..length);
    rest.retain(|part| !part.is_empty());
    rest
}

/// `{{…}}`, which some programs replace.
fn templates(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find("{{")?;
        at = start + text[start..].find("}}")? + 2;
        Some(start..at)
    })
}

/// The defaults in references, also in forms that no program has: the name of the variable, and where the value is.
fn defaults(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    references(text).filter_map(|reference| {
        let end = reference.range.end - 1;
        let (name, length) = match (reference.default, reference.form) {
            (Some(default), _) => (reference.name, default.len()),
            (None, Form::Braced | Form::Env) => {
                let name = reference.variable();
                let rest = &reference.name[name.len()..];
                let is_constant = !name.contains(|c: char| c.is_ascii_lowercase());
                // A shell's message for a variable that is not set is no value.
                let is_message = rest.trim_start_matches(':').starts_with('?');
                let rest = rest.trim_start_matches([':', '-', '=', '+']);
                (name, if is_constant && !is_message { rest.len() } else { 0 })
            }
            _ => return None,
        };
        let default = end - length..end;
        (length > 0 && &text[default.clone()] != NO_DEFAULT).then_some((name, default))
    })
}

/// Whether it deserves a warning: no placeholder, no file name, no small number, no word beside a reference.
fn is_likely(value: &str, range: &Range<usize>) -> bool {
    let text = value[range.clone()].trim();
    let is_path = text.starts_with(['/', '~', '.']) && text.len() < 200;
    let is_elsewhere = ELSEWHERE.split(' ').any(|begin| text.starts_with(begin)) || is_variable(text);
    let is_file = is_of_windows(text) || text.rfind('.').is_some_and(|dot| FILES.contains(&&text[dot..]));
    let is_plain = PLAIN.split(' ').any(|plain| plain == text.to_ascii_lowercase().trim_end_matches('1'));
    let is_url = text.contains("://") && hidden_in("", text).is_empty() && !text.split('/').any(is_token);
    let is_beside = value[..range.start].ends_with('}') || value[range.end..].starts_with(['$', '{']);
    let has = |of: fn(&u8) -> bool| text.as_bytes().iter().any(of);
    let is_word = !(has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)) || text.contains(char::is_whitespace);
    // The argument of a reference with a kind: `${cmd:cat token}`.
    let is_of_kind = value[..range.start].contains("${") && value[range.end..].starts_with('}') && text.contains(':')
        || range.start == 0 && text.starts_with("${") && text.ends_with('}');
    text.len() >= 6
        && !(is_path || is_file || is_plain || is_url || is_elsewhere || is_of_kind)
        && (text.len() >= 8 || text.parse::<f64>().is_err())
        && !(is_beside && (text.len() < 8 || is_word))
        && placeholder(text).is_none()
}

/// Whether a string is hardly anything but the name of a variable: `COPILOT_MCP_TOKEN`.
fn is_variable(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    text.contains('_') && text.starts_with(|c: char| c.is_ascii_uppercase()) && text.bytes().all(is_part)
}
