//! Completion.

use serde_json::{Value, json};

use super::Judge;
use super::common::{each_works, error_code, fails_plainly, shown, survives};
use super::query::{Calls, Parts, Query};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Level, Material};

const COMPLETE: &str = "completion/complete";
const MOST: usize = 100;
/// Values that a careless server breaks on.
const ODD: &str = "completion/odd";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("comp.prompt.values", |e, j| works(e, j, "ref/prompt")),
    ("comp.template.values", |e, j| works(e, j, "ref/resource")),
    ("comp.values.max-100", |e, j| {
        let is_short = |it: &Value| it["values"].as_array().is_none_or(|values| values.len() <= MOST);
        completions(e).having(|it| it["values"].is_array()).must(j, is_short, shown);
    }),
    ("comp.values.strings", |e, j| {
        let are_texts = |it: &Value| it["values"].as_array().is_some_and(|values| values.iter().all(Value::is_string));
        completions(e).must(j, are_texts, shown);
    }),
    ("comp.total.integer", |e, j| {
        let is_enough = |it: &Value| it["total"].as_u64().is_some_and(|total| total >= count(it));
        completions(e).having(|it| it.get("total").is_some()).must(j, is_enough, shown);
    }),
    ("comp.hasmore.consistent", |e, j| {
        let has_all =
            |it: &Value| it["values"].is_array() && it["total"].as_u64().and(it["hasMore"].as_bool()).is_some();
        let is_right = |it: &Value| it["hasMore"] == (it["total"].as_u64() > Some(count(it)));
        completions(e).having(has_all).must(j, is_right, shown);
    }),
    ("comp.ref.unknown-prompt-32602", |e, j| error_code(e, j, "unknown-names/completion", &[-32602])),
    ("comp.ref.unknown-type-32602", |e, j| error_code(e, j, "bad-params/completion-type", &[-32602])),
    ("comp.argument.missing-32602", |e, j| error_code(e, j, "bad-params/completion-argument", &[-32602])),
    ("comp.refine.narrower", |e, j| {
        // Compares a completion with that of a longer value, sent right after it.
        let mut before: Option<Call<'_>> = None;
        for call in e.calls_of(COMPLETE) {
            let values = |call: &Call<'_>| {
                call.result().and_then(|it| it["completion"]["values"].as_array()).map_or(0, Vec::len)
            };
            if call.request.case == Some("completion/refined") {
                let wider = before.map_or(0, |call| values(&call));
                if wider > 1 {
                    j.check_answer(values(&call) <= wider, &call, || format!("{} values after {wider}", values(&call)));
                }
            } else {
                before = Some(call);
            }
        }
        j.untested("no completion had values");
    }),
    ("comp.ref.unknown-template-32602", |e, j| {
        let is_empty = |it: &Value| it["completion"]["values"].as_array().is_some_and(Vec::is_empty);
        let calls = e.case("unknown-names/completion-template").responded();
        calls.must_get(j, |call| call.result().is_some_and(is_empty) || call.error_code() == Some(-32602));
    }),
    ("comp.argument.unknown", |e, j| {
        let calls = e.case("unknown-names/completion-argument").responded().filter(|call| !fails_plainly(e, call));
        calls.must_get(j, |call| call.error_code() != Some(-32603));
    }),
    ("comp.context.accepted", |e, j| {
        let calls = e.case("completion/context").responded().filter(|call| !fails_plainly(e, call));
        calls.must_get(j, |call| call.result().is_some_and(|result| result["completion"]["values"].is_array()));
    }),
    ("comp.input.odd-values-safe", |e, j| {
        survives(e, j, ODD);
        let failed = e.case(ODD).filter(|call| call.error_code() == Some(-32603));
        for call in failed.filter(|call| !fails_plainly(e, call)) {
            j.check_call(false, &call);
            j.at_level(Level::Derived);
        }
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.declares("completions") {
        return Vec::new();
    }
    let complete = |name: &str, params: Value| Case::request(name, CaseGroup::Negative, COMPLETE, params);
    let argument = json!({ "name": "x", "value": "" });
    let unknown = json!({ "type": "ref/prompt", "name": material.unknown_name() });
    let mut cases = vec![
        complete("unknown-names/completion", json!({ "ref": unknown, "argument": argument })),
        complete("bad-params/completion-type", json!({ "ref": { "type": "ref/none" }, "argument": argument })),
    ];
    let template = json!({ "type": "ref/resource", "uri": format!("rehearse://{}/{{x}}", material.suffix) });
    cases.push(complete("unknown-names/completion-template", json!({ "ref": template, "argument": argument })));
    if let Some(name) = material.prompts.first().and_then(|prompt| prompt["name"].as_str()) {
        let reference = json!({ "type": "ref/prompt", "name": name });
        let unknown = json!({ "name": material.unknown_name(), "value": "" });
        cases.push(complete("bad-params/completion-argument", json!({ "ref": reference })));
        cases.push(complete("unknown-names/completion-argument", json!({ "ref": reference, "argument": unknown })));
    }
    let argument_of = |prompt: &Value| Some((prompt["name"].clone(), prompt["arguments"].get(0)?["name"].clone()));
    if let Some((prompt, argument)) = material.varied_prompts.iter().find_map(argument_of) {
        let long = "x".repeat(10_000);
        let values = [("long", long.as_str()), ("nul", "\0"), ("quotes", "'\"`;--"), ("pattern", "(a+)+$[\\*")];
        cases.extend(values.map(|(variant, value)| {
            let reference = json!({ "type": "ref/prompt", "name": prompt });
            let argument = json!({ "name": argument, "value": value });
            complete(&format!("{ODD}/{variant}"), json!({ "ref": reference, "argument": argument }))
        }));
    }
    cases
}

fn works(e: &Evidence<'_>, j: &mut Judgement, kind: &str) {
    let plain = e.calls_of(COMPLETE).plain();
    each_works(e, j, plain.filter(|call| call.request.at("/params/ref/type") == kind), |_| None);
}

fn completions<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    evidence.results_of(COMPLETE).at("completion")
}

fn count(completion: &Value) -> u64 {
    completion["values"].as_array().map_or(0, Vec::len) as u64
}
