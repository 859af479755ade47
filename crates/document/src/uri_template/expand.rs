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

    fn values() -> Map<String, Json> {
        let json = serde_json::json!({
            "count": ["one", "two", "three"], "dom": ["example", "com"], "dub": "me/too", "hello": "Hello World!",
            "half": "50%", "var": "value", "who": "fred", "base": "http://example.com/home/", "path": "/foo/bar",
            "list": ["red", "green", "blue"], "keys": { "semi": ";", "dot": ".", "comma": "," },
            "v": "6", "x": "1024", "y": "768", "empty": "", "empty_keys": {}, "undef": null,
        });
        json.as_object().expect("an object").clone()
    }

    fn check(examples: &[(&str, &str)]) {
        for (template, uri) in examples {
            let parsed = UriTemplate::parse(template).expect(template);
            assert_eq!(parsed.expand(&values()), *uri, "{template}");
        }
    }

    /// The examples of RFC 6570, sections 3.2.1 to 3.2.5.
    #[test]
    fn simple_reserved_fragment_and_label_expressions_expand_as_in_the_rfc() {
        check(&[
            ("{count}", "one,two,three"),
            ("{count*}", "one,two,three"),
            ("{/count}", "/one,two,three"),
            ("{/count*}", "/one/two/three"),
            ("{;count}", ";count=one,two,three"),
            ("{;count*}", ";count=one;count=two;count=three"),
            ("{?count}", "?count=one,two,three"),
            ("{?count*}", "?count=one&count=two&count=three"),
            ("{&count*}", "&count=one&count=two&count=three"),
            ("{var}", "value"),
            ("{hello}", "Hello%20World%21"),
            ("{half}", "50%25"),
            ("O{empty}X", "OX"),
            ("O{undef}X", "OX"),
            ("{x,y}", "1024,768"),
            ("{x,hello,y}", "1024,Hello%20World%21,768"),
            ("?{x,empty}", "?1024,"),
            ("?{x,undef}", "?1024"),
            ("?{undef,y}", "?768"),
            ("{var:3}", "val"),
            ("{var:30}", "value"),
            ("{list}", "red,green,blue"),
            ("{list*}", "red,green,blue"),
            ("{keys}", "semi,%3B,dot,.,comma,%2C"),
            ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
            ("{+var}", "value"),
            ("{+hello}", "Hello%20World!"),
            ("{+half}", "50%25"),
            ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
            ("{+base}index", "http://example.com/home/index"),
            ("O{+empty}X", "OX"),
            ("O{+undef}X", "OX"),
            ("{+path}/here", "/foo/bar/here"),
            ("here?ref={+path}", "here?ref=/foo/bar"),
            ("up{+path}{var}/here", "up/foo/barvalue/here"),
            ("{+x,hello,y}", "1024,Hello%20World!,768"),
            ("{+path,x}/here", "/foo/bar,1024/here"),
            ("{+path:6}/here", "/foo/b/here"),
            ("{+list}", "red,green,blue"),
            ("{+list*}", "red,green,blue"),
            ("{+keys}", "semi,;,dot,.,comma,,"),
            ("{+keys*}", "semi=;,dot=.,comma=,"),
            ("{#var}", "#value"),
            ("{#hello}", "#Hello%20World!"),
            ("{#half}", "#50%25"),
            ("foo{#empty}", "foo#"),
            ("foo{#undef}", "foo"),
            ("{#x,hello,y}", "#1024,Hello%20World!,768"),
            ("{#path,x}/here", "#/foo/bar,1024/here"),
            ("{#path:6}/here", "#/foo/b/here"),
            ("{#list}", "#red,green,blue"),
            ("{#list*}", "#red,green,blue"),
            ("{#keys}", "#semi,;,dot,.,comma,,"),
            ("{#keys*}", "#semi=;,dot=.,comma=,"),
            ("{.who}", ".fred"),
            ("{.who,who}", ".fred.fred"),
            ("{.half,who}", ".50%25.fred"),
            ("www{.dom*}", "www.example.com"),
            ("X{.var}", "X.value"),
            ("X{.empty}", "X."),
            ("X{.undef}", "X"),
            ("X{.var:3}", "X.val"),
            ("X{.list}", "X.red,green,blue"),
            ("X{.list*}", "X.red.green.blue"),
            ("X{.keys}", "X.semi,%3B,dot,.,comma,%2C"),
            ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
            ("X{.empty_keys}", "X"),
            ("X{.empty_keys*}", "X"),
        ]);
    }

    /// The examples of RFC 6570, sections 3.2.6 to 3.2.9.
    #[test]
    fn path_parameter_and_query_expressions_expand_as_in_the_rfc() {
        check(&[
            ("{/who}", "/fred"),
            ("{/who,who}", "/fred/fred"),
            ("{/half,who}", "/50%25/fred"),
            ("{/who,dub}", "/fred/me%2Ftoo"),
            ("{/var}", "/value"),
            ("{/var,empty}", "/value/"),
            ("{/var,undef}", "/value"),
            ("{/var,x}/here", "/value/1024/here"),
            ("{/var:1,var}", "/v/value"),
            ("{/list}", "/red,green,blue"),
            ("{/list*}", "/red/green/blue"),
            ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
            ("{/keys}", "/semi,%3B,dot,.,comma,%2C"),
            ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
            ("{;who}", ";who=fred"),
            ("{;half}", ";half=50%25"),
            ("{;empty}", ";empty"),
            ("{;v,empty,who}", ";v=6;empty;who=fred"),
            ("{;v,bar,who}", ";v=6;who=fred"),
            ("{;x,y}", ";x=1024;y=768"),
            ("{;x,y,empty}", ";x=1024;y=768;empty"),
            ("{;x,y,undef}", ";x=1024;y=768"),
            ("{;hello:5}", ";hello=Hello"),
            ("{;list}", ";list=red,green,blue"),
            ("{;list*}", ";list=red;list=green;list=blue"),
            ("{;keys}", ";keys=semi,%3B,dot,.,comma,%2C"),
            ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
            ("{?who}", "?who=fred"),
            ("{?half}", "?half=50%25"),
            ("{?x,y}", "?x=1024&y=768"),
            ("{?x,y,empty}", "?x=1024&y=768&empty="),
            ("{?x,y,undef}", "?x=1024&y=768"),
            ("{?var:3}", "?var=val"),
            ("{?list}", "?list=red,green,blue"),
            ("{?list*}", "?list=red&list=green&list=blue"),
            ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
            ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
            ("{&who}", "&who=fred"),
            ("{&half}", "&half=50%25"),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
            ("{&x,y,empty}", "&x=1024&y=768&empty="),
            ("{&x,y,undef}", "&x=1024&y=768"),
            ("{&var:3}", "&var=val"),
            ("{&list}", "&list=red,green,blue"),
            ("{&list*}", "&list=red&list=green&list=blue"),
            ("{&keys}", "&keys=semi,%3B,dot,.,comma,%2C"),
            ("{&keys*}", "&semi=%3B&dot=.&comma=%2C"),
        ]);
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
