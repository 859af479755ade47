//! Sessions: the ids that a server assigns, and the end of them.

use std::collections::BTreeSet;

use rehearse_protocol::{
    Version,
    names::{SESSION_HEADER, VERSION_HEADER},
};

use super::{answered, is_client_error, list};
use crate::areas::Judge;
use crate::areas::common::sent_in;
use crate::areas::query::Query;
use crate::{Call, Case, Evidence, HttpExchange, Judgement, Kind, Level, Material};

/// The least length of an id that cannot be guessed: 64 bits in base64.
const LEAST_LENGTH: usize = 11;
/// The least number of places in which the ids of several sessions differ.
const LEAST_DIFFERENCE: usize = 8;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("http.version.header-invalid-400", |e, j| {
        let calls = e.case("version-header");
        let judged = calls.filter(|call| !matches!(call.status(), None | Some(401 | 403 | 429)));
        judged.must_get(j, |call| call.status() == Some(400));
    }),
    ("http.version.header-missing-ok", |e, j| {
        // A session tells the version; without one, a server may have to assume a version that it does not speak.
        for call in e.case("version-missing") {
            let Some(http) = call.http.filter(|http| !matches!(http.status, None | Some(401 | 403 | 429))) else {
                continue;
            };
            if call.has_result() || http.request_header(SESSION_HEADER).is_some() {
                j.check_call(call.has_result(), &call);
            } else {
                j.untested("the server has no session that could tell the version");
            }
        }
    }),
    ("http.version.header-other-supported", |e, j| {
        let calls = e.case("version-other").filter(Call::is_answered);
        calls.must_get(j, |call| call.has_result() || call.status() == Some(400));
    }),
    ("http.session.id-entropy", |e, j| {
        let ids: Vec<_> = ids(e).collect();
        let Some((first, pattern)) = ids.first() else { return j.untested(without_ids(e)) };
        let mut differences = BTreeSet::new();
        for (_, id) in &ids {
            let pairs = id.bytes().zip(pattern.bytes()).enumerate();
            differences.extend(pairs.filter(|(_, (one, other))| one != other).map(|(at, _)| at));
        }
        j.check_call(true, first);
        if pattern.len() < LEAST_LENGTH {
            j.check_answer(false, first, || format!("the id {pattern:?} of {} characters", pattern.len()));
        } else if let Some((last, id)) = ids.last().filter(|_| ids.len() > 1 && differences.len() < LEAST_DIFFERENCE) {
            j.check_answer(false, last, || {
                format!(
                    "{} ids that differ in {} characters, such as {pattern:?} and {id:?}",
                    ids.len(),
                    differences.len()
                )
            });
        }
    }),
    ("http.session.header-on-initialize", |e, j| {
        for connection in &e.connections {
            let opened = connection.calls().find(|it| it.method() == "initialize" && it.result().is_some());
            let Some(opened) = opened.and_then(|call| call.http) else { continue };
            let later = connection.exchanges.values().find(|http| http.header(SESSION_HEADER).is_some());
            if let (Some(first), Some(place)) = (later, later.and_then(|http| http.response)) {
                let found = || "the first session id on a later answer";
                j.check_at(first.request <= opened.request, None, vec![opened.request, place], found);
            }
        }
    }),
    ("http.session.stable-id", |e, j| {
        // No other id must come with the answer to a request than that of the request.
        for (connection, http) in e.exchanges() {
            let sent = sent_in(connection, http).and_then(|it| it.method());
            let (Some(id), Some(found), Some(place)) =
                (http.request_header(SESSION_HEADER), http.header(SESSION_HEADER), http.response)
            else {
                continue;
            };
            if sent != Some("initialize") {
                j.check_at(id == found, None, vec![http.request, place], || format!("`Mcp-Session-Id: {found}`"));
            }
        }
        match ids(e).next() {
            Some(_) => j.exercised += 1,
            None => j.untested(without_ids(e)),
        }
    }),
    ("http.session.missing-id-400", |e, j| {
        each(e, "session/without-id", |http, status| match status {
            200..300 => j.untested("the server requires no session id"),
            _ => check(j, status == 400, http, status),
        })
    }),
    ("http.session.unknown-id-404", |e, j| {
        each(e, "session/unknown-id", |http, status| check(j, status == 404, http, status))
    }),
    ("http.session.terminated-404", |e, j| terminated(e, j, "session/after-delete")),
    ("http.session.delete-2xx-or-405", |e, j| {
        each(e, "session/delete", |http, status| check(j, (200..300).contains(&status) || status == 405, http, status))
    }),
    ("http.session.delete-unknown", |e, j| {
        each(e, "session/delete-unknown", |http, status| {
            check(j, is_client_error(status), http, status);
            // To delete what is not there may also succeed.
            j.at_level_if((200..300).contains(&status), Level::Info);
        });
    }),
    ("http.session.delete-twice", |e, j| terminated(e, j, "session/delete-again")),
    ("http.session.isolation", |e, j| {
        if is_ended(e) {
            e.case("session/other")
                .filter(|it| it.is_answered() && it.request.kind == Kind::Request)
                .must_get(j, |call| call.has_result() || matches!(call.status(), Some(401 | 429 | 503)));
        }
    }),
];

/// Why there is no session id.
fn without_ids(e: &Evidence<'_>) -> &'static str {
    let is_open = e.results_of("initialize").next().is_some();
    if is_open { "the server assigns no session ids" } else { "no session was opened" }
}

pub(super) fn cases(material: &Material) -> Vec<Case> {
    let mut cases = Vec::new();
    if matches!(material.version, Some(Version::V2025_06_18 | Version::V2025_11_25)) {
        let other = if material.version == Some(Version::V2025_11_25) { "2025-06-18" } else { "2025-11-25" };
        cases.extend([
            list(material, "version-header/old").header(VERSION_HEADER, "1999-01-01"),
            list(material, "version-header/nonsense").header(VERSION_HEADER, "abc"),
            list(material, "version-missing/list").without_header(VERSION_HEADER),
            list(material, "version-other/list").header(VERSION_HEADER, other),
        ]);
    }
    cases
}

/// The responses to `initialize` with a result, each with the session id.
fn ids<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e str)> {
    let calls = evidence.calls_of("initialize").filter(|call| call.has_result());
    calls.filter_map(|call| Some((call, call.http?.header(SESSION_HEADER)?)))
}

/// Calls `judge` with every answer to a case, unless the server refused the client.
fn each<'e>(evidence: &'e Evidence<'_>, case: &'e str, mut judge: impl FnMut(&HttpExchange<'_>, u16)) {
    for (_, http) in evidence.http_case(case) {
        if let Some((status, _)) = answered(http) {
            judge(http, status);
        }
    }
}

fn check(j: &mut Judgement, holds: bool, http: &HttpExchange<'_>, status: u16) {
    j.check_at(holds, http.case, http.places(), || format!("HTTP {status}"));
}

/// Whether the server has ended a session on request.
fn is_ended(evidence: &Evidence<'_>) -> bool {
    evidence.http_case("session/delete").any(|(_, http)| http.status.is_some_and(|it| (200..300).contains(&it)))
}

/// Checks that a request in a session that has ended is answered with status 404.
fn terminated(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    if is_ended(e) {
        each(e, case, |http, status| check(j, status == 404, http, status));
    }
    j.untested("the server ended no session");
}
