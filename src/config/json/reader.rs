//! Values, lists, and what stands between values.

use super::{
    Document, Liberty, LibertyKind,
    balance::{Balance, length_of_text},
    bracket::{Misfit, opening},
    quote::{Line, MOST_EFFORT},
    scalar,
};
use crate::config::{Duplicate, Node, Problem, Problems, Span, Value};

/// So many slips before a bracket may have to do with it.
const NEAR: usize = 100;

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
        effort: 0,
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
    if !liberties.is_sorted_by_key(|liberty| liberty.span.start) {
        liberties.sort_by_key(|liberty| liberty.span.start);
    }
    Ok(Document { root, liberties, duplicates })
}

pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    extent: Extent,
    /// The brackets around this place.
    pub(super) open: Vec<char>,
    /// The last comma before the member that is being read, if there is one.
    pub(super) last_comma: Option<usize>,
    /// What is still amiss with the brackets of the whole text; nobody counts them before the first that does not fit.
    pub(super) balance: Option<Balance>,
    pub(super) liberties: Vec<Liberty>,
    pub(super) duplicates: Vec<Duplicate>,
    /// How many bytes have been looked at for quotes that do not fit.
    effort: usize,
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

    /// What `tell` tells of the line at `start`, where a key or a value stands, about its quotes; `None` also if too much
    /// has been looked at for that.
    pub(super) fn of_line<T>(
        &mut self,
        start: usize,
        is_key: bool,
        tell: impl FnOnce(&Line<'_>) -> Option<T>,
    ) -> Option<T> {
        if self.effort > MOST_EFFORT {
            return None;
        }
        let line = Line::new(&self.text[start..], &self.open, is_key);
        let told = tell(&line);
        self.effort += line.effort();
        told
    }

    /// Whether nothing has been opened yet.
    pub(super) fn is_at_root(&self) -> bool {
        self.open.is_empty()
    }

    /// The place of the next character.
    pub(super) fn here(&self) -> Span {
        self.character_at(self.at)
    }

    pub(super) fn character_at(&self, start: usize) -> Span {
        Span { start, end: start + self.text[start..].chars().next().map_or(0, char::len_utf8) }
    }

    /// The text takes a liberty from `start` to here.
    pub(super) fn note(&mut self, kind: LibertyKind, start: usize) {
        let end = if start == self.at { self.here().end } else { self.at };
        self.liberties.push(Liberty { kind, span: Span { start, end }, other: None });
    }

    /// The next `length` bytes are a liberty.
    pub(super) fn take(&mut self, kind: LibertyKind, length: usize) {
        let start = self.at;
        self.at += length;
        self.note(kind, start);
    }

    /// Reads anew from `place`, and forgets what has been found from there on.
    pub(super) fn go_back(&mut self, place: usize) {
        self.at = place;
        while self.liberties.pop_if(|liberty| liberty.span.start >= place).is_some() {}
    }

    pub(super) fn skip_blanks(&mut self) -> Result<(), Problems> {
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
                Some('+' | '-') if self.is_diff_mark() => self.take(LibertyKind::DiffMark, 1),
                Some(blank) if is_other_blank(blank) => {
                    let rest = self.rest().trim_start_matches(is_other_blank);
                    self.take(LibertyKind::Blank, self.rest().len() - rest.len());
                }
                _ => return Ok(()),
            }
        }
    }

    /// Whether a sign begins the line here that is no part of what stands in it.
    fn is_diff_mark(&self) -> bool {
        let begins_line = self.at == 0 || self.text[..self.at].ends_with('\n');
        let is_apart = self.rest()[1..].starts_with([' ', '\t', '"', '{', '}', '[', ']', '\r', '\n']);
        begins_line && is_apart && (self.peek() == Some('+') || !self.is_at_root())
    }

    fn line_length(&self) -> usize {
        self.rest().find(['\n', '\r']).unwrap_or(self.rest().len())
    }

    pub(super) fn value(&mut self) -> Result<Node, Problems> {
        match self.peek() {
            Some('{') => match scalar::bare_reference(self.rest()) {
                Some(length) => {
                    let (start, value) = (self.at, Value::String(self.rest()[..length].to_owned()));
                    self.take(LibertyKind::BareReference, length);
                    Ok(Node { span: Span { start, end: self.at }, value })
                }
                None => self.within('{', Self::object),
            },
            Some('[') => self.within('[', Self::list),
            Some('(') => self.in_parentheses(),
            _ => scalar::read(self),
        }
    }

    /// Reads what stands within a bracket, whether or not that is there.
    pub(super) fn within(
        &mut self,
        bracket: char,
        read: impl FnOnce(&mut Self) -> Result<Node, Problems>,
    ) -> Result<Node, Problems> {
        self.open.push(bracket);
        let most = self.extent.depth;
        if self.open.len() > most {
            return Err(Problem::new(self.here(), format!("nested deeper than {most} levels")).into());
        }
        let node = read(self)?;
        self.open.pop();
        Ok(node)
    }

    fn list(&mut self) -> Result<Node, Problems> {
        let start = self.at;
        self.at += 1;
        self.items(start, ']', Vec::new())
    }

    /// A list, or an object if a key comes first. Its end may be the bracket that was meant.
    fn in_parentheses(&mut self) -> Result<Node, Problems> {
        let start = self.at;
        self.at += 1;
        let first = self.rest().trim_start();
        let is_key = |length| first[length..].trim_start().starts_with(':');
        let is_object = first.starts_with('"') && length_of_text(first).is_some_and(is_key);
        let (open, close) = if is_object { ('{', '}') } else { ('[', ']') };
        let close = if self.balance().has_surplus(close) { close } else { ')' };
        if close != ')' {
            self.balance().add(open);
        }
        let node = self.within(open, |reader| match open {
            '{' => reader.members(start, close),
            _ => reader.items(start, close, Vec::new()),
        })?;
        self.wrong_pair(start, &node);
        Ok(node)
    }

    /// The items of what begins at `start`, up to its end; `items` have been read.
    pub(super) fn items(&mut self, start: usize, close: char, mut items: Vec<Node>) -> Result<Node, Problems> {
        while self.goes_on(start, close, items.is_empty())? {
            let (before, item) = (self.at, self.value()?);
            self.skip_blanks()?;
            if self.peek() == Some(':')
                && let Value::String(text) = &item.value
                && !is_argument(text)
            {
                if self.is_unopened('}', close) {
                    items.push(self.unopened_object(before)?);
                    continue;
                }
                if items.is_empty() && close == ']' && self.is_taken_for_brace() {
                    return self.object_in_brackets(start, before);
                }
                if self.should_have_ended(items.is_empty()) {
                    self.end_before_key(start, before, ']');
                    break;
                }
                if items.is_empty() && close == ']' {
                    return self.object_in_brackets(start, before);
                }
            }
            items.push(item);
        }
        Ok(Node { span: Span { start, end: self.at }, value: Value::Sequence(items) })
    }

    /// A list without the bracket before it, of which `items` have been read; without any, it ends here.
    pub(super) fn unopened_list(&mut self, items: Vec<Node>) -> Result<Node, Problems> {
        let span = items.first().map_or(self.here(), |item| item.span);
        let close = if items.is_empty() { self.peek().unwrap_or(']') } else { ']' };
        let kind = if close == '}' { LibertyKind::UnopenedObject } else { LibertyKind::UnopenedList };
        self.liberties.push(Liberty { kind, span, other: None });
        self.balance().add(opening(close));
        self.within('[', |reader| reader.items(span.start, close, items))
    }

    /// What was opened by a brace at `start`, and has an item without a colon at `item`.
    pub(super) fn list_in_braces(&mut self, start: usize, item: usize) -> Result<Node, Problems> {
        self.go_back(item);
        self.open.pop();
        self.open.push('[');
        let close = if self.balance().lacks('}') { ']' } else { '}' };
        let node = self.items(start, close, Vec::new())?;
        self.wrong_pair(start, &node);
        Ok(node)
    }

    /// What was opened by a bracket of lists at `start`, and has a key at `key`.
    fn object_in_brackets(&mut self, start: usize, key: usize) -> Result<Node, Problems> {
        self.go_back(key);
        self.last_comma = None;
        self.open.pop();
        self.open.push('{');
        let close = if self.balance().lacks(']') { '}' } else { ']' };
        if self.is_taken_for_brace() {
            ['{', ']'].into_iter().for_each(|bracket| self.balance().add(bracket));
        }
        let node = self.members(start, close)?;
        self.wrong_pair(start, &node);
        Ok(node)
    }

    /// What begins at `start` and ends here has brackets of another kind.
    fn wrong_pair(&mut self, start: usize, node: &Node) {
        let is_object = matches!(node.value, Value::Mapping(_));
        let kind = if is_object { LibertyKind::WrongPairOfObject } else { LibertyKind::WrongPairOfList };
        let end = self.text[..self.at].char_indices().next_back().map_or(start, |(at, _)| at);
        let (span, other) = (self.character_at(start), Some(Span { start: end, end: self.at }));
        self.liberties.push(Liberty { kind, span, other });
    }

    /// Ends what begins at `start` before the key at `key`, which belongs to the object around it.
    pub(super) fn end_before_key(&mut self, start: usize, key: usize, close: char) {
        self.go_back(self.last_comma.unwrap_or(key));
        self.balance().add(close);
        self.unclosed(start, Some(self.here()));
    }

    /// What begins at `start` is not closed where it should have been: before `end`, or before the end of the text.
    fn unclosed(&mut self, start: usize, end: Option<Span>) {
        let span = self.character_at(start);
        self.liberties.push(Liberty { kind: LibertyKind::Unclosed, span, other: end });
    }

    /// Passes what stands before the next member of what begins at `start`; false after the closing character.
    pub(super) fn goes_on(&mut self, start: usize, close: char, is_first: bool) -> Result<bool, Problems> {
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
                Some(next) if next == close && self.is_surplus(start, close) => {
                    self.take(LibertyKind::SurplusBracket, 1);
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
                Some(found @ ('}' | ']')) => {
                    if self.ends_at_misfit(start, found, close, is_first) {
                        return Ok(false);
                    }
                }
                Some(_) if let Some(length) = length_of_ellipsis(self.rest()) => self.ellipsis(length, is_first)?,
                Some(_) if !is_first && self.last_comma.is_none() => match length_of_wrong_comma(self.rest()) {
                    Some(length) => {
                        self.last_comma = Some(self.at);
                        self.take(LibertyKind::WrongComma, length);
                    }
                    None => {
                        self.note(LibertyKind::MissingComma, self.at);
                        return Ok(true);
                    }
                },
                Some(_) => return Ok(true),
            }
        }
    }

    /// Whether what begins at `start` ends at a bracket that does not close it.
    fn ends_at_misfit(&mut self, start: usize, found: char, close: char, is_first: bool) -> bool {
        let misfit = self.misfit(found, close);
        if misfit == Misfit::Surplus {
            match self.take_unclosed(found) {
                Some(other) => {
                    self.liberties.push(Liberty {
                        kind: LibertyKind::LateBracket,
                        span: self.here(),
                        other: Some(other),
                    });
                    self.at += 1;
                }
                None => self.take(LibertyKind::SurplusBracket, 1),
            }
            return false;
        }
        self.end_after_comma(is_first);
        if misfit == Misfit::Wrong {
            let other = Some(self.character_at(start));
            self.liberties.push(Liberty { kind: LibertyKind::WrongBracket, span: self.here(), other });
            self.at += 1;
        } else {
            self.unclosed(start, Some(self.here()));
        }
        true
    }

    /// Takes back that a bracket was never closed which this one was meant to close; the place where that belongs.
    fn take_unclosed(&mut self, close: char) -> Option<Span> {
        let open = opening(close);
        let is_it = |it: &Liberty| {
            it.kind == LibertyKind::Unclosed && it.other.is_some() && self.text[it.span.start..].starts_with(open)
        };
        let near = self.liberties.len().saturating_sub(NEAR);
        let at = self.liberties[near..].iter().rposition(is_it)?;
        self.liberties.remove(near + at).other
    }

    /// Passes the dots for what was left out, and their comma.
    fn ellipsis(&mut self, length: usize, is_first: bool) -> Result<(), Problems> {
        self.take(LibertyKind::Ellipsis, length);
        self.skip_blanks()?;
        if self.peek() != Some(',') {
            self.last_comma = None;
        } else if is_first || self.last_comma.is_some() {
            self.last_comma = Some(self.at);
            self.at += 1;
        }
        Ok(())
    }

    /// Whatever is read ends here, perhaps after a comma.
    fn end_after_comma(&mut self, is_empty: bool) {
        if let Some(start) = self.last_comma.filter(|_| !is_empty) {
            let span = self.character_at(start);
            self.liberties.push(Liberty { kind: LibertyKind::TrailingComma, span, other: None });
        }
    }
}

/// Whether this is no key, but an option or a path, which a colon may follow in the place of a comma.
fn is_argument(text: &str) -> bool {
    text.starts_with(['-', '/', '.'])
}

/// The length of dots that stand for what was left out.
fn length_of_ellipsis(text: &str) -> Option<usize> {
    let length = ["...", "…"].into_iter().find(|dots| text.starts_with(dots))?.len();
    (!text[length..].starts_with(|next: char| next.is_alphanumeric() || ".$_\"".contains(next))).then_some(length)
}

/// The length of a sign that somebody took for a comma.
fn length_of_wrong_comma(text: &str) -> Option<usize> {
    let sign = text.chars().next().filter(|sign| matches!(sign, ';' | ':' | '，' | '、' | '；'));
    let is_point = text.starts_with('.') && text[1..].starts_with([' ', '\t', '\r', '\n', '"']);
    sign.map(char::len_utf8).or(is_point.then_some(1))
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
