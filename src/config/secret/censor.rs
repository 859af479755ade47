//! What may be said about a config: its problems without its secrets.

use std::{borrow::Cow, cell::OnceCell, collections::HashSet, mem, sync::Arc};

use super::{Known, MASK, SHORTEST, alphabet::Alphabet, mask};
use crate::config::{Problem, Source, Span, finding::Finding};

/// A sentence is about what stands near it; so not every secret of a file is looked for in every sentence about it.
const NEIGHBOURS: usize = 16;

/// A shorter secret, or one of small letters alone, may be a word of ours or a name, and is looked for only in the values
/// that a sentence proposes.
const WORD: usize = 8;

/// So many sentences are remembered: those that a file with thousands of faults repeats are fewer.
const REMEMBERED: usize = 100;

/// Takes the secrets of one source out of what is said about it.
///
/// Sentences quote no values, so that this is for names and words that hold what they should not. A sentence that is
/// always the same holds nothing of a file.
#[derive(Debug)]
pub struct Censor<'s> {
    source: &'s Source,
    /// In the order of the source.
    secrets: &'s [Span],
    known: OnceCell<Known<'s>>,
    /// Sentences in which nothing has the form of a secret.
    harmless: HashSet<String>,
}

impl<'s> Censor<'s> {
    /// The secrets are in the order of the source.
    pub fn new(source: &'s Source, secrets: &'s [Span]) -> Self {
        Censor { source, secrets, known: OnceCell::new(), harmless: HashSet::new() }
    }

    /// A name without the secrets in it.
    pub fn name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        let known = self.known.get_or_init(|| Known::of(self.source, self.secrets));
        known.mask(mask("", name))
    }

    /// A finding without what must not be told in it.
    pub fn finding(&mut self, finding: &Finding) -> Finding {
        let server = finding.server.as_ref().map(|server| match self.name(server) {
            Cow::Borrowed(_) => Arc::clone(server),
            Cow::Owned(masked) => masked.into(),
        });
        Finding { code: finding.code, problem: self.problem(&finding.problem), server }
    }

    /// A problem without the secrets in its sentences, and without those that stand near its place.
    pub fn problem(&mut self, problem: &Problem) -> Problem {
        let Problem { span, message, hint } = problem;
        let mut sentence = |sentence: &Cow<'static, str>| match sentence {
            Cow::Borrowed(sentence) => Cow::Borrowed(*sentence),
            Cow::Owned(sentence) => self.sentence(sentence, span.start).into(),
        };
        Problem { span: *span, message: sentence(message), hint: hint.as_ref().map(sentence) }
    }

    fn sentence(&mut self, sentence: &str, at: usize) -> String {
        let mut sentence = self.masked(sentence);
        let alphabet = Alphabet::of(&sentence);
        let index = self.secrets.partition_point(|secret| secret.start < at);
        let near = &self.secrets[index.saturating_sub(NEIGHBOURS)..self.secrets.len().min(index + NEIGHBOURS)];
        let mut last = "";
        for secret in near {
            let written = self.source.text.get(secret.start..secret.end).unwrap_or_default().trim_matches(['"', '\'']);
            let is_new = mem::replace(&mut last, written) != written;
            if is_new && written.len() >= SHORTEST && alphabet.has_all(written) {
                sentence = without(&sentence, written);
            }
        }
        sentence
    }

    fn masked(&mut self, sentence: &str) -> String {
        if self.harmless.contains(sentence) {
            return sentence.to_owned();
        }
        if let Cow::Owned(masked) = mask("", sentence) {
            return masked;
        }
        if self.harmless.len() < REMEMBERED {
            self.harmless.insert(sentence.to_owned());
        }
        sentence.to_owned()
    }
}

/// A sentence without a secret.
fn without(sentence: &str, secret: &str) -> String {
    let is_word = secret.len() < WORD || secret.bytes().all(|byte| byte.is_ascii_lowercase());
    let (mut rest, mut at) = (String::with_capacity(sentence.len()), 0);
    for (found, _) in sentence.match_indices(secret) {
        let is_value = || sentence[..found].matches('"').count() % 2 == 1;
        if !is_word || is_value() {
            rest.push_str(&sentence[at..found]);
            rest.push_str(MASK);
            at = found + secret.len();
        }
    }
    rest.push_str(&sentence[at..]);
    rest
}
