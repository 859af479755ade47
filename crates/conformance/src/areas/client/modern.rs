//! What a client says in each request of 2026-07-28, and how it finds a version.

use std::collections::{BTreeSet, HashMap};

use rehearse_protocol::{Era, Transport, Version, names::SESSION_HEADER};
use serde_json::{Map, Value};

use super::super::Judge;
use super::super::common::shown;
use super::super::meta::{is_name, is_prefix};
use super::common::{CAPABILITIES, META, all_modern, bounded, get_after, header, header_text, is_same, modern};
use super::{completes, ignores_list};
use crate::areas::query::Query;
use crate::{Call, Connection, Evidence, Judgement, evidence::VERSION_POINTER, shapes};

pub(super) const UNSUPPORTED_VERSION: i64 = -32022;
/// As many processes with one request each are no accident.
const SEVERAL: usize = 3;
const MISSING_CAPABILITY: i64 = -32021;
/// The errors that only a server of the modern era sends.
pub(super) const MODERN_ERRORS: [i64; 3] = [-32020, MISSING_CAPABILITY, UNSUPPORTED_VERSION];

/// What a server may answer with a question.
const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-modern.meta.version", |e, j| meta(e, j, "protocolVersion", Value::is_string)),
    ("client-modern.meta.capabilities", |e, j| meta(e, j, "clientCapabilities", Value::is_object)),
    ("client-modern.meta.client-info", |e, j| meta(e, j, "clientInfo", |info| !info.is_null())),
    ("client-modern.meta.version-consistent", |e, j| {
        // The version may change after an error or a discovery.
        for connection in &e.connections {
            let calls: Vec<_> =
                modern(connection).filter(|call| call.request.at(VERSION_POINTER).is_string()).collect();
            for (before, call) in calls.iter().zip(calls.iter().skip(1)) {
                let (old, new) = (before.request.at(VERSION_POINTER), call.request.at(VERSION_POINTER));
                let may_change = |it: &Call<'_>| {
                    let answered = it.places().last().copied().filter(|place| *place != it.request.place);
                    let is_new = answered.is_none_or(|place| place > before.request.place);
                    is_new && (it.result().is_none() || it.method() == "server/discover")
                };
                let mut earlier = calls.iter().take_while(|it| it.request.place < call.request.place);
                let holds = old == new || earlier.any(may_change);
                let places = vec![before.request.place, call.request.place];
                j.check_at(holds, None, places, || format!("{} after {}", shown(new), shown(old)));
            }
        }
    }),
    ("client-modern.meta.capability-types", |e, j| shapes::judge(e, j, "client-modern.meta.capability-types")),
    ("client-modern.meta.capability-stable", |e, j| {
        // What is declared with one call of a tool, or one reading of a prompt or a resource, is declared with each.
        let name = |call: &Call<'_>| {
            format!("{} {} {}", call.method(), call.request.at("/params/name"), call.request.at("/params/uri"))
        };
        for connection in &e.connections {
            let calls: Vec<_> = modern(connection).filter(|call| ASKING.contains(&call.method())).collect();
            let mut declared: HashMap<String, BTreeSet<&str>> = HashMap::new();
            for call in &calls {
                let own = call.request.at(CAPABILITIES).as_object().into_iter().flatten();
                declared.entry(name(call)).or_default().extend(own.map(|(capability, _)| capability.as_str()));
            }
            for call in &calls {
                let own = call.request.at(CAPABILITIES).as_object();
                let has = |capability: &str| own.is_some_and(|own| own.contains_key(capability));
                let missing = declared.get(&name(call)).into_iter().flatten().find(|capability| !has(capability));
                let found = || format!("no `{}`, which another one declares", missing.copied().unwrap_or_default());
                j.check_subject(missing.is_none(), call.method(), call.request, found);
            }
        }
    }),
    ("client-modern.meta.elicitation-mode", |e, j| {
        for call in all_modern(e) {
            let Some(modes) = call.request.at(CAPABILITIES)["elicitation"].as_object() else { continue };
            let holds = modes.is_empty() || modes.contains_key("form") || modes.contains_key("url");
            j.check(holds, call.request, || format!("`elicitation` with {:?}", modes.keys().collect::<Vec<_>>()));
        }
    }),
    ("client-modern.meta.extension-ids", |e, j| {
        for call in all_modern(e) {
            for id in call.request.at(CAPABILITIES)["extensions"].as_object().into_iter().flat_map(Map::keys) {
                let is_id = id.split_once('/').is_some_and(|(prefix, name)| {
                    is_prefix(prefix) && !name.is_empty() && !name.contains('/') && is_name(name)
                });
                j.check_subject(is_id, id, call.request, || "an id without a prefix, or malformed");
            }
        }
    }),
    ("client-modern.meta.log-level", |e, j| {
        for call in all_modern(e) {
            let level = call.request.at(&format!("{META}logLevel"));
            if !level.is_null() {
                let is_level = level.as_str().is_some_and(|level| LEVELS.contains(&level));
                j.check(is_level, call.request, || format!("`logLevel: {}`", shown(level)));
            }
        }
    }),
    ("client-modern.meta.declares-elicitation", |e, j| declares(e, j, "elicitation", "elicitation/create")),
    ("client-modern.meta.declares-sampling", |e, j| declares(e, j, "sampling", "sampling/createMessage")),
    ("client-modern.meta.declares-roots", |e, j| declares(e, j, "roots", "roots/list")),
    ("client-modern.version.retry-supported", |e, j| {
        for connection in &e.connections {
            let calls: Vec<_> = modern(connection).collect();
            for call in calls.iter().filter(|call| call.error_code() == Some(UNSUPPORTED_VERSION)) {
                let (supported, Some(response)) = (supported(call), call.response) else { continue };
                let next = calls.iter().find(|it| it.request.place > response.place && it.method() == call.method());
                let Some(next) = next.filter(|_| !supported.is_empty()) else {
                    j.untested("the client did not try again");
                    continue;
                };
                let version = next.request.at(VERSION_POINTER);
                let is_supported = version.as_str().is_some_and(|version| supported.contains(&version));
                let places = vec![response.place, next.request.place];
                j.check_at(is_supported, None, places, || format!("the version {}", shown(version)));
            }
        }
    }),
    ("client-modern.version.no-loop", |e, j| bounded(e, j, UNSUPPORTED_VERSION)),
    ("client-modern.version.no-init-fallback-on-modern-error", |e, j| no_fallback(e, j, &MODERN_ERRORS)),
    ("client-modern.discover.uses-version", |e, j| {
        for connection in &e.connections {
            let discoveries = discoveries(connection);
            for call in modern(connection) {
                let Some(result) = discovery(&discoveries, &call) else { continue };
                let (supported, version) = (result["supportedVersions"].as_array(), call.request.at(VERSION_POINTER));
                let Some(supported) = supported.filter(|_| version.is_string()) else { continue };
                j.check(supported.contains(version), call.request, || format!("the version {}", shown(version)));
            }
        }
    }),
    ("client-modern.discover.respects-capabilities", |e, j| {
        for connection in &e.connections {
            let discoveries = discoveries(connection);
            for call in modern(connection) {
                let Some(result) = discovery(&discoveries, &call) else { continue };
                let capability = match call.method().split('/').next() {
                    Some("completion") => "completions",
                    Some(area @ ("tools" | "resources" | "prompts")) => area,
                    _ => continue,
                };
                let is_declared = result["capabilities"].get(capability).is_some();
                j.check_subject(is_declared, call.method(), call.request, || format!("no capability `{capability}`"));
            }
        }
    }),
    ("client-modern.result.absent-type-complete", |e, j| completes(e, j, "untyped")),
    ("client-modern.result.unknown-type-invalid", |e, j| ignores_list(e, j, "odd-result")),
    ("client-modern.result.serverinfo-not-required", |e, j| completes(e, j, "nameless")),
    ("client-modern.state.serverinfo-not-used", |e, j| completes(e, j, "renamed")),
    ("client-modern.stdio.process-not-per-task", |e, j| {
        let work = |connection: &Connection<'_>| {
            modern(connection).filter(|call| call.method() != "server/discover").map(|call| call.request.place).last()
        };
        let is_short = |connection: &&Connection<'_>| {
            modern(connection).filter(|call| call.method() != "server/discover").count() == 1
        };
        let all = e.connections.iter().filter_map(work).count();
        let short: Vec<_> = e.connections.iter().filter(is_short).filter_map(work).collect();
        if all > 0 {
            let is_each = short.len() == all && all >= SEVERAL;
            j.check_at(!is_each, None, short, || format!("{all} processes for one request each"));
        }
    }),
    ("client-modern.error.32021-handled", |e, j| bounded(e, j, MISSING_CAPABILITY)),
    ("client-modern.error.404-method", keeps_endpoint),
    ("client-modern.error.legacy-code-neutral", |e, j| {
        // Codes from -32019 to -32000 mean nothing but an error.
        for connection in &e.connections {
            let calls: Vec<_> = modern(connection).collect();
            for call in &calls {
                let code = call.error_code().filter(|code| (-32019..=-32000).contains(code) && *code != -32002);
                let (Some(code), Some(response)) = (code, call.response) else { continue };
                if supported(call).is_empty() {
                    let version = call.request.at(VERSION_POINTER);
                    let is_other = |it: &&Call<'_>| {
                        let is_again = it.request.place > response.place && is_same(it.request, call.request);
                        is_again && it.request.at(VERSION_POINTER) != version
                    };
                    let again = calls.iter().find(is_other);
                    let places = call.places_with(again.map(|it| it.request.place));
                    j.check_at(again.is_none(), None, places, || format!("another version after the error {code}"));
                }
            }
        }
    }),
    ("client-modern.state.no-session-header", |e, j| {
        for connection in &e.connections {
            let given =
                connection.exchanges.values().find_map(|http| Some((http.response?, http.header(SESSION_HEADER)?)));
            let Some((place, id)) = given else { continue };
            for call in modern(connection).filter(|call| call.request.place > place) {
                let sent = call.http.and_then(|http| header(http, SESSION_HEADER));
                j.check(sent.as_deref() != Some(id), call.request, || header_text("Mcp-Session-Id", sent.as_deref()));
            }
        }
    }),
    ("client-modern.state.no-initialize", |e, j| {
        for connection in &e.connections {
            let Some(call) = modern(connection).find(is_of_modern_server) else { continue };
            j.check_at(connection.fallback.is_none(), None, call.places_with(connection.fallback), || "`initialize`");
        }
    }),
    ("client-modern.server-request.refused", |e, j| e.asks().must(j, |ask| ask.responses.is_empty(), |_| "a response")),
];

/// Whether the result is one that no server of the legacy era gives; such a server may answer anything to a method that it
/// does not know.
fn is_of_modern_server(call: &Call<'_>) -> bool {
    call.result().is_some_and(|result| match call.method() {
        "server/discover" => result["supportedVersions"].is_array(),
        _ => result["resultType"].is_string(),
    })
}

fn meta(e: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value) -> bool) {
    for call in all_modern(e) {
        let value = call.request.at(&format!("{META}{key}"));
        j.check_subject(holds(value), call.method(), call.request, || match value {
            Value::Null => format!("no `io.modelcontextprotocol/{key}`"),
            value => format!("`io.modelcontextprotocol/{key}: {}`", shown(value)),
        });
    }
}

/// A client that answers a question has declared that it can be asked.
fn declares(e: &Evidence<'_>, j: &mut Judgement, capability: &str, method: &str) {
    for connection in &e.connections {
        let calls: Vec<_> = modern(connection).collect();
        for (number, call) in calls.iter().enumerate() {
            let asked = call.result().and_then(|result| result["inputRequests"].as_object()).into_iter().flatten();
            for (key, _) in asked.filter(|(_, request)| request["method"] == method) {
                let answer = |it: &&Call<'_>| {
                    let answer = &it.request.at("/params/inputResponses")[key];
                    it.method() == call.method() && is_fulfilled(answer)
                };
                let Some(next) = calls.iter().skip(number + 1).find(answer) else { continue };
                let declared = [call, next].map(|it| it.request.at(CAPABILITIES).get(capability).is_some());
                let places = vec![call.request.place, next.request.place];
                j.check_at(declared == [true; 2], Some(method), places, || format!("no `{capability}`"));
            }
        }
    }
}

fn is_fulfilled(answer: &Value) -> bool {
    answer.is_object() && answer.get("error").is_none() && answer.get("action").is_none_or(|it| it == "accept")
}

/// The versions that an error -32022 names.
fn supported<'e>(call: &Call<'e>) -> Vec<&'e str> {
    let data = call.response.and_then(|it| it.error()).and_then(|error| error.get("data"));
    let named = data.and_then(|data| data.get("supported")).and_then(Value::as_array);
    named.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Checks that `initialize` does not follow such an error. Over HTTP it is on a connection of its own.
pub(super) fn no_fallback(e: &Evidence<'_>, j: &mut Judgement, codes: &[i64]) {
    let is_http = e.transport == Transport::Http;
    let is_accepted = e.calls().any(|call| call.has_result());
    for connection in &e.connections {
        let is_refused = |call: &Call<'_>| {
            // The versions that the error names may be older ones.
            let is_older = supported(call).iter().any(|it| it.parse().is_ok_and(|it: Version| it.era() == Era::Legacy));
            call.error_code().is_some_and(|code| codes.contains(&code)) && !is_older
        };
        let Some(call) = modern(connection).filter(is_refused).last() else { continue };
        let goes_on = modern(connection).any(|it| it.request.place > call.request.place && it.result().is_some());
        let falls_back = match is_http {
            true => e.facts.has_handshake && !is_accepted,
            false => connection.fallback.is_some() && !goes_on,
        };
        let places = call.places_with(connection.fallback);
        j.check_at(!falls_back, None, places, || format!("`initialize` after {}", call.answer_text()));
    }
}

fn discoveries<'c>(connection: &'c Connection<'_>) -> Vec<Call<'c>> {
    modern(connection).filter(|it| it.method() == "server/discover" && it.result().is_some()).collect()
}

/// The last discovery before a request.
fn discovery<'c>(discoveries: &[Call<'c>], call: &Call<'_>) -> Option<&'c Value> {
    let is_before = |it: &&Call<'_>| it.response.is_some_and(|response| response.place < call.request.place);
    discoveries.iter().rev().find(is_before)?.result()
}

/// A method that a server of this era does not have does not mean that the endpoint is another one.
pub(super) fn keeps_endpoint(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in &e.connections {
        let is_unknown = |call: &Call<'_>| call.status() == Some(404) && call.error_code() == Some(-32601);
        let Some(call) = modern(connection).find(is_unknown) else { continue };
        let next = get_after(connection, &call);
        let places = call.places_with(next.map(|http| http.request));
        j.check_at(next.is_none(), Some(call.method()), places, || "a GET after it");
    }
}
