//! Values that differ between two runs, and the redactions that hide them.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value as Json, json};

/// The longest text before a volatile word by which it is found, in words and signs.
const CONTEXT: usize = 4;
static TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\w+|\W").ok());

/// The redactions that make two views of one step equal; `None` if none can.
pub(crate) fn redactions(one: &Json, other: &Json) -> Option<Vec<Json>> {
    let mut found = Vec::new();
    // A view with notifications has the result as a member; the pointers of redactions start in the result.
    let (of_result, rest) = match (one.get("notifications"), one.get("rpcError")) {
        (None, None) => ((one, other), None),
        _ => ((&one["result"], &other["result"]), Some((one, other))),
    };
    let is_found = compare(of_result.0, of_result.1, "", true, &mut found);
    let rest = rest.is_none_or(|(one, other)| {
        ["notifications", "rpcError"].iter().all(|key| compare(&one[*key], &other[*key], "", false, &mut found))
    });
    found.dedup();
    (is_found && rest).then_some(found)
}

/// Adds what hides the differences of two values at a pointer. False if they differ in their form.
fn compare(one: &Json, other: &Json, at: &str, has_pointers: bool, found: &mut Vec<Json>) -> bool {
    match (one, other) {
        _ if one == other => true,
        (Json::Object(a), Json::Object(b)) if a.keys().eq(b.keys()) => a.iter().zip(b.values()).all(|((key, a), b)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            compare(a, b, &format!("{at}/{key}"), has_pointers, found)
        }),
        // What holds for one item of an array holds for all.
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).all(|(a, b)| compare(a, b, &format!("{at}/*"), has_pointers, found))
        }
        (Json::String(a), Json::String(b)) if !has_pointers || is_text(at) => match of_texts(a, b) {
            Some(rules) => {
                found.extend(rules);
                true
            }
            None => false,
        },
        (Json::Object(_) | Json::Array(_), _) | (_, Json::Object(_) | Json::Array(_)) => false,
        _ if has_pointers && !at.is_empty() => {
            found.push(json!({ "at": at }));
            true
        }
        _ => false,
    }
}

/// Whether a string is a text for people or models, of which all steps have one at this place.
fn is_text(at: &str) -> bool {
    at.ends_with("/text") || at.ends_with("/description")
}

/// Redactions of the words that differ between two texts. `None` if the texts differ in more than words.
fn of_texts(one: &str, other: &str) -> Option<Vec<Json>> {
    let tokens = TOKEN.as_ref()?;
    let (one, other): (Vec<_>, Vec<_>) = (
        tokens.find_iter(one).map(|it| it.as_str()).collect(),
        tokens.find_iter(other).map(|it| it.as_str()).collect(),
    );
    if one.len() != other.len() {
        return None;
    }
    let mut rules = Vec::new();
    let mut at = 0;
    // The end of the last run of words that differ: its redaction comes first, and changes the text.
    let mut last = 0;
    while at < one.len() {
        if one[at] == other[at] {
            at += 1;
            continue;
        }
        let start = at;
        let mut pattern = String::new();
        while at < one.len() {
            if one[at] != other[at] {
                pattern += class(one[at], other[at])?;
                at += 1;
            } else if at + 1 < one.len() && one[at + 1] != other[at + 1] && !is_word(one[at]) && one[at] != "\n" {
                // One sign within, as in 1.5.
                pattern += &regex::escape(one[at]);
                at += 1;
            } else {
                break;
            }
        }
        let is_of_context = |token: &&&str| !matches!(**token, "\n" | "[" | "]");
        let before: Vec<_> = one[last..start].iter().rev().take(CONTEXT).take_while(is_of_context).copied().collect();
        let before: String = before.into_iter().rev().collect();
        let after: String = one[at..].iter().take(CONTEXT).take_while(is_of_context).copied().collect();
        let (matches, with) = if before.chars().any(char::is_alphanumeric) {
            (format!("{}{pattern}", regex::escape(&before)), format!("{before}[redacted]"))
        } else if after.chars().any(char::is_alphanumeric) && one[at] == other[at] {
            (format!("{pattern}{}", regex::escape(&after)), format!("[redacted]{after}"))
        } else if start == 0 && at == one.len() {
            (format!("^{pattern}$"), "[redacted]".to_owned())
        } else {
            return None;
        };
        rules.push(json!({ "matches": matches, "with": with.replace('$', "$$") }));
        last = at;
    }
    Some(rules)
}

/// A regular expression for two words. `None` if one is no word.
fn class(one: &str, other: &str) -> Option<&'static str> {
    let both = |is: fn(&char) -> bool| one.chars().chain(other.chars()).all(|c| is(&c));
    match () {
        () if both(char::is_ascii_digit) => Some(r"\d+"),
        () if both(char::is_ascii_hexdigit) => Some("[0-9a-fA-F]+"),
        () if is_word(one) && is_word(other) => Some(r"\w+"),
        () => None,
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_hidden_and_its_surroundings_stay() {
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        for (one, other, rules) in [
            (
                text("took 12 ms, id=ab12 ok"),
                text("took 9 ms, id=cd34 ok"),
                Some(json!([
                    { "matches": r"took \d+", "with": "took [redacted]" },
                    { "matches": r", id=[0-9a-fA-F]+", "with": ", id=[redacted]" },
                ])),
            ),
            (
                text("4.5s later"),
                text("10.25s later"),
                Some(json!([{ "matches": r"\d+\.\w+ later", "with": "[redacted] later" }])),
            ),
            (text("x1y"), text("z2"), Some(json!([{ "matches": r"^\w+$", "with": "[redacted]" }]))),
            (text("a b"), text("a b c"), None),
            (
                json!({ "structuredContent": { "items": [{ "id": 1, "n": 1 }, { "id": 2, "n": 1 }] } }),
                json!({ "structuredContent": { "items": [{ "id": 3, "n": 1 }, { "id": 4, "n": 1 }] } }),
                Some(json!([{ "at": "/structuredContent/items/*/id" }])),
            ),
            (json!({ "a": [1] }), json!({ "a": [1, 2] }), None),
            (
                json!({ "result": { "a": 1 }, "notifications": [{ "params": { "data": "pid 1" } }] }),
                json!({ "result": { "a": 2 }, "notifications": [{ "params": { "data": "pid 2" } }] }),
                Some(json!([{ "at": "/a" }, { "matches": r"pid \d+", "with": "pid [redacted]" }])),
            ),
        ] {
            assert_eq!(redactions(&one, &other).map(Json::from), rules, "{one}");
        }
    }
}
