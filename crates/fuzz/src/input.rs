//! The inputs of a tool.

use std::collections::HashSet;

use serde_json::{Map, Value as Json, json};

use crate::hostile;
use rehearse_document::json_schema::{self, Validator, View, instances::Instances};
use rehearse_report::fuzz::InputKind;

/// How many inputs at the borders there are at most.
const BORDERS: usize = 400;
/// How many of them come before the other kinds.
const FIRST: usize = 50;
/// How many instances are drawn for one random input, until one is valid.
const DRAWS: usize = 20;
/// The deepest value that is wrapped around another.
const DEEP: usize = 60;
/// How many items a wide value has.
const WIDE: usize = 2_000;

/// The inputs of a tool, always the same ones for a seed: at the borders, with one rule broken, hostile, then random
/// without end.
pub struct Inputs<'s> {
    validator: Option<Validator>,
    first: std::vec::IntoIter<(InputKind, Json)>,
    random: Instances<'s>,
    seen: HashSet<String>,
}

/// The inputs of a tool with this schema. `example` is an input that is known to work; `is_hostile`: with texts that
/// programs often mishandle.
pub fn inputs<'s>(schema: &'s Json, example: Option<&Json>, seed: u64, is_hostile: bool) -> Inputs<'s> {
    let validator = json_schema::compile(schema).ok();
    let accepts = |value: &Json| validator.as_ref().is_none_or(|it| it.is_valid(value));
    let mut first: Vec<_> = example.map(|it| (InputKind::Valid, it.clone())).into_iter().collect();
    let usual = example.cloned().unwrap_or_else(|| json_schema::example::object(schema).into());
    first.push((InputKind::Valid, usual.clone()));
    let borders = Instances::new(View::new(schema), seed).take(BORDERS).filter(|it| it.is_object() && accepts(it));
    let mut borders = borders.map(|it| (InputKind::Border, it));
    first.extend(borders.by_ref().take(FIRST));
    first.extend(broken(schema, &usual).into_iter().map(|it| (InputKind::Broken, it)));
    if is_hostile {
        first.extend(with_texts(&usual).into_iter().map(|it| (InputKind::Hostile, it)));
    }
    first.extend(borders);
    Inputs {
        validator,
        first: first.into_iter(),
        random: Instances::new(View::new(schema), seed.wrapping_add(1)),
        seen: HashSet::new(),
    }
}

impl Inputs<'_> {
    /// Whether the schema accepts arguments.
    pub(crate) fn is_valid(&self, arguments: &Json) -> Option<bool> {
        self.validator.as_ref().map(|it| it.is_valid(arguments))
    }
}

impl Iterator for Inputs<'_> {
    type Item = (InputKind, Json);

    fn next(&mut self) -> Option<(InputKind, Json)> {
        for (kind, arguments) in self.first.by_ref() {
            if self.seen.insert(arguments.to_string()) {
                return Some((kind, arguments));
            }
        }
        let validator = self.validator.as_ref();
        let mut drawn = self.random.by_ref().take(DRAWS).filter(Json::is_object);
        let found = drawn.find(|it| validator.is_none_or(|validator| validator.is_valid(it)));
        Some((InputKind::Random, found.unwrap_or_else(|| json!({}))))
    }
}

/// The same input with one rule of the schema broken: a required member is missing, a type is another, a value is outside
/// of its limits or its list, there is a member too many.
fn broken(schema: &Json, usual: &Json) -> Vec<Json> {
    let Some(usual) = usual.as_object() else { return Vec::new() };
    let mut found = vec![json!({ "an unknown argument": 1 })];
    let with = |name: &str, value: Json| {
        let mut changed = usual.clone();
        changed.insert(name.to_owned(), value);
        Json::from(changed)
    };
    found.push(with("an unknown argument", json!(1)));
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
        if kinds.iter().any(|it| matches!(*it, "integer" | "number")) {
            for number in [i64::MAX.into(), i64::MIN.into(), json!(1e300), json!(-0.0), json!(1e-300)] {
                found.push(with(name, number));
            }
        }
    }
    found
}

/// The number as people write it.
fn number_of(number: f64) -> Json {
    // Only whole numbers that a float holds exactly.
    if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
}

/// The same input with each hostile text in place of each text.
fn with_texts(usual: &Json) -> Vec<Json> {
    let mut pointers = Vec::new();
    texts_in(usual, String::new(), &mut pointers);
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

/// The arguments as a call needs them.
pub(crate) fn members(arguments: &Json) -> Map<String, Json> {
    arguments.as_object().cloned().unwrap_or_default()
}
