//! Faults, with the options of their `FaultInfo`.

use serde_json::{Value as Json, json};

use super::{
    build::{
        Definitions, Keys, any, at_most_one, choice, described, exactly_one, extend, keys, list_of, object, reference,
        text,
    },
    when,
};
use crate::faults::{ALL, FaultInfo};
use rehearse_document::{Source, parse_yaml};

pub(super) fn definitions() -> Definitions {
    vec![("faultRule".into(), rule()), ("fault".into(), fault())]
}

fn rule() -> Json {
    let one =
        || json!({ "anyOf": [choice(&ALL.iter().map(|info| info.name).collect::<Vec<_>>()), reference("fault")] });
    let several = extend(list_of(one()), json!({ "minItems": 1 }));
    object(
        &["do"],
        keys! {
            "on": extend(object(&[], [target(), when::keys()].concat()), at_most_one(&["tool", "prompt", "resource"])),
                "The requests that the faults apply to: the keys of `when`, and what the requests ask for. All requests by default.",
                [{ "tool": "echo", "call": 2 }, { "method": "initialize" }, { "probability": 0.1 }];
            "do": json!({ "anyOf": [one(), several] }),
                "What happens to the answer: one fault, or an array of them, one after the other.",
                [{ "truncate": { "after": 20 } }, "hang", [{ "delay": "1s" }, "duplicate"]];
        },
    )
}

fn target() -> Keys {
    keys! {
        "method": text(), "The method of the request.", ["tools/list"];
        "tool": text(), "The tool that is called.", ["echo"];
        "prompt": text(), "The prompt that is got.", ["greet"];
        "resource": text(), "The URI of the resource that is read.", ["file:///readme.md"];
    }
}

fn fault() -> Json {
    let faults: Vec<_> = ALL.iter().map(|info| (info.name, options(info))).collect();
    let names: Vec<_> = faults.iter().map(|(name, _)| *name).collect();
    extend(object(&[], faults), exactly_one(&names))
}

fn options(info: &FaultInfo) -> Json {
    let example = parse_yaml(&Source::new(info.name, info.example)).map(|node| node.to_json()).unwrap_or_default();
    let example = &example[info.name];
    let option = |(name, meaning): &(&'static str, &str)| {
        let examples: Vec<_> = example.get(name).into_iter().collect();
        (*name, described(any(), &format!("{meaning}."), json!(examples)))
    };
    let options = object(&[], info.options.iter().map(option).collect());
    let short = json!({ "type": ["string", "number", "boolean", "null"] });
    let examples = if example.is_null() { json!([]) } else { json!([example]) };
    described(json!({ "anyOf": [options, short] }), &format!("{}.", info.summary), examples)
}
