//! The normal form of one schema: what equivalent spellings have in common.

use std::{cell::Cell, collections::BTreeMap, rc::Rc};

use serde_json::Value as Json;

use rehearse_document::json_schema::Type;

use super::{place::Place, types::Types};

/// The maximum depth of references and alternatives.
const DEEPEST: usize = 16;

/// Keywords that exclude values, apart from those with a field in [`Shape`].
pub(super) const LIMITS: [&str; 11] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "uniqueItems",
];
pub(super) const CONDITIONS: [&str; 18] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "disallow",
    "else",
    "extends",
    "if",
    "maxContains",
    "minContains",
    "not",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
];
const OTHERS: [&str; 5] = ["additionalProperties", "format", "multipleOf", "pattern", "unevaluatedProperties"];

/// Keywords of a definition that are about its document.
const IDENTIFIERS: [&str; 3] = ["$comment", "$id", "$schema"];

/// How many more schemas may be read.
pub(super) type Fuel = Cell<usize>;

/// Takes one of what is left, if there is one.
pub(super) fn burn(fuel: &Fuel) -> bool {
    let left = fuel.get();
    fuel.set(left.saturating_sub(1));
    left > 0
}

/// One schema without references, single parts and alternatives of separate types.
#[derive(Clone, Debug)]
pub(super) struct Shape<'s> {
    pub place: Place<'s>,
    pub types: Types,
    /// The keyword that says the types, or what contains it.
    pub types_at: Option<String>,
    pub choices: Option<Vec<&'s Json>>,
    pub choices_at: Option<String>,
    pub properties: BTreeMap<&'s str, Place<'s>>,
    /// The required properties, and the keyword that names them.
    pub required: BTreeMap<&'s str, String>,
    /// The schemas of the first items.
    pub first_items: Vec<Place<'s>>,
    /// That of further items.
    pub items: Option<Place<'s>>,
    pub keywords: BTreeMap<&'s str, Place<'s>>,
    /// The schemas of `anyOf` or `oneOf` whose types overlap, and the keyword.
    pub alternatives: Option<(&'static str, Vec<Place<'s>>)>,
    /// Those of `allOf` that cannot be merged.
    pub parts: Vec<Place<'s>>,
}

impl<'s> Shape<'s> {
    pub(super) fn of(place: &Place<'s>, fuel: &Fuel) -> Self {
        let mut shape = Shape::read(place, fuel, &mut Vec::new());
        if let Some(base) = &place.base {
            shape.absorb(Shape::of(base, fuel).without_alternatives());
            shape.settle();
        }
        shape
    }

    pub(super) fn without_alternatives(&self) -> Self {
        Shape { alternatives: None, ..self.clone() }
    }

    /// One of its alternatives, with what holds beside them; `None` if the two cannot be merged.
    pub(super) fn alternative(&self, place: &Place<'s>, fuel: &Fuel) -> Option<Place<'s>> {
        let mut merged = place.clone();
        merged.base = Some(Rc::new(self.place.clone()));
        Shape::of(place, fuel).can_absorb(&self.without_alternatives()).then_some(merged)
    }

    /// Reads a schema; `above` are those that hold for the same value, in which it is.
    fn read(place: &Place<'s>, fuel: &Fuel, above: &mut Vec<String>) -> Self {
        let mut shape = Shape {
            place: place.clone(),
            types: Types::ALL,
            types_at: None,
            choices: None,
            choices_at: None,
            properties: BTreeMap::new(),
            required: BTreeMap::new(),
            first_items: Vec::new(),
            items: None,
            keywords: BTreeMap::new(),
            alternatives: None,
            parts: Vec::new(),
        };
        if *place.json() == Json::Bool(false) {
            shape.restrict(Types::NONE, &place.pointer);
        }
        let Json::Object(members) = place.json() else { return shape };
        // What contains itself says nothing more.
        if above.len() > DEEPEST || above.contains(&place.pointer) || !burn(fuel) {
            return shape;
        }
        above.push(place.pointer.clone());
        members.keys().for_each(|keyword| shape.take(keyword, place));
        if members.get("nullable") == Some(&Json::Bool(true)) && shape.types != Types::ALL {
            shape.types = shape.types.with(Types::NULL);
        }
        let referred = members.get("$ref").and_then(Json::as_str).and_then(|it| place.referred(it));
        if let Some(referred) = referred {
            shape.keywords.remove("$ref");
            let mut target = Shape::read(&referred, fuel, above);
            target.keywords.retain(|keyword, _| !IDENTIFIERS.contains(keyword));
            if members.len() == 1 {
                above.pop();
                return target;
            }
            shape.absorb_or_keep(target, referred);
        }
        let parts = place.schemas("allOf").unwrap_or_default();
        let is_single = parts.len() == 1;
        for part in parts {
            let read = Shape::read(&part, fuel, above);
            // Which of several conditions is merged must not depend on their order.
            if is_single || !read.has_conditions() { shape.absorb_or_keep(read, part) } else { shape.add_part(part) }
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = place.schemas(keyword) {
                shape.fuse(keyword, branches, &place.below(keyword), fuel, above);
            }
        }
        shape.settle();
        above.pop();
        shape
    }

    fn restrict(&mut self, types: Types, pointer: &str) {
        self.types = self.types.common(types);
        self.types_at = Some(pointer.to_owned());
    }

    fn take(&mut self, keyword: &'s str, place: &Place<'s>) {
        let Some(member) = place.schema(keyword) else { return };
        match (keyword, member.json()) {
            ("type", _) => {
                let named = place.view.named_types().unwrap_or_default();
                let types = named.into_iter().map(Types::of).fold(Types::NONE, Types::with);
                self.restrict(types, &member.pointer);
            }
            ("const", value) => self.choose(vec![value], member.pointer),
            ("enum", Json::Array(values)) => self.choose(values.iter().collect(), member.pointer),
            ("properties", Json::Object(_)) => self.properties = place.named(keyword).into_iter().collect(),
            ("required", Json::Array(names)) => {
                let names = names.iter().filter_map(Json::as_str);
                self.required = names.map(|name| (name, member.pointer.clone())).collect();
            }
            ("prefixItems", Json::Array(_)) => self.first_items = place.schemas(keyword).unwrap_or_default(),
            // Older drafts write a tuple as a list of `items`.
            ("items", Json::Array(_)) => self.first_items = place.schemas(keyword).unwrap_or_default(),
            ("items", _) => self.items = Some(member),
            ("additionalItems", _) => {
                if place.json().get("items").is_some_and(Json::is_array) {
                    self.items = Some(member);
                }
            }
            ("$defs" | "definitions" | "$anchor" | "$dynamicAnchor" | "$vocabulary" | "nullable", _)
            | ("allOf" | "anyOf" | "oneOf", Json::Array(_)) => {}
            ("minLength" | "minItems" | "minProperties", limit) if limit.as_f64() == Some(0.0) => {}
            ("additionalProperties" | "propertyNames", Json::Bool(true)) | ("uniqueItems", Json::Bool(false)) => {}
            (
                "additionalProperties" | "propertyNames" | "dependentRequired" | "patternProperties",
                Json::Object(it),
            ) if it.is_empty() => {}
            _ => {
                self.keywords.insert(keyword, member);
            }
        }
    }

    fn choose(&mut self, values: Vec<&'s Json>, pointer: String) {
        let kept = |value: &&Json| self.choices.as_ref().is_none_or(|them| them.iter().any(|it| is_same(it, value)));
        let mut chosen: Vec<&Json> = Vec::new();
        for value in values.into_iter().filter(kept) {
            if !chosen.iter().any(|it| is_same(it, value)) {
                chosen.push(value);
            }
        }
        self.choices = Some(chosen);
        self.choices_at = Some(pointer);
    }

    /// Lets the choices say the types.
    fn settle(&mut self) {
        let types = self.types;
        let Some(choices) = &mut self.choices else { return };
        choices.retain(|value| types.contains(Types::of_value(value)));
        self.types = choices.iter().map(|value| Types::of_value(value)).fold(Types::NONE, Types::with);
        self.types_at = self.types_at.take().or_else(|| self.choices_at.clone());
        if self.types == Types::NULL {
            self.choices = None;
        }
    }

    /// Adds a schema that must hold, too.
    fn absorb_or_keep(&mut self, part: Shape<'s>, place: Place<'s>) {
        if self.can_absorb(&part) { self.absorb(part) } else { self.add_part(place) }
    }

    fn add_part(&mut self, part: Place<'s>) {
        if !self.parts.iter().any(|it| it.pointer == part.pointer) {
            self.parts.push(part);
        }
    }

    fn can_absorb(&self, part: &Shape<'s>) -> bool {
        let differs = |(keyword, member): (&&str, &Place<'_>)| {
            is_assertion(keyword) && self.keywords.get(keyword).is_some_and(|own| !is_same(own.json(), member.json()))
        };
        let is_closed = |shape: &Shape<'_>| {
            ["additionalProperties", "unevaluatedProperties"].iter().any(|it| shape.keywords.contains_key(it))
        };
        let has_members =
            |shape: &Shape<'_>| !shape.properties.is_empty() || shape.keywords.contains_key("patternProperties");
        let has_items = |shape: &Shape<'_>| !shape.first_items.is_empty() || shape.items.is_some();
        let is_conditional = |shape: &Shape<'_>| ["if", "contains"].iter().any(|it| shape.keywords.contains_key(it));
        !(part.keywords.iter().any(differs)
            || part.properties.keys().any(|name| self.properties.contains_key(name))
            || is_closed(self) && has_members(part)
            || is_closed(part) && has_members(self)
            || has_items(self) && has_items(part)
            || is_conditional(self) && is_conditional(part)
            || self.alternatives.is_some() && part.alternatives.is_some())
    }

    fn absorb(&mut self, part: Shape<'s>) {
        if let Some(at) = &part.types_at {
            self.restrict(part.types, at);
        }
        if let (Some(choices), Some(at)) = (part.choices, part.choices_at) {
            self.choose(choices, at);
        }
        self.add_members(part.properties, part.required, part.first_items, part.items);
        for (keyword, member) in part.keywords {
            self.keywords.entry(keyword).or_insert(member);
        }
        self.alternatives = self.alternatives.take().or(part.alternatives);
        part.parts.into_iter().for_each(|part| self.add_part(part));
    }

    fn add_members(
        &mut self,
        properties: BTreeMap<&'s str, Place<'s>>,
        required: BTreeMap<&'s str, String>,
        first_items: Vec<Place<'s>>,
        items: Option<Place<'s>>,
    ) {
        self.properties.extend(properties);
        for (name, pointer) in required {
            self.required.entry(name).or_insert(pointer);
        }
        self.first_items.extend(first_items);
        self.items = self.items.take().or(items);
    }

    /// Adds alternatives: as choices, if each lists its values; as one schema, if their types are separate, because a
    /// keyword says nothing about values of other types (JSON Schema 2020-12 Core, 7.6.1).
    fn fuse(
        &mut self,
        keyword: &'static str,
        places: Vec<Place<'s>>,
        pointer: &str,
        fuel: &Fuel,
        above: &mut Vec<String>,
    ) {
        let mut branches: Vec<_> = places.iter().map(|place| Shape::read(place, fuel, above)).collect();
        branches.iter_mut().for_each(|branch| branch.types = branch.types.common(self.types));
        if let ([only], [place]) = (&branches[..], &places[..]) {
            return self.absorb_or_keep(only.clone(), place.clone());
        }
        let choices: Option<Vec<_>> = branches.iter().map(Shape::finite).collect();
        let choices: Option<Vec<_>> = choices.map(|it| it.concat()).filter(|_| self.choices.is_none());
        let is_unique = |choices: &Vec<&Json>| {
            keyword == "anyOf"
                || choices
                    .iter()
                    .enumerate()
                    .all(|(index, value)| !choices[..index].iter().any(|it| is_same(it, value)))
        };
        if let Some(choices) = choices.filter(is_unique) {
            return self.choose(choices, pointer.to_owned());
        }
        let may_overlap = keyword == "anyOf" && branches.iter().all(Shape::is_plain);
        let mut types = Types::NONE;
        let mut fused = self.clone();
        for branch in &mut branches {
            let overlaps = branch.types.common(types) != Types::NONE;
            if overlaps && !may_overlap || !branch.is_simple() || !fused.can_absorb(branch) {
                return self.keep(keyword, places);
            }
            types = types.with(branch.types);
            // Each restricts itself only.
            branch.types_at = None;
            fused.absorb(branch.clone());
        }
        fused.restrict(types, pointer);
        *self = fused;
    }

    fn keep(&mut self, keyword: &'static str, places: Vec<Place<'s>>) {
        match self.alternatives {
            Some(_) => places.into_iter().for_each(|place| self.add_part(place)),
            None => self.alternatives = Some((keyword, places)),
        }
    }

    /// Whether its keywords say something about its own types alone.
    fn is_simple(&self) -> bool {
        self.types != Types::ALL
            && self.choices.is_none()
            && self.alternatives.is_none()
            && self.parts.is_empty()
            && !self.has_conditions()
    }

    fn has_conditions(&self) -> bool {
        self.keywords.keys().any(|keyword| CONDITIONS.contains(keyword))
    }

    /// Whether it says nothing but types.
    fn is_plain(&self) -> bool {
        self.is_simple() && !self.has_assertions()
    }

    pub(super) fn has_assertions(&self) -> bool {
        self.choices.is_some()
            || self.alternatives.is_some()
            || !self.parts.is_empty()
            || !self.properties.is_empty()
            || !self.required.is_empty()
            || !self.first_items.is_empty()
            || self.items.is_some()
            || self.keywords.keys().any(|keyword| is_assertion(keyword))
    }

    /// All values, if they are few.
    fn finite(&self) -> Option<Vec<&'s Json>> {
        static VALUES: [Json; 3] = [Json::Null, Json::Bool(true), Json::Bool(false)];
        let few = Types::NULL.with(Types::of(Type::Boolean));
        match &self.choices {
            Some(choices) => Some(choices.clone()),
            None if few.contains(self.types) => {
                Some(VALUES.iter().filter(|it| self.types.contains(Types::of_value(it))).collect())
            }
            None => None,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.keywords.get("additionalProperties").is_some_and(|it| *it.json() == Json::Bool(false))
    }

    /// The schema of further properties.
    pub(super) fn additional(&self) -> Place<'s> {
        let keyword = "additionalProperties";
        let absent = || Place::anything(format!("{}/{keyword}", self.place.pointer));
        self.keywords.get(keyword).cloned().unwrap_or_else(absent)
    }

    pub(super) fn value(&self, keyword: &str) -> Option<&'s Json> {
        self.keywords.get(keyword).map(Place::json)
    }

    pub(super) fn pointer_of(&self, keyword: &str) -> Option<String> {
        self.keywords.get(keyword).map(|it| it.pointer.clone())
    }

    /// The least number, negated for the greatest, and whether it is excluded itself.
    pub(super) fn bound(&self, is_least: bool) -> Option<(f64, bool)> {
        let (inclusive, exclusive) =
            if is_least { ("minimum", "exclusiveMinimum") } else { ("maximum", "exclusiveMaximum") };
        let signed = |it: f64| if is_least { it } else { -it };
        let included = self.value(inclusive).and_then(Json::as_f64).map(signed);
        let excluded = match self.value(exclusive) {
            // Draft 4.
            Some(Json::Bool(true)) => included,
            other => other.and_then(Json::as_f64).map(signed),
        };
        let numbers = self.types.common(Types::of(Type::Number));
        let (included, excluded) = match numbers == Types::of(Type::Integer) {
            true => (greater(included.map(f64::ceil), excluded.map(|it| it.floor() + 1.0)), None),
            false => (included, excluded),
        };
        match (included, excluded) {
            (Some(included), Some(excluded)) if included > excluded => Some((included, false)),
            (_, Some(excluded)) => Some((excluded, true)),
            (Some(included), None) => Some((included, false)),
            (None, None) => None,
        }
    }
}

fn greater(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

pub(super) fn is_assertion(keyword: &str) -> bool {
    LIMITS.contains(&keyword) || CONDITIONS.contains(&keyword) || OTHERS.contains(&keyword)
}

/// Whether two values are the same in JSON Schema (2020-12 Core, 4.2.2): 1 is 1.0, and members have no order.
pub(super) fn is_same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => a == b,
    }
}
