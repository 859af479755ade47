use proptest::prelude::*;

use super::{LibertyKind as L, *};
use crate::config::Value;

fn read(text: &str) -> Document {
    parse(&Source::new("t.json", text)).unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

/// The liberties with the texts that they stand at.
fn liberties(text: &str) -> Vec<(L, &str)> {
    read(text).liberties.iter().map(|liberty| (liberty.kind, &text[liberty.span.start..liberty.span.end])).collect()
}

fn json(text: &str) -> String {
    read(text).root.to_json_text()
}

fn problem(text: &str) -> String {
    let source = Source::new("t.json", text);
    parse(&source).expect_err(text).in_source(&source).to_string()
}

#[test]
fn what_json_has_takes_no_liberty() {
    let text = "\t{ \"a\" : [ 1, -2.5e+3 , true,false,null, {} , [] ],\r\n \"\\u00e9\\\"\\\\\\/\\b\\f\\n\\r\\t\": \"\\ud83d\\ude00é\" }\n";
    assert_eq!(liberties(text), []);
    assert_eq!(json(text), r#"{"a":[1,-2.5e+3,true,false,null,{},[]],"é\"\\/\b\f\n\r\t":"😀é"}"#);
}

#[test]
fn every_liberty_is_noted_where_it_is_taken() {
    for (text, expected, value) in [
        ("\u{feff}[]", (L::ByteOrderMark, "\u{feff}"), "[]"),
        ("[] // x\n", (L::Comment, "// x"), "[]"),
        ("[/* x\n */]", (L::Comment, "/* x\n */"), "[]"),
        ("# x\n[]", (L::HashComment, "# x"), "[]"),
        ("[1, ]", (L::TrailingComma, ","), "[1]"),
        ("{\"a\":1,\n}", (L::TrailingComma, ","), r#"{"a":1}"#),
        ("['a\"b']", (L::SingleQuotes, "'a\"b'"), r#"["a\"b"]"#),
        ("{a_b: 1}", (L::BareKey, "a_b"), r#"{"a_b":1}"#),
        ("[0x1F]", (L::NumberForm, "0x1F"), "[31]"),
        ("[+1]", (L::NumberForm, "+1"), "[1]"),
        ("[-.5]", (L::NumberForm, "-.5"), "[-0.5]"),
        ("[5.]", (L::NumberForm, "5."), "[5.0]"),
        ("{\"a\": undefined}", (L::BareValue, "undefined"), r#"{"a":null}"#),
        ("[True, 1]", (L::BareValue, "True"), "[true,1]"),
        ("[-Infinity]", (L::BareValue, "-Infinity"), "[null]"),
        ("[1_000]", (L::BareValue, "1_000"), r#"["1_000"]"#),
        ("[-y]", (L::BareValue, "-y"), r#"["-y"]"#),
        ("[h://${X}/y z , 1]", (L::BareValue, "h://${X}/y z"), r#"["h://${X}/y z",1]"#),
        ("[\"a\\\nb\"]", (L::TextForm, "\\\n"), r#"["ab"]"#),
        ("[\"\\x41\\u0042\"]", (L::TextForm, "\\x41"), r#"["AB"]"#),
        ("[1,\u{a0}2]", (L::Blank, "\u{a0}"), "[1,2]"),
        ("[\u{200b}1]", (L::Blank, "\u{200b}"), "[1]"),
        ("[\"a\tb\"]", (L::ControlCharacter, "\t"), r#"["a\tb"]"#),
        ("[“a”]", (L::CurlyQuotes, "“a”"), r#"["a"]"#),
        ("[1 2]", (L::MissingComma, "2"), "[1,2]"),
        ("{\"a\":1\n\"b\":2}", (L::MissingComma, "\""), r#"{"a":1,"b":2}"#),
        ("[1,,2]", (L::SurplusComma, ","), "[1,2]"),
        ("[,]", (L::SurplusComma, ","), "[]"),
        ("{\"a\":{\"b\":1}", (L::Unclosed, "{"), r#"{"a":{"b":1}}"#),
        ("[\"C:\\Users\"]", (L::UnknownEscape, "\\U"), r#"["C:\\Users"]"#),
        ("[\"\\u12\"]", (L::UnknownEscape, "\\u"), r#"["\\u12"]"#),
        ("[\"\\xé\"]", (L::UnknownEscape, "\\x"), r#"["\\xé"]"#),
        ("[`a`]", (L::Backticks, "`a`"), r#"["a"]"#),
        ("[“a\", 1]", (L::CurlyQuotes, "“a\""), r#"["a",1]"#),
        ("{\"a”: 1}", (L::CurlyQuotes, "\"a”"), r#"{"a":1}"#),
        ("[1; 2]", (L::WrongComma, ";"), "[1,2]"),
        ("[\"a\". \"b\"]", (L::WrongComma, "."), r#"["a","b"]"#),
        ("{\"a\":1，\"b\":2}", (L::WrongComma, "，"), r#"{"a":1,"b":2}"#),
        ("{\"a\" 1}", (L::MissingColon, "1"), r#"{"a":1}"#),
        ("{\"a\" {}}", (L::MissingColon, "{"), r#"{"a":{}}"#),
        ("{\"a\" = 1}", (L::WrongColon, "="), r#"{"a":1}"#),
        ("{\"a\" => 1}", (L::WrongColon, "=>"), r#"{"a":1}"#),
        ("{\"a\"：1}", (L::WrongColon, "："), r#"{"a":1}"#),
        ("{\"a\"; 1}", (L::WrongColon, ";"), r#"{"a":1}"#),
        ("{\"a\", \"b\", \"c\": 1}", (L::WrongColon, ","), r#"{"a":"b","c":1}"#),
        ("{\"c\": 1, \"a\", \"b\"}", (L::WrongColon, ","), r#"{"c":1,"a":"b"}"#),
        ("{\"a\", {\"b\": 1}}", (L::WrongColon, ","), r#"{"a":{"b":1}}"#),
        ("{\"a\", [\"b\"], \"c\": 1}", (L::WrongColon, ","), r#"{"a":["b"],"c":1}"#),
        ("{\"a\": 1: \"b\": 2}", (L::WrongComma, ":"), r#"{"a":1,"b":2}"#),
        ("{\"a b\", \"c\": 1}", (L::NoValue, "\"a b\""), r#"{"a b":null,"c":1}"#),
        ("{\"a\":}", (L::NoValue, "\"a\""), r#"{"a":null}"#),
        ("{\"a\": , \"b\": 1}", (L::NoValue, "\"a\""), r#"{"a":null,"b":1}"#),
        ("{\"b\": 1, \"a\"}", (L::NoValue, "\"a\""), r#"{"b":1,"a":null}"#),
        ("{..., \"a\": 1}", (L::Ellipsis, "..."), r#"{"a":1}"#),
        ("[1, ...]", (L::Ellipsis, "..."), "[1]"),
        ("[1, …, 2]", (L::Ellipsis, "…"), "[1,2]"),
        ("[1,\n+ 2]", (L::DiffMark, "+"), "[1,2]"),
        ("[1\n-]", (L::DiffMark, "-"), "[1]"),
        ("[<a b>, 1]", (L::BareValue, "<a b>"), r#"["<a b>",1]"#),
        ("[@a/b]", (L::BareValue, "@a/b"), r#"["@a/b"]"#),
        ("{} x", (L::TextAfter, "x"), "{}"),
        ("", (L::Nothing, ""), "null"),
    ] {
        assert_eq!((liberties(text), json(text)), (vec![expected], value.to_owned()), "{text}");
    }
}

#[test]
fn an_object_that_is_not_closed_is_the_outer_one_of_those_that_end_together() {
    assert_eq!(read("{\n \"a\": {\n  \"b\": 1 }\n").liberties[0].span, Span { start: 0, end: 1 });
    assert_eq!(liberties("[{").len(), 2);
}

#[test]
fn a_bracket_that_does_not_fit_is_what_mends_the_balance_of_the_whole_text() {
    for (text, expected, value) in [
        ("{\"a\":[1}", &[(L::Unclosed, "[", Some(7))][..], r#"{"a":[1]}"#),
        ("[{\"a\":1]", &[(L::Unclosed, "{", Some(7))], r#"[{"a":1}]"#),
        ("{\"a\":[[1}", &[(L::Unclosed, "[", Some(8)), (L::Unclosed, "[", Some(8))], r#"{"a":[[1]]}"#),
        ("{\"a\":[1,}", &[(L::Unclosed, "[", Some(8)), (L::TrailingComma, ",", None)], r#"{"a":[1]}"#),
        ("{\"a\":[1}, \"b\":2}", &[(L::WrongBracket, "}", Some(5))], r#"{"a":[1],"b":2}"#),
        ("[1}", &[(L::WrongBracket, "}", Some(0))], "[1]"),
        ("[1} [", &[(L::WrongBracket, "}", Some(0)), (L::TextAfter, "[", None)], "[1]"),
        ("{\"a\":[1]], \"b\":2}", &[(L::SurplusBracket, "]", None)], r#"{"a":[1],"b":2}"#),
        ("{\"a\":[\"x\", \"b\":2}", &[(L::Unclosed, "[", Some(9))], r#"{"a":["x"],"b":2}"#),
        (
            "{\"a\":[\"x\"\n\"b\":2}",
            &[(L::Unclosed, "[", Some(10)), (L::MissingComma, "\"", None)],
            r#"{"a":["x"],"b":2}"#,
        ),
        (
            "{\"a\":[\"x\", // 1\n'b':2}",
            &[(L::Unclosed, "[", Some(9)), (L::Comment, "// 1", None), (L::SingleQuotes, "'b'", None)],
            r#"{"a":["x"],"b":2}"#,
        ),
        ("\"a\": [1\n}", &[(L::Fragment, "\"a\"", None), (L::WrongBracket, "}", Some(5))], r#"{"a":[1]}"#),
    ] {
        let document = read(text);
        let found: Vec<_> = document
            .liberties
            .iter()
            .map(|it| (it.kind, &text[it.span.start..it.span.end], it.other.map(|it| it.start)))
            .collect();
        assert_eq!((&found[..], json(text)), (expected, value.to_owned()), "{text}");
    }
}

/// The liberties with where they and their other ends begin.
fn places(text: &str) -> Vec<(L, usize, Option<usize>)> {
    read(text).liberties.iter().map(|it| (it.kind, it.span.start, it.other.map(|it| it.start))).collect()
}

#[test]
fn what_lacks_its_beginning_is_told_by_the_balance_and_read_where_it_begins() {
    for (text, expected, value) in [
        ("{\"a\": \"b\", \"c\"], \"d\": 1}", &[(L::UnopenedList, 6, None)][..], r#"{"a":["b","c"],"d":1}"#),
        ("{\"a\": \"b\"], \"d\": 1}", &[(L::UnopenedList, 6, None)], r#"{"a":["b"],"d":1}"#),
        ("{\"a\": ], \"d\": 1}", &[(L::UnopenedList, 6, None)], r#"{"a":[],"d":1}"#),
        ("{\"a\": }, \"d\": 1}", &[(L::UnopenedObject, 6, None)], r#"{"a":{},"d":1}"#),
        ("{\"a\":\n{}, {}]}", &[(L::UnopenedList, 6, None)], r#"{"a":[{},{}]}"#),
        ("{\"a\":\n{}]}", &[(L::UnopenedList, 6, None)], r#"{"a":[{}]}"#),
        ("{\"a\":\n\"b\": 1}, \"d\": 1}", &[(L::UnopenedObject, 6, None)], r#"{"a":{"b":1},"d":1}"#),
        ("[\"b\": 1}, {}]", &[(L::UnopenedObject, 1, None)], r#"[{"b":1},{}]"#),
        ("[\n {\n },\n  \"b\": 1\n }]", &[(L::UnopenedObject, 11, None)], r#"[{},{"b":1}]"#),
        ("\"a\": 1}", &[(L::UnopenedObject, 0, None)], r#"{"a":1}"#),
        ("{{\"a\": 1}", &[(L::SurplusBracket, 1, None)], r#"{"a":1}"#),
        ("{{\"a\": 1}}", &[(L::SurplusBracket, 1, Some(8))], r#"{"a":1}"#),
        ("{\"a\": {\"b\", \"c\"}}", &[(L::WrongPairOfList, 6, Some(15))], r#"{"a":["b","c"]}"#),
        ("{\"a\": {\"b\", \"c\"]}", &[(L::WrongPairOfList, 6, Some(15))], r#"{"a":["b","c"]}"#),
        ("{\"a\": (\"b\")}", &[(L::WrongPairOfList, 6, Some(10))], r#"{"a":["b"]}"#),
        ("{\"a\": (\"b\"]}", &[(L::WrongPairOfList, 6, Some(10))], r#"{"a":["b"]}"#),
        ("{\"a\": (\"b\": 1)}", &[(L::WrongPairOfObject, 6, Some(13))], r#"{"a":{"b":1}}"#),
        ("{\"a\": (\"b\": {}}}", &[(L::WrongPairOfObject, 6, Some(14))], r#"{"a":{"b":{}}}"#),
        ("[\"a\": {}]", &[(L::WrongPairOfObject, 0, Some(8))], r#"{"a":{}}"#),
        ("[\"-a\": \"b\"]", &[(L::WrongComma, 5, None)], r#"["-a","b"]"#),
        (
            "{\"A\", \"b\", \"C_1\", \"d\"}",
            &[(L::WrongColon, 4, None), (L::WrongColon, 16, None)],
            r#"{"A":"b","C_1":"d"}"#,
        ),
        ("[\"a\": {}}", &[(L::WrongPairOfObject, 0, Some(8))], r#"{"a":{}}"#),
        (
            "{\"a\": [\"b\": 1, \"c\": 2}, \"d\": 3}",
            &[(L::WrongPairOfObject, 6, Some(21))],
            r#"{"a":{"b":1,"c":2},"d":3}"#,
        ),
        ("{\"a\": [\"b\", \"c\": 1 ]}", &[(L::LateBracket, 19, Some(10))], r#"{"a":["b"],"c":1}"#),
        ("{\"a\":\n\"b\": 1}", &[(L::NoValue, 1, None), (L::MissingComma, 6, None)], r#"{"a":null,"b":1}"#),
    ] {
        assert_eq!((&places(text)[..], json(text)), (expected, value.to_owned()), "{text}");
    }
}

#[test]
fn a_bracket_that_closes_too_early_is_told_by_what_follows_further_in() {
    for (text, at) in [
        ("{\n \"a\": {\n  \"b\": {}}\n },\n \"c\": {}\n}", 19),
        ("{\n \"a\": {\n  \"b\": {}\n }},\n \"c\": {}\n}", 22),
        ("{\n \"a\": {\n  \"b\": {}\n }\n },\n \"c\": {}\n}", 24),
        ("{\n \"a\": {\n  \"b\": {}\n },\n  \"c\": {}\n }\n}", 21),
    ] {
        assert_eq!(places(text), [(L::SurplusBracket, at, None)], "{text}");
        let mended = format!("{}{}", &text[..at], &text[at + 1..]);
        assert_eq!(json(text), json(&mended), "{text}");
    }
    let text = "{\n \"a\": {\n }\n}\n}";
    assert_eq!(places(text), [(L::TextAfter, 15, None)]);
}

#[test]
fn quotes_that_do_not_fit_are_mended_where_the_line_then_reads() {
    for (text, expected, value) in [
        ("{\"a: \"b\"}", (L::UnendedText, "\"a", Some(3)), r#"{"a":"b"}"#),
        ("{\"a\": [\"b, \"c\"]}", (L::UnendedText, "\"b", Some(9)), r#"{"a":["b","c"]}"#),
        ("{\"a\": [\"b],\n\"c\": 1}", (L::UnendedText, "\"b", Some(9)), r#"{"a":["b"],"c":1}"#),
        ("{\"a\": \"b,\n\"c\": 1}", (L::UnendedText, "\"b", Some(8)), r#"{"a":"b","c":1}"#),
        ("[\"a\n]", (L::UnendedText, "\"a", Some(3)), r#"["a"]"#),
        ("{'a\": 2}", (L::MixedQuotes, "'a\"", None), r#"{"a":2}"#),
        ("{\"a\": \"b', \"c\": 1}", (L::MixedQuotes, "\"b'", None), r#"{"a":"b","c":1}"#),
        ("{\"a\": \"b 'c', \"d\": 1}", (L::UnendedText, "\"b 'c'", Some(12)), r#"{"a":"b 'c'","d":1}"#),
        ("{a-b\": 1}", (L::UnbegunText, "a-b\"", None), r#"{"a-b":1}"#),
        ("{\"a\": https://b/c\"}", (L::UnbegunText, "https://b/c\"", None), r#"{"a":"https://b/c"}"#),
        ("[1, 2\", \"3\"]", (L::UnbegunText, "2\"", None), r#"[1,"2","3"]"#),
        ("{\"a\": b {{c}} d\"}", (L::UnbegunText, "b {{c}} d\"", None), r#"{"a":"b {{c}} d"}"#),
        ("[\"a\"\"]", (L::SurplusQuote, "\"", None), r#"["a"]"#),
        ("[\"\"a\"]", (L::SurplusQuote, "\"", None), r#"["a"]"#),
        ("[\"say \"hi\"\"]", (L::InnerQuotes, "\"hi\"", None), r#"["say \"hi\""]"#),
        ("[\"{\"a\": \"b\"}\", 1]", (L::InnerQuotes, "\"a\": \"b\"", None), r#"["{\"a\": \"b\"}",1]"#),
    ] {
        let document = read(text);
        let found: Vec<_> = document
            .liberties
            .iter()
            .map(|it| (it.kind, &text[it.span.start..it.span.end], it.other.map(|it| it.start)))
            .collect();
        assert_eq!((found, json(text)), (vec![expected], value.to_owned()), "{text}");
    }
}

#[test]
fn what_nobody_could_mean_is_refused_at_its_place() {
    for (text, expected) in [
        ("{\"a\" é", "t.json:1:6: a key needs a colon and a value (write a colon and a value, or remove the key)"),
        ("{\"a\"", "t.json:1:2: a key needs a colon and a value"),
        ("{\"a\":", "t.json:1:2: this key has no value"),
        ("{\"a\": @}", "t.json:1:7: a value was expected, found `@`"),
        ("{\"a\":\n  b: [1]}", "t.json:2:3: this is no value (put a text into double quotes)"),
        ("{\"a\":\n  b:\n c: 1}", "t.json:2:3: this is no value (put a text into double quotes)"),
        ("[b{]", "t.json:1:2: this is no value (put a text into double quotes)"),
        ("True", "t.json:1:1: this is no value (JSON has true, false and null)"),
        (
            "[\"a b\n1]",
            "t.json:1:2: a text that its line does not end (a double quote is missing at the end of the line; a newline is written \\n)",
        ),
        (
            "{\"a\": \"b ]\n\"c\": 1}",
            "t.json:1:7: a text that its line does not end (a double quote is missing before the `]` at the end of the line)",
        ),
        ("[\"a", "t.json:1:2: a text without an end (a double quote is missing after this one)"),
        ("1_000", "t.json:1:1: this is no number (put a text into double quotes)"),
        ("{1: 2}", "t.json:1:2: a key was expected, found `1` (put keys into double quotes)"),
        ("[/* x]", "t.json:1:2: a comment without an end (end it with */)"),
        ("é: [", "t.json:1:1: this is no value (put a text into double quotes)"),
    ] {
        assert_eq!(problem(text), expected, "{text}");
    }
    assert!(problem(&"[".repeat(10_000)).contains("t.json:1:129: nested deeper than 128 levels"));
    let unopened = format!("{{{}1{}", "\"a\": ".repeat(10_000), "}".repeat(10_000));
    assert!(problem(&unopened).contains("nested deeper than 128 levels"));
}

#[test]
fn a_key_that_occurs_twice_keeps_its_first_place_and_its_last_value() {
    let document = read(r#"{"a": 1, "b": 2, "a": 3, "a": 4}"#);
    assert_eq!(document.root.to_json_text(), r#"{"a":4,"b":2}"#);
    let places: Vec<_> = document.duplicates.iter().map(|found| (found.first.start, found.second.start)).collect();
    assert_eq!(places, [(1, 17), (17, 25)]);
}

#[test]
fn a_text_over_several_lines_is_read_where_it_plainly_goes_on() {
    assert_eq!(json("{\"a\": \"x\ny\", \"b\": 1}"), r#"{"a":"x\ny","b":1}"#);
    assert!(liberties("[\"x\ny\"\"]").contains(&(L::UnendedText, "\"")));
}

#[test]
fn so_many_slips_of_quotes_as_no_person_makes_end_the_reading() {
    let text = |lines: usize| format!("[{}1]", "a\",\n".repeat(lines));
    assert_eq!(liberties(&text(1000)), vec![(L::UnbegunText, "a\""); 1000]);
    let long = format!("[{}\", 1]", "a".repeat(5000));
    assert!(problem(&long).contains("t.json:1:2: this is no value"), "nobody looks so far for a quote");
    assert_eq!(problem(&text(10_000)), "t.json:1994:1: this is no value (put a text into double quotes)");
}

/// How many levels of lists and objects there are.
fn depth(node: &Node) -> usize {
    match &node.value {
        Value::Sequence(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Mapping(entries) => 1 + entries.iter().map(|entry| depth(&entry.node)).max().unwrap_or_default(),
        _ => 0,
    }
}

#[test]
fn only_once_a_value_becomes_the_first_item_of_a_list() {
    assert_eq!(json(r#"{"b": 1, "a"] "a"] "a"]}"#), r#"{"b":[1,"a"],"a":[null,"a"]}"#);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_panic(text in "[-a-z0-9:{}()\\[\\],/*#'`\"“”\\\\u+.;=， \u{a0}é\n\t]{0,60}") {
        if let Ok(document) = parse(&Source::new("p", text.clone())) {
            for Liberty { span, .. } in document.liberties {
                prop_assert!(text.get(span.start..span.end).is_some(), "{span:?}");
            }
        }
    }

    #[test]
    fn nothing_is_nested_deeper_than_the_reader_goes(
        (before, after) in prop::sample::select(vec![("", ""), ("[", "]"), ("{", "}"), ("{\"b\": {", "}}"), ("[{", "}]")]),
        tokens in "([{}\\[\\]:,1\n]|\"a\"){1,6}",
    ) {
        let text = format!("{before}{}{after}", tokens.repeat(300));
        if let Ok(document) = parse(&Source::new("p", text)) {
            let deepest = depth(&document.root);
            prop_assert!(deepest <= 2 * 128, "{deepest}");
        }
    }

    #[test]
    fn json_is_read_as_serde_reads_it(value in "\\PC*", number in any::<i64>(), float in any::<f64>()) {
        let json = serde_json::json!({ "a": value, "n": [number, null, true, float], "o": { "": {} } });
        for text in [json.to_string(), serde_json::to_string_pretty(&json)?] {
            let document = read(&text);
            prop_assert_eq!(document.root.to_json(), json.clone());
            prop_assert_eq!(document.liberties, vec![]);
        }
    }
}
