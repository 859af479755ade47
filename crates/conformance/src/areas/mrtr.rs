//! Results of 2026-07-28 that ask for input, and what comes of a retry.

use std::{collections::HashSet, fmt};

use rehearse_protocol::names::INPUT_METHODS;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

use super::Judge;
use super::ask::{CAPABILITIES, is_declared, not_varied};
use super::common::{is_one_of, shown};
use super::query::{Calls, Query};
use crate::{Call, Evidence, Judgement, Kind, Level};

const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("mrtr.where.only-three", |e, j| {
        let is_other = |call: &Call<'_>| !ASKING.contains(&call.method()) && !call.method().starts_with("tasks/");
        let calls = e.calls().filter(|call| call.request.kind == Kind::Request && is_other(call));
        let results = calls.filter_map(|call| Some((call, call.result()?))).by_method();
        results.must(j, |result| result["resultType"] != "input_required", |_| "`input_required`");
    }),
    ("mrtr.shape.one-of-two", |e, j| {
        each(e, j, |result| result.get("inputRequests").is_some() || result.get("requestState").is_some())
    }),
    ("mrtr.shape.methods", |e, j| {
        let is_known = |input: &Value| is_one_of(&input["method"], &INPUT_METHODS);
        each_input(e, j, |_, input| is_known(input), |input| format!("`method: {}`", input["method"]));
    }),
    ("mrtr.shape.no-jsonrpc-envelope", |e, j| {
        let is_bare = |input: &Value| input.get("id").is_none() && input.get("jsonrpc").is_none();
        each_input(e, j, |_, input| is_bare(input), |_| "`id` or `jsonrpc`".to_owned());
    }),
    ("mrtr.shape.state-string", |e, j| each(e, j, |result| result.get("requestState").is_none_or(Value::is_string))),
    ("mrtr.shape.keys-unique", |e, j| {
        for (call, _) in asking(e) {
            let Some(response) = call.response.and_then(|it| serde_json::from_slice::<Response>(it.bytes).ok()) else {
                continue;
            };
            let mut seen = HashSet::new();
            let twice = response.result.input_requests.0.into_iter().find(|key| !seen.insert(key.clone()));
            j.check_answer(twice.is_none(), &call, || format!("{:?} twice", twice.unwrap_or_default()));
        }
    }),
    ("mrtr.caps.only-declared", |e, j| {
        let method = |input: &Value| input["method"].as_str().unwrap_or_default().to_owned();
        let holds = |call: &Call<'_>, it: &Value| is_declared(call.request.at(CAPABILITIES), &method(it));
        each_input(e, j, holds, |input| format!("{}, not declared", input["method"]));
    }),
    ("mrtr.retry.completes", |e, j| {
        // A tool may refuse what the prober made up, but not as an error of the protocol. Others have no other way to, and any
        // may need a capability that the client has not declared.
        let is_normal = |call: &Call<'_>| matches!(call.request.case, None | Some("asking/prompt" | "asking/resource"));
        for call in e.calls().filter(|call| is_normal(call) && call.request.params().get("inputResponses").is_some()) {
            if call.is_answered() && !call.is_refused_elsewhere() {
                match call.error_code() {
                    // Without a case, the input may be invalid.
                    Some(-32602) if call.method() != "tools/call" || call.request.case.is_none() => {
                        j.untested("the server refused what the prober made up for it");
                    }
                    Some(-32021) => j.untested("the server needs a capability that the client has not declared"),
                    code => j.check_call(code.is_none(), &call),
                }
            }
        }
        j.untested(NOTHING_ASKED);
    }),
    ("mrtr.retry.stateless", |e, j| no_error(e, j, "asking/elsewhere")),
    ("mrtr.retry.missing-reasks", |e, j| no_error(e, j, "asking/missing")),
    ("mrtr.retry.extra-ignored", |e, j| no_error(e, j, "asking/extra")),
    ("mrtr.retry.invalid-rejected", |e, j| not_completed(e, j, "asking/invalid", None)),
    ("mrtr.retry.decline-handled", |e, j| {
        let calls = e.case("asking/decline").chain(e.case("asking/cancel"));
        for call in calls.filter(|call| call.request.kind == Kind::Request && call.is_answered()) {
            if !call.is_refused_elsewhere() || call.response.is_some() {
                j.check_call(call.has_result(), &call);
                j.at_level_if(
                    !call.has_result() && call.error_code().is_some_and(|code| code != -32603),
                    Level::Should,
                );
            }
        }
        not_varied(e, j, NOTHING_ASKED);
    }),
    ("mrtr.retry.not-assumed", |e, j| no_error(e, j, "asking/again")),
    ("mrtr.state.tamper-rejected", |e, j| not_completed(e, j, "asking/tampered", Some(Level::Should))),
    ("mrtr.state.cross-request", |e, j| not_completed(e, j, "asking/other-request", None)),
];

const NOTHING_ASKED: &str = "nothing asked for input; --allow-tool NAME lets the prober call a tool that does";

/// The results that ask for input.
fn asking<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    let results = evidence.calls().filter_map(|call| Some((call, call.result()?)));
    results.filter(|(call, result)| call.request.kind == Kind::Request && result["resultType"] == "input_required")
}

fn each(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Value) -> bool) {
    for (call, result) in asking(e).filter(|(call, _)| ASKING.contains(&call.method())) {
        j.check_answer(holds(result), &call, || shown(result));
    }
    j.untested(NOTHING_ASKED);
}

/// Checks each request for input.
fn each_input(
    e: &Evidence<'_>,
    j: &mut Judgement,
    holds: impl Fn(&Call<'_>, &Value) -> bool,
    found: impl Fn(&Value) -> String,
) {
    for (call, result) in asking(e) {
        for (key, input) in result["inputRequests"].as_object().into_iter().flatten() {
            j.check_at(holds(&call, input), Some(key), call.places(), || found(input));
        }
    }
    j.untested(NOTHING_ASKED);
}

/// The keys of an object as they are written, also those that come twice.
#[derive(Default)]
struct Keys(Vec<String>);

#[derive(Deserialize)]
struct Response {
    result: ResultKeys,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultKeys {
    #[serde(default)]
    input_requests: Keys,
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Keys, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Keys;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, IgnoredAny)) = map.next_entry()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

fn no_error(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    let calls = e.case(case).filter(|call| call.is_answered() && !call.is_refused_elsewhere());
    calls.must_get(j, Call::has_result);
    not_varied(e, j, NOTHING_ASKED);
}

/// Checks that a retry is refused, or asked again; `level` is that of a result, if it is another one than the check's.
fn not_completed(e: &Evidence<'_>, j: &mut Judgement, case: &str, level: Option<Level>) {
    for call in e.case(case).filter(Call::is_answered) {
        let is_complete = |it: &Value| it["resultType"] != "input_required" && it["isError"] != true;
        let holds = !call.result().is_some_and(is_complete);
        j.check_call(holds, &call);
        let Some(level) = level.filter(|_| !holds) else { continue };
        j.at_level(level);
    }
    not_varied(e, j, NOTHING_ASKED);
}
