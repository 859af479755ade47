use proptest::prelude::*;

use super::{SyntaxExtensionKind as K, *};
use rehearse_testing::table;

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
    for [text, kind, part, value] in table::rows(include_str!("tests.txt"), "extensions") {
        let found = extensions(&text).iter().any(|it| (format!("{:?}", it.0), it.1) == (kind.clone(), &*part));
        assert!(found, "{text}: {:?}", extensions(&text));
        assert_eq!(json(&text), value, "{text}");
    }
}

#[test]
fn the_first_syntax_error_is_reported_at_its_position() {
    for [text, expected] in table::rows(include_str!("tests.txt"), "syntax errors") {
        assert!(problem(&text).contains(&expected), "{text}: {}", problem(&text));
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
