//! Values for a JSON Schema, for tests: those at its borders first, then mixed ones.

use std::collections::VecDeque;

use serde_json::{Map, Number, Value as Json, json};

use super::{Type, View, formats, pattern};
use crate::seeded_rng::SeededRng;

/// The depth at which recursive schemas are cut.
const DEEPEST: usize = 32;
/// The number of values in one instance, after which only what is required is added.
const MAX_VALUES: usize = 300;
/// How many values an instance has at most, even if it is not valid then.
const LARGEST: usize = 4 * MAX_VALUES;
/// The number of scripts that wait.
const MAX_SCRIPTS: usize = 4_000;
/// The maximum number of items and the greatest length, if the schema demands no more.
const MAX_ITEMS: usize = 64;
const MAX_LENGTH: usize = 1_024;
/// The number of texts for one pattern.
const PATTERN_TEXTS: usize = 6;
/// The greatest number of properties that no schema names, if it demands no more, and the name of the first.
const MAX_EXTRA: usize = 8;
const EXTRA: &str = "extra";

/// The instances of a schema, without end, always the same ones for a seed.
///
/// First come the least one (only what is required), the greatest one, and all that differ from the least in one place:
/// each listed value, type, branch of `anyOf` and `oneOf`, optional property, border of a limit, and in each of them
/// again what is below it. Then come random ones. Most of them are valid, but keywords such as `not` are left to the
/// validator: keep those that a [compiled](super::compile) schema accepts.
///
/// ```
/// use rehearse_document::json_schema::{View, instances::Instances};
/// use serde_json::json;
///
/// let schema = json!({
///     "type": "object",
///     "properties": { "query": { "type": "string" }, "limit": { "type": "integer", "minimum": 1, "maximum": 50 } },
///     "required": ["query"],
/// });
/// let instances: Vec<_> = Instances::new(View::new(&schema), 7).take(100).collect();
/// assert_eq!(instances[0], json!({ "query": "test" }));
/// assert!(instances.contains(&json!({ "query": "test", "limit": 50 })));
/// ```
#[derive(Debug)]
pub struct Instances<'s> {
    schema: View<'s>,
    scripts: VecDeque<Vec<usize>>,
    is_greatest_next: bool,
    rng: SeededRng,
}

impl<'s> Instances<'s> {
    /// The instances of a schema; a seed decides about the random ones.
    pub fn new(schema: View<'s>, seed: u64) -> Self {
        Instances { schema, scripts: VecDeque::from([Vec::new()]), is_greatest_next: false, rng: SeededRng::new(seed) }
    }

    /// The instance of a script, whose choices are followed by the first ones. Adds the scripts that make one more
    /// choice below the last.
    fn follow(&mut self, script: Vec<usize>) -> Json {
        let length = script.len();
        let mut draw = Draw::new(script, Rest::First);
        let value = draw.value(&[self.schema], 0);
        let above = length.checked_sub(1).and_then(|last| draw.choices.get(last)).map(|last| last.depth);
        for (index, choice) in draw.choices.iter().enumerate().skip(length) {
            if above.is_some_and(|above| choice.depth <= above) {
                break;
            }
            for picked in 1..choice.count {
                if self.scripts.len() < MAX_SCRIPTS {
                    let before = draw.choices[..index].iter().map(|choice| choice.picked);
                    self.scripts.push_back(before.chain([picked]).collect());
                }
            }
        }
        value
    }
}

impl Iterator for Instances<'_> {
    type Item = Json;

    fn next(&mut self) -> Option<Json> {
        if std::mem::take(&mut self.is_greatest_next) {
            return Some(Draw::new(Vec::new(), Rest::Last).value(&[self.schema], 0));
        }
        Some(match self.scripts.pop_front() {
            Some(script) => {
                self.is_greatest_next = script.is_empty();
                self.follow(script)
            }
            None => {
                let rng = SeededRng::new(self.rng.number());
                Draw::new(Vec::new(), Rest::Random(rng)).value(&[self.schema], 0)
            }
        })
    }
}

/// How an instance is drawn: by the choices that are made on the way.
struct Draw {
    script: Vec<usize>,
    choices: Vec<Choice>,
    rest: Rest,
    values: usize,
}

struct Choice {
    picked: usize,
    count: usize,
    /// Choices that follow from this one are deeper.
    depth: usize,
}

/// What is chosen after the script.
enum Rest {
    First,
    Last,
    Random(SeededRng),
}

impl Draw {
    fn new(script: Vec<usize>, rest: Rest) -> Self {
        Draw { script, choices: Vec::new(), rest, values: 0 }
    }

    /// Chooses one of `count`.
    fn choose(&mut self, count: usize, depth: usize) -> usize {
        let Some(last) = count.checked_sub(1).filter(|last| *last > 0) else { return 0 };
        let picked = match (self.script.get(self.choices.len()), &mut self.rest) {
            (Some(picked), _) => *picked,
            (None, Rest::First) => 0,
            (None, Rest::Last) => last,
            (None, Rest::Random(rng)) => usize::try_from(rng.number_up_to(last as u64)).unwrap_or_default(),
        };
        self.choices.push(Choice { picked, count, depth });
        picked.min(last)
    }

    /// The random numbers, for a value that is no border; in half of all cases.
    fn random(&mut self) -> Option<&mut SeededRng> {
        match &mut self.rest {
            Rest::Random(rng) => (rng.byte() < 128).then_some(rng),
            _ => None,
        }
    }

    /// Whether there is room for what is not required.
    fn has_room(&self, depth: usize) -> bool {
        depth < DEEPEST && self.values < MAX_VALUES
    }

    /// A value for which all these schemas hold.
    fn value(&mut self, schemas: &[View<'_>], mut depth: usize) -> Json {
        self.values += 1;
        if depth > 2 * DEEPEST || self.values > LARGEST {
            return Json::Null;
        }
        let mut parts = Vec::new();
        schemas.iter().for_each(|schema| self.expand(*schema, &mut depth, &mut parts));
        let parts = &parts[..];
        let mut choices = parts.iter().filter_map(|part| part.choices());
        if let Some(first) = choices.next() {
            let rest: Vec<_> = choices.collect();
            let common: Vec<_> = first.iter().filter(|it| rest.iter().all(|other| other.contains(it))).collect();
            return common.get(self.choose(common.len(), depth)).copied().cloned().unwrap_or_default();
        }
        let named = parts.iter().flat_map(|part| {
            let examples = part.list("examples").into_iter().flatten();
            [part.get("default"), part.get("example")].into_iter().flatten().chain(examples)
        });
        let named: Vec<_> = named.collect();
        if let Some(index) = self.choose(1 + named.len(), depth).checked_sub(1) {
            return named[index].clone();
        }
        depth += usize::from(!named.is_empty());
        if parts.iter().all(|part| part.json().as_object().is_none_or(Map::is_empty)) {
            return self.any(depth);
        }
        let types = types(parts);
        let picked = self.choose(types.len(), depth);
        depth += usize::from(types.len() > 1);
        match types.get(picked) {
            Some(Type::String) => self.text(parts, depth).into(),
            Some(Type::Integer) => self.number(parts, true, depth),
            Some(Type::Number) => self.number(parts, false, depth),
            Some(Type::Boolean) => (self.choose(2, depth) == 0).into(),
            Some(Type::Array) => self.array(parts, depth),
            Some(Type::Object) => self.object(parts, depth).into(),
            Some(Type::Null) | None => Json::Null,
        }
    }

    /// A value without a schema.
    fn any(&mut self, depth: usize) -> Json {
        if let Some(rng) = self.random() {
            return rng.number_in(-1_000, 1_000).into();
        }
        let all = [json!("test"), json!(1), json!(0.5), json!(true), json!(null), json!({}), json!([])];
        all[self.choose(all.len(), depth)].clone()
    }

    /// Adds a schema, and those in it that hold for the same value.
    fn expand<'s>(&mut self, schema: View<'s>, depth: &mut usize, parts: &mut Vec<View<'s>>) {
        if parts.len() > DEEPEST {
            return;
        }
        parts.push(schema);
        let own = |keyword: &str| schema.json().get(keyword);
        if let Some(referred) = own("$ref").and_then(Json::as_str).and_then(|it| schema.referred(it)) {
            self.expand(referred, depth, parts);
        }
        if own("allOf").is_some() {
            schema.schemas("allOf").into_iter().flatten().for_each(|part| self.expand(part, depth, parts));
        }
        for keyword in ["anyOf", "oneOf"].into_iter().filter(|it| own(it).is_some()) {
            let branches: Vec<_> = schema.schemas(keyword).into_iter().flatten().collect();
            let picked = self.choose(branches.len(), *depth);
            *depth += 1;
            if let Some(branch) = branches.get(picked) {
                self.expand(*branch, depth, parts);
            }
        }
        if own("if").is_some() {
            let holds = self.choose(2, *depth) == 0;
            *depth += 1;
            let keywords: &[&str] = if holds { &["if", "then"] } else { &["else"] };
            keywords.iter().filter_map(|it| schema.schema(it)).for_each(|part| self.expand(part, depth, parts));
        }
    }

    fn text(&mut self, parts: &[View<'_>], depth: usize) -> String {
        if let Some(pattern) = parts.iter().find_map(|part| part.text("pattern")) {
            let picked = self.choose(PATTERN_TEXTS, depth);
            let mut seeded = SeededRng::new(picked as u64);
            let rng = self.random().unwrap_or(&mut seeded);
            if let Some(text) = pattern::text(pattern, (picked > 0).then_some(rng)) {
                return text;
            }
        }
        let texts = parts.iter().find_map(|part| part.text("format")).map_or(&[][..], formats::texts);
        if !texts.is_empty() {
            return texts[self.choose(texts.len(), depth)].to_owned();
        }
        let least = greatest(parts, "minLength").unwrap_or_default().min(4 * MAX_LENGTH);
        let most = least_of(parts, "maxLength");
        let filled =
            |text: &str, length: usize| -> String { text.chars().chain(std::iter::repeat('x')).take(length).collect() };
        if let Some(rng) = self.random() {
            let high = most.unwrap_or(least + 16).clamp(least, least + MAX_LENGTH);
            let length = rng.number_in(least as i64, high as i64);
            return (0..length).filter_map(|_| char::from_u32(rng.number_in(32, 126) as u32)).collect();
        }
        let usual = 4.clamp(least, most.unwrap_or(usize::MAX).max(least));
        let mut texts = vec![filled("test", usual), filled("", least)];
        texts.extend(most.filter(|it| *it <= MAX_LENGTH).map(|it| filled("", it)));
        texts.extend(["é", "A-1 b"].map(|it| filled(it, it.chars().count().max(least))));
        let fits = |it: &String| most.is_none_or(|most| it.chars().count() <= most);
        texts.retain(fits);
        texts.dedup();
        let picked = self.choose(texts.len(), depth);
        texts.into_iter().nth(picked).unwrap_or_default()
    }

    fn number(&mut self, parts: &[View<'_>], is_whole: bool, depth: usize) -> Json {
        let step = if is_whole { 1.0 } else { 0.5 };
        let low = bound(parts, "minimum", "exclusiveMinimum", step, f64::max);
        let high = bound(parts, "maximum", "exclusiveMaximum", -step, f64::min);
        let (low, high) = match is_whole {
            true => (low.map(f64::ceil), high.map(f64::floor)),
            false => (low, high),
        };
        let unit = parts.iter().find_map(|part| part.number("multipleOf")).filter(|it| *it > 0.0);
        let nearest = |number: f64| match unit {
            Some(unit) => {
                let down = (number / unit).floor() * unit;
                if low.is_some_and(|low| down < low) { down + unit } else { down }
            }
            None => number,
        };
        let inside = |number: f64| number.max(low.unwrap_or(f64::MIN)).min(high.unwrap_or(f64::MAX));
        if let Some(rng) = self.random() {
            let (from, to) =
                (low.or(high.map(|it| it - 1e6)).unwrap_or(-1e6), high.or(low.map(|it| it + 1e6)).unwrap_or(1e6));
            let drawn = from + rng.fraction() * (to - from);
            return number_of(nearest(if is_whole { drawn.floor() } else { drawn }));
        }
        let usual = inside(unit.unwrap_or(1.0));
        let borders = [Some(usual), low, high, Some(0.0), Some(-1.0), Some(2.0), Some(3.0), Some(1e6)];
        let more = [unit.map(|it| it * 2.0), unit.map(|it| it * 3.0), (!is_whole).then_some(0.5)];
        let mut numbers: Vec<f64> = Vec::new();
        for number in borders.into_iter().chain(more).flatten().map(|it| nearest(inside(it))) {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        number_of(numbers[self.choose(numbers.len(), depth)])
    }

    fn array(&mut self, parts: &[View<'_>], depth: usize) -> Json {
        let contained: Vec<_> = parts.iter().filter_map(|part| part.schema("contains")).collect();
        let least = greatest(parts, "minItems").unwrap_or_default().max(usize::from(!contained.is_empty()));
        let first = parts.iter().filter_map(|part| part.items().0).map(|it| it.len()).max().unwrap_or_default();
        let is_closed = |part: &View<'_>| part.items().1.is_some_and(|it| *it.json() == Json::Bool(false));
        let most = least_of(parts, "maxItems").into_iter().chain(parts.iter().any(is_closed).then_some(first)).min();
        let mut counts = vec![least, first, 1, 2];
        counts.extend(most.filter(|most| *most <= MAX_ITEMS));
        counts.extend(most.is_none().then_some(least + 3));
        let mut seen = Vec::new();
        counts.retain(|it| {
            *it >= least && most.is_none_or(|most| *it <= most) && !seen.contains(it) && {
                seen.push(*it);
                true
            }
        });
        let picked = if self.has_room(depth) { self.choose(counts.len(), depth) } else { 0 };
        let count = counts.get(picked).copied().unwrap_or(least).min(8 * MAX_ITEMS);
        let is_unique = parts.iter().any(|part| part.get("uniqueItems") == Some(&Json::Bool(true)));
        let mut items: Vec<Json> = Vec::new();
        for index in 0..count {
            // Copies of copies would fill the memory.
            if self.values > LARGEST {
                break;
            }
            let mut schemas: Vec<_> = parts.iter().filter_map(|part| part.item(index)).collect();
            if index == 0 {
                schemas.extend(&contained);
            }
            let before = self.values;
            let is_like_last = index > first && index > 1 && !is_unique && !matches!(self.rest, Rest::Random(_));
            let mut item = match items.last().filter(|_| is_like_last) {
                Some(last) => last.clone(),
                None => self.value(&schemas, depth + 1),
            };
            for seed in 0..8 {
                if !is_unique || !items.contains(&item) {
                    break;
                }
                let rng = SeededRng::for_parts(seed, [index as u64]);
                let mut again = Draw { values: self.values, ..Draw::new(Vec::new(), Rest::Random(rng)) };
                item = again.value(&schemas, depth + 1);
                self.values = again.values;
            }
            self.values += size(&item).saturating_sub(self.values - before);
            items.push(item);
            if self.values > MAX_VALUES && items.len() >= least {
                break;
            }
        }
        items.into()
    }

    fn object(&mut self, parts: &[View<'_>], depth: usize) -> Map<String, Json> {
        let most = least_of(parts, "maxProperties").unwrap_or(usize::MAX);
        let least = greatest(parts, "minProperties").unwrap_or_default().min(MAX_ITEMS);
        let mut object = Map::new();
        let mut needed: Vec<&str> = parts.iter().flat_map(|part| part.required()).collect();
        let names = parts.iter().flat_map(|part| part.properties()).map(|(name, _)| name);
        for name in needed.clone().into_iter().chain(names) {
            let is_needed = needed.contains(&name);
            let may_be_there = !object.contains_key(name)
                && (is_needed || self.has_room(depth) && object.len() < most && self.choose(2, depth) == 1);
            if may_be_there {
                object.insert(name.to_owned(), self.value(&members(parts, name), depth + 1));
                needed.extend(parts.iter().flat_map(|part| dependents(*part, name)));
            }
        }
        for name in needed {
            if !object.contains_key(name) {
                object.insert(name.to_owned(), self.value(&members(parts, name), depth + 1));
            }
        }
        let patterns = parts.iter().flat_map(|part| part.named("patternProperties"));
        for (pattern, schema) in patterns {
            if self.has_room(depth) && object.len() < most && self.choose(2, depth) == 1 {
                let name = pattern::text(pattern, None).unwrap_or_default();
                object.insert(name, self.value(&[schema], depth + 1));
            }
        }
        let names: Vec<_> = parts.iter().filter_map(|part| part.schema("propertyNames")).collect();
        let is_closed = parts.iter().any(|part| part.get("additionalProperties") == Some(&Json::Bool(false)));
        let room = if self.has_room(depth) && !is_closed { most.saturating_sub(object.len()) } else { 0 };
        let mut counts = vec![0, 1, 2];
        counts.retain(|count| *count <= room);
        counts.extend((3..=MAX_EXTRA).contains(&room).then_some(room));
        let extra = counts[self.choose(counts.len(), depth)];
        let missing = least.saturating_sub(object.len()).max(extra);
        for index in 0..missing {
            let schemas = members(parts, EXTRA);
            let name = match (names.is_empty(), index) {
                (false, _) => self.text(&names, depth + 1),
                (true, 0) => EXTRA.to_owned(),
                (true, _) => format!("{EXTRA}{index}"),
            };
            object.entry(name).or_insert_with(|| self.value(&schemas, depth + 1));
        }
        object
    }
}

/// The schemas of a property.
fn members<'s>(parts: &[View<'s>], name: &str) -> Vec<View<'s>> {
    let mut found: Vec<View<'s>> = Vec::new();
    for schema in parts.iter().filter_map(|part| part.property(name)) {
        if !found.iter().any(|it| std::ptr::eq(it.json(), schema.json())) {
            found.push(schema);
        }
    }
    found
}

/// The properties that must be there if another one is.
fn dependents<'s>(part: View<'s>, name: &str) -> Vec<&'s str> {
    let named =
        ["dependentRequired", "dependentSchemas", "dependencies"].iter().filter_map(|it| part.get(it)?.get(name));
    let names = named.flat_map(|it| it.as_array().or_else(|| it.get("required")?.as_array()).into_iter().flatten());
    names.filter_map(Json::as_str).collect()
}

/// The types that all parts allow; those that their keywords are about, if none names types; else all.
fn types(parts: &[View<'_>]) -> Vec<Type> {
    let mut named = parts.iter().filter_map(|part| part.named_types());
    if let Some(first) = named.next() {
        return named.fold(first, |types, others| {
            let allows =
                |kind: &Type| others.contains(kind) || *kind == Type::Integer && others.contains(&Type::Number);
            let whole = types.contains(&Type::Number) && others.contains(&Type::Integer);
            types.into_iter().filter(allows).chain(whole.then_some(Type::Integer)).collect()
        });
    }
    let about: [(Type, &[&str]); 4] = [
        (Type::Object, &["properties", "required", "patternProperties", "additionalProperties", "minProperties"]),
        (Type::Array, &["items", "prefixItems", "contains", "minItems"]),
        (Type::String, &["pattern", "format", "minLength", "maxLength"]),
        (Type::Number, &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ];
    let has = |keywords: &[&str]| keywords.iter().any(|it| parts.iter().any(|part| part.get(it).is_some()));
    let mut types: Vec<_> = about.iter().filter(|(_, keywords)| has(keywords)).map(|(kind, _)| *kind).collect();
    let all = [Type::String, Type::Integer, Type::Number, Type::Boolean, Type::Null, Type::Object, Type::Array];
    types.extend(all.into_iter().filter(|kind| !types.contains(kind)).collect::<Vec<_>>());
    types
}

fn greatest(parts: &[View<'_>], keyword: &str) -> Option<usize> {
    parts.iter().filter_map(|part| part.count(keyword)).max()
}

fn least_of(parts: &[View<'_>], keyword: &str) -> Option<usize> {
    parts.iter().filter_map(|part| part.count(keyword)).min()
}

/// A limit that may be reached; `step` leads from one that may not.
fn bound(
    parts: &[View<'_>],
    inclusive: &str,
    exclusive: &str,
    step: f64,
    stricter: fn(f64, f64) -> f64,
) -> Option<f64> {
    let of = |part: &View<'_>| {
        let included = part.number(inclusive);
        // In draft 4, `true` excludes the other limit.
        let is_excluded = part.get(exclusive) == Some(&Json::Bool(true));
        let excluded = part.number(exclusive).or(included.filter(|_| is_excluded));
        let after = |it: f64| if step.abs() == 1.0 { (it / step).floor() * step + step } else { it + step };
        [included.filter(|_| !is_excluded), excluded.map(after)]
    };
    parts.iter().flat_map(of).flatten().reduce(stricter)
}

fn number_of(number: f64) -> Json {
    // All integers up to 2⁵³ are exact.
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => json!(number as i64),
        false => Number::from_f64(number).map_or(json!(0), Json::Number),
    }
}

/// The number of values in a value.
fn size(value: &Json) -> usize {
    1 + match value {
        Json::Array(items) => items.iter().map(size).sum(),
        Json::Object(members) => members.values().map(size).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::json_schema::compile_with_formats;
    use rehearse_testing::table;

    fn valid(schema: &Json, count: usize) -> Vec<Json> {
        let compiled = compile_with_formats(schema).expect("a schema");
        Instances::new(View::new(schema), 1).take(count).filter(|it| compiled.is_valid(it)).collect()
    }

    #[test]
    fn each_schema_has_many_valid_instances() {
        for [schema] in table::rows(include_str!("instances.txt"), "schemas with many instances") {
            let schema = serde_json::from_str(&schema).expect("JSON");
            let valid = valid(&schema, 200);
            assert!(valid.len() >= 60, "{}: {schema}", valid.len());
            let different: HashSet<_> = valid.iter().map(Json::to_string).collect();
            assert!(different.len() >= 2, "{different:?}: {schema}");
        }
    }

    #[test]
    fn borders_come_one_by_one_in_the_least_instance() {
        let schema = json!({ "type": "object", "required": ["n"], "properties": {
            "n": { "type": "integer", "minimum": 2, "maximum": 9 },
            "o": { "properties": { "e": { "enum": ["x", "y"] } }, "type": "object" },
            "l": { "type": "array", "items": { "type": ["string", "null"] }, "maxItems": 5 } } });
        let valid = valid(&schema, 120);
        for expected in [
            json!({ "n": 2 }),
            json!({ "n": 9 }),
            json!({ "n": 2, "o": { "e": "y" } }),
            json!({ "n": 2, "l": [] }),
            json!({ "n": 2, "l": [null] }),
            json!({ "n": 2, "l": ["test", "test", "test", "test", "test"] }),
            json!({ "n": 2, "extra": "test" }),
        ] {
            assert!(valid.contains(&expected), "{expected}: {valid:?}");
        }
        assert_eq!(valid[0], json!({ "n": 2 }));
        assert!(["n", "o", "l"].iter().all(|name| valid[1].get(name).is_some()), "{}", valid[1]);
    }

    #[test]
    fn large_and_endless_schemas_have_small_instances() {
        let many: Map<_, _> = (0..200).map(|it| (format!("p{it}"), json!({ "$ref": "#" }))).collect();
        for schema in [
            json!({ "type": "object", "properties": many }),
            json!({ "type": "array", "items": { "$ref": "#" }, "minItems": 9 }),
            json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
            json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
            json!({ "type": "string", "minLength": 4_000_000_000u64 }),
            json!({ "type": "array", "minItems": 4_000_000_000u64 }),
            json!({ "type": "object", "minProperties": 4_000_000_000u64 }),
        ] {
            for instance in Instances::new(View::new(&schema), 1).take(50) {
                assert!(instance.to_string().len() < 100_000, "{schema}");
            }
        }
    }

    #[test]
    fn a_seed_decides() {
        let schema = json!({ "type": "integer" });
        let instances = |seed| Instances::new(View::new(&schema), seed).take(60).collect::<Vec<_>>();
        assert_eq!(instances(1), instances(1));
        assert_ne!(instances(1), instances(2));
    }

    #[test]
    fn an_array_of_arrays_without_end_stays_small() {
        let itself = |unique: bool| {
            json!({ "$ref": "#/$defs/a", "$defs": { "a": {
                "type": "array", "minItems": 50, "uniqueItems": unique, "items": { "$ref": "#/$defs/a" } } } })
        };
        for schema in [itself(false), itself(true)] {
            let largest = Instances::new(View::new(&schema), 1).take(50).map(|it| size(&it)).max();
            assert!(largest.is_some_and(|largest| largest < 10 * LARGEST), "{largest:?}");
        }
    }
}
