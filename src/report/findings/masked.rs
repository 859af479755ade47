//! Sentences about a text that has secrets.

use crate::config::{
    Source, Span,
    finding::Finding,
    secret::{MASK, mask},
};

/// A sentence is about what stands near it; so not every secret of a file is looked for in every sentence about it.
const NEAR: usize = 16;
/// Shorter texts stand in many sentences by chance.
const LEAST: usize = 4;

/// A text and where its secrets are.
pub(super) struct Masked<'a> {
    pub(super) source: &'a Source,
    pub(super) secrets: &'a [Span],
}

/// Whether a sentence has a text in it. Most have not, and a search that learns the text first takes longer.
fn has(sentence: &str, text: &str) -> bool {
    let first = text.as_bytes().first();
    let mut last = sentence.len().checked_sub(text.len()).into_iter().flat_map(|last| 0..=last);
    last.any(|at| sentence.as_bytes().get(at) == first && sentence.as_bytes()[at..].starts_with(text.as_bytes()))
}

impl Masked<'_> {
    pub(super) fn finding(&self, mut finding: Finding) -> Finding {
        let at = finding.problem.span.start;
        finding.problem.message = self.sentence(at, &finding.problem.message);
        finding.problem.hint = finding.problem.hint.map(|hint| self.sentence(at, &hint));
        finding
    }

    fn sentence(&self, at: usize, text: &str) -> String {
        let mut text = mask("", text).into_owned();
        let index = self.secrets.partition_point(|secret| secret.start < at);
        let near = &self.secrets[index.saturating_sub(NEAR)..self.secrets.len().min(index + NEAR)];
        let mut last = "";
        for secret in near {
            let written = self.source.text.get(secret.start..secret.end).unwrap_or_default();
            let written = written.trim_matches(['"', '\'']);
            if std::mem::replace(&mut last, written) != written && written.len() >= LEAST && has(&text, written) {
                text = text.replace(written, MASK);
            }
        }
        text
    }
}
