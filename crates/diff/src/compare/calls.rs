//! The changes of recorded calls with the same arguments.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use serde_json::Value as Json;

use super::{Changes, Subject};
use crate::RecordedCall;
use rehearse_report::diff::{Change, Class};

/// What has changed in the outcomes of calls that both recordings have, worst first: a change for each item and rule. A
/// call whose outcome is not the same throughout a recording is not compared.
pub fn compare_calls(old: &[RecordedCall], new: &[RecordedCall]) -> Vec<Change> {
    let (mut before, after) = (outcomes(old), outcomes(new));
    let mut found: BTreeMap<_, (usize, &RecordedCall)> = BTreeMap::new();
    for call in old {
        let (Some(Some(before)), Some(Some(after))) = (before.remove(&key(call)), after.get(&key(call))) else {
            continue;
        };
        let (class, rule, what) = match (before, *after) {
            (Outcome::Failed, Outcome::Failed) => continue,
            (_, Outcome::Failed) => (Class::Breaking, "call.fails", "worked before and has an error now"),
            (Outcome::Failed, _) => (Class::Behaviour, "call.works", "had an error before and works now"),
            (Outcome::Structured, Outcome::Text) => {
                (Class::Breaking, "call.structure-removed", "has no structured content any more")
            }
            (Outcome::Text, Outcome::Structured) => {
                (Class::Addition, "call.structure-added", "has structured content now")
            }
            _ => continue,
        };
        let change = (Reverse(class), call.list.noun(), &call.name, rule, what);
        found.entry(change).or_insert((0, call)).0 += 1;
    }
    let mut changes = Changes::default();
    for ((Reverse(class), noun, name, rule, what), (count, call)) in found {
        let subject = Subject { name: format!("{noun} {name}"), old: None, new: None };
        let others = if count == 1 { String::new() } else { format!(" (and {} more of it)", count - 1) };
        changes.push(class, rule, subject, format!("A recorded call {what}{others}."));
        changes.found.iter_mut().rev().take(1).for_each(|change| change.instance = Some(call.arguments.clone()));
    }
    changes.found
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Failed,
    /// A result without structured content.
    Text,
    Structured,
}

/// The item and the arguments of a call.
type Key<'c> = (&'static str, &'c str, &'c Json);

fn key(call: &RecordedCall) -> Key<'_> {
    (call.list.noun(), &call.name, &call.arguments)
}

/// Each call with its outcome; `None` if the same call had different ones.
fn outcomes(calls: &[RecordedCall]) -> HashMap<Key<'_>, Option<Outcome>> {
    let mut outcomes = HashMap::new();
    for call in calls {
        let outcome = Some(match (call.has_succeeded, call.has_structured_content) {
            (false, _) => Outcome::Failed,
            (true, false) => Outcome::Text,
            (true, true) => Outcome::Structured,
        });
        let known = outcomes.entry(key(call)).or_insert(outcome);
        *known = known.filter(|known| Some(*known) == outcome);
    }
    outcomes
}
