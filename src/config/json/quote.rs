//! Quotes that do not fit. What is meant is what makes the rest of the line read as JSON.

use std::{cell::Cell, iter::successors};

use super::balance::length_of_text;

/// So much of a line is looked at.
pub(super) const WINDOW: usize = 500;

/// So many places for a quote are tried.
const MOST_TRIED: usize = 32;

/// So many bytes are looked at for the quotes of one text file, all together. No person makes so many slips.
pub(super) const MOST_EFFORT: usize = 1_000_000;

/// What is wrong with the quotes of a text. Places count from its first character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slip {
    /// One is missing here.
    Missing(usize),
    /// The one before this is too many; the text is the rest up to `end`.
    Doubled { at: usize, end: usize },
    /// Those from `first` to `last` are not escaped; the text ends at `end`.
    Inner { first: usize, last: usize, end: usize },
}

/// The rest of a line, from a text whose quotes do not fit.
pub(super) struct Line<'t> {
    text: &'t str,
    /// Whether the line is longer than what is looked at.
    is_cut: bool,
    /// What the lines below begin with.
    next: Option<char>,
    /// The brackets around the text.
    open: Vec<char>,
    /// What has to follow the text.
    expected: Expected,
    /// How many bytes have been looked at.
    effort: Cell<usize>,
}

/// What may come next in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Key,
    Colon,
    Value,
    /// A comma, or the end of what is open.
    End,
}

impl<'t> Line<'t> {
    /// That at the beginning of `rest`, where a key or a value stands.
    pub(super) fn new(rest: &'t str, open: &[char], is_key: bool) -> Self {
        let window = &rest[..rest.floor_char_boundary(WINDOW)];
        let end = window.find(['\n', '\r']);
        let below = &window[end.unwrap_or(window.len())..];
        Line {
            text: &window[..end.unwrap_or(window.len())],
            is_cut: end.is_none() && window.len() < rest.len(),
            next: below.trim_start().chars().next(),
            open: open.to_vec(),
            expected: if is_key { Expected::Colon } else { Expected::End },
            effort: Cell::new(window.len()),
        }
    }

    /// How many bytes it took to tell what it tells.
    pub(super) fn effort(&self) -> usize {
        self.effort.get()
    }

    /// What is wrong with the text that the line begins with, and which ends before `end`; `None` if nothing ends it.
    pub(super) fn slip(&self, end: Option<usize>) -> Option<Slip> {
        let text = self.text;
        if end.is_some_and(|end| end > text.len()) {
            return None;
        }
        let inner = &text[..end.map_or(text.len(), |end| end - 1)];
        let line_end = (end.is_none() && self.next.is_some()).then(|| text.trim_end().len());
        let missing = delimiters(inner).take(MOST_TRIED).chain(line_end).find(|at| self.reads_from(*at));
        if let Some(at) = missing {
            return Some(Slip::Missing(at));
        }
        let end = end?;
        if text[end..].starts_with('"') && self.reads_from(end + 1) {
            return Some(Slip::Doubled { at: end, end });
        }
        if end == 2
            && let Some(end) = length_of_text(&text[1..]).map(|length| length + 1)
            && self.reads_from(end)
        {
            return Some(Slip::Doubled { at: 0, end });
        }
        if !text[end..].starts_with(|next: char| next.is_alphanumeric() || "_$@-~<\\'%".contains(next)) {
            return None;
        }
        let next_quote = |end: &usize| length_of_text(&text[end - 1..]).map(|length| end - 1 + length);
        let mut ends = successors(next_quote(&end), next_quote).take(MOST_TRIED);
        let whole = ends.find(|end| self.reads_from(*end))?;
        let last = text[..whole - 1].rfind('"')?;
        Some(Slip::Inner { first: end - 1, last, end: whole })
    }

    /// Whether the line reads as JSON if the text ends before `at`.
    pub(super) fn reads_from(&self, at: usize) -> bool {
        let Some(rest) = self.text.get(at..) else { return false };
        let (mut rest, mut expected, mut open) = (rest.trim_start(), self.expected, self.open.clone());
        self.effort.update(|effort| effort + open.len());
        while let Some(next) = rest.chars().next() {
            let is_object = open.last() == Some(&'{');
            let (length, then) = match (next, expected) {
                ('"', Expected::Key | Expected::Value) => match length_of_text(rest) {
                    Some(length) => (length, if expected == Expected::Key { Expected::Colon } else { Expected::End }),
                    None => return self.is_cut,
                },
                (':', Expected::Colon) => (1, Expected::Value),
                (',', Expected::End) => (1, if is_object { Expected::Key } else { Expected::Value }),
                ('{' | '[', Expected::Value) => {
                    open.push(next);
                    (1, if next == '{' { Expected::Key } else { Expected::Value })
                }
                ('}', Expected::Key | Expected::End) if is_object => {
                    open.pop();
                    (1, Expected::End)
                }
                (']', Expected::Value | Expected::End) if open.last() == Some(&'[') => {
                    open.pop();
                    (1, Expected::End)
                }
                ('/', _) if rest.starts_with("//") => break,
                (_, Expected::Value) => match length_of_word(rest) {
                    Some(length) => (length, Expected::End),
                    None => return self.is_cut,
                },
                _ => return false,
            };
            expected = then;
            rest = rest[length..].trim_start();
            self.effort.update(|effort| effort + length);
        }
        self.is_cut || self.goes_on_below(expected)
    }

    /// Whether the next line begins with what has to come next.
    fn goes_on_below(&self, expected: Expected) -> bool {
        match (expected, self.next) {
            (Expected::Key, Some(next)) => matches!(next, '"' | '}' | '/'),
            (Expected::Colon, next) => next == Some(':'),
            (Expected::Value, Some(next)) => !matches!(next, ',' | ':' | '}'),
            (Expected::End, Some(next)) => matches!(next, ',' | '}' | ']' | '/'),
            (expected, None) => expected == Expected::End,
        }
    }
}

/// Where a text could end that is not closed: before what parts values, unless a bracket of the text itself is around it.
fn delimiters(text: &str) -> impl Iterator<Item = usize> {
    let mut depth = 0;
    let brackets_and_signs = text.match_indices([',', ':', '[', ']', '{', '}']);
    brackets_and_signs.filter_map(move |(at, sign)| {
        let is_outside = depth == 0;
        match sign {
            "[" | "{" => depth += 1,
            "]" | "}" if depth > 0 => depth -= 1,
            _ => {}
        }
        (is_outside && !matches!(sign, "[" | "{")).then_some(at)
    })
}

/// The length of a number or word of JSON.
fn length_of_word(text: &str) -> Option<usize> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let word = &text[..text.find(ends).unwrap_or(text.len())];
    let is_known = matches!(word, "true" | "false" | "null") || word.parse::<f64>().is_ok_and(f64::is_finite);
    is_known.then_some(word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_what_makes_the_line_read() {
        let of = |text: &str, is_key, open: &[char]| {
            let line = text.lines().next().unwrap_or_default();
            Line::new(text, open, is_key).slip(length_of_text(line))
        };
        for (text, expected) in [
            ("\"command: \"npx\",\n\"args\"", Some(Slip::Missing(8))),
            ("\"url: \"https://a/b\" }", Some(Slip::Missing(4))),
            ("\"env: {\n\"A\"", Some(Slip::Missing(4))),
            ("\"\"env\": {\n\"A\"", Some(Slip::Doubled { at: 0, end: 6 })),
            ("\"x\"y\": 1 }", Some(Slip::Inner { first: 2, last: 2, end: 5 })),
            ("\"x\"y\n}", None),
        ] {
            assert_eq!(of(text, true, &['{']), expected, "{text}");
        }
        for (text, expected) in [
            ("\"a, \"b\"]\n}", Some(Slip::Missing(2))),
            ("\"a],\n\"env\": {}", Some(Slip::Missing(2))),
            ("\"a,b\"\", // x\n1]", Some(Slip::Doubled { at: 5, end: 5 })),
            ("\"a", None),
            ("\"${A}/[b],\n\"b\"]", Some(Slip::Missing(9))),
            ("\"a\n]", Some(Slip::Missing(2))),
            ("\"a,\n\"b\"]", Some(Slip::Missing(2))),
            ("\"say \"hi\"\", 1, -2.5, true]}", Some(Slip::Inner { first: 5, last: 8, end: 10 })),
            ("\"a\"\"b\"]}", None),
            ("\"a\"; \"b\"]}", None),
        ] {
            assert_eq!(of(text, false, &['{', '[']), expected, "{text}");
        }
        let long = format!("\"a, \"b\", {} \"c\" x", "1,".repeat(WINDOW));
        assert_eq!(of(&long, false, &['[']), Some(Slip::Missing(2)));
    }
}
