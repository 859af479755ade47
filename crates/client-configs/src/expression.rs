//! Regular expressions that are part of the program.

use regex::Regex;

/// Any of these forms, with words of ASCII letters: those of Unicode make any text slow that is not ASCII.
pub(super) fn any_of(forms: &[&str]) -> Regex {
    #[expect(clippy::unwrap_used, reason = "the expressions never change")]
    Regex::new(&forms.join("|").replace(r"\b", r"(?-u:\b)")).unwrap()
}
