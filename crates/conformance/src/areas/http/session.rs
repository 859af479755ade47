//! Sessions: the ids that a server assigns, and the end of them.

use std::collections::BTreeSet;

use rehearse_protocol::{
    Version,
    names::{SESSION_HEADER, VERSION_HEADER},
};

use super::{answered, list};
use crate::{Call, Case, Connection, Evidence, HttpExchange, Judgement, Kind, Level, Material};

/// The least length of an id that cannot be guessed: 64 bits in base64.
const LEAST_LENGTH: usize = 11;
/// The least number of places in which the ids of several sessions differ.
const LEAST_DIFFERENCE: usize = 8;
const NO_SESSIONS: &str = "the server assigns no session ids";

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

pub(super) fn version_refused(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("version-header").filter(|call| !matches!(call.status(), None | Some(401 | 403 | 429))) {
        j.check_call(call.status() == Some(400), &call);
    }
}

/// A session tells the version; without one, a server may have to assume a version that it does not speak.
pub(super) fn version_missing(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("version-missing") {
        let Some(http) = call.http.filter(|http| !matches!(http.status, None | Some(401 | 403 | 429))) else {
            continue;
        };
        if call.result().is_some() || http.request_header(SESSION_HEADER).is_some() {
            j.check_call(call.result().is_some(), &call);
        } else {
            j.untested("the server has no session that could tell the version");
        }
    }
}

pub(super) fn version_other(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("version-other").filter(Call::is_answered) {
        j.check_call(call.result().is_some() || call.status() == Some(400), &call);
    }
}

/// The responses to `initialize` with a result, each with the session id.
fn ids<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e str)> {
    let calls = evidence.calls_of("initialize").filter(|call| call.result().is_some());
    calls.filter_map(|call| Some((call, call.http?.header(SESSION_HEADER)?)))
}

/// No other id must come with the answer to a request than that of the request.
pub(super) fn stable(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (connection, http) in evidence.exchanges() {
        let sent = client_message(connection, http).and_then(|it| it.method());
        let (Some(id), Some(found), Some(place)) =
            (http.request_header(SESSION_HEADER), http.header(SESSION_HEADER), http.response)
        else {
            continue;
        };
        if sent != Some("initialize") {
            j.check_at(id == found, None, vec![http.request, place], || format!("`Mcp-Session-Id: {found}`"));
        }
    }
    match ids(evidence).next() {
        Some(_) => j.exercised += 1,
        None => j.untested(NO_SESSIONS),
    }
}

fn client_message<'c>(connection: &'c Connection<'_>, http: &HttpExchange<'_>) -> Option<&'c crate::Message<'c>> {
    let messages = http.messages.iter().filter_map(|index| connection.messages.get(*index));
    messages.into_iter().find(|message| !message.is_from_server())
}

pub(super) fn on_initialize(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
        let opened = connection.calls().find(|it| it.method() == "initialize" && it.result().is_some());
        let Some(opened) = opened.and_then(|call| call.http) else { continue };
        let later = connection.exchanges.values().find(|http| http.header(SESSION_HEADER).is_some());
        if let (Some(first), Some(place)) = (later, later.and_then(|http| http.response)) {
            j.check_at(first.request <= opened.request, None, vec![opened.request, place], || {
                "the first session id on a later answer".to_owned()
            });
        }
    }
    j.untested(NO_SESSIONS);
}

pub(super) fn unguessable(evidence: &Evidence<'_>, j: &mut Judgement) {
    let ids: Vec<_> = ids(evidence).collect();
    let Some((first, pattern)) = ids.first() else { return j.untested(NO_SESSIONS) };
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
            format!("{} ids that differ in {} characters, such as {pattern:?} and {id:?}", ids.len(), differences.len())
        });
    }
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
    let places = [Some(http.request), http.response].into_iter().flatten().collect();
    j.check_at(holds, http.case.map(ToOwned::to_owned), places, || format!("HTTP {status}"));
}

pub(super) fn missing_id(evidence: &Evidence<'_>, j: &mut Judgement) {
    each(evidence, "session/without-id", |http, status| match status {
        200..300 => j.untested("the server requires no session id"),
        _ => check(j, status == 400, http, status),
    });
    j.untested(NO_SESSIONS);
}

pub(super) fn unknown_id(evidence: &Evidence<'_>, j: &mut Judgement) {
    each(evidence, "session/unknown-id", |http, status| check(j, status == 404, http, status));
    j.untested(NO_SESSIONS);
}

pub(super) fn deleted(evidence: &Evidence<'_>, j: &mut Judgement) {
    each(evidence, "session/delete", |http, status| {
        check(j, (200..300).contains(&status) || status == 405, http, status)
    });
    j.untested(NO_SESSIONS);
}

pub(super) fn delete_unknown(evidence: &Evidence<'_>, j: &mut Judgement) {
    each(evidence, "session/delete-unknown", |http, status| {
        check(j, (400..500).contains(&status), http, status);
        // To delete what is not there may also succeed.
        if (200..300).contains(&status) {
            j.at_level(Level::Info);
        }
    });
    j.untested(NO_SESSIONS);
}

/// Whether the server has ended a session on request.
fn is_ended(evidence: &Evidence<'_>) -> bool {
    evidence.http_case("session/delete").any(|(_, http)| http.status.is_some_and(|it| (200..300).contains(&it)))
}

/// Checks that a request in a session that has ended is answered with status 404.
pub(super) fn terminated(evidence: &Evidence<'_>, j: &mut Judgement, case: &str) {
    if is_ended(evidence) {
        each(evidence, case, |http, status| check(j, status == 404, http, status));
    }
    j.untested("the server ended no session");
}

pub(super) fn isolated(evidence: &Evidence<'_>, j: &mut Judgement) {
    if is_ended(evidence) {
        for call in evidence.case("session/other").filter(|it| it.is_answered() && it.request.kind == Kind::Request) {
            j.check_call(call.result().is_some() || matches!(call.status(), Some(401 | 429 | 503)), &call);
        }
    }
    j.untested("the server ended no session");
}
