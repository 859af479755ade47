//! What can be wrong with any string: secrets, placeholders, invisible characters.

use std::ops::Range;

use super::CheckedConfig;
use crate::{
    ConfiguredServer, codes,
    dialect::Field,
    placeholder::placeholder,
    secret::{is_secret_name, secrets_in, secrets_in_argument},
    server::Text,
};
use rehearse_document::Span;
use rehearse_report::findings::Finding;

pub(super) fn check(checked: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    for text in server.texts() {
        check_secrets(checked, text, findings);
        let is_replaced = |range: &Range<usize>| {
            let replaced = checked.dialect().rule(text.field).replaced_in(&text.at.value);
            replaced.iter().any(|it| it.start <= range.start && range.end <= it.end)
        };
        // `"API_KEY": "API_KEY"`
        let is_own_name = text.field == Field::Env && text.name == text.at.value && is_secret_name(text.name);
        let whole = is_own_name.then_some(0..text.at.value.len());
        // The value of such an option is the name of a variable.
        let is_name = text.field == Field::Args && text.name.ends_with("-env");
        let found = whole.or_else(|| placeholder(&text.at.value)).filter(|range| !is_name && !is_replaced(range));
        if let Some(range) = found {
            let finding = codes::PLACEHOLDER.at(checked.part(text, range), "this looks like a placeholder");
            findings.push(finding.hint("write the real value"));
        }
        check_characters(checked, &text.at.value, text.at.span, findings);
    }
    let names = server.env.iter().chain(&server.headers).map(|pair| &pair.name).chain([&server.name]);
    let tools = [&server.tools.include, &server.tools.exclude].into_iter().flatten().flat_map(|list| &list.value);
    for name in names.chain(tools).chain(&server.approval.always_allow) {
        check_characters(checked, &name.value, name.span, findings);
    }
}

fn check_secrets(checked: &CheckedConfig<'_>, text: Text<'_>, findings: &mut Vec<Finding>) {
    let secrets = match text.field {
        Field::Args => secrets_in_argument(text.name, &text.at.value),
        _ => secrets_in(text.name, &text.at.value),
    };
    let rule = checked.dialect().rule(text.field);
    let variable = if text.field == Field::Env { text.name } else { "NAME" };
    for range in secrets {
        let message = "this looks like a secret, which everyone with the file can read";
        let finding = codes::SECRET.at(checked.part(text, range), message);
        findings.push(match rule.forms.iter().find(|_| rule.holds_in(text.field)) {
            Some(form) => finding.hint(format!("keep it in a variable and write {}", form.written(variable))),
            None => finding.hint("keep the file private: the program replaces no variables here"),
        });
    }
}

/// Spaces around a string, characters that look like a space or like nothing, and dashes of word processors.
fn check_characters(checked: &CheckedConfig<'_>, value: &str, span: Span, findings: &mut Vec<Finding>) {
    // `"C:\new"` has a line break in it.
    let is_path =
        matches!(value.as_bytes(), [drive, b':', b'\\' | b'/' | b'\x08'..=b'\r', ..] if drive.is_ascii_alphabetic());
    let path = if is_path { value.trim_end().len() } else { 0 };
    let is_odd = |(at, c): &(usize, char)| {
        (is_invisible(*c) && !is_joiner(value, *at, *c))
            || (c.is_whitespace() && !c.is_ascii())
            || (c.is_control() && (*at < path || !matches!(c, '\n' | '\r' | '\t')))
    };
    let is_option = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || is_dash(c));
    // A block of code or YAML ends with a line break.
    let is_block = value.ends_with('\n');
    let first = value.chars().next();
    if let Some((at, odd)) = value.char_indices().find(is_odd) {
        let place = checked.source.part(span, value, at..at + odd.len_utf8());
        let message = format!("an invisible character (U+{:04X})", u32::from(odd));
        let hint = match odd.is_control() && at < path {
            true => "write each backslash of the path twice",
            false => "remove it, or type an ordinary space",
        };
        findings.push(codes::INVISIBLE.at(place, message).hint(hint));
    } else if let Some(dash) = first.filter(|c| is_dash(*c) && is_option(&value[c.len_utf8()..])) {
        let place = checked.source.part(span, value, 0..dash.len_utf8());
        let message = format!("this dash (U+{:04X}) begins no option", u32::from(dash));
        findings.push(codes::INVISIBLE.at(place, message).hint("type `-` or `--`"));
    } else if !value.trim().is_empty() && value.trim().len() < value.len() && !is_block {
        let side = if value.trim_start().len() < value.len() { "before" } else { "after" };
        let finding = codes::INVISIBLE.at(span, format!("a space {side} the value is part of it"));
        findings.push(finding.hint("remove it"));
    }
}

/// Marks of order, joiners, soft hyphens.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Whether this joins or directs letters that need it: of emojis, of scripts that are written from the right.
fn is_joiner(value: &str, at: usize, c: char) -> bool {
    let is_other = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_invisible(c));
    matches!(c, '\u{200c}'..='\u{200f}')
        && (is_other(value[..at].chars().next_back()) || is_other(value[at + c.len_utf8()..].chars().next()))
}

fn is_dash(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2015}' | '\u{2212}')
}
