//! Secrets that stand somewhere once more, under a name that says nothing.

use std::{borrow::Cow, ops::Range};

use super::{is_likely, masked};
use crate::config::{Source, Span};

/// What may stand around a secret or after it, where its end is not clear.
const AROUND: [char; 5] = ['"', '\'', ',', '}', ']'];

/// So many bytes at the beginning tell whether there may be a secret. None that is shorter is looked for.
const BEGIN: usize = 6;

/// Without a digit, a shorter text may be a word that stands there for itself.
const WORD: usize = 12;

/// No longer secret is looked for.
const LONGEST: usize = 4096;

/// Texts that are known to be secrets, to find them wherever else they stand.
#[derive(Debug, Default)]
pub struct Known<'s> {
    /// In order; none of them begins with another.
    secrets: Vec<&'s [u8]>,
    /// Whether a secret may begin with what has this hash.
    begins: Vec<bool>,
}

impl<'s> Known<'s> {
    /// Leaves out what is likely to stand somewhere without being a secret.
    pub fn new(secrets: impl Iterator<Item = &'s str>) -> Known<'s> {
        let mut secrets: Vec<_> =
            secrets.map(|it| it.trim_start_matches(['"', '\'']).trim_end_matches(AROUND)).collect();
        secrets.sort_unstable();
        secrets.dedup();
        let mut secrets: Vec<_> = secrets.into_iter().filter(|it| is_telling(it)).map(str::as_bytes).collect();
        secrets.dedup_by(|later, earlier| later.starts_with(earlier));
        let mut begins = vec![false; (secrets.len() * 16).next_power_of_two()];
        for secret in &secrets {
            let hash = hash(secret, begins.len());
            begins[hash] = true;
        }
        Known { secrets, begins }
    }

    /// What is known from a source and the places of its secrets.
    pub fn of(source: &'s Source, secrets: &[Span]) -> Known<'s> {
        Known::new(secrets.iter().filter_map(|secret| source.text.get(secret.start..secret.end)))
    }

    /// A text with [`MASK`](super::MASK) for each of them.
    pub fn mask<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        match masked(&text, self.in_text(&text)) {
            Cow::Owned(masked) => masked.into(),
            Cow::Borrowed(_) => text,
        }
    }

    /// Where one of them stands in a text, from the beginning of a word to the end of one. In order.
    pub fn in_text(&self, text: &str) -> Vec<Range<usize>> {
        let bytes = text.as_bytes();
        let mut found = Vec::new();
        let mut at = 0;
        while !self.secrets.is_empty() && at + BEGIN <= bytes.len() {
            let rest = &bytes[at..];
            if begins_word(bytes, at) && self.begins[hash(rest, self.begins.len())] {
                // Of those that are not greater than the rest, only the last can be its beginning.
                let index = self.secrets.partition_point(|secret| *secret <= rest);
                let last = index.checked_sub(1).map(|last| self.secrets[last]);
                if let Some(secret) = last.filter(|secret| rest.starts_with(secret)) {
                    let after = &rest[secret.len()..];
                    let more = after.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
                    found.push(at..at + secret.len() + more);
                    at += secret.len() + more;
                    continue;
                }
            }
            at += 1;
        }
        found
    }
}

/// Whether nobody writes such a text for anything else.
fn is_telling(text: &str) -> bool {
    let has = |of: fn(&u8) -> bool| text.as_bytes().iter().any(of);
    let is_mixed = || has(u8::is_ascii_digit) && has(|byte| !byte.is_ascii() || byte.is_ascii_alphabetic());
    (BEGIN..=LONGEST).contains(&text.len())
        && (text.len() >= WORD || is_mixed())
        && !text.contains(['"', '\n'])
        && is_likely(text, &(0..text.len()))
}

/// Whether a word may begin here; a letter behind a backslash belongs to no word.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let before = |distance: usize| at.checked_sub(distance).map(|index| bytes[index]);
    before(1).is_none_or(|byte| !byte.is_ascii_alphanumeric()) || before(2) == Some(b'\\')
}

/// A number below `limit`, a power of two, that depends on the beginning of a text.
fn hash(text: &[u8], limit: usize) -> usize {
    let number = text.iter().take(BEGIN).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    usize::try_from(mixed).unwrap_or_default() & (limit - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(secrets: &[&str], text: &'t str) -> Vec<&'t str> {
        Known::new(secrets.iter().copied()).in_text(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn what_is_known_is_found_wherever_a_word_begins() {
        let secrets = ["geheim1", "geheim12", "geheimgeheim", "é7ééé"];
        assert_eq!(found(&secrets, r#"geheim1,"geheim123" a=geheim1&"#), ["geheim1", "geheim123", "geheim1"]);
        assert_eq!(found(&secrets, r"\ngeheimgeheim/é7ééé"), ["geheimgeheim", "é7ééé"]);
        assert_eq!(found(&secrets, "ageheim1 geheim geheim2 7ééé"), [""; 0]);
        assert_eq!(found(&[], "geheim1"), [""; 0]);
    }

    #[test]
    fn words_that_are_not_only_secrets_are_not_looked_for() {
        for plain in ["postgres", "ab1", "12345678", "/home/ada/key-1", "changeme", "API_KEY_2", "a\"b12345"] {
            assert_eq!(found(&[plain], plain), [""; 0], "{plain}");
        }
    }
}
