//! What the items of all lists have in common.

use std::collections::{HashMap, hash_map::Entry};

use serde_json::Value as Json;

use super::{Changes, Pair, Subject, keys, pair, quoted};
use rehearse_document::text::boundary_before;
use rehearse_protocol::List;
use rehearse_report::diff::Class;

/// How many bytes are shown before the first difference of two texts.
const CONTEXT: usize = 24;

/// An item with its index.
pub(super) type Indexed<'s> = (usize, &'s Json);

/// The items of two lists by their names: those that are on one side only, and those that are on both.
pub(super) struct Matched<'s> {
    pub(super) removed: Vec<Indexed<'s>>,
    pub(super) added: Vec<Indexed<'s>>,
    pub(super) both: Vec<(Indexed<'s>, Indexed<'s>)>,
    /// The new items whose name another one before them has; none if the old list has such, too.
    pub(super) repeated: Vec<Indexed<'s>>,
}

/// Matches the items of two lists by a member. Of items with one name, only the first counts.
pub(super) fn matched<'s>(old: &'s [Json], new: &'s [Json], key: &str) -> Matched<'s> {
    let by_name = |items: &'s [Json]| {
        let mut all: HashMap<&'s str, Indexed<'s>> = HashMap::new();
        let mut repeated = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if let Some(name) = item.get(key).and_then(Json::as_str) {
                match all.entry(name) {
                    Entry::Vacant(entry) => drop(entry.insert((index, item))),
                    Entry::Occupied(_) => repeated.push((index, item)),
                }
            }
        }
        (all, repeated)
    };
    let ((before, known), (after, mut repeated)) = (by_name(old), by_name(new));
    repeated.retain(|(_, item)| !known.iter().any(|(_, other)| other.get(key) == item.get(key)));
    let only = |these: &HashMap<&'s str, Indexed<'s>>, others: &HashMap<&'s str, Indexed<'s>>| {
        let mut only: Vec<_> = these.iter().filter(|(name, _)| !others.contains_key(*name)).map(|it| *it.1).collect();
        only.sort_by_key(|(index, _)| *index);
        only
    };
    let mut both: Vec<_> = before.iter().filter_map(|(name, old)| Some((*old, *after.get(name)?))).collect();
    both.sort_by_key(|((index, _), _)| *index);
    Matched { removed: only(&before, &after), added: only(&after, &before), both, repeated }
}

/// An item of a list on one or both sides.
pub(super) fn subject(list: List, old: Option<Indexed<'_>>, new: Option<Indexed<'_>>) -> Subject {
    let name = old.or(new).and_then(|(_, item)| item.get(list.key())?.as_str()).unwrap_or_default();
    let pointer = |side: Option<Indexed<'_>>| side.map(|(index, _)| format!("/{}/{index}", list.member()));
    Subject { name: format!("{} {name}", list.noun()), old: pointer(old), new: pointer(new) }
}

/// The name of an item.
pub(super) fn name(list: List, item: &Json) -> &str {
    item.get(list.key()).and_then(Json::as_str).unwrap_or_default()
}

/// Reports the items that are on one side only.
pub(super) fn compare_names(changes: &mut Changes, list: List, matched: &Matched<'_>, loss: &str) {
    let noun = list.noun();
    for removed in &matched.removed {
        let same = matched.added.iter().find(|added| is_renamed(list, removed.1, added.1));
        let hint = same.map(|(_, added)| format!("; `{}` is the same but for its name", name(list, added)));
        let text = format!("`{}` is gone: {loss}{}.", name(list, removed.1), hint.unwrap_or_default());
        changes.push(Class::Breaking, &format!("{noun}.removed"), subject(list, Some(*removed), None), text);
    }
    for added in &matched.added {
        let text = format!("`{}` is new.", name(list, added.1));
        changes.push(Class::Addition, &format!("{noun}.added"), subject(list, None, Some(*added)), text);
    }
    compare_repeated(changes, list, &matched.repeated);
}

/// Reports the items with the name of another one.
fn compare_repeated(changes: &mut Changes, list: List, repeated: &[Indexed<'_>]) {
    for item in repeated {
        let text = format!(
            "There is another `{}` before it: clients use one of them, or refuse the list.",
            name(list, item.1)
        );
        changes.push(Class::Breaking, &format!("{}.repeated", list.noun()), subject(list, None, Some(*item)), text);
    }
}

/// Whether two items differ in nothing but their names.
fn is_renamed(list: List, old: &Json, new: &Json) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let is_named = |key: &str| key == list.key() || matches!(key, "name" | "title");
    old.len() > 1 && old.len() == new.len() && old.iter().all(|(key, it)| is_named(key) || new.get(key) == Some(it))
}

/// Reports changes of the members that every item may have: texts, annotations, icons, `_meta` and what is not known
/// here. `known` are the members that the caller compares.
pub(super) fn compare_members(
    changes: &mut Changes,
    noun: &str,
    subject: &Subject,
    (old, new): (&Json, &Json),
    known: &[&str],
) {
    for key in ["title", "description"] {
        compare_text(changes, &format!("{noun}.{key}"), subject, key, pair(old, new, key));
    }
    compare_annotations(changes, noun, subject, pair(old, new, "annotations"));
    for key in keys(old, new) {
        let pair = pair(old, new, &key);
        let is_compared = known.contains(&&*key) || matches!(&*key, "title" | "description" | "annotations");
        if is_compared || pair.0 == pair.1 {
            continue;
        }
        let (class, rule, why) = match &*key {
            "_meta" => (Class::Behaviour, "meta", "a host may use it"),
            "icons" => (Class::Cosmetic, "icons", "only people see them"),
            _ => (Class::Cosmetic, "member", "the protocol does not know it"),
        };
        let text = format!("`{key}` {}: {why}.", verb(pair));
        changes.push(class, &format!("{noun}.{rule}"), subject.member(&key, pair), text);
    }
}

/// Reports a changed text that a model reads.
pub(super) fn compare_text(changes: &mut Changes, rule: &str, subject: &Subject, key: &str, pair: Pair<'_>) {
    if pair.0 == pair.1 {
        return;
    }
    let words = |side: Option<&Json>| {
        let text = side.and_then(Json::as_str).unwrap_or_default();
        text.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let subject = subject.member(key, pair);
    match words(pair.0) == words(pair.1) {
        true => changes.push(Class::Cosmetic, rule, subject, format!("Only spaces differ in `{key}`.")),
        false => {
            let values = match pair {
                (Some(old), Some(new)) => {
                    let [old, new] = apart([old, new].map(|text| text.as_str().unwrap_or_default()));
                    format!(", {} before, {} now", quoted(&old), quoted(&new))
                }
                (None, Some(value)) | (Some(value), None) => format!(", {}", quoted(value)),
                (None, None) => String::new(),
            };
            let text = format!("`{key}` {}{values}: a model may choose differently.", verb(pair));
            changes.push(Class::Behaviour, rule, subject, text);
        }
    }
}

/// Two texts without the words that both begin with, but for a few.
fn apart(texts: [&str; 2]) -> [Json; 2] {
    let equal = texts[0].bytes().zip(texts[1].bytes()).take_while(|(one, other)| one == other).count();
    let start = texts[0][..boundary_before(texts[0], equal)].rfind(char::is_whitespace).unwrap_or_default();
    let before = boundary_before(texts[0], start.saturating_sub(CONTEXT));
    let start = texts[0][..before].rfind(char::is_whitespace).unwrap_or_default();
    let mark = if start == 0 { "" } else { "…" };
    texts.map(|text| format!("{mark}{}", text[start..].trim_start()).into())
}

fn compare_annotations(changes: &mut Changes, noun: &str, subject: &Subject, annotations: Pair<'_>) {
    let empty = Json::Object(serde_json::Map::new());
    let (old, new) = (annotations.0.unwrap_or(&empty), annotations.1.unwrap_or(&empty));
    let at = subject.member("annotations", annotations);
    for key in keys(old, new) {
        let pair = pair(old, new, &key);
        if value_of(&key, pair.0) == value_of(&key, pair.1) {
            continue;
        }
        let subject = at.member(&key, pair);
        let rule = format!("{noun}.annotation");
        if key == "lastModified" {
            changes.push(Class::Cosmetic, &rule, subject, "`lastModified` differs.");
            continue;
        }
        let value = |side: Option<&Json>| side.map_or_else(|| "not set".to_owned(), quoted);
        let why = if key == "title" { "a model may choose differently" } else { "a host may ask or show differently" };
        let text = format!("The annotation `{key}` is {} now, {} before: {why}.", value(pair.1), value(pair.0));
        changes.push(Class::Behaviour, &rule, subject, text);
    }
}

/// The value of an annotation, or what stands for it if it is not set (2025-11-25, Schema: ToolAnnotations).
fn value_of<'v>(key: &str, value: Option<&'v Json>) -> Option<&'v Json> {
    let default = match key {
        "readOnlyHint" | "idempotentHint" => &Json::Bool(false),
        "destructiveHint" | "openWorldHint" => &Json::Bool(true),
        _ => return value,
    };
    value.or(Some(default))
}

/// What has happened to a member.
pub(super) fn verb(pair: Pair<'_>) -> &'static str {
    match pair {
        (None, Some(_)) => "is new",
        (Some(_), None) => "is gone",
        _ => "differs",
    }
}
