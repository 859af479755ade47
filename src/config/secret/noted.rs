//! Secrets in comments, which are written as people like: `// password - …`, `# the token is …`.

use std::ops::Range;

use super::{SHORTEST, extent::is_quote, hidden::hidden_of, is_variable, name::is_secret_name};

/// What people write between a name and what it stands for.
const BETWEEN: [&str; 11] = ["-", "–", "—", "->", "=>", "→", "|", "~", "is", "was", ">"];

/// With fewer bytes, what follows a name at once is hardly its value.
const FEW: usize = 6;

/// What stands after the name of a secret in a comment, if it is no word of a sentence.
pub(super) fn noted(text: &str) -> impl Iterator<Item = Range<usize>> {
    comments(text).flat_map(|comment| {
        let here = comment.start;
        in_note(&text[comment]).into_iter().map(move |range| here + range.start..here + range.end)
    })
}

/// What may be comments, in YAML or in JSON: what it takes for one too many is only looked at.
fn comments(text: &str) -> impl Iterator<Item = Range<usize>> {
    let (mut at, mut is_unclosed) = (0, false);
    let next = move || {
        let begin = at + text[at..].find(['#', '/'])?;
        let (before, rest) = (text[..begin].chars().next_back(), &text[begin..]);
        let is_line = match rest.starts_with('#') {
            true => before.is_none_or(char::is_whitespace),
            false => rest.starts_with("//") && before != Some(':'),
        };
        let end_of_line = || rest.find('\n').unwrap_or(rest.len());
        let end = match (is_line, rest.starts_with("/*")) {
            (true, _) => end_of_line(),
            (_, true) => {
                // What has no end is looked for once.
                let end = if is_unclosed { None } else { rest.find("*/") };
                is_unclosed = end.is_none();
                end.unwrap_or_else(end_of_line)
            }
            // Each of the slashes behind a colon is none.
            _ => rest.len() - rest.trim_start_matches(['#', '/']).len(),
        };
        at = begin + end;
        Some(Some(begin..at).filter(|_| is_line || rest.starts_with("/*")))
    };
    std::iter::from_fn(next).flatten()
}

/// As [`noted`], in a text that is nothing but a comment.
pub(super) fn in_note(comment: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut words = words(comment).peekable();
    let mut before: Option<Range<usize>> = None;
    while let Some(name) = words.next() {
        let start = match &before {
            // Two words, as in `the API key`.
            Some(before) if ["key", "keys"].contains(&&comment[name.clone()]) => before.start,
            _ => name.start,
        };
        let mut is_told = false;
        while words.next_if(|word| BETWEEN.contains(&&comment[word.clone()])).is_some() {
            is_told = true;
        }
        if let Some(word) = words.peek().map(|word| trimmed(comment, word.clone()))
            && is_value(&comment[word.clone()], is_told, comment[word.end..].trim().len() < 2)
            && is_secret_name(&comment[trimmed(comment, start..name.end)])
        {
            let here = |part: Range<usize>| word.start + part.start..word.start + part.end;
            found.extend(hidden_of(&comment[word.clone()]).into_iter().map(here));
        }
        before = Some(name);
    }
    found
}

/// Whether a word may be what a name stands for, given whether the comment says so, and whether the word is its last.
fn is_value(word: &str, is_told: bool, is_last: bool) -> bool {
    let has = |of: fn(&u8) -> bool| word.as_bytes().iter().any(of);
    let is_mixed = || has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let is_likely = match is_told {
        true => word.len() >= SHORTEST && (is_last || has(u8::is_ascii_digit) || has(u8::is_ascii_punctuation)),
        false => word.len() >= FEW && is_mixed(),
    };
    is_likely && !word.contains("://") && !is_variable(word)
}

fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.split_whitespace().map(|word| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        start..start + word.len()
    })
}

/// A word without what surrounds it.
fn trimmed(text: &str, word: Range<usize>) -> Range<usize> {
    let is_around = |c: char| is_quote(c) || matches!(c, '(' | ')' | '[' | ']' | ',' | '.' | ';' | '/' | '#' | '*');
    let rest = text[word.clone()].trim_start_matches(is_around);
    let start = word.end - rest.len();
    start..start + rest.trim_end_matches(is_around).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        noted(text).map(|range| &text[range]).collect()
    }

    #[test]
    fn what_a_comment_says_of_a_secret_is_found() {
        for text in [
            "// password - s3cr3tvalue",
            "{} // the DB_PASSWORD – s3cr3tvalue, for now",
            "a: b # password is 's3cr3tvalue'.",
            "/* the API key\n   is s3cr3tvalue */ {}",
            "// password -> s3cr3tvalue",
            "#token s3cr3tvalue",
            "https://h/x // (password s3cr3tvalue)",
            "//password | s3cr3tvalue",
        ] {
            assert_eq!(found(text), ["s3cr3tvalue"], "{text}");
        }
        assert_eq!(found("// password - geheim"), ["geheim"]);
    }

    #[test]
    fn sentences_of_comments_stay() {
        for text in [
            "// token - see the page of the program",
            "# the token is in the vault of the team",
            "// password - ${DB_PASSWORD}",
            "// password - https://example.com/passwords/1",
            "// set API_KEY or OTHER_KEY_2",
            "https://h/password - s3cr3tvalue",
            "// a password",
            "a#password - s3cr3tvalue",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
