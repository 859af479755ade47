//! From values to a URI.

use serde_json::{Map, Value as Json};

use super::syntax::{Expression, Modifier, Operator, Part, Variable, is_triplet};

/// The URI of these parts with these values.
pub(super) fn expand(parts: &[Part], values: &Map<String, Json>) -> String {
    let mut uri = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => encode(text, true, &mut uri),
            Part::Expression(expression) => expression.expand(values, &mut uri),
        }
    }
    uri
}

impl Expression {
    fn expand(&self, values: &Map<String, Json>, uri: &mut String) {
        let mut before = self.operator.first();
        for variable in &self.variables {
            let Some(value) = values.get(&variable.name).filter(|value| is_defined(value)) else { continue };
            uri.push_str(before);
            before = self.operator.separator();
            variable.expand(self.operator, value, uri);
        }
    }
}

impl Variable {
    fn expand(&self, operator: Operator, value: &Json, uri: &mut String) {
        let explode = self.modifier == Modifier::Explode;
        if operator.is_named() && !(explode && (value.is_array() || value.is_object())) {
            name(operator, &self.name, matches!(value, Json::String(text) if text.is_empty()), uri);
        }
        let encode = |text: &str, uri: &mut String| encode(text, operator.keeps_reserved(), uri);
        let separator = if explode { operator.separator() } else { "," };
        match value {
            Json::Array(items) => {
                for (index, item) in items.iter().filter(|item| !item.is_null()).map(text).enumerate() {
                    uri.push_str(if index > 0 { separator } else { "" });
                    if explode && operator.is_named() {
                        name(operator, &self.name, item.is_empty(), uri);
                    }
                    encode(&item, uri);
                }
            }
            Json::Object(members) => {
                let members = members.iter().filter(|(_, value)| !value.is_null());
                for (index, (key, value)) in members.enumerate() {
                    let value = text(value);
                    uri.push_str(if index > 0 { separator } else { "" });
                    encode(key, uri);
                    match explode {
                        true if operator == Operator::Parameters && value.is_empty() => {}
                        true => uri.push('='),
                        false => uri.push(','),
                    }
                    encode(&value, uri);
                }
            }
            scalar => {
                let text = text(scalar);
                let cut = match self.modifier {
                    Modifier::Prefix(length) => text.char_indices().nth(length).map(|(cut, _)| cut),
                    _ => None,
                };
                encode(&text[..cut.unwrap_or(text.len())], uri);
            }
        }
    }
}

fn is_defined(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Array(items) => items.iter().any(|item| !item.is_null()),
        Json::Object(members) => members.values().any(|value| !value.is_null()),
        _ => true,
    }
}

fn text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn name(operator: Operator, name: &str, empty: bool, uri: &mut String) {
    uri.push_str(name);
    if !(empty && operator == Operator::Parameters) {
        uri.push('=');
    }
}

/// Reserved characters and percent-encoded triplets stay as they are if `keep_reserved`.
pub(super) fn encode(text: &str, keep_reserved: bool, uri: &mut String) {
    const RESERVED: &str = ":/?#[]@!$&'()*+,;=";
    for (offset, character) in text.char_indices() {
        let kept = character.is_ascii_alphanumeric()
            || "-._~".contains(character)
            || keep_reserved && (RESERVED.contains(character) || is_triplet(&text[offset..]));
        if kept {
            uri.push(character);
            continue;
        }
        for byte in character.encode_utf8(&mut [0; 4]).bytes() {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::UriTemplate, *};
    use rehearse_testing::table;

    fn values() -> Map<String, Json> {
        let json = serde_json::json!({
            "count": ["one", "two", "three"], "dom": ["example", "com"], "dub": "me/too", "hello": "Hello World!",
            "half": "50%", "var": "value", "who": "fred", "base": "http://example.com/home/", "path": "/foo/bar",
            "list": ["red", "green", "blue"], "keys": { "semi": ";", "dot": ".", "comma": "," },
            "v": "6", "x": "1024", "y": "768", "empty": "", "empty_keys": {}, "undef": null,
        });
        json.as_object().expect("an object").clone()
    }

    #[test]
    fn expressions_expand_as_in_the_rfc() {
        for [template, uri] in table::all(include_str!("expand.txt")) {
            let parsed = UriTemplate::parse(&template).expect(&template);
            assert_eq!(parsed.expand(&values()), uri, "{template}");
        }
    }

    #[test]
    fn prefixes_count_characters_and_literals_and_values_of_any_type_are_encoded() {
        let values = serde_json::json!({ "word": "äöü", "n": 7, "yes": true, "gaps": [null, "a", null], "none": [null], "pairs": { "a": "", "b": 1 } });
        let values = values.as_object().expect("an object");
        for (template, uri) in [
            ("{word:2}", "%C3%A4%C3%B6"),
            ("café/%2f/{n}", "caf%C3%A9/%2f/7"),
            ("{?yes,none}{&gaps*}", "?yes=true&gaps=a"),
            ("{+gaps}", "a"),
            ("{;pairs*}", ";a;b=1"),
            ("{?pairs*}", "?a=&b=1"),
        ] {
            assert_eq!(UriTemplate::parse(template).expect(template).expand(values), uri);
        }
        let encoded = serde_json::json!({ "t": "50%/%2F" });
        let encoded = encoded.as_object().expect("an object");
        assert_eq!(UriTemplate::parse("{+t}").expect("valid").expand(encoded), "50%25/%2F");
        assert_eq!(UriTemplate::parse("{t}").expect("valid").expand(encoded), "50%25%2F%252F");
    }
}
