//! Reading of dialogs and schemas, and its errors.

use super::{super::extract, AnswerSchema, Dialog, dialog, review};
use rehearse_document::Source;
use rehearse_testing::table;

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
    for [text, message] in table::rows(include_str!("mistakes.txt"), "dialogs") {
        let error = Dialog::parse(&Source::new("d", &*text)).expect_err(&text).to_string();
        assert!(error.starts_with(&message), "{text}: {error}");
    }
}

#[test]
fn an_invalid_answer_schema_is_reported_with_its_path() {
    for [text, message] in table::rows(include_str!("mistakes.txt"), "schemas of answers") {
        let error = AnswerSchema::parse(&Source::new("s", &*text)).expect_err(&text).to_string();
        assert!(error.starts_with(&message), "{text}: {error}");
    }
}

#[test]
fn a_mistake_in_a_schema_is_reported_once() {
    // In 2020-12 `items` is one schema.
    let text = r#"{"properties":{"a":{"items":[{"type":"foo"}]}}}"#;
    let error = AnswerSchema::parse(&Source::new("s", text)).expect_err(text).to_string();
    assert_eq!(error.matches("/properties/a/items").count(), 1, "{error}");
}
