//! Requests that do not depend on others.

use std::collections::{BTreeSet, HashSet};

use rehearse_protocol::names::META_CLIENT_CAPABILITIES;
use serde_json::{Value, json};

use super::{
    changes::{Names, names_by_connection},
    common::{LISTS, is_refused_elsewhere, results},
};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Level, Material};

const CALL: &str = "tools/call";

/// The capabilities of a client that can be asked everything.
pub(super) fn full_capabilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {}, "context": {} }, "roots": {} })
}

pub(super) fn cases(material: &Material) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, arguments) in &material.callable {
        let call = |case: &str| {
            Case::request(format!("{case}/{name}"), CaseGroup::Calls, CALL, Material::call_params(name, arguments))
        };
        cases.push(call("calls/asks-full").meta(META_CLIENT_CAPABILITIES, Some(full_capabilities())));
        cases.push(call("calls/asks-none"));
    }
    if material.is_http() {
        for method in material.varied_lists() {
            cases.push(Case::request(format!("lists/fresh/{method}"), CaseGroup::Fresh, method, json!({})));
        }
        if let Some(uri) = material.resources.first().and_then(|resource| resource["uri"].as_str()) {
            let params = json!({ "uri": uri });
            cases.push(Case::request("lists/fresh/resources/read", CaseGroup::Fresh, "resources/read", params));
        }
    }
    cases
}

/// Whether a result asks the client for something.
fn asks(call: &Call<'_>) -> bool {
    let is_question = |result: &&Value| result["resultType"] == "input_required";
    let requests = call.result().filter(is_question).and_then(|result| result["inputRequests"].as_object());
    requests.is_some_and(|requests| !requests.is_empty())
}

fn tool<'e>(call: &Call<'e>) -> &'e str {
    call.request.at("/params/name").as_str().unwrap_or_default()
}

/// The tools that ask a client which can be asked.
fn asking_tools<'e>(evidence: &'e Evidence<'_>) -> HashSet<&'e str> {
    evidence.case("calls/asks-full").filter(asks).map(|call| tool(&call)).collect()
}

pub(super) fn capabilities_per_request(evidence: &Evidence<'_>, j: &mut Judgement) {
    let asking = asking_tools(evidence);
    for call in evidence.case("calls/asks-none").filter(|it| it.response.is_some() && asking.contains(tool(it))) {
        j.check_at(!asks(&call), Some(tool(&call).to_owned()), call.places(), || {
            "a question, which the client could be asked in the request before".to_owned()
        });
    }
    j.untested("no tool that may be called asks the client for something");
}

/// A tool that asks a client which can be asked refuses one which cannot, or does without.
pub(super) fn missing_capability(evidence: &Evidence<'_>, j: &mut Judgement) {
    let asking = asking_tools(evidence);
    for call in evidence.case("calls/asks-none").filter(|it| it.response.is_some() && asking.contains(tool(it))) {
        let data = call.response.map_or(&Value::Null, |it| it.at("/error/data/requiredCapabilities"));
        let is_refused = call.error_code() == Some(-32021) && data.is_object();
        let is_failed = call.result().is_some_and(|result| result["isError"] == true);
        let is_complete = call.result().is_some() && !asks(&call) && !is_failed;
        j.check_at(is_refused || is_complete, Some(tool(&call).to_owned()), call.places(), || match call.result() {
            Some(_) if !is_failed => "a question that the client cannot be asked".to_owned(),
            None if call.error_code() == Some(-32021) => "no `requiredCapabilities`".to_owned(),
            _ => call.answer_text(),
        });
        // Another error may have another reason.
        if is_failed || call.error_code().is_some_and(|code| code != -32021) {
            j.at_level(Level::Derived);
        }
    }
    j.untested("no tool that may be called asks the client for something");
}

/// Requests that are the first ones on their connections.
pub(super) fn no_affinity(evidence: &Evidence<'_>, j: &mut Judgement) {
    let works: HashSet<_> = results(evidence).map(|(call, _)| call.method()).collect();
    for call in evidence.case("lists/fresh").filter(|call| call.response.is_some() && !is_refused_elsewhere(call)) {
        if works.contains(call.method()) {
            j.check_call(call.result().is_some(), &call);
            // A process has one connection, so that it relies on an earlier request: that it MUST NOT.
            if call.result().is_none() && call.http.is_none() {
                j.at_level(Level::Must);
            }
        }
    }
}

/// Compares what two clients get, who take turns. What changes for one client is no matter of the client.
pub(super) fn client_info_not_used(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (method, key, name) in LISTS {
        let names = |client: &str| -> Vec<(Call<'_>, BTreeSet<String>)> {
            let calls =
                evidence.calls_of(method).filter(|call| call.request.case.is_some_and(|it| it.starts_with(client)));
            let results = calls.filter_map(|call| Some((call, call.result()?)));
            let names = results.map(|(call, result)| {
                let items = result[key].as_array().into_iter().flatten();
                (call, items.filter_map(|item| Some(item[name].as_str()?.to_owned())).collect())
            });
            names.collect()
        };
        let (one, other) = (names("lists/clients/a/"), names("lists/clients/b/"));
        if let ([(_, first), (_, again)], [(call, second), (_, same)]) = (one.as_slice(), other.as_slice())
            && first == again
            && second == same
        {
            j.check_call(first == second, call);
        }
    }
}

/// Each reading of a list has the same names. A list may change in time, so only what one connection sees before and
/// after another sees something else is a matter of the connection (server/tools#capabilities: it "MAY change over time",
/// but "MUST NOT vary per-connection or as a side effect of other requests on the connection").
pub(super) fn invariant(evidence: &Evidence<'_>, j: &mut Judgement, method: &str) {
    let connections = names_by_connection(evidence, method);
    let notification = format!("notifications/{}/list_changed", method.split('/').next().unwrap_or_default());
    if evidence.received().any(|it| it.method() == Some(notification.as_str())) {
        unchanged_meanwhile(j, &connections);
        j.untested("the server said that the list has changed");
        return;
    }
    let Some(longest) = connections.iter().map(Vec::len).max() else { return };
    let Some(main) = connections.iter().find(|readings| readings.len() == longest) else { return };
    let (Some(first), Some(last)) = (main.first(), main.last()) else { return };
    let is_steady = first.names == last.names;
    let main_number = first.call.request.place.connection;
    let readings = connections.iter().flat_map(|it| it.iter().map(move |reading| (it, reading)));
    for (connection, reading) in readings.filter(|(_, it)| it.call.request.place != first.call.request.place) {
        let is_main = connection.first().is_some_and(|it| it.call.request.place.connection == main_number);
        let is_known = if is_main {
            reading.names == first.names
        } else {
            reading.names == first.names || reading.names == last.names
        };
        let other = first.names.symmetric_difference(&reading.names).next().map(|name| (*name).to_owned());
        let found = || "it in one list only".to_owned();
        if is_known || is_steady {
            j.check_at(is_known, other, reading.call.places(), found);
        } else if is_main && method != "resources/list" {
            let is_own = has_call(evidence, first.call, reading.call)
                && connections.iter().flatten().any(|it| {
                    let is_other = it.call.request.place.connection != main_number;
                    is_other && it.call.request.time > reading.ended() && it.names == first.names
                });
            j.check_at(false, other, reading.call.places(), found);
            // Without another connection that sees the old list later, it may have changed in time.
            if !is_own {
                j.at_level(Level::Derived);
            }
        }
    }
}

/// Checks what one connection reads between two readings of another that are the same.
fn unchanged_meanwhile(j: &mut Judgement, connections: &[Vec<Names<'_>>]) {
    for (number, connection) in connections.iter().enumerate() {
        for pair in connection.windows(2) {
            let [before, after] = pair else { continue };
            let others = connections.iter().enumerate().filter(|(other, _)| *other != number);
            let between = others
                .flat_map(|(_, other)| other)
                .filter(|it| it.call.request.time > before.ended() && it.ended() < after.call.request.time);
            for reading in between.filter(|_| before.names == after.names) {
                let other = before.names.symmetric_difference(&reading.names).next().map(|name| (*name).to_owned());
                j.check_at(other.is_none(), other, reading.call.places(), || "it in one list only".to_owned());
            }
        }
    }
}

/// Whether a tool was called between two requests of a connection.
fn has_call(evidence: &Evidence<'_>, first: Call<'_>, last: Call<'_>) -> bool {
    let mut calls = evidence.calls_of(CALL).map(|call| call.request.place);
    calls.any(|place| place > first.request.place && place < last.request.place)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rehearse_protocol::{Direction, EventKind, Frame, Trace, Transport, Version};

    use super::*;
    use crate::{Facts, Judgement};

    /// A connection: each line is the time, and a tool that is called, `!` for a notification of a change, or the names of
    /// all tools in a reading.
    fn connection(lines: &[(u64, &str)]) -> Trace {
        let mut trace = Trace::default();
        let mut push = |at: u64, direction, message: Value| {
            let at = Duration::from_secs(at);
            trace.push(at, EventKind::Frame(Frame::new(direction, at, message.to_string().into())));
        };
        let (sent, received) = (Direction::ClientToServer, Direction::ServerToClient);
        for (number, (at, line)) in lines.iter().enumerate() {
            let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": number, "result": result });
            let request = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params });
            match line.strip_prefix("call ") {
                _ if *line == "!" => {
                    push(*at, received, json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                }
                Some(tool) => {
                    push(*at, sent, request(CALL, json!({ "name": tool })));
                    push(*at, received, answer(json!({ "content": [] })));
                }
                None => {
                    let tools: Vec<_> = line.split(' ').map(|name| json!({ "name": name })).collect();
                    push(*at, sent, request("tools/list", json!({})));
                    push(*at, received, answer(json!({ "tools": tools })));
                }
            }
        }
        trace
    }

    /// The levels of the violations; `None` is that of the check.
    fn judged(connections: &[&[(u64, &str)]]) -> Vec<Option<Level>> {
        let traces: Vec<_> = connections.iter().map(|lines| connection(lines)).collect();
        let traces: Vec<_> = traces.iter().collect();
        let evidence = Evidence::new(&traces, Version::V2026_07_28, Transport::Ws, Facts::default());
        let mut judgement = Judgement::default();
        invariant(&evidence, &mut judgement, "tools/list");
        judgement.violations.iter().map(|it| it.level).collect()
    }

    #[test]
    fn a_tool_that_appears_after_a_call_is_a_side_effect() {
        let main: &[_] = &[(1, "a"), (2, "call a"), (3, "a b"), (4, "a b")];
        assert_eq!(judged(&[main, &[(9, "a")]]), [None; 2]);
        // The list may have changed in time, for all.
        assert_eq!(judged(&[main, &[(9, "a b")]]), [Some(Level::Derived); 2]);
        assert_eq!(judged(&[&[(1, "a"), (2, "call a"), (3, "a")], &[(9, "a")]]), []);
    }

    #[test]
    fn a_list_that_was_announced_to_change_may_not_differ_by_connection() {
        let main: &[_] = &[(1, "a"), (2, "!"), (3, "a b"), (9, "a b")];
        assert_eq!(judged(&[main, &[(5, "a")]]), [None]);
        assert_eq!(judged(&[main, &[(2, "a")]]), []);
        assert_eq!(judged(&[main, &[(5, "a b")]]), []);
    }
}
