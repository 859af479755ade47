//! Schemas of which one must hold (`anyOf`, `oneOf`), or all (`allOf`).

use super::{
    draft::Draft,
    place::Place,
    rules::Effect,
    shape::{Shape, is_same},
    types::Types,
    walk::{Pair, Walk},
};

impl Walk<'_> {
    /// Compares a schema with alternatives with one that has none, as if it were the only one. Returns whether that is
    /// all that there is to compare.
    pub(super) fn compare_with_one(&mut self, pair: &Pair<'_, '_>) -> bool {
        let ((keyword, alternatives), is_new) = match (&pair.old.alternatives, &pair.new.alternatives) {
            (Some(old), None) => (old, false),
            (None, Some(new)) => (new, true),
            _ => return false,
        };
        let (base, only) = if is_new { (pair.new, pair.old) } else { (pair.old, pair.new) };
        let has_base = base.types != Types::ALL || base.without_alternatives().has_assertions();
        if only.types == Types::ALL && !only.has_assertions() {
            return false;
        }
        let alternatives: Option<Vec<_>> = alternatives.iter().map(|it| base.alternative(it, self.fuel)).collect();
        let Some(mut alternatives) = alternatives else { return false };
        let own = std::slice::from_ref(&only.place);
        match self.counterpart(only, base, &alternatives, is_new) {
            Some(index) => {
                let other = alternatives.remove(index);
                let (old, new) = if is_new { (&only.place, &other) } else { (&other, &only.place) };
                self.visit_part(old, new, pair.path);
                let (old, new) = if is_new { (&[][..], &alternatives[..]) } else { (&alternatives[..], &[][..]) };
                self.match_up(pair, keyword, old, new);
            }
            None if has_base => return false,
            None if is_new => self.match_up(pair, keyword, own, &alternatives),
            None => self.match_up(pair, keyword, &alternatives, own),
        }
        true
    }

    /// Which of the alternatives a schema without any has become, or was: the one that accepts the same, has the same name,
    /// or has most of the properties that are not beside the alternatives.
    fn counterpart(
        &self,
        only: &Shape<'_>,
        base: &Shape<'_>,
        alternatives: &[Place<'_>],
        is_new: bool,
    ) -> Option<usize> {
        let accepts_same = |it: &Place<'_>| match is_new {
            true => !self.differs(&only.place, it),
            false => !self.differs(it, &only.place),
        };
        let same = alternatives.iter().position(accepts_same);
        let same = same.or_else(|| alternatives.iter().position(|it| self.has_same_name(&only.place, it)));
        let shared = |it: &Place<'_>| {
            let properties = Shape::of(it, self.fuel).properties;
            only.properties
                .keys()
                .filter(|name| !base.properties.contains_key(*name) && properties.contains_key(*name))
                .count()
        };
        let most = || {
            let counted = alternatives.iter().map(shared).enumerate().filter(|(_, count)| *count > 0);
            counted.rev().max_by_key(|(_, count)| *count)
        };
        same.or_else(|| Some(most()?.0))
    }

    pub(super) fn compare_alternatives(&mut self, pair: &Pair<'_, '_>) {
        match (&pair.old.alternatives, &pair.new.alternatives) {
            (Some((before, old)), Some((after, new))) => {
                if before != after {
                    let effect = if *after == "oneOf" { Effect::Narrows } else { Effect::Widens };
                    let draft =
                        self.draft("alternatives-changed", pair, &format!("has `{after}` now, `{before}` before"));
                    self.push_alternatives(pair, effect, draft);
                }
                self.match_up(pair, after, old, new);
            }
            (Some((keyword, _)), None) => {
                let draft = self.draft("alternatives-changed", pair, &format!("has no `{keyword}` any more"));
                self.push_alternatives(pair, Effect::Widens, draft);
            }
            (None, Some((keyword, _))) => {
                let draft = self.draft("alternatives-changed", pair, &format!("has `{keyword}` now"));
                self.push_alternatives(pair, Effect::Narrows, draft);
            }
            (None, None) => {}
        }
        self.match_up(pair, "allOf", &pair.old.parts, &pair.new.parts);
    }

    fn push_alternatives(&mut self, pair: &Pair<'_, '_>, effect: Effect, draft: Draft) {
        let at = |shape: &Shape<'_>| {
            shape.alternatives.as_ref().map(|(keyword, _)| format!("{}/{keyword}", shape.place.pointer))
        };
        let class = self.class(effect);
        let draft = draft.at((at(pair.old), at(pair.new)), pair.schemas());
        self.drafts.push(Draft { effect, class, ..draft });
    }

    /// Compares lists whose order means nothing: what accepts the same, what has the same word at the same property or
    /// the same title, and the last two that are left, belong together.
    fn match_up(&mut self, pair: &Pair<'_, '_>, keyword: &str, old: &[Place<'_>], new: &[Place<'_>]) {
        let (mut old, mut new): (Vec<_>, Vec<_>) = (old.iter().collect(), new.iter().collect());
        self.match_by(pair, &mut old, &mut new, |walk, old, new| {
            is_same(old.json(), new.json()) && !walk.differs(old, new)
        });
        self.match_by(pair, &mut old, &mut new, |walk, old, new| !walk.differs(old, new));
        self.match_by(pair, &mut old, &mut new, |walk, old, new| walk.has_same_name(old, new));
        if let ([before], [after]) = (&old[..], &new[..]) {
            return self.visit_part(before, after, pair.path);
        }
        let effect = |effect| match keyword {
            // What more than one accepts is refused.
            "oneOf" => Effect::Unclear,
            _ => effect,
        };
        let kinds = match keyword {
            "allOf" => [("condition-removed", Effect::Widens), ("condition-added", Effect::Narrows)],
            _ => [("alternative-removed", Effect::Narrows), ("alternative-added", Effect::Widens)],
        };
        for (left, (id, form)) in [&old, &new].into_iter().zip(kinds) {
            for place in left {
                let says = match id {
                    "condition-removed" => "has a part less in `allOf`",
                    "condition-added" => "has one more part in `allOf`",
                    "alternative-removed" => "has an alternative less",
                    _ => "has one more alternative",
                };
                let effect = effect(form);
                let is_old = id.ends_with("removed");
                let pointer = Some(place.pointer.clone());
                let at = if is_old { (pointer, None) } else { (None, pointer) };
                let named = match (self.named(place), self.missing(place, pair, is_old)) {
                    (Some(name), _) => format!("{says}: {name}"),
                    (None, Some(names)) => format!("{says}, in which {names} may be missing"),
                    (None, None) => says.to_owned(),
                };
                let mut draft = self.draft(id, pair, &named).at(at, pair.schemas());
                // The whole list refuses a value.
                draft.old_cause.pointer = pair.old.place.pointer.clone();
                draft.new_cause.pointer = pair.new.place.pointer.clone();
                let class = self.class(effect);
                self.drafts.push(Draft { effect, class, ..draft });
            }
        }
    }

    /// Visits those that belong together, and removes them from the lists.
    fn match_by<'p, 'o, 'n>(
        &mut self,
        pair: &Pair<'_, '_>,
        old: &mut Vec<&'p Place<'o>>,
        new: &mut Vec<&'p Place<'n>>,
        belongs: impl Fn(&Self, &Place<'_>, &Place<'_>) -> bool,
    ) {
        old.retain(|before| {
            let Some(index) = new.iter().position(|after| belongs(self, before, after)) else { return true };
            let after = new.remove(index);
            self.visit_part(before, after, pair.path);
            false
        });
    }

    fn has_same_name(&self, old: &Place<'_>, new: &Place<'_>) -> bool {
        let name = self.named(old);
        name.is_some() && name == self.named(new)
    }

    /// What the other side requires, and this alternative does not.
    fn missing(&self, place: &Place<'_>, pair: &Pair<'_, '_>, is_old: bool) -> Option<String> {
        let (here, there) = if is_old { (pair.old, pair.new) } else { (pair.new, pair.old) };
        let own = Shape::of(place, self.fuel).required;
        let is_missing = |name: &&&str| !own.contains_key(**name) && !here.required.contains_key(**name);
        let names: Vec<_> = there.required.keys().filter(is_missing).map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// What distinguishes an alternative: the word that a property must be, or its title.
    fn named(&self, place: &Place<'_>) -> Option<String> {
        let shape = Shape::of(place, self.fuel);
        let word = |(name, place): (&&str, &Place<'_>)| match &Shape::of(place, self.fuel).choices.as_deref() {
            Some([only]) if only.is_string() => Some(format!("`{name}` is {}", super::short(only))),
            _ => None,
        };
        let title = || Some(super::short(shape.value("title").filter(|it| it.is_string())?));
        shape.properties.iter().find_map(word).or_else(title)
    }
}
