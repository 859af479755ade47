//! Values that the user forgot to fill in.

use std::{cell::LazyCell, ops::Range, sync::LazyLock};

use regex::Regex;

use super::expression::any_of;

/// What people write where others are to write something else.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    any_of(&[
        // Whatever case they are in.
        r"(?i)<[A-Za-z][A-Za-z0-9 _./:-]{1,60}>",
        r"\[(?:your|insert|replace|enter)[^\]\n]{0,60}\]",
        r"\byour[-_][A-Za-z0-9_-]*[A-Za-z0-9]",
        r"^your [a-z ]+$",
        r"\byour(?:name|username|token|key|apikey|password|secret|domain|project|org)\b",
        r"(?:[A-Za-z]:)?[/\\]+(?:absolute[/\\]+|full[/\\]+)?path[/\\]+to\b",
        r"\b(?:change|replace|fill)[-_ ]?(?:me|this|it|with)(?:\b|_)",
        r"\b(?:insert|enter|put|paste|add)[-_ ](?:[A-Za-z0-9]+[-_ ]){0,5}here\b",
        r"[/\\](?:users|home)[/\\]+(?:username|user-name|user_name|you|yourname|your-name|name)\b",
        r"#\{[A-Za-z_][A-Za-z0-9_.]*\}",
        r"://\{[A-Za-z_-]+\}",
        r"[A-Za-z0-9]*[-_]?x{4,}",
        r"^(?:(?-i:TODO)|placeholder)$",
        r"\bdummy[-_]?(?:key|token|secret)\b",
        r"^[A-Za-z_-]*(?:\.{3,}|…)$",
        r"\*{3,}",
        r"\{\{\s*[A-Za-z_][A-Za-z0-9_ .:-]{0,60}\}\}",
        r"(?-i:\{[A-Z][A-Z0-9]*_[A-Z0-9_]*\})",
        r"(?-i:\b__[A-Z][A-Z0-9_]*__\b)",
        r"(?-i:@@[A-Z][A-Z0-9_]*@@)",
    ])
});

/// Strings that are placeholders as a whole.
static WHOLE: LazyLock<Regex> = LazyLock::new(|| {
    any_of(&[
        r"(?i)^(?:insert|enter|paste|(?-i:my))[-_ ](?:[A-Za-z0-9]+[-_ ]){0,5}(?:key|token|secret|password)$",
        r"^(?:add|put)[-_ ]your[-_ ](?:[A-Za-z0-9]+[-_ ]){0,5}(?:key|token|secret|password)$",
        r"^(?:[A-Za-z0-9]+[-_ ]){0,5}(?:key|token|secret|password|id|url|value)[-_ ](?:goes[-_ ])?here$",
        r"^(?:sua?|seu|tu|votre|deine?|ihre?)[-_ ](?:[a-z]+[-_ ]){0,5}(?:key|token|chave|clave|aqu[ií]|ici|hier)$",
        r"^[\[<]?(?:redacted|removed|censored|hidden)[\]>]?$",
        r"(?-i:^\[[A-Z][A-Z0-9_ -]*\]$)",
        r"^\{[a-z_-]*(?:key|token|secret|password)\}$",
    ])
});

/// How each [`WHOLE`] ends.
const ENDS: [&str; 18] = [
    "key", "token", "secret", "password", "here", "aqui", "aquí", "ici", "hier", "chave", "clave", "redacted",
    "removed", "censored", "hidden", ">", "]", "}",
];

/// Replaces letters and digits.
const BLANKS: &str = "xxxx";

/// So many letters and digits beside those in one word are hardly an example's.
const MANY: usize = 10;

/// Where a value has something that is not meant to stay.
pub fn placeholder(value: &str) -> Option<Range<usize>> {
    marked(value).or_else(|| is_whole(value).then_some(0..value.len()))
}

/// As [`placeholder`], without strings that may be real values: `my_password`.
pub(super) fn marked(value: &str) -> Option<Range<usize>> {
    // Behind a dollar sign, braces are those of a reference.
    let is_reference =
        |range: &Range<usize>| value[range.start..].starts_with('{') && value[..range.start].ends_with('$');
    // A path of a URL may have such words.
    let scheme = LazyCell::new(|| value.find("://"));
    let is_of_url =
        |range: &Range<usize>| value[range.start..].starts_with("/path") && scheme.is_some_and(|at| at < range.start);
    let mut found = PLACEHOLDER.find_iter(value).map(|found| found.range());
    found.find(|range| !is_reference(range) && !is_of_url(range)).filter(|range| !is_of_random_word(value, range))
}

fn is_whole(value: &str) -> bool {
    let bytes = value.as_bytes();
    let ends_with = |end: &&str| {
        let at = bytes.len().checked_sub(end.len());
        at.is_some_and(|at| bytes[at..].eq_ignore_ascii_case(end.as_bytes()))
    };
    ENDS.iter().any(ends_with) && WHOLE.is_match(value)
}

/// Whether what looks like blanks to fill in is part of a random word.
fn is_of_random_word(value: &str, found: &Range<usize>) -> bool {
    let has_blanks = value.as_bytes()[..found.end].to_ascii_lowercase().ends_with(BLANKS.as_bytes());
    if !has_blanks {
        return false;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric();
    let before = value[..found.end].trim_end_matches(is_part).len();
    let after = value[found.end..].find(|c| !is_part(c)).map_or(value.len(), |length| found.end + length);
    let rest = value[before..found.end].trim_end_matches(['x', 'X']).bytes().chain(value[found.end..after].bytes());
    let (digits, all) = rest.fold((0, 0), |(digits, all), byte| (digits + usize::from(byte.is_ascii_digit()), all + 1));
    all >= MANY && digits * 4 >= all && digits < all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_recognized_by_their_form() {
        for value in "<your-token>|Bearer <TOKEN>|YOUR_API_KEY|your-container-name|your_api_key_here|\
             /path/to/server.js|/absolute/path/to/x|C:\\path\\to\\file|/Users/username/Desktop|ghp_xxxxxxxx|\
             xxxx-xxxx|sk-proj-xxxx-2024|ghp_xxxxabcd1234|REPLACE_ME|changeme|replace-with-your-key|\
             insert-your-key-here|[your token]|sk-...|sk-…|********|TODO|Bearer {{API_KEY}}|{{ token }}|\
             https://x.example/{TENANT_ID}/mcp|__TOKEN__|@@API_KEY@@|REPLACE_WITH_KEY|FILL_ME_IN|PASTE_TOKEN|\
             add your key|my-api-key|API_KEY_HERE|token-goes-here|sua_chave_brevo_aqui|REDACTED|[API_KEY]|\
             #{TOKEN}|{secret}|https://{host}/mcp"
            .split('|')
        {
            assert!(placeholder(value).is_some(), "{value}");
        }
        for value in "npx|-y|@modelcontextprotocol/server-filesystem|https://mcp.example.com/mcp|${YOUR}|\
             ${{ secrets.API_KEY }}|${API_KEY}|{id}|{{.Names}}|__init__.py|a < b > c|/home/ada/project|yours|\
             /usr/local/path/tool|todos|xx|SECRETxxxx2345|Zq7WvK9mxxxxLx2PfR4tJh8N|max|./...|add-tool|\
             my-server|put|https://a.example/{id}|[1]|#channel|tu-madre|todo|MY_API_KEY|\
             https://a.example/path/to/mcp"
            .split('|')
        {
            assert_eq!(placeholder(value), None, "{value}");
        }
        assert_eq!(placeholder("Bearer <TOKEN> x"), Some(7..14));
    }
}
