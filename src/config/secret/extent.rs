//! Where a value ends in a text of any kind.

use std::{cell::Cell, ops::Range};

use super::written::Name;
use crate::config::yaml::flow::Flow;

/// How the values of a text are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notation {
    /// The text is a value itself, or a sentence: words with blanks between them.
    Words,
    /// JSON, or what was meant to be.
    Json,
    /// YAML, or what was meant to be.
    Yaml,
}

impl Notation {
    /// What a whole file looks like.
    pub(super) fn of_file(text: &str) -> Notation {
        let begins = text.trim_start_matches('\u{feff}').trim_start();
        if begins.starts_with(['{', '[', '/', '"', '\'']) { Notation::Json } else { Notation::Yaml }
    }
}

const QUOTES: [char; 3] = ['"', '\'', '`'];
/// Quotes that no format has, but people and their editors.
const FANCY: [char; 16] = ['“', '”', '„', '«', '»', '‹', '›', '‘', '’', '‚', '＂', '＇', '「', '」', '‟', '″'];

pub(super) fn is_quote(character: char) -> bool {
    QUOTES.contains(&character) || FANCY.contains(&character)
}

/// The parts of a value of YAML without quotes: an anchor and a tag, the value itself, a comment. Each may be what somebody
/// meant. Anything else is one part.
pub(super) fn parts(text: &str, value: Range<usize>, notation: Notation) -> Vec<Range<usize>> {
    if notation != Notation::Yaml || text[..value.start].ends_with(is_quote) {
        return vec![value];
    }
    let (mut parts, mut start) = (Vec::new(), value.start);
    let first = &text[start..start + text[value.clone()].find('\n').unwrap_or(value.len())];
    let end = first.find(" #").map_or(value.end, |comment| start + comment);
    while let Some(length) = text[start..end].find(' ').filter(|_| text[start..end].starts_with(['&', '!'])) {
        parts.push(start..start + length);
        start += length + 1;
    }
    parts.extend([start..end, (end + 1).min(value.end)..value.end]);
    parts
}

/// Finds the ends of values, in one pass over the text.
pub(super) struct Extent<'t> {
    text: &'t str,
    notation: Notation,
    /// From where on there is no such quote any more.
    unclosed: [Cell<usize>; 3],
    flow: Cell<Flow>,
}

impl<'t> Extent<'t> {
    pub(super) fn new(text: &'t str, notation: Notation) -> Self {
        Extent { text, notation, unclosed: [const { Cell::new(usize::MAX) }; 3], flow: Cell::default() }
    }

    /// The value that begins at or after the end of its name; `None` if what is there is no single value. To be asked for
    /// one name after the other.
    pub(super) fn of(&self, name: &Name<'_>) -> Option<Range<usize>> {
        let blanks: &[char] = if self.notation == Notation::Yaml { &[' ', '\t'] } else { &[' ', '\t', '\r', '\n'] };
        let start = self.text.len() - self.text[name.end..].trim_start_matches(blanks).len();
        let rest = &self.text[start..];
        if let Some(range) = self.quoted(start) {
            return Some(range);
        }
        let before = self.text[..name.start].trim_end_matches('$').chars().next_back().filter(|quote| is_quote(*quote));
        match (before, name.is_closed) {
            // In quotes together with its name: `"name=value"`.
            (Some(quote @ ('"' | '\'')), false) => return Some(start..self.closing(start, quote)),
            // What stands in such quotes in a sentence is a name of something else.
            (Some(quote), true) if !matches!(quote, '"' | '\'') => return None,
            _ => {}
        }
        match self.notation {
            Notation::Yaml if self.is_in_flow(name.start) => {
                Some(start..start + self.end_of_item(rest)).filter(|item| !item.is_empty())
            }
            Notation::Yaml => Some(start..self.end_of_block(name.start, start)).filter(|block| !block.is_empty()),
            _ if rest.starts_with('[') && !rest[1..].trim_start().starts_with(['{', ']']) => {
                Some(start + 1..start + rest.find([']', '\n']).unwrap_or(rest.len()))
            }
            _ => {
                let word = start..start + self.end_of_word(start);
                // A scheme is followed by what is secret.
                let more = super::token::scheme(rest);
                let word = if more > word.len() { start..start + more + self.end_of_word(start + more) } else { word };
                (!word.is_empty()).then_some(word)
            }
        }
    }

    /// The word at or after this place, in quotes or not.
    pub(super) fn word(&self, start: usize) -> Option<Range<usize>> {
        let word = || start..start + self.end_of_word(start);
        self.quoted(start).or_else(|| Some(word()).filter(|word| !word.is_empty()))
    }

    /// What is in the quotes at this place.
    fn quoted(&self, start: usize) -> Option<Range<usize>> {
        let rest = &self.text[start..];
        if let Some(escaped) = rest.strip_prefix('\\').filter(|rest| rest.starts_with(['"', '\''])) {
            // Quotes in quotes end as they began.
            let quote = if escaped.starts_with('"') { "\\\"" } else { "\\'" };
            let inner = start + quote.len();
            let length = self.text[inner..].find([escaped.chars().next().unwrap_or('"'), '\n']);
            let end = inner + length.unwrap_or(self.text.len() - inner);
            return Some(inner..if self.text[..end].ends_with('\\') { (end - 1).max(inner) } else { end });
        }
        let quote = rest.chars().next().filter(|character| is_quote(*character))?;
        let inner = start + quote.len_utf8();
        Some(inner..self.closing(inner, quote))
    }

    /// Where a quote is closed that was opened before this place: the end of the line if it is not.
    fn closing(&self, start: usize, quote: char) -> usize {
        let rest = &self.text[start..];
        let end_of_line = || start + rest.find('\n').unwrap_or(rest.len());
        let Some(index) = QUOTES.iter().position(|it| *it == quote) else {
            return start + rest.find(|c: char| FANCY.contains(&c) || c == '\n').unwrap_or(rest.len());
        };
        if start >= self.unclosed[index].get() {
            return end_of_line();
        }
        let mut at = start;
        while let Some(length) = self.text[at..].find(['\\', quote]) {
            at += length;
            let after = &self.text[at + 1..];
            let is_doubled = quote == '\'' && self.notation == Notation::Yaml && after.starts_with('\'');
            if !is_doubled && self.text[at..].starts_with(quote) {
                return at;
            }
            at += 1 + if is_doubled { 1 } else { after.chars().next().map_or(0, char::len_utf8) };
        }
        self.unclosed[index].set(start);
        end_of_line()
    }

    fn end_of_word(&self, start: usize) -> usize {
        let rest = &self.text[start..];
        let ends = |c: char| match self.notation {
            Notation::Words => c.is_whitespace() || is_quote(c),
            _ => c.is_whitespace() || is_quote(c) || matches!(c, '{' | '}' | '[' | ']' | ','),
        };
        // A word ends at the brace of a reference.
        let reference = super::reference(rest).map_or(0, |(.., length)| length);
        reference + rest[reference..].find(ends).unwrap_or(rest.len() - reference)
    }

    fn is_in_flow(&self, at: usize) -> bool {
        self.flow.set(self.flow.get().up_to(self.text, at));
        self.flow.get().is_open()
    }

    /// Where a value of YAML within brackets ends that has no quotes.
    fn end_of_item(&self, rest: &str) -> usize {
        let reference = super::reference(rest).map_or(0, |(.., length)| length);
        let item = &rest
            [..reference + rest[reference..].find([',', '{', '}', '[', ']', '\n']).unwrap_or(rest.len() - reference)];
        item.find(" #").map_or(item, |comment| &item[..comment]).trim_end().len()
    }

    /// Where a value of YAML ends that has no quotes: with its line and those below that are further in, if they are lines
    /// of a text or of a list; or with one that is no key, and too far out to be anything else.
    fn end_of_block(&self, name: usize, start: usize) -> usize {
        let line = self.text[..name].rfind('\n').map_or(0, |newline| newline + 1);
        let before = &self.text[line..name];
        let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
        let mut end = start + self.text[start..].find('\n').unwrap_or(self.text.len() - start);
        let first = self.text[start..end].trim();
        if let (Some(comment), true) = (first.find(" #"), first.starts_with(['$', '{'])) {
            return start + comment;
        }
        let is_comment = before.starts_with('#') || before.contains(" #");
        if is_comment {
            return end;
        }
        let (depth, is_text) = (indent(before), first.starts_with(['|', '>']));
        let mut is_first = true;
        while let Some(next) = self.text[end..].strip_prefix('\n') {
            let length = next.find('\n').unwrap_or(next.len());
            let line = &next[..length];
            let trimmed = line.trim();
            let is_key = || trimmed.contains(": ") || trimmed.ends_with(':');
            let is_over = !trimmed.is_empty() && indent(line) <= depth;
            if is_over && !is_key() && !trimmed.starts_with(['-', '#', '{', '}', '[', ']', '?', '.']) {
                end += 1 + length;
                break;
            }
            if is_over || (is_first && first.is_empty() && !is_text && is_key()) {
                break;
            }
            is_first &= trimmed.is_empty();
            end += 1 + length;
        }
        start + self.text[start..end].trim_end().len()
    }
}
