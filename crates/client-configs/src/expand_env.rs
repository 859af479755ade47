//! References as Go's `os.ExpandEnv` takes them (`getShellName` in Go 1.25, `src/os/env.go`).
//!
//! `$NAME` and `${…}`, where any text between the braces is the name of a variable; `$5` and `$@` name one too. There
//! are neither defaults nor an escape, and a brace without a name or an end is left out with its dollar sign.

use std::collections::BTreeMap;

use rehearse_document::{Form, Reference};

/// A single character that is the name of a variable for a shell.
fn is_special(character: char) -> bool {
    matches!(character, '*' | '#' | '$' | '@' | '!' | '?' | '-' | '0'..='9')
}

/// Everything that is replaced, in its order. What is left out has no name.
pub(super) fn references(text: &str) -> impl Iterator<Item = Reference<'_>> {
    // Behind the last brace nothing has an end, so it is searched only once.
    let (last, mut at) = (text.rfind('}').unwrap_or_default(), 0);
    std::iter::from_fn(move || {
        loop {
            let start = at + text[at..].find('$')?;
            let after = &text[start + 1..];
            let (form, name, length) = match after.chars().next() {
                Some('{') => match (start < last).then(|| after[1..].find('}')).flatten() {
                    Some(length) => (Form::Braced, &after[1..=length], length + 2),
                    None => (Form::Braced, "", 1),
                },
                Some(special) if is_special(special) => (Form::Bare, &after[..1], 1),
                _ => {
                    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    let name = &after[..after.find(|c| !is_part(c)).unwrap_or(after.len())];
                    (Form::Bare, name, name.len())
                }
            };
            at = start + 1 + length;
            if length > 0 {
                return Some(Reference { form, name, default: None, range: start..at });
            }
        }
    })
}

/// The text with the values of its variables; those that are not set are empty.
pub(super) fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let (mut expanded, mut at) = (String::new(), 0);
    for Reference { name, range, .. } in references(text) {
        expanded.push_str(&text[at..range.start]);
        expanded.push_str(variables.get(name).map_or("", String::as_str));
        at = range.end;
    }
    expanded.push_str(&text[at..]);
    expanded
}

/// Whether no other program would take it for the name of a variable, and users do not set one of that name.
pub(super) fn is_only_of_go(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_alphabetic() || c == '_') || name.contains(|c: char| c == ':' || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_in_braces_is_a_name_and_so_is_a_digit() {
        let names = |text| references(text).map(|it| (it.name, &text[it.range])).collect::<Vec<_>>();
        assert_eq!(
            names("$A ${B} ${C:-d} a$5b $$ $é $ $"),
            [("A", "$A"), ("B", "${B}"), ("C:-d", "${C:-d}"), ("5", "$5"), ("$", "$$")]
        );
        assert_eq!(
            names("${} ${a b} ${{ x }} ${open"),
            [("", "${}"), ("a b", "${a b}"), ("{ x ", "${{ x }"), ("", "${")]
        );
        assert_eq!(names("é$"), []);
    }

    #[test]
    fn only_go_expands_variables_with_invalid_names() {
        assert!(!["A_1", "_", "api-key"].into_iter().any(is_only_of_go));
        assert!(["", "5", "C:-d", "a b", "{ x "].into_iter().all(is_only_of_go));
    }
}
