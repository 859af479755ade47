//! What the tasks of 2025-11-25 and of 2026-07-28 have in common.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::{Evidence, Judgement, Message};

/// How many random bits an id needs, about.
const LEAST_BITS: f64 = 60.0;

/// A task as the server described it.
#[derive(Clone, Copy)]
pub(super) struct Seen<'e> {
    pub(super) task: &'e Value,
    pub(super) message: &'e Message<'e>,
}

impl<'e> Seen<'e> {
    pub(super) fn id(&self) -> &'e str {
        self.task["taskId"].as_str().unwrap_or_default()
    }

    pub(super) fn status(&self) -> &'e str {
        self.task["status"].as_str().unwrap_or_default()
    }
}

/// Checks something of every task, at most one finding for each.
pub(super) fn each<'e>(
    seen: impl Iterator<Item = Seen<'e>>,
    j: &mut Judgement,
    holds: impl Fn(&Value) -> bool,
    found: impl Fn(&Value) -> String,
) {
    let mut wrong = BTreeSet::new();
    for it in seen {
        let holds = holds(it.task);
        if holds || wrong.insert(it.id()) {
            j.check_subject(holds, it.id(), it.message, || found(it.task));
        }
    }
    j.untested(NO_TASK);
}

/// Checks that the ids of tasks cannot be guessed where nothing else protects them.
pub(super) fn secret_ids(e: &Evidence<'_>, j: &mut Judgement, seen: Vec<Seen<'_>>) {
    if e.is_authorized() {
        return j.untested("each request is authorized");
    }
    let ids: BTreeSet<_> = seen.iter().filter_map(|it| it.task["taskId"].as_str()).collect();
    let guessable = guessable(&ids);
    let is_secret = |it: &Value| !it["taskId"].as_str().is_some_and(|id| guessable.contains(&id));
    each(seen.into_iter(), j, is_secret, |it| members(it, &["taskId"]));
}

/// Why nothing could be said of a task.
pub(super) const NO_TASK: &str = "no tool became a task; --allow-tool NAME allows one to be called";

/// The members of a value that matter to a check, for a report.
pub(super) fn members(value: &Value, names: &[&str]) -> String {
    let shown = names.iter().map(|name| match value.get(*name) {
        Some(value) => format!("`{name}: {}`", super::common::shown(value)),
        None => format!("no `{name}`"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

pub(super) fn is_ended(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

pub(super) fn is_status(status: &str) -> bool {
    is_ended(status) || matches!(status, "working" | "input_required")
}

/// Checks that a task that has ended keeps its status.
pub(super) fn is_final<'e>(seen: impl Iterator<Item = Seen<'e>>, j: &mut Judgement) {
    let mut all: Vec<_> = seen.collect();
    all.sort_by_key(|it| (it.message.time, it.message.place));
    let mut ended: HashMap<&str, &str> = HashMap::new();
    for it in all {
        match ended.get(it.id()) {
            Some(end) => {
                j.check_subject(it.status() == *end, it.id(), it.message, || format!("{:?} after {end:?}", it.status()))
            }
            None if is_ended(it.status()) => drop(ended.insert(it.id(), it.status())),
            None => {}
        }
    }
    j.untested("no task was seen again after its end");
}

/// Whether a value is a date with a time (ISO 8601).
pub(super) fn is_time(value: &Value) -> bool {
    let Some((date, rest)) = value.as_str().and_then(|text| text.split_at_checked(19)) else { return false };
    let is_like = |text: &str, pattern: &str| {
        text.len() == pattern.len()
            && text
                .bytes()
                .zip(pattern.bytes())
                .all(|(it, like)| if like == b'0' { it.is_ascii_digit() } else { it == like })
    };
    let zone = match rest.strip_prefix(['.', ',']) {
        Some(fraction) => fraction.trim_start_matches(|it: char| it.is_ascii_digit()),
        None => rest,
    };
    let is_zone = matches!(zone, "" | "Z" | "z")
        || zone
            .strip_prefix(['+', '-', '\u{2212}'])
            .is_some_and(|it| ["00:00", "0000", "00"].iter().any(|like| is_like(it, like)));
    is_like(date, "0000-00-00T00:00:00") && is_zone
}

/// The ids that can be guessed: what they do not have in common is short, or of few different characters.
fn guessable<'v>(ids: &BTreeSet<&'v str>) -> Vec<&'v str> {
    // The ends of a sorted set have the beginning that all have.
    let common = match (ids.first(), ids.last()) {
        (Some(first), Some(last)) if ids.len() > 1 => {
            first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count()
        }
        _ => 0,
    };
    ids.iter().filter(|id| bits(id.as_bytes().get(common..).unwrap_or_default()) < LEAST_BITS).copied().collect()
}

fn bits(id: &[u8]) -> f64 {
    let has = |class: fn(&u8) -> bool| id.iter().any(class);
    let (lower, upper) = (has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
    let is_hexadecimal = !(lower && upper) && id.iter().all(|it| it.is_ascii_hexdigit() || !it.is_ascii_alphanumeric());
    let letters = if is_hexadecimal { 6.0 } else { 26.0 };
    let size = 10.0 + letters * f64::from(u8::from(lower) + u8::from(upper));
    let count = id.iter().filter(|it| it.is_ascii_alphanumeric() || !it.is_ascii()).count();
    u32::try_from(count).map_or(f64::MAX, f64::from) * size.log2()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_and_counted_ids_can_be_guessed() {
        let guessed = |ids: &[&'static str]| guessable(&ids.iter().copied().collect()).len();
        assert_eq!(guessed(&["786512e2-9e0d-44bd-8f29-789f320fe840"]), 0);
        assert_eq!(guessed(&["0198f2c4-1234-7abc-8f29-789f320fe840", "0198f2c4-1234-7abd-9f29-a89f320fe841"]), 0);
        assert_eq!(guessed(&["task-1"]), 1);
        assert_eq!(guessed(&["job-0000000000000000000001", "job-0000000000000000000002"]), 2);
    }

    #[test]
    fn times_are_iso_8601() {
        for time in ["2025-11-25T10:30:00Z", "2025-11-25T10:30:00.123456+00:00", "2025-11-25T10:30:00"] {
            assert!(is_time(&json!(time)), "{time}");
        }
        for time in [json!("yesterday"), json!(1_764_000_000), json!("2025-11-25"), json!("2025-11-25 10:30:00")] {
            assert!(!is_time(&time), "{time}");
        }
    }
}
