//! Takes secrets out of what is shown.

use std::{borrow::Cow, ops::Range, sync::Arc};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::{MASK, is_likely, mask};
use rehearse_document::{Problem, Source, Span};
use rehearse_report::findings::Finding;

/// A secret that is shorter occurs anywhere.
const SHORTEST: usize = 6;
/// Without a digit, a shorter one may be a word.
const WORD: usize = 12;

/// Strings that are known to be secrets, to find them wherever they occur again.
#[derive(Debug, Default)]
pub struct KnownSecrets(Option<AhoCorasick>);

impl KnownSecrets {
    /// Leaves out what may well occur without being a secret.
    pub fn new<'s>(secrets: impl Iterator<Item = &'s str>) -> KnownSecrets {
        let quotes = ['"', '\'', ',', '}', ']'];
        let mut secrets: Vec<_> = secrets.map(|it| it.trim_matches(quotes)).filter(|it| is_distinctive(it)).collect();
        secrets.sort_unstable();
        secrets.dedup();
        #[expect(clippy::unwrap_used, reason = "only more than 2^31 bytes are too many, and no file is so large")]
        let search = || {
            // The other kinds take long to build for long secrets.
            let kind = Some(AhoCorasickKind::NoncontiguousNFA);
            AhoCorasick::builder().kind(kind).build(&secrets).unwrap()
        };
        KnownSecrets((!secrets.is_empty()).then(search))
    }

    /// A text with [`MASK`] for each of them.
    pub fn mask<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        match masked(&text, super::merge(self.find(&text))) {
            Cow::Owned(masked) => masked.into(),
            Cow::Borrowed(_) => text,
        }
    }

    /// Where they occur as words of a text, in no order.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let begins_word = |at: usize| {
            let mut before = text[..at].chars().rev();
            before.next().is_none_or(|c| !c.is_ascii_alphanumeric()) || before.next() == Some('\\')
        };
        let found = self.0.iter().flat_map(|search| search.find_overlapping_iter(text));
        found.map(|it| it.range()).filter(|range| begins_word(range.start)).collect()
    }
}

/// Whether people do not write such a string for anything else.
fn is_distinctive(text: &str) -> bool {
    let has = |of: fn(&u8) -> bool| text.as_bytes().iter().any(of);
    let is_mixed = has(u8::is_ascii_digit) && has(|byte| !byte.is_ascii() || byte.is_ascii_alphabetic());
    text.len() >= SHORTEST
        && (text.len() >= WORD || is_mixed)
        && !text.contains(['"', '\n'])
        && is_likely(text, &(0..text.len()))
}

/// Takes the secrets of one source out of sentences about it. Sentences quote no values, so that this is for names and
/// words that hold what they should not. A constant sentence holds nothing of a file.
#[derive(Debug)]
pub struct Redactor {
    known: KnownSecrets,
}

impl Redactor {
    pub fn new(source: &Source, secrets: &[Span]) -> Self {
        let written = secrets.iter().filter_map(|secret| source.text.get(secret.start..secret.end));
        Redactor { known: KnownSecrets::new(written) }
    }

    /// A name without the secrets in it.
    pub fn name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        self.known.mask(mask("", name))
    }

    pub fn finding(&self, finding: &Finding) -> Finding {
        let server = finding.server.as_ref().map(|server| match self.name(server) {
            Cow::Borrowed(_) => Arc::clone(server),
            Cow::Owned(masked) => masked.into(),
        });
        Finding { code: finding.code, problem: self.problem(&finding.problem), server }
    }

    pub fn problem(&self, problem: &Problem) -> Problem {
        let Problem { span, message, hint } = problem;
        let sentence = |sentence: &Cow<'static, str>| match sentence {
            Cow::Borrowed(sentence) => Cow::Borrowed(*sentence),
            Cow::Owned(sentence) => self.name(sentence).into_owned().into(),
        };
        Problem { span: *span, message: sentence(message), hint: hint.as_ref().map(sentence) }
    }
}

/// The value with [`MASK`] for these ranges, which are in order.
pub(super) fn masked(value: &str, secrets: Vec<Range<usize>>) -> Cow<'_, str> {
    if secrets.is_empty() {
        return Cow::Borrowed(value);
    }
    let (mut masked, mut at) = (String::new(), 0);
    for range in secrets {
        masked.push_str(&value[at..range.start]);
        masked.push_str(MASK);
        at = range.end;
    }
    masked.push_str(&value[at..]);
    Cow::Owned(masked)
}

/// The source with `*` for each character of its secrets, so that every line and column stays the same.
pub fn mask_source(source: &Source, secrets: &[Span]) -> Arc<Source> {
    let (mut text, mut at) = (String::with_capacity(source.text.len()), 0);
    for Span { start, end } in secrets {
        if let (true, Some(before), Some(secret)) =
            (*start >= at, source.text.get(at..*start), source.text.get(*start..*end))
        {
            text.push_str(before);
            text.extend(secret.chars().map(|character| if character == '\n' { '\n' } else { '*' }));
            at = *end;
        }
    }
    text.push_str(&source.text[at..]);
    Source::new(source.name.clone(), text)
}
