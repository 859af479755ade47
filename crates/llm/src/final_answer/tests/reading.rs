//! Reading of dialogs and schemas, and its errors.

use super::{super::extract, AnswerSchema, Dialog, dialog, review};
use rehearse_document::Source;

#[test]
fn a_dialog_is_an_array_or_in_a_request_or_response() {
    let message = r#"{"role":"assistant","type":"message","content":[{"type":"tool_use","name":"final_answer","input":{"verdict":"wait"}}]}"#;
    let call = r#"{"type":"function_call","name":"final_answer","arguments":"{\"verdict\":\"wait\"}"}"#;
    for (text, at) in [
        (format!("[{message}]"), "/0/content/0/input"),
        (format!("\u{feff}{message}\n"), "/content/0/input"),
        (format!(r#"{{"model":"m","messages":[{message}]}}"#), "/messages/0/content/0/input"),
        (format!(r#"{{"choices":[{{"message":{message}}}]}}"#), "/choices/0/message/content/0/input"),
        (format!(r#"{{"object":"response","output":[{{"type":"reasoning"}},{call}]}}"#), "/output/1/arguments"),
        (format!(r#"{{"input":[{call}]}}"#), "/input/0/arguments"),
    ] {
        let answer = extract(&dialog(&text), Some(&review())).expect("an answer");
        assert_eq!((answer.text.as_str(), answer.at.pointer.as_str()), (r#"{"verdict":"wait"}"#, at));
    }
}

#[test]
fn unknown_items_and_other_speakers_are_ignored() {
    let text = r#"[
        {"role":"user","content":[{"type":"tool_use","name":"final_answer","input":{"verdict":"merge"}}]},
        {"role":"assistant","content":null,"tool_calls":null,"function_call":null},
        {"role":"assistant","content":[{"type":"thinking"},{"type":"of tomorrow"},{}],
         "tool_calls":[{"type":"custom","custom":{"name":"final_answer","input":"x"}}]},
        {"role":"tool","content":5},
        {"role":"assistant","tool_calls":[{"id":"1","function":{"name":"final_answer","arguments":{"verdict":"wait"}}}]},
        {"type":"item_reference"}
    ]"#;
    assert_eq!(extract(&dialog(text), Some(&review())).expect("an answer").text, r#"{"verdict":"wait"}"#);
}

#[test]
fn a_too_large_value_invalidates_only_its_call() {
    let deep = format!("{}{}", "[".repeat(400), "]".repeat(400));
    let said = |others: &str, input: &str| {
        let call = format!(r#"{{"type":"tool_use","name":"final_answer","input":{input}}}"#);
        dialog(&format!(r#"[{{"role":"user","content":{others}}},{{"role":"assistant","content":[{call}]}}]"#))
    };
    for others in ["1e400", "[-1.5E+999]", &deep] {
        let answer = extract(&said(others, r#"{"verdict":"wait"}"#), Some(&review()));
        assert_eq!(answer.expect("an answer").text, r#"{"verdict":"wait"}"#);
    }
    let error = extract(&said("[]", r#"{"verdict":"wait","findings":[{"line":1e400}]}"#), Some(&review()));
    let error = error.expect_err("unreadable");
    assert_eq!((error.kind(), error.to_string().contains("the number 1e400 is too large")), ("unreadable", true));
    let schema = AnswerSchema::parse(&Source::new("s", r#"{"maximum":1e400}"#)).expect_err("no schema");
    assert!(schema.to_string().starts_with("s:1:12: "), "{schema}");
}

#[test]
fn a_request_may_have_one_text_of_the_user() {
    let error = extract(&dialog(r#"{"model":"m","input":"hi"}"#), Some(&review())).expect_err("no answer");
    assert_eq!(error.kind(), "not_called");
}

#[test]
fn an_invalid_dialog_is_reported_with_its_location() {
    for (text, message) in [
        ("", "d:1:1: the text is empty"),
        ("[{\"role\": \"assistant\"}", "d:1:1: this `[` is never closed"),
        ("[\n// a\n]", "d:2:1: JSON has no comments"),
        ("[],", "d:1:3: more text after the end of the JSON value"),
        ("[1,]", "d:1:3: JSON has no trailing commas"),
        ("[1 2]", "d:1:4: a comma is missing before this"),
        ("['a']", "d:1:2: this is not valid JSON"),
        ("5", "d:1:1: a dialog must be an array of messages (each is an object with a `role`;"),
        ("{}", "d:1:1: a dialog must be an array of messages"),
        (r#"{"messages":{}}"#, "d:1:13: expected an array, found an object (write an array in brackets: [ … ])"),
        (r#"{"messages":"hi"}"#, "d:1:13: expected an array, found the string \"hi\""),
        ("[1_0]", "d:1:3: not valid JSON"),
        ("[01e4]", "d:1:"),
        (r#"{"choices":[{}]}"#, "d:1:13: a choice needs a `message`"),
        ("[5]", "d:1:2: expected an object, found the number 5"),
        (r#"[{"content":"a"}]"#, "d:1:2: a message needs a `role` (what the model says has the role `assistant`)"),
        (r#"[{"role":5}]"#, "d:1:10: expected a string"),
        (r#"[{"role":"assistant","content":5}]"#, "d:1:32: expected an array, found the number 5"),
        (r#"[{"role":"assistant","content":[5]}]"#, "d:1:33: expected an object"),
        (r#"[{"role":"assistant","content":[{"type":"text"}]}]"#, "d:1:33: a block of text needs a `text`"),
        (r#"[{"role":"assistant","content":[{"type":"tool_use"}]}]"#, "d:1:33: a call of a tool needs a `name`"),
        (r#"[{"role":"assistant","tool_calls":{}}]"#, "d:1:35: expected an array"),
        (r#"[{"role":"assistant","tool_calls":[{}]}]"#, "d:1:36: a call of a tool needs a `function`"),
        (r#"[{"role":"assistant","tool_calls":[{"function":5}]}]"#, "d:1:48: expected an object"),
        (r#"[{"role":"assistant","function_call":{"name":5}}]"#, "d:1:46: expected a string"),
        (
            r#"[{"type":"function_call"},{"role":1}]"#,
            "d:1:2: a call of a tool needs a `name`\nd:1:35: expected a string",
        ),
    ] {
        let error = Dialog::parse(&Source::new("d", text)).expect_err(text).to_string();
        assert!(error.starts_with(message), "{text}: {error}");
    }
}

#[test]
fn an_invalid_answer_schema_is_reported_with_its_path() {
    for (text, message) in [
        ("{", "s:1:1: this `{` is never closed"),
        ("true", "s:1:1: expected an object, found the boolean true"),
        (
            r#"{"type":"array"}"#,
            "s:1:9: an answer must be an object: nothing can fit this type (write `\"type\": \"object\"`,",
        ),
        (r#"{"type":["null"]}"#, "s:1:9: an answer must be an object"),
        (
            r#"{"type":"object","properties":{"a":{"type":"strng"}}}"#,
            "s:1:44: not a valid JSON Schema at /properties/a/type: there is no type \"strng\"; did you mean \"string\"?",
        ),
        (
            r#"{"properties":{"a":{"$ref":"https://example.com/a.json"}}}"#,
            "s:1:28: not a valid JSON Schema at /properties/a/$ref: Resource 'https://example.com/a.json'",
        ),
    ] {
        let error = AnswerSchema::parse(&Source::new("s", text)).expect_err(text).to_string();
        assert!(error.starts_with(message), "{text}: {error}");
    }
}

#[test]
fn a_mistake_in_a_schema_is_reported_once() {
    // In 2020-12 `items` is one schema.
    let text = r#"{"properties":{"a":{"items":[{"type":"foo"}]}}}"#;
    let error = AnswerSchema::parse(&Source::new("s", text)).expect_err(text).to_string();
    assert_eq!(error.matches("/properties/a/items").count(), 1, "{error}");
}
