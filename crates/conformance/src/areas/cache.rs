//! Cache hints of 2026-07-28.

use serde_json::Value;

use super::{
    Judge,
    common::{LISTS, readings, results, shown},
};
use crate::{Case, Evidence, Judgement, Material};

/// A year in milliseconds.
const YEAR: f64 = 365.0 * 24.0 * 3600.0 * 1000.0;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("cache.hints.discover", |e, j| both_hints(e, j, "server/discover")),
    ("cache.hints.tools-list", |e, j| both_hints(e, j, "tools/list")),
    ("cache.hints.prompts-list", |e, j| both_hints(e, j, "prompts/list")),
    ("cache.hints.resources-list", |e, j| both_hints(e, j, "resources/list")),
    ("cache.hints.templates-list", |e, j| both_hints(e, j, "resources/templates/list")),
    ("cache.hints.resources-read", |e, j| both_hints(e, j, "resources/read")),
    ("cache.ttl.integer", |e, j| each(e, j, "ttlMs", |ttl| ttl.as_f64().is_some_and(|number| number.fract() == 0.0))),
    ("cache.ttl.non-negative", |e, j| each(e, j, "ttlMs", |ttl| ttl.as_f64().is_none_or(|number| number >= 0.0))),
    ("cache.ttl.sane", |e, j| each(e, j, "ttlMs", |ttl| ttl.as_f64().is_none_or(|number| number <= YEAR))),
    ("cache.scope.enum", |e, j| each(e, j, "cacheScope", |scope| scope == "public" || scope == "private")),
    ("cache.scope.same-on-all-pages", same_scope),
    ("cache.input-required.no-hints", no_hints_on_input),
    ("cache.no-hints.legacy", no_hints),
];

pub(super) fn cases(_: &Material) -> Vec<Case> {
    Vec::new()
}

fn is_input_required(result: &Value) -> bool {
    result["resultType"] == "input_required"
}

fn both_hints(evidence: &Evidence<'_>, j: &mut Judgement, method: &str) {
    // What a case asks for may be of another version.
    let of_method = results(evidence).filter(|(call, _)| call.method() == method);
    for (call, result) in of_method.filter(|(_, result)| !is_input_required(result)) {
        let missing: Vec<_> = ["ttlMs", "cacheScope"].into_iter().filter(|key| result.get(key).is_none()).collect();
        j.check_at(missing.is_empty(), None, call.places(), || format!("no `{}`", missing.join("` and no `")));
    }
}

fn each(evidence: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value) -> bool) {
    // The `ttlMs` of a task is its time to live.
    for (call, result) in results(evidence).filter(|(_, result)| result.get("taskId").is_none()) {
        if let Some(value) = result.get(key) {
            j.check_at(holds(value), None, call.places(), || format!("`{key}: {}`", shown(value)));
        }
    }
}

fn same_scope(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (method, ..) in LISTS {
        for reading in readings(evidence, method).iter().filter(|reading| reading.pages.len() > 1) {
            let Some(first) = reading.pages.first().map(|(_, result)| &result["cacheScope"]) else { continue };
            for (call, result) in &reading.pages {
                let scope = &result["cacheScope"];
                j.check_at(scope == first, Some(method.to_owned()), call.places(), || {
                    format!("{} after {} on the first page", shown(scope), shown(first))
                });
            }
        }
    }
}

fn no_hints_on_input(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (call, result) in results(evidence).filter(|(_, result)| is_input_required(result)) {
        let has_hint = result.get("ttlMs").is_some() || result.get("cacheScope").is_some();
        j.check_at(!has_hint, None, call.places(), || "a cache hint".to_owned());
    }
}

fn no_hints(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (call, result) in results(evidence) {
        let has_hint = result.get("ttlMs").is_some() || result.get("cacheScope").is_some();
        j.check_at(!has_hint, None, call.places(), || "a cache hint".to_owned());
    }
}
