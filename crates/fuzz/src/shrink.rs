//! Smaller inputs.

use serde_json::{Map, Value as Json, json};

/// How many smaller values of one member are tried.
const MOST: usize = 24;

/// Inputs that are smaller than this one, the smallest first.
pub(crate) fn smaller(value: &Json) -> Vec<Json> {
    match value {
        Json::Object(members) => smaller_object(members),
        Json::Array(items) => {
            let mut found = vec![json!([])];
            let half = items.len() / 2;
            if half > 0 {
                found.extend([items[..half].to_vec().into(), items[half..].to_vec().into()]);
            }
            for index in 0..items.len().min(MOST) {
                let mut fewer = items.clone();
                fewer.remove(index);
                found.push(fewer.into());
            }
            for (index, item) in items.iter().enumerate().take(MOST) {
                found.extend(smaller(item).into_iter().take(MOST).map(|item| {
                    let mut changed = items.clone();
                    changed[index] = item;
                    changed.into()
                }));
            }
            found.retain(|it| it != value);
            found
        }
        Json::String(text) => smaller_text(text),
        Json::Number(number) => {
            let Some(number) = number.as_f64() else { return Vec::new() };
            let mut found = vec![json!(0), json!(1)];
            if number < 0.0 {
                found.push(json!(-1));
            }
            let halves = std::iter::successors(Some(number / 2.0), |it| Some(it / 2.0)).take_while(|it| it.abs() > 1.0);
            // Only whole numbers that a float holds exactly.
            found.extend(halves.take(MOST).filter(|it| it.abs() < 9e15).map(|it| json!(it.trunc() as i64)));
            if number.fract() == 0.0 && number.abs() < 9e15 {
                found.push(json!(number as i64 - number.signum() as i64));
            }
            found.retain(|it| it.as_f64().is_some_and(|it| it.abs() < number.abs()));
            found
        }
        Json::Bool(true) => vec![json!(false)],
        Json::Bool(false) | Json::Null => Vec::new(),
    }
}

fn smaller_object(members: &Map<String, Json>) -> Vec<Json> {
    let mut found = Vec::new();
    for name in members.keys() {
        let mut fewer = members.clone();
        fewer.shift_remove(name);
        found.push(fewer.into());
    }
    for (name, member) in members {
        found.extend(smaller(member).into_iter().map(|member| {
            let mut changed = members.clone();
            changed.insert(name.clone(), member);
            changed.into()
        }));
    }
    found
}

fn smaller_text(text: &str) -> Vec<Json> {
    let chars: Vec<char> = text.chars().collect();
    let beginning = |length: usize| chars[..length].iter().collect::<String>();
    let mut found = vec![String::new(), "a".repeat(chars.len())];
    let doubled = std::iter::successors(Some(1), |it| Some(it * 2)).take_while(|it| *it < chars.len());
    found.extend(doubled.map(beginning));
    // As a binary search: a half, three quarters, seven eighths and so on.
    let rests = std::iter::successors(Some(chars.len() / 2), |it| Some(it / 2)).take_while(|it| *it > 0);
    found.extend(rests.map(|rest| beginning(chars.len() - rest)));
    found.push(chars[chars.len() / 2..].iter().collect());
    found.push(chars.iter().skip(1).collect());
    let mut seen = std::collections::HashSet::new();
    found.retain(|it| it != text && seen.insert(it.clone()));
    found.into_iter().map(Json::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest input for which the condition holds.
    fn shrunk(mut value: Json, holds: impl Fn(&Json) -> bool) -> Json {
        while let Some(next) = smaller(&value).into_iter().find(&holds) {
            value = next;
        }
        value
    }

    #[test]
    fn an_input_becomes_as_small_as_it_can() {
        let input = json!({ "a": 17, "b": 0, "note": "long text", "list": [3, 4, 5], "deep": { "x": true } });
        assert_eq!(shrunk(input.clone(), |it| it["b"] == 0), json!({ "b": 0 }));
        assert_eq!(shrunk(input.clone(), |it| it["a"].as_i64() > Some(9)), json!({ "a": 10 }));
        assert_eq!(
            shrunk(input.clone(), |it| it["list"].as_array().is_some_and(|it| it.len() > 1)),
            json!({ "list": [0, 0] })
        );
        assert_eq!(
            shrunk(input.clone(), |it| it["note"].as_str().is_some_and(|it| it.len() > 4)),
            json!({ "note": "aaaaa" })
        );
        assert_eq!(shrunk(input, |it| it["deep"]["x"].is_boolean()), json!({ "deep": { "x": false } }));
    }
}
