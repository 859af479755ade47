//! The answers of dialogs in the formats of all providers.

mod any;
mod reading;

use serde_json::{Value as Json, json};

use super::{AnswerError, AnswerSchema, Dialog, NAME, Shape, extract};
use rehearse_document::Source;

fn schema(json: &Json) -> AnswerSchema {
    AnswerSchema::parse(&Source::new("schema.json", json.to_string())).unwrap_or_else(|error| panic!("{error}"))
}

fn dialog(text: &str) -> Dialog {
    Dialog::parse(&Source::new("dialog.json", text)).unwrap_or_else(|error| panic!("{error}"))
}

/// The schema of a review: a verdict, and findings with a line each.
fn review() -> AnswerSchema {
    schema(&json!({
        "type": "object",
        "required": ["verdict"],
        "additionalProperties": false,
        "properties": {
            "verdict": { "enum": ["merge", "wait"] },
            "findings": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["line"],
                    "properties": { "line": { "type": "integer" }, "note": { "type": ["string", "null"] } },
                },
            },
        },
    }))
}

/// The answer as text, or the reason why there is none.
fn outcome(dialog: &Dialog, schema: &AnswerSchema) -> Result<String, String> {
    extract(dialog, Some(schema)).map(|answer| answer.text).map_err(|error| error.to_string())
}

/// A turn of the assistant in the three formats: a text unless it is empty, and calls with the JSON text of their
/// arguments.
fn turns(text: &str, calls: &[(&str, &str)]) -> [String; 3] {
    let quoted = |text: &str| Json::from(text).to_string();
    let join = |parts: Vec<String>| parts.join(",");
    let blocks = calls.iter().map(|(name, arguments)| {
        format!(r#"{{"type":"tool_use","id":"t","name":{},"input":{arguments}}}"#, quoted(name))
    });
    let said = (!text.is_empty()).then(|| format!(r#"{{"type":"text","text":{}}}"#, quoted(text)));
    let blocks = join(said.into_iter().chain(blocks).collect());
    let function = |(name, arguments): &(&str, &str)| {
        let function = format!(r#"{{"name":{},"arguments":{}}}"#, quoted(name), quoted(arguments));
        format!(r#"{{"id":"t","type":"function","function":{function}}}"#)
    };
    let functions = join(calls.iter().map(function).collect());
    let items = calls.iter().map(|(name, arguments)| {
        let (name, arguments) = (quoted(name), quoted(arguments));
        format!(r#"{{"type":"function_call","call_id":"t","name":{name},"arguments":{arguments}}}"#)
    });
    let said = format!(
        r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":{}}}]}}"#,
        quoted(text)
    );
    [
        format!(r#"{{"role":"assistant","content":[{blocks}]}}"#),
        format!(r#"{{"role":"assistant","content":{},"tool_calls":[{functions}]}}"#, quoted(text)),
        join([said].into_iter().chain(items).collect()),
    ]
}

/// The dialogs of these turns, with a user message after each.
fn dialogs(said: &[(&str, &[(&str, &str)])]) -> [String; 3] {
    let mut dialogs = [const { String::new() }; 3];
    for (text, calls) in said {
        for (dialog, turn) in dialogs.iter_mut().zip(turns(text, calls)) {
            dialog.push_str(&format!(r#",{turn},{{"role":"user","content":"Go on."}}"#));
        }
    }
    dialogs.map(|dialog| format!(r#"[{{"role":"user","content":"Begin."}}{dialog}]"#))
}

/// One turn of the assistant, as a row of a table has it.
type TurnItem<'a> = (&'a str, &'a [(&'a str, &'a str)]);

#[test]
fn the_answer_is_that_of_the_last_turn_that_calls_the_tool() {
    const GOOD: (&str, &str) = (NAME, r#"{"verdict":"merge"}"#);
    const OTHER: (&str, &str) = (NAME, r#"{"verdict":"wait"}"#);
    const READ: (&str, &str) = ("read_file", r#"{"path":"a.rs"}"#);
    const WRONG: (&str, &str) = (NAME, r#"{"verdict":"perhaps"}"#);
    let (merge, wait) = (Ok(r#"{"verdict":"merge"}"#), Ok(r#"{"verdict":"wait"}"#));
    let not_called = Err("subagent did not call final_answer tool");
    let perhaps = Err("the arguments of final_answer do not match the schema:\n  \
                       /verdict: \"perhaps\" is not one of \"merge\" or \"wait\"");
    let rows: &[(&str, &[TurnItem<'_>], Result<&str, &str>)] = &[
        ("alone", &[("", &[GOOD])], merge),
        ("with a text", &[("Here it is.", &[GOOD])], merge),
        ("last", &[("", &[OTHER]), ("", &[READ]), ("", &[GOOD])], merge),
        ("before a text", &[("", &[GOOD]), ("Done.", &[])], merge),
        ("before other calls", &[("", &[GOOD]), ("", &[READ])], merge),
        ("other calls before it in the turn", &[("", &[READ, READ, GOOD])], merge),
        ("other calls after it in the turn", &[("", &[GOOD, READ])], merge),
        ("several in one turn: the first", &[("", &[READ, GOOD, OTHER, READ])], merge),
        ("several turns: the last", &[("", &[GOOD]), ("", &[OTHER])], wait),
        ("a wrong one is not replaced by the next", &[("", &[WRONG, GOOD])], perhaps),
        ("a wrong one is not replaced by an earlier one", &[("", &[GOOD]), ("", &[WRONG])], perhaps),
        ("a right one stands before a wrong one", &[("", &[GOOD, WRONG])], merge),
        ("missing", &[("The verdict is: merge.", &[])], not_called),
        ("only other calls", &[("", &[READ])], not_called),
        ("a name like it", &[("", &[("final_answers", "{}"), ("Final_Answer", "{}")])], not_called),
        ("an empty dialog", &[], not_called),
    ];
    for (row, said, expected) in rows {
        for text in dialogs(said) {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(outcome(&dialog(&text), &review()), expected, "{row}: {text}");
        }
    }
}

#[test]
fn arguments_are_verbatim_and_every_wrong_path_is_reported() {
    let huge =
        format!(r#"{{"verdict":"wait","findings":[{}{{"line":0}}]}}"#, r#"{"line":1,"note":"n"},"#.repeat(20_000));
    let long = format!(r#"{{"verdict":"{}"}}"#, "x".repeat(100_000));
    let mismatch = |lines: &str| Err(format!("the arguments of final_answer do not match the schema:{lines}"));
    let cut = "x".repeat(119);
    for (arguments, expected) in [
        ("{\n  \"verdict\" : \"merge\"\n}", Ok(r#"{"verdict":"merge"}"#.to_owned())),
        (r#"{"verdict":"wait","findings":[]}"#, Ok(r#"{"verdict":"wait","findings":[]}"#.to_owned())),
        (r#"{"findings":[{"line":1.0}],"verdict":"wait"}"#, Ok(r#"{"findings":[{"line":1.0}],"verdict":"wait"}"#.to_owned())),
        // Digits that no double holds, and what `serde_json` would write otherwise.
        (
            r#"{"verdict":"wait","findings":[{"line":123456789012345678901234567890,"note":"\u00e9 😀 \ud83d\ude00 \u0000 世界"}]}"#,
            Ok(r#"{"verdict":"wait","findings":[{"line":123456789012345678901234567890,"note":"é 😀 😀 \u0000 世界"}]}"#.to_owned()),
        ),
        (&huge, Ok(huge.clone())),
        ("{}", mismatch("\n  \"verdict\" is a required property")),
        ("[]", mismatch("\n  [] is not of type \"object\"")),
        ("7", mismatch("\n  7 is not of type \"object\"")),
        ("true", mismatch("\n  true is not of type \"object\"")),
        (r#"{"verdict":null}"#, mismatch("\n  /verdict: null is not one of \"merge\" or \"wait\"")),
        (&long, mismatch(&format!("\n  /verdict: \"{cut}… is not one of \"merge\" or \"wait\""))),
        (
            r#"{"findings":[{"line":1},{"line":"2"},{"note":3},5],"vérdict/~":0}"#,
            mismatch(
                "\n  \"verdict\" is a required property\
                 \n  /findings/1/line: \"2\" is not of type \"integer\"\
                 \n  /findings/2: \"line\" is a required property\
                 \n  /findings/2/note: 3 is not of types \"null\", \"string\"\
                 \n  /findings/3: 5 is not of type \"object\"\
                 \n  Additional properties are not allowed ('vérdict/~' was unexpected)",
            ),
        ),
        ("null", Err("final_answer was called without arguments".to_owned())),
        (r#""""#, Err("final_answer was called without arguments".to_owned())),
        (r#""{\"verdict\":\"merge\"}""#, Ok(r#"{"verdict":"merge"}"#.to_owned())),
    ] {
        let [anthropic, chat, responses] = dialogs(&[("", &[(NAME, arguments)])]);
        let found = |text: &str| outcome(&dialog(text), &review()).map_err(|error| sorted(&error));
        let expected = expected.map_err(|error| sorted(&error));
        let start: String = arguments.chars().take(200).collect();
        assert_eq!(found(&anthropic), expected, "{start}");
        // In these shapes the arguments are a text in any case, so that a text in it is a value.
        let in_text = match arguments {
            _ if arguments.starts_with('"') => mismatch(&format!("\n  {arguments} is not of type \"object\"")),
            _ => expected,
        };
        assert_eq!(found(&chat), in_text, "{start}");
        assert_eq!(found(&responses), in_text, "{start}");
    }
}

/// The lines in an order that does not depend on that of the checks.
fn sorted(text: &str) -> String {
    let mut lines: Vec<_> = text.split('\n').collect();
    lines[1..].sort_unstable();
    lines.join("\n")
}

#[test]
fn arguments_in_a_string_must_be_strict_json() {
    for (arguments, expected) in [
        (r#" {"verdict":"merge"} "#, Ok(r#"{"verdict":"merge"}"#)),
        (r#"{"verdict":"wait","verdict":"merge"}"#, Ok(r#"{"verdict":"merge"}"#)),
        ("", Err("final_answer was called without arguments")),
        (" \n", Err("final_answer was called without arguments")),
        (" null", Err("final_answer was called without arguments")),
        (r#"{"verdict":"mer"#, Err("EOF while parsing a string at line 1 column 15")),
        ("merge", Err("expected value at line 1 column 1")),
        ("```json\n{}\n```", Err("expected value at line 1 column 1")),
        ("{verdict:'merge',}", Err("key must be a string at line 1 column 2")),
        (r#"{"verdict":"merge"} {}"#, Err("trailing characters at line 1 column 21")),
        (r#"{"verdict":"\ud800"}"#, Err("unexpected end of hex escape at line 1 column 19")),
        (r#"{"findings":[{"line":1e999}]}"#, Err("number out of range at line 1 column 26")),
        (&"[".repeat(200), Err("recursion limit exceeded at line 1 column 128")),
    ] {
        let text = Json::from(arguments).to_string();
        let [anthropic, ..] = dialogs(&[("", &[(NAME, &text)])]);
        let [_, chat, responses] = dialogs(&[("", &[(NAME, arguments)])]);
        let old = format!(
            r#"[{{"role":"assistant","content":null,"function_call":{{"name":"{NAME}","arguments":{text}}}}}]"#
        );
        for dialog in [anthropic, chat, responses, old].iter().map(|text| self::dialog(text)) {
            let outcome = outcome(&dialog, &review());
            match (expected, &outcome) {
                (Err(why), Err(error)) => assert!(error.ends_with(why), "{arguments}: {error}"),
                (Ok(text), Ok(answer)) => assert_eq!(answer, text),
                _ => panic!("{arguments}: {outcome:?}"),
            }
        }
    }
    // The first that can be read counts.
    let calls = [(NAME, r#"{"verdict":"mer"#), (NAME, r#"{"verdict":"merge"}"#), (NAME, "")];
    let [_, chat, _] = dialogs(&[("", &calls)]);
    let answer = extract(&dialog(&chat), Some(&review())).expect("an answer");
    assert_eq!(answer.at.pointer, "/1/tool_calls/1/function/arguments");
    let ignored_calls: Vec<_> = answer.ignored_calls.iter().map(|at| at.pointer.as_str()).collect();
    assert_eq!(ignored_calls, ["/1/tool_calls/0/function/arguments", "/1/tool_calls/2/function/arguments"]);
    let [_, chat, _] = dialogs(&[("", &[(NAME, ""), (NAME, "{")])]);
    assert_eq!(outcome(&dialog(&chat), &review()), Err("final_answer was called without arguments".into()));
}

#[test]
fn errors_are_reported_with_their_location_in_the_dialog() {
    let [anthropic, chat, responses] = dialogs(&[("Hm.", &[(NAME, r#"{"findings":[{"line":"2"}]}"#)])]);
    for (text, at, first, second) in [
        (anthropic, "/1/content/1/input", "/1/content/1/input/findings/0/line", r#""2""#),
        (chat, "/1/tool_calls/0/function/arguments", "/1/tool_calls/0/function/arguments", ""),
        (responses, "/2/arguments", "/2/arguments", ""),
    ] {
        let error = extract(&dialog(&text), Some(&review())).expect_err("a mismatch");
        assert_eq!(error.at().map(|at| at.pointer.as_str()), Some(at));
        let line = error.violations().iter().find(|it| it.mismatch.pointer == "/findings/0/line").expect("a violation");
        assert_eq!(line.at.pointer, first);
        let written = &text[line.at.span.start..line.at.span.end];
        assert!(written == second || written.starts_with(r#""{\"findings"#), "{written}");
    }
}

#[test]
fn without_a_schema_the_answer_is_the_last_text() {
    const CALL: (&str, &str) = (NAME, "{}");
    let rows: &[(&[TurnItem<'_>], Result<&str, &str>)] = &[
        (&[("One.", &[]), ("Two\nlines. 世界", &[])], Ok("Two\nlines. 世界")),
        (&[("One.", &[]), ("", &[CALL])], Ok("One.")),
        (&[("One.", &[CALL])], Ok("One.")),
        (&[("One.", &[]), ("\n", &[])], Ok("One.")),
        (&[("", &[CALL])], Err("the dialog has no text of the assistant (final_answer is called: give its schema)")),
        (&[("", &[])], Err("the dialog has no text of the assistant")),
        (&[], Err("the dialog has no text of the assistant")),
    ];
    for (said, expected) in rows {
        for text in dialogs(said) {
            let outcome = extract(&dialog(&text), None).map(|answer| answer.text).map_err(|error| match error.hint() {
                Some(hint) => format!("{error} ({hint})"),
                None => error.to_string(),
            });
            assert_eq!(outcome.as_deref(), expected.map_err(str::to_owned).as_deref(), "{text}");
        }
    }
    let blocks = r#"[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"thinking","thinking":"t"},
        {"type":"tool_use","name":"x","input":{}},{"type":"text","text":""},{"type":"text","text":"b"}]}]"#;
    let answer = extract(&dialog(blocks), None).expect("an answer");
    assert_eq!((answer.text.as_str(), answer.at.pointer.as_str()), ("a\nb", "/0/content/0/text"));
}

#[test]
fn what_the_assistant_did_instead_is_reported() {
    let hint = |said: &[TurnItem<'_>]| {
        let hints = dialogs(said).map(|text| match extract(&dialog(&text), Some(&review())) {
            Err(AnswerError::NotCalled { hint }) => hint.unwrap_or_default(),
            other => panic!("{other:?}"),
        });
        assert!(hints.iter().all(|hint| *hint == hints[0]), "{hints:?}");
        hints[0].clone()
    };
    assert_eq!(hint(&[]), "no message has the role `assistant`");
    assert_eq!(hint(&[("Merge it.", &[])]), "its last turn is a text: \"Merge it.\"");
    assert_eq!(hint(&[("Let me see.", &[("read", "{}")])]), "its last turn calls `read`");
    assert_eq!(
        hint(&[("", &[("functions.finalAnswer", "{}")]), ("", &[("read", "{}")])]),
        "it called `functions.finalAnswer`"
    );
    assert_eq!(hint(&[("", &[])]), "");
}

#[test]
fn a_tool_of_mcp_gives_the_answer_as_text_and_structured_and_a_failure_as_an_error() {
    let result = |said: &[TurnItem<'_>], schema: Option<&AnswerSchema>| {
        let [text, ..] = dialogs(said);
        let outcome = extract(&dialog(&text), schema);
        outcome.map_or_else(|error| error.to_tool_result(), |answer| answer.to_tool_result()).get().to_owned()
    };
    let schema = review();
    assert_eq!(
        result(&[("", &[(NAME, r#"{ "verdict": "merge", "findings": [{ "line": 1e2 }] }"#)])], Some(&schema)),
        r#"{"content":[{"type":"text","text":"{\"verdict\":\"merge\",\"findings\":[{\"line\":1e2}]}"}],"structuredContent":{"verdict":"merge","findings":[{"line":1e2}]}}"#
    );
    assert_eq!(result(&[("Done.", &[])], None), r#"{"content":[{"type":"text","text":"Done."}]}"#);
    assert_eq!(
        result(&[("Done.", &[])], Some(&schema)),
        r#"{"content":[{"type":"text","text":"Subagent execution failed: subagent did not call final_answer tool"}],"isError":true}"#
    );
}

#[test]
fn the_tool_has_the_schema_of_the_answer() {
    let expected = json!({ "required": ["a"], "properties": { "a": { "type": "string" } }, "type": "object" });
    let anthropic = schema(&expected).definition(Shape::Anthropic);
    assert_eq!(anthropic["name"], "final_answer");
    assert_eq!(anthropic["input_schema"].to_string(), expected.to_string());
    let openai = schema(&expected).definition(Shape::OpenAi);
    assert_eq!((&openai["type"], &openai["function"]["name"]), (&json!("function"), &anthropic["name"]));
    assert_eq!(openai["function"]["description"], anthropic["description"]);
    assert_eq!(openai["function"]["parameters"], expected);
    for other in [json!({}), json!({ "type": ["null", "object"] })] {
        let schema = schema(&other);
        assert_eq!(schema.definition(Shape::Anthropic)["input_schema"], json!({ "type": "object" }));
        assert_eq!(schema.violations(&json!(null)).len(), 1);
    }
}
