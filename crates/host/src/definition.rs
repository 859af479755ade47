//! What of a tool's definition the model does not see as the server lists it.

use serde_json::{Map, Value};

/// How many places are named.
const NAMED: usize = 3;
/// Behind a keyword that the model does not see.
const LEFT_OUT: &str = " left out";
/// What says nothing about the value that is described.
const SILENT: [&str; 4] = ["$schema", "$id", "$comment", "title"];
/// Where schemas stand that `$ref` leads to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// What is lost or changed of a description.
pub(crate) fn description_change(listed: Option<&str>, shown: Option<&str>) -> Option<String> {
    let listed = listed.map(str::trim).filter(|text| !text.is_empty())?;
    let shown = shown.unwrap_or_default();
    if shown.contains(listed) {
        return None;
    }
    let length = listed.chars().count();
    Some(match kept(listed, shown) {
        0 if shown.is_empty() => "its description is left out".to_owned(),
        0 => "its description is another one".to_owned(),
        kept => format!("its description is cut: {kept} of {length} characters are left"),
    })
}

/// How many characters of the beginning of a text another text has.
pub(crate) fn kept(text: &str, of: &str) -> usize {
    let all: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    // Whether the other text has so many of them is true up to a number, and false from then on.
    let most = all.partition_point(|end| of.contains(&text[..*end]));
    most.saturating_sub(1)
}

/// What is lost or changed of a schema, a sentence for each keyword. What a host adds is no loss.
pub(crate) fn schema_changes(listed: &Value, shown: &Value) -> Vec<String> {
    if !shown.is_object() {
        // A tool without arguments needs no schema.
        let has_any = listed["properties"].as_object().is_some_and(|properties| !properties.is_empty());
        return has_any.then(|| "its input schema is left out".to_owned()).into_iter().collect();
    }
    let mut found = Vec::new();
    compare(listed, listed, shown, "", 0, &mut found);
    let by_what = grouped(found.into_iter());
    // What is lost at the same places is said once.
    let by_places = grouped(by_what.into_iter().map(|(what, places)| (places, what)));
    let sentence = |(places, what): (Vec<String>, Vec<String>)| {
        let more = places.len().saturating_sub(NAMED);
        let named = places.iter().take(NAMED).map(|it| if it.is_empty() { "the root" } else { it }).collect::<Vec<_>>();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let lost: Vec<_> = what.iter().filter_map(|what| what.strip_suffix(LEFT_OUT)).collect();
        let changed = what.iter().filter(|what| !what.ends_with(LEFT_OUT)).cloned();
        let verb = if lost.len() == 1 { "is" } else { "are" };
        let lost = (!lost.is_empty()).then(|| format!("{} {verb}{LEFT_OUT}", lost.join(", ")));
        let all: Vec<_> = lost.into_iter().chain(changed).collect();
        format!("its input schema: {} at {}{more}", all.join("; "), named.join(", "))
    };
    by_places.into_iter().map(sentence).collect()
}

/// The values of each key, in the order of the first.
fn grouped<K: PartialEq, V>(pairs: impl Iterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Adds what differs: what it is, and where.
fn compare(root: &Value, listed: &Value, shown: &Value, place: &str, depth: usize, found: &mut Vec<(String, String)>) {
    // A schema may refer to itself.
    const DEEPEST: usize = 32;
    let listed = match (listed.get("$ref").and_then(Value::as_str), shown.get("$ref")) {
        (Some(reference), None) => reference.strip_prefix('#').and_then(|at| root.pointer(at)).unwrap_or(listed),
        _ => listed,
    };
    let (Value::Object(listed), Value::Object(shown)) = (listed, shown) else {
        if !is_same(listed, shown) {
            found.push((format!("{} became {}", short(listed), short(shown)), place.to_owned()));
        }
        return;
    };
    if depth > DEEPEST {
        return;
    }
    for (key, value) in listed.iter().filter(|(key, _)| counts(key, shown)) {
        match shown.get(key) {
            None => found.push((format!("`{key}`{LEFT_OUT}"), place.to_owned())),
            Some(other) if is_schema_map(key) || other.is_object() || value.is_object() => {
                compare(root, value, other, &format!("{place}/{key}"), depth + 1, found);
            }
            Some(other) if is_same(value, other) => {}
            Some(other) => {
                found.push((format!("`{key}: {}` became `{}`", short(value), short(other)), place.to_owned()));
            }
        }
    }
}

/// Whether it matters that a keyword is there.
fn counts(key: &str, shown: &Map<String, Value>) -> bool {
    !SILENT.contains(&key) && (!DEFINITIONS.contains(&key) || shown.contains_key(key)) && key != "$ref"
}

fn is_schema_map(key: &str) -> bool {
    matches!(key, "properties" | "$defs" | "definitions" | "patternProperties")
}

/// Whether two values say the same: the order of `required` and `enum` does not matter, nor whether 1 is 1.0.
pub(crate) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().all(|value| other.iter().any(|it| is_same(value, it)))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| is_same(value, other)))
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (one, other) => one == other,
    }
}

fn short(value: &Value) -> String {
    const LONGEST: usize = 60;
    rehearse_document::text::shortened(&value.to_string(), LONGEST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_description_that_is_cut_says_how_much_is_left() {
        let long = "abc ".repeat(50);
        let cut = format!("{}… [truncated]", &long[..20]);
        assert_eq!(description_change(Some(&long), Some(&long)), None);
        let change = description_change(Some(&long), Some(&cut));
        assert_eq!(change.as_deref(), Some("its description is cut: 20 of 199 characters are left"));
        assert_eq!(description_change(Some("x"), None).as_deref(), Some("its description is left out"));
    }

    #[test]
    fn what_a_schema_loses_is_named_once_for_each_keyword() {
        let listed = json!({ "type": "object", "required": ["a", "b"], "properties": {
            "a": { "type": "integer", "minimum": 1 }, "b": { "$ref": "#/$defs/b" },
        }, "$defs": { "b": { "type": "string", "minimum": 2, "const": 5 } } });
        let shown = json!({ "type": "object", "required": ["b", "a"], "additionalProperties": false, "properties": {
            "a": { "type": "integer" }, "b": { "type": "string", "const": "5" },
        } });
        let expected = [
            "its input schema: `minimum` is left out at /properties/a, /properties/b",
            "its input schema: `const: 5` became `\"5\"` at /properties/b",
        ];
        assert_eq!(schema_changes(&listed, &shown), expected);
        assert_eq!(schema_changes(&listed, &listed), [""; 0]);
        assert_eq!(schema_changes(&listed, &Value::Null), ["its input schema is left out"]);
        assert_eq!(schema_changes(&json!({ "type": "object" }), &Value::Null), [""; 0]);
        assert!(is_same(&json!({ "a": [1, "b"] }), &json!({ "a": ["b", 1.0] })) && !is_same(&json!(1), &json!(2)));
    }
}
