//! Templates: what some programs replace by something that is not a variable of the environment.

use crate::dialect::Template;

/// No longer name is shown.
const LONGEST: usize = 64;

/// The templates of the program in a text, in words that may be shown: only plain names are.
pub(super) fn templates(text: &str, template: Option<Template>) -> Vec<String> {
    let Some(template) = template else { return Vec::new() };
    let Template { open, close, .. } = template;
    let shown = |range: std::ops::Range<usize>| {
        let written = &text[range];
        let name = written[open.len()..written.len() - close.len()].trim();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        match name.len() <= LONGEST && name.chars().all(is_plain) {
            true => format!("`{written}`"),
            false => format!("`{open}…{close}`"),
        }
    };
    template.ranges(text).into_iter().map(shown).collect()
}
