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
    find_unanswered(evidence, outcomes);
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
                follow(outcome, id, VIOLATES);
            }
        }
    }
}

/// The checks about what ends a connection, or makes a server fall silent.
const ENDS: [&str; 2] = ["rpc.batch.receive", "io.crash.none"];

/// A server that has died or fallen silent answers nothing that comes later, whatever it is.
fn find_unanswered(evidence: &Evidence<'_>, outcomes: &mut [(&'static Check, CheckOutcome)]) {
    let received = evidence.messages().filter(|message| message.is_from_server()).map(|message| message.place);
    let heads = evidence.exchanges().filter_map(|(_, exchange)| exchange.response);
    let came: HashSet<_> = received.chain(heads).collect();
    for id in ENDS {
        let Some((_, cause)) = outcomes.iter().find(|(check, it)| check.id == id && is_open(it)) else { continue };
        let lasts = cause.judgement.violations.iter().filter_map(|violation| violation.places.first());
        let lost: HashSet<_> = lasts.flat_map(|last| lost_from(evidence, *last)).collect();
        let is_lost = |violation: &Violation| {
            violation.places.first().is_some_and(|first| lost.contains(first))
                && !violation.places.iter().any(|place| came.contains(place))
        };
        let verdict = cause.verdict;
        for (_, outcome) in outcomes.iter_mut().filter(|(check, it)| check.id != id && is_open(it)) {
            if outcome.verdict >= verdict && outcome.judgement.violations.iter().all(is_lost) {
                follow(outcome, id, "the server was gone or silent:");
            }
        }
    }
}

/// What the client sent on a connection from a message on, if nothing that came after it was answered.
fn lost_from(evidence: &Evidence<'_>, from: EventRef) -> Vec<EventRef> {
    let Some(connection) = evidence.connections.get(from.connection) else { return Vec::new() };
    match connection.calls().any(|call| call.request.place > from && call.is_served()) {
        true => Vec::new(),
        false => connection.sent().map(|it| it.place).filter(|place| *place >= from).collect(),
    }
}

/// The checks that name a method which does not exist although its capability is declared, and its beginning: first those
/// about a capability without its methods.
const WORKS: [(&str, &str); 14] = [
    ("life.caps.tools-works", "tools/"),
    ("life.caps.resources-works", "resources/"),
    ("life.caps.prompts-works", "prompts/"),
    ("discover.caps.tools", "tools/"),
    ("discover.caps.resources", "resources/"),
    ("discover.caps.prompts", "prompts/"),
    ("discover.caps.completions", "completion/"),
    ("life.caps.templates-works", "resources/templates/list"),
    ("tools.call.works", "tools/call"),
    ("res.read.listed-works", "resources/read"),
    ("prompts.get.works", "prompts/get"),
    ("comp.prompt.values", "completion/"),
    ("comp.template.values", "completion/"),
    ("log.level.set-empty", "logging/"),
];

/// A server that declares a capability and lacks a method of it violates every rule about the answers of the method. None
/// of them is about what the server lacks, however bad their violations are.
fn find_missing(evidence: &Evidence<'_>, outcomes: &mut [(&'static Check, CheckOutcome)]) {
    let other = others_places(evidence);
    let mut missing: HashSet<EventRef> = HashSet::new();
    // Not every resource must be one to subscribe to.
    let mut causes = HashSet::from(["life.caps.subscribe-works"]);
    for (id, prefix) in WORKS {
        if !outcomes.iter().any(|(check, outcome)| check.id == id && is_open(outcome)) {
            continue;
        }
        causes.insert(id);
        let calls = evidence.calls().filter(|call| call.method().starts_with(prefix) && call.response.is_some());
        let mut answers: HashMap<&str, Vec<_>> = HashMap::new();
        calls.for_each(|call| answers.entry(call.method()).or_default().push(call));
        answers.retain(|_, calls| calls.iter().all(|call| call.error_code() == Some(METHOD_NOT_FOUND)));
        missing.extend(answers.values().flatten().filter_map(|call| Some(call.response?.place)));
        let is_of_missing = |violation: &Violation| {
            let mut own = violation.places.iter().filter(|place| !other.contains(place)).peekable();
            own.peek().is_some() && own.all(|place| missing.contains(place))
        };
        for (_, outcome) in outcomes.iter_mut().filter(|(check, it)| !causes.contains(&*check.id) && is_open(it)) {
            if outcome.judgement.violations.iter().all(is_of_missing) {
                follow(outcome, id, "the method does not exist:");
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
            alike.iter().filter(|it| **it != index).for_each(|it| follow(&mut outcomes[*it].1, id, VIOLATES));
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
                follow(outcome, &check.id, VIOLATES);
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

const VIOLATES: &str = "what it looks at violates";

fn follow(outcome: &mut CheckOutcome, cause: &'static str, why: &str) {
    outcome.cause = Some(cause);
    outcome.verdict = CheckVerdict::NotTested;
    outcome.reason = Some(format!("{why} {cause}"));
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rehearse_protocol::{Closed, Direction, EventKind, Trace, Transport, Version};

    use super::*;
    use crate::{Facts, judge_all};

    #[test]
    fn a_server_that_is_silent_after_a_batch_has_one_fault() {
        let mut trace = Trace::default();
        let ping = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let batch = format!("[{},{}]", ping(r#""m-batch-1""#), ping(r#""m-batch-2""#));
        let answer = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#.to_owned();
        let (sent, came) = (Direction::ClientToServer, Direction::ServerToClient);
        for (at, direction, text) in [(0, sent, ping("0")), (0, came, answer), (1, sent, batch), (2, sent, ping("3"))] {
            if text.starts_with('[') {
                trace.push(Duration::from_secs(at), EventKind::Case("malformed/batch".into()));
            }
            trace.push_frame(Duration::from_secs(at), direction, text.into());
        }
        trace.push(Duration::from_secs(60), EventKind::Closed(Closed::by_client("the end")));
        let facts = Facts { patience: Duration::from_secs(5), ..Facts::default() };
        let evidence = Evidence::new(&[&trace], Version::V2025_03_26, Transport::Ws, facts);
        let outcomes = judge_all(&evidence);
        let found = outcomes.iter().filter(|(_, outcome)| is_open(outcome));
        assert_eq!(found.map(|(check, _)| check.id.as_str()).collect::<Vec<_>>(), ["rpc.batch.receive"]);
        let caused = outcomes.iter().filter(|(_, outcome)| outcome.cause == Some("rpc.batch.receive"));
        assert_eq!(
            caused.map(|(check, _)| check.id.as_str()).collect::<Vec<_>>(),
            ["rpc.timeout.answers-every-request"]
        );
    }
}
