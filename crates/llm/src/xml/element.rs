//! The elements that make up a stretch of text.
//!
//! A model writes values as they are: program text, HTML, a `<` that is none of ours. So the end of an element is not its
//! next closing tag, but the one after which the text goes on as it must: with a further element or with the end of the
//! parent.

use std::ops::Range;

use super::tag::{Kind, Tag, Tags, skip_blank};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element<'t> {
    pub(super) name: &'t str,
    pub(super) range: Range<usize>,
    pub(super) inner: Range<usize>,
}

/// Why a text is not made of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ElementError<'t> {
    /// Text begins here that is in no element.
    Loose(usize),
    Unclosed {
        name: &'t str,
        range: Range<usize>,
    },
    Attributes {
        name: &'t str,
        range: Range<usize>,
    },
}

/// Where the elements end.
#[derive(Clone, Copy, Debug)]
enum End<'n> {
    /// With the closing tag of their parent.
    Close(&'n str),
    /// With the text.
    Limit,
}

/// The elements that a parent has, and where it ends; `from` is the end of its opening tag. After a value, an element
/// that `is_known` is a surer sign than another one.
pub(super) fn children<'t>(
    text: &'t str,
    from: usize,
    parent: &str,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<(Vec<Element<'t>>, usize), ElementError<'t>> {
    Reader { text, limit: text.len(), end: End::Close(parent), is_known }.read(from)
}

/// The elements that make up this stretch and nothing else.
pub(super) fn within<'t>(
    text: &'t str,
    range: Range<usize>,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<Vec<Element<'t>>, ElementError<'t>> {
    let reader = Reader { text, limit: range.end, end: End::Limit, is_known };
    reader.read(range.start).map(|(elements, _)| elements)
}

struct Reader<'t, 'n> {
    text: &'t str,
    limit: usize,
    end: End<'n>,
    is_known: &'n dyn Fn(&str) -> bool,
}

/// What comes after a closing tag.
enum Next {
    /// A known element, or the end.
    Expected,
    Element,
    Other,
}

/// Closing tags after which the text goes on otherwise; of each kind the first.
#[derive(Default)]
struct Closing {
    before_element: Option<Range<usize>>,
    other: Option<Range<usize>>,
    /// Goes on as it must, but belongs to an element of the same name in the value.
    unbalanced: Option<Range<usize>>,
}

impl Closing {
    fn is_any(&self) -> bool {
        self.before_element.is_some() || self.other.is_some() || self.unbalanced.is_some()
    }
}

impl<'t> Reader<'t, '_> {
    fn read(&self, from: usize) -> Result<(Vec<Element<'t>>, usize), ElementError<'t>> {
        let mut elements = Vec::new();
        let mut at = from;
        loop {
            at = skip_blank(self.text, at, self.limit);
            if at == self.limit {
                return match self.end {
                    End::Limit => Ok((elements, at)),
                    End::Close(_) => Err(ElementError::Loose(at)),
                };
            }
            let tag = self.tag(at).ok_or(ElementError::Loose(at))?;
            if self.is_end(&tag) {
                return Ok((elements, tag.range.end));
            }
            let element = self.element(tag)?;
            at = element.range.end;
            elements.push(element);
        }
    }

    fn tag(&self, at: usize) -> Option<Tag<'t>> {
        if !self.text[at..self.limit].starts_with('<') {
            return None;
        }
        Tag::at(self.text, at).filter(|tag| tag.range.end <= self.limit)
    }

    fn is_end(&self, tag: &Tag<'_>) -> bool {
        matches!(self.end, End::Close(parent) if tag.is(Kind::Close, parent))
    }

    fn is_start(&self, tag: &Tag<'_>) -> bool {
        matches!(self.end, End::Close(parent) if tag.is(Kind::Open, parent))
    }

    fn element(&self, tag: Tag<'t>) -> Result<Element<'t>, ElementError<'t>> {
        let (name, range) = (tag.name(), tag.range.clone());
        if name != tag.word() && !(self.is_known)(name) {
            return Err(ElementError::Attributes { name: tag.word(), range });
        }
        match tag.kind {
            Kind::Close => Err(ElementError::Loose(range.start)),
            Kind::Empty => Ok(Element { name, inner: range.end..range.end, range }),
            Kind::Open => match self.close(&tag) {
                Some(close) => Ok(Element { name, inner: range.end..close.start, range: range.start..close.end }),
                None => Err(ElementError::Unclosed { name, range }),
            },
        }
    }

    /// The closing tag of an element.
    fn close(&self, open: &Tag<'t>) -> Option<Range<usize>> {
        let mut depth = 0_usize;
        let (mut is_past_end, mut is_restarted) = (false, false);
        let mut closing = Closing::default();
        for tag in Tags::new(self.text, open.range.end..self.limit) {
            if tag.is(Kind::Open, open.name()) {
                depth += 1;
            } else if tag.is(Kind::Close, open.name()) {
                match self.next(tag.range.end) {
                    Next::Expected if depth == 0 => return Some(tag.range),
                    Next::Expected if !is_restarted => _ = closing.unbalanced.get_or_insert(tag.range),
                    Next::Element if depth == 0 => _ = closing.before_element.get_or_insert(tag.range),
                    Next::Other if depth == 0 => _ = closing.other.get_or_insert(tag.range),
                    _ => {}
                }
                depth = depth.saturating_sub(1);
            } else if self.is_end(&tag) {
                // Beyond it another call may begin, so what was found so far has to do; if nothing was, the value
                // mentions the tag.
                if closing.is_any() {
                    break;
                }
                is_past_end = true;
            } else if self.is_start(&tag) {
                if is_past_end {
                    return None;
                }
                is_restarted = true;
            }
        }
        closing.before_element.or(closing.other).or(closing.unbalanced)
    }

    fn next(&self, at: usize) -> Next {
        let at = skip_blank(self.text, at, self.limit);
        if at == self.limit {
            return if matches!(self.end, End::Limit) { Next::Expected } else { Next::Other };
        }
        match self.tag(at) {
            Some(tag) if self.is_end(&tag) => Next::Expected,
            Some(tag) if tag.kind != Kind::Close && (self.is_known)(tag.name()) => Next::Expected,
            Some(tag) if tag.kind != Kind::Close => Next::Element,
            _ => Next::Other,
        }
    }
}
