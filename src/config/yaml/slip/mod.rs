//! What people have got wrong where the parser of YAML gives up: often another place than the parser's, and another
//! word. Each file knows slips of one kind.

mod bracket;
mod indent;
mod key;
mod line;
mod odd;
mod quote;
#[cfg(test)]
mod tests;

use self::line::Line;
use super::{Problem, Span};

/// What the parser says of a colon where none can be.
const COLON: [&str; 2] = ["mapping values are not allowed", "illegal placement of ':'"];

/// Where the parser has given up.
struct Scene<'t> {
    text: &'t str,
    at: usize,
    said: &'t str,
    line: Line<'t>,
    /// The line before that has something in it.
    before: Option<Line<'t>>,
}

/// What may be wrong, the surest first.
const SLIPS: &[fn(&Scene<'_>) -> Option<Problem>] = &[
    odd::merge,
    indent::tab,
    odd::blank,
    odd::comment,
    bracket::unclosed,
    bracket::wrong_one,
    bracket::comma,
    quote::unclosed,
    quote::after_text,
    quote::escape,
    quote::missing,
    key::dash,
    key::item,
    key::list,
    key::colon,
    indent::first,
    indent::deep,
    indent::stray,
];

/// What is wrong with a text that the parser leaves at `at`, and what it says of it.
pub(super) fn problem(text: &str, at: usize, said: &str) -> Problem {
    let line = Line::at(text, at);
    let before = line.before(text).next();
    let scene = Scene { text, at, said, line, before };
    let known = SLIPS.iter().find_map(|slip| slip(&scene));
    known.unwrap_or_else(|| wrong(at..at, said))
}

/// What is wrong with the line that begins at `at`, if it should be a key with its value.
pub(in crate::config) fn of_key(text: &str, at: usize) -> Option<Problem> {
    let line = Line::at(text, at);
    key::of_line(line).filter(|_| line.begin() == at)
}

/// What is wrong with the line that begins at `at`, if it should be an item of a list.
pub(in crate::config) fn of_item(text: &str, at: usize) -> Option<Problem> {
    let line = Line::at(text, at);
    let is_item = line.begin() == at && line.bare().starts_with('-');
    let problem = wrong(at..at + 1, "this dash begins no item of a list: no blank is after it");
    is_item.then(|| problem.hint("begin each item with a dash and a blank, and then its own dash if it has one"))
}

/// What is wrong with the line at `at`, if it should have a value where it has a comment.
pub(in crate::config) fn of_comment(text: &str, at: usize) -> Option<Problem> {
    let line = Line::at(text, at);
    let mark = line.text.find(" #").filter(|mark| !line.text[mark + 2..].starts_with([' ', '#']))? + 1;
    let is_value = line.text[..mark].trim_end().ends_with([':', '-']) && line.text.len() > mark + 1;
    let problem = wrong(line.start + mark..line.start + mark + 1, "this begins a comment");
    is_value.then(|| problem.hint("put the whole value into quotes if it begins with `#`, and else give it a value"))
}

impl Scene<'_> {
    fn says(&self, words: &str) -> bool {
        self.said.contains(words)
    }

    /// Whether the parser has met a colon where none can be.
    fn is_colon(&self) -> bool {
        COLON.iter().any(|it| self.says(it))
    }

    /// What begins where the parser has given up.
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }
}

fn wrong(range: std::ops::Range<usize>, what: &str) -> Problem {
    Problem::new(Span { start: range.start, end: range.end }, format!("not valid YAML: {what}"))
}
