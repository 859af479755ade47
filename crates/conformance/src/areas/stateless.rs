//! Requests that do not depend on others.

use std::collections::{BTreeSet, HashSet};

use rehearse_protocol::{List, names::META_CLIENT_CAPABILITIES};
use serde_json::{Value, json};

use super::changes::{Names, names_by_connection};
use super::common::results;
use super::query::{Calls, Query, elements};
use crate::unrest::{Moment, Unrest};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Level, Material};

const CALL: &str = "tools/call";
const CHANGED: &str =
    "the list has changed, and each time something was called that may change it, or the server said so";

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
    call.text("/params/name").unwrap_or_default()
}

/// The calls of a client that cannot be asked, of tools that ask one which can.
fn asked_none<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Call<'e>> {
    let asking: HashSet<_> = evidence.case("calls/asks-full").filter(asks).map(|call| tool(&call)).collect();
    evidence.case("calls/asks-none").responded().filter(move |call| asking.contains(tool(call)))
}

pub(super) fn capabilities_per_request(e: &Evidence<'_>, j: &mut Judgement) {
    let found = |_: &Call<'_>| "a question, which the client could be asked in the request before";
    asked_none(e).by(|call| Some(tool(call))).must(j, |call| !asks(call), found);
    j.untested("no tool that may be called asks the client for something");
}

/// A tool that asks a client which can be asked refuses one which cannot, or does without.
pub(super) fn missing_capability(e: &Evidence<'_>, j: &mut Judgement) {
    for call in asked_none(e) {
        let data = call.response.map_or(&Value::Null, |it| it.at("/error/data/requiredCapabilities"));
        let is_refused = call.error_code() == Some(-32021) && data.is_object();
        let is_failed = call.result().is_some_and(|result| result["isError"] == true);
        let is_complete = call.has_result() && !asks(&call) && !is_failed;
        j.check_at(is_refused || is_complete, Some(tool(&call)), call.places(), || match call.result() {
            Some(_) if !is_failed => "a question that the client cannot be asked".to_owned(),
            None if call.error_code() == Some(-32021) => "no `requiredCapabilities`".to_owned(),
            _ => call.answer_text(),
        });
        // Another error may have another reason.
        j.at_level_if(is_failed || call.error_code().is_some_and(|code| code != -32021), Level::Derived);
    }
    j.untested("no tool that may be called asks the client for something");
}

/// Requests that are the first ones on their connections.
pub(super) fn no_affinity(e: &Evidence<'_>, j: &mut Judgement) {
    let works: HashSet<_> = results(e).map(|(call, _)| call.method()).collect();
    for call in e.case("lists/fresh").reached().filter(|call| works.contains(call.method())) {
        j.check_call(call.has_result(), &call);
        // A process has one connection, so that it relies on an earlier request: that it MUST NOT.
        j.at_level_if(!call.has_result() && call.http.is_none(), Level::Must);
    }
}

/// Compares what two clients get, who take turns. What changes for one client is no matter of the client.
pub(super) fn client_info_not_used(e: &Evidence<'_>, j: &mut Judgement) {
    for (method, key, name) in List::ALL.map(|it| (it.method(), it.member(), it.key())) {
        let names = |client: &str| -> Vec<(Call<'_>, BTreeSet<String>)> {
            let calls = e.calls_of(method).filter(|call| call.request.case.is_some_and(|it| it.starts_with(client)));
            let results = calls.filter_map(|call| Some((call, call.result()?)));
            let names = results.map(|(call, result)| {
                let items = elements(&result[key]);
                (call, items.filter_map(|item| Some(item[name].as_str()?.to_owned())).collect())
            });
            names.collect()
        };
        let (one, other) = (names("lists/clients/a/"), names("lists/clients/b/"));
        if let ([(begun, first), (_, again)], [(call, second), (ended, same)]) = (one.as_slice(), other.as_slice())
            && first == again
            && second == same
        {
            let is_quiet = || !Unrest::of(e, method).is_between(Moment::of(begun, begun), Moment::of(ended, ended));
            if first == second || is_quiet() {
                j.check_call(first == second, call);
            }
            j.untested(CHANGED);
        }
    }
}

/// Each reading of a list has the same names. A list may change in time (server/tools#capabilities: it "MAY change over
/// time", but "MUST NOT vary per-connection or as a side effect of other requests on the connection"), so only readings are
/// compared between which nothing may have changed it on any connection of the run.
pub(super) fn invariant(e: &Evidence<'_>, j: &mut Judgement, method: &str) {
    let mut readings: Vec<_> = names_by_connection(e, method).into_iter().flatten().collect();
    readings.sort_by_key(|it| it.moment.from);
    if readings.len() < 2 {
        return;
    }
    let unrest = Unrest::of(e, method);
    let is_quiet = |one: &Names<'_>, other: &Names<'_>| !unrest.is_between(one.moment, other.moment);
    for (index, reading) in readings.iter().enumerate() {
        let (before, after) = (&readings[..index], &readings[index + 1..]);
        let differs = |it: &&Names<'_>| it.names != reading.names;
        // What was there before, and is there again: it has not changed in time.
        let is_odd = |first: &Names<'_>| {
            let now = reading.moment;
            let is_of_call = unrest.has_call(now.connection, first.moment.from, now.to);
            let again = after.iter().filter(|it| it.names == first.names && is_quiet(reading, it));
            let mut own = again.map(|it| is_of_call && it.moment.connection != now.connection);
            own.any(|is_own| is_own || is_quiet(first, reading))
        };
        let odd = before.iter().filter(differs).find(|first| is_odd(first));
        let is_new = || before.iter().all(|it| it.names != reading.names);
        let is_changed = |it: &&Names<'_>| is_new() && is_quiet(it, reading) && unrest.is_none_until(reading.moment.to);
        let changed = || before.last().filter(differs).filter(is_changed);
        if let Some(other) = odd.or_else(changed) {
            let name = other.names.symmetric_difference(&reading.names).next().copied();
            j.check_at(false, name, reading.call.places(), || "it in one list only");
            j.at_level_if(odd.is_none(), Level::Derived);
        } else if before.iter().any(|it| it.names == reading.names) {
            j.check_at(true, None, Vec::new(), String::new);
        }
    }
    j.untested(CHANGED);
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

    /// The levels of the violations; `None` is that of the check. The other connections are in another version.
    fn judged_among(
        connections: &[&[(u64, &str)]],
        others: &[&[(u64, &str)]],
        transport: Transport,
    ) -> Vec<Option<Level>> {
        let traces: Vec<_> = connections.iter().map(|lines| connection(lines)).collect();
        let traces: Vec<_> = traces.iter().collect();
        let others = others.iter().map(|lines| (Version::V2025_11_25, connection(lines))).collect();
        let evidence = Evidence::new(&traces, Version::V2026_07_28, transport, Facts { others, ..Facts::default() });
        let mut judgement = Judgement::default();
        invariant(&evidence, &mut judgement, "tools/list");
        judgement.violations.iter().map(|it| it.level).collect()
    }

    fn judged(connections: &[&[(u64, &str)]]) -> Vec<Option<Level>> {
        judged_among(connections, &[], Transport::Ws)
    }

    #[test]
    fn a_tool_that_appears_after_a_call_is_a_side_effect() {
        let main: &[_] = &[(1, "a"), (2, "call a"), (3, "a b"), (4, "a b")];
        assert_eq!(judged(&[main, &[(9, "a")]]), [None; 2]);
        // The list has changed for all, as it may.
        assert_eq!(judged(&[main, &[(9, "a b")]]), []);
        assert_eq!(judged(&[&[(1, "a"), (2, "call a"), (3, "a")], &[(9, "a")]]), []);
    }

    #[test]
    fn a_list_that_was_announced_to_change_may_not_differ_by_connection() {
        let main: &[_] = &[(1, "a"), (2, "!"), (3, "a b"), (9, "a b")];
        assert_eq!(judged(&[main, &[(5, "a")]]), [None]);
        assert_eq!(judged(&[main, &[(2, "a")]]), []);
        assert_eq!(judged(&[main, &[(5, "a b")]]), []);
    }
    #[test]
    fn a_list_that_changes_back_without_a_call_in_the_whole_run_depends_on_the_connection() {
        let (main, other): (&[_], &[_]) = (&[(1, "a"), (5, "a")], &[(3, "a b")]);
        assert_eq!(judged(&[main, other]), [None]);
        // What is called in another version may have changed it, before and after.
        let calls: &[_] = &[(2, "call a"), (4, "call a")];
        assert_eq!(judged_among(&[main, other], &[calls], Transport::Http), []);
        assert_eq!(judged_among(&[main, other], &[&calls[..1]], Transport::Http), []);
        assert_eq!(judged_among(&[main, other], &[&[(0, "call a"), (6, "call a")]], Transport::Http), [None]);
        // A list that has changed once may have changed in time.
        assert_eq!(judged(&[&main[..1], other]), [Some(Level::Derived)]);
        assert_eq!(judged(&[&[(1, "a"), (6, "!")], other]), []);
    }

    #[test]
    fn each_process_has_what_was_called_in_it() {
        let (main, other): (&[_], &[_]) = (&[(2, "a"), (5, "a")], &[(1, "call a"), (3, "a b")]);
        assert_eq!(judged(&[main, other]), [None]);
        assert_eq!(judged_among(&[main, other], &[], Transport::Stdio), []);
        assert_eq!(judged_among(&[main, &other[1..]], &[], Transport::Stdio), [None]);
    }
}
