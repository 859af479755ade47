//! What a server asks a client for, with the answers: requests in the legacy era, inputs for a retry or a task in the
//! modern one.

use std::time::Duration;

use serde_json::Value;

use super::super::ask::CAPABILITIES;
use crate::{Ask, Call, Connection, EventRef, Evidence, Kind, Message};

pub(super) const ELICIT: &str = "elicitation/create";
pub(super) const SAMPLE: &str = "sampling/createMessage";
pub(super) const ROOTS: &str = "roots/list";
/// A client that ends sooner after a question had no time for it.
const LONG: Duration = Duration::from_secs(2);

/// A question of the server that the client has answered.
pub(crate) struct Asked<'e> {
    pub(crate) method: &'e str,
    pub(super) params: &'e Value,
    /// What the client declares.
    pub(super) declared: &'e Value,
    /// The result; `None` for an error.
    pub(crate) result: Option<&'e Value>,
    pub(super) error_code: Option<i64>,
    pub(crate) places: Vec<EventRef>,
}

/// Every answered question.
pub(crate) fn answered<'e>(evidence: &'e Evidence<'_>) -> Vec<Asked<'e>> {
    if evidence.is_modern() { inputs(evidence) } else { requests(evidence) }
}

/// The answered questions of a method that have a result.
pub(super) fn results<'e>(evidence: &'e Evidence<'_>, method: &str) -> Vec<(Asked<'e>, &'e Value)> {
    let of_method = answered(evidence).into_iter().filter(|it| it.method == method);
    of_method.filter_map(|it| it.result.map(|result| (it, result))).collect()
}

fn requests<'e>(evidence: &'e Evidence<'_>) -> Vec<Asked<'e>> {
    let mut found = Vec::new();
    for connection in &evidence.connections {
        let mut initialize = connection.messages.iter().filter(|it| it.method() == Some("initialize"));
        let declared = initialize.next().map_or(&Value::Null, |it| it.at("/params/capabilities"));
        for ask in connection.asks() {
            let (request, Some(response)) = (ask.request, ask.responses.first().copied()) else { continue };
            let is_task = request.params().get("task").is_some() && response.at("/result/task").is_object();
            if is_task {
                continue;
            }
            found.push(Asked {
                method: request.method().unwrap_or_default(),
                params: request.params(),
                declared,
                result: response.result(),
                error_code: response.error_code(),
                places: vec![request.place, response.place],
            });
        }
    }
    found
}

fn inputs<'e>(evidence: &'e Evidence<'_>) -> Vec<Asked<'e>> {
    let mut found = Vec::new();
    for round in rounds(evidence) {
        add(&mut found, round.asked.response, &round.result["inputRequests"], round.retry.request);
    }
    for call in evidence.calls_of("tasks/update") {
        let id = call.request.at("/params/taskId");
        let polls = evidence.results_of("tasks/get").filter(|(poll, _)| poll.request.at("/params/taskId") == id);
        let asking: Vec<_> = polls.filter(|(_, task)| task["inputRequests"].is_object()).collect();
        for key in call.request.params()["inputResponses"].as_object().into_iter().flatten().map(|(key, _)| key) {
            if let Some((poll, task)) = asking.iter().find(|(_, task)| task["inputRequests"].get(key).is_some()) {
                add_one(&mut found, poll.response, &task["inputRequests"], call.request, key);
            }
        }
    }
    found
}

fn add<'e>(found: &mut Vec<Asked<'e>>, asking: Option<&'e Message<'e>>, inputs: &'e Value, answer: &'e Message<'e>) {
    for key in inputs.as_object().into_iter().flatten().map(|(key, _)| key) {
        add_one(found, asking, inputs, answer, key);
    }
}

fn add_one<'e>(
    found: &mut Vec<Asked<'e>>,
    asking: Option<&'e Message<'e>>,
    inputs: &'e Value,
    answer: &'e Message<'e>,
    key: &str,
) {
    let Some(result) = answer.params()["inputResponses"].get(key) else { return };
    found.push(Asked {
        method: inputs[key]["method"].as_str().unwrap_or_default(),
        params: &inputs[key]["params"],
        declared: answer.at(CAPABILITIES),
        result: Some(result),
        error_code: None,
        places: asking.into_iter().chain([answer]).map(|it| it.place).collect(),
    });
}

/// Whether a client has answered a later question than this one, and has gone on after that.
pub(super) fn is_passed_over(evidence: &Evidence<'_>, ask: &Ask<'_>) -> bool {
    let Some(connection) = evidence.connections.get(ask.request.place.connection) else { return false };
    if is_withdrawn(connection, ask) {
        return false;
    }
    let later = connection.asks().filter(|it| it.request.place > ask.request.place);
    let Some(answered) = later.filter_map(|it| it.responses.first().map(|it| it.place)).min() else { return false };
    connection.messages.iter().any(|it| !it.is_from_server() && it.kind == Kind::Request && it.place > answered)
}

/// Whether the server has cancelled a question.
fn is_withdrawn(connection: &Connection<'_>, ask: &Ask<'_>) -> bool {
    let mut cancelled = connection.messages.iter().filter(|it| {
        it.is_from_server() && it.method() == Some("notifications/cancelled") && it.place > ask.request.place
    });
    cancelled.any(|it| Some(it.at("/params/requestId")) == ask.request.id())
}

/// Why a client that has a question to answer has not done so, if it is its own fault: it has ended by itself long after
/// it was asked, or it has given up the request during which it was. A response without the id of a question may be the
/// answer, and has a check of its own.
pub(super) fn neglect(evidence: &Evidence<'_>, ask: &Ask<'_>) -> Option<String> {
    let connection = evidence.connections.get(ask.request.place.connection).filter(|it| !is_withdrawn(it, ask))?;
    let asked: Vec<_> = connection.asks().filter_map(|ask| ask.request.id()).collect();
    let is_stray = |it: &Message<'_>| it.kind == Kind::Response && !it.id().is_some_and(|id| asked.contains(&id));
    if connection.messages.iter().any(|it| !it.is_from_server() && it.place > ask.request.place && is_stray(it)) {
        return None;
    }
    let since = |at: Duration| at.saturating_sub(ask.request.time);
    let given_up = || {
        let during =
            connection.calls().filter(|call| call.response.is_none() && call.request.place < ask.request.place);
        let http = during.filter_map(|call| call.http.filter(|http| http.is_whole == Some(false)));
        http.filter_map(|http| http.ended_at).filter(|at| *at > ask.request.time).min().map(since)
    };
    let ended = || evidence.facts.exit_code.and(connection.closed).map(|(_, at, _)| since(at));
    match (given_up().filter(|it| *it >= LONG), ended().filter(|it| *it >= LONG)) {
        (Some(time), _) => Some(format!("no answer in {time:.1?}, after which the client gave up its own request")),
        (None, Some(time)) => Some(format!("no answer in {time:.1?}, after which the client ended")),
        (None, None) => None,
    }
}

/// A request that is sent again because its result asked for something.
pub(super) struct Round<'e> {
    /// The request before.
    pub(super) asked: Call<'e>,
    /// Its result.
    pub(super) result: &'e Value,
    pub(super) retry: Call<'e>,
}

/// Whether a request brings what another one was asked for.
pub(super) fn is_retry(request: &Message<'_>) -> bool {
    let has = |key: &str| request.params().get(key).is_some();
    request.kind == Kind::Request
        && (has("inputResponses") || has("requestState"))
        && request.method() != Some("tasks/update")
}

/// The results that ask for input, with their requests.
pub(super) fn asking<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    let results = evidence.calls().filter_map(|call| Some((call, call.result()?)));
    results.filter(|(call, result)| call.request.kind == Kind::Request && result["resultType"] == "input_required")
}

/// Every retry whose earlier request is known.
pub(super) fn rounds<'e>(evidence: &'e Evidence<'_>) -> Vec<Round<'e>> {
    let asking: Vec<_> = asking(evidence).collect();
    let mut is_taken = vec![false; asking.len()];
    let mut rounds = Vec::new();
    for retry in evidence.calls().filter(|call| is_retry(call.request)) {
        let fits = asking.iter().enumerate().filter(|(_, (asked, result))| is_before(asked, result, &retry));
        let best = fits.max_by_key(|(at, (asked, result))| {
            let is_open = !is_taken.get(*at).copied().unwrap_or_default();
            (is_open, likeness(asked, result, &retry), asked.request.place)
        });
        if let Some((at, (asked, result))) = best {
            is_taken.iter_mut().skip(at).take(1).for_each(|it| *it = true);
            rounds.push(Round { asked: *asked, result, retry });
        }
    }
    rounds
}

/// Whether a retry can be one of this request. On another connection nothing tells the order.
fn is_before(asked: &Call<'_>, result: &Value, retry: &Call<'_>) -> bool {
    let is_same = target(asked.request) == target(retry.request);
    let is_earlier = asked.response.is_some_and(|response| response.place < retry.request.place);
    match asked.request.place.connection == retry.request.place.connection {
        true => is_same && is_earlier,
        false => is_same && likeness(asked, result, retry) == (true, true, true),
    }
}

/// Whether the state, the arguments and the keys are those of the request before.
fn likeness(asked: &Call<'_>, result: &Value, retry: &Call<'_>) -> (bool, bool, bool) {
    let (before, after) = (asked.request.params(), retry.request.params());
    let state = result.get("requestState") == after.get("requestState");
    let keys = keys(&result["inputRequests"]).eq(self::keys(&after["inputResponses"]));
    (state, before.get("arguments") == after.get("arguments"), keys)
}

pub(super) fn keys(value: &Value) -> impl Iterator<Item = &str> {
    value.as_object().into_iter().flatten().map(|(key, _)| key.as_str())
}

/// The method, and what it is about.
pub(super) fn target<'e>(request: &'e Message<'_>) -> (Option<&'e str>, Option<&'e Value>) {
    let params = request.params();
    (request.method(), params.get("name").or(params.get("uri")))
}
