//! Cache hints of 2026-07-28.

use rehearse_protocol::List;

use serde_json::Value;

use super::Judge;
use super::common::{is_integer, is_one_of, readings, results, shown};
use super::query::{Parts, Query};
use crate::{Evidence, Judgement};

/// A year in milliseconds.
const YEAR: f64 = 365.0 * 24.0 * 3600.0 * 1000.0;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("cache.hints.discover", |e, j| both_hints(e, j, "server/discover")),
    ("cache.hints.tools-list", |e, j| both_hints(e, j, "tools/list")),
    ("cache.hints.prompts-list", |e, j| both_hints(e, j, "prompts/list")),
    ("cache.hints.resources-list", |e, j| both_hints(e, j, "resources/list")),
    ("cache.hints.templates-list", |e, j| both_hints(e, j, "resources/templates/list")),
    ("cache.hints.resources-read", |e, j| both_hints(e, j, "resources/read")),
    ("cache.ttl.integer", |e, j| each(e, j, "ttlMs", is_integer)),
    ("cache.ttl.non-negative", |e, j| each(e, j, "ttlMs", |ttl| ttl.as_f64().is_none_or(|number| number >= 0.0))),
    ("cache.ttl.sane", |e, j| each(e, j, "ttlMs", |ttl| ttl.as_f64().is_none_or(|number| number <= YEAR))),
    ("cache.scope.enum", |e, j| each(e, j, "cacheScope", |scope| is_one_of(scope, &["public", "private"]))),
    ("cache.scope.same-on-all-pages", |e, j| {
        for method in List::ALL.map(List::method) {
            for reading in readings(e, method).iter().filter(|reading| reading.pages.len() > 1) {
                let Some(first) = reading.pages.first().map(|(_, result)| &result["cacheScope"]) else { continue };
                for (call, result) in &reading.pages {
                    let scope = &result["cacheScope"];
                    let found = || format!("{} after {} on the first page", shown(scope), shown(first));
                    j.check_at(scope == first, Some(method), call.places(), found);
                }
            }
        }
    }),
    ("cache.input-required.no-hints", |e, j| {
        results(e).having(is_input_required).must(j, |it| !has_hint(it), |_| "a cache hint")
    }),
    ("cache.no-hints.legacy", |e, j| results(e).must(j, |it| !has_hint(it), |_| "a cache hint")),
];

fn is_input_required(result: &Value) -> bool {
    result["resultType"] == "input_required"
}

fn has_hint(result: &Value) -> bool {
    result.get("ttlMs").is_some() || result.get("cacheScope").is_some()
}

fn both_hints(e: &Evidence<'_>, j: &mut Judgement, method: &str) {
    let missing = |result: &Value| {
        let missing: Vec<_> = ["ttlMs", "cacheScope"].into_iter().filter(|key| result.get(key).is_none()).collect();
        (!missing.is_empty()).then(|| format!("no `{}`", missing.join("` and no `")))
    };
    // What a case asks for may be of another version.
    let of_method = results(e).filter(|(call, _)| call.method() == method);
    of_method.having(|result| !is_input_required(result)).must_not(j, missing);
}

fn each(e: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value) -> bool) {
    // The `ttlMs` of a task is its time to live.
    let values = results(e).having(|result| result.get("taskId").is_none()).member(key);
    values.must(j, holds, |value| format!("`{key}: {}`", shown(value)));
}
