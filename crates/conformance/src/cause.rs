//! One cause, one finding: which violations only follow from another one.

use std::collections::{HashMap, HashSet};

use rehearse_protocol::message::METHOD_NOT_FOUND;

use crate::{Check, CheckOutcome, CheckVerdict, Connection, EventRef, Evidence, HttpExchange, Role, Violation};

/// Finds of each violated check whether another violation is the cause. Such a check is not tested: what it looks at
/// shows nothing of it. A cause is at least as bad as what follows from it, so that no failure gets lost.
pub(crate) fn find(evidence: &Evidence<'_>, outcomes: &mut [(&'static Check, CheckOutcome)]) {
    if outcomes.iter().filter(|(_, outcome)| is_open(outcome)).count() < 2 {
        return;
    }
    find_tainted(evidence, outcomes);
    find_missing(evidence, outcomes);
    find_wrong_code(evidence, outcomes);
    find_explained(outcomes);
}

/// A message that is no proper message violates many rules at once. The catalogue has the simplest ones first.
fn find_tainted(evidence: &Evidence<'_>, outcomes: &mut [(&'static Check, CheckOutcome)]) {
    let other = others_places(evidence);
    let own = |violation: &Violation| -> Vec<EventRef> {
        violation.places.iter().filter(|place| !other.contains(place)).copied().collect()
    };
    for index in 0..outcomes.len() {
        let (check, cause) = &outcomes[index];
        if !check.taints || !is_open(cause) {
            continue;
        }
        let mut tainted: HashSet<_> = cause.judgement.violations.iter().flat_map(&own).collect();
        tainted.extend(heads(evidence, &tainted));
        let is_tainted = |violation: &Violation| {
            let own = own(violation);
            !own.is_empty() && own.iter().all(|place| tainted.contains(place))
        };
        let (id, verdict) = (check.id.as_str(), cause.verdict);
        for (_, outcome) in &mut outcomes[index + 1..] {
            let follows = outcome.verdict >= verdict && is_open(outcome);
            if follows && outcome.judgement.violations.iter().all(is_tainted) {
                follow(outcome, id);
            }
        }
    }
}

/// The checks that name a capability without its methods, and the beginning of those.
const WORKS: [(&str, &str); 3] = [
    ("life.caps.tools-works", "tools/"),
    ("life.caps.resources-works", "resources/"),
    ("life.caps.prompts-works", "prompts/"),
];

/// A server that declares a capability and has no methods for it violates every rule about their answers.
fn find_missing(evidence: &Evidence<'_>, outcomes: &mut [(&'static Check, CheckOutcome)]) {
    let is_cause = |check: &Check| WORKS.iter().any(|(id, _)| *id == check.id);
    let causes = outcomes.iter().filter(|(check, outcome)| is_cause(check) && is_open(outcome));
    let causes: Vec<_> = causes.map(|(check, outcome)| (check.id.as_str(), outcome.verdict)).collect();
    let other = others_places(evidence);
    let mut missing: HashSet<EventRef> = HashSet::new();
    for (id, verdict) in causes {
        let prefix = WORKS.iter().find(|(cause, _)| *cause == id).map_or("", |(_, prefix)| prefix);
        let calls = evidence.calls().filter(|call| call.method().starts_with(prefix) && call.response.is_some());
        let mut answers: HashMap<&str, Vec<_>> = HashMap::new();
        calls.for_each(|call| answers.entry(call.method()).or_default().push(call));
        answers.retain(|_, calls| calls.iter().all(|call| call.error_code() == Some(METHOD_NOT_FOUND)));
        missing.extend(answers.values().flatten().filter_map(|call| Some(call.response?.place)));
        let is_of_missing = |violation: &Violation| {
            let mut own = violation.places.iter().filter(|place| !other.contains(place)).peekable();
            own.peek().is_some() && own.all(|place| missing.contains(place))
        };
        for (check, outcome) in outcomes.iter_mut().filter(|(_, outcome)| is_open(outcome)) {
            let is_optional = check.id == "life.caps.subscribe-works";
            let follows = || outcome.judgement.violations.iter().all(is_of_missing);
            if !is_cause(check) && !is_optional && outcome.verdict >= verdict && follows() {
                follow(outcome, id);
            }
        }
    }
}

/// A peer that has one code for whatever is wrong violates every rule that names a code.
fn find_wrong_code(evidence: &Evidence<'_>, outcomes: &mut [(&'static Check, CheckOutcome)]) {
    let codes: HashMap<EventRef, i64> = evidence.own().filter_map(|it| Some((it.place, it.error_code()?))).collect();
    let wrong: Vec<_> = outcomes.iter().map(|(check, outcome)| wrong_code(&codes, check, outcome)).collect();
    for index in 0..outcomes.len() {
        let (check, cause) = &outcomes[index];
        let (Some(code), true) = (wrong[index], is_open(cause)) else { continue };
        let (id, verdict) = (check.id.as_str(), cause.verdict);
        let alike: Vec<_> =
            (0..outcomes.len()).filter(|it| wrong[*it] == Some(code) && is_open(&outcomes[*it].1)).collect();
        if alike.iter().all(|it| outcomes[*it].1.verdict >= verdict) {
            alike.iter().filter(|it| **it != index).for_each(|it| follow(&mut outcomes[*it].1, id));
        }
    }
}

/// Some rules are parts of others.
fn find_explained(outcomes: &mut [(&'static Check, CheckOutcome)]) {
    for index in 0..outcomes.len() {
        let (check, verdict) = (outcomes[index].0, outcomes[index].1.verdict);
        if check.explains.is_empty() || !is_open(&outcomes[index].1) {
            continue;
        }
        for (other, outcome) in outcomes.iter_mut().filter(|(other, _)| check.explains.contains(&other.id)) {
            if other.id != check.id && is_open(outcome) && outcome.verdict >= verdict {
                follow(outcome, &check.id);
            }
        }
    }
}

/// The code that came, the right one if the code says more than that something failed, and the SDK that it comes from.
type WrongCode = (i64, Option<i64>, Option<&'static str>);

/// The one code that a check found in place of the right one.
fn wrong_code(codes: &HashMap<EventRef, i64>, check: &Check, outcome: &CheckOutcome) -> Option<WrongCode> {
    let says_what = |code: i64| matches!(code, -32700 | -32602..=-32600 | -32042 | -32022..=-32020 | -32002);
    let named = check.id.rsplit_once("-3").and_then(|(_, digits)| format!("-3{digits}").parse::<i64>().ok());
    let mut found = outcome.judgement.violations.iter().map(|violation| {
        let named = || Some((violation.places.iter().find_map(|place| codes.get(place)).copied()?, named?));
        let (code, right) = violation.wrong_code.or_else(named)?;
        Some((code, Some(right).filter(|_| says_what(code)), violation.sdk))
    });
    let first = found.next()??;
    found.all(|code| code == Some(first)).then_some(first)
}

fn is_open(outcome: &CheckOutcome) -> bool {
    outcome.cause.is_none() && outcome.verdict <= CheckVerdict::Warn
}

fn follow(outcome: &mut CheckOutcome, cause: &'static str) {
    outcome.cause = Some(cause);
    outcome.verdict = CheckVerdict::NotTested;
    outcome.reason = Some(format!("what it looks at violates {cause}"));
}

/// The heads of the HTTP responses with these messages.
fn heads(evidence: &Evidence<'_>, messages: &HashSet<EventRef>) -> Vec<EventRef> {
    let has_one = |connection: &Connection<'_>, exchange: &HttpExchange<'_>| {
        exchange.messages.iter().any(|it| messages.contains(&connection.messages[*it].place))
    };
    let exchanges = evidence.exchanges().filter(|(connection, exchange)| has_one(connection, exchange));
    exchanges.filter_map(|(_, exchange)| exchange.response).collect()
}

/// What the other side than the one that is checked has sent.
fn others_places(evidence: &Evidence<'_>) -> HashSet<EventRef> {
    let is_server = evidence.facts.role == Role::Server;
    let messages = evidence.messages().filter(|message| message.is_from_server() != is_server);
    let mut places: HashSet<_> = messages.map(|message| message.place).collect();
    for (_, exchange) in evidence.exchanges() {
        match is_server {
            true => drop(places.insert(exchange.request)),
            false => places.extend(exchange.response),
        }
    }
    places
}
