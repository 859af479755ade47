//! Lines and columns of many places at once.

use crate::config::{Source, Span, finding::Finding};

/// A line and a column, both from 1; columns count characters.
pub(super) type Position = (usize, usize);

/// The positions of some places of a source, found in one pass, for a line may be as long as the source.
pub(super) struct Positions(Vec<(usize, Position)>);

impl Positions {
    pub(super) fn of(source: &Source, findings: &[Finding]) -> Positions {
        let spans = findings.iter().map(|finding| finding.problem.span);
        let mut offsets: Vec<_> = spans.flat_map(|span| [span.start, span.end]).collect();
        offsets.sort_unstable();
        offsets.dedup();
        let text = &source.text;
        let (mut at, mut line, mut column) = (0, 1, 1);
        let position = |offset: usize| {
            let next = text.floor_char_boundary(offset.min(text.len()));
            let passed = &text[at..next];
            at = next;
            match passed.rfind('\n') {
                Some(newline) => {
                    line += passed.bytes().filter(|byte| *byte == b'\n').count();
                    column = 1 + passed[newline + 1..].chars().count();
                }
                None => column += passed.chars().count(),
            }
            (offset, (line, column))
        };
        Positions(offsets.into_iter().map(position).collect())
    }

    fn at(&self, offset: usize) -> Position {
        self.0.binary_search_by_key(&offset, |(known, _)| *known).map_or((1, 1), |index| self.0[index].1)
    }

    /// Where a finding begins and where it ends.
    pub(super) fn both(&self, Span { start, end }: Span) -> (Position, Position) {
        (self.at(start), self.at(end.max(start)))
    }
}
