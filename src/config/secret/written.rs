//! Values with a name in a text of any kind: in comments, in arguments, in sentences, in what is no JSON.

use std::borrow::Cow;

use super::{address::begins_parameter, extent::is_quote};

/// No flag is longer, in bytes.
const LONGEST_FLAG: usize = 100;

/// A name before a value.
#[derive(Debug)]
pub(super) struct Name<'t> {
    pub(super) name: Cow<'t, str>,
    /// Where the name begins, in its quotes.
    pub(super) start: usize,
    /// What comes after is the value, or blanks before it.
    pub(super) end: usize,
    /// Whether a quote closes the name.
    pub(super) is_closed: bool,
}

/// Every `name: value` and `name=value`, with or without quotes. A value may itself be a name with a value, as in
/// `"env": "API_KEY=…"`.
pub(super) fn assigned(text: &str) -> impl Iterator<Item = Name<'_>> {
    text.match_indices([':', '=']).filter_map(|(at, _)| {
        let before = text[..at].trim_end();
        let unquoted = before.strip_suffix(is_quote);
        let name = unquoted.unwrap_or(before);
        // A quote in a text that is in quotes itself.
        let name = if unquoted.is_some() { name.strip_suffix('\\').unwrap_or(name) } else { name };
        let (end, name) = (name.len(), last_name(name)?);
        let start = end - name.len();
        let is_parameter = text[at..].starts_with('=') && text[..start].ends_with(begins_parameter);
        let is_twice = text[at + 1..].starts_with([':', '=']);
        let name = Name { name: unescaped(name), start, end: at + 1, is_closed: unquoted.is_some() };
        // What a reference has after its name is told by the reference.
        let is_reference = text[..start].ends_with("${");
        (!is_parameter && !is_twice && !is_reference).then_some(name)
    })
}

/// Every `--name value`, as words of a command or of a list; the value follows at once.
pub(super) fn flags(text: &str) -> impl Iterator<Item = Name<'_>> {
    let is_of_flag = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut at = 0;
    let next = move || {
        let start = at + text[at..].find('-')?;
        at = start + text[start..].find(|c: char| !is_of_flag(c)).unwrap_or(text.len() - start);
        Some(start..at)
    };
    std::iter::from_fn(next).filter_map(move |range| {
        let name = text[range.clone()].trim_start_matches('-');
        let start = range.end - name.len();
        let rest = &text[range.end..];
        let unquoted = rest.strip_prefix(['"', '\'', '`']);
        let rest = unquoted.unwrap_or(rest);
        let after = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        let is_word = text[..range.start].chars().next_back().is_none_or(|c| !is_of_flag(c) && !c.is_alphanumeric());
        let is_long = name.len() > 1 || name.eq_ignore_ascii_case("u");
        let is_name = is_long && name.contains(|c: char| c.is_ascii_alphabetic()) && after.len() < rest.len();
        // A list of YAML.
        let value = after.strip_prefix("- ").unwrap_or(after);
        let is_value = !value.is_empty() && !is_flag(value.trim_start_matches(is_quote));
        let end = text.len() - value.len();
        (is_word && is_name && is_value).then_some(Name {
            name: name.into(),
            start,
            end,
            is_closed: unquoted.is_some(),
        })
    })
}

/// Whether a text begins with a flag, and not with a value that has a dash before it.
pub(super) fn is_flag(text: &str) -> bool {
    if !text.starts_with('-') {
        return false;
    }
    let text = &text[..text.floor_char_boundary(LONGEST_FLAG)];
    let word = &text[..text.find(|c: char| c.is_whitespace() || is_quote(c) || c == ',').unwrap_or(text.len())];
    let is_long = || word.len() > 8 && word.bytes().any(|byte| byte.is_ascii_digit());
    word.starts_with("--") || (word.starts_with('-') && !is_long())
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '\\' | '%')
}

/// The name that a text ends with, from its first letter.
fn last_name(text: &str) -> Option<&str> {
    let name = &text[text.trim_end_matches(is_of_name).len()..];
    name.find(|c: char| c.is_ascii_alphabetic() || c == '\\').map(|letter| &name[letter..])
}

/// A name of which letters may be written as escapes.
fn unescaped(name: &str) -> Cow<'_, str> {
    let text = || serde_json::from_str(&format!("\"{name}\"")).ok();
    if name.contains("\\u") { text().map_or(name.into(), Cow::<str>::Owned) } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_however_they_are_quoted() {
        let found = |text| {
            let names = assigned(text).map(|it| (it.name.into_owned(), text[it.end..].trim_start().chars().next()));
            names.collect::<Vec<_>>()
        };
        let expected = |names: &[(&str, char)]| {
            names.iter().map(|(name, first)| ((*name).to_owned(), Some(*first))).collect::<Vec<_>>()
        };
        let names = [("A_B", '"'), ("c", '['), ("e", 'f')];
        assert_eq!(found(r#""A_B": "x y", 'c' : ['d'], e=f;g"#), expected(&names));
        assert_eq!(found("“key”: “é”\nenv: API_KEY=v"), expected(&[("key", '“'), ("env", 'A'), ("API_KEY", 'v')]));
        assert_eq!(found(r#"{\"A\": 1, "B\u005fC": 2, `D`: 3"#), expected(&[("A", '1'), ("B_C", '2'), ("D", '3')]));
        assert_eq!(found(": x, 1: y, d:: e?f=g"), []);
    }

    #[test]
    fn words_after_flags_are_values_unless_they_are_flags() {
        let found = |text| {
            let names = flags(text).map(|it| format!("{} {}", it.name, &text[it.end..]));
            names.collect::<Vec<_>>()
        };
        assert_eq!(found("-y b --api-key v"), ["api-key v"]);
        assert_eq!(found("--x --y-z\tw"), ["y-z w"]);
        assert_eq!(found(r#"["--2fa", "t"]"#), [r#"2fa "t"]"#]);
        assert_eq!(found("- --token\n- t"), ["token t"]);
        assert_eq!(found("--token -0123abcdef"), ["token -0123abcdef"]);
        assert_eq!(found(r#"a-bc d -- "--b","-c""#), [""; 0]);
    }
}
