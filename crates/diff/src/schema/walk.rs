//! The way through two schemas at once, to the bottom.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value as Json;

use rehearse_report::diff::Class;

use super::{
    Direction,
    draft::Draft,
    place::Place,
    rules::Effect,
    shape::{CONDITIONS, Fuel, Shape, burn, is_assertion, is_same},
    types::Types,
};

/// The depth at which nothing more is compared.
const DEEPEST: usize = 64;

pub(super) struct Walk<'c> {
    pub direction: Direction,
    pub fuel: &'c Fuel,
    pub drafts: Vec<Draft>,
    visited: HashSet<(String, String)>,
    /// What is being compared, from the root.
    active: Vec<(String, String)>,
    /// Whether a value that a schema refuses is refused by the whole.
    is_certain: bool,
}

/// The two shapes of one place.
pub(super) struct Pair<'a, 's> {
    pub old: &'a Shape<'s>,
    pub new: &'a Shape<'s>,
    /// The path in a value, such as `filter.tags[]`.
    pub path: &'a str,
}

impl Pair<'_, '_> {
    /// The subject of a sentence.
    pub(super) fn subject(&self, direction: Direction) -> String {
        name(self.path, direction)
    }

    /// The pointers to a keyword.
    pub(super) fn pointers(&self, keyword: &str) -> (Option<String>, Option<String>) {
        (self.old.pointer_of(keyword), self.new.pointer_of(keyword))
    }

    pub(super) fn schemas(&self) -> (&str, &str) {
        (&self.old.place.pointer, &self.new.place.pointer)
    }
}

pub(super) fn name(path: &str, direction: Direction) -> String {
    match (path, direction) {
        ("", Direction::Input) => "The input".to_owned(),
        ("", Direction::Output) => "The output".to_owned(),
        (path, _) => format!("`{path}`"),
    }
}

fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

impl<'c> Walk<'c> {
    pub(super) fn new(direction: Direction, fuel: &'c Fuel) -> Self {
        Walk { direction, fuel, drafts: Vec::new(), visited: HashSet::new(), active: Vec::new(), is_certain: true }
    }

    /// The class of a change of unclear form with this effect.
    pub(super) fn class(&self, effect: Effect) -> Class {
        match (effect, self.direction) {
            (Effect::Narrows, Direction::Output) | (Effect::Widens, Direction::Input) => Class::Addition,
            _ => Class::Breaking,
        }
    }

    pub(super) fn draft(&self, id: &str, pair: &Pair<'_, '_>, says: &str) -> Draft {
        let draft = Draft::new(id, self.direction, format!("{} {says}", pair.subject(self.direction)));
        Draft { is_certain: draft.is_certain && self.is_certain, ..draft }
    }

    pub(super) fn visit(&mut self, old: &Place<'_>, new: &Place<'_>, path: &str) {
        let is_whole = old.base.is_none() && new.base.is_none();
        let is_unchanged = is_whole && old.json() == new.json() && !refers(old.json());
        if is_unchanged || !burn(self.fuel) {
            return;
        }
        let (old, new) = (&Shape::of(old, self.fuel), &Shape::of(new, self.fuel));
        let pointers = (old.place.pointer.clone(), new.place.pointer.clone());
        if !self.visited.insert(pointers.clone()) {
            return;
        }
        let pair = Pair { old, new, path };
        if self.fuel.get() == 0 || self.active.len() > DEEPEST {
            let draft = self.draft("condition-changed", &pair, "has a schema that is too large to compare");
            return self.drafts.push(draft.at((Some(pointers.0), Some(pointers.1)), pair.schemas()));
        }
        self.active.push(pointers);
        self.compare_annotations(&pair);
        let is_certain = self.is_certain;
        if !self.compare_with_one(&pair) && self.compare_types(&pair) {
            self.compare_limits(&pair);
            self.compare_texts(&pair);
            self.compare_properties(&pair);
            self.compare_items(&pair);
            self.compare_conditions(&pair);
            self.compare_alternatives(&pair);
        }
        self.is_certain = is_certain;
        self.active.pop();
    }

    fn compare_annotations(&mut self, pair: &Pair<'_, '_>) {
        let keywords: BTreeSet<_> = pair.old.keywords.keys().chain(pair.new.keywords.keys()).collect();
        for keyword in keywords.into_iter().filter(|keyword| !is_assertion(keyword)) {
            let (old, new) = (pair.old.value(keyword), pair.new.value(keyword));
            let is_unchanged = match (old, new) {
                (Some(old), Some(new)) => is_same(old, new),
                (old, new) => old.or(new) == Some(&Json::Bool(false)),
            };
            if is_unchanged {
                continue;
            }
            let id = match *keyword {
                "title" => "title-changed",
                "description" => "description-changed",
                "default" => "default-changed",
                "example" | "examples" => "examples-changed",
                "deprecated" if new == Some(&Json::Bool(true)) => "deprecation-added",
                "deprecated" => "deprecation-removed",
                "$schema" => "dialect-changed",
                "x-mcp-header" => "header-changed",
                _ => "annotation-changed",
            };
            let reason = match id {
                "title-changed" | "description-changed" | "examples-changed" => "a model reads it",
                "default-changed" => "to leave the value out means something else",
                "deprecation-added" => "clients should not use it any more",
                "header-changed" => "a client that does not send this header is refused",
                _ => "it allows and forbids nothing",
            };
            let says = match (old, new) {
                (None, _) => format!("has `{keyword}` now"),
                (_, None) => format!("has no `{keyword}` any more"),
                _ => format!("has another `{keyword}`"),
            };
            let draft = self.draft(id, pair, &says).at(pair.pointers(keyword), pair.schemas());
            self.drafts.push(draft.because(reason));
        }
    }

    /// Compares the types and the listed values. Returns whether more is to be compared.
    fn compare_types(&mut self, pair: &Pair<'_, '_>) -> bool {
        let Pair { old, new, .. } = pair;
        let none = Types::NONE;
        let types_at = (old.types_at.clone(), new.types_at.clone());
        let choices_at = (old.choices_at.clone(), new.choices_at.clone());
        match (old.types == none, new.types == none) {
            (true, true) => return false,
            (true, false) => {
                let draft = self.draft("value-allowed", pair, "may be there now, never before");
                self.drafts.push(draft.at(types_at, pair.schemas()));
                return false;
            }
            (false, true) => {
                let draft = self.draft("value-forbidden", pair, "may not be there any more");
                self.drafts.push(draft.at(types_at, pair.schemas()));
                return false;
            }
            (false, false) => {}
        }
        if let (Some(before), Some(after)) = (&old.choices, &new.choices) {
            self.compare_choices(pair, before, after);
            // What else they say may be about none of these values.
            self.is_certain = false;
            return true;
        }
        if old.types != new.types {
            let id = match (old.types.contains(new.types), new.types.contains(old.types)) {
                (true, _) => "type-narrowed",
                (_, true) => "type-widened",
                _ => "type-changed",
            };
            let listed_before = old.choices.is_some() && id == "type-widened";
            let listed_now = new.choices.is_some() && id == "type-narrowed";
            if !listed_before && !listed_now {
                let says = format!("is {} now, {} before", new.types.describe(), old.types.describe());
                let draft = self.draft(id, pair, &says).at(types_at, pair.schemas());
                self.drafts.push(draft);
            }
            if old.types.common(new.types) == none {
                return false;
            }
        }
        let draft = match (&old.choices, &new.choices) {
            (None, None) => return true,
            (None, Some(after)) => {
                self.draft("enum-added", pair, &format!("must be one of {} now, any value before", list(after)))
            }
            _ => self.draft("enum-removed", pair, "is not restricted to listed values any more"),
        };
        let draft = draft.at(choices_at, pair.schemas());
        let other = if new.choices.is_some() { old } else { new };
        self.drafts.push(match other.has_assertions() {
            true => Draft { effect: Effect::Unclear, class: Class::Breaking, is_certain: false, ..draft },
            false => draft,
        });
        false
    }

    fn compare_choices(&mut self, pair: &Pair<'_, '_>, before: &[&Json], after: &[&Json]) {
        let lacks = |values: &[&Json], value: &Json| !values.iter().any(|it| is_same(it, value));
        let removed: Vec<_> = before.iter().copied().filter(|value| lacks(after, value)).collect();
        let added: Vec<_> = after.iter().copied().filter(|value| lacks(before, value)).collect();
        let at = (pair.old.choices_at.clone(), pair.new.choices_at.clone());
        let kinds =
            [("enum-value-removed", removed, "may not be", "any more"), ("enum-value-added", added, "may be", "now")];
        for (id, values, verb, time) in kinds.into_iter().filter(|(_, values, ..)| !values.is_empty()) {
            let draft = self.draft(id, pair, &format!("{verb} {} {time}", list(&values)));
            self.drafts.push(draft.at(at.clone(), pair.schemas()).of_values(&values));
        }
    }

    fn compare_properties(&mut self, pair: &Pair<'_, '_>) {
        let Pair { old, new, path } = *pair;
        let names: BTreeSet<_> = [&old.properties, &new.properties]
            .into_iter()
            .flat_map(BTreeMap::keys)
            .chain(old.required.keys().chain(new.required.keys()))
            .copied()
            .collect();
        for name in names {
            let path = &member(path, name);
            let (before, after) = (old.properties.get(name), new.properties.get(name));
            let (was_required, is_required) = (old.required.get(name), new.required.get(name));
            let at = |it: Option<&Place<'_>>, required: Option<&String>| {
                it.map(|it| it.pointer.clone()).or_else(|| required.cloned())
            };
            let property = Pair { old, new, path };
            let pointers = (at(before, was_required), at(after, is_required));
            match (before, after) {
                (Some(before), Some(after)) => self.visit(before, after, path),
                // It only has no schema of its own on one side.
                (Some(before), None) if is_required.is_some() && !new.is_closed() => {
                    self.visit(before, &new.additional(), path);
                }
                (None, Some(after)) if was_required.is_some() && !old.is_closed() => {
                    self.visit(&old.additional(), after, path);
                }
                // It was required, and every value with it was refused.
                (None, Some(_)) if is_required.is_none() || was_required.is_some() => {
                    let draft = self.draft("property-added", &property, "is new").because("nothing has to use it");
                    self.drafts.push(draft.at(pointers, pair.schemas()));
                    continue;
                }
                (Some(before), None) => {
                    let draft = self.removed(&property, was_required.is_some()).at(pointers, pair.schemas());
                    self.drafts.push(draft.about(name));
                    let additional = new.keywords.get("additionalProperties").filter(|_| !new.is_closed());
                    if let (Direction::Input, Some(additional)) = (self.direction, additional) {
                        self.visit(before, additional, path);
                    }
                    continue;
                }
                _ => {}
            }
            let (id, says) = match (was_required, is_required) {
                (None, Some(_)) => ("required-added", "is required now"),
                (Some(_), None) => ("required-removed", "is optional now"),
                _ => continue,
            };
            // Generators of schemas say of a property that the server fills in that it is required.
            let has_default = after.is_some_and(|after| after.view.get("default").is_some());
            let reason = match (id, self.direction) {
                ("required-added", Direction::Input) if has_default => {
                    "possibly breaking, as its schema refuses calls without it, but the server may fill in its default"
                }
                ("required-added", Direction::Input) => "calls without it fail",
                ("required-added", _) => "it is always there",
                (_, Direction::Input) => "calls with it still work",
                _ => "a reader may not expect that it is missing",
            };
            let mut draft = self.draft(id, &property, says).because(reason).at(pointers, pair.schemas()).about(name);
            draft.old_cause.pointer = was_required.cloned().unwrap_or_default();
            draft.new_cause.pointer = is_required.cloned().unwrap_or_default();
            draft.is_doubtful = has_default && id == "required-added";
            self.drafts.push(draft);
        }
        self.compare_additional_properties(pair);
    }

    fn removed(&self, pair: &Pair<'_, '_>, was_required: bool) -> Draft {
        let draft = self.draft("property-removed", pair, "is gone");
        let effect = match self.direction {
            Direction::Input => Effect::Narrows,
            Direction::Output => Effect::Widens,
        };
        let with = |class, effect, is_certain, reason: &str| {
            Draft { class, effect, is_certain: is_certain && self.is_certain, ..draft.clone() }.because(reason)
        };
        match self.direction {
            Direction::Output if was_required => with(Class::Breaking, effect, true, "a reader needs it"),
            Direction::Output => with(Class::Breaking, effect, false, "a reader may use it"),
            Direction::Input if pair.new.is_closed() => {
                let is_certain = !pair.new.keywords.contains_key("patternProperties");
                with(Class::Breaking, effect, is_certain, "calls with it are refused")
            }
            Direction::Input => with(Class::Behaviour, Effect::None, true, "its value is ignored"),
        }
    }

    fn compare_additional_properties(&mut self, pair: &Pair<'_, '_>) {
        let keyword = "additionalProperties";
        let (before, after) = (pair.old.keywords.get(keyword), pair.new.keywords.get(keyword));
        let (id, says, reason) = match (pair.old.is_closed(), pair.new.is_closed()) {
            (true, true) => return,
            (false, true) => (
                "additional-properties-forbidden",
                "may have no unknown properties any more",
                match self.direction {
                    Direction::Input => "calls with them are refused",
                    Direction::Output => "what a reader expects still holds",
                },
            ),
            (true, false) => (
                "additional-properties-allowed",
                "may have unknown properties now",
                match self.direction {
                    Direction::Input => "what was accepted still is",
                    Direction::Output => "a reader should ignore them",
                },
            ),
            (false, false) => {
                if before.is_some() || after.is_some() {
                    self.visit(&pair.old.additional(), &pair.new.additional(), &member(pair.path, "*"));
                }
                return;
            }
        };
        let draft = self.draft(id, pair, says).because(reason).at(pair.pointers(keyword), pair.schemas());
        self.drafts.push(draft);
    }

    fn compare_items(&mut self, pair: &Pair<'_, '_>) {
        let Pair { old, new, path } = *pair;
        let count = old.first_items.len().max(new.first_items.len());
        let place = |shape: &Shape<'_>| Place::anything(format!("{}/items", shape.place.pointer));
        let (absent_before, absent_after) = (place(old), place(new));
        let (rest_before, rest_after) =
            (old.items.as_ref().unwrap_or(&absent_before), new.items.as_ref().unwrap_or(&absent_after));
        for index in 0..count {
            let before = old.first_items.get(index).unwrap_or(rest_before);
            let after = new.first_items.get(index).unwrap_or(rest_after);
            self.visit(before, after, &format!("{path}[{index}]"));
        }
        if old.items.is_some() || new.items.is_some() {
            self.visit(rest_before, rest_after, &format!("{path}[]"));
        }
    }

    fn compare_conditions(&mut self, pair: &Pair<'_, '_>) {
        let mut is_conditional = false;
        for keyword in CONDITIONS.iter().copied().chain(["unevaluatedProperties"]) {
            let (old, new) = (pair.old.keywords.get(keyword), pair.new.keywords.get(keyword));
            let id = match (old, new) {
                (None, None) => continue,
                (Some(old), Some(new)) if self.has_same_schemas(keyword, old, new) => continue,
                // Each belongs to another: their effect is that of all.
                _ if ["if", "then", "else"].contains(&keyword) => {
                    if std::mem::replace(&mut is_conditional, true) {
                        continue;
                    }
                    "condition-changed"
                }
                (Some(_), Some(_)) => "condition-changed",
                _ if ["minContains", "patternProperties"].contains(&keyword) => "condition-changed",
                (None, Some(_)) => "condition-added",
                (Some(_), None) => "condition-removed",
            };
            let says = match (old, new) {
                (None, _) => format!("has `{keyword}` now"),
                (_, None) => format!("has no `{keyword}` any more"),
                _ => format!("has another `{keyword}`"),
            };
            let draft = self.draft(id, pair, &says).at(pair.pointers(keyword), pair.schemas());
            self.drafts.push(draft);
        }
    }

    fn has_same_schemas(&self, keyword: &str, old: &Place<'_>, new: &Place<'_>) -> bool {
        match keyword {
            "patternProperties" | "dependentSchemas" => {
                let (old, new) = (old.members(), new.members());
                let has_same = |(name, old): &(&str, Place<'_>)| {
                    new.iter().any(|(other, new)| name == other && !self.differs(old, new))
                };
                old.len() == new.len() && old.iter().all(has_same)
            }
            "dependencies" | "dependentRequired" => is_same(&sorted(old.json()), &sorted(new.json())),
            "$ref" | "maxContains" | "minContains" => is_same(old.json(), new.json()),
            _ => !self.differs(old, new),
        }
    }

    /// Whether one of two schemas accepts what the other refuses, as far as their form shows.
    pub(super) fn differs(&self, old: &Place<'_>, new: &Place<'_>) -> bool {
        let mut trial = Walk::new(self.direction, self.fuel);
        // What is being compared already is the same as long as nothing says otherwise.
        trial.visited.extend(self.active.iter().cloned());
        trial.active.clone_from(&self.active);
        trial.visit(old, new, "");
        let is_annotation = |draft: &Draft| draft.effect == Effect::None && !draft.rule.id.starts_with("property-");
        !trial.drafts.iter().all(is_annotation)
    }

    /// Visits two schemas of which not both need to hold.
    pub(super) fn visit_part(&mut self, old: &Place<'_>, new: &Place<'_>, path: &str) {
        let is_certain = std::mem::replace(&mut self.is_certain, false);
        self.visit(old, new, path);
        self.is_certain = is_certain;
    }
}

/// Members whose lists of names are in order.
fn sorted(named: &Json) -> Json {
    let mut named = named.clone();
    for names in named.as_object_mut().into_iter().flat_map(|it| it.values_mut()).filter_map(Json::as_array_mut) {
        names.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
    named
}

/// Whether a schema may have another meaning in another document.
fn refers(schema: &Json) -> bool {
    match schema {
        Json::Object(members) => {
            members.iter().any(|(key, value)| key.ends_with("Ref") || key == "$ref" || refers(value))
        }
        Json::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

/// `"a", "b" and 3 more`.
fn list(values: &[&Json]) -> String {
    const MOST: usize = 5;
    let named: Vec<_> = values.iter().take(MOST).map(|value| super::short(value)).collect();
    match values.len().saturating_sub(MOST) {
        0 => match named.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => named.concat(),
        },
        more => format!("{} and {more} more", named.join(", ")),
    }
}
