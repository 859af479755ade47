//! Parses elements whose values are not escaped.
//!
//! Models write values verbatim: program text, HTML, any `<`. So an element does not end with its next closing tag, but
//! with a closing tag before another element or before the end of the parent.

use std::ops::Range;

use super::tag::{Kind, Tag, Tags, skip_blank};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element<'t> {
    pub(super) name: &'t str,
    pub(super) range: Range<usize>,
    pub(super) inner: Range<usize>,
}

/// Why a text does not consist of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ElementError<'t> {
    /// The start of text outside of elements.
    StrayText(usize),
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
    /// At the closing tag of the parent.
    Close(&'n str),
    /// At the end of the range.
    Limit,
}

/// Parses the elements of a parent, and returns the end of its closing tag; `from` is the end of its opening tag. A
/// closing tag before a known element is preferred to one before an unknown element.
pub(super) fn children<'t>(
    text: &'t str,
    from: usize,
    parent: &str,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<(Vec<Element<'t>>, usize), ElementError<'t>> {
    Reader { text, limit: text.len(), end: End::Close(parent), is_known }.read(from)
}

/// Parses a range that must consist of elements.
pub(super) fn elements_in<'t>(
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

/// The text after a closing tag.
enum Following {
    /// A known element, or the end.
    Expected,
    Element,
    Other,
}

/// The first closing tag of each less likely kind.
#[derive(Default)]
struct ClosingCandidates {
    before_element: Option<Range<usize>>,
    other: Option<Range<usize>>,
    /// Followed by a known element or the end, but belongs to an element of the same name in the value.
    unbalanced: Option<Range<usize>>,
}

impl ClosingCandidates {
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
                    End::Close(_) => Err(ElementError::StrayText(at)),
                };
            }
            let tag = self.tag(at).ok_or(ElementError::StrayText(at))?;
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
            Kind::Close => Err(ElementError::StrayText(range.start)),
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
        let mut closing = ClosingCandidates::default();
        for tag in Tags::new(self.text, open.range.end..self.limit) {
            if tag.is(Kind::Open, open.name()) {
                depth += 1;
            } else if tag.is(Kind::Close, open.name()) {
                match self.following(tag.range.end) {
                    Following::Expected if depth == 0 => return Some(tag.range),
                    Following::Expected if !is_restarted => _ = closing.unbalanced.get_or_insert(tag.range),
                    Following::Element if depth == 0 => _ = closing.before_element.get_or_insert(tag.range),
                    Following::Other if depth == 0 => _ = closing.other.get_or_insert(tag.range),
                    _ => {}
                }
                depth = depth.saturating_sub(1);
            } else if self.is_end(&tag) {
                // After it another call may begin, so use the candidates; without any, the value mentions the tag.
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

    fn following(&self, at: usize) -> Following {
        let at = skip_blank(self.text, at, self.limit);
        if at == self.limit {
            return if matches!(self.end, End::Limit) { Following::Expected } else { Following::Other };
        }
        match self.tag(at) {
            Some(tag) if self.is_end(&tag) => Following::Expected,
            Some(tag) if tag.kind != Kind::Close && (self.is_known)(tag.name()) => Following::Expected,
            Some(tag) if tag.kind != Kind::Close => Following::Element,
            _ => Following::Other,
        }
    }
}
