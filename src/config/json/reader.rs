//! Objects, lists, and what stands between their values.

use super::{Document, Liberty, LibertyKind, balance::Balance, scalar};
use crate::config::{Duplicate, Entry, Node, Problem, Problems, Span, Value, node::Entries};

/// How far values may go.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    depth: usize,
}

pub(super) const OF_PEOPLE: Extent = Extent { depth: 128 };
pub(super) const OF_PROGRAMS: Extent = Extent { depth: 512 };

pub(super) fn read(text: &str, extent: Extent) -> Result<Document, Problems> {
    let mut reader = Reader {
        text,
        at: 0,
        extent,
        open: Vec::new(),
        last_comma: None,
        balance: None,
        liberties: Vec::new(),
        duplicates: Vec::new(),
    };
    if text.starts_with('\u{feff}') {
        reader.take(LibertyKind::ByteOrderMark, '\u{feff}'.len_utf8());
    }
    reader.skip_blanks()?;
    let root = match reader.peek() {
        Some(_) => reader.value()?,
        None => {
            reader.note(LibertyKind::Nothing, reader.at);
            Node { span: reader.here(), value: Value::Null }
        }
    };
    reader.skip_blanks()?;
    let is_key = reader.peek() == Some(':') && matches!(root.value, Value::String(_));
    let root = if is_key { reader.fragment(root.span)? } else { root };
    reader.skip_blanks()?;
    if reader.peek().is_some() {
        reader.note(LibertyKind::TextAfter, reader.at);
    }
    let Reader { mut liberties, duplicates, .. } = reader;
    liberties.sort_by_key(|liberty| liberty.span.start);
    Ok(Document { root, liberties, duplicates })
}

pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    extent: Extent,
    /// The brackets around this place.
    open: Vec<char>,
    /// The last comma before the member that is being read, if there is one.
    last_comma: Option<usize>,
    /// What is still amiss with the brackets of the whole text; nobody counts them before the first that does not fit.
    balance: Option<Balance>,
    liberties: Vec<Liberty>,
    duplicates: Vec<Duplicate>,
}

impl Reader<'_> {
    pub(super) fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        match self.text.as_bytes().get(self.at)? {
            byte if byte.is_ascii() => Some(char::from(*byte)),
            _ => self.rest().chars().next(),
        }
    }

    /// Whether nothing has been opened yet.
    pub(super) fn is_at_root(&self) -> bool {
        self.open.is_empty()
    }

    /// The place of the next character.
    pub(super) fn here(&self) -> Span {
        Span { start: self.at, end: self.at + self.peek().map_or(0, char::len_utf8) }
    }

    /// The text takes a liberty from `start` to here.
    pub(super) fn note(&mut self, kind: LibertyKind, start: usize) {
        let end = if start == self.at { self.here().end } else { self.at };
        self.liberties.push(Liberty { kind, span: Span { start, end }, other: None });
    }

    /// The next `length` bytes are a liberty.
    fn take(&mut self, kind: LibertyKind, length: usize) {
        let start = self.at;
        self.at += length;
        self.note(kind, start);
    }

    fn skip_blanks(&mut self) -> Result<(), Problems> {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\n' | '\r') => self.at += 1,
                Some('#') => self.take(LibertyKind::HashComment, self.line_length()),
                Some('/') if self.rest().starts_with("//") => self.take(LibertyKind::Comment, self.line_length()),
                Some('/') if self.rest().starts_with("/*") => match self.rest()[2..].find("*/") {
                    Some(length) => self.take(LibertyKind::Comment, length + 4),
                    None => {
                        let problem =
                            Problem::new(Span { start: self.at, end: self.at + 2 }, "a comment without an end");
                        return Err(problem.hint("end it with */").into());
                    }
                },
                Some(blank) if is_other_blank(blank) => {
                    let rest = self.rest().trim_start_matches(is_other_blank);
                    self.take(LibertyKind::Blank, self.rest().len() - rest.len());
                }
                _ => return Ok(()),
            }
        }
    }

    fn line_length(&self) -> usize {
        self.rest().find(['\n', '\r']).unwrap_or(self.rest().len())
    }

    fn value(&mut self) -> Result<Node, Problems> {
        match self.peek() {
            Some('{') => match scalar::bare_reference(self.rest()) {
                Some(length) => {
                    let (start, value) = (self.at, Value::String(self.rest()[..length].to_owned()));
                    self.take(LibertyKind::BareReference, length);
                    Ok(Node { span: Span { start, end: self.at }, value })
                }
                None => self.nested(Self::object),
            },
            Some('[') => self.nested(Self::list),
            _ => scalar::read(self),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Node, Problems>) -> Result<Node, Problems> {
        self.open.extend(self.peek());
        let most = self.extent.depth;
        if self.open.len() > most {
            return Err(Problem::new(self.here(), format!("nested deeper than {most} levels")).into());
        }
        let node = read(self)?;
        self.open.pop();
        Ok(node)
    }

    fn list(&mut self) -> Result<Node, Problems> {
        let (start, mut items) = (self.at, Vec::new());
        self.at += 1;
        while self.goes_on(start, ']', items.is_empty())? {
            let (before, item) = (self.at, self.value()?);
            self.skip_blanks()?;
            if self.peek() == Some(':') && matches!(item.value, Value::String(_)) && self.should_have_ended() {
                self.end_before_key(start, before, ']');
                break;
            }
            items.push(item);
        }
        Ok(Node { span: Span { start, end: self.at }, value: Value::Sequence(items) })
    }

    /// Whether a list that has come to a key stands in an object, and nothing closes it further on.
    fn should_have_ended(&mut self) -> bool {
        self.open.iter().nth_back(1) == Some(&'{') && self.balance().lacks(']')
    }

    fn balance(&mut self) -> &mut Balance {
        let text = self.text;
        self.balance.get_or_insert_with(|| Balance::of(text))
    }

    /// Ends what begins at `start` before the key at `key`, which belongs to the object around it.
    fn end_before_key(&mut self, start: usize, key: usize, close: char) {
        self.at = self.last_comma.unwrap_or(key);
        while self.liberties.pop_if(|liberty| liberty.span.start >= self.at).is_some() {}
        self.balance().add(close);
        self.unclosed(start, Some(self.here()));
    }

    /// What begins at `start` is not closed where it should have been: before `end`, or before the end of the text.
    fn unclosed(&mut self, start: usize, end: Option<Span>) {
        let span = Span { start, end: start + 1 };
        self.liberties.push(Liberty { kind: LibertyKind::Unclosed, span, other: end });
    }

    fn object(&mut self) -> Result<Node, Problems> {
        let start = self.at;
        self.at += 1;
        self.members(start)
    }

    /// An object of which only the inside is there, with the first key at this place.
    fn fragment(&mut self, first: Span) -> Result<Node, Problems> {
        let is_before = |liberty: &Liberty| liberty.span.start < first.start;
        self.liberties.retain(is_before);
        self.at = first.start;
        self.open.push('{');
        let node = self.members(first.start)?;
        self.open.pop();
        self.liberties.retain(|it| it.kind != LibertyKind::Unclosed || it.span.start != first.start);
        self.liberties.push(Liberty { kind: LibertyKind::Fragment, span: first, other: None });
        Ok(node)
    }

    /// The members of what begins at `start`, up to its end.
    fn members(&mut self, start: usize) -> Result<Node, Problems> {
        let mut entries = Entries::default();
        let mut indent = None;
        while self.goes_on(start, '}', entries.is_empty())? {
            if self.is_outdented(start, &mut indent) {
                self.end_before_key(start, self.at, '}');
                break;
            }
            let (key, key_span) = scalar::key(self)?;
            self.skip_blanks()?;
            if self.peek() != Some(':') {
                let problem = Problem::new(self.here(), "a key needs a colon and a value");
                return Err(problem.into());
            }
            self.at += 1;
            self.skip_blanks()?;
            if self.peek().is_none_or(|next| matches!(next, '}' | ']' | ',')) {
                return Err(Problem::new(key_span, "this key has no value").into());
            }
            let entry = Entry { key, key_span, node: self.value()? };
            self.duplicates.extend(entries.add(entry));
        }
        Ok(Node { span: Span { start, end: self.at }, value: entries.into_value() })
    }

    /// Whether the key here begins a line that is no further in than the one where its object begins, which nothing closes
    /// further on: then it belongs to the object around that. `indent` is that of the object, once it is known.
    fn is_outdented(&mut self, start: usize, indent: &mut Option<usize>) -> bool {
        if self.open.iter().nth_back(1) != Some(&'{') {
            return false;
        }
        let Some(here) = self.indent_after(start) else { return false };
        let own = indent.get_or_insert_with(|| self.indent_of(start));
        here <= *own && self.balance().lacks('}')
    }

    /// Whether the bracket here stands less far in than the line where that begins which it would close, and there are too
    /// few of them: then it is meant for something around that.
    fn closes_another(&mut self, start: usize, close: char) -> bool {
        let is_less = self.indent_after(start).is_some_and(|here| here < self.indent_of(start));
        is_less && self.open.iter().rev().skip(1).any(|open| *open == opening(close)) && self.balance().lacks(close)
    }

    /// How far in this place is, if it begins a line below that of `start`.
    fn indent_after(&self, start: usize) -> Option<usize> {
        let before = &self.text[..self.at];
        let line = before.trim_end_matches([' ', '\t']);
        (line.ends_with('\n') && line.len() > start).then(|| before.len() - line.len())
    }

    /// How far in the line of this place begins.
    fn indent_of(&self, place: usize) -> usize {
        let begin = self.text[..place].rfind('\n').map_or(0, |newline| newline + 1);
        let line = &self.text[begin..place];
        line.len() - line.trim_start_matches([' ', '\t']).len()
    }

    /// Passes what stands before the next member of what begins at `start`; false after the closing character.
    fn goes_on(&mut self, start: usize, close: char, is_first: bool) -> Result<bool, Problems> {
        self.last_comma = None;
        loop {
            self.skip_blanks()?;
            match self.peek() {
                Some(',') => {
                    if is_first || self.last_comma.is_some() {
                        self.note(LibertyKind::SurplusComma, self.at);
                    }
                    self.last_comma = Some(self.at);
                    self.at += 1;
                }
                Some(next) if next == close => {
                    self.end_after_comma(is_first);
                    if self.closes_another(start, close) {
                        self.balance().add(close);
                        self.unclosed(start, Some(self.here()));
                    } else {
                        self.at += 1;
                    }
                    return Ok(false);
                }
                None => {
                    self.unclosed(start, None);
                    return Ok(false);
                }
                Some(next @ ('}' | ']')) => match self.misfit(next, close) {
                    Misfit::Surplus => self.take(LibertyKind::SurplusBracket, 1),
                    Misfit::Wrong => {
                        self.end_after_comma(is_first);
                        let other = Some(Span { start, end: start + 1 });
                        self.liberties.push(Liberty { kind: LibertyKind::WrongBracket, span: self.here(), other });
                        self.at += 1;
                        return Ok(false);
                    }
                    Misfit::Missing => {
                        self.end_after_comma(is_first);
                        self.unclosed(start, Some(self.here()));
                        return Ok(false);
                    }
                },
                Some(_) => {
                    if !is_first && self.last_comma.is_none() {
                        self.note(LibertyKind::MissingComma, self.at);
                    }
                    return Ok(true);
                }
            }
        }
    }

    /// Whatever is read ends here, perhaps after a comma.
    fn end_after_comma(&mut self, is_empty: bool) {
        if let Some(start) = self.last_comma.filter(|_| !is_empty) {
            let span = Span { start, end: start + 1 };
            self.liberties.push(Liberty { kind: LibertyKind::TrailingComma, span, other: None });
        }
    }

    /// Why the next bracket is `found` and not `close`. The brackets of the whole text tell which has been forgotten.
    fn misfit(&mut self, found: char, close: char) -> Misfit {
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
enum Misfit {
    /// It closes nothing.
    Surplus,
    /// Another one was meant.
    Wrong,
    /// Another one is missing before it.
    Missing,
}

/// What such a bracket closes.
fn opening(close: char) -> char {
    if close == '}' { '{' } else { '[' }
}

/// Blanks that JSON does not have: those of Unicode, and those that take no room.
fn is_other_blank(character: char) -> bool {
    (character.is_whitespace() && !character.is_ascii())
        || matches!(character, '\u{b}' | '\u{c}')
        || is_invisible(character)
}

/// Characters that nobody sees: marks of order, joiners, soft hyphens.
pub(in crate::config) fn is_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}
