//! Keys, texts, numbers and words.

use super::{
    Liberty, LibertyKind,
    quote::{Slip, WINDOW},
    reader::Reader,
};
use crate::config::{Node, Problem, Problems, Span, Value};

/// Words of other languages for what JSON has not, or writes otherwise; and the colon or quote after which nothing stands.
const NOTHINGS: [&str; 10] =
    [":", "\"", "undefined", "None", "nil", "NaN", "Infinity", "+Infinity", "-Infinity", "-NaN"];

/// Whether this stands for a value that JSON does not have: it is read as null, and may have been meant as anything.
pub(in crate::config) fn is_nothing(word: &str) -> bool {
    NOTHINGS.contains(&word)
}

/// A value that is neither an object nor a list.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<Node, Problems> {
    let start = reader.at;
    let value = match reader.peek() {
        // Three of them begin a fence of Markdown.
        Some('`') if reader.is_at_root() => return Err(Problem::new(reader.here(), "this is no value").into()),
        Some(quote) if closing(quote).is_some() => Value::String(text(reader, quote, false)?),
        Some(_) if let Some(text) = unbegun(reader, false) => Value::String(text),
        Some('0'..='9' | '-' | '+' | '.') => match number(reader) {
            Some(number) => Value::Number(number),
            None => bare(reader, start, "this is no number")?,
        },
        Some(character) if is_word(character) => match word(reader) {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ => bare(reader, start, "this is no value")?,
        },
        Some(_) if is_bare_start(reader.rest()) => bare(reader, start, "this is no value")?,
        Some(character) => {
            return Err(Problem::new(reader.here(), format!("a value was expected, found `{character}`")).into());
        }
        None => return Err(Problem::new(reader.here(), "a value was expected, found the end").into()),
    };
    Ok(Node { span: Span { start, end: reader.at }, value })
}

/// A value without quotes that is none of JSON, of which the first word has been passed. It may end where a value may.
fn bare(reader: &mut Reader<'_>, start: usize, what: &'static str) -> Result<Value, Problems> {
    let word = Span { start, end: reader.at };
    reader.at = start;
    let text = bare_text(reader.rest());
    let Some(text) = text.filter(|_| !reader.is_at_root()) else {
        let is_known = is_nothing(&reader.text[start..word.end]) || named(&reader.text[start..word.end]).is_some();
        let hint = if is_known { "JSON has true, false and null" } else { "put a text into double quotes" };
        return Err(Problem::new(word, what).hint(hint).into());
    };
    let value = match named(text) {
        Some(value) => value,
        None if is_nothing(text) => Value::Null,
        None => Value::String(text.to_owned()),
    };
    reader.at += text.len();
    reader.note(LibertyKind::BareValue, start);
    Ok(value)
}

/// Whether a text without quotes may begin so, though no word does: a path, a package, what stands for a value.
fn is_bare_start(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(['@', '/', '~', '<']) else { return false };
    rest.starts_with(|next: char| next.is_alphanumeric() || matches!(next, '.' | '/'))
}

/// What is meant by a word of JSON that is written as another language does.
pub(super) fn named(word: &str) -> Option<Value> {
    Some(match word {
        "True" | "TRUE" => Value::Bool(true),
        "False" | "FALSE" => Value::Bool(false),
        "Null" | "NULL" => Value::Null,
        _ => return None,
    })
}

/// The text without quotes that another begins with, if something follows that may follow a value.
fn bare_text(rest: &str) -> Option<&str> {
    let mut end = 0;
    loop {
        end += rest[end..].find([',', '{', '}', '[', ']', '"', '\n', '\r']).unwrap_or(rest.len() - end);
        // The braces of a reference.
        let is_reference = rest[..end].ends_with('$') && rest[end..].starts_with('{');
        match is_reference.then(|| rest[end..].find(['}', '\n'])).flatten() {
            Some(length) if rest[end + length..].starts_with('}') => end += length + 1,
            _ => break,
        }
    }
    let text = &rest[..end];
    let text =
        [" //", " /*", " #"].iter().fold(text, |text, comment| &text[..text.find(comment).unwrap_or(text.len())]);
    let is_cut = text.len() < end;
    let text = text.trim_end();
    let is_end = is_cut || !rest[end..].starts_with(['{', '[', '"']);
    // What ends with a colon is a key, of which nobody knows the value.
    let is_key = text.ends_with(':');
    let is_apart = text.len() < end && rest[end..].starts_with('"');
    ((is_end || is_apart) && !is_key).then_some(text)
}

/// A text without the quote before it, if the line reads as JSON with one.
fn unbegun(reader: &mut Reader<'_>, is_key: bool) -> Option<String> {
    let (start, rest) = (reader.at, reader.rest());
    let rest = &rest[..rest.floor_char_boundary(WINDOW)];
    let text = &rest[..rest.find([',', '"', '[', ']', '\n', '\r']).unwrap_or(rest.len())];
    let is_text = !text.is_empty() && !text.ends_with([' ', '\t']) && rest[text.len()..].starts_with('"');
    let end = text.len() + 1;
    let text = is_text.then(|| text.to_owned())?;
    reader.of_line(start, is_key, |line| line.reads_from(end).then_some(()))?;
    reader.at += end;
    reader.note(LibertyKind::UnbegunText, start);
    Some(text)
}

/// The key of an object.
pub(super) fn key(reader: &mut Reader<'_>) -> Result<(String, Span), Problems> {
    let start = reader.at;
    let key = match reader.peek() {
        Some(quote) if closing(quote).is_some() => text(reader, quote, true)?,
        Some(_) if let Some(text) = unbegun(reader, true) => text,
        Some(character) if is_word(character) => {
            let word = word(reader).to_owned();
            reader.note(LibertyKind::BareKey, start);
            word
        }
        _ => {
            let found = reader.peek().map_or("the end".to_owned(), |character| format!("`{character}`"));
            let problem = Problem::new(reader.here(), format!("a key was expected, found {found}"));
            return Err(problem.hint("put keys into double quotes").into());
        }
    };
    Ok((key, Span { start, end: reader.at }))
}

/// How long a reference is that stands at the beginning of a text without quotes. No JSON5 looks like one.
pub(super) fn bare_reference(text: &str) -> Option<usize> {
    let prefix = ["{env:", "{file:"].into_iter().find(|prefix| text.starts_with(prefix))?;
    let ends = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | '[' | ']' | ',' | ':' | '"' | '\'');
    let name = &text[prefix.len()..];
    let name = &name[..name.find(ends).filter(|end| name[*end..].starts_with('}'))?];
    let is_number =
        name.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-')) || name.parse::<f64>().is_ok();
    let is_value = name.is_empty() || is_number || matches!(name, "null" | "true" | "false");
    (!is_value).then_some(prefix.len() + name.len() + 1)
}

/// What closes a text that begins so.
fn closing(quote: char) -> Option<&'static [char]> {
    Some(match quote {
        '"' => &['"'],
        '\'' => &['\''],
        '`' => &['`'],
        '\u{201c}' | '\u{201d}' | '\u{201e}' => &['\u{201c}', '\u{201d}'],
        '\u{2018}' | '\u{2019}' => &['\u{2018}', '\u{2019}'],
        _ => return None,
    })
}

fn is_curly(quote: char) -> bool {
    matches!(quote, '\u{201c}' | '\u{201d}')
}

/// Whether the line has a straight quote and none of those that close what began otherwise.
fn is_ended_straight(rest: &str, close: &[char]) -> bool {
    let line = rest[..rest.floor_char_boundary(WINDOW)].lines().next().unwrap_or_default();
    line.contains('"') && !line.contains(close)
}

fn is_word(character: char) -> bool {
    character.is_alphabetic() || matches!(character, '_' | '$')
}

fn word<'t>(reader: &mut Reader<'t>) -> &'t str {
    let start = reader.at;
    let ends = |character: char| !(character.is_alphanumeric() || matches!(character, '_' | '$' | '-' | '.'));
    reader.at += reader.rest().find(ends).unwrap_or(reader.rest().len());
    &reader.text[start..reader.at]
}

fn text(reader: &mut Reader<'_>, quote: char, is_key: bool) -> Result<String, Problems> {
    let start = reader.at;
    reader.at += quote.len_utf8();
    let close = closing(quote).unwrap_or_default();
    let is_mixed = matches!(quote, '\'' | '\u{201c}' | '\u{201d}') && is_ended_straight(reader.rest(), close);
    let close = if is_mixed { &['"'] } else { close };
    let mut text = String::new();
    let known = reader.liberties.len();
    let (mut first_control, mut goes_on_below) = (None, None);
    loop {
        let plain = reader.rest().find(|next: char| next == '\\' || next < ' ' || close.contains(&next));
        let Some(plain) = plain else {
            let opening = Span { start, end: start + quote.len_utf8() };
            let problem = Problem::new(opening, "a text without an end");
            let error = || problem.hint("a double quote is missing after this one").into();
            return mended(reader, start, None, is_key).ok_or_else(error);
        };
        text.push_str(&reader.rest()[..plain]);
        reader.at += plain;
        let next = reader.peek().unwrap_or_default();
        if close.contains(&next) {
            reader.at += next.len_utf8();
            break;
        }
        if next == '\\' {
            escape(reader, &mut text);
            continue;
        }
        // A line that ends before the text does is nearly always a quote that is missing.
        let is_break = matches!(next, '\n' | '\r');
        if is_break && !*goes_on_below.get_or_insert_with(|| goes_on(reader, close)) {
            return mended(reader, start, None, is_key).ok_or_else(|| line_without_end(reader, start));
        }
        first_control.get_or_insert(reader.at);
        text.push(next);
        reader.at += next.len_utf8();
    }
    if reader.liberties.len() > known + 1 {
        // Whoever forgets one backslash forgets all.
        let mut is_told = false;
        let later = reader.liberties.split_off(known);
        let is_new = |it: &Liberty| it.kind != LibertyKind::UnknownEscape || !std::mem::replace(&mut is_told, true);
        reader.liberties.extend(later.into_iter().filter(is_new));
    }
    if let Some(at) = first_control {
        let end = std::mem::replace(&mut reader.at, at);
        reader.note(LibertyKind::ControlCharacter, at);
        reader.at = end;
    }
    // What follows may belong to the text.
    let is_suspect = |next: char| !next.is_whitespace() && !matches!(next, ':' | ',' | '}' | ']');
    if reader.peek().is_some_and(is_suspect)
        && let Some(text) = mended(reader, start, Some(reader.at - start), is_key)
    {
        return Ok(text);
    }
    match quote {
        '"' => {}
        '`' => reader.note(LibertyKind::Backticks, start),
        '\'' if is_mixed => reader.note(LibertyKind::MixedQuotes, start),
        '\'' => reader.note(LibertyKind::SingleQuotes, start),
        _ => reader.note(LibertyKind::CurlyQuotes, start),
    }
    Ok(text)
}

/// The text at `start` as it is meant if its quotes do not fit its line; `end` is where it seems to end.
fn mended(reader: &mut Reader<'_>, start: usize, end: Option<usize>, is_key: bool) -> Option<String> {
    let is_straight = reader.text[start..].starts_with('"');
    let slip = is_straight.then(|| reader.of_line(start, is_key, |line| line.slip(end))).flatten()?;
    let (kind, span, text) = match slip {
        Slip::Missing(end) => (LibertyKind::UnendedText, 0..end, 1..end),
        Slip::Doubled { at, end } => {
            (LibertyKind::SurplusQuote, at..at + 1, if at == 0 { 2..end - 1 } else { 1..end - 1 })
        }
        Slip::Inner { first, last, end } => (LibertyKind::InnerQuotes, first..last + 1, 1..end - 1),
    };
    let text = &reader.text[start + text.start..start + text.end];
    let (kind, text) = match text.strip_suffix('\'') {
        Some(text) if !text.contains('\'') => (LibertyKind::MixedQuotes, text),
        _ if text.ends_with(is_curly) => (LibertyKind::CurlyQuotes, text.trim_end_matches(is_curly)),
        _ => (kind, text),
    };
    let text = text.to_owned();
    reader.go_back(start);
    reader.at = start
        + match slip {
            Slip::Missing(end) | Slip::Inner { end, .. } => end,
            Slip::Doubled { at, end } => end + usize::from(at > 0),
        };
    let span = Span { start: start + span.start, end: start + span.end };
    let other = (kind == LibertyKind::UnendedText).then(|| reader.here());
    reader.liberties.push(Liberty { kind, span, other });
    Some(text)
}

/// What to say of a text at `start` that its line does not end, which ends here.
fn line_without_end(reader: &Reader<'_>, start: usize) -> Problems {
    let line = &reader.text[start..reader.at];
    let text = line.trim_end_matches([',', ']', '}', ' ', '\t']);
    let delimiter = line[text.len()..].trim_start().chars().next().filter(|_| text.len() > 1);
    let hint = match delimiter {
        Some(delimiter) => format!("a double quote is missing before the `{delimiter}` at the end of the line"),
        None => "a double quote is missing at the end of the line; a newline is written \\n".into(),
    };
    Problem::new(Span { start, end: reader.at }, "a text that its line does not end").hint(hint).into()
}

/// Whether the next lines look like more of a text: what follows its end is what may follow a text.
fn goes_on(reader: &Reader<'_>, close: &[char]) -> bool {
    let Some(end) = reader.rest().find(close) else { return false };
    let after = reader.rest()[end..].trim_start_matches(close).trim_start();
    after.is_empty() || after.starts_with([',', '}', ']'])
}

fn escape(reader: &mut Reader<'_>, text: &mut String) {
    let start = reader.at;
    reader.at += 1;
    let Some(next) = reader.peek() else { return };
    reader.at += next.len_utf8();
    let escaped = match next {
        '"' | '\\' | '/' => next,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unicode(reader, start, text),
        '\'' => {
            reader.note(LibertyKind::TextForm, start);
            next
        }
        '\n' | '\r' => {
            if next == '\r' && reader.peek() == Some('\n') {
                reader.at += 1;
            }
            reader.note(LibertyKind::TextForm, start);
            return;
        }
        'x' => match reader.rest().get(..2).and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                reader.at += 2;
                reader.note(LibertyKind::TextForm, start);
                char::from_u32(code).unwrap_or_default()
            }
            None => return unknown_escape(reader, start, text),
        },
        _ => return unknown_escape(reader, start, text),
    };
    text.push(escaped);
}

/// What looks like an escape and is none is taken as it is written, as whoever forgot a backslash means it.
fn unknown_escape(reader: &mut Reader<'_>, start: usize, text: &mut String) {
    text.push_str(&reader.text[start..reader.at]);
    reader.note(LibertyKind::UnknownEscape, start);
}

fn unicode(reader: &mut Reader<'_>, start: usize, text: &mut String) {
    let digits = |at: usize| {
        let digits = reader.text.get(at..at + 4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        digits.and_then(|digits| u32::from_str_radix(digits, 16).ok())
    };
    let (first, at) = (digits(reader.at), reader.at);
    let second = match first {
        Some(0xd800..=0xdbff) if reader.text[at + 4..].starts_with("\\u") => digits(at + 6),
        _ => None,
    };
    let (code, length) = match (first, second) {
        (Some(high @ 0xd800..=0xdbff), Some(low @ 0xdc00..=0xdfff)) => {
            (0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00), 10)
        }
        (Some(code), _) => (code, 4),
        (None, _) => return unknown_escape(reader, start, text),
    };
    reader.at += length;
    // Half of a pair stands for nothing.
    text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
}

/// Whether this is a number of JSON (RFC 8259, 6), of whatever size.
fn is_json(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) =
        text.split_once(['e', 'E']).map_or((text, None), |(before, after)| (before, Some(after)));
    let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(before, after)| (before, Some(after)));
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

/// The text of a number as JSON writes it; `None` if it is none.
fn number(reader: &mut Reader<'_>) -> Option<String> {
    let start = reader.at;
    let ends = |character: char| !(character.is_alphanumeric() || matches!(character, '+' | '-' | '.' | '_'));
    reader.at += reader.rest().find(ends).unwrap_or(reader.rest().len());
    let written = &reader.text[start..reader.at];
    if is_json(written) {
        return Some(written.to_owned());
    }
    let (sign, digits) = match written.strip_prefix(['+', '-']) {
        Some(digits) if written.starts_with('-') => ("-", digits),
        Some(digits) => ("", digits),
        None => ("", written),
    };
    let hexadecimal = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let number = match hexadecimal.map(|digits| u64::from_str_radix(digits, 16)) {
        Some(Ok(number)) => format!("{sign}{number}"),
        Some(Err(_)) => String::new(),
        None => {
            let (mantissa, exponent) = digits.split_at(digits.find(['e', 'E']).unwrap_or(digits.len()));
            match mantissa.split_once('.') {
                Some(("", fraction)) => format!("{sign}0.{fraction}{exponent}"),
                Some((whole, "")) => format!("{sign}{whole}.0{exponent}"),
                _ => format!("{sign}{digits}"),
            }
        }
    };
    is_json(&number).then(|| {
        reader.note(LibertyKind::NumberForm, start);
        number
    })
}
