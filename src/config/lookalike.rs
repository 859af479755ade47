//! What people write for a reference to a variable, and no program of our dialects reads as one.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use super::{Reference, expression::any_of};

/// Braces with a kind and a name, or with a dollar sign and blanks; names between signs of percent; what PowerShell and
/// other languages have.
static LOOKALIKE: LazyLock<Regex> = LazyLock::new(|| {
    any_of(&[
        r"(?<open>\$\{\{|\{\{)\s*(?<kind>env|secrets?|inputs?|vars)\s*[.:]\s*(?<name>[A-Za-z_][A-Za-z0-9_-]*)\s*\}{0,2}",
        r"\$\{\{\s*(?<doubled>[A-Za-z_][A-Za-z0-9_]*)\s*\}\}?",
        r"\$\{\s*(?:secrets?|vars)[.:]\s*(?<dollared>[A-Za-z_][A-Za-z0-9_-]*)\s*\}{0,2}",
        r"\$\{\s*(?:env[.:]\s*)?(?<spaced>[A-Z_][A-Z0-9_]*)\s*\}",
        r"\{(?:(?:process\.)?env|secrets?)[.:](?<single>[A-Za-z_][A-Za-z0-9_]*)\}?",
        r"%(?<percent>[A-Z_][A-Z0-9_]{2,})%",
        r"\$(?:env|input):(?<shell>[A-Za-z_][A-Za-z0-9_]*)",
        r#"\b(?:process\.env\.|os\.environ\[["']|os\.getenv\(["'])(?<code>[A-Za-z_][A-Za-z0-9_]*)(?:["'][\])])?"#,
        r"^(?:env|ENV)[:.](?<bare>[A-Z_][A-Z0-9_]{2,})$",
    ])
});

const NAMES: [&str; 9] = ["name", "doubled", "dollared", "spaced", "single", "percent", "shell", "code", "bare"];

/// Where one of them may be: at what every one of them has.
pub(super) fn marks(text: &str) -> impl Iterator<Item = usize> {
    let signs = text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'{' | b'%')).map(|(at, _)| at);
    let kinds = text.as_bytes().windows(3).enumerate().filter(|(_, word)| matches!(*word, b"env" | b"ENV" | b"inp"));
    signs.chain(kinds.map(|(at, _)| at))
}

/// Whether a dollar sign and a word are the beginning of `$env:NAME`.
pub(super) fn is_of_kind(text: &str, reference: &Reference<'_>) -> bool {
    matches!(reference.name, "env" | "input") && text[reference.range.end..].starts_with(':')
}

/// Where such are, and the names in them.
pub(super) fn lookalikes_in(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let text = if marks(text).next().is_some() { text } else { "" };
    LOOKALIKE.captures_iter(text).filter_map(move |captures| {
        let range = captures.get_match().range();
        let name = NAMES.iter().find_map(|name| captures.name(name))?.as_str();
        // Between two pairs of braces it is something to fill in.
        let is_template = captures.name("open").is_some_and(|open| open.as_str() == "{{");
        // What a dollar sign begins is another program's, and told as that.
        let is_of_dollar = captures.name("single").is_some() && text[..range.start].ends_with('$');
        (!is_template && !is_of_dollar).then_some((range, name))
    })
}
