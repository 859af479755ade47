//! Matchers: what a value must look like. Rules of a script and expectations of a scenario share them.
//!
//! | written | matches |
//! | --- | --- |
//! | a scalar | the same value; numbers by value, so `1` is `1.0` |
//! | an array | an array of the same length whose items match one by one |
//! | an object | an object in which at least these keys match (a subset) |
//! | `{ equals: V }` | exactly V, other keys not allowed |
//! | `{ subset: V }` | like a plain object, for keys that look like operators |
//! | `{ matches: REGEX }` | a string in which the regular expression is found |
//! | `{ contains: V }` | a string that contains V, or an array with an item that matches V |
//! | `{ schema: S }` | a value that the JSON Schema S accepts |
//! | `{ length: N }`, `{ length: { min: N, max: N } }` | a string (in characters), array or object of that length |
//! | `{ exists: true }` | anything but a missing value; `false`: only a missing value |
//! | `{ not: M }` | any value that M does not match |
//!
//! If an object has several operators, all of them must hold.

use regex::Regex;
use serde_json::Value as Json;

use crate::{
    Entry, Node, Problem, Problems, Value,
    json_schema::{Mismatch, Schema, at_member, shorten},
};

const OPERATORS: &[&str] = &["equals", "subset", "matches", "contains", "schema", "length", "exists", "not"];

/// A compiled matcher.
#[derive(Debug)]
pub enum Matcher {
    /// Exactly this value.
    Equals(Json),
    /// An array whose items match one by one.
    Items(Vec<Matcher>),
    /// An object with at least these members.
    Subset(Vec<(String, Matcher)>),
    /// A string in which the regular expression is found.
    Matches(Regex),
    /// A string or array that contains a match.
    Contains(Box<Matcher>),
    /// A value that the JSON Schema accepts.
    Schema(Box<Schema>),
    /// A length.
    Length { min: usize, max: usize },
    /// Whether there is a value.
    Exists(bool),
    /// A value that does not match.
    Not(Box<Matcher>),
    /// All of these.
    All(Vec<Matcher>),
}

impl Matcher {
    /// Reads a matcher.
    ///
    /// # Errors
    /// An operator's operand is wrong: a broken regular expression, schema or length; or operators are mixed with keys.
    pub fn read(node: &Node) -> Result<Matcher, Problems> {
        match &node.value {
            Value::Sequence(_) => Ok(Matcher::Items(node.each(Matcher::read)?)),
            Value::Mapping(entries) => {
                let is_operator = |key: &str| OPERATORS.contains(&key);
                if !entries.iter().any(|entry| is_operator(&entry.key)) {
                    reject_misspelt_operator(entries)?;
                    return Matcher::subset(node);
                }
                if let Some(entry) = entries.iter().find(|entry| !is_operator(&entry.key)) {
                    let message = format!("`{}` beside operators such as `{}`", entry.key, entries[0].key);
                    let problem = Problem::new(entry.key_span, message);
                    return Err(problem.hint("wrap an object with such keys in `subset:` or `equals:`").into());
                }
                let all = entries.iter().map(|entry| Matcher::operator(&entry.key, &entry.node));
                let mut all = Problems::collect(all)?;
                Ok(if all.len() == 1 { all.remove(0) } else { Matcher::All(all) })
            }
            _ => Ok(Matcher::Equals(node.to_json())),
        }
    }

    fn subset(node: &Node) -> Result<Matcher, Problems> {
        let entries = node.entries()?.iter();
        Ok(Matcher::Subset(Problems::collect(
            entries.map(|entry| Ok((entry.key.clone(), Matcher::read(&entry.node)?))),
        )?))
    }

    fn operator(name: &str, node: &Node) -> Result<Matcher, Problems> {
        Ok(match name {
            "equals" => Matcher::Equals(node.to_json()),
            "subset" => Matcher::subset(node)?,
            "matches" => Matcher::Matches(
                Regex::new(node.str()?).map_err(|error| node.problem(format!("not a regular expression: {error}")))?,
            ),
            "contains" => Matcher::Contains(Box::new(Matcher::read(node)?)),
            "schema" => Matcher::Schema(Box::new(Schema::read(node)?)),
            "length" => Matcher::length(node)?,
            "exists" => Matcher::Exists(node.bool()?),
            _ => Matcher::Not(Box::new(Matcher::read(node)?)),
        })
    }

    fn length(node: &Node) -> Result<Matcher, Problems> {
        if let Value::Mapping(_) = node.value {
            let fields = node.fields("a length", &["min", "max"])?;
            let min = fields.read("min", Node::integer)?.unwrap_or(0);
            let max = fields.read("max", Node::integer)?.unwrap_or(usize::MAX);
            return Ok(Matcher::Length { min, max });
        }
        let exactly = node.integer()?;
        Ok(Matcher::Length { min: exactly, max: exactly })
    }

    /// Whether the value matches. `None` is a missing value.
    pub fn is_match(&self, value: Option<&Json>) -> bool {
        self.mismatches(value).is_empty()
    }

    /// Everything in which `value` differs; empty if it matches. `None` is a missing value.
    pub fn mismatches(&self, value: Option<&Json>) -> Vec<Mismatch> {
        let mut found = Vec::new();
        self.collect(value, &mut String::new(), &mut found);
        found
    }

    fn collect(&self, value: Option<&Json>, pointer: &mut String, found: &mut Vec<Mismatch>) {
        let mut report = |message: String| found.push(Mismatch { pointer: pointer.clone(), message });
        match (self, value) {
            (Matcher::Exists(wanted), _) => match (wanted, value) {
                (true, None) => report("expected a value, found none".into()),
                (false, Some(value)) => report(format!("expected no value, found {}", shorten(value))),
                _ => {}
            },
            (Matcher::Not(inner), _) => {
                if inner.is_match(value) {
                    report(format!("expected something other than {}", value.map_or("nothing".into(), shorten)));
                }
            }
            (Matcher::All(all), _) => all.iter().for_each(|matcher| matcher.collect(value, pointer, found)),
            (_, None) => report(format!("expected {}, found nothing", self.describe())),
            (Matcher::Equals(expected), Some(value)) => {
                if !same(expected, value) {
                    report(format!("expected {}, found {}", shorten(expected), shorten(value)));
                }
            }
            (Matcher::Subset(entries), Some(Json::Object(object))) => {
                for (key, matcher) in entries {
                    at_member(pointer, key, |pointer| matcher.collect(object.get(key), pointer, found));
                }
            }
            (Matcher::Items(matchers), Some(Json::Array(items))) if matchers.len() == items.len() => {
                for (index, (matcher, item)) in matchers.iter().zip(items).enumerate() {
                    at_member(pointer, &index.to_string(), |pointer| matcher.collect(Some(item), pointer, found));
                }
            }
            (Matcher::Matches(regex), Some(Json::String(text))) => {
                if !regex.is_match(text) {
                    report(format!("expected a match of /{regex}/, found {}", shorten(&Json::from(text.as_str()))));
                }
            }
            (Matcher::Contains(inner), Some(Json::String(text))) => match &**inner {
                Matcher::Equals(Json::String(part)) if text.contains(part) => {}
                _ => report(format!(
                    "expected a string with {}, found {}",
                    inner.describe(),
                    shorten(&text.as_str().into())
                )),
            },
            (Matcher::Contains(inner), Some(Json::Array(items))) => {
                if !items.iter().any(|item| inner.is_match(Some(item))) {
                    report(format!(
                        "expected an array with {}, found {}",
                        inner.describe(),
                        shorten(&items.clone().into())
                    ));
                }
            }
            (Matcher::Schema(schema), Some(value)) => {
                for violation in schema.violations(value) {
                    let pointer = format!("{pointer}{}", violation.pointer);
                    found.push(Mismatch { pointer, message: violation.message });
                }
            }
            (Matcher::Length { min, max }, Some(value)) => {
                let length = match value {
                    Json::String(text) => Some(text.chars().count()),
                    Json::Array(items) => Some(items.len()),
                    Json::Object(object) => Some(object.len()),
                    _ => None,
                };
                match length {
                    Some(length) if (*min..=*max).contains(&length) => {}
                    Some(length) => report(format!("expected {}, found length {length}", self.describe())),
                    None => report(format!("expected {}, found {}", self.describe(), shorten(value))),
                }
            }
            (_, Some(value)) => report(format!("expected {}, found {}", self.describe(), shorten(value))),
        }
    }

    fn describe(&self) -> String {
        match self {
            Matcher::Equals(value) => shorten(value),
            Matcher::Items(items) => format!("an array of {}", items.len()),
            Matcher::Subset(entries) => {
                let keys: Vec<_> = entries.iter().map(|(key, _)| key.as_str()).collect();
                format!("an object with {}", keys.join(", "))
            }
            Matcher::Matches(regex) => format!("a match of /{regex}/"),
            Matcher::Contains(inner) => format!("something that contains {}", inner.describe()),
            Matcher::Schema(_) => "a value of the schema".into(),
            Matcher::Length { min, max } if min == max => format!("length {min}"),
            Matcher::Length { min, max: usize::MAX } => format!("a length of at least {min}"),
            Matcher::Length { min, max } => format!("a length of {min} to {max}"),
            Matcher::Exists(_) => "a value".into(),
            Matcher::Not(inner) => format!("something other than {}", inner.describe()),
            Matcher::All(all) => all.iter().map(Matcher::describe).collect::<Vec<_>>().join(" and "),
        }
    }
}

/// A single key that resembles an operator would match the member of that name, and so almost never match.
fn reject_misspelt_operator(entries: &[Entry]) -> Result<(), Problems> {
    let [Entry { key, key_span, .. }] = entries else { return Ok(()) };
    let is_near = |operator: &&&str| {
        let is_typo = operator.len() > 4 && strsim::osa_distance(&key.to_lowercase(), operator) <= 1;
        is_typo || (["match", "regex", "regexp"].contains(&key.as_str()) && **operator == "matches")
    };
    match OPERATORS.iter().find(is_near) {
        None => Ok(()),
        Some(operator) => {
            let problem = Problem::new(*key_span, format!("a matcher has no operator `{key}`"));
            let subset = format!("a member of this name is written `subset: {{ {key}: … }}`");
            Err(problem.hint(format!("did you mean `{operator}`? {subset}")).into())
        }
    }
}

/// Equality of JSON data in which `1` and `1.0` are the same number.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a == b || (a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64())),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Source, parse_yaml};
    use rehearse_testing::table;

    fn matcher(text: &str) -> Matcher {
        parse_yaml(&Source::new("m", text)).and_then(|node| Matcher::read(&node)).expect(text)
    }

    fn messages(matcher_text: &str, value: &Json) -> Vec<String> {
        matcher(matcher_text).mismatches(Some(value)).iter().map(Mismatch::to_string).collect()
    }

    #[test]
    fn a_mapping_is_a_subset_at_every_level_and_equals_is_exact() {
        let value = json!({ "city": "Paris", "at": { "lat": 1.0, "lon": 2 }, "tags": ["a", "b"] });
        assert!(messages("{ city: Paris, at: { lat: 1 } }", &value).is_empty());
        assert_eq!(
            messages("{ at: { equals: { lat: 1 } } }", &value),
            [r#"/at: expected {"lat":1}, found {"lat":1.0,"lon":2}"#]
        );
        assert_eq!(messages("{ tags: [a, c] }", &value), [r#"/tags/1: expected "c", found "b""#]);
        assert_eq!(
            messages("{ tags: [a], name: x }", &value),
            [r#"/tags: expected an array of 1, found ["a","b"]"#, r#"/name: expected "x", found nothing"#,]
        );
    }

    #[test]
    fn operators_combine_and_explain_themselves() {
        assert!(messages("{ matches: '^h.llo$', length: 5, contains: ell }", &json!("hello")).is_empty());
        assert_eq!(
            messages("{ matches: x, length: { min: 9 } }", &json!("hello")),
            [r#"expected a match of /x/, found "hello""#, "expected a length of at least 9, found length 5",]
        );
        assert!(messages("{ contains: { id: 2 } }", &json!([{ "id": 1 }, { "id": 2, "x": 0 }])).is_empty());
        assert_eq!(messages("{ not: 5 }", &json!(5.0)), ["expected something other than 5.0"]);
        assert_eq!(messages("{ a: { exists: false } }", &json!({ "a": 1 })), ["/a: expected no value, found 1"]);
        assert!(messages("{ a: { exists: false } }", &json!({})).is_empty());
        assert_eq!(
            messages("{ n: { schema: { type: integer } } }", &json!({ "n": "1" })),
            [r#"/n: "1" is not of type "integer""#]
        );
    }

    #[test]
    fn members_named_like_operators_can_be_compared() {
        let value = json!({ "note": "a", "content": "b", "match": "c", "length": 5 });
        for text in [
            "{ note: a }",
            "{ content: b }",
            "{ match: c, note: a }",
            "{ subset: { match: c } }",
            "{ nott: { exists: false } }",
        ] {
            assert!(messages(text, &value).is_empty(), "{text}");
        }
    }

    #[test]
    fn mistakes_in_a_matcher_are_found_when_it_is_read() {
        for [text, message] in table::rows(include_str!("matcher.txt"), "mistakes") {
            let source = Source::new("t", &text);
            let problems = parse_yaml(&source).and_then(|node| Matcher::read(&node)).expect_err(&text);
            let shown = problems.in_source(&source).to_string();
            assert!(shown.starts_with(&message), "{shown}");
        }
    }
}
