//! A template is refused when it is read, fails when it is rendered, or gives JSON; and all of that soon.
//!
//! What stands behind the first line is the `params` of the request.

#![no_main]

use std::time::UNIX_EPOCH;

use libfuzzer_sys::fuzz_target;
use rehearse_document::{
    Source, parse_yaml, template::Bindings, template::Context, template::SCRIPT_NAMES, template::Templates,
};
use serde_json::{Value as Json, json};

const PARAMS: &str = r#"{"arguments":{"a":"x","n":3,"list":[1,2.5,null]},"uri":"file:///x"}"#;

fuzz_target!(|text: &str| {
    let (template, params) = text.split_once('\n').unwrap_or((text, PARAMS));
    let context = || {
        let context = Context {
            params: Some(params.to_owned().into()),
            id: 1.into(),
            headers: vec![("x".into(), "y".into())],
            call: 1,
            repetition: None,
            seed: 1,
            now: UNIX_EPOCH,
            state: None,
            args: None,
            bound: Some(Bindings::default()),
        };
        context.into_value()
    };
    for written in [json!(template), json!({ "a": [template, 1], "text": template })] {
        let source = Source::new("t", written.to_string());
        let Ok(node) = parse_yaml(&source) else { continue };
        let mut templates = Templates::new(&source, SCRIPT_NAMES);
        if let Ok(condition) = templates.condition(&node) {
            let _ = condition.is_true(&context());
        }
        for data in [templates.data(&node), templates.mcp_data(&node, &["text"])].into_iter().flatten() {
            let mut json = String::new();
            if templates.write_json(&data, &context(), &mut json).is_ok() {
                let read: Json = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
                let is_literal = !["{{", "{%", "{#"].iter().any(|open| template.contains(open));
                assert!(!is_literal || read == written, "{read} of {written}");
                assert!(written["text"].is_null() || read["text"].is_string() || data.literal().is_none(), "{read}");
            }
        }
    }
});
