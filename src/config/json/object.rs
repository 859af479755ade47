//! Objects and their keys.

use super::{Liberty, LibertyKind, balance::length_of_text, quote::WINDOW, reader::Reader, scalar};
use crate::config::{Entry, Node, Problem, Problems, Span, Value, node::Entries};

impl Reader<'_> {
    pub(super) fn object(&mut self) -> Result<Node, Problems> {
        let start = self.at;
        self.at += 1;
        self.members(start, '}')
    }

    /// An object of which the beginning is lost, or all but the inside, with the first key at this place.
    pub(super) fn fragment(&mut self, first: Span) -> Result<Node, Problems> {
        self.go_back(first.start);
        let node = self.within('{', |reader| reader.members(first.start, '}'))?;
        let known = self.liberties.len();
        self.liberties.retain(|it| it.kind != LibertyKind::Unclosed || it.span.start != first.start);
        let is_closed = self.liberties.len() == known;
        let kind = if is_closed { LibertyKind::UnopenedObject } else { LibertyKind::Fragment };
        self.liberties.push(Liberty { kind, span: first, other: None });
        Ok(node)
    }

    /// The members of what begins at `start`, up to its end.
    pub(super) fn members(&mut self, start: usize, close: char) -> Result<Node, Problems> {
        let mut members = Entries::default();
        let (mut indent, mut taken) = (None, None);
        while self.goes_on(start, close, members.is_empty())? {
            if self.is_outdented(start, &mut indent) {
                self.end_before_key(start, self.at, '}');
                break;
            }
            let before = self.at;
            if self.peek() == Some('{')
                && (self.takes_items(&mut members, &mut taken, before, close)?
                    || self.object_without_key(&mut members)?)
            {
                continue;
            }
            let (key, key_span) = scalar::key(self)?;
            self.skip_blanks()?;
            if matches!(self.peek(), Some(',' | ']')) && self.text[before..].starts_with('"') {
                if self.takes_items(&mut members, &mut taken, before, close)? {
                    continue;
                }
                let is_list = members.is_empty() && self.peek() == Some(',') && !is_variable(&key);
                if is_list && !self.has_colon_after_comma() {
                    return self.list_in_braces(start, before);
                }
            }
            let node = self.value_of(key_span, close)?;
            self.duplicates.extend(members.add(Entry { key, key_span, node }));
        }
        Ok(Node { span: Span { start, end: self.at }, value: members.into_value() })
    }

    /// Reads the rest of a list that lacks the bracket before it: its first item was taken for the value of the last of
    /// `members`, and another one stands at `item`. That happens to a value once: its key is `taken`.
    fn takes_items(
        &mut self,
        members: &mut Entries,
        taken: &mut Option<Span>,
        item: usize,
        close: char,
    ) -> Result<bool, Problems> {
        let is_new = |last: &&mut Entry| taken.replace(last.key_span) != Some(last.key_span);
        let last = members.last_mut().filter(|_| self.is_unopened(']', close)).filter(is_new);
        let Some(last) = last else { return Ok(false) };
        self.go_back(self.last_comma.unwrap_or(item));
        let first = std::mem::replace(&mut last.node, nothing(item));
        last.node = self.unopened_list(vec![first])?;
        Ok(true)
    }

    /// What stands after a key: a colon or what was taken for one, and a value.
    fn value_of(&mut self, key: Span, close: char) -> Result<Node, Problems> {
        let is_colon = self.colon(key)?;
        self.skip_blanks()?;
        if is_colon && self.peek() == Some(',') && self.has_value_after_comma() {
            self.take(LibertyKind::SurplusComma, 1);
            self.skip_blanks()?;
        }
        let start = self.at;
        match self.peek() {
            Some(found @ ('}' | ']')) if is_colon && self.is_unopened(found, close) => {
                let Node { span, .. } = self.unopened_list(Vec::new())?;
                let value = if found == '}' { Value::Mapping(Vec::new()) } else { Value::Sequence(Vec::new()) };
                return Ok(Node { span, value });
            }
            Some(',' | '}' | ']') => return Ok(self.no_value(key)),
            None => return Err(Problem::new(key, "this key has no value").into()),
            Some(_) => {}
        }
        let node = self.value()?;
        self.skip_blanks()?;
        let is_text = matches!(node.value, Value::String(_));
        let is_below = self.text[key.end..start].contains('\n');
        match self.peek() {
            Some(':') if is_text && self.is_unopened('}', ']') => self.unopened_object(start),
            Some(':') if is_text && is_below => {
                self.go_back(start);
                Ok(self.no_value(key))
            }
            Some(']') if (is_text || is_below) && self.is_unopened(']', close) => self.unopened_list(vec![node]),
            _ => Ok(node),
        }
    }

    /// Passes what parts a key from its value; false if there is neither.
    fn colon(&mut self, key: Span) -> Result<bool, Problems> {
        let signs = ["=>", "=", "：", ";"];
        match self.peek() {
            Some(':') => {
                self.at += 1;
                self.skip_blanks()?;
                if self.peek() == Some(':') {
                    self.take(LibertyKind::SurplusColon, 1);
                }
            }
            Some(',') if self.has_value_after_comma() => self.take(LibertyKind::WrongColon, 1),
            Some('=' | '：' | ';') => {
                let length = signs.iter().find(|sign| self.rest().starts_with(**sign)).map_or(1, |sign| sign.len());
                self.take(LibertyKind::WrongColon, length);
            }
            Some('"' | '{' | '[' | '0'..='9' | '-' | 't' | 'f' | 'n') => self.note(LibertyKind::MissingColon, self.at),
            Some(',' | '}' | ']') => return Ok(false),
            Some(_) => {
                return Err(Problem::new(self.here(), "a key needs a colon and a value")
                    .hint("write a colon and a value, or remove the key")
                    .into());
            }
            None => return Err(Problem::new(key, "a key needs a colon and a value").into()),
        }
        Ok(true)
    }

    /// Whether the comma here stands before what can be no key: a bracket, a word, or a text without a colon.
    fn has_value_after_comma(&self) -> bool {
        let rest = self.rest()[1..].trim_start();
        match rest.chars().next() {
            Some('{' | '[' | '0'..='9' | '-' | 't' | 'f' | 'n') => true,
            Some('"') => {
                length_of_text(rest).is_some_and(|length| rest[length..].trim_start().starts_with([',', '}', ']']))
            }
            _ => false,
        }
    }

    /// Whether what follows the comma here are members of an object: one of them has a colon, or it is a bracket, which
    /// begins no list of texts.
    fn has_colon_after_comma(&self) -> bool {
        let rest = self.rest()[1..].trim_start();
        let rest = &rest[..rest.floor_char_boundary(WINDOW)];
        let (mut depth, mut at) = (0, 0);
        while let Some(length) = rest[at..].find(['{', '}', '[', ']', '"', ':']) {
            at += length;
            match rest.as_bytes()[at] {
                b'"' => at += length_of_text(&rest[at..]).map_or(0, |length| length - 1),
                b':' if depth == 0 => return true,
                b'{' | b'[' if at == 0 => return true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 0 => return false,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            at += 1;
        }
        false
    }

    /// What is read of a key without a value.
    fn no_value(&mut self, key: Span) -> Node {
        self.liberties.push(Liberty { kind: LibertyKind::NoValue, span: key, other: None });
        // The place of the colon, or else of the quote before that.
        let colon = self.text[key.end..self.at].find(':').map(|at| key.end + at);
        let start = colon.unwrap_or_else(|| self.text[..key.end].char_indices().next_back().map_or(0, |(at, _)| at));
        Node { span: self.character_at(start), value: Value::Null }
    }

    /// Passes a brace where a key belongs; true if it has its own end, and what is in between belongs to `members`.
    fn object_without_key(&mut self, members: &mut Entries) -> Result<bool, Problems> {
        let span = self.here();
        if self.balance().lacks('}') {
            self.balance().add('}');
            self.take(LibertyKind::SurplusBracket, 1);
            self.skip_blanks()?;
            return Ok(false);
        }
        let node = self.within('{', Self::object)?;
        let other = Some(Span { start: self.at - 1, end: self.at });
        self.liberties.push(Liberty { kind: LibertyKind::SurplusBracket, span, other });
        if let Value::Mapping(entries) = node.value {
            self.duplicates.extend(entries.into_iter().filter_map(|entry| members.add(entry)));
        }
        Ok(true)
    }

    /// An object of which the first key stands at `start`, without the brace before it.
    pub(super) fn unopened_object(&mut self, start: usize) -> Result<Node, Problems> {
        self.go_back(start);
        self.balance().add('{');
        let node = self.within('{', |reader| reader.members(start, '}'))?;
        let span = match &node.value {
            Value::Mapping(entries) => entries.first().map_or(node.span, |entry| entry.key_span),
            _ => node.span,
        };
        self.liberties.push(Liberty { kind: LibertyKind::UnopenedObject, span, other: None });
        Ok(node)
    }
}

/// Whether this is written as the names of environment variables are, which no list has.
fn is_variable(key: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    !key.is_empty() && key.bytes().all(is_of_name)
}

/// A null of which nothing is written.
fn nothing(place: usize) -> Node {
    Node { span: Span { start: place, end: place }, value: Value::Null }
}
