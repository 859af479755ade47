//! Completion.

use serde_json::{Value, json};

use super::{
    Judge,
    common::{each_works, error_code, fails_plainly, shown, survives},
};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Level, Material};

const COMPLETE: &str = "completion/complete";
const MOST: usize = 100;
/// Values that a careless server breaks on.
const ODD: &str = "completion/odd";

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
            let count = it["values"].as_array()?.len() as u64;
            let (total, has_more) = (it["total"].as_u64()?, it["hasMore"].as_bool()?);
            Some(has_more == (total > count))
        });
    }),
    ("comp.ref.unknown-prompt-32602", |e, j| error_code(e, j, "unknown-names/completion", &[-32602])),
    ("comp.ref.unknown-type-32602", |e, j| error_code(e, j, "bad-params/completion-type", &[-32602])),
    ("comp.argument.missing-32602", |e, j| error_code(e, j, "bad-params/completion-argument", &[-32602])),
    ("comp.refine.narrower", narrower),
    ("comp.ref.unknown-template-32602", |e, j| refused_or_empty(e, j, "unknown-names/completion-template")),
    ("comp.argument.unknown", |e, j| {
        let calls = e.case("unknown-names/completion-argument").filter(|call| call.response.is_some());
        for call in calls.filter(|call| !fails_plainly(e, call)) {
            j.check_call(call.error_code() != Some(-32603), &call);
        }
    }),
    ("comp.context.accepted", |e, j| {
        let calls = e.case("completion/context").filter(|call| call.response.is_some());
        for call in calls.filter(|call| !fails_plainly(e, call)) {
            j.check_call(call.result().is_some_and(|result| result["completion"]["values"].is_array()), &call);
        }
        j.untested("no listed prompt has two arguments");
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

/// Checks that an unknown reference is refused, or has no values.
fn refused_or_empty(evidence: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for call in evidence.case(case).filter(|call| call.response.is_some()) {
        let values = call.result().map(|result| &result["completion"]["values"]);
        let is_empty = values.and_then(Value::as_array).is_some_and(Vec::is_empty);
        j.check_call(is_empty || call.error_code() == Some(-32602), &call);
    }
}

/// Compares a completion with that of a longer value, sent right after it.
fn narrower(evidence: &Evidence<'_>, j: &mut Judgement) {
    let mut before: Option<Call<'_>> = None;
    for call in evidence.calls_of(COMPLETE) {
        let values =
            |call: &Call<'_>| call.result().and_then(|it| it["completion"]["values"].as_array()).map_or(0, Vec::len);
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
}

fn works(evidence: &Evidence<'_>, j: &mut Judgement, kind: &str) {
    let plain = evidence.calls_of(COMPLETE).filter(|call| call.request.case.is_none());
    each_works(evidence, j, plain.filter(|call| call.request.at("/params/ref/type") == kind), |_| None);
}

fn each(evidence: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Value) -> Option<bool>) {
    for (call, result) in evidence.results_of(COMPLETE) {
        let completion = &result["completion"];
        if let Some(holds) = holds(completion) {
            j.check_at(holds, None, call.places(), || shown(completion));
        }
    }
}
