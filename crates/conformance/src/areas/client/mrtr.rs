//! Requests of 2026-07-28 that are sent again with what the server asked for.

use rehearse_protocol::names::{METHOD_HEADER, NAME_HEADER, VERSION_HEADER};
use serde_json::{Map, Value};

use super::super::Judge;
use super::super::ask::{CAPABILITIES, is_declared};
use super::super::common::{keyed, shown};
use super::asked::{ROOTS, Round, asking, is_retry, keys, rounds, target};
use crate::{Evidence, Judgement, shapes};

const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];
/// What a retry has, and the request before does not.
const NEW: [&str; 3] = ["_meta", "inputResponses", "requestState"];
/// So many rounds of one request are endless.
const MOST_ROUNDS: usize = 50;
/// After so many a client may take them for endless.
const ENOUGH_ROUNDS: usize = 3;
const NOTHING_ASKED: &str = "the server asked for nothing, or the client did not try again";

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-mrtr.retry.same-request", |e, j| {
        each(e, j, |round| {
            let (before, after) = (rest(round.asked.request.params()), rest(round.retry.request.params()));
            let differs = before.keys().chain(after.keys()).find(|key| before.get(*key) != after.get(*key))?;
            Some(format!("another `{differs}`"))
        });
    }),
    ("client-mrtr.retry.new-id", |e, j| {
        each(e, j, |round| {
            let id = round.retry.request.id().filter(|id| Some(*id) == round.asked.request.id())?;
            let is_one = round.retry.request.place.connection == round.asked.request.place.connection;
            is_one.then(|| format!("the id {} of the request before", shown(id)))
        });
    }),
    ("client-mrtr.retry.state-echo", |e, j| {
        let has_state = |it: &Round<'_>| it.result.get("requestState").is_some() && !has_old_state(it);
        each_of(e, j, has_state, |round| {
            (state(round) != round.result.get("requestState")).then(|| match state(round) {
                Some(state) => format!("`requestState: {}`", shown(state)),
                None => "no `requestState`".to_owned(),
            })
        });
    }),
    ("client-mrtr.retry.state-omitted", |e, j| {
        let has_none = |round: &Round<'_>| round.result.get("requestState").is_none();
        each_of(e, j, has_none, |round| state(round).map(keyed("requestState")));
    }),
    ("client-mrtr.retry.state-replaced", |e, j| {
        let is_second = |round: &Round<'_>| {
            let old = round.asked.request.params().get("requestState");
            old.is_some() && round.result.get("requestState").is_some_and(|new| Some(new) != old)
        };
        each_of(e, j, is_second, |round| has_old_state(round).then(|| "the `requestState` of the round before".into()));
    }),
    ("client-mrtr.retry.responses-keyed", |e, j| {
        each_of(
            e,
            j,
            |round| responses(round).is_object(),
            |round| {
                let declared = round.asked.request.at(CAPABILITIES);
                let mut asked = round.result["inputRequests"].as_object().into_iter().flatten();
                let (missing, _) = asked.find(|(key, input)| {
                    let is_due = is_declared(declared, input["method"].as_str().unwrap_or_default());
                    is_due && responses(round).get(key).is_none()
                })?;
                Some(format!("no response for {missing:?}"))
            },
        );
    }),
    ("client-mrtr.retry.responses-shape", |e, j| {
        let has_any = |round: &Round<'_>| round.retry.request.params().get("inputResponses").is_some();
        let wrong = |it: &Round<'_>| (!responses(it).is_object()).then(|| keyed("inputResponses")(responses(it)));
        each_of(e, j, has_any, wrong);
        shapes::judge(e, j, "client-mrtr.retry.responses-shape");
    }),
    ("client-mrtr.retry.no-stale-responses", |e, j| {
        for round in rounds(e).iter().filter(|round| responses(round).is_object()) {
            let asked = &round.result["inputRequests"];
            let more = keys(responses(round)).find(|key| asked.get(*key).is_none());
            check(j, round, more.map(|key| format!("a response for {key:?}, which was not asked for")));
        }
    }),
    ("client-mrtr.retry.state-only", |e, j| {
        let more = |it: &Round<'_>| keys(responses(it)).next().map(|key| format!("a response for {key:?}"));
        each_of(e, j, |round| !asks(round), more);
    }),
    ("client-mrtr.retry.construct-first", |e, j| {
        each_of(e, j, asks, |round| responses(round).is_null().then(|| "no `inputResponses`".to_owned()))
    }),
    ("client-mrtr.isolation.other-requests", |e, j| {
        // A client may send answers before it is asked, but not the state of another request.
        for call in e.calls().filter(|call| is_retry(call.request)) {
            let state = call.request.params().get("requestState");
            let given = asking(e).filter(|(_, result)| state.is_some() && result.get("requestState") == state);
            let owners: Vec<_> = given.map(|(asked, _)| target(asked.request)).collect();
            let is_foreign = !owners.is_empty() && !owners.contains(&target(call.request));
            let is_asked = asking(e).any(|(asked, _)| target(asked.request) == target(call.request));
            let is_elsewhere = !is_asked && !ASKING.contains(&call.method());
            j.check_at(!is_foreign && !is_elsewhere, Some(call.method()), call.places(), || match is_foreign {
                true => "the `requestState` of another request".to_owned(),
                false => "`inputResponses` or `requestState`".to_owned(),
            });
        }
        j.untested(NOTHING_ASKED);
    }),
    ("client-mrtr.unsupported.kind", |e, j| {
        for round in rounds(e) {
            let declared = round.asked.request.at(CAPABILITIES);
            for (key, input) in round.result["inputRequests"].as_object().into_iter().flatten() {
                let method = input["method"].as_str().unwrap_or_default();
                if !is_declared(declared, method) {
                    let is_answered = responses(&round).get(key).is_some();
                    check(j, &round, is_answered.then(|| format!("a response to {method}, which is not declared")));
                }
            }
        }
    }),
    ("client-mrtr.retry.happens", |e, j| retried(e, j, &["tools/call"])),
    ("client-mrtr.where.prompts-resources", |e, j| retried(e, j, &["prompts/get", "resources/read"])),
    ("client-mrtr.bound.rounds", |e, j| {
        for round in rounds(e) {
            let same = rounds(e).iter().filter(|it| target(it.retry.request) == target(round.retry.request)).count();
            check(j, &round, (same >= MOST_ROUNDS).then(|| format!("{same} rounds")));
        }
        j.violations.truncate(1);
    }),
    ("client-mrtr.hdr.retry-headers", |e, j| {
        for round in rounds(e) {
            let Some(http) = round.retry.http else { continue };
            let names = [VERSION_HEADER, METHOD_HEADER, NAME_HEADER];
            let missing = names.iter().find(|name| http.request_header(name).is_none());
            check(j, &round, missing.map(|name| format!("no `{name}`")));
        }
    }),
    ("client-mrtr.where.list-invalid", |e, j| {
        for (call, _) in asking(e).filter(|(call, _)| !ASKING.contains(&call.method())) {
            let mut retries = e.calls_of(call.method()).filter(|it| is_retry(it.request));
            let retry = retries.find(|it| target(it.request) == target(call.request));
            let places = call.places_with(retry.map(|it| it.request.place));
            j.check_at(retry.is_none(), Some(call.method()), places, || "a retry");
        }
    }),
];

/// Checks that a request is sent again with what no user is needed for.
fn retried(e: &Evidence<'_>, j: &mut Judgement, methods: &[&str]) {
    let rounds = rounds(e);
    for (call, result) in asking(e).filter(|(call, _)| methods.contains(&call.method())) {
        let mut inputs = result["inputRequests"].as_object().into_iter().flatten().peekable();
        let is_declared = is_declared(call.request.at(CAPABILITIES), ROOTS);
        if inputs.peek().is_some() && inputs.all(|(_, input)| input["method"] == ROOTS) && is_declared {
            let is_retried = rounds.iter().any(|round| round.asked.request.place == call.request.place);
            let is_one = |round: &&Round<'_>| target(round.retry.request) == target(call.request);
            // A client may end what does not end.
            let is_enough = rounds.iter().filter(is_one).count() >= ENOUGH_ROUNDS;
            if !is_retried && (is_enough || !e.is_over()) {
                continue;
            }
            j.check_at(is_retried, Some(call.method()), call.places(), || "no retry");
        }
    }
    j.untested("the server asked for no roots that the client declares");
}

/// Whether the server asked for anything.
fn asks(round: &Round<'_>) -> bool {
    keys(&round.result["inputRequests"]).next().is_some()
}

/// The `inputResponses` of a retry; null if there are none.
fn responses<'e>(round: &Round<'e>) -> &'e Value {
    round.retry.request.at("/params/inputResponses")
}

fn state<'e>(round: &Round<'e>) -> Option<&'e Value> {
    round.retry.request.params().get("requestState")
}

/// Whether a retry has the state of the round before, in place of a new one.
fn has_old_state(round: &Round<'_>) -> bool {
    let old = round.asked.request.params().get("requestState");
    old.is_some() && state(round) == old && round.result.get("requestState") != old
}

/// The params that stay as they are.
fn rest(params: &Value) -> Map<String, Value> {
    let all = params.as_object().into_iter().flatten();
    all.filter(|(key, _)| !NEW.contains(&key.as_str())).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn check(j: &mut Judgement, round: &Round<'_>, wrong: Option<String>) {
    let subject = target(round.asked.request).1.and_then(Value::as_str);
    let places = round.asked.places_with([round.retry.request.place]);
    j.check_at(wrong.is_none(), subject, places, || wrong.unwrap_or_default());
}

/// Checks each retry of a kind; `wrong` says what is wrong with it.
fn each_of(
    e: &Evidence<'_>,
    j: &mut Judgement,
    is_of_kind: impl Fn(&Round<'_>) -> bool,
    wrong: impl Fn(&Round<'_>) -> Option<String>,
) {
    for round in rounds(e).iter().filter(|round| is_of_kind(round)) {
        check(j, round, wrong(round));
    }
    j.untested(NOTHING_ASKED);
}

fn each(e: &Evidence<'_>, j: &mut Judgement, wrong: impl Fn(&Round<'_>) -> Option<String>) {
    each_of(e, j, |_| true, wrong);
}
