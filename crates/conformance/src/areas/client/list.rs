//! Lists: pages, changes and how long they are fresh.

use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use rehearse_protocol::{List, Transport};
use serde_json::Value;

use super::super::Judge;
use super::super::common::{readings, shown};
use super::super::sub::SUBSCRIPTION_ID;
use super::completes;
use super::reading::Readings;
use crate::areas::query::elements;
use crate::{Call, EventRef, Evidence, Judgement, Message};

/// So many changes at once are a burst.
const BURST: usize = 20;
/// So many requests with one cursor are endless.
const LOOP: usize = 1000;
/// So many requests in a row, each directly after the end of the time to live, are polling.
const POLLS: usize = 5;

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-list.page.followed", |e, j| {
        for method in ["tools/list", "resources/list", "resources/templates/list"] {
            followed(e, j, method);
        }
    }),
    ("client-list.page.cursor-verbatim", |e, j| {
        cursors(e, j, |before, _| before.is_some_and(|page| page["nextCursor"].is_string()))
    }),
    ("client-list.page.no-invented-cursor", |e, j| {
        // An empty one at the end has a check of its own.
        cursors(e, j, |before, cursor| before.is_none_or(|page| cursor != "" && !page["nextCursor"].is_string()));
    }),
    ("client-list.page.empty-cursor", |e, j| unfollowed(e, j, |page, _| page["nextCursor"] == "")),
    ("client-list.page.size-not-assumed", |e, j| {
        unfollowed(e, j, |page, key| page["nextCursor"].is_string() && page[key].as_array().is_some_and(Vec::is_empty))
    }),
    ("client-list.page.end-detected", |e, j| {
        for method in List::ALL.map(List::method) {
            for connection in &e.connections {
                let calls: Vec<_> = connection.calls().filter(|call| call.method() == method).collect();
                for (last, next) in calls.iter().zip(calls.iter().skip(1)) {
                    let Some(result) = last.result().filter(|it| !it["nextCursor"].is_string()) else { continue };
                    let cursor = next.request.params().get("cursor");
                    let is_empty = cursor.is_some_and(|it| it.is_null() || it == "") && !was_given(e, method, cursor);
                    let cursor = cursor.map(shown).unwrap_or_default();
                    let found = || format!("`cursor: {cursor}` after a page with {}", next_cursor(result));
                    j.check_at(!is_empty, Some(method), last.places_with([next.request.place]), found);
                }
            }
        }
    }),
    ("client-list.changed.tools-relist", |e, j| relisted(e, j, "tools/list", "tools/call", "tools")),
    ("client-list.changed.prompts-relist", |e, j| relisted(e, j, "prompts/list", "prompts/get", "prompts")),
    ("client-list.changed.resources-relist", |e, j| relisted(e, j, "resources/list", "resources/read", "resources")),
    ("client-list.changed.uses-new", uses_new),
    ("client-list.changed.burst-coalesced", |e, j| {
        let changes: Vec<_> = e.notifications("notifications/tools/list_changed").collect();
        let Some(first) = changes.first().filter(|_| changes.len() >= BURST) else {
            return j.untested("the server did not report many changes at once");
        };
        let count = e.calls_of("tools/list").filter(|call| call.request.time > first.time).count();
        j.check(count < BURST, first, || format!("{count} lists after {} changes", changes.len()));
    }),
    ("client-list.page.loop-guard", |e, j| {
        for method in List::ALL.map(List::method) {
            let same = |call: &Call<'_>| {
                let cursor = call.request.params().get("cursor").filter(|it| it.is_string());
                cursor.is_some() && call.result().is_none_or(|page| page.get("nextCursor") == cursor)
            };
            let looped: Vec<_> = e.calls_of(method).filter(same).collect();
            if let Some(last) = looped.last() {
                let found = || format!("{} requests with one cursor", looped.len());
                j.check_at(looped.len() < LOOP, Some(method), last.places(), found);
            }
        }
    }),
    ("client-list.page.invalid-cursor-recovers", |e, j| {
        for method in List::ALL.map(List::method) {
            let calls: Vec<_> = e.calls_of(method).collect();
            for (last, next) in calls.iter().zip(calls.iter().skip(1)) {
                let cursor = last.request.params().get("cursor");
                if last.error_code().is_some() && cursor.is_some() {
                    let is_same = next.request.params().get("cursor") == cursor;
                    let places = last.places_with([next.request.place]);
                    j.check_at(!is_same, Some(method), places, || "the refused cursor again");
                }
            }
        }
    }),
    ("client-list.cache.negative-as-zero", |e, j| completes(e, j, "ttl-negative")),
    ("client-list.cache.notification-invalidates", |e, j| relisted(e, j, "tools/list", "tools/call", "tools")),
    ("client-list.cache.no-polling", |e, j| {
        for (method, polls) in polled(e) {
            let count = polls.len();
            let found = || format!("{count} requests, each when the last one was stale");
            j.check_at(count < POLLS, Some(&method), polls, found);
        }
    }),
    ("client-list.cache.fresh-not-refetched", fresh),
];

fn next_cursor(page: &Value) -> String {
    page.get("nextCursor").map_or_else(|| "no `nextCursor`".to_owned(), |it| format!("`nextCursor: {}`", shown(it)))
}

/// Whether requests may be on connections of which nothing tells the order.
fn is_split(evidence: &Evidence<'_>) -> bool {
    evidence.is_modern() && evidence.transport == Transport::Http
}

/// Whether a server has given a cursor for a list, on any connection.
fn was_given(evidence: &Evidence<'_>, method: &str, cursor: Option<&Value>) -> bool {
    evidence.results_of(method).any(|(_, page)| page["nextCursor"].is_string() && page.get("nextCursor") == cursor)
}

/// Whether the client sent anything after the response to a call.
fn goes_on(evidence: &Evidence<'_>, call: &Call<'_>) -> bool {
    let connection = evidence.connections.get(call.request.place.connection);
    let last = connection.and_then(|it| it.messages.iter().rfind(|it| !it.is_from_server()));
    last.is_some_and(|last| call.response.is_some_and(|response| response.place < last.place))
}

/// Checks that a client that is given cursors uses one. It may well stop before the end.
pub(super) fn followed(e: &Evidence<'_>, j: &mut Judgement, method: &str) {
    let uses = e.calls_of(method).any(|call| call.request.params().get("cursor").is_some());
    let more = e.results_of(method).filter(|(_, page)| page["nextCursor"].is_string());
    for (call, _) in more.filter(|(call, _)| uses || goes_on(e, call)) {
        j.check_at(uses, Some(method), call.places(), || "no request for the next page");
    }
    j.violations.dedup_by(|one, other| one.subject == other.subject);
    j.untested("no list came on several pages, or the client ended before the second one");
}

/// Checks the cursors that no server has given, of requests with such a page before.
fn cursors(e: &Evidence<'_>, j: &mut Judgement, is_mine: impl Fn(Option<&Value>, &Value) -> bool) {
    for method in List::ALL.map(List::method) {
        for connection in &e.connections {
            let mut before = None;
            for call in connection.calls().filter(|call| call.method() == method) {
                let cursor = call.request.params().get("cursor");
                let is_right = was_given(e, method, cursor);
                if let Some(cursor) = cursor.filter(|it| it.is_string() && (is_right || is_mine(before, it))) {
                    let found = || format!("`cursor: {}`", shown(cursor));
                    j.check_at(is_right, Some(method), vec![call.request.place], found);
                }
                before = call.result().or(before);
            }
        }
    }
    j.untested("no list came on several pages");
}

/// Checks pages of a kind that a careless client takes for the last one. A client that follows no cursor says nothing.
fn unfollowed(e: &Evidence<'_>, j: &mut Judgement, is_odd: impl Fn(&Value, &str) -> bool) {
    let is_cursor = |call: &Call<'_>| call.request.params().get("cursor").is_some_and(|it| it.is_string() && it != "");
    let follows = List::ALL.into_iter().any(|list| e.calls_of(list.method()).any(|call| is_cursor(&call)));
    for (method, key) in List::ALL.map(|it| (it.method(), it.member())) {
        for (call, page) in e.results_of(method).filter(|(_, page)| is_odd(page, key)) {
            let mut all = e.calls_of(method);
            let is_followed = all.any(|it| it.request.params().get("cursor") == page.get("nextCursor"));
            if is_followed || (follows && goes_on(e, &call)) {
                let found = || format!("no request for the page after it, which has {}", next_cursor(page));
                j.check_at(is_followed, Some(method), call.places(), found);
            }
        }
    }
    j.untested("no such page came, or the client follows no cursors");
}

/// Checks that a client that has listed lists again after a change, before the next use. It does not have to at once.
fn relisted(e: &Evidence<'_>, j: &mut Judgement, list: &str, user: &str, what: &str) {
    if is_split(e) || !e.facts.declares(&format!("{what}/listChanged")) {
        return;
    }
    let changed = format!("notifications/{what}/list_changed");
    // Since 2026-07-28 a change belongs to a subscription.
    let is_change = |it: &&Message<'_>| {
        let is_tagged = !it.at(&format!("/params/_meta/{SUBSCRIPTION_ID}")).is_null();
        it.is_from_server() && it.method() == Some(&changed) && (is_tagged || !e.is_modern())
    };
    for connection in &e.connections {
        let readings = Readings::new(connection);
        for change in connection.messages.iter().filter(is_change) {
            let read = readings.after(change.place);
            let has_listed = connection.calls().any(|call| call.method() == list && call.request.place < change.place);
            let mut after = connection.calls().filter(|call| {
                let is_later = read.is_some_and(|read| read.place <= call.request.place);
                call.request.place > change.place && (call.method() == list || (call.method() == user && is_later))
            });
            let Some(next) = after.next().filter(|_| has_listed) else { continue };
            let found = || format!("{user} without {list}");
            j.check_at(next.method() == list, None, vec![change.place, next.request.place], found);
        }
    }
}

/// Checks that no tool is called that the newest whole list lacks, and an earlier one had.
fn uses_new(e: &Evidence<'_>, j: &mut Judgement) {
    if is_split(e) {
        return;
    }
    let mut lists = Vec::new();
    for reading in readings(e, "tools/list") {
        let items = reading.pages.iter().flat_map(|(_, page)| elements(&page["tools"]));
        let names: HashSet<_> = items.filter_map(|tool| tool["name"].as_str()).collect();
        let last = reading.pages.last().filter(|(_, page)| !page["nextCursor"].is_string());
        lists.extend(last.and_then(|(call, _)| Some((call.response?, names))));
    }
    for call in e.calls_of("tools/call") {
        let Some(name) = call.text("/params/name") else { continue };
        let is_before = |it: &&(&crate::Message<'_>, HashSet<&str>)| {
            it.0.place.connection == call.request.place.connection && it.0.place < call.request.place
        };
        let before: Vec<_> = lists.iter().filter(is_before).collect();
        let Some((newest, earlier)) = before.split_last().filter(|(_, earlier)| !earlier.is_empty()) else { continue };
        let is_gone = !newest.1.contains(name) && earlier.iter().any(|(_, names)| names.contains(name));
        j.check_at(!is_gone, Some(name), vec![newest.0.place, call.request.place], || "a call of it after it was gone");
    }
}

/// By list, the requests that come again as soon as its time to live has ended.
fn polled(evidence: &Evidence<'_>) -> Vec<(String, Vec<EventRef>)> {
    let mut found = Vec::new();
    for method in List::ALL.map(List::method) {
        let calls: Vec<_> =
            evidence.calls_of(method).filter(|it| it.request.params().get("cursor").is_none()).collect();
        let polls = calls.iter().zip(calls.iter().skip(1)).filter(|(last, next)| {
            let ttl = last.result().and_then(|page| page["ttlMs"].as_u64()).map(Duration::from_millis);
            let age = next.request.time.saturating_sub(last.request.time);
            ttl.is_some_and(|ttl| ttl > Duration::ZERO && age >= ttl.mul_f64(0.9) && age <= ttl.mul_f64(3.0))
        });
        let polls: Vec<_> = polls.map(|(_, next)| next.request.place).collect();
        if calls.len() > 1 {
            found.push((method.to_owned(), polls));
        }
    }
    found
}

/// Checks that no first page is requested again while it is fresh, unless something may have changed.
fn fresh(e: &Evidence<'_>, j: &mut Judgement) {
    for (method, items) in List::ALL.map(|it| (it.method(), it.member())) {
        for connection in &e.connections {
            let calls: Vec<_> = connection.calls().filter(|call| call.method() == method).collect();
            let mut seen = BTreeSet::new();
            for (number, call) in calls.iter().enumerate() {
                let key = call.request.params().get("cursor").map(Value::to_string).unwrap_or_default();
                let is_same =
                    |it: &&Call<'_>| it.request.params().get("cursor").map(Value::to_string).unwrap_or_default() == key;
                let before = calls.get(..number).unwrap_or_default().iter().rev().find(is_same);
                let page = before.and_then(|it| Some((it, it.result().filter(|page| page[items].is_array())?)));
                let Some((before, ttl)) = page.and_then(|(it, page)| Some((it, page["ttlMs"].as_u64()?))) else {
                    continue;
                };
                let age = before.response.map_or(Duration::MAX, |it| call.request.time.saturating_sub(it.time));
                let is_fresh = age < Duration::from_millis(ttl) / 2;
                let changed = connection.messages.iter().any(|it| {
                    let is_change = it.method().is_some_and(|it| it.ends_with("/list_changed"));
                    it.is_from_server() && is_change && it.place > before.request.place && it.place < call.request.place
                });
                let is_first = seen.insert(key);
                let found = || format!("another request after {} ms of {ttl} ms", age.as_millis());
                j.check_at(!is_fresh || changed || !is_first, Some(method), call.places(), found);
            }
        }
    }
    j.untested("no list was requested twice");
}
