//! Paths of Windows whose backslashes are escapes: `"C:\new"` has a line break in it.

use super::Subject;
use crate::config::{
    Span,
    finding::{Finding, codes},
    server::{At, ServerConfig},
};

/// The letters that a backslash makes another character of, in JSON or YAML; what they become.
const ESCAPES: &[(char, char, &str)] = &[
    ('b', '\u{8}', "a backspace"),
    ('f', '\u{c}', "a form feed"),
    ('n', '\n', "a line break"),
    ('r', '\r', "a carriage return"),
    ('t', '\t', "a tab"),
    ('0', '\0', "a null character"),
    ('a', '\u{7}', "a bell"),
    ('e', '\u{1b}', "an escape character"),
    ('v', '\u{b}', "a vertical tab"),
    ('_', '\u{a0}', "a no-break space"),
    ('L', '\u{2028}', "a line separator"),
    ('N', '\u{85}', "a line break"),
    ('P', '\u{2029}', "a paragraph separator"),
];

/// Tells of such paths in place of whatever was said of them since `before`, for they are other texts than they look
/// like. What they hide of secrets is told all the same.
pub(super) fn check(subject: &Subject<'_>, server: &ServerConfig, before: usize, findings: &mut Vec<Finding>) {
    let paths = server.texts().map(|text| text.at).filter(|at| is_path(&at.value));
    let mut told: Vec<_> = paths.filter_map(|at| Some((at, first(subject, at)?))).collect();
    if told.is_empty() {
        return;
    }
    told.sort_by_key(|(path, _)| path.span.start);
    let is_inside = |span: Span| {
        let after = told.partition_point(|(path, _)| path.span.start <= span.start);
        after.checked_sub(1).is_some_and(|at| span.end <= told[at].0.span.end)
    };
    let others = findings.split_off(before);
    findings.extend(others.into_iter().filter(|it| it.code == &codes::SECRET || !is_inside(it.problem.span)));
    for (path, (place, what)) in told {
        let text = &subject.source.text;
        if has_unknown_escape(&text[path.span.start..path.span.end], &path.value) {
            continue;
        }
        let written = &text[place.start..place.end];
        let finding = codes::INVISIBLE.at(place, format!("`{written}` is {what}, and no part of a path"));
        findings.push(finding.hint("write each backslash twice, or `/`"));
    }
}

fn meaning(c: char) -> Option<&'static str> {
    ESCAPES.iter().find(|(_, meant, _)| *meant == c).map(|it| it.2)
}

/// Whether this is a path of Windows with such a character in it: behind a drive or two backslashes, or in one word that
/// begins as paths do or has a character that nobody types.
fn is_path(value: &str) -> bool {
    let Some(at) = value.find(|c| meaning(c).is_some()) else { return false };
    let begin = &value[..at];
    let word = begin.rsplit(['=', ' ']).next().unwrap_or_default();
    let has_drive = [begin, word].into_iter().any(|text| {
        let mut begin = text.chars();
        let is_drive = begin.next().is_some_and(|drive| drive.is_ascii_alphabetic()) && begin.next() == Some(':');
        is_drive && begin.next().is_none_or(|next| matches!(next, '\\' | '/'))
    });
    let is_relative = || word.starts_with(['%', '~', '.']) || word.starts_with("${");
    let has_odd = || value.contains(['\u{8}', '\u{c}', '\u{7}', '\u{b}']);
    has_drive || value.starts_with("\\\\") || (!value.contains(' ') && (is_relative() || has_odd()))
}

/// Where the first of these escapes is written, and what it stands for.
fn first(subject: &Subject<'_>, path: &At<String>) -> Option<(Span, &'static str)> {
    let written = subject.source.text.get(path.span.start..path.span.end)?;
    let mut at = 0;
    while let Some(length) = written.get(at..)?.find('\\') {
        at += length;
        let letter = written[at + 1..].chars().next()?;
        let escape = ESCAPES.iter().find(|(it, meant, _)| *it == letter && path.value.contains(*meant));
        if let Some((.., what)) = escape {
            let start = path.span.start + at;
            return Some((Span { start, end: start + 2 }, what));
        }
        at += 1 + letter.len_utf8();
    }
    None
}

/// Whether one of the backslashes makes no escape, which has been told: it was read as it is written.
fn has_unknown_escape(written: &str, value: &str) -> bool {
    value.matches('\\').count() > written.matches(r"\\").count()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::{Source, examine};

    #[test]
    fn a_path_with_single_backslashes_is_told_once_and_at_the_first_that_is_an_escape() {
        let args =
            |value: &str| format!("{{\"mcpServers\": {{\"s\": {{\"command\": \"node\", \"args\": [\"{value}\"]}}}}}}");
        let command = |value: &str| format!("{{\"mcpServers\": {{\"s\": {{\"command\": \"{value}\"}}}}}}");
        let yaml = |value: &str| format!("mcpServers:\n  s: {{type: stdio, command: {value}}}\n");
        for (name, text, expected) in [
            (".mcp.json", args(r"C:\new\table.js"), Some((r"\n", "a line break"))),
            (".mcp.json", args(r"C:\\temp\bot.js"), Some((r"\b", "a backspace"))),
            (".mcp.json", args(r"\\\\server\tools"), Some((r"\t", "a tab"))),
            (".mcp.json", command(r"C:\tools\node.exe"), Some((r"\t", "a tab"))),
            (".mcp.json", command(r"d:/apps\rust.exe"), Some((r"\r", "a carriage return"))),
            ("cpe.yaml", yaml(r#""C:\\Program Files\Node""#), Some((r"\N", "a line break"))),
            ("cpe.yaml", yaml(r"C:\new\table.exe"), None),
            (".mcp.json", args(r"--dir=C:\temp\new"), Some((r"\t", "a tab"))),
            (".mcp.json", args(r"%APPDATA%\npm\node.exe"), Some((r"\n", "a line break"))),
            (".mcp.json", args(r"src\new\bot.js"), Some((r"\n", "a line break"))),
            (".mcp.json", args(r"cd .\nls ${X}\nls"), None),
            (".mcp.json", args(r"C:\\new\\table.js"), None),
            (".mcp.json", args(r"C:\\Users\new"), Some((r"\n", "a line break"))),
            (".mcp.json", args(r"a:\u0062\nc"), None),
            (".mcp.json", args(r"one\ntwo"), None),
        ] {
            let source = Source::new(name, text.clone());
            let examined = examine(&source, Some(Path::new(name)), None, None);
            let found: Vec<_> = examined
                .findings
                .iter()
                .map(|it| (&text[it.problem.span.start..it.problem.span.end], it.problem.message.to_string()))
                .collect();
            let expected = expected.map(|(at, what)| (at, format!("`{at}` is {what}, and no part of a path")));
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn all_single_backslashes_of_a_text_are_one_finding() {
        for (path, at) in
            [(r"C:\Users\jane\Documents", r"\U"), (r"C:\new\Program\x", r"\P"), (r"C:\Program\new", r"\P")]
        {
            let text = format!("{{\"mcpServers\": {{\"s\": {{\"command\": \"node\", \"args\": [\"{path}\"]}}}}}}");
            let name = "claude_desktop_config.json";
            let examined = examine(&Source::new(name, text.clone()), Some(Path::new(name)), None, None);
            let told: Vec<_> = examined
                .findings
                .iter()
                .map(|it| (it.code.name, &text[it.problem.span.start..it.problem.span.end]))
                .collect();
            assert_eq!(told, [("E-JSON-FORM", at)], "{path}");
        }
    }

    #[test]
    fn a_path_with_single_backslashes_hides_no_finding_about_anything_else() {
        let text = r#"{"mcpServers": {"s": {"command": "npx -y x", "args": ["C:\new", "~/x"], "env": {"A_TOKEN": "C:\nghp_0123456789abcdefghij"}}}}"#;
        let examined = examine(&Source::new(".mcp.json", text), Some(Path::new(".mcp.json")), None, None);
        let found: Vec<_> = examined.findings.iter().map(|it| it.code.name).collect();
        assert_eq!(found, ["W-COMMAND-LINE", "W-INVISIBLE", "W-HOME", "W-SECRET", "W-INVISIBLE"]);
    }
}
