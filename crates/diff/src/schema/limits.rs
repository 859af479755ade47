//! Limits of numbers, lengths and counts, and what texts look like.

use serde_json::Value as Json;

use rehearse_report::diff::Class;

use super::walk::{Pair, Walk};

/// The limits of lengths and counts, and of what.
const COUNTS: [(&str, &str, [&str; 2]); 3] = [
    ("minLength", "maxLength", ["character", "characters"]),
    ("minItems", "maxItems", ["item", "items"]),
    ("minProperties", "maxProperties", ["property", "properties"]),
];

impl Walk<'_> {
    pub(super) fn compare_limits(&mut self, pair: &Pair<'_, '_>) {
        for (is_least, keywords, excluded) in
            [(true, ["minimum", "exclusiveMinimum"], "smaller"), (false, ["maximum", "exclusiveMaximum"], "larger")]
        {
            let (old, new) = (pair.old.bound(is_least), pair.new.bound(is_least));
            let describe = |(value, is_excluded): (f64, bool)| {
                let words = match (is_least, is_excluded) {
                    (true, false) => "at least",
                    (true, true) => "more than",
                    (false, false) => "at most",
                    (false, true) => "less than",
                };
                format!("{words} {}", if is_least { value } else { 0.0 - value })
            };
            let keyword = keywords.into_iter().find(|it| pair.old.value(it).is_some() || pair.new.value(it).is_some());
            self.push_limit(pair, keyword.unwrap_or_default(), [old, new], describe, &format!("{excluded} values"));
        }
        for (least, most, [one, noun]) in COUNTS {
            let value = |it: &Json| it.as_f64();
            let count = |it: f64| format!("{it} {}", if it == 1.0 { one } else { noun });
            let of = |keyword| [pair.old.value(keyword).and_then(value), pair.new.value(keyword).and_then(value)];
            self.push_limit(pair, least, of(least), |it| format!("at least {}", count(it)), &format!("fewer {noun}"));
            let negated = of(most).map(|it| it.map(|it| 0.0 - it));
            self.push_limit(pair, most, negated, |it| format!("at most {}", count(0.0 - it)), &format!("more {noun}"));
        }
        let unique = |it: Option<&Json>| (it == Some(&Json::Bool(true))).then_some(1.0);
        let keyword = "uniqueItems";
        let is_unique = [unique(pair.old.value(keyword)), unique(pair.new.value(keyword))];
        self.push_limit(pair, keyword, is_unique, |_| "only different items".to_owned(), "equal items");
        self.compare_multiples(pair);
    }

    /// Two limits, of which a greater one excludes more.
    fn push_limit<T: Copy + PartialOrd>(
        &mut self,
        pair: &Pair<'_, '_>,
        keyword: &str,
        [old, new]: [Option<T>; 2],
        describe: impl Fn(T) -> String,
        excluded: &str,
    ) {
        let id = match (&old, &new) {
            (Some(old), Some(new)) if old == new => return,
            (None, None) => return,
            (Some(old), Some(new)) if new < old => "limit-loosened",
            (Some(_), None) => "limit-loosened",
            _ => "limit-tightened",
        };
        let verb = if keyword.ends_with("imum") { "be" } else { "have" };
        let says = match (old.map(&describe), new.map(&describe)) {
            (Some(old), Some(new)) => format!("must {verb} {new} now, {old} before"),
            (None, Some(new)) => format!("must {verb} {new} now, and had no such limit"),
            (old, _) => format!("need not {verb} {} any more", old.unwrap_or_default()),
        };
        let draft = self.draft(id, pair, &says).at(pair.pointers(keyword), pair.schemas());
        self.drafts.push(match draft.class {
            Class::Breaking => draft.because(&format!("{excluded} are refused")),
            _ => draft,
        });
    }

    fn compare_multiples(&mut self, pair: &Pair<'_, '_>) {
        let keyword = "multipleOf";
        let of = |value: Option<&Json>| value.and_then(Json::as_f64).filter(|it| *it > 0.0);
        let is_multiple = |a: f64, b: f64| (a / b).fract() == 0.0;
        let (old, new) = (of(pair.old.value(keyword)), of(pair.new.value(keyword)));
        let id = match (old, new) {
            (None, None) => return,
            (Some(old), Some(new)) if old == new => return,
            (Some(old), Some(new)) if is_multiple(old, new) => "limit-loosened",
            (Some(old), Some(new)) if !is_multiple(new, old) => "limit-changed",
            (Some(_), None) => "limit-loosened",
            _ => "limit-tightened",
        };
        let says = match (old, new) {
            (Some(old), Some(new)) => format!("must be a multiple of {new} now, of {old} before"),
            (None, Some(new)) => format!("must be a multiple of {new} now, any number before"),
            (Some(old), _) => format!("need not be a multiple of {old} any more"),
            (None, None) => return,
        };
        let draft = self.draft(id, pair, &says).at(pair.pointers(keyword), pair.schemas());
        self.drafts.push(draft);
    }

    pub(super) fn compare_texts(&mut self, pair: &Pair<'_, '_>) {
        for (keyword, [added, removed, changed]) in [
            ("pattern", ["pattern-added", "pattern-removed", "pattern-changed"]),
            ("format", ["format-added", "format-removed", "format-changed"]),
        ] {
            let text = |it: Option<&Json>| it.map(super::short).unwrap_or_default();
            let (old, new) = (pair.old.value(keyword), pair.new.value(keyword));
            let (id, says) = match (old, new) {
                (None, None) => continue,
                (Some(old), Some(new)) if old == new => continue,
                (None, Some(_)) => (added, format!("must have the {keyword} {} now", text(new))),
                (Some(_), None) => (removed, format!("need not have the {keyword} {} any more", text(old))),
                _ => (changed, format!("must have the {keyword} {} now, {} before", text(new), text(old))),
            };
            let draft = self.draft(id, pair, &says).at(pair.pointers(keyword), pair.schemas());
            self.drafts.push(draft);
        }
    }
}
