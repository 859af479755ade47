//! Secrets in a text that nobody can read as what it should be: whose values do not follow their names in order.

use std::ops::Range;

use super::{
    SHORTEST,
    extent::is_quote,
    hidden::hidden_of,
    is_variable,
    name::is_secret_name,
    written::{Name, assigned, is_flag},
};
use crate::config::{Entry, Node, Value};

/// What stands on the line of a secret's name up to the next name, word by word, so that the signs between the words can
/// still be seen.
pub(super) fn strewn(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut names = assigned(text).map(|Name { start, .. }| start).peekable();
    let lines = text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some((*at - line.len(), line))
    });
    lines.flat_map(move |(begin, line)| {
        let mut found = Vec::new();
        let mut is_secret = false;
        for word in words(line).map(|word| begin + word.start..begin + word.end) {
            while names.next_if(|name| *name < word.start).is_some() {}
            let is_before_value = names.peek().is_some_and(|name| word.contains(name));
            let is_name = is_before_value || is_in_quotes_or_first(text, begin, &word);
            if is_name && is_secret_name(&text[word.clone()]) {
                is_secret = true;
            } else if is_before_value {
                is_secret = false;
            } else if text[word.clone()].starts_with('#') && text[..word.start].ends_with([' ', '\t']) {
                // The line ends with a comment, which says what it likes.
                is_secret = false;
            } else if is_secret && word.len() >= SHORTEST && !is_flag(&text[word.clone()]) {
                let here = |part: Range<usize>| word.start + part.start..word.start + part.end;
                found.extend(hidden_of(&text[word.clone()]).into_iter().map(here));
            }
        }
        found
    })
}

/// What follows the name of a secret in texts where there should be an object: `"DB_PASSWORD geheim"`, `["DB_PASSWORD",
/// "geheim"]`; and in keys that hold a value as well. The values of an object are not looked at.
pub(super) fn in_words(node: &Node, hide: &mut impl FnMut(&Node, &str, Range<usize>)) {
    for Entry { key, key_span, .. } in node.as_entries().unwrap_or_default() {
        if key.contains(char::is_whitespace) {
            let key_node = Node { span: *key_span, value: Value::Null };
            strewn(key).for_each(|range| hide(&key_node, key, range));
        }
    }
    let items = node.as_items().unwrap_or(std::slice::from_ref(node));
    let mut is_value = false;
    for item in items {
        match &item.value {
            Value::Sequence(_) => in_words(item, hide),
            Value::String(text) => {
                let is_odd = |c: char| c.is_whitespace() || is_value && c.is_ascii_digit();
                let is_name = is_secret_name(text) && !text.contains(is_odd);
                if is_value && !is_name && !is_variable(text) {
                    hidden_of(text).into_iter().for_each(|range| hide(item, text, range));
                } else {
                    strewn(text).for_each(|range| hide(item, text, range));
                }
                is_value = is_name;
            }
            _ => is_value = false,
        }
    }
}

/// Whether a word stands where a name does.
fn is_in_quotes_or_first(text: &str, line: usize, word: &Range<usize>) -> bool {
    let (before, after) = (&text[line..word.start], &text[word.end..]);
    before.trim().is_empty() || (before.ends_with(is_quote) && after.starts_with(is_quote))
}

/// The words of a line: what stands between blanks, quotes and the signs of formats. A reference is one word.
fn words(line: &str) -> impl Iterator<Item = Range<usize>> {
    let is_sign =
        |c: char| c.is_whitespace() || is_quote(c) || matches!(c, ',' | ':' | '：' | '=' | '+' | '{' | '}' | '[' | ']');
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + line[at..].find(|c| !is_sign(c))?;
        let reference = crate::config::variable::reference(&line[start..]).map_or(0, |(.., length)| length);
        let rest = &line[start + reference..];
        at = start + reference + rest.find(is_sign).unwrap_or(rest.len());
        Some(start..at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_name_in_any_order_is_hidden() {
        for (text, expected) in [
            ("{\"DB_PASSWORD\" \"geheim\", \"a\": \"b\"}", vec!["geheim"]),
            ("{\"PASSWORD\"::\"geheim\"}", vec!["geheim"]),
            ("{\"PASSWORD\",\"geheim\", \"b\": 1}", vec!["geheim"]),
            ("{\"PASSWORD\":\"\"\"geheim\"\"\"}", vec!["geheim"]),
            ("{\"PASSWORD\": \"sehr\" + \"geheim\"}", vec!["sehr", "geheim"]),
            ("{\"PASSWORD\"：\"geheim\"}", vec!["geheim"]),
            ("{\"password\": {\"$ref\": \"abcd\"}}", vec![]),
            ("env:\n  PASSWORD \"geheim\"\n  A b", vec!["geheim"]),
            ("{\"API_KEY\" \"${API_KEY}\" \"command\": \"npx\"}", vec![]),
        ] {
            assert_eq!(strewn(text).map(|range| &text[range]).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
