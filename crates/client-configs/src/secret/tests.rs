use super::*;
use rehearse_document::{Problem, json};
use rehearse_testing::table;
use std::fmt::Write;

/// A line of `cases.txt` is `value` with its name, or `argument` with the argument before it, and what is masked in it.
#[test]
fn only_what_is_secret_is_masked() {
    let mut shown = String::new();
    for line in include_str!("tests/cases.txt").lines() {
        let [kind, name, value] = line.splitn(3, '|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let value = value.replace('⏎', "\n");
        let (masked, warnings) = match kind {
            "value" => (mask(name, &value), secrets_in(name, &value)),
            _ => (mask_argument(name, &value), secrets_in_argument(flag(name), &value)),
        };
        let warning = if warnings.is_empty() { "" } else { " W-SECRET" };
        writeln!(shown, "{line} => {}{warning}", masked.replace('\n', "⏎")).expect("a string");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_shown_source_has_no_secrets() {
    let source = Source::new("x", "token: ghp_0123456789abcdefABCD\nné: x\n");
    let secrets = secrets_of(&source, &rehearse_document::parse_yaml(&source).expect("YAML"));
    assert_eq!(mask_source(&source, &secrets).text, "token: ************************\nné: x\n");
    let references = Source::new("x", "{\"API_TOKEN\": \"${env:API_TOKEN}\", \"args\": [\"--token\", \"$TOKEN\"]}");
    assert_eq!(secrets_of(&references, &json::parse(&references).expect("JSON").root), []);
    assert_eq!(mask_source(&source, &[]).text, source.text);
}

#[test]
fn secrets_are_taken_out_of_sentences_unless_they_are_constant() {
    let source = Source::new("x", "password: x0123456789\n");
    let secrets = secrets_of(&source, &rehearse_document::parse_yaml(&source).expect("YAML"));
    let redacted = |problem| {
        let Problem { message, hint, .. } = Redactor::new(&source, &secrets).problem(&problem);
        (message.into_owned(), hint.map(Cow::into_owned).unwrap_or_default())
    };
    let formatted = |message: &str, hint: &str| Problem::new(Span::default(), message.to_owned()).hint(hint.to_owned());
    for (message, hint, expected) in [
        ("found `ghp_0123456789abcdefABCD`", "not `x0123456789`", ("found `***`", "not `***`")),
        ("no x0123456789 here", "", ("no *** here", "")),
    ] {
        assert_eq!(redacted(formatted(message, hint)), (expected.0.to_owned(), expected.1.to_owned()));
    }
    let constant = Problem::new(Span::default(), "a `pass` of x0123456789");
    assert_eq!(redacted(constant).0, "a `pass` of x0123456789");
}

#[test]
fn a_secret_is_hidden_wherever_it_occurs() {
    for text in [
        r#"{"env": {"API_KEY": "geheim1234", "API_KEY": "${X}"}}"#,
        r#"{"env": "API_KEY=geheim1234"}"#,
        r#"{"args": "-y b --api-key geheim1234"}"#,
        r#"{"headers": "Authorization: Bearer geheim1234"}"#,
        r#"{"inputs": [{"password": true, "default": "geheim1234"}]}"#,
        r#"{"args": ["-u", "ada:geheim1234"]}"#,
        r#"{"args": ["--user=ada:geheim1234"]}"#,
        r#"{"args": "curl -u ada:geheim1234 x"}"#,
        r#"{"env": {"DSN": "root:geheim1234@tcp(h:3306)/db"}}"#,
        r#"{"env": {"API_KEY": "geheim1234", "NAME": "geheim1234"}}"#,
        r#"{"env": {"NAME": "x:geheim1234", "PASSWORD": "${P}geheim1234"}, "url": "https://h/geheim1234/mcp"}"#,
    ] {
        let source = Source::new("x", text);
        let root = json::parse(&source).expect(text).root;
        let shown = mask_source(&source, &secrets_of(&source, &root));
        assert!(!shown.text.contains("geheim"), "{}", shown.text);
    }
    let plain = r#"{"env": {"PASSWORD": "postgres", "USER": "postgres", "PWD": "/home/ada/work"}}"#;
    let source = Source::new("x", plain);
    let root = json::parse(&source).expect("reads").root;
    let shown = mask_source(&source, &secrets_of(&source, &root));
    assert_eq!(shown.text, plain.replacen("postgres", "********", 1));
}

#[test]
fn a_secret_of_yaml_is_hidden_in_every_style() {
    for [written, expected] in table::rows(include_str!("tests/hidden.txt"), "styles of YAML") {
        let text = format!("a:\n  x: go geheim1234 now\n  {written}\n");
        let source = Source::new("x", text.as_str());
        let root = rehearse_document::parse_yaml(&source).expect(&text);
        let shown = mask_source(&source, &secrets_of(&source, &root)).text.clone();
        assert_eq!(shown, format!("a:\n  x: go ********** now\n  {expected}\n"));
    }
}

#[test]
fn a_sentence_keeps_its_words() {
    for sentence in [
        "the key `token`: the program does not know it",
        "cannot connect to `auth`: the process ended",
        "nothing uses the input `api-key`",
        "write { \"NAME\": \"value\" }",
        "keep it in a variable and write ${API_KEY}",
        "set it before you start it, or write ${TOKEN:-default}",
        "the program does not replace `$AUTH_TOKEN`: it stays as it is written",
        "there is no x-api-key header",
    ] {
        assert_eq!(mask("", sentence), sentence);
    }
}
