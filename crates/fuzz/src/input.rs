//! The inputs of a target.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Value as Json, json};

use crate::{hostile, target::Target};
use rehearse_document::json_schema::{
    self, Validator, View,
    example::{self, Filler},
    instances::Instances,
};
use rehearse_report::fuzz::{InputKind, TargetKind};

/// How many inputs at the borders there are at most.
const BORDERS: usize = 400;
/// How many of them come before the other kinds.
const FIRST: usize = 50;
/// How many instances are drawn for one random input, until one is valid.
const DRAWS: usize = 20;
/// The deepest value that is wrapped around another.
const DEEP: usize = 60;
/// What optional members have.
const USUAL: Filler = Filler { text: "test", number: 1.0, is_short: false, flag: true, any: "test" };
/// How many items a wide value has.
const WIDE: usize = 2_000;

/// The inputs of a target, always the same ones for a seed: usual ones, at the borders, with one rule broken, hostile, then
/// random without end.
pub struct Inputs<'t> {
    target: &'t Target,
    validator: Option<Arc<Validator>>,
    first: Box<dyn Iterator<Item = (InputKind, Json)> + Send + 't>,
    random: Instances<'t>,
    seen: HashSet<String>,
    /// How many random ones there were.
    count: usize,
}

/// The inputs of a target. `is_hostile`: with texts that programs often mishandle.
pub fn inputs(target: &Target, seed: u64, is_hostile: bool) -> Inputs<'_> {
    let schema = &target.schema;
    let validator = json_schema::compile(schema).ok().map(Arc::new);
    let of_kind = |kind: InputKind| move |input: Json| (kind, input);
    let borders = || {
        let validator = validator.clone();
        let accepts = move |value: &Json| validator.as_ref().is_none_or(|it| it.is_valid(value));
        let all = Instances::new(View::new(schema), seed).take(BORDERS);
        all.filter(move |it| it.is_object() && accepts(it)).map(of_kind(InputKind::Border))
    };
    // Each kind is made when its turn comes: there may be thousands of targets.
    let valid = target.usual.iter().cloned().map(of_kind(InputKind::Valid));
    let broken = target.usual.iter().flat_map(|usual| broken(schema, usual)).map(of_kind(InputKind::Broken));
    let hostile = target.usual.iter().filter(move |_| is_hostile).flat_map(|usual| {
        let whole = whole(schema, usual);
        with_texts(usual, &Json::Null).into_iter().chain(with_texts(&whole, usual))
    });
    let first = valid.chain(borders().take(FIRST)).chain(target.own.iter().cloned()).chain(broken);
    let first = first.chain(hostile.map(of_kind(InputKind::Hostile))).chain(borders().skip(FIRST));
    Inputs {
        target,
        validator,
        first: Box::new(first.filter(|(_, input)| target.can_send(input))),
        random: Instances::new(View::new(schema), seed.wrapping_add(1)),
        seen: HashSet::new(),
        count: 0,
    }
}

impl Inputs<'_> {
    /// Whether the server declares that the input is right; `None` if nothing says so.
    pub(crate) fn is_valid(&self, input: &Json) -> Option<bool> {
        match self.target.id.kind {
            TargetKind::Resource | TargetKind::List => self.target.usual.contains(input).then_some(true),
            // Whatever the schema says, arguments are an object.
            _ if !input.is_object() => Some(false),
            _ => self.validator.as_ref().map(|it| it.is_valid(input)),
        }
    }
}

impl Iterator for Inputs<'_> {
    type Item = (InputKind, Json);

    fn next(&mut self) -> Option<(InputKind, Json)> {
        for (kind, input) in self.first.by_ref() {
            if self.seen.insert(input.to_string()) {
                return Some((kind, input));
            }
        }
        let (target, validator) = (self.target, self.validator.as_deref());
        let mut drawn = self.random.by_ref().take(DRAWS).filter(|it| target.can_send(it));
        let found = drawn.find(|it| it.is_object() && validator.is_none_or(|validator| validator.is_valid(it)));
        let usual = target.usual.first();
        let found = found.or_else(|| usual.cloned()).unwrap_or_else(|| json!({}));
        self.count += 1;
        let one =
            usual.filter(|_| self.count.is_multiple_of(2)).and_then(|usual| with_one(usual, &found, self.count / 2));
        Some((InputKind::Random, one.unwrap_or(found)))
    }
}

/// The usual input with one member of another: what is wrong everywhere else would hide a bug.
fn with_one(usual: &Json, other: &Json, number: usize) -> Option<Json> {
    let other = other.as_object()?;
    let (name, value) = other.iter().nth(number.checked_rem(other.len())?)?;
    let mut changed = usual.as_object()?.clone();
    changed.insert(name.clone(), value.clone());
    Some(changed.into())
}

/// The same input with one rule of the schema broken: a required member is missing, a type is another, a value is outside
/// of its limits or its list, there is a member too many.
fn broken(schema: &Json, usual: &Json) -> Vec<Json> {
    let Some(usual) = usual.as_object() else { return Vec::new() };
    let mut found = vec![json!({ "an unknown argument": "a" })];
    let with = |name: &str, value: Json| {
        let mut changed = usual.clone();
        changed.insert(name.to_owned(), value);
        Json::from(changed)
    };
    found.push(with("an unknown argument", json!("a")));
    for name in usual.keys() {
        let mut less = usual.clone();
        less.shift_remove(name);
        found.push(less.into());
    }
    for (name, schema) in View::new(schema).properties() {
        let json = schema.json();
        for other in
            [json!(null), json!(true), json!("text"), json!(""), json!(-1), json!(0), json!(1.5), json!([]), json!({})]
        {
            found.push(with(name, other));
        }
        let number = |keyword: &str| schema.number(keyword);
        for (keyword, step) in
            [("minimum", -1.0), ("maximum", 1.0), ("exclusiveMinimum", 0.0), ("exclusiveMaximum", 0.0)]
        {
            found.extend(number(keyword).map(|limit| with(name, number_of(limit + step))));
        }
        for (keyword, longer) in [("minLength", false), ("maxLength", true)] {
            let length = schema.count(keyword).map(|it| if longer { it + 1 } else { it.saturating_sub(1) });
            found.extend(length.filter(|it| *it <= WIDE * 100).map(|it| with(name, json!("a".repeat(it)))));
        }
        if json.get("enum").is_some() {
            found.push(with(name, json!("not in the list")));
        }
        let kinds: Vec<_> = schema.types().into_iter().map(json_schema::Type::as_str).collect();
        if kinds.contains(&"array") {
            found.push(with(name, json!([null])));
            found.push(with(name, vec![json!("a"); WIDE].into()));
        }
        if kinds.contains(&"object") || kinds.contains(&"array") {
            let deep = (0..DEEP).fold(json!("a"), |inner, _| json!({ "a": inner }));
            found.push(with(name, deep));
        }
        let numbers = match () {
            () if kinds.contains(&"number") => {
                vec![i64::MAX.into(), i64::MIN.into(), json!(1e300), json!(-0.0), json!(1e-300)]
            }
            // A whole number as clients write it: without a fraction and an exponent. A format may have narrower limits.
            () if kinds.contains(&"integer") && json.get("format").is_none() => vec![i64::MAX.into(), i64::MIN.into()],
            () => Vec::new(),
        };
        found.extend(numbers.into_iter().map(|number| with(name, number)));
    }
    found
}

/// The number as people write it.
fn number_of(number: f64) -> Json {
    // Only whole numbers that a float holds exactly.
    if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
}

/// The same input with its optional members, too.
fn whole(schema: &Json, usual: &Json) -> Json {
    let mut whole = usual.as_object().cloned().unwrap_or_default();
    for (name, schema) in View::new(schema).properties() {
        if !whole.contains_key(name) {
            whole.insert(name.to_owned(), example::value(schema, &USUAL));
        }
    }
    whole.into()
}

/// The same input with each hostile text in place of each text that another input does not have.
fn with_texts(usual: &Json, other: &Json) -> Vec<Json> {
    let mut pointers = Vec::new();
    texts_in(usual, String::new(), &mut pointers);
    pointers.retain(|pointer| other.pointer(pointer).is_none());
    let mut found = Vec::new();
    for text in hostile::texts() {
        for pointer in &pointers {
            let mut changed = usual.clone();
            if let Some(place) = changed.pointer_mut(pointer) {
                *place = text.as_str().into();
                found.push(changed);
            }
        }
    }
    found
}

/// The pointers of the texts in a value.
fn texts_in(value: &Json, at: String, found: &mut Vec<String>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Json::String(_) => found.push(at),
        Json::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| texts_in(item, format!("{at}/{index}"), found));
        }
        Json::Object(members) => {
            members.iter().for_each(|(key, member)| texts_in(member, format!("{at}/{}", escaped(key)), found));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_has_no_exponent_and_a_number_may_have_one() {
        let sent = |kind: &str| {
            let schema = json!({ "type": "object", "properties": { "n": { "type": kind } }, "required": ["n"] });
            let target = Target::tool(&json!({ "name": "a", "inputSchema": schema }), json!({ "n": 1 }), None);
            let sent = inputs(&target, 1, true).take(500).map(|(_, input)| input["n"].clone());
            sent.filter(Json::is_f64).map(|number| number.to_string()).collect::<HashSet<_>>()
        };
        assert!(!sent("integer").iter().any(|number| number.contains('e')), "{:?}", sent("integer"));
        assert!(sent("number").contains("1e300") || sent("number").contains("1e+300"), "{:?}", sent("number"));
    }
}
