//! What of a secret value is to be hidden: everything but references to variables, and what is obviously no secret.

use std::ops::Range;

use super::token::scheme;
use crate::config::{Form, Reference, lookalike::lookalikes_in, placeholder::marked, references};

/// Words that people write where a secret might stand.
const WORDS: [&str; 9] = ["true", "false", "null", "none", "undefined", "bearer", "basic", "oauth", "token"];

/// What hints write in the place of a value.
const NO_DEFAULT: &str = "default";

/// With fewer letters and digits around it, it is what somebody is to fill in that counts.
const FEW: usize = 6;

/// What is to be hidden of a value that is a secret, in order.
pub(super) fn hidden_of(value: &str) -> Vec<Range<usize>> {
    let start = scheme(value);
    let text = &value[start..];
    let trimmed = text.trim();
    if trimmed.is_empty() || WORDS.iter().any(|word| trimmed.eq_ignore_ascii_case(word)) {
        return Vec::new();
    }
    let is_part = |c: char| c.is_alphanumeric();
    let has_some = |range: &Range<usize>| text[range.clone()].contains(is_part);
    let mut gaps: Vec<_> =
        references(text).filter(Reference::is_clear).map(|it| it.range).chain(templates(text)).collect();
    if gaps.is_empty() {
        gaps.extend(lookalikes_in(text).filter(|(_, name)| is_of_words(name)).map(|(range, _)| range));
    }
    gaps.sort_by_key(|gap| gap.start);
    let mut rest = between(&gaps, text.len());
    // A dollar sign before a word may be part of a password.
    if !gaps.is_empty() && rest.iter().any(has_some) {
        gaps.retain(|gap| text[gap.clone()].ends_with('}'));
        rest = between(&gaps, text.len());
    }
    if !gaps.is_empty() {
        rest.retain(has_some);
    }
    if let Some(gap) = marked(text).filter(|gap| !is_random(&text[gap.clone()])) {
        let around = rest.iter().flat_map(|part| text[part.clone()].char_indices().map(|(at, c)| (part.start + at, c)));
        if around.filter(|(at, c)| is_part(*c) && !gap.contains(at)).count() < FEW {
            rest.clear();
        }
    }
    let defaults = defaults(text).map(|(_, range)| range);
    rest.into_iter().chain(defaults).map(|range| start + range.start..start + range.end).collect()
}

/// Whether a name is written as those of variables are, and as hardly any token is.
fn is_of_words(name: &str) -> bool {
    let count = |of: fn(&u8) -> bool| name.bytes().filter(of).count();
    let (upper, lower, digits) =
        (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase), count(u8::is_ascii_digit));
    let is_known = upper + lower + digits + count(|byte| *byte == b'_') == name.len();
    is_known && (lower == 0 || upper == 0 && name.contains('_')) && digits * 4 <= name.len()
}

/// Whether nobody would type it as an example.
fn is_random(text: &str) -> bool {
    let has = |of: fn(&u8) -> bool| text.as_bytes().iter().any(of);
    text.len() >= 16 && has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
}

/// What is left of a text of this length.
fn between(gaps: &[Range<usize>], length: usize) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut rest: Vec<_> = Vec::with_capacity(gaps.len() + 1);
    for gap in gaps {
        rest.push(at..gap.start.max(at));
        at = gap.end.max(at);
    }
    rest.push(at..length);
    rest.retain(|part| !part.is_empty());
    rest
}

/// `{{…}}`, which some programs fill in.
fn templates(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find("{{")?;
        let length = text[start..].find("}}")? + 2;
        at = start + length;
        Some(start..at)
    })
}

/// The values in references that stand for a missing variable, or that somebody took for such: the name of the variable,
/// and where the value is.
pub(super) fn defaults(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    references(text).filter_map(|reference| {
        // What stands there ends before the brace.
        let end = reference.range.end - 1;
        let (name, length) = match (reference.default, reference.form) {
            (Some(default), _) => (reference.name, default.len()),
            (None, Form::Braced | Form::Env) => {
                let name = reference.variable();
                let is_shouted = !name.contains(|c: char| c.is_ascii_lowercase());
                let rest = &reference.name[name.len()..];
                // What a shell says of a variable that is not set is no value.
                let is_said = rest.trim_start_matches(':').starts_with('?');
                let rest = rest.trim_start_matches([':', '-', '=', '+']);
                (name, if is_shouted && !is_said { rest.len() } else { 0 })
            }
            _ => return None,
        };
        let default = end - length..end;
        (length > 0 && &text[default.clone()] != NO_DEFAULT).then_some((name, default))
    })
}
