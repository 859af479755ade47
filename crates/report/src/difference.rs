//! How a result differs from its snapshot: the places, and the lines.

use serde_json::{Map, Value as Json};
use similar::{ChangeTag, TextDiff};

use super::{Difference, text::printable};

/// The number of unchanged lines around a difference.
const CONTEXT: usize = 3;

/// The maximum number of lines.
const LINES: usize = 60;

/// The maximum number of named places.
const PLACES: usize = 3;

/// The member that stands for the value of a string with JSON.
const PARSED: &str = "(JSON in this string)";

impl Difference {
    /// The JSON pointers of the values that differ. Empty if there is no snapshot, or if a text is not JSON.
    pub fn pointers(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let (Ok(expected), Ok(actual)) = (parse(&self.expected), parse(&self.actual)) {
            compare(&expected, &actual, String::new(), &mut found);
        }
        found
    }

    /// `at /content/0/text and 2 more places`; empty without places.
    pub(crate) fn places(&self) -> String {
        let pointers = self.pointers();
        let named: Vec<_> =
            pointers.iter().take(PLACES).map(|pointer| if pointer.is_empty() { "/" } else { pointer }).collect();
        match pointers.len().saturating_sub(PLACES) {
            _ if named.is_empty() => String::new(),
            0 => format!("at {}", named.join(", ")),
            1 => format!("at {} and 1 more place", named.join(", ")),
            more => format!("at {} and {more} more places", named.join(", ")),
        }
    }

    /// The lines that differ, each after a sign: `-` and `+` for the two texts, a space for both, `^` below a line for its
    /// changed characters, and `…` where lines are left out. JSON in strings is shown parsed.
    pub(crate) fn changes(&self) -> Vec<(char, String)> {
        let (expected, actual) = match (expand(&self.expected), expand(&self.actual)) {
            (Some(expected), Some(actual)) if expected != actual => (expected, actual),
            _ => (self.expected.clone(), self.actual.clone()),
        };
        let diff = TextDiff::from_lines(&expected, &actual);
        let mut lines = Vec::new();
        for (index, hunk) in diff.grouped_ops(CONTEXT).iter().enumerate() {
            if index > 0 {
                lines.push(('…', String::new()));
            }
            for op in hunk {
                let changes: Vec<_> = diff.iter_changes(op).collect();
                for change in &changes {
                    let sign = match change.tag() {
                        ChangeTag::Delete => '-',
                        ChangeTag::Insert => '+',
                        ChangeTag::Equal => ' ',
                    };
                    lines.push((sign, printable(change.value().trim_end()).into_owned()));
                }
                if let [old, new] = &changes[..]
                    && (old.tag(), new.tag()) == (ChangeTag::Delete, ChangeTag::Insert)
                    && let Some(marks) = marks(&printable(old.value().trim_end()), &printable(new.value().trim_end()))
                {
                    lines.push(('^', marks));
                }
            }
        }
        let more = lines.len().saturating_sub(LINES);
        lines.truncate(LINES);
        if more > 0 {
            lines.push(('…', format!(" and {more} more lines")));
        }
        lines
    }
}

fn parse(text: &str) -> serde_json::Result<Json> {
    serde_json::from_str(text)
}

fn compare(expected: &Json, actual: &Json, pointer: String, found: &mut Vec<String>) {
    let below = |key: &str| format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
    match (expected, actual) {
        _ if expected == actual => {}
        (Json::Object(expected), Json::Object(actual)) => {
            let added = actual.keys().filter(|key| !expected.contains_key(*key));
            for key in expected.keys().chain(added) {
                match (expected.get(key), actual.get(key)) {
                    (Some(expected), Some(actual)) => compare(expected, actual, below(key), found),
                    _ => found.push(below(key)),
                }
            }
        }
        (Json::Array(expected), Json::Array(actual)) if expected.len() == actual.len() => {
            for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                compare(expected, actual, below(&index.to_string()), found);
            }
        }
        _ => found.push(pointer),
    }
}

/// A JSON text with the value of each string that is a JSON object or array; `None` if there is no such string.
fn expand(text: &str) -> Option<String> {
    fn visit(value: &mut Json) -> bool {
        match value {
            Json::String(text) if text.trim_start().starts_with(['{', '[']) => match parse(text) {
                Ok(parsed) => {
                    *value = Json::Object(Map::from_iter([(PARSED.to_owned(), parsed)]));
                    true
                }
                Err(_) => false,
            },
            Json::Array(items) => items.iter_mut().fold(false, |any, item| visit(item) | any),
            Json::Object(members) => members.values_mut().fold(false, |any, member| visit(member) | any),
            _ => false,
        }
    }
    let mut value = parse(text).ok()?;
    visit(&mut value).then(|| serde_json::to_string_pretty(&value).ok())?
}

/// A line that underlines what differs in the second text; `None` if the texts have too little in common.
fn marks(old: &str, new: &str) -> Option<String> {
    let (old, new): (Vec<_>, Vec<_>) = (old.chars().collect(), new.chars().collect());
    let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - before;
    let after = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let same = before + after - new.iter().take_while(|c| c.is_whitespace()).count().min(before);
    let changed = new.len() - before - after;
    (same >= 4 && changed < same * 4).then(|| format!("{}{}", " ".repeat(before), "^".repeat(changed.max(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(expected: &str, actual: &str) -> Difference {
        Difference { expected: expected.into(), actual: actual.into() }
    }

    #[test]
    fn the_places_are_pointers() {
        let differs = difference(r#"{"a":[1,2],"b/c":{"d":1},"e":1}"#, r#"{"a":[1,3],"b/c":{"d":2},"f":[],"e":1}"#);
        assert_eq!(differs.pointers(), ["/a/1", "/b~1c/d", "/f"]);
        assert_eq!(differs.places(), "at /a/1, /b~1c/d, /f");
        assert_eq!(difference("[1]", "[1,2]").places(), "at /");
        assert_eq!(difference("", "{}").places(), "");
        assert_eq!(difference("[1,1,1,1,1]", "[2,2,2,2,2]").places(), "at /0, /1, /2 and 2 more places");
    }

    #[test]
    fn json_in_a_string_is_shown_parsed_unless_that_hides_the_difference() {
        let line = |(sign, text): (char, String)| format!("{sign} {text}\n");
        let plain = |it: Difference| it.changes().into_iter().map(line).collect::<String>();
        let pretty = |text: &str| format!("{{\n  \"text\": {}\n}}", Json::from(text));
        let lines = plain(difference(&pretty(r#"{"a":1}"#), &pretty(r#"{"a":2}"#)));
        assert!(lines.contains("\"(JSON in this string)\": {\n-       \"a\": 1\n+       \"a\": 2"), "{lines}");
        let lines = plain(difference(&pretty(r#"{"a":1}"#), &pretty(r#"{"a": 1}"#)));
        assert!(lines.contains(r#"+   "text": "{\"a\": 1}""#), "{lines}");
    }

    #[test]
    fn a_change_within_a_line_is_underlined() {
        let marked = |old: &str, new: &str| marks(old, new);
        assert_eq!(marked("  Oslo: 21 C, sunny", "  Oslo: 70 F, sunny").as_deref(), Some("        ^^^^"));
        assert_eq!(marked("  Oslo, sunny", "  Oslo sunny").as_deref(), Some("      ^"));
        assert_eq!(marked("    1", "    2"), None);
    }
}
