//! Objects, lists, and what stands between their values.

use std::collections::HashMap;

use super::{Document, Liberty, LibertyKind, scalar};
use crate::config::{Duplicate, Entry, Node, Problem, Problems, Span, Value};

/// How far values may go.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    depth: usize,
}

pub(super) const OF_PEOPLE: Extent = Extent { depth: 128 };
pub(super) const OF_PROGRAMS: Extent = Extent { depth: 512 };

pub(super) fn read(text: &str, extent: Extent) -> Result<Document, Problems> {
    let mut reader = Reader { text, at: 0, extent, depth: 0, liberties: Vec::new(), duplicates: Vec::new() };
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
    depth: usize,
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
        self.depth == 0
    }

    /// The place of the next character.
    pub(super) fn here(&self) -> Span {
        Span { start: self.at, end: self.at + self.peek().map_or(0, char::len_utf8) }
    }

    /// The text takes a liberty from `start` to here.
    pub(super) fn note(&mut self, kind: LibertyKind, start: usize) {
        let end = if start == self.at { self.here().end } else { self.at };
        self.liberties.push(Liberty { kind, span: Span { start, end } });
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
        self.depth += 1;
        let most = self.extent.depth;
        if self.depth > most {
            return Err(Problem::new(self.here(), format!("nested deeper than {most} levels")).into());
        }
        let node = read(self)?;
        self.depth -= 1;
        Ok(node)
    }

    fn list(&mut self) -> Result<Node, Problems> {
        let (start, mut items) = (self.at, Vec::new());
        self.at += 1;
        while self.goes_on(start, ']', items.is_empty())? {
            items.push(self.value()?);
        }
        Ok(Node { span: Span { start, end: self.at }, value: Value::Sequence(items) })
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
        let node = self.members(first.start)?;
        self.liberties.retain(|it| it.kind != LibertyKind::Unclosed || it.span.start != first.start);
        self.liberties.push(Liberty { kind: LibertyKind::Fragment, span: first });
        Ok(node)
    }

    /// The members of what begins at `start`, up to its end.
    fn members(&mut self, start: usize) -> Result<Node, Problems> {
        let (mut entries, mut places) = (Vec::<Entry>::new(), Places::default());
        while self.goes_on(start, '}', entries.is_empty())? {
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
            match places.find(&entry.key, &entries) {
                None => entries.push(entry),
                Some(place) => {
                    let first = entries[place].key_span;
                    self.duplicates.push(Duplicate { key: entry.key.clone(), first, second: key_span });
                    entries[place] = entry;
                }
            }
        }
        Ok(Node { span: Span { start, end: self.at }, value: Value::Mapping(entries) })
    }

    /// Passes what stands before the next member of what begins at `start`; false after the closing character.
    fn goes_on(&mut self, start: usize, close: char, is_first: bool) -> Result<bool, Problems> {
        self.skip_blanks()?;
        let mut comma = None;
        while self.peek() == Some(',') {
            if is_first || comma.is_some() {
                self.note(LibertyKind::SurplusComma, self.at);
            }
            comma = Some(self.at);
            self.at += 1;
            self.skip_blanks()?;
        }
        match self.peek() {
            Some(next) if next == close => {
                if let Some(comma) = comma.filter(|_| !is_first) {
                    self.liberties.push(Liberty {
                        kind: LibertyKind::TrailingComma,
                        span: Span { start: comma, end: comma + 1 },
                    });
                }
                self.at += 1;
                Ok(false)
            }
            None => {
                self.liberties.push(Liberty { kind: LibertyKind::Unclosed, span: Span { start, end: start + 1 } });
                Ok(false)
            }
            Some(next @ ('}' | ']')) => {
                let problem =
                    Problem::new(self.here(), format!("`{next}` closes what `{}` opens", &self.text[start..=start]));
                Err(problem.hint(format!("write `{close}`, or look for a bracket too many above")).into())
            }
            Some(_) => {
                if !is_first && comma.is_none() {
                    self.note(LibertyKind::MissingComma, self.at);
                }
                Ok(true)
            }
        }
    }
}

/// Where the keys of one object stand. Most objects are so small that to look at all of their keys is quickest.
#[derive(Default)]
struct Places(HashMap<String, usize>);

impl Places {
    const FEW: usize = 16;

    fn find(&mut self, key: &str, entries: &[Entry]) -> Option<usize> {
        if entries.len() <= Places::FEW {
            return entries.iter().position(|entry| entry.key == key);
        }
        let known = self.0.len();
        self.0.extend(entries[known..].iter().zip(known..).map(|(entry, place)| (entry.key.clone(), place)));
        self.0.get(key).copied()
    }
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
