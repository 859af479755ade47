//! Pagination.

use rehearse_protocol::List;

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Judge;
use super::common::{error_code, fails_plainly, readings, shown};
use super::query::{Calls, Parts, Query, elements};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Level, Material};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("page.cursor.string", |e, j| {
        let found = |page: &Value| format!("`nextCursor: {}`", page.get("nextCursor").map(shown).unwrap_or_default());
        for method in List::ALL.map(List::method) {
            let pages = e.results_of(method).plain().by_method();
            pages.must(j, |page| page.get("nextCursor").is_none_or(Value::is_string), found);
        }
    }),
    ("page.follow.terminates", |e, j| {
        for method in List::ALL.map(List::method) {
            for reading in readings(e, method) {
                let mut seen = HashSet::new();
                for (call, result) in &reading.pages {
                    let Some(cursor) = result["nextCursor"].as_str() else { continue };
                    let is_new = seen.insert(cursor);
                    j.check_at(is_new, Some(method), call.places(), || format!("the cursor {cursor:?} again"));
                }
            }
            for call in own_cursors(e, method).reached() {
                let found = || format!("{} for a cursor of its own", call.answer_text());
                j.check_at(!call.has_error(), Some(method), call.places(), found);
            }
        }
    }),
    ("page.follow.no-duplicates", |e, j| {
        for (method, key, name) in List::ALL.map(|it| (it.method(), it.member(), it.key())) {
            for reading in readings(e, method).iter().filter(|reading| reading.pages.len() > 1) {
                let mut seen = HashSet::new();
                for (number, (call, result)) in reading.pages.iter().enumerate() {
                    for item in elements(&result[key]).filter_map(|item| item[name].as_str()) {
                        let is_new = seen.insert(item);
                        j.check_at(is_new, Some(item), call.places(), || format!("it again on page {}", number + 1));
                    }
                }
            }
        }
    }),
    ("page.follow.no-empty-middle", |e, j| {
        for (method, key) in List::ALL.map(|it| (it.method(), it.member())) {
            let pages = e.results_of(method).by_method().having(|page| page["nextCursor"].is_string());
            let is_empty = |page: &Value| page[key].as_array().is_some_and(Vec::is_empty);
            pages.must(j, |page| !is_empty(page), |_| "an empty page with a cursor");
        }
    }),
    ("page.cursor.invalid-32602", |e, j| refused(e, j, "bad-cursor/unknown")),
    ("page.cursor.invalid-graceful", |e, j| {
        let calls = e.case("bad-cursor/unknown").reached().filter(|call| !fails_plainly(e, call));
        calls.must_get(j, |call| call.error_code() != Some(-32603));
        for connection in &e.connections {
            let has_ended = connection.ended_by_server();
            let last = connection.calls().last().filter(|call| {
                call.request.case.is_some_and(|case| case.starts_with("bad-cursor/")) && call.response.is_none()
            });
            if let (true, Some(call)) = (has_ended, last) {
                j.check_answer(false, &call, || "the end of the connection");
                j.at_level(Level::Must);
            }
        }
    }),
    ("page.cursor.wrong-type", |e, j| refused(e, j, "bad-cursor/number")),
    ("page.list.no-params-ok", |e, j| {
        let calls = e.case("lists/no-params").reached().filter(|call| call.error_code() != Some(-32601));
        calls.filter(|call| !fails_plainly(e, call)).must_get(j, Call::has_result);
    }),
    ("page.list.null-cursor", |e, j| {
        let calls = e.case("bad-cursor/null").responded();
        calls.must_get(j, |call| call.has_result() || call.error_code() == Some(-32602));
    }),
    ("page.follow.stable-first-page", |e, j| same_page(e, j, "lists/same-cursor")),
    ("page.cursor.connection-independent", |e, j| {
        let works = |method: &str| e.case(&format!("lists/same-cursor/{method}")).any(|call| call.has_result());
        let calls = e.case("lists/other-connection").responded().filter(|it| works(it.method()));
        calls.must_get(j, Call::has_result);
    }),
    ("page.cursor.cross-list", |e, j| {
        e.case("bad-cursor/other-list").filter(Call::is_answered).must_get(j, Call::has_error)
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    let mut cases = Vec::new();
    for method in material.varied_lists() {
        let bad = |variant: &str, cursor: Value| {
            let name = format!("bad-cursor/{variant}/{method}");
            Case::request(name, CaseGroup::Negative, method, json!({ "cursor": cursor }))
        };
        cases.push(bad("unknown", json!("rehearse-invalid-cursor")));
        cases.push(bad("number", json!(5)));
        cases.push(bad("null", Value::Null));
        if !material.is_modern() {
            cases.push(Case::request(format!("lists/no-params/{method}"), CaseGroup::Main, method, Value::Null));
        }
    }
    for (method, cursor) in &material.cursors {
        let with =
            |case: &str, group| Case::request(format!("{case}/{method}"), group, method, json!({ "cursor": cursor }));
        cases.extend([with("lists/same-cursor", CaseGroup::Main), with("lists/same-cursor", CaseGroup::Main)]);
        if material.is_modern() && material.is_http() {
            cases.push(with("lists/other-connection", CaseGroup::Fresh));
        }
    }
    if let [(_, cursor), (method, _), ..] = material.cursors.as_slice() {
        let name = format!("bad-cursor/other-list/{method}");
        cases.push(Case::request(name, CaseGroup::Negative, method, json!({ "cursor": cursor })));
    }
    cases
}

/// The requests of normal work with a cursor that the server has given on the same connection.
fn own_cursors<'e>(e: &'e Evidence<'_>, method: &'e str) -> impl Iterator<Item = Call<'e>> {
    e.connections.iter().flat_map(move |connection| {
        let calls: Vec<_> = connection.calls_of(method).plain().collect();
        let given: HashSet<_> = calls.iter().filter_map(|call| call.result()?["nextCursor"].as_str()).collect();
        let is_own =
            move |call: &Call<'_>| call.request.at("/params/cursor").as_str().is_some_and(|it| given.contains(it));
        calls.into_iter().filter(is_own)
    })
}

/// Compares the pages that one cursor gives, request by request.
fn same_page(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for (method, key, name) in List::ALL.map(|it| (it.method(), it.member(), it.key())) {
        let mut before: Option<Vec<&str>> = None;
        for call in e.case(&format!("{case}/{method}")).responded() {
            let Some(result) = call.result() else {
                j.check_call(false, &call);
                continue;
            };
            let items = elements(&result[key]);
            let names: Vec<_> = items.filter_map(|item| item[name].as_str()).collect();
            j.check_answer(before.as_ref().is_none_or(|before| *before == names), &call, || "another page");
            before = Some(names);
        }
    }
}

/// A server that never pages a list may ignore cursors.
fn refused(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    error_code(e, j, case, &[-32602]);
    let pages = |method: &str| e.results_of(method).any(|(_, result)| result["nextCursor"].is_string());
    let has_pages = List::ALL.into_iter().any(|list| pages(list.method()));
    j.violations.retain(|violation| {
        let method = violation.subject.as_deref().unwrap_or_default().splitn(3, '/').nth(2).unwrap_or_default();
        // Not every list that goes with a capability is implemented.
        let is_implemented = e.results_of(method).any(|(call, _)| call.request.case.is_none());
        is_implemented && (violation.found != "a result" || has_pages)
    });
}
