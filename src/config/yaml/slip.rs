//! What people have got wrong where the parser of YAML gives up: often another place than the parser's, and another
//! word.

use super::{Problem, Span};

/// So many lines back somebody may have forgotten something.
const NEAR: usize = 50;

/// What the parser says of a colon where none can be.
const COLON: [&str; 2] = ["mapping values are not allowed", "illegal placement of ':'"];

/// What is wrong with a text that the parser leaves at `at`, and what it says of it.
pub(super) fn problem(text: &str, at: usize, said: &str) -> Problem {
    let is_colon = COLON.iter().any(|it| said.contains(it));
    if let Some(tab) = indenting_tab(text, at) {
        return Problem::new(Span { start: tab, end: tab + 1 }, "not valid YAML: a tab in the indentation")
            .hint("indent with spaces");
    }
    let bracket = text.get(at..).and_then(|rest| rest.chars().next()).filter(|_| said.contains("unclosed bracket"));
    let known = bracket.map(|bracket| (at, if bracket == '{' { '}' } else { ']' }));
    if let Some((bracket, close)) = known.or_else(|| unclosed(text, at)) {
        let span = Span { start: bracket, end: bracket + 1 };
        let message = format!("not valid YAML: this `{}` is never closed", &text[bracket..=bracket]);
        return Problem::new(span, message).hint(format!("add the missing `{close}`"));
    }
    if let Some(quote) = open_quote(text, at).filter(|_| said.contains("multiline quoted scalar")) {
        let what = if text[quote..].starts_with('"') { "double" } else { "single" };
        return Problem::new(
            Span { start: quote, end: quote + 1 },
            "not valid YAML: a text that its line does not end",
        )
        .hint(format!("a {what} quote is missing at the end of the line"));
    }
    let span = Span { start: at, end: at };
    let told = Problem::new(span, format!("not valid YAML: {said}"));
    let line = line_start(text, at);
    if said.contains("trailing content after") {
        return after_text(text, at, told);
    }
    if said.contains("escape character") || said.contains("hexadecimal") {
        let span = unknown_escape(text, at).unwrap_or(span);
        let message = format!("not valid YAML: there is no escape `{}`", &text[span.start..span.end]);
        return Problem::new(span, message).hint("write each backslash twice, or put the text into single quotes");
    }
    let before = text.get(line..at).unwrap_or_default();
    let is_reserved = text.get(at..).is_some_and(|rest| rest.starts_with(['@', '`', '%']));
    if is_reserved && said.contains("unexpected character") || is_colon && before.contains(": ") {
        return told.hint("put the whole value into quotes");
    }
    match glued(text, line).filter(|_| is_colon || said.contains("expected ':'")) {
        Some(span) => {
            Problem::new(span, "not valid YAML: there is no blank after the `:`").hint("put a blank after the `:`")
        }
        None => told,
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// A tab in the indentation of the line at `at` or of the next one, where the parser complains about something else.
fn indenting_tab(text: &str, at: usize) -> Option<usize> {
    let start = line_start(text, at);
    let mut line_start = start;
    text.get(start..)?.split_inclusive('\n').take(2).find_map(|line| {
        let begins = line_start;
        line_start += line.len();
        let indentation = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        indentation.find('\t').map(|tab| begins + tab)
    })
}

/// The lines that end before `at`, the last one first, with where they begin.
fn lines_before(text: &str, at: usize) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.get(..at).unwrap_or_default().split_inclusive('\n').rev().take(NEAR);
    lines.scan(at, |end, line| {
        *end -= line.len();
        Some((*end, line.trim_end()))
    })
}

/// A bracket that no line closes before one that is not indented more than that of the bracket, and what closes it.
fn unclosed(text: &str, at: usize) -> Option<(usize, char)> {
    let error = line_start(text, at);
    let mut least = indentation(text.get(error..)?);
    for (start, line) in lines_before(text, error) {
        let bare = line.trim_start();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        match brackets(line) {
            Brackets::Open(bracket, close) => return (least <= indentation(line)).then_some((start + bracket, close)),
            Brackets::Close => return None,
            Brackets::Even => least = least.min(indentation(line)),
        }
    }
    None
}

/// The first backslash from `at` on, with the letter after it, that makes no escape of YAML (1.2.2, 5.7).
fn unknown_escape(text: &str, at: usize) -> Option<Span> {
    let rest = text.get(at..)?;
    let mut passed = 0;
    while let Some(length) = rest[passed..].find('\\') {
        let start = passed + length;
        let letter = rest[start + 1..].chars().next()?;
        passed = start + 1 + letter.len_utf8();
        let digits = match letter {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ if "0abt\tnvfre \"/\\N_LP\r\n".contains(letter) => 0,
            _ => return Some(Span { start: at + start, end: at + passed }),
        };
        let number = rest.get(passed..passed + digits).filter(|it| it.bytes().all(|digit| digit.is_ascii_hexdigit()));
        if number.is_none() {
            return Some(Span { start: at + start, end: at + passed });
        }
    }
    None
}

/// What to do about something at `at` that follows a text in quotes.
fn after_text(text: &str, at: usize, told: Problem) -> Problem {
    let before = text.get(line_start(text, at)..at).unwrap_or_default();
    let is_apart = before.ends_with(' ');
    match (brackets(before), is_apart) {
        (Brackets::Open(..), true) => {
            Problem { message: "not valid YAML: no comma before this".into(), ..told }.hint("add a comma")
        }
        (_, false) => told.hint("look at the quotes before this: one is missing, or one too many"),
        _ => told.hint("put the whole value into one pair of quotes"),
    }
}

/// A quote before `at` that its line does not close, the last one.
fn open_quote(text: &str, at: usize) -> Option<usize> {
    let mut lines = lines_before(text, line_start(text, at));
    lines.find_map(|(start, line)| Some(start + scan(line).1?))
}

/// What the brackets of a line do.
enum Brackets {
    /// This one is left open, and this closes it.
    Open(usize, char),
    /// One that an earlier line opens is closed.
    Close,
    Even,
}

/// What the brackets of a line do. One that opens within a plain text is none.
fn brackets(line: &str) -> Brackets {
    scan(line).0
}

/// What the brackets of a line do, and where a quote is that it does not close.
fn scan(line: &str) -> (Brackets, Option<usize>) {
    let (mut open, mut quote, mut before) = (Vec::new(), None, ' ');
    for (at, character) in line.char_indices() {
        let begins = |open: &[(usize, char)]| {
            let is_after = line[..at].trim_end().ends_with([':', '-', ',', '[', '{']) && before == ' ';
            is_after || matches!(before, '[' | '{') && !open.is_empty()
        };
        match (quote, character) {
            (Some((_, quoted)), _) if quoted == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if begins(&open) => quote = Some((at, character)),
            (None, '#') if before == ' ' => break,
            (None, '[') if begins(&open) => open.push((at, ']')),
            (None, '{') if begins(&open) => open.push((at, '}')),
            (None, ']' | '}') if open.pop().is_none() => return (Brackets::Close, None),
            _ => {}
        }
        before = character;
    }
    let brackets = open.first().map_or(Brackets::Even, |(at, close)| Brackets::Open(*at, *close));
    (brackets, quote.map(|(at, _)| at))
}

/// A key with its value in the line before `line`, and no blank between them.
fn glued(text: &str, line: usize) -> Option<Span> {
    let (start, line) = lines_before(text, line).find(|(_, line)| !line.trim_start().is_empty())?;
    let bare = line.trim_start();
    let bare = bare.strip_prefix("- ").map_or(bare, str::trim_start);
    let (key, value) = bare.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let start = start + line.len() - bare.len();
    let is_glued = is_key && !value.is_empty() && !value.starts_with([' ', '/']);
    is_glued.then_some(Span { start, end: start + bare.len() })
}

#[cfg(test)]
mod tests {
    use crate::config::{Source, parse_yaml};

    #[test]
    fn what_was_forgotten_is_told_where_it_was() {
        for (text, expected) in [
            (
                "a:\n  args: [-y, x\n  env: {A: b}\n",
                "2:9: not valid YAML: this `[` is never closed (add the missing `]`)",
            ),
            (
                "a:\n  b:\n    args: [-y, x\n  c:\n    d: e\n",
                "3:11: not valid YAML: this `[` is never closed (add the missing `]`)",
            ),
            (
                "a:\n  env: {\n    A: b,\n\n  c: d\n",
                "2:8: not valid YAML: this `{` is never closed (add the missing `}`)",
            ),
            ("a: [b, [c]\n", "1:4: not valid YAML: this `[` is never closed (add the missing `]`)"),
            (
                "a:\n    type:stdio\n    command: npx\n",
                "2:5: not valid YAML: there is no blank after the `:` (put a blank after the `:`)",
            ),
            (
                "a:\n  - type:stdio\n    command: npx\n",
                "2:5: not valid YAML: there is no blank after the `:` (put a blank after the `:`)",
            ),
            ("a:\n- -y\n- @b/c\n", "3:3: not valid YAML: unexpected character: `@' (put the whole value into quotes)"),
            ("a:\n  args: [\"-y\" \"x\"]\n", "2:15: not valid YAML: no comma before this (add a comma)"),
            ("a:\n  env: {B: 'c' D: e}\n", "2:16: not valid YAML: no comma before this (add a comma)"),
            (
                "a:\n  args: [\"-y, \"x\"]\n",
                "2:16: not valid YAML: invalid trailing content after double-quoted scalar (look at the quotes before this: one is missing, or one too many)",
            ),
            (
                "a:\n  b: 'c' -d\n",
                "2:10: not valid YAML: invalid trailing content after single-quoted scalar (put the whole value into one pair of quotes)",
            ),
            (
                "a: \"C:\\x41\\\\\\x4\"\n",
                "1:13: not valid YAML: there is no escape `\\x` (write each backslash twice, or put the text into single quotes)",
            ),
            (
                "a:\n  b: \"c\n  args: [\"x\"]\n",
                "2:6: not valid YAML: a text that its line does not end (a double quote is missing at the end of the line)",
            ),
            (
                "a:\n  - 'b\n  - c\n",
                "2:5: not valid YAML: a text that its line does not end (a single quote is missing at the end of the line)",
            ),
            (
                "a: \"C:\\Users\"\n",
                "1:7: not valid YAML: there is no escape `\\U` (write each backslash twice, or put the text into single quotes)",
            ),
            (
                "a: \"C:\\new\\data\"\n",
                "1:11: not valid YAML: there is no escape `\\d` (write each backslash twice, or put the text into single quotes)",
            ),
            ("a: `b`\n", "1:4: not valid YAML: unexpected character: ``' (put the whole value into quotes)"),
            (
                "a:\n  b: Bearer: x\n",
                "2:12: not valid YAML: mapping values are not allowed in this context (put the whole value into quotes)",
            ),
            (
                "a: [\n  b,\n  @c\n]\n",
                "3:3: not valid YAML: unexpected character: `@' (put the whole value into quotes)",
            ),
        ] {
            let source = Source::new("t", text);
            let problem = parse_yaml(&source).expect_err(text).in_source(&source).to_string();
            assert_eq!(problem, format!("t:{expected}"), "{text}");
        }
    }

    #[test]
    fn brackets_in_texts_are_not_taken_for_open_ones() {
        for text in [
            "a: x [y\nb: c: d\n",
            "a: 'x [y'\nb: c: d\n",
            "a: [x] # [\nb: c: d\n",
            "a: \"[\"\nb: c: d\n",
            "e: [c,\n  d]\nb: c: d\n",
        ] {
            let source = Source::new("t", text);
            let problem = parse_yaml(&source).expect_err(text).in_source(&source).to_string();
            assert!(problem.contains(":5: not valid YAML: mapping values"), "{text}: {problem}");
        }
    }
}
