use proptest::prelude::*;

use super::{SyntaxExtensionKind as K, *};

fn read(text: &str) -> Document {
    parse(&Source::new("t.json", text)).unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

/// The extensions with what is written there.
fn extensions(text: &str) -> Vec<(K, &str)> {
    read(text).extensions.iter().map(|it| (it.kind, &text[it.span.start..it.span.end])).collect()
}

fn json(text: &str) -> String {
    read(text).root.to_json_text()
}

fn problem(text: &str) -> String {
    let source = Source::new("t.json", text);
    parse(&source).expect_err(text).in_source(&source).to_string()
}

#[test]
fn plain_json_uses_no_extension() {
    let text = "\t{ \"a\" : [ 1, -2.5e+3 , true,false,null, {} , [] ],\r\n \"\\u00e9\\\"\\\\\\/\\b\\f\\n\\r\\t\": \"\\ud83d\\ude00é\" }\n";
    assert_eq!(extensions(text), []);
    assert_eq!(json(text), r#"{"a":[1,-2.5e+3,true,false,null,{},[]],"é\"\\/\b\f\n\r\t":"😀é"}"#);
}

#[test]
fn every_extension_is_listed_with_its_span() {
    for (text, expected, value) in [
        ("\u{feff}[]", (K::ByteOrderMark, "\u{feff}"), "[]"),
        ("[] // x\n", (K::Comment, "// x"), "[]"),
        ("[/* x\n */]", (K::Comment, "/* x\n */"), "[]"),
        ("[1, ]", (K::TrailingComma, ","), "[1]"),
        ("{\"a\":1,\n// x\n}", (K::TrailingComma, ","), r#"{"a":1}"#),
        ("['a\"b']", (K::SingleQuotes, "'a\"b'"), r#"["a\"b"]"#),
        ("{a_b: 1}", (K::BareKey, "a_b"), r#"{"a_b":1}"#),
        ("[1,\u{a0}2]", (K::Space, "\u{a0}"), "[1,2]"),
        ("[\"a\tb\"]", (K::ControlCharacter, "\t"), r#"["a\tb"]"#),
        ("", (K::Empty, ""), "null"),
    ] {
        assert!(extensions(text).contains(&expected), "{text}: {:?}", extensions(text));
        assert_eq!(json(text), value, "{text}");
    }
}

#[test]
fn the_first_syntax_error_is_reported_at_its_position() {
    for (text, expected) in [
        ("[1 2]", "t.json:1:4: a comma is missing before this (add a comma after the value before it)"),
        ("{\"a\":1\n\"b\":2}", "t.json:2:1: a comma is missing before this (add a comma after the value before it)"),
        ("{\"a\" 1}", "t.json:1:6: a key needs a colon and a value after it"),
        ("{\"a\":}", "t.json:1:6: an unexpected `}`"),
        ("[1}", "t.json:1:3: "),
        ("{} x", "t.json:1:4: more text after the end of the JSON value"),
        ("[b]", "t.json:1:2: not a JSON value"),
        ("[npx]", "t.json:1:2: not a JSON value"),
        ("[1,, 2]", "t.json:1:4: a comma too many (remove it)"),
        ("{\"a\": 1,, \"b\": 2}", "t.json:1:9: a comma too many (remove it)"),
        ("[@]", "t.json:1:2: not valid JSON"),
        ("[\n# x\n1]", "t.json:2:1: a `#` begins no comment in JSON"),
        ("{“a”: 1}", "t.json:1:2: a curly quote (write a straight double quote)"),
        ("```json\n{}\n```", "t.json:1:1: a backtick (remove the Markdown around the JSON)"),
        ("{\"a\" = 1}", "an equals sign (write a colon between the key and its value)"),
        ("[1; 2]", "a semicolon (write a comma)"),
        ("[\"C:\\Users\"]", "not a valid escape in JSON (write each backslash twice)"),
        ("{\"a\": \"b,\n\"c\": 1}", "t.json:1:7: this string does not end on its line"),
        ("[\"a", "t.json:1:2: this string does not end on its line"),
        ("[/* x]", "t.json:1:2: this comment is never closed (add `*/`)"),
        ("[0x1F]", "not a JSON number"),
    ] {
        assert!(problem(text).contains(expected), "{text}: {}", problem(text));
    }
    assert!(problem(&"[".repeat(10_000)).contains("nested deeper than 512 levels"));
}

#[test]
fn an_unclosed_object_is_reported_where_it_begins_and_where_the_text_ends() {
    let source = Source::new("t.json", "{\n  \"a\": {\n    \"b\": 1\n");
    let problems = parse(&source).expect_err("unclosed").0;
    let lines: Vec<_> = problems.iter().map(|it| source.position(it.span.start).0).collect();
    assert_eq!(lines, [2, 3], "{problems:?}");
}

#[test]
fn a_syntax_error_quotes_nothing() {
    for text in ["{\"token\": ghp_geheim}", "{\"token\": \"ghp_geheim}", "{\"a\" ghp_geheim", "[\"ghp\\geheim\"]"] {
        assert!(!problem(text).contains("geheim"), "{}", problem(text));
    }
}

#[test]
fn a_duplicate_key_keeps_its_first_position_and_its_last_value() {
    let document = read(r#"{"a": 1, "b": 2, "a": 3, "a": 4}"#);
    assert_eq!(document.root.to_json_text(), r#"{"a":4,"b":2}"#);
    let places: Vec<_> = document.duplicates.iter().map(|found| (found.first.start, found.second.start)).collect();
    assert_eq!(places, [(1, 17), (17, 25)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_parser_panic(text in "[-a-z0-9:{}()\\[\\],/*#'`\"“”\\\\u+.;=， \u{a0}\u{feff}é\n\t]{0,60}") {
        let spans: Vec<_> = match parse(&Source::new("p", text.clone())) {
            Ok(document) => document.extensions.iter().map(|it| it.span).collect(),
            Err(problems) => problems.0.iter().map(|it| it.span).collect(),
        };
        for span in spans {
            prop_assert!(text.get(span.start..span.end).is_some(), "{span:?}");
        }
    }

    #[test]
    fn json_is_read_as_serde_reads_it(value in "\\PC*", number in any::<i64>(), float in any::<f64>()) {
        let json = serde_json::json!({ "a": value, "n": [number, null, true, float], "o": { "": {} } });
        for text in [json.to_string(), serde_json::to_string_pretty(&json)?] {
            let document = read(&text);
            prop_assert_eq!(document.root.to_json(), json.clone());
            prop_assert_eq!(document.extensions, vec![]);
        }
    }
}
