//! Values with a name in a text of any kind: in comments, in arguments, in URLs, in what is no JSON.

use std::ops::Range;

/// No secret is longer where nothing but its name tells it.
const LONGEST: usize = 500;

/// Every `name: value` and `name=value`, with or without quotes: the name, and where the value begins. A value may
/// itself be a name with a value, as in `"env": "API_KEY=…"`.
pub(super) fn assigned(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.match_indices([':', '=']).filter_map(|(at, _)| {
        let before = text[..at].trim_end();
        let name = last_name(before.strip_suffix(['"', '\'', '”']).unwrap_or(before))?;
        let value = text[at + 1..].trim_start().trim_start_matches(['"', '\'', '“', '[']);
        let is_value = !value.starts_with(ends_word) && !value.starts_with([':', '=']) && !value.is_empty();
        is_value.then_some((name, text.len() - value.len()))
    })
}

/// Every `--name value`, as words of a command or of a list: the name, and where the value begins.
pub(super) fn flags(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let is_of_flag = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut at = 0;
    let next = move || {
        let start = at + text[at..].find('-')? + 1;
        at = start + text[start..].find(|c: char| !is_of_flag(c)).unwrap_or(text.len() - start);
        Some(start..at)
    };
    std::iter::from_fn(next).filter_map(|range| {
        let name = text[range.clone()].trim_start_matches('-');
        let rest = &text[range.end..];
        let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest);
        let after = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        let value = after.strip_prefix(['"', '\'']).unwrap_or(after);
        let is_name = name.len() > 1 && name.starts_with(|c: char| c.is_ascii_alphabetic()) && after.len() < rest.len();
        let is_value = !value.starts_with(ends_word) && !value.starts_with('-') && !value.is_empty();
        (is_name && is_value).then_some((name, text.len() - value.len()))
    })
}

/// Every `name=value` among the parameters of URLs: the name, and where the value stands.
pub(super) fn parameters(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut at = 0;
    let next = move || {
        let begin = at + text[at..].find(['?', '&', ';'])? + 1;
        let equals = begin + text[begin..].find(|c: char| !is_of_name(c))?;
        at = equals;
        let name = &text[begin..equals];
        let Some(rest) = text[equals..].strip_prefix('=').filter(|_| !name.is_empty()) else { return Some(None) };
        let ends = |c: char| matches!(c, '&' | '#' | ';') || c.is_whitespace();
        at = equals + 1 + rest.find(ends).unwrap_or(rest.len());
        Some((at > equals + 1).then_some((name, equals + 1..at)))
    };
    std::iter::from_fn(next).flatten()
}

/// Where the passwords of URLs stand: `://user:password@`.
pub(super) fn passwords(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("://").filter_map(|(at, scheme)| {
        let begin = at + scheme.len();
        let end = begin + text[begin..].find(|c: char| matches!(c, '/' | '@') || c.is_whitespace())?;
        let (user, password) = text[begin..end].split_once(':')?;
        let is_there = !password.is_empty() && text[end..].starts_with('@');
        is_there.then_some(begin + user.len() + 1..end)
    })
}

/// What stands at the beginning of a text, up to what cannot be part of a value, or until it is long enough.
pub(super) fn word(text: &str) -> &str {
    let near = &text[..text.floor_char_boundary(LONGEST)];
    &near[..near.find(ends_word).unwrap_or(near.len())]
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '“' | '”' | '{' | '}' | '[' | ']' | ',')
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// The name that a text ends with, from its first letter.
fn last_name(text: &str) -> Option<&str> {
    let name = &text[text.trim_end_matches(is_of_name).len()..];
    name.find(|c: char| c.is_ascii_alphabetic()).map(|letter| &name[letter..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_found_however_they_are_quoted() {
        let found = |text| assigned(text).map(|(name, start)| (name, word(&text[start..]))).collect::<Vec<_>>();
        assert_eq!(found(r#""A_B": "x y", 'c' : ['d'], e=f;g"#), [("A_B", "x"), ("c", "d"), ("e", "f;g")]);
        assert_eq!(found("“key”: “é”\nenv: API_KEY=v"), [("key", "é"), ("env", "API_KEY=v"), ("API_KEY", "v")]);
        assert_eq!(found(r#"{"a": {}, "b": [], : x, 1: y, c: , d:: e"#), [("c", ""); 0]);
    }

    #[test]
    fn words_after_flags_are_values_unless_they_are_flags() {
        let found = |text| flags(text).map(|(name, start)| (name, word(&text[start..]))).collect::<Vec<_>>();
        assert_eq!(found("-y b --api-key v --x --y-z\tw"), [("api-key", "v"), ("y-z", "w")]);
        assert_eq!(found(r#"["--token", "t", "--b","-c"]"#), [("token", "t")]);
        assert_eq!(found("a-bc d --"), [("bc", "d")]);
    }

    #[test]
    fn urls_have_parameters_and_passwords() {
        let url = "https://ada:geheim@h:1/p?a=b&c&=d&token=é#e=f;g=h k://a:b/@ ://c:@";
        let values: Vec<_> = parameters(url).map(|(name, range)| (name, &url[range])).collect();
        assert_eq!(values, [("a", "b"), ("token", "é"), ("g", "h")]);
        assert_eq!(passwords(url).map(|range| &url[range]).collect::<Vec<_>>(), ["geheim"]);
        assert!(parameters("?a=?a=?a=").map(|(_, range)| range).eq(std::iter::once(3..9)));
    }
}
