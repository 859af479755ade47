//! Completion.

use serde_json::{Value, json};

use super::{
    Judge,
    common::{error_code, shown},
};
use crate::{Case, Evidence, Judgement, Lane, Material};

const COMPLETE: &str = "completion/complete";
const MOST: usize = 100;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("comp.prompt.values", |e, j| works(e, j, "ref/prompt")),
    ("comp.template.values", |e, j| works(e, j, "ref/resource")),
    ("comp.values.max-100", |e, j| {
        each(e, j, |it| it["values"].as_array().map(|values| values.len() <= MOST));
    }),
    ("comp.values.strings", |e, j| {
        each(e, j, |it| Some(it["values"].as_array().is_some_and(|values| values.iter().all(Value::is_string))));
    }),
    ("comp.total.integer", |e, j| {
        each(e, j, |it| {
            let count = it["values"].as_array().map_or(0, Vec::len) as u64;
            it.get("total").map(|total| total.as_u64().is_some_and(|total| total >= count))
        });
    }),
    ("comp.hasmore.consistent", |e, j| {
        each(e, j, |it| {
            let count = it["values"].as_array().map_or(0, Vec::len) as u64;
            let (total, has_more) = (it["total"].as_u64()?, it["hasMore"].as_bool()?);
            Some(has_more == (total > count))
        });
    }),
    ("comp.ref.unknown-prompt-32602", |e, j| error_code(e, j, "unknown-names/completion", &[-32602])),
    ("comp.ref.unknown-type-32602", |e, j| error_code(e, j, "bad-params/completion-type", &[-32602])),
    ("comp.argument.missing-32602", |e, j| error_code(e, j, "bad-params/completion-argument", &[-32602])),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.declares("completions") {
        return Vec::new();
    }
    let complete = |name: &str, params: Value| Case::request(name, Lane::Negative, COMPLETE, params);
    let argument = json!({ "name": "x", "value": "" });
    let unknown = json!({ "type": "ref/prompt", "name": material.unknown_name() });
    let mut cases = vec![
        complete("unknown-names/completion", json!({ "ref": unknown, "argument": argument })),
        complete("bad-params/completion-type", json!({ "ref": { "type": "ref/none" }, "argument": argument })),
    ];
    if let Some(name) = material.prompts.first().and_then(|prompt| prompt["name"].as_str()) {
        let reference = json!({ "type": "ref/prompt", "name": name });
        cases.push(complete("bad-params/completion-argument", json!({ "ref": reference })));
    }
    cases
}

fn works(evidence: &Evidence<'_>, j: &mut Judgement, kind: &str) {
    for call in evidence.calls_of(COMPLETE).filter(|call| call.request.case.is_none() && call.response.is_some()) {
        if call.request.at("/params/ref/type") == kind {
            j.check_call(call.result().is_some(), &call);
        }
    }
}

fn each(evidence: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Value) -> Option<bool>) {
    for (call, result) in evidence.results_of(COMPLETE) {
        let completion = &result["completion"];
        if let Some(holds) = holds(completion) {
            j.check_at(holds, None, call.places(), || shown(completion));
        }
    }
}
