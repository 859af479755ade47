//! Which bracket is wrong: the balance of the whole text and the indentation tell it.

use super::{balance::Balance, reader::Reader};

impl Reader<'_> {
    pub(super) fn balance(&mut self) -> &mut Balance {
        let text = self.text;
        self.balance.get_or_insert_with(|| Balance::of(text))
    }

    /// Whether the key here begins a line that is no further in than the one where its object begins, which nothing closes
    /// further on: then it belongs to the object around that. `indent` is that of the object, once it is known.
    pub(super) fn is_outdented(&mut self, start: usize, indent: &mut Option<usize>) -> bool {
        if self.open.iter().nth_back(1) != Some(&'{') {
            return false;
        }
        let Some(here) = self.indent_after(start) else { return false };
        let own = indent.get_or_insert_with(|| self.indent_of(start));
        here <= *own && self.balance().lacks('}')
    }

    /// Whether the bracket here stands less far in than the line where that begins which it would close, and there are too
    /// few of them: then it is meant for something around that.
    pub(super) fn closes_another(&mut self, start: usize, close: char) -> bool {
        let is_less = self.indent_after(start).is_some_and(|here| here < self.indent_of(start));
        is_less && self.open.iter().rev().skip(1).any(|open| *open == opening(close)) && self.balance().lacks(close)
    }

    /// Whether the bracket here closes too early what begins at `start`: there are too many of them, and what follows in a
    /// line of its own is further in, or closes it where it should be closed.
    pub(super) fn is_surplus(&mut self, start: usize, close: char) -> bool {
        let here = self.at;
        let after = self.text[here + 1..].trim_start_matches([' ', '\t', '\r', '\n', ',']);
        let place = self.text.len() - after.len();
        let Some(indent) = self.indent_below(here, place).filter(|_| !after.is_empty()) else { return false };
        if !self.text[start..here].contains('\n') {
            return false;
        }
        let own = self.indent_of(start);
        // A key within a list lacks the brace before it.
        let is_of_list = self.open.iter().nth_back(1) == Some(&'[') && after.starts_with('"');
        let is_further_in = indent > own && !is_of_list;
        let is_closed_there = indent == own && after.starts_with(close) && self.indent_after(start) != Some(own);
        let is_surplus = (is_further_in || is_closed_there) && self.balance().has_surplus(close);
        if is_surplus {
            self.balance().add(opening(close));
        }
        is_surplus
    }

    /// Whether the text before this place lacks what opens what `close` closes further on; the rest of what is around it
    /// ends with `around`.
    pub(super) fn is_unopened(&mut self, close: char, around: char) -> bool {
        let balance = self.balance();
        balance.has_surplus(close) && !balance.lacks(around)
    }

    /// Whether somewhere a bracket that opens a list stands for one that opens an object.
    pub(super) fn is_taken_for_brace(&mut self) -> bool {
        self.balance().has_surplus('}') && self.balance().lacks(']')
    }

    /// Whether a list that has come to a key stands in an object, and nothing closes it further on, or does so too late.
    pub(super) fn should_have_ended(&mut self, is_empty: bool) -> bool {
        self.open.iter().nth_back(1) == Some(&'{') && (!is_empty || self.balance().lacks(']'))
    }

    /// How far in this place is, if it begins a line below that of `start`.
    fn indent_after(&self, start: usize) -> Option<usize> {
        self.indent_below(start, self.at)
    }

    /// How far in `place` is, if it begins a line below that of `start`.
    fn indent_below(&self, start: usize, place: usize) -> Option<usize> {
        let before = &self.text[..place];
        let line = before.trim_end_matches([' ', '\t']);
        (line.ends_with('\n') && line.len() > start).then(|| before.len() - line.len())
    }

    /// How far in the line of this place begins.
    fn indent_of(&self, place: usize) -> usize {
        let begin = self.text[..place].rfind('\n').map_or(0, |newline| newline + 1);
        let line = &self.text[begin..place];
        line.len() - line.trim_start_matches([' ', '\t']).len()
    }

    /// Why the next bracket is `found` and not `close`. The brackets of the whole text tell which has been forgotten.
    pub(super) fn misfit(&mut self, found: char, close: char) -> Misfit {
        let is_open = self.open.contains(&opening(found));
        let balance = self.balance();
        let misfit = match (balance.has_surplus(found), balance.lacks(close)) {
            (true, false) => Misfit::Surplus,
            (true, true) => Misfit::Wrong,
            (false, _) if !is_open => Misfit::Wrong,
            (false, _) => Misfit::Missing,
        };
        if matches!(misfit, Misfit::Surplus | Misfit::Wrong) {
            balance.add(opening(found));
        }
        if matches!(misfit, Misfit::Missing | Misfit::Wrong) {
            balance.add(close);
        }
        misfit
    }
}

/// Why a bracket does not close what was opened last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Misfit {
    /// It closes nothing.
    Surplus,
    /// Another one was meant.
    Wrong,
    /// Another one is missing before it.
    Missing,
}

/// What such a bracket closes.
pub(super) fn opening(close: char) -> char {
    if close == '}' { '{' } else { '[' }
}
