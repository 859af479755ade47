//! A line of YAML, as far as it can be told from itself.

use std::ops::Range;

/// So many lines back somebody may have forgotten something.
const NEAR: usize = 50;

#[derive(Clone, Copy)]
pub(super) struct Line<'t> {
    pub(super) start: usize,
    /// Without the blanks at its end.
    pub(super) text: &'t str,
}

impl<'t> Line<'t> {
    /// The line with this place.
    pub(super) fn at(text: &'t str, at: usize) -> Line<'t> {
        let at = at.min(text.len());
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
        Line { start, text: text[start..end].trim_end() }
    }

    /// The lines before this one, the last first, without those that have nothing but a comment.
    pub(super) fn before(self, text: &'t str) -> impl Iterator<Item = Line<'t>> {
        let lines = text[..self.start].split_inclusive('\n').rev().take(NEAR);
        let lines = lines.scan(self.start, |end, line| {
            *end -= line.len();
            Some(Line { start: *end, text: line.trim_end() })
        });
        lines.filter(|line| !line.is_empty())
    }

    /// The next line that has something in it.
    pub(super) fn after(self, text: &'t str) -> Option<Line<'t>> {
        let mut start = self.start;
        text[self.start..].split_inclusive('\n').take(NEAR).find_map(|line| {
            let begins = start;
            start += line.len();
            let line = Line { start: begins, text: line.trim_end() };
            (begins > self.start && !line.is_empty()).then_some(line)
        })
    }

    /// Whether there is nothing in it, or nothing but a comment.
    fn is_empty(self) -> bool {
        self.bare().is_empty() || self.bare().starts_with('#')
    }

    pub(super) fn is_item(self) -> bool {
        self.bare().starts_with("- ")
    }

    /// The line without its indentation.
    pub(super) fn bare(self) -> &'t str {
        self.text.trim_start_matches(' ')
    }

    pub(super) fn indent(self) -> usize {
        self.text.len() - self.bare().len()
    }

    /// Where the indentation ends in the text.
    pub(super) fn begin(self) -> usize {
        self.start + self.indent()
    }

    /// The line without the dashes of lists.
    pub(super) fn inner(self) -> &'t str {
        let mut inner = self.bare();
        while let Some(item) = inner.strip_prefix("- ") {
            inner = item.trim_start_matches(' ');
        }
        inner
    }

    /// How far in that is.
    pub(super) fn inner_indent(self) -> usize {
        self.text.len() - self.inner().len()
    }

    /// The key that the line begins with, and what stands behind its colon.
    pub(super) fn key(self) -> Option<(&'t str, &'t str)> {
        let inner = self.inner();
        inner.split_once(": ").or_else(|| Some((inner.strip_suffix(':')?, "")))
    }

    /// Its first word, if that is one as keys are, and where it stands in the text.
    pub(super) fn word(self) -> Option<(&'t str, Range<usize>)> {
        let inner = self.inner();
        let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let word = &inner[..inner.find(|c| !is_of_key(c)).unwrap_or(inner.len())];
        let start = self.start + self.inner_indent();
        word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_').then_some((word, start..start + word.len()))
    }
}
