//! Texts in quotes that do not end where they should, and values that need quotes.

use super::{
    Problem, Scene, Span,
    bracket::{Brackets, brackets, scan},
    wrong,
};

/// A quote that its line does not close.
pub(super) fn unclosed(scene: &Scene<'_>) -> Option<Problem> {
    let mut lines = scene.line.before(scene.text).filter(|_| scene.says("multiline quoted scalar"));
    let here = Some(scene.at).filter(|_| scene.says("unclosed quote") && scene.rest().starts_with(['"', '\'']));
    let quote = here.or_else(|| lines.find_map(|line| Some(line.start + scan(line.text).1?)))?;
    let what = if scene.text[quote..].starts_with('"') { "double" } else { "single" };
    let problem = wrong(quote..quote + 1, "a text that its line does not end");
    Some(problem.hint(format!("a {what} quote is missing at the end of the line")))
}

/// Something that follows a text in quotes.
pub(super) fn after_text(scene: &Scene<'_>) -> Option<Problem> {
    if !scene.says("trailing content after") {
        return None;
    }
    let told = wrong(scene.at..scene.at, scene.said);
    let before = &scene.text[scene.line.start..scene.at];
    let is_last = |rest: &str| rest.is_empty() || rest.starts_with('#');
    let comma = scene.rest().strip_prefix(',').map(|rest| rest.lines().next().unwrap_or_default().trim());
    Some(match (brackets(before), before.ends_with(' ')) {
        (Brackets::Even, _) if comma.is_some_and(is_last) => {
            wrong(scene.at..scene.at + 1, "a comma after the value").hint("remove the comma")
        }
        (Brackets::Open(..), true) => wrong(scene.at..scene.at, "no comma before this").hint("add a comma"),
        (_, false) => told.hint("look at the quotes before this: one is missing, or one too many"),
        _ => told.hint("put the whole value into one pair of quotes"),
    })
}

/// A backslash that makes no escape.
pub(super) fn escape(scene: &Scene<'_>) -> Option<Problem> {
    if !scene.says("escape character") && !scene.says("hexadecimal") {
        return None;
    }
    let Span { start, end } = unknown_escape(scene.text, scene.at).unwrap_or(Span { start: scene.at, end: scene.at });
    let problem = wrong(start..end, &format!("there is no escape `{}`", &scene.text[start..end]));
    Some(problem.hint("write each backslash twice, or put the text into single quotes"))
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

/// A value that means something else without quotes.
pub(super) fn missing(scene: &Scene<'_>) -> Option<Problem> {
    let before = scene.text.get(scene.line.start..scene.at)?;
    let told = wrong(scene.at..scene.at, scene.said);
    let is_reserved = scene.rest().starts_with(['@', '`', '%']) && scene.says("unexpected character");
    if is_reserved || scene.is_colon() && before.contains(": ") {
        return Some(told.hint("put the whole value into quotes"));
    }
    if !scene.rest().starts_with('*') || !scene.says("anchor") {
        return None;
    }
    let name =
        scene.rest()[1..].split(|c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}')).next().unwrap_or("");
    let end = scene.at + 1 + name.len();
    if before.contains("<<:") {
        let hint = format!("write `&{name}` before the mapping that is to be merged, further up");
        return Some(wrong(scene.at..end, &format!("nothing before this is called `&{name}`")).hint(hint));
    }
    Some(
        wrong(scene.at..end, "`*` before a name stands for another value, and there is none")
            .hint("put the whole value into quotes"),
    )
}
