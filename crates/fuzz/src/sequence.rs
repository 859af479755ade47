//! Two calls: a value in the result of one tool is an argument of the next.

use serde_json::Value as Json;

use crate::target::Target;

/// How many items of an array are looked at, and how deep.
const ITEMS: usize = 3;
const DEPTH: usize = 5;
/// How many values of one result are taken.
const VALUES: usize = 50;
/// The longest text that is taken.
const LONGEST: usize = 200;

/// A call that comes before another.
#[derive(Clone, Debug)]
pub(crate) struct Before<'t> {
    pub(crate) target: &'t Target,
    pub(crate) input: Json,
}

/// A value with the name that it has in the result of a call.
#[derive(Clone, Debug)]
pub(crate) struct Offer<'t> {
    pub(crate) name: String,
    pub(crate) value: Json,
    pub(crate) before: Before<'t>,
}

/// The texts and numbers in the structured content of a result, or in texts that are JSON, which the input did not have.
pub(crate) fn offers<'t>(target: &'t Target, input: &Json, result: &Json) -> Vec<Offer<'t>> {
    let mut found = Vec::new();
    collect("", &result["structuredContent"], DEPTH, &mut found);
    if found.is_empty() {
        let blocks = result["content"].as_array().into_iter().flatten();
        let texts = blocks.filter_map(|block| serde_json::from_str::<Json>(block["text"].as_str()?).ok());
        texts.for_each(|json| collect("", &json, DEPTH, &mut found));
    }
    let sent = input.to_string();
    let is_new = |value: &Json| !sent.contains(&value.to_string());
    let before = || Before { target, input: input.clone() };
    let new = found.into_iter().filter(|(_, value)| is_new(value)).take(VALUES);
    new.map(|(name, value)| Offer { name, value, before: before() }).collect()
}

fn collect(name: &str, value: &Json, depth: usize, found: &mut Vec<(String, Json)>) {
    match value {
        _ if depth == 0 => {}
        Json::Object(members) => members.iter().for_each(|(name, member)| collect(name, member, depth - 1, found)),
        Json::Array(items) => items.iter().take(ITEMS).for_each(|item| collect(name, item, depth - 1, found)),
        Json::String(text) if text.len() > LONGEST || name.is_empty() => {}
        Json::String(_) | Json::Number(_) if !name.is_empty() => found.push((name.to_owned(), value.clone())),
        _ => {}
    }
}
