//! Values that one schema accepts and another refuses.

use serde_json::Value as Json;

use rehearse_document::json_schema::{
    Validator, View, compile_with_formats,
    instances::Instances,
    refusal::{Refusal, refusals},
};
use rehearse_report::diff::Class;

use super::{
    Direction, SchemaChange,
    draft::{Cause, Draft},
    rules::Effect,
    shape::is_same,
};

/// The number of values that are generated, in each direction.
const BUDGET: usize = 1_000;
/// How many of them are for changes whose form shows what they do.
const SMALL_BUDGET: usize = 200;
/// How many smaller values are tried for one that has been found.
const SHRINKING: usize = 200;
const SEED: u64 = 0;
/// The depth of the values. A schema that refers to itself several times takes longer with each level by a factor.
const DEEPEST: usize = 7;

/// A schema and its validator, which checks formats, too.
struct Side<'s> {
    json: &'s Json,
    validator: Validator,
}

impl<'s> Side<'s> {
    fn new(json: &'s Json) -> Option<Self> {
        static ANYTHING: Json = Json::Bool(true);
        let json = if json.is_null() { &ANYTHING } else { json };
        Some(Side { json, validator: compile_with_formats(json).ok()? })
    }
}

/// Makes changes of drafts: with the values that show what they do, if it is bad or unclear.
pub(super) fn conclude(drafts: Vec<Draft>, old: &Json, new: &Json, direction: Direction) -> Vec<SchemaChange> {
    let needs_value = |draft: &Draft| draft.class == Class::Breaking && draft.effect != Effect::None;
    let sides = if drafts.iter().any(needs_value) { Side::new(old).zip(Side::new(new)) } else { None };
    let is_single = drafts.iter().filter(|draft| draft.effect != Effect::None).count() == 1;
    let mut found: Vec<Option<(Json, Class)>> = vec![None; drafts.len()];
    if let Some((old, new)) = &sides {
        let causes = |is_wanted: &dyn Fn(&Draft) -> bool, by_new: bool| -> Vec<_> {
            let wanted = drafts.iter().enumerate().filter(|(_, draft)| is_wanted(draft));
            wanted.map(|(index, it)| (index, it, if by_new { &it.new_cause } else { &it.old_cause })).collect()
        };
        let is_input = direction == Direction::Input;
        let (source, target) = if is_input { (old, new) } else { (new, old) };
        for (index, value) in search(source, target, causes(&needs_value, is_input), is_single) {
            found[index] = Some((value, Class::Breaking));
        }
        let is_unclear: Vec<_> =
            drafts.iter().zip(&found).map(|(it, found)| found.is_none() && it.effect == Effect::Unclear).collect();
        let unclear: Vec<_> =
            causes(&needs_value, !is_input).into_iter().filter(|(index, ..)| is_unclear[*index]).collect();
        for (index, value) in search(target, source, unclear, is_single) {
            found[index] = Some((value, Class::Addition));
        }
    }
    let change = |(mut draft, found): (Draft, Option<(Json, Class)>)| {
        if let Some((_, class)) = &found {
            draft.class = *class;
            draft.is_certain = true;
        }
        let is_possible = draft.class == Class::Breaking && (!draft.is_certain || draft.is_doubtful);
        if is_possible && draft.reason.is_none() {
            draft.reason = Some(match sides {
                Some(_) => format!("possibly breaking, none of {BUDGET} generated values shows it"),
                None => "possibly breaking, no value can show it".to_owned(),
            });
        }
        SchemaChange {
            class: draft.class,
            is_possible,
            rule: draft.rule.id,
            message: draft.sentence(direction),
            old: draft.old,
            new: draft.new,
            instance: found.map(|(value, _)| value),
        }
    };
    drafts.into_iter().zip(found).map(change).collect()
}

/// The smallest values that `source` accepts, and `target` refuses because of these changes.
fn search<'d>(
    source: &Side<'_>,
    target: &Side<'_>,
    mut wanted: Vec<(usize, &'d Draft, &'d Cause)>,
    is_single: bool,
) -> Vec<(usize, Json)> {
    let mut found = Vec::new();
    // The borders of both schemas are of interest.
    let own = Instances::new(View::new(source.json), SEED).take(BUDGET / 2);
    let other = Instances::new(View::new(target.json), SEED).take(BUDGET / 2);
    for (index, value) in interleave(own, other).enumerate() {
        if index == SMALL_BUDGET {
            wanted.retain(|(_, draft, _)| !draft.is_certain);
        }
        if wanted.is_empty() {
            break;
        }
        if !is_shallow(&value, DEEPEST) || !source.validator.is_valid(&value) || target.validator.is_valid(&value) {
            continue;
        }
        let refused = refusals(&target.validator, &value);
        wanted.retain(|(index, _, cause)| {
            if !is_single && !refused.iter().any(|it| explains(cause, it)) {
                return true;
            }
            let shows = |value: &Json| {
                source.validator.is_valid(value)
                    && !target.validator.is_valid(value)
                    && (is_single || refusals(&target.validator, value).iter().any(|it| explains(cause, it)))
            };
            found.push((*index, shrink(value.clone(), shows)));
            false
        });
    }
    found
}

fn is_shallow(value: &Json, depth: usize) -> bool {
    let Some(below) = depth.checked_sub(1) else { return false };
    match value {
        Json::Array(items) => items.iter().all(|item| is_shallow(item, below)),
        Json::Object(members) => members.values().all(|member| is_shallow(member, below)),
        _ => true,
    }
}

fn interleave(a: impl Iterator<Item = Json>, b: impl Iterator<Item = Json>) -> impl Iterator<Item = Json> {
    a.zip(b).flat_map(|(a, b)| [a, b])
}

/// Whether a value is refused because of a change.
fn explains(cause: &Cause, refusal: &Refusal) -> bool {
    let below = refusal.keyword.strip_prefix(&cause.pointer);
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        && cause.property.as_ref().is_none_or(|name| refusal.properties.contains(name))
        && (cause.values.is_empty() || cause.values.iter().any(|value| is_same(value, &refusal.value)))
}

/// Removes what is not needed for a property of a value.
fn shrink(mut value: Json, holds: impl Fn(&Json) -> bool) -> Json {
    let mut tries = SHRINKING;
    loop {
        let candidates = smaller(&value);
        let Some(index) = candidates.iter().take(tries).position(&holds) else { return value };
        tries -= index + 1;
        value = candidates.into_iter().nth(index).unwrap_or_default();
    }
}

/// The values with one member or item less, or half of a text.
fn smaller(value: &Json) -> Vec<Json> {
    let mut found = Vec::new();
    match value {
        Json::Object(members) => {
            for key in members.keys() {
                let mut fewer = members.clone();
                fewer.shift_remove(key);
                found.push(fewer.into());
            }
            for (key, member) in members {
                found.extend(smaller(member).into_iter().map(|member| {
                    let mut members = members.clone();
                    members.insert(key.clone(), member);
                    Json::Object(members)
                }));
            }
        }
        Json::Array(items) => {
            for index in 0..items.len() {
                let mut fewer = items.clone();
                fewer.remove(index);
                found.push(fewer.into());
            }
            for (index, item) in items.iter().enumerate() {
                found.extend(smaller(item).into_iter().map(|item| {
                    let mut items = items.clone();
                    items[index] = item;
                    Json::Array(items)
                }));
            }
        }
        Json::String(text) if text.chars().count() > 1 => {
            found.push(text.chars().take(text.chars().count() / 2).collect::<String>().into());
        }
        _ => {}
    }
    found
}
