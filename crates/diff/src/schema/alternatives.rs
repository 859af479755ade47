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
        let is_bare = |shape: &Shape<'_>| {
            let mut bare = shape.clone();
            bare.alternatives = None;
            bare.types == Types::ALL && !bare.has_assertions()
        };
        let is_one = |shape: &Shape<'_>| shape.types != Types::ALL || shape.has_assertions();
        match (&pair.old.alternatives, &pair.new.alternatives) {
            (Some((keyword, old)), None) if is_bare(pair.old) && is_one(pair.new) => {
                self.match_up(pair, keyword, old, std::slice::from_ref(&pair.new.place));
            }
            (None, Some((keyword, new))) if is_bare(pair.new) && is_one(pair.old) => {
                self.match_up(pair, keyword, std::slice::from_ref(&pair.old.place), new);
            }
            _ => return false,
        }
        true
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
                let named = self.named(place).map_or(says.to_owned(), |name| format!("{says}: {name}"));
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
