//! The merge of scripts that differ from a common base, each in something else.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

/// The members that an item of a list is known by.
const NAMES: [&str; 5] = ["name", "uri", "uriTemplate", "method", "prompt"];

/// A place in a script that two others want to be different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conflict(pub(super) String);

type Merged = Result<Option<Json>, Conflict>;

/// What is at a place in two scripts, in one: the change of the base if one of them has changed it, both changes where
/// they are in different members or items. Faults come one after the other, and so do the steps before the same last one;
/// of the versions those of both are left.
pub(super) fn merge(base: Option<&Json>, one: Option<&Json>, other: Option<&Json>, at: &str) -> Merged {
    let key = at.rsplit('/').next().unwrap_or_default();
    if one == other || other == base {
        return Ok(one.cloned());
    }
    if one == base {
        return Ok(other.cloned());
    }
    let conflict = || Conflict(at.to_owned());
    match (one, other) {
        (Some(one), Some(other)) if key == "protocol" => {
            let theirs = texts(other);
            let common: Vec<_> = texts(one).into_iter().filter(|it| theirs.contains(it)).map(Json::from).collect();
            if common.is_empty() { Err(conflict()) } else { Ok(Some(common.into())) }
        }
        (Some(Json::Object(one)), Some(Json::Object(other))) => {
            let nothing = Map::new();
            let base = base.and_then(Json::as_object).unwrap_or(&nothing);
            let mut merged = Map::new();
            for key in one.keys().chain(other.keys().filter(|key| !one.contains_key(*key))) {
                let value = merge(base.get(key), one.get(key), other.get(key), &format!("{at}/{key}"))?;
                merged.extend(value.map(|value| (key.clone(), value)));
            }
            Ok(Some(merged.into()))
        }
        (Some(Json::Array(one)), Some(Json::Array(other))) => match (key, one.split_last(), other.split_last()) {
            ("faults", ..) => Ok(Some([&one[..], other].concat().into())),
            ("steps", Some((last, first)), Some((end, _))) if last == end => Ok(Some([first, other].concat().into())),
            _ => {
                let base = base.and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
                let [base, one, other] = [base, one, other].map(|items| named(items).ok_or_else(conflict));
                let (base, one, other) = (base?, one?, other?);
                let find =
                    |items: &[(String, &Json)], name: &str| items.iter().find(|it| it.0 == name).map(|it| it.1.clone());
                let names = one.iter().chain(&other).map(|(name, _)| name);
                let (mut seen, mut merged) = (BTreeSet::new(), Vec::new());
                for name in names.filter(|name| seen.insert((*name).clone())) {
                    let [base, one, other] = [&base, &one, &other].map(|items| find(items, name));
                    merged.extend(merge(base.as_ref(), one.as_ref(), other.as_ref(), &format!("{at}/{name}"))?);
                }
                Ok(Some(merged.into()))
            }
        },
        _ => Err(conflict()),
    }
}

/// A text, or several.
fn texts(value: &Json) -> Vec<&str> {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice).iter().filter_map(Json::as_str).collect()
}

/// Items, each with its name, and its number among those of the same name; `None` if one has no name.
fn named(items: &[Json]) -> Option<Vec<(String, &Json)>> {
    let name = |item: &Json| NAMES.iter().find_map(|key| item[*key].as_str()).map(ToOwned::to_owned);
    let names: Vec<_> = items.iter().map(name).collect::<Option<_>>()?;
    let number = |at: usize| names[..at].iter().filter(|name| **name == names[at]).count();
    Some(items.iter().enumerate().map(|(at, item)| (format!("{}#{}", names[at], number(at)), item)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(base: Json, one: Json, other: Json) -> Result<Json, String> {
        let merged = merge(Some(&base), Some(&one), Some(&other), "");
        merged.map(Option::unwrap_or_default).map_err(|Conflict(at)| at)
    }

    #[test]
    fn what_one_has_changed_is_changed() {
        let base = json!({ "a": 1, "b": { "c": 1 }, "gone": 1 });
        let both = merged(
            base.clone(),
            json!({ "a": 2, "b": { "c": 1 } }),
            json!({ "a": 1, "b": { "c": 1, "d": 3 }, "gone": 1 }),
        );
        assert_eq!(both, Ok(json!({ "a": 2, "b": { "c": 1, "d": 3 } })));
        assert_eq!(
            merged(base.clone(), json!({ "b": { "c": 2 } }), json!({ "b": { "c": 3 } })),
            Err("/b/c".to_owned())
        );
        assert_eq!(merged(base, json!({ "b": 1 }), json!({ "b": { "c": 3 } })), Err("/b".to_owned()));
    }

    #[test]
    fn items_are_known_by_their_names() {
        let tool = |name: &str, text: &str| json!({ "name": name, "text": text });
        let base = json!([tool("a", "x"), tool("b", "x")]);
        let (one, other) =
            (json!([tool("a", "y"), tool("b", "x"), tool("a", "z")]), json!([tool("a", "x"), tool("c", "x")]));
        let both = json!([tool("a", "y"), tool("a", "z"), tool("c", "x")]);
        assert_eq!(merged(base.clone(), one, other), Ok(both));
        assert_eq!(merged(base, json!([1]), json!([2])), Err(String::new()));
    }

    #[test]
    fn faults_and_steps_come_one_after_the_other() {
        let (one, other) = (json!({ "faults": [1], "steps": [1, 9] }), json!({ "faults": [2], "steps": [2, 9] }));
        assert_eq!(merged(json!({}), one, other), Ok(json!({ "faults": [1, 2], "steps": [1, 2, 9] })));
        let (one, other) = (json!({ "steps": [{ "name": "a" }, 1] }), json!({ "steps": [2] }));
        assert_eq!(merged(json!({}), one, other), Err("/steps".to_owned()));
    }

    #[test]
    fn the_versions_are_those_of_both() {
        let versions =
            |one: Json, other: Json| merged(json!({}), json!({ "protocol": one }), json!({ "protocol": other }));
        assert_eq!(versions(json!("b"), json!(["a", "b"])), Ok(json!({ "protocol": ["b"] })));
        assert_eq!(versions(json!("b"), json!(["a"])), Err("/protocol".to_owned()));
    }
}
