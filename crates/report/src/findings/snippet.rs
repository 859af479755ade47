//! The source lines around a finding, with masked secrets and limited length, because a whole config may be one line.

use std::ops::Range;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use super::{File, Position};
use rehearse_document::{Span, text::boundary_before};

/// Replaces a secret.
const MASK: &str = "***";
/// The maximum number of characters shown before, in and after the span.
const BEFORE: usize = 60;
const WITHIN: usize = 120;
const AFTER: usize = 60;
/// Lines up to this length are shown completely.
const SHORT_LINE: usize = 160;
/// The width of the margin, and the minimum width of the line.
const MARGIN: usize = 10;
const MIN_WIDTH: usize = 20;
const CUT: char = '…';

/// The shown text: a line with the previous and the next one.
#[derive(Debug)]
pub(super) struct Snippet {
    name: String,
    text: String,
    /// The span of the finding in `text`.
    pub(super) span: Range<usize>,
    first_line: usize,
    position: Position,
}

impl Snippet {
    /// `position` is the start of the span; `columns` is the available width.
    pub(super) fn new(file: &File, name: String, span: Span, position: Position, columns: usize) -> Snippet {
        let room = columns.saturating_sub(MARGIN).max(MIN_WIDTH);
        let whole = SHORT_LINE.min(room);
        // The marked text is far enough to the left for the words below it.
        let (left, within) = (BEFORE.min(room / 4), WITHIN.min(room / 2));
        let right = AFTER.min(room - left - within);
        let text = &file.source.text;
        let start = boundary_before(text, span.start);
        let line = line_at(text, start);
        let start = start.min(line.end);
        let end = boundary_before(text, span.end).clamp(start, line.end.max(start));
        let mut copy = SnippetBuilder { file, text: String::new(), marks: [start, end], found: [None; 2] };
        let mut first_line = position.0;
        if line.start > 0 {
            let before = line_at(text, line.start - 1);
            let shown = before.start..after(text, before.start, before.end, whole);
            copy.push(before, shown);
            copy.text.push('\n');
            first_line -= 1;
        }
        let shown = match text[line.clone()].char_indices().nth(whole) {
            None => line.clone(),
            Some(_) => {
                let first = before(text, start, line.start, left);
                first..after(text, after(text, start, end, within), line.end, right)
            }
        };
        copy.marks[1] = end.min(shown.end);
        copy.push(line.clone(), shown);
        let is_last = text[line.end..].find('\n').is_none_or(|newline| line.end + newline + 1 == text.len());
        if !is_last {
            let next = line_at(text, text[line.end..].find('\n').map_or(text.len(), |newline| line.end + newline + 1));
            let shown = next.start..after(text, next.start, next.end, whole);
            copy.text.push('\n');
            copy.push(next, shown);
        }
        let begin = copy.found[0].unwrap_or(copy.text.len());
        let span = begin..copy.found[1].unwrap_or(begin).max(begin);
        Snippet { name, text: copy.text, span, first_line, position }
    }
}

/// The line at this byte, without the line break.
fn line_at(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    let end = if text[start..end].ends_with('\r') { end - 1 } else { end };
    start..end.max(start)
}

/// The offset after this number of characters, at most `end`.
fn after(text: &str, from: usize, end: usize, characters: usize) -> usize {
    text[from..end].char_indices().nth(characters).map_or(end, |(at, _)| from + at)
}

fn before(text: &str, from: usize, start: usize, characters: usize) -> usize {
    text[start..from.max(start)].char_indices().rev().take(characters).last().map_or(from, |(at, _)| start + at)
}

/// Copies parts of a text, and tracks the new offsets of two positions.
struct SnippetBuilder<'f> {
    file: &'f File,
    text: String,
    marks: [usize; 2],
    found: [Option<usize>; 2],
}

impl SnippetBuilder<'_> {
    /// Copies a part of a line.
    fn push(&mut self, line: Range<usize>, shown: Range<usize>) {
        if shown.start > line.start {
            self.text.push(CUT);
        }
        let source = &self.file.source.text;
        let mut hidden = self.file.secrets.iter().filter(|it| it.start < shown.end && it.end > shown.start).peekable();
        let mut at = shown.start;
        while at < shown.end {
            while hidden.next_if(|secret| secret.end <= at).is_some() {}
            if let Some(secret) = hidden.peek().filter(|secret| secret.start <= at) {
                let end = secret.end.min(shown.end);
                self.mark(0, at..end);
                self.mark(1, at..at + 1);
                self.text.push_str(MASK);
                self.mark(1, at..end);
                at = end;
                continue;
            }
            let Some(character) = source[at..].chars().next() else { break };
            let next = at + character.len_utf8();
            self.mark(0, at..next);
            self.mark(1, at..next);
            match character {
                '\t' => self.text.push('\t'),
                _ if is_harmful(character) => self.text.extend(character.escape_default()),
                _ => self.text.push(character),
            }
            at = next;
        }
        self.mark(0, at..at + 1);
        self.mark(1, at..at + 1);
        if shown.end < line.end {
            self.text.push(CUT);
        }
    }

    /// Records one of the two positions, if it is in this part and not recorded yet.
    fn mark(&mut self, which: usize, part: Range<usize>) {
        if self.found[which].is_none() && part.contains(&self.marks[which]) {
            self.found[which] = Some(self.text.len());
        }
    }
}

fn is_harmful(character: char) -> bool {
    let mut bytes = [0; 4];
    matches!(super::super::text::printable(character.encode_utf8(&mut bytes)), std::borrow::Cow::Owned(_))
}

impl SourceCode for Snippet {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.read_span(span, before, after)?;
        // Without context, miette requests the span itself.
        let (line, column) = match (before, after) {
            (0, 0) => (self.position.0 - 1, self.position.1 - 1),
            _ => (self.first_line - 1 + inner.line(), inner.column()),
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            inner.data(),
            *inner.span(),
            line,
            column,
            inner.line_count(),
        )))
    }
}
