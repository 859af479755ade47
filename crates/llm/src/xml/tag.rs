//! Tags in a text that need not be XML.

use std::ops::Range;

pub(super) const CDATA: &str = "<![CDATA[";
pub(super) const CDATA_END: &str = "]]>";
const COMMENT: &str = "<!--";
const COMMENT_END: &str = "-->";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Close,
    /// `<name/>`
    Empty,
}

#[derive(Clone, Debug)]
pub(super) struct Tag<'t> {
    pub(super) kind: Kind,
    /// The text between the brackets: a name, perhaps with attributes.
    inner: &'t str,
    pub(super) range: Range<usize>,
}

impl<'t> Tag<'t> {
    /// The tag that begins at this byte, where there is a `<`.
    pub(super) fn at(text: &'t str, at: usize) -> Option<Tag<'t>> {
        let rest = text.get(at + 1..)?;
        let end = rest.find(['<', '>']).filter(|end| rest[*end..].starts_with('>'))?;
        let (kind, inner) = match &rest[..end] {
            inner if inner.starts_with('/') => (Kind::Close, &inner[1..]),
            inner if inner.ends_with('/') => (Kind::Empty, &inner[..end - 1]),
            inner => (Kind::Open, inner),
        };
        let starts_as_name = |c: char| !c.is_whitespace() && !matches!(c, '!' | '?');
        inner.starts_with(starts_as_name).then(|| Tag { kind, inner: inner.trim_end(), range: at..at + end + 2 })
    }

    /// The whole text as a name, because a name may contain spaces.
    pub(super) fn name(&self) -> &'t str {
        self.inner
    }

    /// The first word, without possible attributes.
    pub(super) fn word(&self) -> &'t str {
        self.inner.split_whitespace().next().unwrap_or_default()
    }

    pub(super) fn is(&self, kind: Kind, name: &str) -> bool {
        self.kind == kind && (self.name() == name || self.word() == name)
    }
}

/// The tags in a range, except those in CDATA sections.
#[derive(Clone, Debug)]
pub(super) struct Tags<'t> {
    text: &'t str,
    at: usize,
    end: usize,
}

impl<'t> Tags<'t> {
    pub(super) fn new(text: &'t str, range: Range<usize>) -> Self {
        Tags { text, at: range.start, end: range.end }
    }
}

impl<'t> Iterator for Tags<'t> {
    type Item = Tag<'t>;

    fn next(&mut self) -> Option<Tag<'t>> {
        loop {
            let rest = &self.text[self.at..self.end];
            self.at += rest.find('<')?;
            let rest = &self.text[self.at..self.end];
            if let Some(end) = enclosed(rest, CDATA, CDATA_END) {
                self.at += end;
                continue;
            }
            let tag = Tag::at(self.text, self.at).filter(|tag| tag.range.end <= self.end);
            self.at = tag.as_ref().map_or(self.at + 1, |tag| tag.range.end);
            if tag.is_some() {
                return tag;
            }
        }
    }
}

/// The end of the section at the start of `text`.
fn enclosed(text: &str, open: &str, close: &str) -> Option<usize> {
    let inner = text.strip_prefix(open)?;
    Some(open.len() + inner.find(close)? + close.len())
}

/// The end of the comment at the start of `text`.
pub(super) fn comment(text: &str) -> Option<usize> {
    enclosed(text, COMMENT, COMMENT_END)
}

/// The first byte from `at` that is neither white space nor in a comment.
pub(super) fn skip_blank(text: &str, mut at: usize, end: usize) -> usize {
    loop {
        let rest = &text[at..end];
        let blank = rest.len() - rest.trim_start().len();
        at += blank;
        match comment(&text[at..end]) {
            Some(end) => at += end,
            None => return at,
        }
    }
}
