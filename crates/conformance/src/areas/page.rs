//! Pagination.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    Judge,
    common::{LISTS, error_code, fails_plainly, is_refused_elsewhere, readings, shown},
};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Level, Material};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("page.cursor.string", cursor_is_a_string),
    ("page.follow.terminates", terminates),
    ("page.follow.no-duplicates", no_duplicates),
    ("page.follow.no-empty-middle", no_empty_page),
    ("page.cursor.invalid-32602", |e, j| refused(e, j, "bad-cursor/unknown")),
    ("page.cursor.invalid-graceful", graceful),
    ("page.cursor.wrong-type", |e, j| refused(e, j, "bad-cursor/number")),
    ("page.list.no-params-ok", no_params),
    ("page.list.null-cursor", |e, j| {
        for call in e.case("bad-cursor/null").filter(|call| call.response.is_some()) {
            j.check_call(call.result().is_some() || call.error_code() == Some(-32602), &call);
        }
    }),
    ("page.follow.stable-first-page", |e, j| same_page(e, j, "lists/same-cursor")),
    ("page.cursor.connection-independent", |e, j| {
        let works = |method: &str| e.case(&format!("lists/same-cursor/{method}")).any(|call| call.result().is_some());
        for call in e.case("lists/other-connection").filter(|it| it.response.is_some() && works(it.method())) {
            j.check_call(call.result().is_some(), &call);
        }
    }),
    ("page.cursor.cross-list", |e, j| {
        for call in e.case("bad-cursor/other-list").filter(Call::is_answered) {
            j.check_call(call.error_code().is_some(), &call);
        }
        j.untested("fewer than two lists have a second page");
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

/// Compares the pages that one cursor gives, request by request.
fn same_page(evidence: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for (method, key, name) in LISTS {
        let mut before: Option<Vec<&str>> = None;
        for call in evidence.case(&format!("{case}/{method}")).filter(|call| call.response.is_some()) {
            let Some(result) = call.result() else {
                j.check_call(false, &call);
                continue;
            };
            let items = result[key].as_array().into_iter().flatten();
            let names: Vec<_> = items.filter_map(|item| item[name].as_str()).collect();
            let is_same = before.as_ref().is_none_or(|before| *before == names);
            j.check_answer(is_same, &call, || "another page".to_owned());
            before = Some(names);
        }
    }
}

fn cursor_is_a_string(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (method, ..) in LISTS {
        for (call, result) in evidence.results_of(method).filter(|(call, _)| call.request.case.is_none()) {
            let cursor = result.get("nextCursor");
            let found = || format!("`nextCursor: {}`", cursor.map(shown).unwrap_or_default());
            let holds = cursor.is_none_or(Value::is_string);
            j.check_at(holds, Some(method.to_owned()), call.places(), found);
        }
    }
}

fn terminates(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (method, ..) in LISTS {
        for reading in readings(evidence, method) {
            let mut seen = HashSet::new();
            for (call, result) in &reading.pages {
                let Some(cursor) = result["nextCursor"].as_str() else { continue };
                let is_new = seen.insert(cursor);
                j.check_at(is_new, Some(method.to_owned()), call.places(), || format!("the cursor {cursor:?} again"));
            }
        }
    }
}

fn no_duplicates(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (method, key, name) in LISTS {
        for reading in readings(evidence, method).iter().filter(|reading| reading.pages.len() > 1) {
            let mut seen = HashSet::new();
            for (number, (call, result)) in reading.pages.iter().enumerate() {
                for item in result[key].as_array().into_iter().flatten().filter_map(|item| item[name].as_str()) {
                    let is_new = seen.insert(item);
                    j.check_at(is_new, Some(item.to_owned()), call.places(), || {
                        format!("it again on page {}", number + 1)
                    });
                }
            }
        }
    }
}

fn no_empty_page(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (method, key, _) in LISTS {
        for (call, result) in evidence.results_of(method).filter(|(_, result)| result["nextCursor"].is_string()) {
            let is_empty = result[key].as_array().is_some_and(Vec::is_empty);
            j.check_at(!is_empty, Some(method.to_owned()), call.places(), || "an empty page with a cursor".to_owned());
        }
    }
}

/// A server that never pages a list may ignore cursors.
fn refused(evidence: &Evidence<'_>, j: &mut Judgement, case: &str) {
    error_code(evidence, j, case, &[-32602]);
    let pages = |method: &str| evidence.results_of(method).any(|(_, result)| result["nextCursor"].is_string());
    let has_pages = LISTS.iter().any(|(method, ..)| pages(method));
    j.violations.retain(|violation| {
        let method = violation.subject.as_deref().unwrap_or_default().splitn(3, '/').nth(2).unwrap_or_default();
        // Not every list that goes with a capability is implemented.
        let is_implemented = evidence.results_of(method).any(|(call, _)| call.request.case.is_none());
        is_implemented && (violation.found != "a result" || has_pages)
    });
}

fn graceful(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in
        evidence.case("bad-cursor/unknown").filter(|call| call.response.is_some() && !is_refused_elsewhere(call))
    {
        if !fails_plainly(evidence, &call) {
            j.check_call(call.error_code() != Some(-32603), &call);
        }
    }
    for connection in &evidence.connections {
        let has_ended = connection.ended_by_server();
        let last = connection.calls().last().filter(|call| {
            call.request.case.is_some_and(|case| case.starts_with("bad-cursor/")) && call.response.is_none()
        });
        if let (true, Some(call)) = (has_ended, last) {
            j.check_answer(false, &call, || "the end of the connection".to_owned());
            j.at_level(Level::Must);
        }
    }
}

fn no_params(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("lists/no-params").filter(|call| call.response.is_some() && !is_refused_elsewhere(call)) {
        let is_absent = call.error_code() == Some(-32601);
        if !is_absent && !fails_plainly(evidence, &call) {
            j.check_call(call.result().is_some(), &call);
        }
    }
}
