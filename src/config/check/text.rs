//! What can be wrong with any text: secrets, what was not filled in, what nobody sees, what was meant to be around it.

use std::ops::Range;

use super::Subject;
use crate::config::{
    Span,
    dialect::Field,
    finding::{Finding, codes},
    json::is_invisible,
    placeholder::placeholder,
    secret::{is_secret_name, secrets_in, secrets_in_argument},
    server::{ServerConfig, Text},
};

pub(super) fn check(subject: &Subject<'_>, server: &ServerConfig, findings: &mut Vec<Finding>) {
    for text in server.texts() {
        secrets(subject, text, findings);
        let is_replaced = |range: &Range<usize>| {
            let replaced = subject.dialect().rule(text.field).replaced_in(&text.at.value);
            replaced.iter().any(|it| it.start <= range.start && range.end <= it.end)
        };
        let is_own_name = text.field == Field::Env && text.name == text.at.value && is_secret_name(text.name);
        let whole = is_own_name.then_some(0..text.at.value.len());
        // What stands behind such a flag is the name of a variable.
        let is_name = text.field == Field::Args && text.name.ends_with("-env");
        let found = whole.or_else(|| placeholder(&text.at.value)).filter(|range| !is_name && !is_replaced(range));
        if let Some(range) = found {
            let message = "this looks as if somebody were to fill it in";
            let hint = "write what belongs there";
            findings.push(codes::PLACEHOLDER.at(subject.part(text, range), message).hint(hint));
        }
        invisible(subject, &text.at.value, text.at.span, findings);
        around(subject, text, findings);
    }
    let names = server.env.iter().chain(&server.headers).map(|pair| &pair.name).chain([&server.name]);
    let tools = [&server.tools.include, &server.tools.exclude].into_iter().flatten().flat_map(|list| &list.value);
    for name in names.chain(tools).chain(&server.approval.always_allow) {
        invisible(subject, &name.value, name.span, findings);
    }
}

fn secrets(subject: &Subject<'_>, text: Text<'_>, findings: &mut Vec<Finding>) {
    let secrets = match text.field {
        Field::Args => secrets_in_argument(text.name, &text.at.value),
        _ => secrets_in(text.name, &text.at.value),
    };
    if secrets.is_empty() {
        return;
    }
    let rule = subject.dialect().rule(text.field);
    let is_replaced = rule.holds_in(text.field);
    let variable = if text.field == Field::Env { text.name } else { "NAME" };
    let hint = match rule.forms.iter().find(|_| is_replaced) {
        Some(form) => format!("keep it in a variable and write {}", form.written(variable)),
        None => format!("{} knows no variables here: keep the file to yourself", subject.dialect().program),
    };
    for range in secrets {
        let finding = codes::SECRET
            .at(subject.part(text, range), "this looks like a secret that everyone with the file can read");
        findings.push(finding.hint(hint.clone()));
    }
}

/// Blanks around a text, and characters that look like blanks or like nothing.
fn invisible(subject: &Subject<'_>, value: &str, span: Span, findings: &mut Vec<Finding>) {
    let bytes = value.as_bytes();
    if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) && bytes.trim_ascii().len() == bytes.len() {
        return;
    }
    let is_odd = |(at, c): &(usize, char)| {
        (is_invisible(*c) && !is_joiner(value, *at, *c))
            || (c.is_whitespace() && !c.is_ascii())
            || (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
    };
    // A line that goes on in the next has been told.
    let is_broken = || {
        let written = subject.source.text.get(span.start..span.end);
        written.is_some_and(|text| text.starts_with('"') && text.contains('\n'))
    };
    let is_code = value.ends_with('\n') && value.trim_end().contains(char::is_whitespace);
    if let Some((at, odd)) = value.char_indices().find(is_odd) {
        let place = subject.source.part(span, value, at..at + odd.len_utf8());
        let message = format!("the text has a character that nobody sees (U+{:04X})", u32::from(odd));
        findings.push(codes::INVISIBLE.at(place, message).hint("remove it, or type an ordinary blank"));
    } else if let Some(dash) = value.chars().next().filter(|c| is_dash(*c))
        && begins_option(subject, value, span, dash)
    {
        let place = subject.source.part(span, value, 0..dash.len_utf8());
        let message = format!("this dash is not the one of the keyboard (U+{:04X})", u32::from(dash));
        findings.push(codes::INVISIBLE.at(place, message).hint("type `-` or `--`"));
    } else if let Some(mark) = mark_of_block(subject, value, span) {
        let is_one_line = value.trim_end().lines().nth(1).is_none();
        let finding = codes::INVISIBLE.at(mark, "the line break at its end is part of the text");
        findings.extend(is_one_line.then(|| finding.hint("add a `-` to this, which leaves it out")));
    } else if !value.trim().is_empty() && value.trim().len() < value.len() && !is_code && !is_broken() {
        let side = if value.trim_start().len() < value.len() { "before" } else { "after" };
        let message = format!("there is a blank {side} the text, which is part of it");
        findings.push(codes::INVISIBLE.at(span, message).hint("remove it"));
    }
}

/// Whether such a dash stands where an option begins, or is typed in the place of `--`.
fn begins_option(subject: &Subject<'_>, value: &str, span: Span, dash: char) -> bool {
    let rest = &value[dash.len_utf8()..];
    let is_typed = || subject.source.text.get(span.start..span.end).is_some_and(|written| written.contains(dash));
    match rest.chars().next() {
        None => is_typed(),
        Some(next) => (next.is_ascii_alphanumeric() || is_dash(next)) && !rest.contains(char::is_whitespace),
    }
}

/// Whether this joins or directs letters that need it: of emojis, of scripts that are written from the right.
fn is_joiner(value: &str, at: usize, c: char) -> bool {
    let is_other = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_invisible(c));
    matches!(c, '\u{200c}'..='\u{200f}')
        && (is_other(value[..at].chars().next_back()) || is_other(value[at + c.len_utf8()..].chars().next()))
}

/// Whether this is a dash that text processors put in the place of one or two.
fn is_dash(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2015}' | '\u{2212}')
}

/// The `|` or `>` before a text that has only a line break too much.
fn mark_of_block(subject: &Subject<'_>, value: &str, span: Span) -> Option<Span> {
    let is_block = value.strip_suffix('\n').is_some_and(|text| text.trim().len() == text.len());
    let before = subject.source.text.get(..span.start)?.trim_end();
    let end = before.len();
    (is_block && before.ends_with(['|', '>'])).then(|| Span { start: end - 1, end })
}

/// What YAML takes for a part of a text without quotes: a comma after it, quotes that are none, items below it.
fn around(subject: &Subject<'_>, text: Text<'_>, findings: &mut Vec<Finding>) {
    let (value, Span { start, end }) = (&*text.at.value, text.at.span);
    let Some(written) = subject.source.text.get(start..end) else { return };
    if written != value {
        let is_plain = !written.starts_with(['"', '\'']) && !is_in_block(&subject.source.text[..start]);
        let item = is_plain.then(|| swallowed(written, text.field == Field::Args)).flatten();
        findings.extend(item.map(|(at, hint)| {
            let item = Span { start: start + at, end: start + at + 1 };
            codes::YAML_FORM.at(item, "in YAML this is a part of the text that begins above").hint(hint)
        }));
    } else if value.starts_with(['“', '”', '‘', '’']) && value.ends_with(['“', '”', '‘', '’']) {
        let message = "typographic quotes are no quotes, but a part of the text";
        findings.push(codes::YAML_FORM.at(text.at.span, message).hint("use straight quotes"));
    } else if let Some(quote) = value.chars().next_back().filter(|end| is_lone_quote(value, *end)) {
        let message = format!("in YAML this `{quote}` is a part of the text");
        let hint = "remove it, or put one before the text as well";
        findings.push(codes::YAML_FORM.at(Span { start: end - 1, end }, message).hint(hint));
    } else if value.ends_with(',') {
        let comma = Span { start: end - 1, end };
        let message = "in YAML this comma is a part of the text";
        let hint = "remove it, or put the text into quotes with it";
        findings.push(codes::YAML_FORM.at(comma, message).hint(hint));
    }
}

/// Whether what comes behind this belongs to a text after `|` or `>`.
fn is_in_block(before: &str) -> bool {
    let is_sign = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+');
    before.trim_end().trim_end_matches(is_sign).ends_with(['|', '>'])
}

/// Where a line of a text over several is likely an item of a list, and what to do.
fn swallowed(written: &str, is_item: bool) -> Option<(usize, &'static str)> {
    let place = |line: &str| line.as_ptr() as usize - written.as_ptr() as usize;
    let mut below = written.lines().skip(1).map(str::trim).filter(|line| !line.is_empty());
    let dash = below.clone().find(|line| line.starts_with("- ")).map(place);
    if let Some(dash) = dash {
        let hint = if is_item { "indent it as far as the `-` above" } else { "put the whole text into quotes" };
        return Some((dash, hint));
    }
    let is_word = |line: &str| !line.trim().contains(char::is_whitespace);
    let next = below.next().filter(|_| is_item && written.lines().all(is_word)).map(place)?;
    Some((next, "put a `-` before it, or quotes around the whole text"))
}

/// Whether a text of one word ends with the only quote in it.
fn is_lone_quote(value: &str, end: char) -> bool {
    matches!(end, '"' | '\'') && !value.contains(char::is_whitespace) && value.matches(end).count() == 1
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Source, examine};

    #[test]
    fn the_line_break_of_a_block_is_told_where_it_can_be_left_out() {
        for (block, expected) in [
            ("|\n        b", Some("|")),
            (">\n        b", Some(">")),
            ("|-\n        b", None),
            ("|\n        b\n        c", None),
        ] {
            let text = format!("mcpServers:\n  s:\n    type: stdio\n    command: x\n    env:\n      A: {block}\n");
            let examined = examine(&Source::new("cpe.yaml", text.clone()), Some(Path::new("cpe.yaml")), None, None);
            let told: Vec<_> = examined
                .findings
                .iter()
                .map(|it| (it.code, &text[it.problem.span.start..it.problem.span.end]))
                .collect();
            assert_eq!(told, expected.map(|mark| (&codes::INVISIBLE, mark)).into_iter().collect::<Vec<_>>(), "{block}");
        }
    }

    #[test]
    fn what_belongs_to_a_text_is_no_blank_too_much() {
        for (server, expected) in [
            (r#""args": ["-c", "import a\nprint(a)\n"]"#, vec![]),
            (r#""args": ["x\n"]"#, vec!["W-INVISIBLE"]),
            ("\"args\": [\"x\n\"]", vec!["E-JSON-FORM"]),
            ("\"args\": [\"\u{1f469}\u{200d}\u{1f4bb}\", \"\u{645}\u{200c}\u{6cc}\"]", vec![]),
            ("\"args\": [\"a\u{200d}b\", \"a\u{200d}\u{200d}b\"]", vec!["W-INVISIBLE", "W-INVISIBLE"]),
            (r#""args": ["\u2014", "--api-key-env", "YOUR_TOKEN"]"#, vec![]),
            (r#""args": ["—", "x"]"#, vec!["W-INVISIBLE"]),
            (r#""args": ["--api-key", "YOUR_TOKEN"]"#, vec!["W-PLACEHOLDER"]),
            (r#""env": {"A": "b", "A_TOKEN\"": "c"}"#, vec!["W-ENV-NAME"]),
        ] {
            let text = format!(r#"{{"mcpServers": {{"s": {{"command": "x", {server}}}}}}}"#);
            let examined = examine(&Source::new(".mcp.json", text), Some(Path::new(".mcp.json")), None, None);
            let told: Vec<_> = examined.findings.iter().map(|it| it.code.name).collect();
            assert_eq!(told, expected, "{server}");
        }
    }

    #[test]
    fn what_yaml_takes_for_a_part_of_a_text_is_told_at_its_place() {
        for (args, expected) in [
            ("\n      - -y,\n      - b", Some(",")),
            ("[“-y”, b]", Some("“-y”")),
            ("\n      - ‘-y’", Some("‘-y’")),
            ("\n      - -y\n      - b\"", Some("\"")),
            ("[b', c]", Some("'")),
            ("\n      - say \"b\"", None),
            ("[-y, b]", None),
            ("[\"-y,\", '“b”']", None),
            ("\n      - a “b”", None),
            ("\n      - b\n        - c d\n      - e", Some("-")),
            ("\n      - b\n       - c d", Some("-")),
            ("\n      - b\n        c\n      - d", Some("c")),
            ("\n      - b\n        cc\n      - d", Some("c")),
            ("\n      - a b\n        c", None),
            ("\n      - 'b\n        c'", None),
            ("\n      - >-\n        b\n        c", None),
            ("\n      - |\n        b\n        - c\n        d", None),
        ] {
            let text = format!("mcpServers:\n  s:\n    type: stdio\n    command: x\n    args: {args}\n");
            let examined = examine(&Source::new("cpe.yaml", text.clone()), Some(Path::new("cpe.yaml")), None, None);
            let told: Vec<_> = examined.findings.iter().map(|it| (it.code, it.problem.span)).collect();
            let told: Vec<_> = told.into_iter().map(|(code, span)| (code, &text[span.start..span.end])).collect();
            assert_eq!(told, expected.map(|part| (&codes::YAML_FORM, part)).into_iter().collect::<Vec<_>>(), "{args}");
        }
    }
}
