//! Properties of generated dialogs.

use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

use super::{super::extract, Dialog, NAME, dialog, dialogs, outcome, review};
use rehearse_document::Source;

/// JSON with parts of dialogs.
fn dialog_like() -> impl Strategy<Value = Json> {
    let keys = prop::sample::select(vec![
        "role",
        "type",
        "content",
        "text",
        "tool_calls",
        "function",
        "function_call",
        "name",
        "arguments",
        "input",
        "messages",
        "output",
        "choices",
        "message",
        "verdict",
        "findings",
    ]);
    let texts = prop::sample::select(vec![
        "assistant",
        "user",
        "text",
        "tool_use",
        "message",
        "function_call",
        NAME,
        "",
        "{}",
        "{\"verdict\":\"wait\"}",
        "[",
    ]);
    let leaf = prop_oneof![
        4 => texts.prop_map(Json::from),
        1 => any::<Option<bool>>().prop_map(|value| value.map_or(Json::Null, Json::from)),
        1 => any::<f64>().prop_map(Json::from),
        1 => ".{0,8}".prop_map(Json::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let members = prop::collection::vec((keys.clone(), inner.clone()), 0..6);
        let object = members.prop_map(|members| {
            Json::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
        });
        prop_oneof![object, prop::collection::vec(inner, 0..5).prop_map(Json::from)]
    })
}

/// A turn without an answer: a text, and calls of other tools.
fn unrelated() -> impl Strategy<Value = (String, Vec<(String, String)>)> {
    let name = "[a-z_]{1,12}".prop_filter("another tool", |name| name != NAME);
    let arguments =
        prop_oneof![Just("{}".to_owned()), dialog_like().prop_map(|value| json!({ "a": value }).to_string())];
    (".{0,12}", prop::collection::vec((name, arguments), 0..3))
}

proptest! {
    #[test]
    fn no_dialog_panics(value in dialog_like(), cut in any::<prop::sample::Index>()) {
        let text = json!([{ "role": "assistant", "content": value, "tool_calls": [{ "function": value }] }, value]).to_string();
        let cut = rehearse_document::text::boundary_before(&text, cut.index(text.len() + 1));
        for text in [&text, &*value.to_string(), &text[..cut]] {
            if let Ok(dialog) = Dialog::parse(&Source::new("d", text)) {
                for schema in [None, Some(&review())] {
                    match extract(&dialog, schema) {
                        Ok(answer) => prop_assert!(!answer.text.is_empty()),
                        Err(error) => prop_assert!(!error.to_string().is_empty()),
                    }
                }
            }
        }
    }

    #[test]
    fn unrelated_turns_change_no_answer(
        answer_arguments in prop_oneof![
            Just(r#"{"verdict":"merge"}"#.to_owned()),
            Just(r#"{"verdict":"no","findings":[5]}"#.to_owned()),
            Just("[]".to_owned()),
        ],
        before in prop::collection::vec(unrelated(), 0..4),
        after in prop::collection::vec(unrelated(), 0..4),
        beside in (unrelated(), unrelated()),
    ) {
        let ((text, mut calls), (_, others)) = beside;
        calls.push((NAME.to_owned(), answer_arguments.clone()));
        calls.extend(others);
        let turns: Vec<_> = before.into_iter().chain([(text, calls)]).chain(after).collect();
        let borrowed: Vec<_> = turns.iter().map(|(text, calls)| {
            (text.as_str(), calls.iter().map(|(name, arguments)| (name.as_str(), arguments.as_str())).collect::<Vec<_>>())
        }).collect();
        let said: Vec<_> = borrowed.iter().map(|(text, calls)| (*text, &calls[..])).collect();
        let alone = dialogs(&[("", &[(NAME, &answer_arguments)])]);
        for (text, alone) in dialogs(&said).iter().zip(alone) {
            prop_assert_eq!(outcome(&dialog(text), &review()), outcome(&dialog(&alone), &review()), "{}", text);
        }
    }
}
